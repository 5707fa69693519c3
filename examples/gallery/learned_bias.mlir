// A learned bias for each head and distance.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %table: tensor<4x255xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %middle = arith.constant 127 : index
    %distance = arith.subi %i, %j : index
    %place = arith.addi %distance, %middle : index
    %bias = tensor.extract %table[%h, %place] : tensor<4x255xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
