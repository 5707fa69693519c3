// Sliding tiles (STA): a picture 16 wide in tiles of 4 by 4; all of a tile see
// the tiles next to it.
#near = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 64 - j floordiv 64 + 1 >= 0, j floordiv 64 - i floordiv 64 + 1 >= 0,
                                           (i mod 16) floordiv 4 - (j mod 16) floordiv 4 + 1 >= 0,
                                           (j mod 16) floordiv 4 - (i mod 16) floordiv 4 + 1 >= 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.affine<#near>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
