// What tile-verify-async demands of roles, ping-pong, votes of warps, and products that
// go on during a wait. Programs of all schedules pass: --flash-gpu=target=sm_90a runs the pass.
// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-verify-async)))"

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!lanes = tensor<64x4xi1, #tile.lanes<4>>

// Each role counts the steps itself; what one warp does may depend on its vote.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %x: !lanes, %acc: !scores, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
        %kt = tile.ring.wait %r[%t] : !ring
        tile.ping_pong.wait
        %p = tile.mma_async %kt, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
        tile.ping_pong.arrive
        %s = tile.mma_wait %p : !tile.pending<!scores>
        %any = tile.any %x : !lanes
        %scaled = scf.if %any -> !scores {
          %square = arith.mulf %s, %acc : !scores
          scf.yield %square : !scores
        } else {
          scf.yield %s : !scores
        }
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @producer(warps = 1, registers = 40) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
        tile.ring.acquire %r[%t] : !ring
        tile.copy_async %k[%i] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      // expected-error @below {{'tile.ring.acquire' op is for a role of one warp: those that compute wait for stages and release them}}
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      // expected-error @below {{'tile.copy_async' op is for a role of one warp: those that compute wait for stages and release them}}
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
      // expected-error @below {{'tile.ring.wait' op is for a role of whole warpgroups}}
      %kt = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %kt = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      // expected-error @below {{'tile.ring.release' op is for a role of whole warpgroups}}
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    // expected-error @below {{'tile.ring.wait' op has no role, in a kernel whose other warps have}}
    %kt = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

// Two loops of one role may not count the steps of a ring each for itself.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'tile.ring' op has steps that unrelated loops count}}
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      // expected-note @below {{one}}
      %a = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
        %kt = tile.ring.wait %r[%t] : !ring
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
      // expected-note @below {{one}}
      %b = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> index {
        %kt = tile.ring.wait %r[%t] : !ring
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel {
    // expected-error @below {{'tile.ping_pong.wait' op needs a tile.ping_pong.arrive after it, in the same block}}
    tile.ping_pong.wait
    tile.ping_pong.wait
    tile.ping_pong.arrive
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%c: i1) kernel {
    // expected-error @below {{'tile.ping_pong.wait' op needs a tile.ping_pong.arrive after it, in the same block}}
    tile.ping_pong.wait
    scf.if %c {
      tile.ping_pong.arrive
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel {
    tile.ping_pong.wait
    tile.ping_pong.arrive
    // expected-error @below {{'tile.ping_pong.arrive' op needs a tile.ping_pong.wait before it, in the same block}}
    tile.ping_pong.arrive
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!lanes = tensor<64x4xi1, #tile.lanes<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile, %x: !lanes, %other: i1) kernel {
    // expected-note @below {{the vote}}
    %any = tile.any %x : !lanes
    %both = arith.andi %any, %other : i1
    scf.if %both {
      // expected-error @below {{'tile.mma_async' op is done by several warps together, and depends on a vote that each has of its own}}
      %p = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %p : !tile.pending<!scores>
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!lanes = tensor<64x4xi1, #tile.lanes<4>>
gpu.module @m {
  gpu.func @kernel(%x: !lanes) kernel {
    %r = tile.ring : !ring
    // expected-note @below {{the vote}}
    %any = tile.any %x : !lanes
    %step = arith.index_castui %any : i1 to index
    %kt = tile.ring.wait %r[%step] : !ring
    // expected-error @below {{'tile.ring.release' op is done by several warps together, and depends on a vote that each has of its own}}
    tile.ring.release %r[%step] : !ring
    gpu.return
  }
}

// -----

// Products that may go on.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile) kernel {
    %a = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    %b = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    %c = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    %x = tile.mma_wait %a younger(%b, %c : !tile.pending<!scores>, !tile.pending<!scores>) : !tile.pending<!scores>
    %y = tile.mma_wait %b younger(%c : !tile.pending<!scores>) : !tile.pending<!scores>
    %z = tile.mma_wait %c : !tile.pending<!scores>
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile) kernel {
    %a = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    // expected-note @below {{one of them}}
    %b = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    // expected-error @below {{'tile.mma_wait' op must name as younger, in their order, the products that were started behind its own and not waited for}}
    %x = tile.mma_wait %a : !tile.pending<!scores>
    %y = tile.mma_wait %b : !tile.pending<!scores>
    gpu.return
  }
}

// -----

// The younger one is complete when the older is.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile) kernel {
    %a = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    %b = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    // expected-error @below {{'tile.mma_wait' op must name as younger, in their order, the products that were started behind its own and not waited for}}
    %y = tile.mma_wait %b younger(%a : !tile.pending<!scores>) : !tile.pending<!scores>
    %x = tile.mma_wait %a : !tile.pending<!scores>
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring checked : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      // expected-error @below {{'tile.ring.check_finite' op is for at most four warps, the last of the block}}
      tile.ring.check_finite %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring checked : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
    } @nonfinite_check(warps = 3, registers = 40) {
      tile.ring.check_finite %r[%c0] : !ring
      // expected-error @below {{'tile.ring.release' op is not for a non-finite check, which only looks at tiles}}
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      // expected-error @below {{'tile.ring.is_finite' op is of a ring that is not checked}}
      %f = tile.ring.is_finite %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%f: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %s = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      // expected-error @below {{'tile.ring.copy_finite' op copies to a stage that is not acquired before it, and put after it, in the same block}}
      %k = tile.ring.copy_finite %t unless %f in %s[%c0] : !tile in !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%f: i1, %y: !x) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %s = tile.ring : !sums
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.acquire %s[%c0] : !sums
      // expected-error @below {{'tile.ring.copy_finite' op is read by what has not ended when a result is put over the copy}}
      %k = tile.ring.copy_finite %t unless %f in %s[%c0] : !tile in !sums
      %p = tile.mma_async %k, %k transpose_b warpgroup : !tile, !tile -> !tile.pending<!x>
      tile.ring.put %y to %s[%c0] : !x to !sums
      %x = tile.mma_wait %p : !tile.pending<!x>
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%f: i1, %y: !x) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %s = tile.ring : !sums
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.acquire %s[%c0] : !sums
      %k = tile.ring.copy_finite %t unless %f in %s[%c0] : !tile in !sums
      // expected-error @below {{'tile.ring.copy_finite' op copies to a stage that has a copy already}}
      %l = tile.ring.copy_finite %t unless %f in %s[%c0] : !tile in !sums
      tile.ring.put %y to %s[%c0] : !x to !sums
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel {
    // expected-error @below {{'tile.ring' op is checked or made finite, but by nobody}}
    %r = tile.ring finite : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
    gpu.return
  }
}

