// RUN: flash-opt %s --flash-cpu-full-rank-slices | FileCheck %s
// RUN: flash-opt %s --flash-cpu-full-rank-slices --canonicalize | FileCheck %s --check-prefix=FOLDED

// The rows may be one row, like the last dimension, which the source lacks.
// CHECK-LABEL: func @rows(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x32xf32>, %[[O:[^:]*]]: tensor<3x4x32x3xf32>, %[[N:[^:]*]]: index
// CHECK:         %[[ALL:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2, 3]] output_shape [1, %[[N]], 32, 1]
// CHECK:         tensor.insert_slice %[[ALL]] into %[[O]][2, 0, 0, 1] [1, %[[N]], 32, 1] [1, 1, 1, 1] : tensor<1x?x32x1xf32>
func.func @rows(%x: tensor<?x32xf32>, %o: tensor<3x4x32x3xf32>, %n: index) -> tensor<3x4x32x3xf32> {
  %r = tensor.insert_slice %x into %o[2, 0, 0, 1] [1, %n, 32, 1] [1, 1, 1, 1] : tensor<?x32xf32> into tensor<3x4x32x3xf32>
  return %r : tensor<3x4x32x3xf32>
}

// Dimensions before those of the source cannot be mistaken.
// CHECK-LABEL: func @usual(
// CHECK-NOT:     expand_shape
func.func @usual(%x: tensor<?x32xf32>, %o: tensor<2x3x4x32xf32>, %n: index) -> tensor<2x3x4x32xf32> {
  %r = tensor.insert_slice %x into %o[1, 2, 0, 0] [1, 1, %n, 32] [1, 1, 1, 1] : tensor<?x32xf32> into tensor<2x3x4x32xf32>
  return %r : tensor<2x3x4x32xf32>
}

// The other way around.
// CHECK-LABEL: func @extract(
// CHECK-SAME:    %[[O:[^:]*]]: tensor<4x32x3xf32>, %[[N:[^:]*]]: index
// CHECK:         %[[ALL:.*]] = tensor.extract_slice %[[O]][0, 0, 1] [%[[N]], 32, 1] [1, 1, 1] : tensor<4x32x3xf32> to tensor<?x32x1xf32>
// CHECK:         %[[X:.*]] = tensor.collapse_shape %[[ALL]] {{\[\[}}0], [1, 2]] : tensor<?x32x1xf32> into tensor<?x32xf32>
// CHECK:         return %[[X]]
func.func @extract(%o: tensor<4x32x3xf32>, %n: index) -> tensor<?x32xf32> {
  %r = tensor.extract_slice %o[0, 0, 1] [%n, 32, 1] [1, 1, 1] : tensor<4x32x3xf32> to tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}

// Rows that lie apart: their distance is none that the tensor has, which says nothing of the other dimensions.
// CHECK-LABEL: func @step(
// CHECK:         %[[ALL:.*]] = tensor.extract_slice %arg0[0, 0, 0] [1, 61, 1] [1, 2, 1] : tensor<1x122x1xf32> to tensor<1x61x1xf32>
// CHECK:         tensor.collapse_shape %[[ALL]] {{\[\[}}0, 1], [2]] : tensor<1x61x1xf32> into tensor<61x1xf32>
func.func @step(%x: tensor<1x122x1xf32>) -> tensor<61x1xf32> {
  %r = tensor.extract_slice %x[0, 0, 0] [1, 61, 1] [1, 2, 1] : tensor<1x122x1xf32> to tensor<61x1xf32>
  return %r : tensor<61x1xf32>
}

// Once it is known that there is one row, it is still that.
// CHECK-LABEL: func @parallel(
// CHECK:         %[[S:.*]] = tensor.extract_slice
// CHECK:         %[[ALL:.*]] = tensor.expand_shape %[[S]] {{\[\[}}0, 1], [2, 3]]
// CHECK:         scf.forall.in_parallel
// CHECK:           tensor.parallel_insert_slice %[[ALL]] into
// FOLDED-LABEL: func @parallel(
// FOLDED:         tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%{{.*}}, 0, 0, %{{.*}}] [1, 1, 32, 1] [1, 1, 1, 1] : tensor<1x1x32x1xf32> into tensor<3x1x32x3xf32>
func.func @parallel(%x: tensor<64x32xf32>, %o: tensor<3x1x32x3xf32>) -> tensor<3x1x32x3xf32> {
  %r = scf.forall (%i, %j, %k) = (0, 0, 0) to (3, 3, 1) step (1, 1, 64) shared_outs(%p = %o) -> (tensor<3x1x32x3xf32>) {
    %n = affine.min affine_map<(d0) -> (1 - d0, 64)>(%k)
    %s = tensor.extract_slice %x[0, 0] [%n, 32] [1, 1] : tensor<64x32xf32> to tensor<?x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %p[%i, %k, 0, %j] [1, %n, 32, 1] [1, 1, 1, 1] : tensor<?x32xf32> into tensor<3x1x32x3xf32>
    }
  }
  return %r : tensor<3x1x32x3xf32>
}
