// Loops over tiles of queries are split as those over tiles of keys are, by the
// transposed mask.
// RUN: flash-opt %s --flash-tile-grad --flash-refine-visits --convert-flash-to-scf --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #flash.schedule<query_tile = 64, key_tile = 128>
!q = tensor<2x2x1024x64xf16>
!l = tensor<2x2x1024xf32>

// The keys of a tile are seen by the queries on the diagonal, in part, and by all
// that come after.

// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0) -> ((d0 floordiv 64) * 64)>
// CHECK-LABEL: func @causal(
// CHECK:         flash.query_grad_step
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]]) =
// CHECK:           %[[FROM:.*]] = affine.apply #[[FIRST]](%[[J]])
// CHECK:           scf.for %{{.*}} = %[[FROM]] to %[[FULL:.*]] step %c64
// CHECK:             flash.key_grad_step {{.*}} mask(#flash.causal)
// CHECK:           scf.for %{{.*}} = %[[FULL]] to %c1024 step %c64
// CHECK:             flash.key_grad_step
// CHECK-NOT:           mask
// CHECK-SAME:          schedule
// CHECK-NOT:       flash.key_grad_step
func.func @causal(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 128>
!q = tensor<1x1x300x64xf16>
!k = tensor<1x1x256x64xf16>
!l = tensor<1x1x300xf32>

// Without a mask the ragged last tile alone is split off.

// CHECK-LABEL: func @ragged(
// CHECK:         flash.query_grad_step
// CHECK:         scf.for %{{.*}} = %c0 to %c256 step %c64
// CHECK-NOT:       tensor.pad
// CHECK:           flash.key_grad_step
// CHECK-NOT:         queries(
// CHECK-SAME:        schedule
// CHECK:         tensor.pad
// CHECK:         flash.key_grad_step {{.*}} queries(%c44)
func.func @ragged(%q: !q, %k: !k, %lse: !l) -> (!q, !k, !k) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(#schedule)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %0#0, %0#1, %0#2 : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5, stages = 2, features = specialize_warps>
!q = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>

// Queries that do not exist are zeros, which add nothing, so that there is no loop for them. Keys that do not exist are left out of the
// gradients of queries, if there are any: in a loop of its own.

// CHECK-LABEL: func @zeros(
// CHECK:         %[[WHOLE:.*]] = arith.cmpi sge, %[[KEYS:.*]], %c64
// CHECK:         %[[TILES:.*]] = arith.select %[[WHOLE]], %{{.*}}, %c0
// CHECK:         %[[END:.*]] = affine.apply #{{.*}}(%[[TILES]])
// CHECK:         scf.for %{{.*}} = %c0 to %[[END]] step %c64
// CHECK-COUNT-3:   tensor.pad
// CHECK:           flash.key_grad_step
// CHECK-NOT:         keys(
// CHECK-SAME:        neutral_padding scale
// CHECK:         scf.for %{{.*}} = %[[END]] to %{{.*}} step %c64
// CHECK-COUNT-3:   tensor.pad
// CHECK:           flash.key_grad_step
// CHECK-SAME:        keys(%[[KEYS]]) neutral_padding
// CHECK-NOT:       flash.key_grad_step
func.func @zeros(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 128>
#even = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 4 == 0, i - j >= 0)>
!q = tensor<2x2x1024x64xf16>
!l = tensor<2x2x1024xf32>

// Where full tiles are no range, each tile has a condition.

// CHECK-LABEL: func @dilated(
// CHECK:         flash.query_grad_step
// CHECK:         scf.for %{{.*}} = %{{.*}} to %c1024 step %c64
// CHECK:           flash.key_grad_step {{.*}} mask(#flash.affine
func.func @dilated(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#even>) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x2x1024x64xf16>
!k = tensor<2x2x1024x64xf16>
!l = tensor<2x2x1024xf32>

// A contribution to a tile of queries is among those of the tiles of keys that
// visit it: those of a window, up to the batch's length.

// CHECK-DAG:   #[[LO:.*]] = affine_map<(d0) -> (0, d0 floordiv 64 - 2)>
// CHECK-DAG:   #[[HI:.*]] = affine_map<(d0, d1) -> (d0 floordiv 64 + 1, d1 ceildiv 64)>
// CHECK-LABEL: func @contributions(
// CHECK:         %[[LENGTH:.*]] = arith.minsi
// CHECK:         scf.for %[[I:[^ ]*]] = {{.*}}tensor<2x2x16x64x64xf32>
// CHECK:           flash.key_grad_step
// CHECK:           %[[FIRST:.*]] = affine.max #[[LO]](%[[I]])
// CHECK:           %[[END:.*]] = affine.min #[[HI]](%[[I]], %[[LENGTH]])
// CHECK:           flash.contribute %{{.*}} among(%[[FIRST]] to %[[END]])
func.func @contributions(%q: !q, %k: !k, %lse: !l, %n: tensor<2xi32>) -> (!q, !k, !k) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q mask(#flash.window<left = 65, right = 0>) lengths(%n : tensor<2xi32>) schedule(#schedule)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %0#0, %0#1, %0#2 : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5, stages = 2, features = specialize_warps>
!q = tensor<1x1x?x64xf16>
!l = tensor<1x1x?xf32>

// A mask that is aligned to the ends leaves out the keys that do not exist, so that a step with it needs none; the whole tiles,
// which have no mask, still do.

// CHECK-LABEL: func @bounded(
// CHECK:         flash.key_grad_step
// CHECK-NOT:       keys(
// CHECK-SAME:      neutral_padding scale(1.250000e-01) mask(#flash.causal)
// CHECK:         flash.key_grad_step
// CHECK-NOT:       keys(
// CHECK-SAME:      neutral_padding scale(1.250000e-01) schedule
// CHECK:         flash.key_grad_step
// CHECK-SAME:      keys(%{{.*}}) neutral_padding scale(1.250000e-01) schedule
// CHECK-NOT:     flash.key_grad_step
func.func @bounded(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}
