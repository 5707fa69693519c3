// Blocks take tiles of packed queries over a cache, in pages or not, from both halves: prompts and tokens at the same time. If the keys are
// packed, too, tiles that the mask makes longest go first. Blocks with roles that do not claim tiles
// have few queries of each sequence.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-refine-visits --split-input-file | FileCheck %s

!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @mixed(
// CHECK:         flash.kernel {{.*}} rows({{.*}} order(<halves>)
func.func @mixed(%q: !q, %of: !n, %k: tensor<?x2x16x64xf16>, %table: tensor<?x?xi32>, %n: !n, %e: !q) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, !n -> !qs, !n
  %ks = flash.unpage %k by %table lengths(%n : !n) : tensor<?x2x16x64xf16>, tensor<?x?xi32> -> !ks
  %os = flash.attention %qs, %ks, %ks mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%n : !n)
      schedule(<query_tile = 128, key_tile = 128, packed_heads = 2, features = specialize_warps|persistent|claim_tiles>) : (!qs, !ks, !ks) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}

// -----

!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @blocks(
// CHECK:         flash.kernel {{.*}} rows({{.*}} order(<heads_fastest>)
func.func @blocks(%q: !q, %of: !n, %k: tensor<?x2x16x64xf16>, %table: tensor<?x?xi32>, %n: !n, %e: !q) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, !n -> !qs, !n
  %ks = flash.unpage %k by %table lengths(%n : !n) : tensor<?x2x16x64xf16>, tensor<?x?xi32> -> !ks
  %os = flash.attention %qs, %ks, %ks mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%n : !n)
      schedule(<query_tile = 128, key_tile = 128, packed_heads = 2, features = specialize_warps>) : (!qs, !ks, !ks) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}

// -----

!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @without_roles(
// CHECK:         flash.kernel {{.*}} rows({{.*}} order(<halves>)
func.func @without_roles(%q: !q, %of: !n, %k: tensor<?x2x16x64xf16>, %table: tensor<?x?xi32>, %n: !n, %e: !q) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, !n -> !qs, !n
  %ks = flash.unpage %k by %table lengths(%n : !n) : tensor<?x2x16x64xf16>, tensor<?x?xi32> -> !ks
  %os = flash.attention %qs, %ks, %ks query_lengths(%nq : !n) key_lengths(%n : !n)
      schedule(<query_tile = 64, key_tile = 64>) : (!qs, !ks, !ks) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}

// -----

!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @contiguous(
// CHECK:         flash.kernel {{.*}} rows({{.*}} order(<halves>)
func.func @contiguous(%q: !q, %of: !n, %k: !ks, %n: !n, %e: !q) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, !n -> !qs, !n
  %os = flash.attention %qs, %k, %k mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%n : !n)
      schedule(<query_tile = 128, key_tile = 128, packed_heads = 2, features = specialize_warps|persistent|claim_tiles>) : (!qs, !ks, !ks) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}

// -----

// Splits of few queries are many blocks for each sequence.
!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!ks = tensor<?x2x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @splits(
// CHECK:         flash.kernel
// CHECK-NOT:     halves
func.func @splits(%q: !q, %of: !n, %k: tensor<?x2x16x64xf16>, %table: tensor<?x?xi32>, %n: !n, %e: !q) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, !n -> !qs, !n
  %ks = flash.unpage %k by %table lengths(%n : !n) : tensor<?x2x16x64xf16>, tensor<?x?xi32> -> !ks
  %os = flash.attention %qs, %ks, %ks mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%n : !n)
      schedule(<query_tile = 64, key_tile = 128, packed_heads = 2, num_splits = 2>) : (!qs, !ks, !ks) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}

// -----

!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!n = tensor<?xi32>
// CHECK-LABEL: func @prompts(
// CHECK:         flash.kernel {{.*}} rows({{.*}} order(<longest_first>)
func.func @prompts(%q: !q, %of: !n, %e: !q) -> !q {
  %qs, %n = flash.unpack %q by %of : !q, !n -> !qs, !n
  %os = flash.attention %qs, %qs, %qs mask(#flash.causal) query_lengths(%n : !n) key_lengths(%n : !n)
      schedule(<query_tile = 128, key_tile = 128, features = specialize_warps|persistent|claim_tiles>) : (!qs, !qs, !qs) -> !qs
  %o = flash.pack %os by %of into %e : !qs, !n into !q
  return %o : !q
}
