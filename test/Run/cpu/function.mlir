// --function chooses among several public functions.
// RUN: flash-run %s --target=cpu --function=small --json=%t.json
// RUN: FileCheck %s < %t.json
// CHECK:     "function": "small"
// CHECK:     "results"
// CHECK:       8
func.func @small(%q: tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  return %o : tensor<1x1x8x8xf32>
}
func.func @large(%q: tensor<1x1x64x8xf32>) -> tensor<1x1x64x8xf32> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x64x8xf32>, tensor<1x1x64x8xf32>, tensor<1x1x64x8xf32>) -> tensor<1x1x64x8xf32>
  return %o : tensor<1x1x64x8xf32>
}