// -----

!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
    } @nonfinite_check(warps = 3, registers = 40) {
      // expected-error @below {{'tile.ring.make_finite' op is of a ring that is not finite}}
      tile.ring.make_finite %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel {
    // expected-error @below {{'tile.ring' op is checked or made finite, but by nobody}}
    %r = tile.ring checked : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
    gpu.return
  }
}

// -----

// A producer that goes on longer than the consumers waits for ever.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    // expected-error @below {{'tile.ring' op is copied to in steps that are not those in which it is released}}
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
        %kt8 = tile.ring.wait %r[%t] : !ring
        // expected-note @below {{released, without a counterpart}}
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @producer(warps = 1, registers = 40) {
      %a = scf.for %j = %lo to %hi step %c1 iter_args(%t = %c0) -> index {
        tile.ring.acquire %r[%t] : !ring
        // expected-note @below {{copied, without a counterpart}}
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }
}

// -----

// Nothing says that the second loop has no tile where the first has none.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    // expected-error @below {{'tile.ring' op is copied to in steps that are not those in which it is released}}
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      scf.if %entered {
        %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
          %kt10 = tile.ring.wait %r[%t] : !ring
          tile.ring.release %r[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
        %b = scf.for %j = %mid to %hi step %c1 iter_args(%t = %a) -> index {
          %kt10 = tile.ring.wait %r[%t] : !ring
          // expected-note @below {{released, without a counterpart}}
          tile.ring.release %r[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
      }
    } @producer(warps = 1, registers = 40) {
      %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
        tile.ring.acquire %r[%t] : !ring
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
      %b = scf.for %j = %mid to %hi step %c1 iter_args(%t = %a) -> index {
        tile.ring.acquire %r[%t] : !ring
        // expected-note @below {{copied, without a counterpart}}
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }
}

// -----

// The first iteration may stand in front of the loop, where there is one.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      scf.if %entered {
        %kt8 = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
        %second = arith.addi %lo, %c1 : index
        %a = scf.for %j = %second to %mid step %c1 iter_args(%t = %c1) -> index {
          %kt10 = tile.ring.wait %r[%t] : !ring
          tile.ring.release %r[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
      }
    } @producer(warps = 1, registers = 40) {
      %ends = arith.cmpi sle, %mid, %lo : index
      scf.if %ends {
      } else {
        %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
          tile.ring.acquire %r[%t] : !ring
          tile.copy_async %k[%j] to %r[%t] : !memory to !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
      }
    }
    gpu.return
  }
}

