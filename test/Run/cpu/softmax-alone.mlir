// A softmax alone goes through the online rewrite, here on ragged tiles.
// RUN: flash-run --target=cpu %s --check --dump=l1 | FileCheck %s
// CHECK:     scf.forall
// CHECK:       scf.for
// CHECK:       scf.for
// CHECK-NOT: linalg.softmax
// CHECK:     check: ok
func.func @softmax(%x: tensor<37x1003xf16>) -> tensor<37x1003xf16> {
  %e = tensor.empty() : tensor<37x1003xf16>
  %p = linalg.softmax dimension(0) ins(%x : tensor<37x1003xf16>) outs(%e : tensor<37x1003xf16>) -> tensor<37x1003xf16>
  return %p : tensor<37x1003xf16>
}
