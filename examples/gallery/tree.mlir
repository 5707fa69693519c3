// Tree: guesses of a decoder, of which several may follow one token. A token
// sees its ancestors.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %ancestors: tensor<128x128xi8>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %is_ancestor = tensor.extract %ancestors[%i, %j] : tensor<128x128xi8>
    %zero = arith.constant 0 : i8
    %keep = arith.cmpi ne, %is_ancestor, %zero : i8
    flash.yield %s keep %keep : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
