// Stripes (vertical and slash): a query sees the 15 keys before it, and every
// sixteenth key further back.
#stripes = affine_set<(b, h, i, j)[nq, nk] : (j mod 16 == 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 15>, #flash.affine<#stripes>]>]>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
