// Rows of a view in pages are read where they lie.
// RUN: flash-opt %s --convert-flash-to-scf=only-kernels --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s
// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=CPU

// A tile that is a part of a page: the entry of the table is clamped to the pages that there are.

// CHECK-LABEL: func @part(
// CHECK-SAME:      %[[X:.*]]: tensor<?x4x64x8xf16>, %[[TABLE:.*]]: tensor<?x?xi32>,
// CHECK-NOT:     flash.unpage
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[START:.*]]) =
// CHECK:           %[[END:.*]] = affine.max
// CHECK:           %[[ROW:.*]] = affine.min #{{.*}}(%[[START]], %[[END]])
// CHECK:           %[[COLUMN:.*]] = affine.apply #{{.*}}(%[[ROW]])
// CHECK:           %[[ENTRY:.*]] = tensor.extract %[[TABLE]][%[[B]], %[[COLUMN]]]
// CHECK:           %[[WRITTEN:.*]] = arith.index_cast %[[ENTRY]]
// CHECK:           %[[LEAST:.*]] = arith.minsi %[[WRITTEN]]
// CHECK:           %[[PAGE:.*]] = arith.maxsi %[[LEAST]], %c0
// CHECK:           %[[AT:.*]] = affine.apply #{{.*}}(%[[ROW]])
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %[[X]][%[[PAGE]], %[[H]], %[[AT]], 0] [1, 1, 16, 8]
// CHECK:           tensor.parallel_insert_slice %[[SLICE]]
func.func @part(%x: tensor<?x4x64x8xf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>, %e: tensor<?x4x?x8xf16>) -> tensor<?x4x?x8xf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %view = flash.unpage %x by %table lengths(%n : tensor<?xi32>) : tensor<?x4x64x8xf16>, tensor<?x?xi32> -> tensor<?x4x?x8xf16>
  %b = tensor.dim %view, %c0 : tensor<?x4x?x8xf16>
  %rows = tensor.dim %view, %c2 : tensor<?x4x?x8xf16>
  %0 = flash.kernel over(%b, %c4, %rows) by [1, 1, 16] outs(%e : tensor<?x4x?x8xf16>) {
  ^bb0(%i: index, %h: index, %row: index, %to: tensor<?x4x?x8xf16>):
    %tile = flash.load_rows %view[%i, %h, %row] : tensor<?x4x?x8xf16> -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] : tensor<16x8xf16> into tensor<?x4x?x8xf16>
    }
  }
  return %0 : tensor<?x4x?x8xf16>
}

// -----

// A tile of two pages. The page of a sequence's last row is read, at most: entries behind it are not read.

// CHECK-DAG:   #[[LAST:.*]] = affine_map<(d0) -> (0, d0 - 1)>
// CHECK-DAG:   #[[SECOND:.*]] = affine_map<(d0, d1) -> (d1, d0 + 8)>
// CHECK-DAG:   #[[REST:.*]] = affine_map<()[s0] -> (8, s0 - 8)>
// CHECK-LABEL: func @pages(
// CHECK-SAME:      %[[X:.*]]: tensor<9x4x8x8xf16>, %[[TABLE:.*]]: tensor<2x3xi32>, %[[LENGTHS:.*]]: tensor<2xi32>, %[[ROWS:.*]]: index,
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[ROW:.*]]) =
// CHECK-NEXT:      tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:           %[[LENGTH:.*]] = arith.minsi %{{.*}}, %c24
// CHECK:           %[[END:.*]] = affine.max #[[LAST]](%[[LENGTH]])
// CHECK:           tensor.extract %[[TABLE]][%[[B]],
// CHECK:           tensor.extract_slice %[[X]][%[[FIRST:.*]], %[[H]], 0, 0] [1, 1, %{{.*}}, 8]
// CHECK:           %[[PAD:.*]] = tensor.pad
// CHECK:           %[[AT:.*]] = affine.min #[[SECOND]](%[[ROW]], %[[END]])
// CHECK:           affine.min #[[REST]]()[%[[ROWS]]]
// CHECK:           %[[COLUMN:.*]] = affine.apply #{{.*}}(%[[AT]])
// CHECK:           tensor.extract %[[TABLE]][%[[B]], %[[COLUMN]]]
// CHECK:           tensor.extract_slice %[[X]]
// CHECK:           %[[NEXT:.*]] = tensor.pad
// CHECK:           tensor.concat dim(0) %[[PAD]], %[[NEXT]] : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<16x8xf16>
// CPU-LABEL:   func @pages(
// CPU:           tensor.pad
// CPU:           tensor.pad
// CPU:           tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [8, 8]
// CPU:           tensor.insert_slice %{{.*}} into %{{.*}}[8, 0] [8, 8]
func.func @pages(%x: tensor<9x4x8x8xf16>, %table: tensor<2x3xi32>, %n: tensor<2xi32>, %rows: index, %e: tensor<2x4x24x8xf16>) -> tensor<2x4x24x8xf16> {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  %view = flash.unpage %x by %table lengths(%n : tensor<2xi32>) : tensor<9x4x8x8xf16>, tensor<2x3xi32> -> tensor<2x4x24x8xf16>
  %0 = flash.kernel over(%c2, %c4, %c24) by [1, 1, 16] outs(%e : tensor<2x4x24x8xf16>) {
  ^bb0(%i: index, %h: index, %row: index, %to: tensor<2x4x24x8xf16>):
    %tile = flash.load_rows %view[%i, %h, %row] rows(%rows) : tensor<2x4x24x8xf16> -> tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] rows(%rows) : tensor<16x8xf16> into tensor<2x4x24x8xf16>
    }
  }
  return %0 : tensor<2x4x24x8xf16>
}

// -----

func.func @between(%x: tensor<9x4x8x8xf16>, %table: tensor<2x3xi32>, %n: tensor<2xi32>, %e: tensor<2x4x24x8xf16>) -> tensor<2x4x24x8xf16> {
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c24 = arith.constant 24 : index
  %view = flash.unpage %x by %table lengths(%n : tensor<2xi32>) : tensor<9x4x8x8xf16>, tensor<2x3xi32> -> tensor<2x4x24x8xf16>
  %0 = flash.kernel over(%c2, %c4, %c24) by [1, 1, 12] outs(%e : tensor<2x4x24x8xf16>) {
  ^bb0(%i: index, %h: index, %row: index, %to: tensor<2x4x24x8xf16>):
    // expected-error @below {{takes a tile of 12 rows of 1 heads of a view in which 8 rows follow each other; the rows of a tile are of one head and divide that number, or are a multiple of it}}
    %tile = flash.load_rows %view[%i, %h, %row] : tensor<2x4x24x8xf16> -> tensor<12x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] : tensor<12x8xf16> into tensor<2x4x24x8xf16>
    }
  }
  return %0 : tensor<2x4x24x8xf16>
}
