// Values for columns from rows of eight: a thread has a pair of each row. Rows
// of 32 bytes swap their halves from the fourth on.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)),canonicalize,cse)" | FileCheck %s

gpu.module @m {
  // CHECK-LABEL: gpu.func @load(
  // CHECK:       %[[IN_CHUNK:.*]] = arith.remui %[[COLUMN:.*]], %c4
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 8 : i64} : {{.*}} -> vector<2xf32>
  // CHECK-NOT:   llvm.load
  gpu.func @load(%m: memref<64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = tile.smem_view %c0 : !tile.smem<8x8xf32, swizzle = 32>
    %c = tile.load %x : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<1>>
    tile.store %c, %m[%c0] : tensor<64xf32, #tile.columns<1>> to memref<64xf32>
    gpu.return
  }
}
