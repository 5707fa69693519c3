// One batch of two heads, 300 positions of 64 elements, causal.
!t = tensor<1x2x300x64xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %o = flash.attention %q, %k, %v mask(#flash.causal) : (!t, !t, !t) -> !t
  return %o : !t
}
