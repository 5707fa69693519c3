// Decay: what is d positions back counts gamma^d as much, with a gamma of each
// head.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %gammas: tensor<4xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %gamma = tensor.extract %gammas[%h] : tensor<4xf32>
    %log = math.log %gamma : f32
    %distance = arith.subi %i, %j : index
    %integer = arith.index_cast %distance : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %decay = arith.mulf %log, %number : f32
    %r = arith.addf %s, %decay : f32
    flash.yield %r : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
