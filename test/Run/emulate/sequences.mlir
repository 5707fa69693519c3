// Sequences that lie behind each other: queries and keys by offsets of their own, a mask aligned to the end of each sequence,
// scores by the sequence and the positions inside it. Rows of sequences are beside each other in tiles and in memory.
// RUN: flash-run %s --target=cpu --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --check
// RUN: flash-run %s --target=emulate --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --check --seed 2
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x301x64 --shape 1=1x2x400x64 --shape 2=1x2x400x48 --check --seed 3

// Sequences without queries, without keys and without either; all rows in one sequence; and heads that share a tile.
// RUN: flash-run %s --target=cpu --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --fill 3=0@1 --fill 3=0@2 --fill 4=0@2 --fill 4=0@1 --check
// RUN: flash-run %s --target=emulate --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --fill 3=0@1 --fill 3=0@2 --fill 4=0@1 --check
// RUN: flash-run %s --target=emulate:sm_90a --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --fill 3=0@1 --fill 3=30@2 --fill 3=30@3 --fill 4=0@1 --fill 4=40@2 --fill 4=40@3 --check
// RUN: flash-run %s --target=emulate --schedule=query_tile=16,key_tile=32,packed_heads=2 --shape 0=1x4x70x64 --shape 1=1x2x90x64 --shape 2=1x2x90x48 --check

// Rows before the first sequence and behind the last one, of which no result is defined.
// DEFINE: %{gaps} = --shape 0=1x4x500x64 --shape 1=1x2x90x64 --shape 2=1x2x90x48 --fill 3=290@0 --fill 3=291@1 --fill 3=300@2 --fill 3=300@3 --fill 3=310@4 --fill 4=85@4 --fill 0=nan@289 --fill 0=nan@310 --fill 1=nan@85 --fill 2=nan@85
// RUN: flash-run %s --target=cpu,emulate %{gaps} --check
// RUN: flash-run %s --target=emulate:sm_90a %{gaps} --check --seed 4

// RUN: not flash-run %s --target=cpu --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --fill 3=31@4 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: argument 3 says where sequences start among 30 rows, but offset 4 is 31; offsets do not decrease and are from 0 to 30
// RUN: not flash-run %s --target=cpu --shape 0=1x4x30x64 --shape 1=1x2x40x64 --shape 2=1x2x40x48 --fill 4=9@1 --fill 4=8@2 2>&1 | FileCheck %s --check-prefix=LESS
// LESS: argument 4 says where sequences start among 40 rows, but offset 2 is 8; offsets do not decrease and are from 0 to 40

!q = tensor<1x4x?x64xf16>
!k = tensor<1x2x?x64xf16>
!v = tensor<1x2x?x48xf16>
!o = tensor<1x4x?x48xf16>
!lse = tensor<1x4x?xf32>
func.func @packed(%q: !q, %k: !k, %v: !v, %of_queries: tensor<5xi32>, %of_keys: tensor<5xi64>) -> (!o, !lse) {
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<5xi32> -> tensor<4x4x?x64xf16>, tensor<4xi32>
  %ks, %nk = flash.unpack %k by %of_keys : !k, tensor<5xi64> -> tensor<4x2x?x64xf16>, tensor<4xi32>
  %vs, %nv = flash.unpack %v by %of_keys : !v, tensor<5xi64> -> tensor<4x2x?x48xf16>, tensor<4xi32>
  %os, %ls = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : tensor<4xi32>) key_lengths(%nk : tensor<4xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %batch = arith.index_cast %b : index to i32
    %slope = arith.sitofp %batch : i32 to f32
    %key = arith.index_cast %j : index to i32
    %at = arith.sitofp %key : i32 to f32
    %c = arith.constant 0.003 : f32
    %0 = arith.mulf %slope, %c : f32
    %1 = arith.mulf %0, %at : f32
    %r = arith.addf %s, %1 : f32
    flash.yield %r : f32
  } : (tensor<4x4x?x64xf16>, tensor<4x2x?x64xf16>, tensor<4x2x?x48xf16>) -> (tensor<4x4x?x48xf16>, tensor<4x4x?xf32>)
  %t = tensor.dim %q, %c2 : !q
  %e = tensor.empty(%t) : !o
  %f = tensor.empty(%t) : !lse
  %o = flash.pack %os by %of_queries into %e : tensor<4x4x?x48xf16>, tensor<5xi32> into !o
  %l = flash.pack %ls by %of_queries into %f : tensor<4x4x?xf32>, tensor<5xi32> into !lse
  return %o, %l : !o, !lse
}
