func.func @attention(%q: tensor<2x4x70x96xf32>, %k: tensor<2x2x131x96xf32>, %v: tensor<2x2x131x24xf32>, %s: tensor<4xf32>, %bias: tensor<131xf32>, %n: tensor<2xi32>) -> (tensor<2x4x70x24xf32>, tensor<2x4x70xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) sink(%s : tensor<4xf32>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = tensor.extract %bias[%j] : tensor<131xf32>
    %z = arith.addf %x, %y : f32
    flash.yield %z : f32
  } : (tensor<2x4x70x96xf32>, tensor<2x2x131x96xf32>, tensor<2x2x131x24xf32>) -> (tensor<2x4x70x24xf32>, tensor<2x4x70xf32>)
  return %o, %l : tensor<2x4x70x24xf32>, tensor<2x4x70xf32>
}
