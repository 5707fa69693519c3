// Kernels that add in order take the tiles of a sequence of all heads before the next sequence's, and these in an order of the
// sequence's own, which depends on how long it is.
// RUN: flash-opt %s --flash-tile-grad --flash-refine-visits --convert-flash-to-scf=only-kernels --canonicalize --cse --split-input-file | FileCheck %s

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, products = 5, stages = 2, features = specialize_warps|persistent|claim_tiles>
!q = tensor<1x4x?x128xf16>
!k = tensor<1x2x?x128xf16>
!qs = tensor<?x4x?x128xf16>
!ks = tensor<?x2x?x128xf16>
!l = tensor<?x4x?xf32>
!n = tensor<?xi32>

// CHECK-DAG:   #[[NUMBER:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 - d1 * 2 + d2)>
// CHECK-DAG:   #[[ADDITIONS:.*]] = affine_map<(d0) -> ((d0 ceildiv 64) * 2)>
// CHECK-LABEL: func @masked(
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %[[ROW:.*]]) = (0, 0, 0) to (1, 2, %{{.*}}) step (1, 1, 128)
// CHECK:           %[[FLAT:.*]] = arith.divui %[[ROW]], %c128
// CHECK:           %[[FIRST:.*]] = arith.divui %{{.*}}, %c128
// CHECK:           %[[END:.*]] = arith.select
// CHECK:           %[[TILES:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK:           %[[N:.*]] = affine.apply #[[NUMBER]](%[[FLAT]], %[[FIRST]], %[[H]])
// Steps have 64 queries, whatever shape their sums have.
// CHECK:           %[[A:.*]] = affine.apply #[[ADDITIONS]](%{{.*}})
// CHECK:           %[[P:.*]]:2 = tile.position %[[N]] of(%c2, %[[TILES]]) reverse additions(%[[A]])
// CHECK:           %[[BEHIND:.*]] = arith.subi %{{.*}}, %[[P]]#1
// CHECK:           %[[RANK:.*]] = arith.subi %[[BEHIND]], %c1
// CHECK:           flash.contribute {{.*}} behind(%[[RANK]])
// CHECK:         } {{.*}}tile.order = #tile.order<heads_fastest>
func.func @masked(%q: !q, %k: !k, %of_q: !n, %of_k: !n, %lse: !l, %t: index, %s: index) -> (!q, !k, !k) {
  %qs, %nq = flash.unpack %q by %of_q : !q, !n -> !qs, !n
  %ks, %nk = flash.unpack %k by %of_k : !k, !n -> !ks, !n
  %dqs, %dks, %dvs = flash.attention_grad %qs, %ks, %ks, %qs, %lse, %qs mask(#flash.causal)
      query_lengths(%nq : !n) key_lengths(%nk : !n) schedule(#schedule) : (!qs, !ks, !ks, !qs, !l, !qs) -> (!qs, !ks, !ks)
  %eq = tensor.empty(%t) : !q
  %ek = tensor.empty(%s) : !k
  %dq = flash.pack %dqs by %of_q into %eq : !qs, !n into !q
  %dk = flash.pack %dks by %of_k into %ek : !ks, !n into !k
  %dv = flash.pack %dvs by %of_k into %ek : !ks, !n into !k
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5, stages = 2, features = specialize_warps|persistent|claim_tiles>
!q = tensor<1x4x?x64xf16>
!qs = tensor<?x4x?x64xf16>
!l = tensor<?x4x?xf32>
!n = tensor<?xi32>

// Without a mask the tiles of all heads that have the same number come together, as the loop takes them.

// CHECK-LABEL: func @full(
// CHECK-NOT:     tile.position
// CHECK:         flash.contribute {{.*}} among(
// CHECK:         } {{.*}}tile.order = #tile.order<heads_fastest>
func.func @full(%q: !q, %of_q: !n, %lse: !l, %t: index) -> (!q, !q, !q) {
  %qs, %nq = flash.unpack %q by %of_q : !q, !n -> !qs, !n
  %dqs, %dks, %dvs = flash.attention_grad %qs, %qs, %qs, %qs, %lse, %qs
      query_lengths(%nq : !n) key_lengths(%nq : !n) schedule(#schedule) : (!qs, !qs, !qs, !qs, !l, !qs) -> (!qs, !qs, !qs)
  %e = tensor.empty(%t) : !q
  %dq = flash.pack %dqs by %of_q into %e : !qs, !n into !q
  %dk = flash.pack %dks by %of_q into %e : !qs, !n into !q
  %dv = flash.pack %dvs by %of_q into %e : !qs, !n into !q
  return %dq, %dk, %dv : !q, !q, !q
}
