// ALiBi: scores fall with the distance, by a slope of each head.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %slopes: tensor<4xf32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %after = arith.subi %i, %j : index
    %before = arith.subi %j, %i : index
    %distance = arith.maxsi %after, %before : index
    %integer = arith.index_cast %distance : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %penalty = arith.mulf %slope, %number : f32
    %r = arith.subf %s, %penalty : f32
    flash.yield %r : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
