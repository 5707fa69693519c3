// Where programs have the whole tensor, it is computed; kernels have none.
// RUN: flash-opt %s --convert-flash-to-scf | FileCheck %s
// RUN: not flash-opt %s --convert-flash-to-scf=only-kernels 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: 'flash.dequantize' op is used as a tensor, and on a GPU kernels of attention alone read it; use --target=cpu
// REFUSED: note: it is used here

// CHECK-LABEL: func @tensor(
// CHECK-SAME:    %[[K:.*]]: tensor<?x2x80x32xf8E4M3FN>, %[[S:.*]]: tensor<1xf32>)
// CHECK:         %[[SCALE:.*]] = tensor.extract %[[S]][%{{.*}}] : tensor<1xf32>
// CHECK:         %[[ALL:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<?x2x80x32xf8E4M3FN>)
// CHECK:           arith.mulf %{{.*}}, %[[SCALE]] : f32
// CHECK:         %[[SIZE:.*]] = tensor.dim %[[K]], %{{.*}} : tensor<?x2x80x32xf8E4M3FN>
// CHECK:         return %[[ALL]], %[[SIZE]]
func.func @tensor(%k: tensor<?x2x80x32xf8E4M3FN>, %s: tensor<1xf32>) -> (tensor<?x2x80x32xf16>, index) {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<?x2x80x32xf8E4M3FN> -> tensor<?x2x80x32xf16>
  %zero = arith.constant 0 : index
  %size = tensor.dim %kd, %zero : tensor<?x2x80x32xf16>
  return %kd, %size : tensor<?x2x80x32xf16>, index
}
