// RUN: flash-opt %s --flash-tile-naive --split-input-file --verify-diagnostics
func.func @f(%q: tensor<2x64x16xf32>) -> tensor<2x64x16xf32> {
  // expected-error @below {{rank}}
  %o = flash.attention %q, %q, %q : (tensor<2x64x16xf32>, tensor<2x64x16xf32>, tensor<2x64x16xf32>) -> tensor<2x64x16xf32>
  return %o : tensor<2x64x16xf32>
}

// -----

func.func @f(%q: tensor<1x2x5x16xf32>, %k: tensor<1x2x0x16xf32>) -> tensor<1x2x5x16xf32> {
  // expected-error @below {{has no scores, which flash-tile-naive stores: it needs at least one query and one key}}
  %o = flash.attention %q, %k, %k : (tensor<1x2x5x16xf32>, tensor<1x2x0x16xf32>, tensor<1x2x0x16xf32>) -> tensor<1x2x5x16xf32>
  return %o : tensor<1x2x5x16xf32>
}
