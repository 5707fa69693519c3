// Sliding window: a query sees its own position and the 31 before it.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.window<left = 31, right = 0>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