// -----

// Without the guard the iteration in front is one too many where the loop is empty.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    // expected-error @below {{'tile.ring' op is copied to in steps that are not those in which it is released}}
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %kt6 = tile.ring.wait %r[%c0] : !ring
      // expected-note @below {{released, without a counterpart}}
      tile.ring.release %r[%c0] : !ring
      %second = arith.addi %lo, %c1 : index
      %a = scf.for %j = %second to %mid step %c1 iter_args(%t = %c1) -> index {
        %kt8 = tile.ring.wait %r[%t] : !ring
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @producer(warps = 1, registers = 40) {
      %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
        tile.ring.acquire %r[%t] : !ring
        // expected-note @below {{copied, without a counterpart}}
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }
}

// -----

// What an iteration copies once, and a choice where there is none, is copied once.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %kt6 = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      scf.if %entered {
      } else {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %k[%lo] to %r[%c0] : !memory to !ring
      }
      scf.for %j = %lo to %mid step %c1 {
        %first = arith.cmpi eq, %j, %lo : index
        scf.if %first {
          tile.ring.acquire %r[%c0] : !ring
          tile.copy_async %k[%lo] to %r[%c0] : !memory to !ring
        }
      }
    }
    gpu.return
  }
}

// -----

// Who checks a ring checks each of its tiles.
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %lo: index, %mid: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %entered = arith.cmpi slt, %lo, %mid : index
    // expected-error @below {{'tile.ring' op is copied to in steps that are not those in which it is checked}}
    %r = tile.ring checked : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
        %finite = tile.ring.is_finite %r[%t] : !ring
        %kt8 = tile.ring.wait %r[%t] : !ring
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @producer(warps = 1, registers = 40) {
      %a = scf.for %j = %lo to %mid step %c1 iter_args(%t = %c0) -> index {
        tile.ring.acquire %r[%t] : !ring
        // expected-note @below {{copied, without a counterpart}}
        tile.copy_async %k[%j] to %r[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @nonfinite_check(warps = 3, registers = 40) {
      %a = scf.for %j = %lo to %hi step %c1 iter_args(%t = %c0) -> index {
        // expected-note @below {{checked, without a counterpart}}
        tile.ring.check_finite %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }
}

// -----

// Consumers fill a ring from their registers, and read it.

!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!x = tensor<64x64xf16, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %r[%i] : !ring
        tile.ring.put %x to %r[%i] : !x to !ring
        %t = tile.ring.wait %r[%i] : !ring
        tile.ring.release %r[%i] : !ring
      }
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!x = tensor<64x64xf16, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      // expected-error @below {{'tile.ring.acquire' op is for a role of whole warpgroups}}
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
    }
    gpu.return
  }
}

// -----

// Any number of roles: two that copy, each into a ring of its own.

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring : !ring
    %b = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 232) {
      scf.for %i = %c0 to %n step %c1 {
        %at = tile.ring.wait %a[%i] : !ring
        %bt = tile.ring.wait %b[%i] : !ring
        tile.ring.release %a[%i] : !ring
        tile.ring.release %b[%i] : !ring
      }
    } @keys(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %a[%i] : !ring
        tile.copy_async %k[%i] to %a[%i] : !memory to !ring
      }
    } @values(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %b[%i] : !ring
        tile.copy_async %k[%i] to %b[%i] : !memory to !ring
      }
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'tile.ring' op is filled by two roles}}
    %r = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 232) {
    } @even(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    } @odd(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c1] : !ring
      tile.copy_async %k[%c1] to %r[%c1] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x?x?x?x64xf16, strided<[?, ?, ?, ?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      // expected-error @below {{'tile.copy_async' op of `rows` that the memory goes on behind is of memory with at most 4 dimensions}}
      tile.copy_async %k[%c0, %c0, %c0, %c0] rows(%n) to %r[%c0] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x?x?x?x?x64xf16, strided<[?, ?, ?, ?, ?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      // expected-error @below {{'tile.copy_async' op is of memory with at most 5 dimensions}}
      tile.copy_async %k[%c0, %c0, %c0, %c0, %c0] to %r[%c0] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
      // expected-error @below {{'tile.ring.wait' op is not for a role that copies: its thread acquires stages and copies into them}}
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!x = tensor<64x64xf16, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %m: memref<?x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    tile.warp_specialize @math(warps = 4, registers = 104) {
    } @more(warps = 4, registers = 104) {
      // expected-error @below {{'tile.store' op has register tiles, which only the role that starts at warp 0 has}}
      tile.store %x, %m[%c0] : !x to memref<?x64xf16>
    }
    gpu.return
  }
}

