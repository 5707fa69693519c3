// A warp adds up diagonals: of 64 columns four rows of matrices of 8 x 8 in an iteration,
// of which ldmatrix gives four at a time, and then, by exchanges between lanes, the
// diagonals of the four matrices that leave the tile. The others follow the loop.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)),canonicalize,cse)" | FileCheck %s

// CHECK-LABEL: gpu.func @narrow(
// CHECK:         scf.for {{.*}} = %c0 to %c16 step %c4 iter_args
// CHECK-COUNT-8:   nvvm.ldmatrix {{.*}} num = 4 : i32
// CHECK-NOT:       llvm.load
// CHECK-COUNT-7:   nvvm.shfl.sync idx
// CHECK-NOT:       nvvm.shfl
// CHECK:           llvm.store %{{.*}} : f32, !llvm.ptr
// CHECK:           scf.yield
// CHECK-COUNT-7: nvvm.shfl.sync idx
// CHECK:         llvm.store
// CHECK-COUNT-7: nvvm.shfl.sync idx
// CHECK-NOT:     nvvm.shfl
// CHECK:         llvm.store
// CHECK:         gpu.return

// Of 128 columns the last 64 come first, and what both have is added.
// CHECK-LABEL: gpu.func @wide(
// CHECK:         scf.for
// CHECK-NOT:       llvm.load
// CHECK:           scf.yield
// CHECK:         scf.for
// CHECK:           %[[BEFORE:.*]] = llvm.load %[[AT:.*]] : !llvm.ptr{{.*}} -> f32
// CHECK:           %[[SUM:.*]] = arith.addf %[[BEFORE]], %{{.*}} : f32
// CHECK:           llvm.store %[[SUM]], %[[AT]]
// CHECK:           scf.yield
gpu.module @m {
  gpu.func @narrow(%s: memref<4x192xf32>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<128x64xbf16, swizzle = 128>
    tile.store_diagonals %t, %s[%i] : !tile.smem<128x64xbf16, swizzle = 128> to memref<4x192xf32>
    gpu.return
  }
  gpu.func @wide(%s: memref<4x256xf32>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<128x128xf16, swizzle = 128>
    tile.store_diagonals %t, %s[%i] : !tile.smem<128x128xf16, swizzle = 128> to memref<4x256xf32>
    gpu.return
  }
}
