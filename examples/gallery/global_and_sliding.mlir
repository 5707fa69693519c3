// Global and sliding (Longformer): the first 4 positions see all and are seen
// by all; the others see 20 to each side.
#first = affine_set<(b, h, i, j)[nq, nk] : (3 - i >= 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.any_of<[#flash.affine<#first>, #flash.prefix<4>, #flash.window<left = 20, right = 20>]>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
