!t = tensor<1x2x64x16xf32>
!l = tensor<1x2x64xf32>
func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !l, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
