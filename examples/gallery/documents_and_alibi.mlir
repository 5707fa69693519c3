// Packed documents with ALiBi, and a window of 40.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %ids: tensor<128xi32>, %slopes: tensor<4xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.window<left = 40, right = 0>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_query = tensor.extract %ids[%i] : tensor<128xi32>
    %of_key = tensor.extract %ids[%j] : tensor<128xi32>
    %same = arith.cmpi eq, %of_query, %of_key : i32
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %distance = arith.subi %i, %j : index
    %integer = arith.index_cast %distance : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %penalty = arith.mulf %slope, %number : f32
    %r = arith.subf %s, %penalty : f32
    flash.yield %r keep %same : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
