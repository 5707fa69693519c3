// Rows of a view are read and stored where they lie in memory.
// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>

// CHECK-LABEL: func @kernel(
// CHECK-SAME:      %[[X:.*]]: tensor<1x4x?x8xf16>, %[[OFFSETS:.*]]: tensor<?xi32>, %[[OUT:.*]]: tensor<1x4x?x8xf16>)
// CHECK-NOT:     flash.unpack
// CHECK:         %[[N:.*]] = tensor.dim %[[OFFSETS]], %c0
// CHECK:         %[[B:.*]] = affine.apply #{{.*}}()[%[[N]]]
// CHECK:         %[[T:.*]] = tensor.dim %[[X]], %c2
// CHECK:         scf.forall (%[[I:.*]], %[[H:.*]], %[[ROW:.*]]) = (0, 0, 0) to (%[[B]], 4, %[[T]]) step (1, 1, 16) shared_outs(%[[TO:.*]] = %[[OUT]])
// CHECK:           %[[FIRST:.*]] = tensor.extract %[[OFFSETS]][%[[I]]]
// CHECK:           %[[START:.*]] = arith.minsi %{{.*}}, %[[T]]
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %[[T]]
// CHECK:           %[[LENGTH:.*]] = arith.subi %[[END]], %[[START]]
// CHECK:           %[[AT:.*]] = arith.addi %[[START]], %[[ROW]]
// CHECK:           tensor.extract_slice %[[X]][0, %[[H]], %[[AT]], 0] [1, 1, %{{.*}}, 8]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[TO]][0, %[[H]], %{{.*}}, 0] [1, 1, %{{.*}}, 8]
func.func @kernel(%x: !memory, %offsets: tensor<?xi32>, %out: !memory) -> !memory {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %xs, %lengths = flash.unpack %x by %offsets : !memory, tensor<?xi32> -> !view, tensor<?xi32>
  %b = tensor.dim %xs, %c0 : !view
  %n = tensor.dim %xs, %c2 : !view
  %e = tensor.empty(%b, %n) : !view
  %0 = flash.kernel over(%b, %c4, %n) by [1, 1, 16] outs(%e : !view) {
  ^bb0(%i: index, %h: index, %row: index, %to: !view):
    %l = tensor.extract %lengths[%i] : tensor<?xi32>
    %length = arith.index_cast %l : i32 to index
    %rows = affine.min affine_map<(d0)[s0] -> (s0 - d0, 16)>(%row)[%length]
    %tile = flash.load_rows %xs[%i, %h, %row] rows(%rows) : !view -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] rows(%rows) : tensor<16x8xf16> into !view
    }
  }
  %r = flash.pack %0 by %offsets into %out : !view, tensor<?xi32> into !memory
  return %r : !memory
}

// -----

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>

// Of memory that is filled a loop behind the kernel fills the rows before the first sequence and behind the last one.

// CHECK-LABEL: func @gaps(
// CHECK-SAME:      %[[X:.*]]: tensor<1x4x?x8xf16>, %[[OFFSETS:.*]]: tensor<?xi32>)
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NOT:     linalg.fill
// CHECK:         %[[EMPTY:.*]] = tensor.empty
// CHECK:         %[[STORED:.*]] = scf.forall {{.*}} step (1, 1, 16) shared_outs(%{{.*}} = %[[EMPTY]])
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %[[ROW:.*]]) = (0, 0, 0) to (1, 4, %{{.*}}) step (1, 1, 512) shared_outs(%{{.*}} = %[[STORED]])
// CHECK:           %[[TILE:.*]] = linalg.fill ins(%[[ZERO]] : f16) outs(%{{.*}} : tensor<512x8xf16>)
// CHECK:           %[[NONE:.*]] = arith.andi
// CHECK:           %[[FIRST:.*]] = arith.select %[[NONE]], %c0, %{{.*}}
// CHECK:           %[[BEFORE:.*]] = tensor.extract_slice %[[TILE]][0, 0] [%[[FIRST]], 8]
// CHECK:           %[[LAST:.*]] = arith.select %[[NONE]], %c0, %{{.*}}
// CHECK:           %[[BEHIND:.*]] = tensor.extract_slice %[[TILE]][0, 0] [%[[LAST]], 8]
// CHECK:           tensor.parallel_insert_slice %[[BEFORE]] into %{{.*}}[{{.*}}%[[H]], %{{.*}}, 0] [1, 1, %[[FIRST]], 8]
// CHECK:           tensor.parallel_insert_slice %[[BEHIND]] into %{{.*}}[{{.*}}%[[H]], %{{.*}}, 0] [1, 1, %[[LAST]], 8]
func.func @gaps(%x: !memory, %offsets: tensor<?xi32>) -> !memory {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f16
  %xs, %lengths = flash.unpack %x by %offsets : !memory, tensor<?xi32> -> !view, tensor<?xi32>
  %b = tensor.dim %xs, %c0 : !view
  %n = tensor.dim %xs, %c2 : !view
  %e = tensor.empty(%b, %n) : !view
  %0 = flash.kernel over(%b, %c4, %n) by [1, 1, 16] outs(%e : !view) {
  ^bb0(%i: index, %h: index, %row: index, %to: !view):
    %tile = flash.load_rows %xs[%i, %h, %row] : !view -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] : tensor<16x8xf16> into !view
    }
  }
  %memory = tensor.empty(%n) : !memory
  %zeros = linalg.fill ins(%zero : f16) outs(%memory : !memory) -> !memory
  %r = flash.pack %0 by %offsets into %zeros : !view, tensor<?xi32> into !memory
  return %r : !memory
}

