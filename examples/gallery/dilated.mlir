// Dilated: a query sees every third position of the 60 before it.
#dilated = affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0, j - i + 60 >= 0, (i - j) mod 3 == 0)>
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.affine<#dilated>)
      : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
