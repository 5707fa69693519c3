// Errors of gradients that are 0 up to rounding are relative to what cancels in the packed rows, however many sequences are empty: one has
// a query and a key, and 4000 have none.
// RUN: flash-run %s --target=cpu --shape 3=4002 --fill 3=1 --fill 3=0@0 --seed 2 --check
// RUN: flash-run %s --target=emulate --shape 3=4002 --fill 3=1 --fill 3=0@0 --seed 2 --check

!x = tensor<1x4x1x64xf32>
!xs = tensor<?x4x1x64xf32>
!l = tensor<?x4x1xf32>
!n = tensor<?xi32>
func.func @packed(%q: !x, %k: !x, %v: !x, %offsets: !n, %do: !x) -> (!x, tensor<1x4x?x64xf32>, !x) {
  %qs, %nq = flash.unpack %q by %offsets : !x, !n -> !xs, !n
  %ks, %nk = flash.unpack %k by %offsets : !x, !n -> !xs, !n
  %vs, %nv = flash.unpack %v by %offsets : !x, !n -> !xs, !n
  %dos, %no = flash.unpack %do by %offsets : !x, !n -> !xs, !n
  %os, %ls = flash.attention %qs, %ks, %vs query_lengths(%nq : !n) key_lengths(%nk : !n) : (!xs, !xs, !xs) -> (!xs, !l)
  %dqs, %dks, %dvs = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos query_lengths(%nq : !n) key_lengths(%nk : !n)
      : (!xs, !xs, !xs, !xs, !l, !xs) -> (!xs, !xs, !xs)
  %e = tensor.empty() : !x
  %dq = flash.pack %dqs by %offsets into %e : !xs, !n into !x
  %dk = flash.pack %dks by %offsets into %e : !xs, !n into !x
  %dv = flash.pack %dvs by %offsets into %e : !xs, !n into !x
  %cast = tensor.cast %dk : !x to tensor<1x4x?x64xf32>
  return %dq, %cast, %dv : !x, tensor<1x4x?x64xf32>, !x
}
