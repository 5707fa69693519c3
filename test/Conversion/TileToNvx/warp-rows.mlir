// Whole rows of a warp are read and written in chunks of 16 bytes where they are aligned, one
// by one elsewhere; a reduction over a warp takes five shuffles.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))' | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @copy(
  // CHECK:         scf.if %{{.*}} -> (vector<8xf32>)
  // CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf16>
  // CHECK:         } else {
  // CHECK-COUNT-8:   llvm.load %{{.*}} : !llvm.ptr<1> -> f16
  // CHECK:         scf.if
  // CHECK:           llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  // CHECK:         } else {
  // CHECK-COUNT-8:   llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
  gpu.func @copy(%s: memref<?x?xf16, strided<[?, 1]>>, %i: index, %n: index) kernel {
    %x = tile.read %s[%i, %i] rows(%n) columns(%n) : memref<?x?xf16, strided<[?, 1]>> to tensor<8x256xf32, #tile.warp_rows<8, 8>>
    %y = arith.truncf %x : tensor<8x256xf32, #tile.warp_rows<8, 8>> to tensor<8x256xf16, #tile.warp_rows<8, 8>>
    tile.store %y, %s[%i, %i] rows(%n) columns(%n) : tensor<8x256xf16, #tile.warp_rows<8, 8>> to memref<?x?xf16, strided<[?, 1]>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @sum(
  // CHECK-COUNT-5: nvvm.shfl.sync bfly
  // CHECK-NOT:     nvvm.shfl.sync
  // CHECK:         llvm.store %{{.*}} : f32, !llvm.ptr<1>
  gpu.func @sum(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index, %n: index) kernel {
    %zero = arith.constant dense<0.0> : tensor<8x32xf32, #tile.warp_rows<8, 1>>
    %x = tile.read %s[%i, %i] columns(%n) : memref<?x?xf32, strided<[?, 1]>> to tensor<8x256xf32, #tile.warp_rows<8, 4>>
    %f = tile.fold add %x into %zero : tensor<8x256xf32, #tile.warp_rows<8, 4>> into tensor<8x32xf32, #tile.warp_rows<8, 1>>
    %r = tile.reduce add %f : tensor<8x32xf32, #tile.warp_rows<8, 1>> to tensor<8xf32, #tile.warp_rows<8, 1>>
    tile.store %r, %l[%i] rows(%n) : tensor<8xf32, #tile.warp_rows<8, 1>> to memref<?xf32>
    gpu.return
  }

  // What is known to be aligned needs no other way, and a value for each row is
  // read by all lanes of its warp.
  // CHECK-LABEL: gpu.func @aligned(
  // CHECK-NOT:     scf.if
  // CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT:     scf.if
  // CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> f32
  // CHECK:         scf.if
  gpu.func @aligned(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index, %n: index) kernel {
    %x = tile.read %s[%i, %i] rows(%n) columns(%n) aligned : memref<?x?xf32, strided<[?, 1]>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %r = tile.read %l[%i] rows(%n) : memref<?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
    %b = tile.broadcast %r : tensor<8xf32, #tile.warp_rows<8, 1>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %y = arith.mulf %x, %b : tensor<8x128xf32, #tile.warp_rows<8, 4>>
    tile.store %y, %s[%i, %i] rows(%n) columns(%n) : tensor<8x128xf32, #tile.warp_rows<8, 4>> to memref<?x?xf32, strided<[?, 1]>>
    gpu.return
  }
}
