// Warpgroups follow each other along the rows of a tile, each with 64 of them.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))' | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME:    %[[N:.*]]: index
  // CHECK-DAG:     %[[WARPGROUP:.*]] = nvx.warpgroup
  // CHECK-DAG:     %[[FIRST:.*]] = arith.muli %[[WARPGROUP]], %c64_i32
  // CHECK-DAG:     %[[ROWS:.*]] = arith.index_cast %[[N]] : index to i32
  // CHECK:         %[[HAS:.*]] = arith.cmpi slt, %[[FIRST]], %[[ROWS]]
  // CHECK:         scf.if %[[HAS]]
  gpu.func @rows(%n: index, %m: memref<1xi32, strided<[1]>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i32
    %has = tile.has_rows %n
    scf.if %has {
      memref.store %c1, %m[%c0] : memref<1xi32, strided<[1]>>
    }
    gpu.return
  }
}
