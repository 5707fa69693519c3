// Tiles that blocks add to sums in order.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse --split-input-file | FileCheck %s

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x8xi32>

// A tile goes to shared memory, and from there to its address in the sums. A
// block's rank is the number of blocks before it that add there, too: here those
// of smaller numbers.

// CHECK-LABEL: gpu.func @linear_0(
// CHECK-SAME:    %[[FIRST:[^:]*]]: index, %[[SUMS:[^:]*]]: memref<1x2x4x64x32xf32, strided<[?, ?, ?, ?, 1], offset: ?>>, %[[COUNTS:[^:]*]]: memref<1x2x8xi32, strided<[?, ?, 1], offset: ?>>
// CHECK:         %[[P:.*]]:2 = tile.position %{{.*}} of(%{{.*}}, %{{.*}}) linear
// CHECK:         scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK:           %[[TILE:.*]] = tile.share %{{.*}} : tensor<64x32xf32, #tile.fragment<4>> to <64x32xf32
// CHECK:           %[[RANK:.*]] = arith.subi %[[P]]#1, %[[FIRST]]
// CHECK:           tile.add_in_order %[[TILE]], %[[SUMS]][%c0, %[[P]]#0, %[[I]], %c0] rank(%[[RANK]]) of %[[COUNTS]][%c0, %[[P]]#0, %[[I]]]
func.func @linear(%first: index, %end: index, %n: !counts) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = arith.constant 1.0 : f32
  %empty = tensor.empty() : !sums
  %counts0 = tensor.empty() : !counts
  %zeros = scf.forall (%h, %i) in (2, 8) shared_outs(%o = %counts0) -> (!counts) {
    %zero = arith.constant 0 : i32
    %s = tensor.extract_slice %o[0, %h, %i] [1, 1, 1] [1, 1, 1] : !counts to tensor<1xi32>
    %z = tensor.insert %zero into %s[%c0] : tensor<1xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %z into %o[0, %h, %i] [1, 1, 1] [1, 1, 1] : tensor<1xi32> into !counts
    }
  }
  %r:2 = scf.forall (%h, %j) = (0, 0) to (2, 256) step (1, 64) shared_outs(%s = %empty, %c = %zeros) -> (!sums, !counts) {
    %none = tensor.empty() : !sums
    %p = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %none) -> (!sums) {
      %e = tensor.empty() : tensor<64x32xf32>
      %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
      %q = flash.contribute %t to %p[%c0, %h, %i] among(%first to %end) : tensor<64x32xf32> to !sums
      scf.yield %q : !sums
    }
    scf.forall.in_parallel {
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  }
  return %r#0, %r#1 : !sums, !counts
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x8xi32>

// And here of most heads those of greater ones; the order says of which.

