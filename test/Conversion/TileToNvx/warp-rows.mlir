// Whole rows of a warp are read and written in chunks of 16 bytes where they are aligned, one
// by one elsewhere; a reduction over a warp takes five shuffles.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))' | FileCheck %s

gpu.module @kernels {
  // Elements stay as they are in memory. Whole chunks are read where the first
  // element exists, instead of the chunks that do not; no choice of padding
  // waits for a read before the next ones.
  // CHECK-LABEL: gpu.func @copy(
  // CHECK:         scf.if %{{.*}} -> (vector<4xi32>)
  // CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-NOT:       arith.select {{.*}} : i32
  // CHECK:         } else {
  // CHECK-COUNT-8:   llvm.load %{{.*}} : !llvm.ptr<1> -> f16
  // CHECK-COUNT-4: arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
  // CHECK:         scf.if
  // CHECK:           llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  // CHECK:         } else {
  // CHECK-COUNT-8:   llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
  gpu.func @copy(%s: memref<?x?xf16, strided<[?, 1]>>, %i: index, %n: index, %p: f16) kernel {
    %x = tile.read %s[%i, %i] rows(%n) columns(%n) padding(%p : f16) : memref<?x?xf16, strided<[?, 1]>> to tensor<8x256xf16, #tile.warp_rows<8, 8>>
    tile.store %x, %s[%i, %i] rows(%n) columns(%n) : tensor<8x256xf16, #tile.warp_rows<8, 8>> to memref<?x?xf16, strided<[?, 1]>>
    gpu.return
  }

  // One question for all rows of a thread.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK:         scf.if %{{.*}} -> (vector<8xf32>)
  // CHECK-COUNT-2:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT:       arith.select
  // CHECK:         } else {
  // CHECK-NOT:       scf.if
  // CHECK-COUNT-8:   llvm.load %{{.*}} : !llvm.ptr<1> -> f32
  // CHECK:         }
  // CHECK:         scf.if
  // CHECK-COUNT-2:   llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
  // CHECK:         } else {
  // CHECK-COUNT-8:   llvm.store %{{.*}} {alignment = 4 : i64} : f32
  gpu.func @rows(%s: memref<?x?xf32, strided<[?, 1]>>, %i: index) kernel {
    %x = tile.read %s[%i, %i] : memref<?x?xf32, strided<[?, 1]>> to tensor<4x128xf32, #tile.warp_rows<2, 4>>
    tile.store %x, %s[%i, %i] : tensor<4x128xf32, #tile.warp_rows<2, 4>> to memref<?x?xf32, strided<[?, 1]>>
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

  // What is known to be aligned and to have an element needs no other way, and a
  // value for each row is read by all lanes of its warp.
  // CHECK-LABEL: gpu.func @aligned(
  // CHECK-NOT:     scf.if
  // CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK-NOT:     scf.if
  // CHECK:         llvm.load %{{.*}} : !llvm.ptr<1> -> f32
  // CHECK:         arith.select
  // CHECK:         scf.if
  gpu.func @aligned(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index, %n: index) kernel {
    %x = tile.read %s[%i, %i] rows(%n) columns(%n) aligned nonempty : memref<?x?xf32, strided<[?, 1]>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %r = tile.read %l[%i] rows(%n) nonempty : memref<?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
    %b = tile.broadcast %r : tensor<8xf32, #tile.warp_rows<8, 1>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %y = arith.mulf %x, %b : tensor<8x128xf32, #tile.warp_rows<8, 4>>
    tile.store %y, %s[%i, %i] rows(%n) columns(%n) : tensor<8x128xf32, #tile.warp_rows<8, 4>> to memref<?x?xf32, strided<[?, 1]>>
    gpu.return
  }

  // Reads that begin in their order are volatile.
  // CHECK-LABEL: gpu.func @in_order(
  // CHECK:         llvm.load volatile %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK:         llvm.load volatile %{{.*}} : !llvm.ptr<1> -> f32
  gpu.func @in_order(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index) kernel {
    %x = tile.read %s[%i, %i] aligned in_order : memref<?x?xf32, strided<[?, 1]>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %r = tile.read %l[%i] in_order : memref<?xf32> to tensor<8xf32, #tile.warp_rows<8, 1>>
    %b = tile.broadcast %r : tensor<8xf32, #tile.warp_rows<8, 1>> to tensor<8x128xf32, #tile.warp_rows<8, 4>>
    %y = arith.mulf %x, %b : tensor<8x128xf32, #tile.warp_rows<8, 4>>
    tile.store %y, %s[%i, %i] : tensor<8x128xf32, #tile.warp_rows<8, 4>> to memref<?x?xf32, strided<[?, 1]>>
    gpu.return
  }

  // Of 70 columns the last lanes have none in their third register: it is neutral
  // in a reduction, at the last column in a map, and is not stored.
  // CHECK-LABEL: gpu.func @part(
  // CHECK:         %[[LAST:.*]] = arith.constant 69 : index
  // CHECK:         arith.minsi %{{.*}}, %[[LAST]]
  // CHECK-NOT:     arith.minsi
  // CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : index
  // CHECK:         arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK-NOT:     arith.select
  // CHECK:         arith.maxnumf
  gpu.func @part(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index) kernel {
    %none = arith.constant dense<0xFF800000> : tensor<8x32xf32, #tile.warp_rows<8, 1>>
    %x = tile.map : () -> tensor<8x70xf32, #tile.warp_rows<8, 1>> {
    ^bb0(%row: index, %column: index):
      %e = memref.load %s[%row, %column] : memref<?x?xf32, strided<[?, 1]>>
      tile.yield %e : f32
    }
    %f = tile.fold max %x into %none : tensor<8x70xf32, #tile.warp_rows<8, 1>> into tensor<8x32xf32, #tile.warp_rows<8, 1>>
    %r = tile.reduce max %f : tensor<8x32xf32, #tile.warp_rows<8, 1>> to tensor<8xf32, #tile.warp_rows<8, 1>>
    tile.store %r, %l[%i] : tensor<8xf32, #tile.warp_rows<8, 1>> to memref<?xf32>
    gpu.return
  }

  // Warps that share a row leave what they have in shared memory, between two
  // barriers, and each combines it all.
  // CHECK-LABEL: gpu.func @shared(
  // CHECK-COUNT-5: nvvm.shfl.sync bfly
  // CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
  // CHECK:         scf.if
  // CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr<3>
  // CHECK:         nvvm.barrier
  // CHECK:         llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
  // CHECK:         arith.addf
  gpu.func @shared(%s: memref<?x?xf32, strided<[?, 1]>>, %l: memref<?xf32>, %i: index) kernel {
    %zero = arith.constant dense<0.0> : tensor<2x64xf32, #tile.warp_rows<4, 1, 64>>
    %x = tile.read %s[%i, %i] : memref<?x?xf32, strided<[?, 1]>> to tensor<2x256xf32, #tile.warp_rows<4, 4, 64>>
    %f = tile.fold add %x into %zero : tensor<2x256xf32, #tile.warp_rows<4, 4, 64>> into tensor<2x64xf32, #tile.warp_rows<4, 1, 64>>
    %r = tile.reduce add %f {offset = 0} : tensor<2x64xf32, #tile.warp_rows<4, 1, 64>> to tensor<2xf32, #tile.warp_rows<4, 1, 64>>
    tile.store %r, %l[%i] : tensor<2xf32, #tile.warp_rows<4, 1, 64>> to memref<?xf32>
    gpu.return
  }
}
