// Causal: a query sees the keys up to its own position.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
