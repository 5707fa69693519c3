// The reference of keys whose sizes are known behind a cast, and of the gradients.
// RUN: flash-run %s --function=forward --target=cpu,emulate:sm_90a --check
// RUN: flash-run %s --function=backward --target=cpu,emulate:sm_90a --check

!q = tensor<1x2x5x64xf16>
!k = tensor<1x2x70x64xf16>
!open = tensor<1x?x?x64xf16>
func.func @forward(%q: !q, %k: !k) -> !q {
  %o = tensor.cast %k : !k to !open
  %r = flash.attention %q, %o, %o : (!q, !open, !open) -> !q
  return %r : !q
}

func.func @backward(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !open, !open) {
  %ko = tensor.cast %k : !k to !open
  %vo = tensor.cast %v : !k to !open
  %r, %l = flash.attention %q, %ko, %vo : (!q, !open, !open) -> (!q, tensor<1x2x5xf32>)
  %dq, %dk, %dv = flash.attention_grad %q, %ko, %vo, %r, %l, %do : (!q, !open, !open, !q, tensor<1x2x5xf32>, !q) -> (!q, !open, !open)
  return %dq, %dk, %dv : !q, !open, !open
}