// CHECK-LABEL: gpu.func @both_ways(
// CHECK:         %[[P:.*]]:3 = tile.position %{{.*}} of(%{{.*}}, %{{.*}}) both_ways additions(%c4)
// CHECK:         scf.if
// CHECK:           tile.share
// CHECK:           %[[BEFORE:.*]] = arith.subi %[[P]]#1, %{{.*}}
// CHECK:           %[[BEHIND:.*]] = arith.subi %{{.*}}, %[[P]]#1
// CHECK:           %[[BACKWARDS:.*]] = arith.subi %[[BEHIND]], %c1
// CHECK:           %[[RANK:.*]] = arith.select %[[P]]#2, %[[BACKWARDS]], %[[BEFORE]]
// CHECK:           tile.add_in_order {{.*}} rank(%[[RANK]])
func.func @both_ways(%first: index, %end: index, %zeros: !counts) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %x = arith.constant 1.0 : f32
  %empty = tensor.empty() : !sums
  %counts0 = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) = (0, 0) to (2, 256) step (1, 64) shared_outs(%s = %empty, %c = %counts0) -> (!sums, !counts) {
    %none = tensor.empty() : !sums
    %isFirst = arith.cmpi ult, %j, %first : index
    %p = scf.if %isFirst -> (!sums) {
      %e = tensor.empty() : tensor<64x32xf32>
      %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
      %q = flash.contribute %t to %none[%c0, %h, %c0] among(%first to %end) : tensor<64x32xf32> to !sums
      scf.yield %q : !sums
    } else {
      scf.yield %none : !sums
    }
    scf.forall.in_parallel {
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  } {tile.order = #tile.order<both_ways>}
  return %r#0, %r#1 : !sums, !counts
}

// -----

!sums = tensor<1x2x4x64x32xf32>
!counts = tensor<1x2x8xi32>

// How many blocks of greater numbers add to a tile may be data.

// CHECK-LABEL: gpu.func @behind(
// CHECK:         %[[N:.*]] = memref.load
// CHECK:         %[[RANK:.*]] = arith.index_cast %[[N]]
// CHECK:         tile.add_in_order {{.*}} rank(%[[RANK]])
func.func @behind(%ranks: tensor<4xi32>) -> (!sums, !counts) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %x = arith.constant 1.0 : f32
  %empty = tensor.empty() : !sums
  %counts0 = tensor.empty() : !counts
  %r:2 = scf.forall (%h, %j) = (0, 0) to (2, 256) step (1, 64) shared_outs(%s = %empty, %c = %counts0) -> (!sums, !counts) {
    %none = tensor.empty() : !sums
    %e = tensor.empty() : tensor<64x32xf32>
    %t = linalg.fill ins(%x : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
    %i = arith.divui %j, %c64 : index
    %n = tensor.extract %ranks[%i] : tensor<4xi32>
    %rank = arith.index_cast %n : i32 to index
    %p = flash.contribute %t to %none[%c0, %h, %c0] behind(%rank) : tensor<64x32xf32> to !sums
    scf.forall.in_parallel {
      flash.parallel_add %p to %s counting %c : !sums, !counts
    }
  } {tile.order = #tile.order<reverse>}
  return %r#0, %r#1 : !sums, !counts
}

// -----

// What is made once goes to shared memory once, also if loops read it there.

// CHECK-LABEL: gpu.func @shared_once(
// CHECK:         %[[S:.*]] = tile.share
// CHECK-NOT:     tile.share
// CHECK:         scf.for
// CHECK:           tile.mma_async %{{.*}}, %[[S]]
// CHECK:         scf.for
// CHECK:           tile.mma_async %{{.*}}, %[[S]]
// CHECK-NOT:     tile.share
func.func @shared_once(%x: f16, %a: tensor<64x32xf16>, %n: index) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : tensor<64x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<64x64xf32>) {
    %e = tensor.empty() : tensor<32x64xf16>
    %b = linalg.fill ins(%x : f16) outs(%e : tensor<32x64xf16>) -> tensor<32x64xf16>
    %d = arith.addf %b, %b : tensor<32x64xf16>
    %e1 = tensor.empty() : tensor<64x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %f) -> (tensor<64x64xf32>) {
      %p = linalg.matmul ins(%a, %d : tensor<64x32xf16>, tensor<32x64xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    }
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %s) -> (tensor<64x64xf32>) {
      %p = linalg.matmul ins(%a, %d : tensor<64x32xf16>, tensor<32x64xf16>) outs(%acc : tensor<64x64xf32>) -> tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[0, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<64x64xf32>
    }
  }
  return %r : tensor<64x64xf32>
}

// -----

#rows = affine_map<(i, j, k) -> (k, i)>
#columns = affine_map<(i, j, k) -> (k, j)>
#sums = affine_map<(i, j, k) -> (i, j)>

// Where warps have roles, a 16-bit first factor that is transposed is read from
// shared memory.

// CHECK-LABEL: gpu.func @transposed(
// CHECK-DAG:     %[[A:.*]] = tile.fetch {{.*}} to <64x128xf16
// CHECK-DAG:     %[[B:.*]] = tile.fetch {{.*}} to <64x32xf16
// CHECK:         tile.mma_async %[[A]], %[[B]] transpose_a :
func.func @transposed(%a: tensor<64x128xf16>, %b: tensor<64x32xf16>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : tensor<128x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<128x32xf32>) {
    %e = tensor.empty() : tensor<128x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x32xf32>) -> tensor<128x32xf32>
    %p = linalg.contract indexing_maps = [#rows, #columns, #sums] ins(%a, %b : tensor<64x128xf16>, tensor<64x32xf16>) outs(%f : tensor<128x32xf32>) -> tensor<128x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[0, 0] [128, 32] [1, 1] : tensor<128x32xf32> into tensor<128x32xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 8, features = specialize_warps>}
  return %r : tensor<128x32xf32>
}

// -----

#rows = affine_map<(p, i, j, k) -> (k, i)>
#columns = affine_map<(p, i, j, k) -> (k, p, j)>
#sums = affine_map<(p, i, j, k) -> (p, i, j)>

