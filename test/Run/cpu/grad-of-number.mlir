// The gradient of one number, small by chance: so were four samples of what cancels in
// it, with this seed, to which its error then related.
// RUN: flash-run %s --target=cpu --check --seed=1639645674 --fill=3=0@0 | FileCheck %s
// CHECK: check: ok

#set0 = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 4 == 0, i - j >= 0)>
func.func @attention(%q: tensor<3x4x64x80xf32>, %k: tensor<3x2x257x80xf32>, %v: tensor<3x2x257x192xf32>, %lengths: tensor<3xi32>, %captured: tensor<1xf32>, %do: tensor<3x4x64x192xf32>) -> (tensor<3x4x64x80xf32>, tensor<3x2x257x80xf32>, tensor<3x2x257x192xf32>, tensor<1xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.affine<#set0>) lengths(%lengths : tensor<3xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : index
    %g = tensor.extract %captured[%zero] : tensor<1xf32>
    %r = arith.mulf %s, %g : f32
    flash.yield %r : f32
  }
      : (tensor<3x4x64x80xf32>, tensor<3x2x257x80xf32>, tensor<3x2x257x192xf32>) -> (tensor<3x4x64x192xf32>, tensor<3x4x64xf32>)
  %grad_q, %grad_k, %grad_v, %grad_captured = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.affine<#set0>) lengths(%lengths : tensor<3xi32>) wrt(%captured : tensor<1xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : index
    %g = tensor.extract %captured[%zero] : tensor<1xf32>
    %r = arith.mulf %s, %g : f32
    flash.yield %r : f32
  }
      : (tensor<3x4x64x80xf32>, tensor<3x2x257x80xf32>, tensor<3x2x257x192xf32>, tensor<3x4x64x192xf32>, tensor<3x4x64xf32>, tensor<3x4x64x192xf32>) -> (tensor<3x4x64x80xf32>, tensor<3x2x257x80xf32>, tensor<3x2x257x192xf32>, tensor<1xf32>)
  return %grad_q, %grad_k, %grad_v, %grad_captured : tensor<3x4x64x80xf32>, tensor<3x2x257x80xf32>, tensor<3x2x257x192xf32>, tensor<1xf32>
}
