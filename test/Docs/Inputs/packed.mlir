// What docs/one-step.md shows of packed rows: causal.mlir for sequences that lie behind each other.
!memory = tensor<1x16x?x64xf16>
!view = tensor<?x16x?x64xf16>
!offsets = tensor<?xi32>
func.func @attention(%q: !memory, %k: !memory, %v: !memory, %offsets: !offsets) -> !memory {
  %qs, %nq = flash.unpack %q by %offsets : !memory, !offsets -> !view, !offsets
  %ks, %nk = flash.unpack %k by %offsets : !memory, !offsets -> !view, !offsets
  %vs, %nv = flash.unpack %v by %offsets : !memory, !offsets -> !view, !offsets
  %o = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !offsets) key_lengths(%nk : !offsets) : (!view, !view, !view) -> !view
  %two = arith.constant 2 : index
  %rows = tensor.dim %q, %two : !memory
  %empty = tensor.empty(%rows) : !memory
  %packed = flash.pack %o by %offsets into %empty : !view, !offsets into !memory
  return %packed : !memory
}
