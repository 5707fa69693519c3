// Lists of blocks that the caller gives, of sequences: a list for each tile of queries that the longest one might have.
// DEFINE: %{sizes} = --shape 0=1x4x200x64 --shape 1=1x2x300x64 --shape 2=1x2x300x48 --shape 5=1x4x200x48 --shape 6=3x4x4x6 --shape 7=3x4x4x2 --shape 8=3x4x10x4 --shape 9=3x4x10x2
// DEFINE: %{offsets} = --fill 3=0@0 --fill 3=120@1 --fill 3=121@2 --fill 3=200@3 --fill 4=0@0 --fill 4=130@1 --fill 4=130@2 --fill 4=300@3
// RUN: flash-run %s --function=packed --target=cpu,emulate,emulate:sm_90a %{sizes} %{offsets} --check
// DEFINE: %{padded} = --shape 0=3x4x200x64 --shape 1=3x2x300x64 --fill 2=120@0 --fill 2=0@1 --fill 2=200@2 --fill 3=140@0 --fill 3=300@1 --fill 3=0@2 --shape 5=1x4x4x6 --shape 6=1x4x4x2 --shape 7=1x4x10x4 --shape 8=1x4x10x2
// RUN: flash-run %s --function=padded --target=cpu,emulate,emulate:sm_90a %{padded} --check

!q = tensor<1x4x?x64xf16>
!k = tensor<1x2x?x64xf16>
!v = tensor<1x2x?x48xf16>
!o = tensor<1x4x?x48xf16>
!qs = tensor<3x4x?x64xf16>
!ks = tensor<3x2x?x64xf16>
!vs = tensor<3x2x?x48xf16>
!os = tensor<3x4x?x48xf16>
!ls = tensor<3x4x?xf32>
!n = tensor<3xi32>
!list = tensor<?x?x?x?xi32>
func.func @packed(%q: !q, %k: !k, %v: !v, %of_queries: tensor<4xi32>, %of_keys: tensor<4xi64>, %do: !o, %list: !list, %counts: !list, %queries: !list, %query_counts: !list)
    -> (!o, !q, !k, !v) {
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<4xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<4xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<4xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<4xi32> -> !os, !n
  %t = tensor.dim %q, %c2 : !q
  %s = tensor.dim %k, %c2 : !k
  %eo = tensor.empty(%t) : !o
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) blocks(%list, %counts : !list, !list) of [64, 32]
      : (!qs, !ks, !vs) -> (!os, !ls)
  %o = flash.pack %os by %of_queries into %eo : !os, tensor<4xi32> into !o
  %again, %na = flash.unpack %o by %of_queries : !o, tensor<4xi32> -> !os, !n
  %0:3 = flash.attention_grad %qs, %ks, %vs, %again, %ls, %dos mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n)
      blocks(%list, %counts : !list, !list) query_blocks(%queries, %query_counts : !list, !list) of [64, 32]
      : (!qs, !ks, !vs, !os, !ls, !os) -> (!qs, !ks, !vs)
  %eq = tensor.empty(%t) : !q
  %ek = tensor.empty(%s) : !k
  %ev = tensor.empty(%s) : !v
  %dq = flash.pack %0#0 by %of_queries into %eq : !qs, tensor<4xi32> into !q
  %dk = flash.pack %0#1 by %of_keys into %ek : !ks, tensor<4xi64> into !k
  %dv = flash.pack %0#2 by %of_keys into %ev : !vs, tensor<4xi64> into !v
  return %o, %dq, %dk, %dv : !o, !q, !k, !v
}

func.func @padded(%q: !qs, %k: !ks, %nq: !n, %nk: !n, %do: tensor<3x4x200x64xf16>, %list: !list, %counts: !list, %queries: !list, %query_counts: !list)
    -> (!qs, !qs, !ks, !ks) {
  %o, %lse = flash.attention %q, %k, %k query_lengths(%nq : !n) key_lengths(%nk : !n) blocks(%list, %counts : !list, !list) of [64, 32]
      : (!qs, !ks, !ks) -> (!qs, !ls)
  %g = tensor.cast %do : tensor<3x4x200x64xf16> to !qs
  %0:3 = flash.attention_grad %q, %k, %k, %o, %lse, %g query_lengths(%nq : !n) key_lengths(%nk : !n)
      blocks(%list, %counts : !list, !list) query_blocks(%queries, %query_counts : !list, !list) of [64, 32]
      : (!qs, !ks, !ks, !qs, !ls, !qs) -> (!qs, !ks, !ks)
  return %o, %0#0, %0#1, %0#2 : !qs, !qs, !ks, !ks
}
