!q = tensor<2x4x150x40xf16>
!k = tensor<2x2x190x40xf16>
!v = tensor<2x2x190x24xf16>
!o = tensor<2x4x150x24xf16>
!l = tensor<2x4x150xf32>
!b = tensor<4x339xf32>
func.func @grad(%q: !q, %k: !k, %v: !v, %bias: !b, %s: tensor<4xf32>, %do: !o) -> (!q, !k, !v, tensor<4xf32>, !b) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) sink(%s : tensor<4xf32>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 189 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %bias[%h, %at] : !b
    %r = arith.addf %x, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !v) -> (!o, !l)
  %0:5 = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) sink(%s : tensor<4xf32>) wrt(%bias : !b) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 189 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %bias[%h, %at] : !b
    %r = arith.addf %x, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v, tensor<4xf32>, !b)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : !q, !k, !v, tensor<4xf32>, !b
}
