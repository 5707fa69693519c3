// Documents: sequences that are packed into one row, each causal, and apart
// from the others.
func.func @attention(%q: tensor<1x4x128x32xf32>, %k: tensor<1x4x128x32xf32>,
                     %v: tensor<1x4x128x32xf32>, %ids: tensor<128xi32>) -> tensor<1x4x128x32xf32> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_query = tensor.extract %ids[%i] : tensor<128xi32>
    %of_key = tensor.extract %ids[%j] : tensor<128xi32>
    %same = arith.cmpi eq, %of_query, %of_key : i32
    flash.yield %s keep %same : f32
  } : (tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>, tensor<1x4x128x32xf32>) -> tensor<1x4x128x32xf32>
  return %o : tensor<1x4x128x32xf32>
}
