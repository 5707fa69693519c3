// The rows of a tile: those of a thread, of eight lanes, and of the other warps.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s

gpu.module @m {
  // Four rows of a thread are three operations for each of its two columns; then
  // each column goes to the lanes 16, 8 and 4 further.

  // CHECK-LABEL: gpu.func @one_warp(
  // CHECK-COUNT-6: arith.addf
  // CHECK-NOT:   arith.addf
  // CHECK:       %[[FAR:.*]] = arith.constant 16 : i32
  // CHECK:       %[[A:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[X:.*]], %[[FAR]], %
  // CHECK:       %[[B:.*]] = arith.addf %[[X]], %[[A]]
  // CHECK:       arith.constant 8 : i32
  // CHECK:       nvvm.shfl.sync bfly %{{.*}}, %[[B]]
  // CHECK:       arith.constant 4 : i32
  // CHECK:       nvvm.shfl.sync bfly
  // CHECK-NOT:   nvvm.barrier
  // CHECK:       gpu.return
  gpu.func @one_warp(%x: tensor<32x8xf32, #tile.fragment<1>>, %m: memref<?xf32>, %n: index) kernel {
    %c = tile.reduce_rows add %x : tensor<32x8xf32, #tile.fragment<1>> to tensor<8xf32, #tile.columns<1>>
    tile.store %c, %m[%n] : tensor<8xf32, #tile.columns<1>> to memref<?xf32>
    gpu.return
  }

  // Four lanes of each warp leave what they have in shared memory, where all
  // threads read that of all warps. The warps meet before, since others may still
  // read what was there, and behind it.

  // CHECK-LABEL: gpu.func @two_warps(
  // CHECK-COUNT-12: nvvm.shfl.sync bfly
  // CHECK:       %[[BASE:.*]] = nvx.shared_memory
  // CHECK:       llvm.getelementptr %[[BASE]][512]
  // CHECK:       %[[FIRST:.*]] = arith.cmpi ult, %{{.*}}, %c4
  // CHECK:       nvvm.barrier id = %[[ID:.*]] number_of_threads = %[[THREADS:.*]]
  // CHECK:       scf.if %[[FIRST]] {
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>
  // CHECK:       }
  // CHECK:       nvvm.barrier
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : {{.*}} -> vector<2xf32>
  // CHECK-NOT:   llvm.load
  // CHECK:       gpu.return
  gpu.func @two_warps(%x: tensor<32x16xf32, #tile.fragment<2>>, %m: memref<?xf32>, %n: index) kernel {
    %c = tile.reduce_rows max %x {offset = 512} : tensor<32x16xf32, #tile.fragment<2>> to tensor<16xf32, #tile.columns<2>>
    tile.store %c, %m[%n] : tensor<16xf32, #tile.columns<2>> to memref<?xf32>
    gpu.return
  }

  // A value is stored by the first of the lanes that hold it, of the first warp.

  // CHECK-LABEL: gpu.func @store(
  // CHECK-SAME:  %[[N:[^,: ]*]]: index
  // CHECK:       %[[AT:.*]] = arith.addi
  // CHECK:       %[[BELOW:.*]] = arith.cmpi slt, %[[AT]], %[[N]]
  // CHECK:       %[[THREAD:.*]] = gpu.thread_id x
  // CHECK:       %[[OWN:.*]] = arith.cmpi slt, %[[THREAD]], %c4
  // CHECK:       %[[BOTH:.*]] = arith.andi %[[BELOW]], %[[OWN]]
  // CHECK:       scf.if %[[BOTH]] {
  // CHECK:         llvm.store {{.*}} : f32
  gpu.func @store(%c: tensor<8xf32, #tile.columns<2>>, %m: memref<?xf32>, %n: index) kernel {
    tile.store %c, %m[%n] rows(%n) : tensor<8xf32, #tile.columns<2>> to memref<?xf32>
    gpu.return
  }
}
