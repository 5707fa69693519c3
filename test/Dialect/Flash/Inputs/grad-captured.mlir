!q = tensor<1x2x33x16xf16>
!l = tensor<1x2x33xf32>
func.func @grad(%q: !q, %lse: !l, %bias: tensor<33xf32>) {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q wrt(%bias : tensor<33xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<33xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<33xf32>)
  return
}
