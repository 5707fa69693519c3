// Without a kernel the view is a tensor, into which each page of a sequence is copied, as many rows as exist.
// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse | FileCheck %s

// CHECK:       #[[LEFT:.*]] = affine_map<(d0, d1) -> (-d0 + d1, 8)>
// CHECK-LABEL: func @whole(
// CHECK-SAME:      %[[X:.*]]: tensor<9x2x8x4xf32>, %[[TABLE:.*]]: tensor<3x5xi32>, %[[LENGTHS:.*]]: tensor<3xi32>)
// CHECK:         %[[ZEROS:.*]] = linalg.fill
// CHECK:         %[[VIEW:.*]] = scf.for %[[B:.*]] = %c0 to %c3 step %c1 iter_args(%[[TO:.*]] = %[[ZEROS]])
// CHECK:           %[[WRITTEN:.*]] = tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:           %[[LENGTH:.*]] = arith.minsi %{{.*}}, %c40
// CHECK:           scf.for %[[ROW:.*]] = %c0 to %[[LENGTH]] step %c8 iter_args(%[[PART:.*]] = %[[TO]])
// CHECK:             %[[ROWS:.*]] = affine.min #[[LEFT]](%[[ROW]], %[[LENGTH]])
// CHECK:             tensor.extract %[[TABLE]][%[[B]], %{{.*}}]
// CHECK:             %[[PAGE:.*]] = arith.maxsi
// CHECK:             %[[COPY:.*]] = tensor.extract_slice %[[X]][%[[PAGE]], 0, %{{.*}}, 0] [1, 2, %[[ROWS]], 4]
// CHECK:             tensor.insert_slice %[[COPY]] into %[[PART]][%[[B]], 0, %[[ROW]], 0] [1, 2, %[[ROWS]], 4]
// CHECK:         arith.addf %[[VIEW]], %[[VIEW]]
func.func @whole(%x: tensor<9x2x8x4xf32>, %table: tensor<3x5xi32>, %n: tensor<3xi32>) -> tensor<3x2x40x4xf32> {
  %view = flash.unpage %x by %table lengths(%n : tensor<3xi32>) : tensor<9x2x8x4xf32>, tensor<3x5xi32> -> tensor<3x2x40x4xf32>
  %twice = arith.addf %view, %view : tensor<3x2x40x4xf32>
  return %twice : tensor<3x2x40x4xf32>
}
