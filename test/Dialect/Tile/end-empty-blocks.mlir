// Blocks whose stores have no rows end where that is known.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-end-empty-blocks)))' | FileCheck %s
// Once done, there is nothing left to do.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-end-empty-blocks)))' -o %t.mlir
// RUN: flash-opt %t.mlir --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-end-empty-blocks)))' | diff %t.mlir -

!x = tensor<64xf32, #tile.rows<4>>
!m = memref<?xf32>
gpu.module @kernels {
  // Whichever of several results it stores, packed or not.
  // CHECK-LABEL: gpu.func @two(
  // CHECK:         %[[EMPTY:.*]] = arith.cmpi sge
  // CHECK-NEXT:    tile.end_block_if %[[EMPTY]]
  // CHECK-NEXT:    arith.select
  gpu.func @two(%x: !m, %y: !m, %n: memref<?xi32>, %first: i32, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %length = memref.load %n[%c0] : memref<?xi32>
    %empty = arith.cmpi sge, %first, %length : i32
    %rows = arith.select %empty, %c0, %more : index
    %packed = affine.apply affine_map<(d0) -> (d0 * 4)>(%rows)
    %t = arith.constant dense<0.0> : !x
    scf.if %empty {
      tile.store %t, %x[%c0] rows(%packed) : !x to !m
    }
    tile.store %t, %y[%c0] rows(%rows) : !x to !m
    gpu.return
  }
  // Blocks wait for the kernels before this one first.
  // CHECK-LABEL: gpu.func @waits(
  // CHECK:         arith.cmpi sge
  // CHECK-NEXT:    tile.await_dependencies
  // CHECK-NEXT:    tile.end_block_if
  gpu.func @waits(%x: !m, %first: i32, %length: i32, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %empty = arith.cmpi sge, %first, %length : i32
    tile.await_dependencies
    %rows = arith.select %empty, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    gpu.return
  }
  // Those of one tile after the other have more to do.
  // CHECK-LABEL: gpu.func @persistent(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @persistent(%x: !m, %first: i32, %length: i32, %more: index) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent>} {
    %c0 = arith.constant 0 : index
    %empty = arith.cmpi sge, %first, %length : i32
    %rows = arith.select %empty, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    gpu.return
  }
  // Another store has all rows, or rows by another condition, or some that are not empty.
  // CHECK-LABEL: gpu.func @all(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @all(%x: !m, %y: !m, %empty: i1, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %rows = arith.select %empty, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    tile.store %t, %y[%c0] : !x to !m
    gpu.return
  }
  // CHECK-LABEL: gpu.func @other(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @other(%x: !m, %y: !m, %first: index, %length: index, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %empty = arith.cmpi sge, %first, %length : index
    %last = arith.cmpi slt, %first, %length : index
    %rows = arith.select %empty, %c0, %more : index
    %others = arith.select %last, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    tile.store %t, %y[%c0] rows(%others) : !x to !m
    gpu.return
  }
  // CHECK-LABEL: gpu.func @one_row(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @one_row(%x: !m, %first: index, %length: index, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %empty = arith.cmpi sge, %first, %length : index
    %rows = arith.select %empty, %c0, %more : index
    %next = affine.apply affine_map<(d0) -> (d0 + 1)>(%rows)
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%next) : !x to !m
    gpu.return
  }
  // Something else is written.
  // CHECK-LABEL: gpu.func @element(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @element(%x: !m, %s: f32, %first: index, %length: index, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %empty = arith.cmpi sge, %first, %length : index
    %rows = arith.select %empty, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    memref.store %s, %x[%c0] : !m
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    gpu.return
  }
  // A copy has begun before it is known.
  // CHECK-LABEL: gpu.func @late(
  // CHECK-NOT:     tile.end_block_if
  gpu.func @late(%x: !m, %m: memref<?x64xf16>, %first: index, %length: index, %more: index) kernel {
    %c0 = arith.constant 0 : index
    %ring = tile.ring : <1, <64x64xf16, swizzle = 128>>
    tile.ring.acquire %ring[%c0] : <1, <64x64xf16, swizzle = 128>>
    tile.copy_async %m[%c0] to %ring[%c0] : memref<?x64xf16> to <1, <64x64xf16, swizzle = 128>>
    %empty = arith.cmpi sge, %first, %length : index
    %rows = arith.select %empty, %c0, %more : index
    %t = arith.constant dense<0.0> : !x
    tile.store %t, %x[%c0] rows(%rows) : !x to !m
    gpu.return
  }
}
