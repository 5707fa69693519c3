// The gradients of one head of 256 queries and keys.
!x = tensor<1x1x256x64xf16>
!l = tensor<1x1x256xf32>
func.func @gradients(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !l, %do: !x) -> (!x, !x, !x) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}
