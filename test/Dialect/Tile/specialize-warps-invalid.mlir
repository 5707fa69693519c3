// RUN: flash-opt %s --split-input-file --verify-diagnostics --tile-specialize-warps

!tile = !tile.smem<32x64xf16, swizzle = 128>
!scores = tensor<32x32xf32, #tile.fragment<2>>
gpu.module @m {
  gpu.func @kernel(%q: !tile) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    // expected-error @below {{'tile.mma_async' op needs 64 rows for each warpgroup of four warps}}
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    gpu.return
  }
}

// -----

// Where to copy from is known to the consumers only.
!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%m: !memory, %q: !tile) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %m[%c0] to %r[%c0] : !memory to !ring
    %k0 = tile.ring.wait %r[%c0] : !ring
    %f = tile.is_finite %k0 : !tile
    tile.ring.release %r[%c0] : !ring
    // expected-note @below {{computed here}}
    %row = arith.index_castui %f : i1 to index
    tile.ring.acquire %r[%c0] : !ring
    // expected-error @below {{'tile.copy_async' op cannot be left to producer warps: it depends on what other warps compute}}
    tile.copy_async %m[%row] to %r[%c0] : !memory to !ring
    %kt = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%m: !memory, %q: !tile) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    // expected-error @below {{'scf.execute_region' op has copies inside, which only loops and branches can}}
    scf.execute_region {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %m[%c0] to %r[%c0] : !memory to !ring
      %kt = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
      scf.yield
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    // expected-error @below {{'tile.is_finite' op checks a tile of no ring, which only rings show to other warps}}
    %f = tile.is_finite %q : !tile
    gpu.return
  }
}

// -----

// Consumers read a tile that another role adds.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!wide = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%q: !tile, %s: memref<?x64xf32>, %c: memref<?xi32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    tile.ring.acquire %r[%c0] : !ring
    tile.ring.put %d to %r[%c0] : !scores to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.add_in_order' op adds a tile that is in no ring, or that others read; the role that adds it has it alone}}
    tile.add_in_order %t, %s[%c0] rank(%c0) of %c[%c0] : !wide to memref<?x64xf32>, memref<?xi32>
    %x = tile.load %t : !wide to !scores
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kernel(%k: !tile) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    // expected-error @below {{'tile.make_finite' op changes a tile of no ring, or one that is checked, which other warps cannot}}
    tile.make_finite %k : !tile
    %p = tile.mma_async %k, %k transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    gpu.return
  }
}

// -----

!tile = !tile.smem<128x64xf16, swizzle = 128>
!scores = tensor<128x128xf32, #tile.fragment<8>>
gpu.module @m {
  gpu.func @kernel(%q: !tile, %s: memref<?x192xf32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %p = tile.mma_async %q, %q transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    // expected-error @below {{'tile.store_diagonals' op is of a tile in no ring, which only rings show to other warps}}
    tile.store_diagonals %q, %s[%c0] : !tile to memref<?x192xf32>
    gpu.return
  }
}
