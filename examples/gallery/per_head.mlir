// A window of its own for each head.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %windows: tensor<4xi32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %window = tensor.extract %windows[%h] : tensor<4xi32>
    %distance = arith.subi %i, %j : index
    %narrow = arith.index_cast %distance : index to i32
    %keep = arith.cmpi sle, %narrow, %window : i32
    flash.yield %s keep %keep : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
