// Sinks with a window: each head has a logit without a value, and the first 4
// keys stay in sight.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %sink: tensor<4xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 31>, #flash.prefix<4>]>]>) sink(%sink : tensor<4xf32>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
