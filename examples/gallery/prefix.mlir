// Prefix: all see the first 40 keys, which are the question; what follows is
// causal.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.any_of<[#flash.prefix<40>, #flash.causal]>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