// -----

// Without a kernel the view is a tensor, which is copied batch by batch.

// CHECK-LABEL: func @whole(
// CHECK-SAME:      %[[X:.*]]: tensor<1x2x9xf32>, %[[OFFSETS:.*]]: tensor<4xi64>, %[[OUT:.*]]: tensor<1x2x9xf32>)
// CHECK:         %[[ZEROS:.*]] = linalg.fill
// CHECK:         %[[VIEW:.*]] = scf.for %[[B:.*]] = %c0 to %c3 step %c1 iter_args(%[[TO:.*]] = %[[ZEROS]])
// CHECK:           %[[ROWS:.*]] = tensor.extract_slice %[[X]][0, 0, %[[START:.*]]] [1, 2, %[[LENGTH:.*]]]
// CHECK:           tensor.insert_slice %[[ROWS]] into %[[TO]][%[[B]], 0, 0] [1, 2, %[[LENGTH]]]
// CHECK:         %[[TWICE:.*]] = arith.addf %[[VIEW]], %[[VIEW]]
// CHECK:         scf.for %[[B:.*]] = %c0 to %c3 step %c1 iter_args(%[[TO:.*]] = %[[OUT]])
// CHECK:           %[[ROWS:.*]] = tensor.extract_slice %[[TWICE]][%[[B]], 0, 0]
// CHECK:           tensor.insert_slice %[[ROWS]] into %[[TO]][0, 0, %{{.*}}]
func.func @whole(%x: tensor<1x2x9xf32>, %offsets: tensor<4xi64>, %out: tensor<1x2x9xf32>) -> tensor<1x2x9xf32> {
  %xs, %lengths = flash.unpack %x by %offsets : tensor<1x2x9xf32>, tensor<4xi64> -> tensor<3x2x9xf32>, tensor<3xi32>
  %twice = arith.addf %xs, %xs : tensor<3x2x9xf32>
  %r = flash.pack %twice by %offsets into %out : tensor<3x2x9xf32>, tensor<4xi64> into tensor<1x2x9xf32>
  return %r : tensor<1x2x9xf32>
}

// -----

// A kernel over the rows of a view has as many tiles as sequences may have: of 16 rows if all but one are lacking in the last tile of each.
// The sequence of a tile is the last one that starts at it or before: the one that would if all were equally long, if the next one starts
// behind it, or else it is searched.

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>

// CHECK-LABEL: func @rows(
// CHECK-SAME:      %[[X:.*]]: tensor<1x4x?x8xf16>, %[[OFFSETS:.*]]: tensor<?xi32>, %[[OUT:.*]]: tensor<1x4x?x8xf16>)
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %[[N:.*]]) = (0, 0, 0) to (1, 4, %{{.*}}) step (1, 1, 16)
// CHECK:           %[[QUOTIENT:.*]] = arith.fptosi
// CHECK:           %[[BY:.*]] = arith.index_cast %[[QUOTIENT]]
// CHECK:           %[[GUESS:.*]] = arith.minsi %[[BY]],
// CHECK:           %[[IS_NEXT:.*]] = arith.cmpi slt
// CHECK:           %[[IS_LAST:.*]] = arith.cmpi eq, %[[GUESS]],
// CHECK:           %[[IS_THIS:.*]] = arith.cmpi slt
// CHECK:           %[[IS_RIGHT:.*]] = arith.select %[[IS_NEXT]], %[[IS_LAST]], %[[IS_THIS]]
// CHECK:           %[[TIMES:.*]] = arith.select %[[IS_RIGHT]], %c0, %c1
// CHECK:           %[[B:.*]] = scf.for %{{.*}} = %c0 to %[[TIMES]] step %c1 iter_args(%{{.*}} = %[[GUESS]])
// CHECK:           %[[STRETCH:.*]] = scf.for %{{.*}} = %c64 to %{{.*}} step %c64 iter_args(%{{.*}} = %c0)
// CHECK:             scf.yield
// CHECK:           affine.apply #{{.*}}(%[[STRETCH]])
// CHECK:           %[[HALF:.*]] = arith.minsi
// CHECK:           tensor.extract %[[OFFSETS]][%[[HALF]]]
// CHECK:           %[[IS:.*]] = arith.cmpi slt
// CHECK:           %[[LAST:.*]] = arith.select %[[IS]], %[[HALF]], %[[STRETCH]]
// CHECK-COUNT-5:   arith.cmpi slt
// CHECK:           tensor.extract %[[OFFSETS]][%[[B]]]
// CHECK:           tensor.extract_slice %[[X]][0, %[[H]], %{{.*}}, 0]
func.func @rows(%x: !memory, %offsets: tensor<?xi32>, %out: !memory) -> !memory {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %xs, %lengths = flash.unpack %x by %offsets : !memory, tensor<?xi32> -> !view, tensor<?xi32>
  %b = tensor.dim %xs, %c0 : !view
  %n = tensor.dim %xs, %c2 : !view
  %e = tensor.empty(%b, %n) : !view
  %0 = flash.kernel over(%b, %c4, %n) by [1, 1, 16] rows(%xs : !view) outs(%e : !view) {
  ^bb0(%i: index, %h: index, %row: index, %to: !view):
    %tile = flash.load_rows %xs[%i, %h, %row] : !view -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] : tensor<16x8xf16> into !view
    }
  }
  %r = flash.pack %0 by %offsets into %out : !view, tensor<?xi32> into !memory
  return %r : !memory
}
