// Gradients of sequences that lie behind each other, of grouped heads with a mask and a sink; rows beyond a sequence are the next one's.
// RUN: flash-run %s --target=cpu --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --shape 5=1x4x301x48 --check
// RUN: flash-run %s --target=emulate --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --shape 5=1x4x301x48 --check --seed 2
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --shape 5=1x4x301x48 --check --seed 3
// Sequences without queries or without keys.
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --shape 5=1x4x30x48 --fill 3=0@1 --fill 4=0@2 --fill 4=0@1 --check
// One query and one key, whose gradients are 0 up to rounding.
// RUN: flash-run %s --target=emulate --shape 0=1x4x1x64 --shape 1=1x2x1x64 --shape 2=1x2x1x48 --shape 5=1x4x1x48 --fill 3=0@1 --fill 3=1@2 --fill 3=1@3 --fill 4=0@1 --fill 4=1@2 --fill 4=1@3 --check
// Sequences that all have no keys, or no queries: no tile is loaded of memory that is not there.
// RUN: flash-run %s --target=emulate --shape 0=1x4x30x64 --shape 1=1x2x0x64 --shape 2=1x2x0x48 --shape 5=1x4x30x48 --check
// RUN: flash-run %s --target=emulate --shape 0=1x4x0x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --shape 5=1x4x0x48 --check
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x30x64 --shape 1=1x2x0x64 --shape 2=1x2x0x48 --shape 5=1x4x30x48 --check
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x0x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --shape 5=1x4x0x48 --check
// Scores so low that the probability of a key of zeros, which would be there behind a sequence, is infinite; and NaN behind it.
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --shape 5=1x4x301x48 --fill 0=8 --fill 1=-8 --check
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --shape 5=1x4x301x48 --fill 3=0@0 --fill 3=70@1 --fill 3=70@2 --fill 3=149@3 --fill 3=150@4 --fill 4=0@0 --fill 4=90@1 --fill 4=100@2 --fill 4=199@3 --fill 4=200@4 --fill 0=nan@150 --fill 1=nan@200 --fill 2=inf@200 --fill 5=nan@150 --check

!q = tensor<1x4x?x64xf16>
!k = tensor<1x2x?x64xf16>
!v = tensor<1x2x?x48xf16>
!o = tensor<1x4x?x48xf16>
!qs = tensor<4x4x?x64xf16>
!ks = tensor<4x2x?x64xf16>
!vs = tensor<4x2x?x48xf16>
!os = tensor<4x4x?x48xf16>
!n = tensor<4xi32>
func.func @packed(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>, %do: !o, %sink: tensor<4xf32>)
    -> (!q, !k, !v, tensor<4xf32>) {
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> !vs, !n
  %dos, %no = flash.unpack %do by %of_queries : !o, tensor<5xi32> -> !os, !n
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) sink(%sink : tensor<4xf32>)
      : (!qs, !ks, !vs) -> (!os, tensor<4x4x?xf32>)
  %dqs, %dks, %dvs, %dsink = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.causal)
      query_lengths(%nq : !n) key_lengths(%nk : !n) sink(%sink : tensor<4xf32>)
      : (!qs, !ks, !vs, !os, tensor<4x4x?xf32>, !os) -> (!qs, !ks, !vs, tensor<4xf32>)
  %t = tensor.dim %q, %c2 : !q
  %s = tensor.dim %k, %c2 : !k
  %eq = tensor.empty(%t) : !q
  %ek = tensor.empty(%s) : !k
  %ev = tensor.empty(%s) : !v
  %dq = flash.pack %dqs by %of_queries into %eq : !qs, tensor<5xi32> into !q
  %dk = flash.pack %dks by %of_keys into %ek : !ks, tensor<5xi64> into !k
  %dv = flash.pack %dvs by %of_keys into %ev : !vs, tensor<5xi64> into !v
  return %dq, %dk, %dv, %dsink : !q, !k, !v, tensor<4xf32>
}
