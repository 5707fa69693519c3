// What docs/one-step.md shows of a tile of keys: the gradients of causal.mlir.
!x = tensor<1x16x1024x64xf16>
!l = tensor<1x16x1024xf32>
func.func @gradients(%q: !x, %k: !x, %v: !x, %o: !x, %lse: !l, %do: !x) -> (!x, !x, !x) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}
