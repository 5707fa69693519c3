// What stands behind the loops whose last product is deferred.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-specialize-warps,gpu.module(gpu.func(tile-defer-products,tile-pipeline,tile-verify-async)))' | FileCheck %s

// Tiles that the product does not read are given back first.

// CHECK-LABEL: gpu.func @add(
// CHECK:         %[[KEYS:.*]] = tile.ring : <1, <64x64xf16
// CHECK:         %[[OTHER:.*]] = tile.ring : <1, <64x64xf16
// CHECK:       tile.warp_specialize @consumer
// CHECK:         scf.for
// CHECK:           scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.ring.release %[[OTHER]][%{{.*}}] : <1, <64x64xf16
// CHECK:         tile.ring.wait %[[HALVES:.*]][%
// CHECK-NEXT:    %[[OP:.*]] = tile.mma_async
// CHECK-NEXT:    %[[D:.*]] = tile.mma_wait %[[OP]]
// CHECK-NEXT:    tile.ring.release %[[HALVES]]
// CHECK-NEXT:    tile.ring.acquire %[[SUMS:.*]][%
// CHECK-NEXT:    tile.ring.put %[[D]] to %[[SUMS]]
// CHECK-NEXT:    tile.ring.release %[[KEYS]][%
// CHECK:         tile.store

!mx = memref<320x64xf16, strided<[?, 1], offset: ?>>
!sums = memref<5x64x64xf32, strided<[?, ?, 1], offset: ?>>
!counts = memref<5xi32>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!wide = !tile.smem<64x64xf32, swizzle = 128>
!half = tensor<64x64xf16, #tile.fragment<4>>
!acc = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @kernels {
  gpu.func @add(%x: !mx, %sums: !sums, %counts: !counts, %lo: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|defer_products>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c64 = arith.constant 64 : index
    %zeros = arith.constant dense<0.0> : !half
    %xt = tile.fetch %x[%c0] : !mx to !smem
    %kt = tile.fetch %x[%c0] : !mx to !smem
    %l = scf.for %i = %lo to %c5 step %c1 iter_args(%last = %zeros) -> !half {
      %at = arith.muli %i, %c64 : index
      %yt = tile.fetch %x[%at] : !mx to !smem
      %sp = tile.mma_async %xt, %yt transpose_b : !smem, !smem -> !tile.pending<!acc>
      %s = tile.mma_wait %sp : !tile.pending<!acc>
      %h = arith.truncf %s : !acc to !half
      %ht = tile.share %h : !half to !smem
      %p = tile.mma_async %kt, %ht transpose_a : !smem, !smem -> !tile.pending<!acc>
      %d = tile.mma_wait %p : !tile.pending<!acc>
      %t = tile.share %d : !acc to !wide
      tile.add_in_order %t, %sums[%i, %c0] rank(%c0) of %counts[%i] : !wide to !sums, !counts
      scf.yield %h : !half
    }
    tile.store %l, %x[%c0] : !half to !mx
    gpu.return
  }
}
