// RUN: flash-opt %s --flash-tile-softmax="row-tile=8 reduction-tile=0" --canonicalize | FileCheck %s

// CHECK-LABEL: func @last(
// CHECK:         scf.forall (%[[B:.*]], %[[I:.*]]) = (0, 0) to (4, 37) step (1, 8)
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%[[B]], %[[I]], 0] [1, %{{.*}}, 517]
// CHECK:           linalg.softmax dimension(2) ins(%[[X]]
// CHECK:           tensor.parallel_insert_slice
func.func @last(%x: tensor<4x37x517xf16>, %e: tensor<4x37x517xf16>) -> tensor<4x37x517xf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<4x37x517xf16>) outs(%e : tensor<4x37x517xf16>) -> tensor<4x37x517xf16>
  return %p : tensor<4x37x517xf16>
}

// CHECK-LABEL: func @first(
// CHECK-NOT:     scf.forall
// CHECK:         linalg.softmax dimension(0)
func.func @first(%x: tensor<37x517xf16>, %e: tensor<37x517xf16>) -> tensor<37x517xf16> {
  %p = linalg.softmax dimension(0) ins(%x : tensor<37x517xf16>) outs(%e : tensor<37x517xf16>) -> tensor<37x517xf16>
  return %p : tensor<37x517xf16>
}
