// Gradients of a table that is looked up by the id of a key and the head, of a number, and of a bias
// of pairs that is larger than there are queries and keys; of f16, f32 and bf16.
// RUN: flash-run %s --target=cpu,emulate,emulate:sm_90a --shape=6=2x110x133 --check | FileCheck %s --check-prefix=EACH
// EACH: cpu check: ok
// EACH-NEXT: emulate check: ok
// EACH-NEXT: emulate:sm_90a check: ok
!q = tensor<2x4x100x64xf16>
!k = tensor<2x2x130x64xf16>
!l = tensor<2x4x100xf32>
func.func @gradients(%q: !q, %k: !k, %v: !k, %table: tensor<8x4xf16>, %gain: tensor<f32>, %ids: tensor<130xi32>, %dense: tensor<2x?x?xbf16>, %do: !q) -> (!q, !k, !k, tensor<8x4xf16>, tensor<f32>, tensor<2x?x?xbf16>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %id = tensor.extract %ids[%j] : tensor<130xi32>
    %row = arith.index_cast %id : i32 to index
    %e = tensor.extract %table[%row, %h] : tensor<8x4xf16>
    %e32 = arith.extf %e : f16 to f32
    %g = tensor.extract %gain[] : tensor<f32>
    %d = tensor.extract %dense[%b, %i, %j] : tensor<2x?x?xbf16>
    %d32 = arith.extf %d : bf16 to f32
    %t = arith.mulf %s, %g : f32
    %u = arith.addf %t, %e32 : f32
    %r = arith.addf %u, %d32 : f32
    flash.yield %r : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dt, %dg, %dd = flash.attention_grad %q, %k, %v, %o, %l, %do mask(#flash.causal) wrt(%table, %gain, %dense : tensor<8x4xf16>, tensor<f32>, tensor<2x?x?xbf16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %id = tensor.extract %ids[%j] : tensor<130xi32>
    %row = arith.index_cast %id : i32 to index
    %e = tensor.extract %table[%row, %h] : tensor<8x4xf16>
    %e32 = arith.extf %e : f16 to f32
    %g = tensor.extract %gain[] : tensor<f32>
    %d = tensor.extract %dense[%b, %i, %j] : tensor<2x?x?xbf16>
    %d32 = arith.extf %d : bf16 to f32
    %t = arith.mulf %s, %g : f32
    %u = arith.addf %t, %e32 : f32
    %r = arith.addf %u, %d32 : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<8x4xf16>, tensor<f32>, tensor<2x?x?xbf16>)
  return %dq, %dk, %dv, %dt, %dg, %dd : !q, !k, !k, tensor<8x4xf16>, tensor<f32>, tensor<2x?x?xbf16>
}
