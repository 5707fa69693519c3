// Splits of the keys of sequences: of rows that lie behind each other, with heads that share tiles, and of batches that are not packed.
// Some keys are of no sequence, and NaN; some sequences have no queries, or no keys.
// DEFINE: %{offsets} = --fill 3=0@0 --fill 3=1@1 --fill 3=2@2 --fill 3=2@3 --fill 3=7@4 --fill 4=0@0 --fill 4=300@1 --fill 4=301@2 --fill 4=400@3 --fill 4=960@4
// DEFINE: %{packed} = --function=packed --shape 0=1x8x7x64 --shape 1=1x2x1000x64 --shape 2=1x2x1000x48 %{offsets} --fill 1=nan@960 --fill 2=nan@999
// RUN: flash-run %s --target=emulate %{packed} --schedule="num_splits=3" --check
// RUN: flash-run %s --target=emulate %{packed} --schedule="split_ctas=64,packed_heads=4" --check
// RUN: flash-run %s --target=emulate %{packed} --schedule="split_ctas=4" --check
// RUN: flash-run %s --target=emulate:sm_90a %{packed} --schedule="num_splits=5,packed_heads=2" --check
// RUN: flash-run %s --target=emulate:sm_90a %{packed} --schedule="split_ctas=132" --check
// RUN: flash-run %s --target=emulate:sm_90a %{packed} --schedule="key_tile=64,split_keys=128,packed_heads=4" --check
// One new row of each sequence beside a batch of keys of which each has a number, with a sink.
// DEFINE: %{decode} = --function=decode --shape 0=1x8x5x64 --shape 1=5x2x500x64 --fill 2=0@0 --fill 2=1@1 --fill 2=2@2 --fill 2=3@3 --fill 2=4@4 --fill 2=5@5
// RUN: flash-run %s --target=emulate %{decode} --schedule="num_splits=4,packed_heads=4" --check
// RUN: flash-run %s --target=emulate:sm_90a %{decode} --schedule="split_ctas=132,packed_heads=4" --check
// RUN: flash-run %s --target=emulate:sm_90a %{decode} --check
// Lengths on both sides of splits, and none.
// DEFINE: %{lengths} = --fill 3=500@0 --fill 3=0@1 --fill 3=128@2 --fill 3=129@3 --fill 3=1@4
// RUN: flash-run %s --target=emulate %{decode} %{lengths} --schedule="key_tile=32,split_keys=128" --check
// RUN: flash-run %s --target=emulate:sm_90a %{decode} %{lengths} --schedule="key_tile=64,split_keys=64,packed_heads=4" --check
// RUN: flash-run %s --target=cpu %{decode} --check
// DEFINE: %{padded} = --function=padded --shape 0=3x4x70x64 --shape 1=3x2x600x64 --fill 2=66@0 --fill 2=0@1 --fill 2=3@2 --fill 3=600@0 --fill 3=50@1 --fill 3=0@2
// RUN: flash-run %s --target=emulate %{padded} --schedule="num_splits=3" --check
// RUN: flash-run %s --target=emulate:sm_90a %{padded} --schedule="num_splits=2" --check
// RUN: flash-run %s --target=emulate:sm_90a %{padded} --schedule="key_tile=64,split_keys=128" --check
// RUN: flash-run %s --target=emulate --function=mixed --shape 0=1x8x7x64 --check

!q = tensor<1x8x?x64xf16>
!k = tensor<1x2x?x64xf16>
!v = tensor<1x2x?x48xf16>
!o = tensor<1x8x?x48xf16>
!l = tensor<1x8x?xf32>
!qs = tensor<?x8x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!vs = tensor<?x2x?x48xf16>
!os = tensor<?x8x?x48xf16>
!ls = tensor<?x8x?xf32>
!n = tensor<?xi32>
func.func @packed(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>) -> (!o, !l) {
  %c2 = arith.constant 2 : index
  %of = tensor.cast %of_queries : tensor<5xi32> to tensor<?xi32>
  %to = tensor.cast %of_keys : tensor<5xi64> to tensor<?xi64>
  %qs, %nq = flash.unpack %q by %of : !q, tensor<?xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %to : !k, tensor<?xi64> -> !ks, !n
  %vs, %nv = flash.unpack %v by %to : !v, tensor<?xi64> -> !vs, !n
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) : (!qs, !ks, !vs) -> (!os, !ls)
  %t = tensor.dim %q, %c2 : !q
  %eo = tensor.empty(%t) : !o
  %el = tensor.empty(%t) : !l
  %o = flash.pack %os by %of into %eo : !os, tensor<?xi32> into !o
  %l = flash.pack %ls by %of into %el : !ls, tensor<?xi32> into !l
  return %o, %l : !o, !l
}

!kb = tensor<?x2x?x64xf16>
func.func @decode(%q: !q, %k: !kb, %of: tensor<6xi32>, %lengths: tensor<5xi32>, %sink: tensor<8xf32>) -> !q {
  %c2 = arith.constant 2 : index
  %offsets = tensor.cast %of : tensor<6xi32> to tensor<?xi32>
  %n = tensor.cast %lengths : tensor<5xi32> to !n
  %qs, %nq = flash.unpack %q by %offsets : !q, tensor<?xi32> -> !qs, !n
  %os = flash.attention %qs, %k, %k lengths(%n : !n) query_lengths(%nq : !n) sink(%sink : tensor<8xf32>) : (!qs, !kb, !kb) -> !qs
  %t = tensor.dim %q, %c2 : !q
  %e = tensor.empty(%t) : !q
  %o = flash.pack %os by %offsets into %e : !qs, tensor<?xi32> into !q
  return %o : !q
}

!pq = tensor<3x4x?x64xf16>
!pk = tensor<3x2x?x64xf16>
!pl = tensor<3x4x?xf32>
!pn = tensor<3xi32>
func.func @padded(%q: !pq, %k: !pk, %nq: !pn, %nk: !pn) -> (!pq, !pl) {
  %o, %lse = flash.attention %q, %k, %k mask(#flash.window<left = 40>) query_lengths(%nq : !pn) key_lengths(%nk : !pn) : (!pq, !pk, !pk) -> (!pq, !pl)
  return %o, %lse : !pq, !pl
}

func.func @mixed(%q: !q, %of: tensor<5xi32>) -> (!q, tensor<4x8x?xf32>) {
  %c2 = arith.constant 2 : index
  %qs, %n = flash.unpack %q by %of : !q, tensor<5xi32> -> tensor<4x8x?x64xf16>, tensor<4xi32>
  %os, %ls = flash.attention %qs, %qs, %qs query_lengths(%n : tensor<4xi32>) key_lengths(%n : tensor<4xi32>)
      : (tensor<4x8x?x64xf16>, tensor<4x8x?x64xf16>, tensor<4x8x?x64xf16>) -> (tensor<4x8x?x64xf16>, tensor<4x8x?xf32>)
  %t = tensor.dim %q, %c2 : !q
  %e = tensor.empty(%t) : !q
  %o = flash.pack %os by %of into %e : tensor<4x8x?x64xf16>, tensor<5xi32> into !q
  return %o, %ls : !q, tensor<4x8x?xf32>
}
