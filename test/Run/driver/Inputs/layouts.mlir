// Functions of one file: [B, H, N, D], one query of grouped heads, rank 3, and what
// C would not take as names.
!q = tensor<?x4x?x64xf16>
!one = tensor<?x6x1x64xf16>
!few = tensor<?x2x?x64xf16>
!flat = tensor<?x?x64xf32>
func.func @prefill(%q: !q, %k: !q, %v: !q) -> (!q, tensor<?x4x?xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) : (!q, !q, !q) -> (!q, tensor<?x4x?xf32>)
  return %o, %lse : !q, tensor<?x4x?xf32>
}
func.func @decode(%int: !one, %attention.k: !few, %0: !few) -> !one {
  %o = flash.attention %int, %attention.k, %0 : (!one, !few, !few) -> !one
  return %o : !one
}
func.func @Decode(%decode_load: !flat, %result0: !flat) -> !flat {
  %o = flash.attention %decode_load, %result0, %result0 : (!flat, !flat, !flat) -> !flat
  return %o : !flat
}
func.func private @helper(%q: !q) -> !q {
  return %q : !q
}