// Parts of columns that are one below the other in the result are of warpgroups of their own,
// and begin with panels.

// CHECK-LABEL: gpu.func @parts(
// CHECK-DAG:     %[[A:.*]] = tile.fetch {{.*}} to <64x64xf16, swizzle = 128>
// CHECK-DAG:     %[[B:.*]] = tile.fetch {{.*}} to <64x96xf16, swizzle = 32>
// CHECK:         tile.mma_async %[[A]], %[[B]] transpose_a divide_columns : {{.*}} -> <tensor<128x48xf32, #tile.fragment<8>>>
func.func @parts(%a: tensor<64x64xf16>, %b: tensor<64x96xf16>) -> tensor<128x48xf32> {
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : tensor<128x48xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %out) -> (tensor<128x48xf32>) {
    %e = tensor.empty() : tensor<2x64x48xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x48xf32>) -> tensor<2x64x48xf32>
    %bs = tensor.expand_shape %b [[0], [1, 2]] output_shape [64, 2, 48] : tensor<64x96xf16> into tensor<64x2x48xf16>
    %p = linalg.contract indexing_maps = [#rows, #columns, #sums] ins(%a, %bs : tensor<64x64xf16>, tensor<64x2x48xf16>) outs(%f : tensor<2x64x48xf32>) -> tensor<2x64x48xf32>
    %ps = tensor.collapse_shape %p [[0, 1], [2]] : tensor<2x64x48xf32> into tensor<128x48xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ps into %o[0, 0] [128, 48] [1, 1] : tensor<128x48xf32> into tensor<128x48xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 8, features = specialize_warps>}
  return %r : tensor<128x48xf32>
}

// -----

#rows = affine_map<(i, j, k) -> (k, i)>
#columns = affine_map<(i, j, k) -> (k, j)>
#sums = affine_map<(i, j, k) -> (i, j)>

// A row of sums of diagonals goes to its address in the block's part of an output; the tile
// is in shared memory once, for a product and for these.

!out = tensor<2x4x256xf32>
!part = tensor<4x256xf32>
!x = tensor<128x128xf16>
!y = tensor<128x32xf16>
!z = tensor<128x32xf32>

// CHECK-LABEL: gpu.func @diagonals(
// CHECK:         %[[H:.*]] = tile.position
// CHECK:         scf.for %[[I:.*]] = %c0 to %c4 step %c1
// CHECK:           %[[TILE:.*]] = tile.share %{{.*}} : tensor<128x128xf16, #tile.fragment<8>> to <128x128xf16
// CHECK-NOT:       tile.share
// CHECK:           tile.mma_async %[[TILE]], %{{.*}} transpose_a
// CHECK:           tile.store_diagonals %[[TILE]], %{{.*}}[%[[H]], %[[I]]] : <128x128xf16, swizzle = 128> to memref<2x4x256xf32
func.func @diagonals(%xs: tensor<2x128x128xf16>, %y: !y) -> (!out, tensor<2x128x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %out = tensor.empty() : !out
  %outz = tensor.empty() : tensor<2x128x32xf32>
  %r:2 = scf.forall (%h) in (2) shared_outs(%o = %out, %oz = %outz) -> (!out, tensor<2x128x32xf32>) {
    %x = tensor.extract_slice %xs[%h, 0, 0] [1, 128, 128] [1, 1, 1] : tensor<2x128x128xf16> to !x
    %part = tensor.extract_slice %o[%h, 0, 0] [1, 4, 256] [1, 1, 1] : !out to !part
    %e = tensor.empty() : !z
    %z = linalg.fill ins(%zero : f32) outs(%e : !z) -> !z
    %p:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %part, %s = %z) -> (!part, !z) {
      %d = arith.addf %x, %x : !x
      %t = linalg.contract indexing_maps = [#rows, #columns, #sums] ins(%d, %y : !x, !y) outs(%s : !z) -> !z
      %q = flash.insert_diagonals %d into %p[%i] : !x into !part
      scf.yield %q, %t : !part, !z
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p#0 into %o[%h, 0, 0] [1, 4, 256] [1, 1, 1] : !part into !out
      tensor.parallel_insert_slice %p#1 into %oz[%h, 0, 0] [1, 128, 32] [1, 1, 1] : !z into tensor<2x128x32xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 8, features = specialize_warps>}
  return %r#0, %r#1 : !out, tensor<2x128x32xf32>
}