// -----

!x = tensor<64x64xf16, #tile.fragment<4 from 4>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %m: memref<?x64xf16>) kernel {
    %c0 = arith.constant 0 : index
    tile.warp_specialize @math(warps = 4, registers = 104) {
      // expected-error @below {{'tile.store' op has register tiles, which only the role that starts at warp 4 has}}
      tile.store %x, %m[%c0] : !x to memref<?x64xf16>
    } @more(warps = 4, registers = 104) {
      tile.store %x, %m[%c0] : !x to memref<?x64xf16>
    }
    gpu.return
  }
}

// -----

!x = tensor<64x64xf32, #tile.fragment<4 from 4>>
gpu.module @m {
  gpu.func @kernel(%x: !x) kernel {
    tile.warp_specialize @math(warps = 4, registers = 104) {
    } @more(warps = 4, registers = 104) {
      // expected-error @below {{'tile.reduce_rows' op is where warps meet at a barrier of the role that starts at warp 0}}
      %y = tile.reduce_rows add %x : !x to tensor<64xf32, #tile.columns<4 from 4>>
    }
    gpu.return
  }
}

// -----

// Every role that gives stages back does so for all of them.

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @kernel(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // expected-error @below {{'tile.ring' op is copied to in steps that are not those in which it is released}}
    %r = tile.ring : !ring
    tile.warp_specialize @math(warps = 4, registers = 104) {
      scf.for %i = %c0 to %n step %c1 {
        %t = tile.ring.wait %r[%i] : !ring
        tile.ring.release %r[%i] : !ring
      }
    } @more(warps = 4, registers = 104) {
      %t = tile.ring.wait %r[%c0] : !ring
      // expected-note @below {{released, without a counterpart}}
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %r[%i] : !ring
        // expected-note @below {{copied, without a counterpart}}
        tile.copy_async %k[%i] to %r[%i] : !memory to !ring
      }
    }
    gpu.return
  }
}

// -----

// The rows of several warps are combined where these meet; those of one warp are
// its own.

!x = tensor<64x64xf32, #tile.fragment<4>>
!y = tensor<16x64xf32, #tile.fragment<1>>
!lanes = tensor<64x4xi1, #tile.lanes<4>>
gpu.module @m {
  gpu.func @kernel(%x: !x, %y: !y, %l: !lanes) kernel {
    // expected-note @below {{the vote}}
    %any = tile.any %l : !lanes
    scf.if %any {
      %d = tile.reduce_rows add %y : !y to tensor<64xf32, #tile.columns<1>>
      // expected-error @below {{'tile.reduce_rows' op is done by several warps together, and depends on a vote that each has of its own}}
      %c = tile.reduce_rows add %x : !x to tensor<64xf32, #tile.columns<4>>
    }
    gpu.return
  }
}

// -----

!x = tensor<128x64xf32, #tile.fragment<8>>
gpu.module @m {
  gpu.func @kernel(%x: !x) kernel {
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      // expected-note @below {{the wait is here}}
      tile.ping_pong.wait
      // expected-error @below {{'tile.reduce_rows' op needs all warpgroups, and only one runs between a wait and its arrive; move it behind the arrive}}
      %c = tile.reduce_rows add %x : !x to tensor<64xf32, #tile.columns<8>>
      tile.ping_pong.arrive
    }
    gpu.return
  }
}

// -----

!x = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%x: !x) kernel {
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      // expected-error @below {{'tile.reduce_rows' op has register tiles over 4 warps, in a role of 8}}
      %c = tile.reduce_rows add %x : !x to tensor<64xf32, #tile.columns<4>>
    }
    gpu.return
  }
}

// -----

