// What is added behind a product of elements of 8 bits is rescaled beside that: the loop carries the accumulator and the factors of rows.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-overlap,tile-pipeline,tile-verify-async)))" | FileCheck %s

!tile = !tile.smem<64x64xf8E4M3FN, swizzle = 64>
!ring = !tile.ring<2, !tile.smem<64x64xf8E4M3FN, swizzle = 64>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!rows = tensor<64xf32, #tile.rows<4>>
!weights = tensor<64x64xf8E4M3FN, #tile.fragment<4>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @rescaled(
  // CHECK:         scf.for {{.*}} -> (index, tensor<64xf32, #tile.rows<4>>, tensor<64x64xf32, #tile.fragment<4>>, index, tensor<64x64xf8E4M3FN, #tile.fragment<4>>)
  // CHECK:           tile.mma_async %{{.*}} transpose_b warpgroup : !tile.smem
  // CHECK:           %[[WIDE:.*]] = tile.broadcast %[[FACTOR:.*]] : tensor<64xf32, #tile.rows<4>> to tensor<64x64xf32
  // CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[ACC:.*]], %[[WIDE]] fastmath<contract>
  // CHECK:           tile.mma_async %{{.*}} add %[[SCALED]] transpose_b
  // CHECK:           tile.reduce max
  // CHECK:           scf.yield
  gpu.func @rescaled(%q: !tile, %init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %least = arith.constant dense<-1.0> : tensor<64x4xf32, #tile.lanes<4>>
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %lanes = tile.fold max %s into %least : !scores into tensor<64x4xf32, #tile.lanes<4>>
      %max = tile.reduce max %lanes : tensor<64x4xf32, #tile.lanes<4>> to !rows
      %factor = math.exp2 %max : !rows
      %e = math.exp2 %s : !scores
      %wide = tile.broadcast %factor : !rows to !scores
      %scaled = arith.mulf %acc, %wide fastmath<contract> : !scores
      %p = arith.truncf %e : !scores to !weights
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %scaled transpose_b warpgroup : !weights, !tile, !scores -> !tile.pending<!scores>
      %r = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %r, %next : !scores, index
    }
    gpu.return
  }
}
