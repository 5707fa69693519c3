// Loops of the gradients of captured tensors over pairs of tiles: along a diagonal, or of one pair.
// RUN: flash-opt %s --flash-tile-grad --flash-refine-visits --convert-flash-to-scf --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
!q = tensor<2x64x1024x64xf16>
!l = tensor<2x64x1024xf32>
!t = tensor<64x2047xf32>

// The distance of the tiles tells of nearly all of them whether they are visited, and whether they
// are whole: from 0 on, where diagonals begin, and behind it. No order is needed: diagonals do not grow.

// CHECK-DAG:   #[[DISTANCE:.*]] = affine_map<(d0) -> (d0 * 64)>
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<(d0, d1) -> (d0 - d1 * 64)>
// CHECK-LABEL: func @causal(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %[[N:.*]]) in (1, 64, 16)
// CHECK:           %[[D:.*]] = affine.apply #[[DISTANCE]](%[[N]])
// CHECK:           scf.for %{{.*}} = %c0 to %c2
// CHECK:             %[[VISITED:.*]] = arith.cmpi sge, %[[D]], %c0
// CHECK:             arith.select %[[VISITED]], %{{.*}}, %c0
// CHECK:             scf.for %[[I:.*]] = %{{.*}} to %[[WHOLE:.*]] step %c64
// CHECK:               affine.apply #[[KEYS]](%[[I]], %[[N]])
// CHECK:               flash.captured_grad_step
// CHECK-NOT:             mask
// CHECK-SAME:            schedule
// CHECK:             scf.for %{{.*}} = %[[WHOLE]] to %{{.*}} step %c64
// CHECK:               flash.captured_grad_step {{.*}} mask(#flash.causal)
// CHECK-NOT:         flash.captured_grad_step
// CHECK:           flash.schedule
// CHECK-NOT:       tile.order
// CHECK-SAME:      mapping
func.func @causal(%table: !t, %q: !q, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) schedule(#schedule) wrt(%table : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 1023 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %table[%h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
!q = tensor<2x4x100x64xf16>
!k = tensor<2x4x200x64xf16>
!l = tensor<2x4x100xf32>
!t = tensor<4x299xf32>

// Tiles before the last one of queries and of keys have all their rows.

// CHECK-LABEL: func @ragged(
// CHECK:         scf.forall {{.*}} in (1, 4, 5)
// CHECK:           scf.for %{{.*}} = %c0 to %c2
// CHECK:             scf.for
// CHECK-NOT:           tensor.pad
// CHECK:               flash.captured_grad_step
// CHECK-NOT:             queries(
// CHECK-NOT:             keys(
// CHECK-SAME:            scale
// CHECK:             scf.for
// CHECK:               flash.captured_grad_step {{.*}} queries(%{{.*}}) keys(
// CHECK-NOT:         flash.captured_grad_step
// CHECK:         return
func.func @ragged(%table: !t, %q: !q, %k: !k, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(#schedule) wrt(%table : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 199 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %table[%h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
#blocks = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 96 - j floordiv 96 == 0)>
!q = tensor<2x64x1024x64xf16>
!l = tensor<2x64x1024xf32>
!t = tensor<64x2047xf32>

// Where no range is left, each pair has a condition.

// CHECK-LABEL: func @no_range(
// CHECK:         scf.forall {{.*}} in (1, 64, 31)
// CHECK:           scf.for %{{.*}} = %c0 to %c2
// CHECK:             scf.for
// CHECK:               scf.if
// CHECK:                 scf.if
// CHECK:                   flash.captured_grad_step {{.*}} mask(#flash.affine
// CHECK:                 } else {
// CHECK:                   flash.captured_grad_step
// CHECK-NOT:                 mask
// CHECK-SAME:                schedule
func.func @no_range(%table: !t, %q: !q, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#blocks>) schedule(#schedule) wrt(%table : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 1023 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %table[%h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
!q = tensor<2x4x1000x64xf16>
!l = tensor<2x4x1000xf32>
!t = tensor<4x1000x1000xf32>

// Of one pair of tiles all batches are left out, or take the loop with the mask and the counts, or
// the other one.

// CHECK-LABEL: func @pair(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]], %[[J:.*]]) = {{.*}} to (1, 4, 1000, 1000)
// CHECK:           %[[QUERIES:.*]] = arith.cmpi sge, %{{.*}}, %c64
// CHECK:           %[[NEEDS_CARE:.*]] = arith.ori
// CHECK:           %[[ALL:.*]] = arith.select %{{.*}}, %c2, %c0
// CHECK:           %[[CAREFUL:.*]] = arith.select %[[NEEDS_CARE]], %[[ALL]], %c0
// CHECK:           scf.for %{{.*}} = %c0 to %[[CAREFUL]]
// CHECK:             flash.captured_grad_step {{.*}} queries({{.*}} keys({{.*}} mask(#flash.causal)
// CHECK:           %[[PLAIN:.*]] = arith.select %[[NEEDS_CARE]], %c0, %[[ALL]]
// CHECK:           scf.for %{{.*}} = %c0 to %[[PLAIN]]
// CHECK-NOT:         tensor.pad
// CHECK:             flash.captured_grad_step
// CHECK-NOT:           queries(
// CHECK-NOT:           mask
// CHECK-SAME:          schedule
// CHECK-NOT:       tile.order
// CHECK:           mapping
func.func @pair(%bias: !t, %q: !q, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) schedule(#schedule) wrt(%bias : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%h, %i, %j] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
#by_head = affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0, h * 50 - i + j >= 0)>
!q = tensor<2x4x1024x64xf16>
!l = tensor<2x4x1024xf32>
!t = tensor<2x1024x1024xf32>

// A mask that depends on what the loop is over is computed in each iteration.

// CHECK-LABEL: func @pair_by_head(
// CHECK:         scf.for %[[H:.*]] = %c0 to %c4
// CHECK:           arith.muli %[[H]], %c50
// CHECK:           scf.if
// CHECK:             scf.if
// CHECK:               flash.captured_grad_step {{.*}} mask(#flash.affine
// CHECK:             } else {
// CHECK:               flash.captured_grad_step
// CHECK-NOT:             mask
// CHECK-SAME:            schedule
func.func @pair_by_head(%bias: !t, %q: !q, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#by_head>) schedule(#schedule) wrt(%bias : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%b, %i, %j] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>
!q = tensor<2x4x1024x64xf16>
!l = tensor<2x4x1024xf32>
!n = tensor<2xi32>
!d = tensor<4x2047xf32>
!t = tensor<4x1024x1024xf32>

// The last whole tile of a diagonal is that before the batch's length. How many keys of one tile take part
// only the batch tells: they are counted in both loops.

// CHECK-LABEL: func @lengths_of_diagonals(
// CHECK:         %[[LENGTH:.*]] = arith.minsi
// CHECK:         affine.min #{{.*}}(%[[LENGTH]], %{{.*}}, %{{.*}})
// CHECK:         flash.captured_grad_step
// CHECK-NOT:       keys(
// CHECK-SAME:      scale
// CHECK:         flash.captured_grad_step {{.*}} keys(
// CHECK-LABEL: func @lengths_of_pairs(
// CHECK:         flash.captured_grad_step {{.*}} keys({{.*}} mask(
// CHECK:         flash.captured_grad_step {{.*}} keys(
// CHECK-NOT:       mask
// CHECK-SAME:      schedule
func.func @lengths_of_diagonals(%table: !d, %q: !q, %lse: !l, %n: !n) -> !d {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q lengths(%n : !n) schedule(#schedule) wrt(%table : !d) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 1023 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %table[%h, %at] : !d
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !d)
  return %0#3 : !d
}
func.func @lengths_of_pairs(%bias: !t, %q: !q, %lse: !l, %n: !n) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) lengths(%n : !n) schedule(#schedule) wrt(%bias : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%h, %i, %j] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}