// One thread waits for its rank while the others compute.
!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x64xf32>
!counts = memref<?xi32>
gpu.module @m {
  gpu.func @ordered(%x: !x, %s: !sums, %c: !counts, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
    } @adder(warps = 1, registers = 40) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.add_in_order %t, %s[%c0] rank(%i) of %c[%c0] : !tile to !sums, !counts
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x64xf32>
!counts = memref<?xi32>
gpu.module @m {
  gpu.func @ordered(%x: !x, %s: !sums, %c: !counts, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
      %t = tile.ring.wait %r[%c0] : !ring
      // expected-error @below {{'tile.add_in_order' op is for a role of one warp or two: those that compute would wait for other blocks}}
      tile.add_in_order %t, %s[%c0] rank(%i) of %c[%c0] : !tile to !sums, !counts
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x64xf32>
!counts = memref<?xi32>
gpu.module @m {
  gpu.func @ordered(%t: !tile, %s: !sums, %c: !counts, %i: index) kernel {
    %c0 = arith.constant 0 : index
    tile.warp_specialize @consumer(warps = 4, registers = 128) {
    } @adder(warps = 1, registers = 40) {
      // expected-error @below {{'tile.add_in_order' op adds a tile that is not waited for in its role}}
      tile.add_in_order %t, %s[%c0] rank(%i) of %c[%c0] : !tile to !sums, !counts
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x64xf32>
!counts = memref<?xi32>
gpu.module @m {
  gpu.func @ordered(%x: !x, %s: !sums, %c: !counts, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
    } @adder(warps = 1, registers = 40) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.add_in_order %t, %s[%c0] rank(%i) of %c[%c0] : !tile to !sums, !counts
      // expected-error @below {{'tile.clear' op is not for a role that adds tiles in order: its thread waits for stages and gives them back}}
      tile.clear %t warps(1) : !tile
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>

// A role without a claim does not know where the loop ends.
gpu.module @m {
  gpu.func @kernel(%k: !memory, %c: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      scf.for %i = %c0 to %n step %c1 {
        %kt = tile.ring.wait %r[%i] : !ring
        tile.ring.release %r[%i] : !ring
      }
    } @producer(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        // expected-error @below {{'tile.claim' op must be in each role exactly once, since it ends the loop that all roles run}}
        %t = tile.claim %i of %c[%c0] : memref<?xi32>
        tile.ring.acquire %r[%i] : !ring
        tile.copy_async %k[%t] to %r[%i] : !memory to !ring
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%c: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      scf.for %i = %c0 to %n step %c1 {
        // expected-error @below {{'tile.claim' op needs a role that copies: the thread of the first one claims tiles for all}}
        %t = tile.claim %i of %c[%c0] : memref<?xi32>
      }
    } @producer(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        %t = tile.claim %i of %c[%c0] : memref<?xi32>
      }
    }
    gpu.return
  }
}

// -----

// Two roles read a tile, each of which gives it back.
!tile = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!x = tensor<128x64xf16, #tile.fragment<8>>
!sums = memref<?x192xf32>
gpu.module @m {
  gpu.func @diagonals(%x: !x, %s: !sums) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @diagonals(warps = 2, registers = 56) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.store_diagonals %t, %s[%c0] : !tile to !sums
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!x = tensor<128x64xf16, #tile.fragment<8>>
!sums = memref<?x192xf32>
gpu.module @m {
  gpu.func @diagonals(%x: !x, %s: !sums) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
      %t = tile.ring.wait %r[%c0] : !ring
      // expected-error @below {{'tile.store_diagonals' op is for a role of one warp or two, which wait for the tile}}
      tile.store_diagonals %t, %s[%c0] : !tile to !sums
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!x = tensor<128x64xf16, #tile.fragment<8>>
!sums = memref<?x192xf32>
gpu.module @m {
  gpu.func @diagonals(%x: !x, %s: !sums) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
    } @diagonals(warps = 1, registers = 56) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.store_diagonals %t, %s[%c0] : !tile to !sums
      // expected-error @below {{'tile.clear' op is not for a role that adds up diagonals: its warp waits for tiles and gives them back}}
      tile.clear %t warps(1) : !tile
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

// Warpgroups that have none of the rows hand over, too.
gpu.module @m {
  gpu.func @kernel(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      %has = tile.has_rows %n
      scf.if %has {
        scf.for %i = %c0 to %n step %c1 {
          tile.ping_pong.wait
          tile.ping_pong.arrive
        }
      } else {
        scf.for %i = %c0 to %n step %c1 {
          tile.ping_pong.wait
          tile.ping_pong.arrive
        }
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tile.warp_specialize @consumer(warps = 8, registers = 128) {
      scf.for %i = %c0 to %n step %c1 {
        // expected-note @below {{the choice}}
        %has = tile.has_rows %n
        scf.if %has {
          // expected-error @below {{'tile.ping_pong.wait' op is in one branch of a choice by tile.has_rows, and all warpgroups wait equally often; the other branch needs it, too}}
          tile.ping_pong.wait
          tile.ping_pong.arrive
        }
      }
    }
    gpu.return
  }
}
