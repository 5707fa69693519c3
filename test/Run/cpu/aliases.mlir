// Arguments are never overwritten; results may be arguments, constants, or the
// same value twice.
// RUN: flash-run --target=cpu %s --check | FileCheck %s
// CHECK: check: ok {{.*}} worst of 5 results
func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = arith.addf %a, %b : tensor<4xf32>
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %a, %c, %c, %k, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
