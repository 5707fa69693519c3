// RUN: flash-opt %s --flash-tile-naive --verify-diagnostics
func.func @f(%q: tensor<2x64x16xf32>) -> tensor<2x64x16xf32> {
  // expected-error @below {{rank}}
  %o = flash.attention %q, %q, %q : (tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x64x16xf32>) -> tensor<2x64x16xf32>
  return %o : tensor<2x64x16xf32>
}
