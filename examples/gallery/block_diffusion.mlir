// Block diffusion: the first half of the row is noised, the second clean.
// Noised blocks of 16 see themselves and the clean blocks before them; clean
// blocks see the clean ones up to themselves.
#same = affine_set<(b, h, i, j)[nq, nk] : (63 - i >= 0, i floordiv 16 - j floordiv 16 == 0)>
#before = affine_set<(b, h, i, j)[nq, nk] : (63 - i >= 0, j - 64 >= 0, i floordiv 16 - (j - 64) floordiv 16 - 1 >= 0)>
#clean = affine_set<(b, h, i, j)[nq, nk] : (i - 64 >= 0, j - 64 >= 0, i floordiv 16 - j floordiv 16 >= 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.any_of<[#flash.affine<#same>, #flash.affine<#before>, #flash.affine<#clean>]>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
