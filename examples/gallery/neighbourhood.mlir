// Neighbourhood (NATTEN): pixels of a picture 16 wide see those at most 2 rows
// and 2 columns away.
#near = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 16 - j floordiv 16 + 2 >= 0, j floordiv 16 - i floordiv 16 + 2 >= 0,
                                           i mod 16 - j mod 16 + 2 >= 0, j mod 16 - i mod 16 + 2 >= 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.affine<#near>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
