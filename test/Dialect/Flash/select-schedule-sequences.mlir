// What batches that are sequences of their own exclude.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule --split-input-file --verify-diagnostics
// RUN: not flash-opt %s --flash-select-schedule --split-input-file 2>&1 | FileCheck %s
// CHECK: cannot be scheduled: products = 5 without specialize_warps needs equal lengths in all batches, and takes no query_lengths and no key_lengths; choose products = 7

!t = tensor<2x4x512x64xf16>
!n = tensor<2xi32>
func.func @five(%q: !t, %l: tensor<2x4x512xf32>, %n: !n) -> (!t, !t, !t) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %l, %q query_lengths(%n : !n) schedule(<products = 5>)
      : (!t, !t, !t, !t, tensor<2x4x512xf32>, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}

// -----

!t = tensor<2x4x512x64xf16>
!n = tensor<2xi32>
func.func @map(%q: !t, %n: !n) -> !t {
  // expected-error @below {{cannot be scheduled: query_lengths and key_lengths exclude block_map}}
  %0 = flash.attention %q, %q, %q mask(#flash.causal) key_lengths(%n : !n) schedule(<block_map = 1>) : (!t, !t, !t) -> !t
  return %0 : !t
}

// -----

!m = tensor<1x4x?x64xf16>
!t = tensor<2x4x?x64xf16>
!n = tensor<2xi32>
func.func @splits(%m: !m, %offsets: tensor<3xi32>, %e: !m) -> (!m, tensor<2x4x?xf32>) {
  %q, %n = flash.unpack %m by %offsets : !m, tensor<3xi32> -> !t, !n
  // expected-error @below {{cannot be scheduled: splits of keys need packed queries with all results packed, or none; leave out num_splits, split_ctas and split_keys}}
  %o, %l = flash.attention %q, %q, %q query_lengths(%n : !n) key_lengths(%n : !n) schedule(<num_splits = 2>) : (!t, !t, !t) -> (!t, tensor<2x4x?xf32>)
  %p = flash.pack %o by %offsets into %e : !t, tensor<3xi32> into !m
  return %p, %l : !m, tensor<2x4x?xf32>
}

// -----

!m = tensor<1x4x?x64xf16>
!v = tensor<2x4x?x64xf16>
!n = tensor<2xi32>
func.func @claims(%m: !m, %offsets: tensor<3xi32>, %l: tensor<2x4x?xf32>) -> (!v, !v, !v) {
  %q, %n = flash.unpack %m by %offsets : !m, tensor<3xi32> -> !v, !n
  // expected-error @below {{cannot be scheduled: products = 5 claims its tiles by the counts of queries, which packed rows may have none of; write persistent|claim_tiles, or leave persistent out of the features}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %l, %q query_lengths(%n : !n) key_lengths(%n : !n)
      schedule(<products = 5, features = specialize_warps|persistent>) : (!v, !v, !v, !v, tensor<2x4x?xf32>, !v) -> (!v, !v, !v)
  return %0#0, %0#1, %0#2 : !v, !v, !v
}

// -----

// Without lengths this proposes a map, too.
#even = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 512 == 0)>
!t = tensor<2x4x2048x64xf16>
!n = tensor<2xi32>
func.func @holes(%q: !t, %l: tensor<2x4x2048xf32>, %n: !n) -> (!t, !t, !t) {
  // expected-error @below {{one range of tiles of keys, and the other way round; choose products = 7}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %l, %q mask(#flash.affine<#even>) query_lengths(%n : !n) schedule(<products = 5>)
      : (!t, !t, !t, !t, tensor<2x4x2048xf32>, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}
