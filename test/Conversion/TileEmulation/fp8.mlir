// Products of elements of 8 bits, emulated: column 16 c + 8 i + 2 t + e of weights is multiplied by column 16 c + 4 t + 2 i + e of values, where
// tile.store_interleaved has put it.
// RUN: flash-opt %s --split-input-file --tile-emulate --canonicalize | FileCheck %s

!smem = !tile.smem<8x32xf8E4M3FN, swizzle = 32>
// CHECK-LABEL: func.func @product(
// CHECK:         %[[FACTOR:.*]] = memref.alloc() : memref<32x8xf32>
// CHECK:         scf.for %[[K:.*]] = %{{.*}} to %c32
// CHECK:           scf.for %[[N:.*]] = %{{.*}} to %c8
// CHECK:             %[[REST:.*]] = arith.remui %[[K]], %c16
// CHECK:             %[[GROUP:.*]] = arith.subi %[[K]], %[[REST]]
// CHECK:             %[[OF8:.*]] = arith.remui %[[K]], %c8
// CHECK:             %[[T:.*]] = arith.divui %[[OF8]], %c2
// CHECK:             arith.muli %[[T]], %c4
// CHECK:             %[[OF16:.*]] = arith.remui %[[K]], %c16
// CHECK:             %[[I:.*]] = arith.divui %[[OF16]], %c8
// CHECK:             arith.muli %[[I]], %c2
// CHECK:             arith.remui %[[K]], %c2
// CHECK:             %[[X:.*]] = memref.load %{{.*}}[%[[N]], %{{.*}}] : memref<8x32xf8E4M3FN
// CHECK:             %[[WIDE:.*]] = arith.extf %[[X]] : f8E4M3FN to f32
// CHECK:             memref.store %[[WIDE]], %[[FACTOR]][%[[K]], %[[N]]]
module attributes {gpu.container_module} {
  func.func @product(%v: memref<8x32xf8E4M3FN>, %o: memref<64x8xf32>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%v : memref<8x32xf8E4M3FN>, %o : memref<64x8xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%v: memref<8x32xf8E4M3FN>, %o: memref<64x8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %one = arith.constant dense<1.0> : tensor<64x32xf32, #tile.fragment<4>>
      %w = arith.truncf %one : tensor<64x32xf32, #tile.fragment<4>> to tensor<64x32xf8E4M3FN, #tile.fragment<4>>
      %t = tile.fetch %v[%c0] : memref<8x32xf8E4M3FN> to !smem
      %p = tile.mma_async %w, %t transpose_b warpgroup : tensor<64x32xf8E4M3FN, #tile.fragment<4>>, !smem -> !tile.pending<tensor<64x8xf32, #tile.fragment<4>>>
      %s = tile.mma_wait %p : !tile.pending<tensor<64x8xf32, #tile.fragment<4>>>
      tile.store %s, %o[%c0] : tensor<64x8xf32, #tile.fragment<4>> to memref<64x8xf32>
      gpu.return
    }
  }
}

// -----

// CHECK-LABEL: func.func @interleave(
// CHECK:         scf.for %[[KEY:.*]] = %{{.*}} to %c32
// CHECK:           scf.for %[[COLUMN:.*]] = %{{.*}} to %c16
// CHECK:             arith.remui %[[KEY]], %c16
// CHECK:             %[[X:.*]] = memref.load %{{.*}}[%[[KEY]], %[[COLUMN]]]
// CHECK:             memref.store %[[X]], %{{.*}} : memref<?x32xf8E4M3FN>
!smem = !tile.smem<32x16xf8E4M3FN, swizzle = 32>
module attributes {gpu.container_module} {
  func.func @interleave(%v: memref<32x16xf8E4M3FN>, %o: memref<?x32xf8E4M3FN>) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1) args(%v : memref<32x16xf8E4M3FN>, %o : memref<?x32xf8E4M3FN>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%v: memref<32x16xf8E4M3FN>, %o: memref<?x32xf8E4M3FN>) kernel {
      %c0 = arith.constant 0 : index
      %t = tile.fetch %v[%c0] : memref<32x16xf8E4M3FN> to !smem
      tile.store_interleaved %t, %o[%c0] : !smem to memref<?x32xf8E4M3FN>
      gpu.return
    }
  }
}
