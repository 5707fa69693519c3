// Programs of all schedules pass: --flash-gpu=target=sm_80 runs the pass.
// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-verify-async)))"

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// Guards, nested uses, several readers, products.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %same = arith.constant 0 : index
    scf.if %c {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%same] : !memory to !ring
    }
    %kt = tile.ring.wait %r[%c0] : !ring
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    scf.if %c {
      %x = tile.load %kt : !tile to !query
    }
    %s = tile.mma_wait %p : !tile.pending<!scores>
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.copy_async' op fills a stage that has not been acquired before it, under the same guard}}
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.ring.acquire' op takes a stage that no copy after it fills, under the same guard}}
    tile.ring.acquire %r[%c0] : !ring
    scf.if %c {
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// Another step.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.ring.acquire' op takes a stage that no copy after it fills, under the same guard}}
    tile.ring.acquire %r[%c1] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    // expected-error @below {{'tile.copy_async' op fills a stage that a copy before it fills}}
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.ring.wait' op gives a tile that is not released after it, in the same block}}
    %kt = tile.ring.wait %r[%c0] : !ring
    %x = tile.load %kt : !tile to !query
    scf.if %c {
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-note @below {{released here}}
    tile.ring.release %r[%c0] : !ring
    // expected-error @below {{'tile.load' op uses a tile behind its release}}
    %x = tile.load %kt : !tile to !query
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// In a nested region.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-note @below {{released here}}
    tile.ring.release %r[%c0] : !ring
    scf.if %c {
      // expected-error @below {{'tile.load' op uses a tile behind its release}}
      %x = tile.load %kt : !tile to !query
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    // expected-note @below {{released here}}
    tile.ring.release %r[%c0] : !ring
    // expected-error @below {{'tile.mma_wait' op waits for a product behind the release of a tile that it reads}}
    %s = tile.mma_wait %p : !tile.pending<!scores>
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.ring.release' op gives a stage back that has not been waited for before it, in the same block}}
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    %x = tile.load %kt : !tile to !query
    tile.ring.release %r[%c0] : !ring
    // expected-error @below {{'tile.ring.release' op gives a stage back a second time}}
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.mma_async' op is never waited for}}
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.mma_async' op is waited for more than once}}
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    %s = tile.mma_wait %p : !tile.pending<!scores>
    %t = tile.mma_wait %p : !tile.pending<!scores>
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.mma_async' op is waited for under another guard}}
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    scf.if %c {
      %s = tile.mma_wait %p : !tile.pending<!scores>
    }
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.mma_async' op may only be waited for, but 'scf.yield' uses it}}
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    %o = scf.if %c -> (!tile.pending<!scores>) {
      scf.yield %p : !tile.pending<!scores>
    } else {
      scf.yield %p : !tile.pending<!scores>
    }
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// Loops that go on counting, also inside another one.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    %a = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %k[%j] to %r[%t] : !memory to !ring
      %kt = tile.ring.wait %r[%t] : !ring
      tile.ring.release %r[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %i = %c0 to %c8 step %c1 iter_args(%u = %a) -> (index) {
      %v = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %u) -> (index) {
        tile.ring.acquire %r[%t] : !ring
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %kt = tile.ring.wait %r[%t] : !ring
        tile.ring.release %r[%t] : !ring
        %t1 = arith.addi %t, %c1 : index
        scf.yield %t1 : index
      }
      scf.yield %v : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    // expected-error @below {{'tile.ring' op has steps that unrelated loops count}}
    %r = tile.ring : !ring
    // expected-note @below {{one of them}}
    %a = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %k[%j] to %r[%t] : !memory to !ring
      %kt = tile.ring.wait %r[%t] : !ring
      tile.ring.release %r[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    // expected-note @below {{another one}}
    %b = scf.for %j = %c0 to %c8 step %c1 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %k[%j] to %r[%t] : !memory to !ring
      %kt = tile.ring.wait %r[%t] : !ring
      tile.ring.release %r[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %q: !query, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = tile.ring : !ring
    // expected-error @below {{'builtin.unrealized_conversion_cast' op may not use a ring}}
    %x = builtin.unrealized_conversion_cast %r : !ring to index
    gpu.return
  }
}

// -----

// A choice may give the tile back in both of its branches.
!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    scf.if %c {
      %x = tile.load %kt : !tile to !query
      tile.ring.release %r[%c0] : !ring
    } else {
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    // expected-error @below {{'tile.ring.wait' op gives a tile that is not released after it, in the same block}}
    %kt = tile.ring.wait %r[%c0] : !ring
    scf.if %c {
      tile.ring.release %r[%c0] : !ring
    } else {
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!query = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    scf.if %c {
      // expected-note @below {{released here}}
      tile.ring.release %r[%c0] : !ring
      // expected-error @below {{'tile.load' op uses a tile behind its release}}
      %x = tile.load %kt : !tile to !query
    } else {
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    scf.if %c {
      tile.ring.release %r[%c0] : !ring
    } else {
      tile.ring.release %r[%c0] : !ring
    }
    // expected-error @below {{'tile.ring.release' op gives a stage back a second time}}
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>

// Both guards may hold.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1, %d: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    scf.if %c {
      // expected-note @below {{the other one}}
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    }
    %same = arith.constant 0 : index
    scf.if %d {
      // expected-error @below {{'tile.ring.acquire' op names a step that another one names, and no choice leaves out one of them}}
      tile.ring.acquire %r[%same] : !ring
      tile.copy_async %k[%c0] to %r[%same] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>

// Another value for the same step, in a block around the other.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1, %t: index) kernel {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring : !ring
    %a = arith.addi %t, %c1 : index
    %b = arith.addi %a, %c1 : index
    // expected-note @below {{the other one}}
    tile.ring.acquire %r[%b] : !ring
    tile.copy_async %k[%t] to %r[%b] : !memory to !ring
    scf.if %c {
      %same = arith.addi %c2, %t : index
      // expected-error @below {{'tile.ring.acquire' op names a step that another one names}}
      tile.ring.acquire %r[%same] : !ring
      tile.copy_async %k[%t] to %r[%same] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>

// Two acquires before one copy.
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    // expected-note @below {{the other one}}
    tile.ring.acquire %r[%c0] : !ring
    // expected-error @below {{'tile.ring.acquire' op names a step that another one names}}
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>

gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1, %d: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    scf.if %c {
      // expected-note @below {{the other one}}
      %kt = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    }
    scf.if %d {
      // expected-error @below {{'tile.ring.wait' op names a step that another one names}}
      %kt = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>

// One of two branches is taken; a step later is another one.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: i1, %t: index) kernel {
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    scf.if %c {
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %k[%t] to %r[%t] : !memory to !ring
    } else {
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %k[%c1] to %r[%t] : !memory to !ring
    }
    %next = arith.addi %t, %c1 : index
    tile.ring.acquire %r[%next] : !ring
    tile.copy_async %k[%next] to %r[%next] : !memory to !ring
    scf.if %c {
      %kt = tile.ring.wait %r[%t] : !ring
      tile.ring.release %r[%t] : !ring
    } else {
      %kt = tile.ring.wait %r[%t] : !ring
      tile.ring.release %r[%t] : !ring
    }
    gpu.return
  }
}

// -----

// Stages that two copies fill, one by one or in a loop, and those that a register
// tile fills.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c1) : !memory to !ring
    tile.copy_async %k[%c1] to %r[%c0] part(%c0) : !memory to !ring
    tile.ring.acquire %r[%c1] : !ring
    scf.for %p = %c0 to %c2 step %c1 {
      tile.copy_async %k[%p] to %r[%c1] part(%p) : !memory to !ring
    }
    %t0 = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    %t1 = tile.ring.wait %r[%c1] : !ring
    tile.ring.release %r[%c1] : !ring
    tile.ring.acquire %one[%c0] : !ring
    tile.ring.put %x to %one[%c0] : !x to !ring
    %t = tile.ring.wait %one[%c0] : !ring
    tile.ring.release %one[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    // expected-error @below {{'tile.ring.acquire' op takes a stage, but copies after it fill only 1 of its 2 parts}}
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c0) : !memory to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c0) : !memory to !ring
    // expected-error @below {{'tile.copy_async' op fills a stage that a copy before it fills}}
    tile.copy_async %k[%c0] to %r[%c0] part(%c0) : !memory to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c0) : !memory to !ring
    scf.for %p = %c0 to %c2 step %c1 {
      // expected-error @below {{'tile.copy_async' op fills a stage that a copy before it fills}}
      tile.copy_async %k[%c0] to %r[%c0] part(%p) : !memory to !ring
    }
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    // expected-error @+2 {{'tile.copy_async' op names a part that is no constant below 2, nor counted by a loop from 0 to 2}}
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c2) : !memory to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    // expected-error @+2 {{'tile.copy_async' op must name which part of the stage it fills}}
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    // expected-error @+2 {{'tile.copy_async' op names a part of a stage that one copy fills}}
    tile.ring.acquire %one[%c0] : !ring
    tile.copy_async %k[%c0] to %one[%c0] part(%c0) : !memory to !ring
    %t = tile.ring.wait %one[%c0] : !ring
    tile.ring.release %one[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    // expected-error @+2 {{'tile.ring.put' op fills a stage that copies fill}}
    tile.ring.acquire %r[%c0] : !ring
    tile.ring.put %x to %r[%c0] : !x to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !x, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 : !ring
    %one = tile.ring : !ring
    tile.ring.acquire %one[%c0] : !ring
    tile.ring.put %x to %one[%c0] : !x to !ring
    tile.ring.acquire %one[%c1] : !ring
    // expected-error @below {{'tile.copy_async' op copies into a ring that register tiles fill}}
    tile.copy_async %k[%c0] to %one[%c1] : !memory to !ring
    gpu.return
  }
}

// -----

!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!x = tensor<16x64xf16, #tile.fragment<1>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %n: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
      // expected-error @below {{'tile.ring.wait' op waits for a stage that only its own warps fill, and later}}
      %tile = tile.ring.wait %r[%t] : !ring
      scf.if %c {
        tile.ring.acquire %r[%t] : !ring
        // expected-note @below {{filled here}}
        tile.ring.put %x to %r[%t] : !x to !ring
      }
      tile.ring.release %r[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %next : index
    }
    gpu.return
  }
}

// -----

// A pipeline is expanded before.
gpu.module @m {
  gpu.func @kernel(%x: f32) kernel {
    // expected-error @below {{is part of a pipeline that has not been expanded; run tile-pipeline before}}
    %y = arith.addf %x, %x {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : f32
    gpu.return
  }
}
