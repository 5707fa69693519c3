// Tiles of the warps from another one on: rows are counted from there, also of values of rows in shared memory, of which the first of four lanes puts each.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)),canonicalize,cse)" | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK:       %[[WARP:.*]] = arith.divui %{{.*}}, %c32
  // CHECK:       %[[OWN:.*]] = arith.subi %[[WARP]], %c4
  // CHECK:       arith.muli %[[OWN]], %c16
  // CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
  gpu.func @rows(%m: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = tile.smem_view %c0 : !tile.smem<8x8xf32, swizzle = 32>
    %r = tile.load %x : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.rows<4 from 4>>
    tile.store %r, %m[%c0] : tensor<64xf32, #tile.rows<4 from 4>> to memref<64xf32>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @put(
  // CHECK:       %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
  // CHECK:       scf.if %[[FIRST]]
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
  // CHECK-NOT:   llvm.store
  gpu.func @put(%m: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = tile.smem_view %c0 : !tile.smem<8x8xf32, swizzle = 32>
    %r = arith.constant dense<1.0> : tensor<64xf32, #tile.rows<4>>
    tile.put %r, %x {column = 0} : tensor<64xf32, #tile.rows<4>> to !tile.smem<8x8xf32, swizzle = 32>
    gpu.return
  }
  // CHECK-LABEL: gpu.func @store(
  // CHECK:       %[[WARP:.*]] = arith.divui %{{.*}}, %c32
  // CHECK:       arith.subi %[[WARP]], %c4
  gpu.func @store(%m: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #tile.fragment<4 from 4>>
    tile.store %x, %m[%c0] : tensor<64x64xf32, #tile.fragment<4 from 4>> to memref<64x64xf32>
    gpu.return
  }
}
