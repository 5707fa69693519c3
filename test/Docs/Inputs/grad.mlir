!x = tensor<1x16x4096x128xf16>
!l = tensor<1x16x4096xf32>
func.func @gradients(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !l, %do: !x) -> (!x, !x, !x) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do schedule(<features = specialize_warps|bulk_store>)
      : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}
