// Loops that are rotated, of one program of five products: one of them reads what the consumers put into a ring
// behind the products that lead.
// RUN: flash-run %s --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok
!t = tensor<1x128x64xf16>
!l = tensor<1x128xf32>
func.func @f(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.full)
      schedule(<key_tile = 64, query_step = 64, products = 5, features = specialize_warps|overlap>)
      : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
