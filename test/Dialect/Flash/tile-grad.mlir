// RUN: flash-opt %s --flash-tile-grad --convert-flash-to-scf --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x128x64xf16>
!k = tensor<2x2x256x64xf16>
!v = tensor<2x2x256x48xf16>
!o = tensor<2x4x128x48xf16>
!l = tensor<2x4x128xf32>

// Whole tiles: rows, then tiles of queries, then tiles of keys with the two
// heads that read them.

// CHECK-DAG:   #[[KEY_HEAD:.*]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 2)>
// CHECK-DAG:   #[[END:.*]] = affine_map<(d0) -> (d0 * 2 + 2)>
// CHECK-LABEL: func @even(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[O:[^:]*]]: {{[^%]*}}%[[LSE:[^:]*]]: {{[^%]*}}%[[DO:[^:]*]]:
// CHECK:         %[[ROWS:.*]]:2 = scf.forall ({{.*}}) = (0, 0, 0) to (2, 4, 128) step (1, 1, 16)
// CHECK:           arith.mulf
// CHECK:           linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
// CHECK:           arith.addf
// CHECK:         %[[DQ:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 4, 128) step (1, 1, 32)
// CHECK-DAG:       %[[SHIFT:.*]] = tensor.extract_slice %[[ROWS]]#0[%[[B]], %[[H]], %[[I]]] [1, 1, 32]
// CHECK-DAG:       %[[DELTA:.*]] = tensor.extract_slice %[[ROWS]]#1[%[[B]], %[[H]], %[[I]]] [1, 1, 32]
// CHECK-DAG:       %[[HK:.*]] = affine.apply #[[KEY_HEAD]](%[[H]])
// CHECK:           %[[SUM:.*]] = scf.for %[[J:.*]] = %c0 to %c256 step %c64 iter_args(%[[ACC:.*]] = %{{.*}}) -> (tensor<32x64xf32>)
// CHECK:             %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[HK]], %[[J]], 0]
// CHECK:             %[[VT:.*]] = tensor.extract_slice %[[V]][%[[B]], %[[HK]], %[[J]], 0]
// CHECK:             flash.query_grad_step ins(%{{.*}}, %[[KT]], %[[VT]], %{{.*}}, %[[SHIFT]], %[[DELTA]]
// CHECK-SAME:          outs(%[[ACC]] : tensor<32x64xf32>) at[%[[B]], %[[H]], %[[I]], %[[J]]] of[128, 256] scale(1.250000e-01) schedule
// CHECK:           %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK:             arith.mulf %{{.*}}, %cst
// CHECK:             arith.truncf
// CHECK:           tensor.parallel_insert_slice %[[SCALED]] into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 32, 64]
// CHECK:         %[[DKV:.*]]:2 = scf.forall (%[[B:.*]], %[[HK:.*]], %[[J:.*]]) = (0, 0, 0) to (2, 2, 256) step (1, 1, 64)
// CHECK-DAG:       %[[H0:.*]] = affine.apply #[[FIRST]](%[[HK]])
// CHECK-DAG:       %[[H1:.*]] = affine.apply #[[END]](%[[HK]])
// CHECK:           scf.for %[[H:.*]] = %[[H0]] to %[[H1]] step %c1 {{.*}} -> (tensor<64x64xf32>, tensor<64x48xf32>)
// CHECK:             scf.for %[[I:.*]] = %c0 to %c128 step %c32
// CHECK:               tensor.extract_slice %[[DO]][%[[B]], %[[H]], %[[I]], 0]
// CHECK:               flash.key_grad_step
// CHECK-SAME:            at[%[[B]], %[[H]], %[[I]], %[[J]]] of[128, 256] scale(1.250000e-01) schedule
// CHECK:         return %[[DQ]], %[[DKV]]#0, %[[DKV]]#1
func.func @even(%q: !q, %k: !k, %v: !v, %o: !o, %lse: !l, %do: !o) -> (!q, !k, !v) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do schedule(#schedule)
      : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<?x?x?x64xf32>
!l = tensor<?x?x?xf32>

// Open sizes and lengths: ragged tiles are padded, what does not exist is left
// out, and keys beyond the length have gradients of 0.

// CHECK-LABEL: func @ragged(
// CHECK:         %[[GROUP:.*]] = arith.divui
// CHECK:         scf.forall
// CHECK:           arith.subf
// CHECK:         scf.forall
// CHECK:           %[[LENGTH:.*]] = arith.minsi
// CHECK:           scf.for %{{.*}} = %c0 to %[[LENGTH]] step %c64
// CHECK:             flash.query_grad_step {{.*}} keys(
// CHECK:         scf.forall (%[[B:.*]], %[[HK:.*]], %[[J:.*]]) = (0, 0, 0)
// CHECK:           %[[LENGTH:.*]] = arith.minsi
// CHECK:           %[[ISUSED:.*]] = arith.cmpi slt, %[[J]], %[[LENGTH]]
// CHECK:           %[[USED:.*]] = arith.subi %[[LENGTH]], %[[J]]
// CHECK:           %[[QUERIES:.*]] = arith.select %[[ISUSED]], %{{.*}}, %c0
// CHECK:           %[[H0:.*]] = arith.muli %[[HK]], %[[GROUP]]
// CHECK:           scf.for %{{.*}} = %[[H0]]
// CHECK:             scf.for %[[I:.*]] = %c0 to %[[QUERIES]] step %c32
// CHECK:               %[[EXIST:.*]] = affine.min #{{.*}}(%[[I]])
// CHECK:               flash.key_grad_step {{.*}} queries(%[[EXIST]]) keys(%[[USED]])
// CHECK:           linalg.generic
// CHECK:             arith.cmpi slt, %{{.*}}, %[[USED]]
// CHECK:             arith.select
// Sinks: heads, then batches and queries in steps.
// CHECK:         scf.forall (%[[H:.*]]) = (0) to (%{{.*}}) step (8)
// CHECK:           scf.for %{{.*}} = %c0
// CHECK:             scf.for %{{.*}} = %c0 to %{{.*}} step %c256
// CHECK:               math.exp2
// CHECK:               arith.negf
// CHECK:               arith.addf
func.func @ragged(%q: !q, %lse: !l, %dl: !l, %n: tensor<?xi32>, %s: tensor<?xf32>) -> (!q, !q, !q, tensor<?xf32>) {
  %dq, %dk, %dv, %ds = flash.attention_grad %q, %q, %q, %q, %lse, %q lengths(%n : tensor<?xi32>) sink(%s : tensor<?xf32>)
      schedule(#schedule) lse_grad(%dl : !l) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<?xf32>)
  return %dq, %dk, %dv, %ds : !q, !q, !q, tensor<?xf32>
}

// -----

func.func @unscheduled(%q: tensor<1x1x4x8xf32>, %lse: tensor<1x1x4xf32>) {
  // expected-error @below {{has no schedule with query_tile and key_tile; run flash-select-schedule or write them}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>)
      -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  return
}

// -----

func.func @rank3(%q: tensor<1x4x8xf32>, %lse: tensor<1x4xf32>) {
  // expected-error @below {{needs rank 4 here; run flash-expand-rank first}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(<query_tile = 16, key_tile = 16>)
      : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4xf32>, tensor<1x4x8xf32>)
      -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x128x64xf32>
!l = tensor<2x4x128xf32>

// A tensor of heads and keys: sums over the queries of each key in each batch and head,
// which the elements add up that are of this head and this key.

// CHECK-LABEL: func @of_keys(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<4x200xf32>
// CHECK:         %[[SUMS:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[J:.*]]) = (0, 0, 0) to (2, 4, 128) step (1, 1, 64)
// CHECK-SAME:        -> (tensor<2x4x128xf32>)
// CHECK:           scf.for %[[I:.*]] = %c0 to %c128 step %c64 iter_args(%{{.*}} = %{{.*}}) -> (tensor<64xf32>)
// CHECK:             flash.captured_grad_step of(%[[BIAS]] : tensor<4x200xf32>) reads([0])
// CHECK-SAME:            at[%[[B]], %[[H]], %[[I]], %[[J]]] of[128, 128] over_queries scale
// CHECK:         scf.forall (%[[H:.*]], %[[AT:.*]]) = (0, 0) to (4, 200) step (1, 8)
// CHECK:           %[[J:.*]] = arith.addi %[[AT]], %{{.*}} : index
// CHECK:           arith.cmpi sle, %[[J]], %c127
// CHECK:           tensor.extract %[[SUMS]]
// CHECK:           arith.addf
func.func @of_keys(%bias: tensor<4x200xf32>, %q: !q, %lse: !l) -> tensor<4x200xf32> {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%bias : tensor<4x200xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%h, %j] : tensor<4x200xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<4x200xf32>)
  return %0#3 : tensor<4x200xf32>
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x128x64xf32>
!l = tensor<2x4x128xf32>

// What depends on the distance: tiles as far apart are added, of all batches, then
// their diagonals, and an element of the tensor takes those distances whose index is its own.

// CHECK-LABEL: func @of_distances(
// CHECK:         %[[TILES:.*]] = scf.forall (%{{.*}}, %[[H:.*]], %[[N:.*]]) in (1, 4, 3)
// CHECK-SAME:        -> (tensor<1x4x3x64x64xf32>)
// CHECK:           scf.for %[[B:.*]] = %c0 to %c2
// CHECK:             scf.for
// CHECK:               flash.captured_grad_step {{.*}} outs(%{{.*}} : tensor<64x64xf32>) at[%[[B]], %[[H]],
// CHECK:         %[[SUMS:.*]] = scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) = {{.*}} to (1, 4, 255) step (1, 1, 256)
// CHECK:           scf.for %[[ROW:.*]] = %c0 to %c64 step %c1
// CHECK:             linalg.generic
// CHECK:               tensor.extract %[[TILES]][%{{.*}}, %[[H]], %{{.*}}, %[[ROW]], %{{.*}}]
// CHECK:         scf.forall {{.*}} to (1, 16) step (1, 8)
// CHECK:           scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:             %[[SUM:.*]] = tensor.extract %[[SUMS]]
// CHECK:             arith.cmpf une, %[[SUM]]
// CHECK:             %[[INDEX:.*]] = arith.minsi %{{.*}}, %c15
// CHECK:             arith.cmpi eq, %[[INDEX]]
func.func @of_distances(%table: tensor<16xf32>, %q: !q, %lse: !l) -> tensor<16xf32> {
  %c15 = arith.constant 15 : index
  %c0 = arith.constant 0 : index
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%table : tensor<16xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %low = arith.maxsi %d, %c0 : index
    %at = arith.minsi %low, %c15 : index
    %e = tensor.extract %table[%at] : tensor<16xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<16xf32>)
  return %0#3 : tensor<16xf32>
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x2048x64xf32>
!l = tensor<2x4x2048xf32>
!t = tensor<4x4095xf32>

// A window leaves five distances of tiles, and the elements of these. Each is added up in four parts of
// eight tiles, as there would be little else to do at the same time.

// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 512 - (d0 floordiv 4) * 1984, d0 * 512 - (d0 floordiv 4) * 2048)>
// CHECK-LABEL: func @of_distances_in_window(
// CHECK:         %[[TILES:.*]] = scf.forall (%{{.*}}, %{{.*}}, %[[N:.*]]) in (1, 4, 20)
// CHECK:           affine.max #[[FIRST]](%[[N]])
// CHECK:         %[[SUMS:.*]] = scf.forall {{.*}} to (1, 4, 383) step (1, 1, 256)
// CHECK:           scf.for %[[PART:.*]] = %c0 to %c4 step %c1
// CHECK:             arith.addi %{{.*}}, %[[PART]]
// CHECK:             tensor.extract %[[TILES]]
// CHECK-SAME:      tensor<1x4x20x64x64xf32>
// CHECK:         scf.forall {{.*}} to (4, 4095) step (1, 256)
// CHECK:           arith.subi %{{.*}}, %c1984
// CHECK:           tensor.extract %[[SUMS]]
func.func @of_distances_in_window(%table: !t, %q: !q, %lse: !l) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.window<left = 255, right = 0>) schedule(#schedule) wrt(%table : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 2047 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %table[%h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x128x64xf32>
!l = tensor<2x4x128xf32>

// A number for each pair of a query and a key: each is there once, and is rounded.

// CHECK-LABEL: func @of_pairs(
// CHECK:         %[[SUMS:.*]] = scf.forall (%{{.*}}, %[[H:.*]], %[[I:.*]], %[[J:.*]]) = (0, 0, 0, 0) to (1, 4, 128, 128) step (1, 1, 64, 64)
// CHECK:           scf.for %[[B:.*]] = %c0 to %c2
// CHECK:             flash.captured_grad_step {{.*}} at[%[[B]], %[[H]], %[[I]], %{{.*}}]
// CHECK:         scf.forall {{.*}} to (4, 128, 128) step (1, 1, 256)
// CHECK:           tensor.extract %[[SUMS]]
// CHECK:           arith.truncf %{{.*}} : f32 to f16
// CHECK:           tensor.parallel_insert_slice {{.*}} [1, 1, 128]
func.func @of_pairs(%bias: tensor<4x128x128xf16>, %q: !q, %lse: !l) -> tensor<4x128x128xf16> {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%bias : tensor<4x128x128xf16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%h, %i, %j] : tensor<4x128x128xf16>
    %w = arith.extf %e : f16 to f32
    %r = arith.addf %s, %w : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<4x128x128xf16>)
  return %0#3 : tensor<4x128x128xf16>
}

// -----

#schedule = #flash.schedule<query_tile = 32, key_tile = 64>
!q = tensor<2x4x128x64xf32>
!l = tensor<2x4x128xf32>
func.func @of_scores(%table: tensor<16xf32>, %q: !q, %lse: !l) -> tensor<16xf32> {
  // expected-error @below {{tensor #0 of wrt is read at an index that depends on the score, so that it is unknown which elements of its gradient a tile adds to; compute the index from the batch, the head, the query, the key and tensors, or leave the tensor out of wrt}}
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%table : tensor<16xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %n = arith.fptosi %s : f32 to i32
    %at = arith.index_cast %n : i32 to index
    // expected-note @below {{the read}}
    %e = tensor.extract %table[%at] : tensor<16xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<16xf32>)
  return %0#3 : tensor<16xf32>
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, key_step = 32, stages = 2, features = specialize_warps>
!q = tensor<1x2x340x64xf16>
!l = tensor<1x2x340xf32>

// Tiles of each program, and what it visits at a time. Where warps have roles,
// statistics are of whole tiles of rows and come eight in a row.

// CHECK-LABEL: func @roles(
// CHECK:         %[[ROWS:.*]]:2 = scf.forall {{.*}} -> (tensor<1x2x352xf32>, tensor<1x2x352xf32>)
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %{{.*}}[0, %{{.*}}] [1, 1, 32]
// CHECK:         } {{.*}} tile.order = #tile.order<backwards>
// CHECK:         scf.forall {{.*}} to (1, 2, 340) step (1, 1, 128)
// CHECK:           scf.for %{{.*}} = %c0 to %c340 step %c32
// CHECK:             flash.query_grad_step
// CHECK:         } {flash.schedule = #flash.schedule<warps = 8
// CHECK:         %[[SHIFTS:.*]] = tensor.expand_shape %[[ROWS]]#0 {{\[\[}}0], [1], [2, 3]] {{.*}} into tensor<1x2x44x8xf32>
// CHECK:         scf.forall {{.*}} to (1, 2, 340) step (1, 1, 128)
// CHECK:           scf.for %[[I:.*]] = %c0 to %c340 step %c64
// CHECK:             %[[AT:.*]] = affine.apply {{.*}}(%[[I]])
// CHECK:             %[[SLICE:.*]] = tensor.extract_slice %[[SHIFTS]][0, %{{.*}}, %[[AT]], 0] [1, 1, %{{.*}}, 8]
// CHECK:             %[[TILE:.*]] = tensor.pad %[[SLICE]]
// CHECK:             tensor.collapse_shape %[[TILE]] {{\[\[}}0, 1]] : tensor<8x8xf32> into tensor<64xf32>
// CHECK:             flash.key_grad_step
func.func @roles(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x4x?x32xf16>
!k = tensor<2x2x200x32xf16>
!l = tensor<2x4x?xf32>

// One program for all gradients: that of rows has a count for each tile of
// queries, to whose sums the tiles of keys add; what none has added to is 0.

// CHECK-DAG:   #[[TILES:.*]] = affine_map<()[s0] -> (s0 ceildiv 64)>
// CHECK-DAG:   #[[NUMBER:.*]] = affine_map<(d0) -> (d0 floordiv 64)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0) -> (d0 mod 64)>
// CHECK-LABEL: func @fused(
// CHECK:         %[[ROWS:.*]]:3 = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:           %[[UNIT:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK:           %[[COUNT:.*]] = tensor.insert %c0_i32 into
// CHECK:           tensor.parallel_insert_slice %[[COUNT]] into %{{.*}}[%[[B]], %[[H]], %[[UNIT]]] [1, 1, 1]
// CHECK-NOT:     flash.query_grad_step
// CHECK:         %[[T:.*]] = affine.apply #[[TILES]]()
// CHECK:         tensor.empty(%[[T]]) : tensor<2x4x?x64x32xf32>
// CHECK:         %[[ALL:.*]]:4 = scf.forall (%[[B:.*]], %[[HK:.*]], %[[J:.*]]) = {{.*}} %[[COUNTS:[^ ,]*]] = %[[ROWS]]#2)
// CHECK:           scf.for %[[H:.*]] = {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[NONE:.*]] = %{{.*}}) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<2x4x?x64x32xf32>)
// CHECK:             scf.for %[[I:.*]] = %c0
// CHECK:               %{{.*}}, %{{.*}}, %[[PART:.*]] = flash.key_grad_step {{.*}} keys(%{{.*}})
// CHECK:               %[[N:.*]] = affine.apply #[[NUMBER]](%[[I]])
// CHECK:               flash.contribute %[[PART]] to %{{.*}}[%[[B]], %[[H]], %[[N]]] among(%c0 to %c4) : tensor<64x32xf32>
// CHECK:           scf.forall.in_parallel
// CHECK:             flash.parallel_add %{{.*}} to %{{.*}} counting %[[COUNTS]]
// CHECK: tile.order = #tile.order<interleaved>
// CHECK:         %[[DQ:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) =
// CHECK:           %[[N:.*]] = affine.apply #[[NUMBER]](%[[I]])
// CHECK:           %[[ADDED:.*]] = tensor.extract %[[ALL]]#3[%[[B]], %[[H]], %[[N]]]
// CHECK:           %[[ISSUM:.*]] = arith.cmpi sgt, %[[ADDED]], %c0_i32
// CHECK:           %[[R:.*]] = affine.apply #[[ROW]](%[[I]])
// CHECK:           %[[EXIST:.*]] = arith.select %[[ISSUM]], %c16, %c0
// CHECK:           %[[SUM:.*]] = tensor.extract_slice %[[ALL]]#2[%[[B]], %[[H]], %[[N]], %[[R]], 0] [1, 1, 1, %[[EXIST]], 32]
// CHECK:           tensor.pad %[[SUM]]
// CHECK:         return %[[DQ]], %[[ALL]]#0, %[[ALL]]#1
func.func @fused(%q: !q, %k: !k, %lse: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(#schedule)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x64xf16>
!k = tensor<2x2x512x64xf16>
!l = tensor<2x4x512xf32>
!t = tensor<1x1x4x12xi32>
!n = tensor<1x1x4x2xi32>
!u = tensor<1x1x4x4xi32>

// A window ends before the last queries, so no head comes forwards.

// CHECK-LABEL: func @fused_window(
// CHECK:         flash.contribute {{.*}} among(
// CHECK:         tile.order = #tile.order<reverse>
func.func @fused_window(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.window<left = 100, right = 0>) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Runs have loops over parts and over whole tiles; their ranks are data.

// CHECK-LABEL: func @fused_lists(
// CHECK:         %[[T:.*]], %[[N:.*]], %[[RANKS:.*]] = flash.block_map
// CHECK:         scf.for %[[R:.*]] =
// CHECK:           scf.for %[[I:.*]] = %{{.*}} to %[[PARTS:.*]] step %c1
// CHECK:             %[[RANK:.*]] = tensor.extract %[[RANKS]][%c0{{.*}}, %c0{{.*}}, %{{.*}}, %[[I]]]
// CHECK:             %[[BEHIND:.*]] = arith.index_cast %[[RANK]]
// CHECK:             flash.key_grad_step {{.*}} mask(
// CHECK:             flash.contribute {{.*}} behind(%[[BEHIND]])
// CHECK:           scf.for %{{.*}} = %[[PARTS]] to
// CHECK:             flash.key_grad_step
// CHECK-NOT:         mask(
// CHECK:         tile.order = #tile.order<reverse>
func.func @fused_lists(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %t, %n, %ranks = flash.block_map of[1, 1, 512, 512] tiles([128, 128]) over_queries mask(#flash.causal) : !t, !n, !u
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) query_blocks(%t, %n, %ranks : !t, !n, !u) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Heads that share keys are inside of each tile of queries, if they have the same list.

// CHECK-LABEL: func @fused_lists_of_groups(
// CHECK:         %[[FROM:.*]] = arith.muli %{{.*}}, %c2
// CHECK:         %[[TO:.*]] = arith.muli %{{.*}}, %c2
// CHECK:         scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step %c1
// CHECK:           %[[TILE:.*]] = arith.divui %[[I]], %c2
// CHECK:           %[[NUMBER:.*]] = arith.remui %[[I]], %c2
// CHECK:           tensor.extract %{{.*}}[%c0, %c0, %{{.*}}, %[[TILE]]] : tensor<1x1x4x4xi32>
// CHECK:           %[[HEAD:.*]] = arith.addi %{{.*}}, %[[NUMBER]]
// CHECK:           flash.contribute %{{.*}} to %{{.*}}[%{{.*}}, %[[HEAD]], %[[TILE]]]
func.func @fused_lists_of_groups(%q: !q, %k: !k, %lse: !l) -> (!q, !k, !k) {
  %t, %n, %ranks = flash.block_map of[1, 1, 512, 512] tiles([128, 128]) over_queries mask(#flash.causal) : !t, !n, !u
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %q, %lse, %q mask(#flash.causal) query_blocks(%t, %n, %ranks : !t, !n, !u) schedule(#schedule)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// CHECK-LABEL: func @fused_lists_of_heads(
// CHECK:         %{{.*}}, %[[N:.*]], %{{.*}} = flash.block_map
// CHECK:         scf.for %[[HEAD:.*]] = %{{.*}} to %{{.*}} step %c1
// CHECK:           tensor.extract %[[N]][%c0, %[[HEAD]], %{{.*}}, %c0]
// CHECK-NOT:       arith.divui
// CHECK:           flash.contribute
func.func @fused_lists_of_heads(%q: !q, %k: !k, %lse: !l, %kept: tensor<4xi1>) -> (!q, !k, !k) {
  %t, %n, %ranks = flash.block_map of[1, 4, 512, 512] tiles([128, 128]) over_queries keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = tensor.extract %kept[%h] : tensor<4xi1>
    flash.yield %keep : i1
  } : tensor<1x4x4x12xi32>, tensor<1x4x4x2xi32>, tensor<1x4x4x4xi32>
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %q, %lse, %q query_blocks(%t, %n, %ranks : tensor<1x4x4x12xi32>, tensor<1x4x4x2xi32>, tensor<1x4x4x4xi32>) schedule(#schedule) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %keep = tensor.extract %kept[%h] : tensor<4xi1>
    flash.yield %s keep %keep : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x80xf16>
!l = tensor<2x4x512xf32>

// Where steps are shorter, sums have parts of the columns one below the other, each of which is rounded.
// Under a mask the last tiles of keys come first.

// CHECK-DAG:   #[[SECOND:.*]] = affine_map<(d0) -> (d0 mod 64 + 64)>
// CHECK-LABEL: func @parts(
// CHECK:         flash.key_grad_step {{.*}} : tensor<128x80xf32>, tensor<128x80xf32>, tensor<128x40xf32>) at
// CHECK:         flash.parallel_add %{{.*}} to %{{.*}} counting %{{.*}} : tensor<2x4x8x128x40xf32>, tensor<2x4x16xi32>
// CHECK:         tile.order = #tile.order<both_ways>
// CHECK:         scf.forall {{.*}} step (1, 1, 16) shared_outs(%[[DQ:.*]] = %{{.*}})
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}, 0] [1, 1, 1, %{{.*}}, 40]
// CHECK:           %[[FIRST:.*]] = arith.truncf
// CHECK:           %[[ROW:.*]] = affine.apply #[[SECOND]]
// CHECK:           tensor.extract_slice %{{.*}}[%{{.*}}, %[[ROW]], 0] [1, 1, 1, %{{.*}}, 40]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[DQ]][%{{.*}}, 0] [1, 1, 16, 40]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[DQ]][%{{.*}}, 40] [1, 1, 16, 40]
func.func @parts(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64, products = 5>
!q = tensor<2x4x?x32xf16>
!k = tensor<2x2x200x32xf16>
!l = tensor<2x4x?xf32>

// Without roles the iterations have heads of keys each, or, of less than eight, parts of their keys:
// of four tiles four parts. Steps add to the sums of a part in place; an iteration adds its parts
// up, and the program over rows the sums of the iterations.

// CHECK-LABEL: func @in_place(
// CHECK-NOT:     flash.query_grad_step
// CHECK:         %[[ALL:.*]]:3 = scf.forall (%[[B:.*]], %[[HK:.*]], %[[PART:.*]]) in (2, 2, 4) {{.*}} tensor<4x2x4x?x32xf32>
// CHECK:           %[[OWN:.*]] = tensor.extract_slice %{{.*}}[%[[PART]], %[[B]], %[[H0:.*]], 0, 0] [1, 1, 2, %{{.*}}, 32]
// CHECK:           %[[ZERO:.*]] = linalg.fill {{.*}} outs(%[[OWN]]
// CHECK:           scf.for %{{.*}} = %[[PART]] to {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[TOTAL:.*]] = %[[ZERO]], %[[MEMORY:.*]] = %{{.*}})
// CHECK:           %[[NONE:.*]] = linalg.fill {{.*}} outs(%[[MEMORY]]
// CHECK:           scf.for %[[J:.*]] = {{.*}} step %c64 iter_args(%{{.*}}, %{{.*}}, %{{.*}} = %[[NONE]])
// CHECK:             scf.for %[[H:.*]] = %[[H0]]
// CHECK:               scf.for %[[I:.*]] = %c0 {{.*}} iter_args(%{{.*}}, %{{.*}}, %[[SUMS:.*]] = %{{.*}})
// CHECK:                 %[[NUMBER:.*]] = arith.subi %[[H]], %[[H0]]
// CHECK:                 tensor.extract_slice %[[SUMS]][%[[NUMBER]], %[[I]], 0]
// CHECK:                 %{{.*}}, %{{.*}}, %[[ADDED:.*]] = flash.key_grad_step
// CHECK:                 %[[ROWS:.*]] = tensor.extract_slice %[[ADDED]]
// CHECK:                 tensor.insert_slice %[[ROWS]] into %[[SUMS]][%[[NUMBER]], %[[I]], 0]
// CHECK-NOT:     flash.contribute
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %[[TOTAL]])
// CHECK:         %[[DQ:.*]] = scf.forall
// CHECK:           scf.for %[[P:.*]] = %c0 to %c4
// CHECK:             tensor.extract_slice %[[ALL]]#2[%[[P]],
// CHECK:         return %[[DQ]], %[[ALL]]#0, %[[ALL]]#1
func.func @in_place(%q: !q, %k: !k, %lse: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(#schedule)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 128, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x72xf16>
!l = tensor<2x4x512xf32>

func.func @fused_steps(%q: !q, %lse: !l) {
  // expected-error @below {{cannot be tiled: products = 5 needs a query_step that divides the key_tile, 128, and with a query_step of 64 a head dimension that is a multiple of 16, got 72; choose such tiles, or products = 7}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, products = 5, stages = 2, features = specialize_warps, block_map = 0>
#even = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 512 == 0)>
!q = tensor<2x4x2048x64xf16>
!l = tensor<2x4x2048xf32>

func.func @fused_holes(%q: !q, %lse: !l) {
  // expected-error @below {{cannot be tiled: products = 5 needs a mask that leaves each tile of queries one range of tiles of keys, and the other way round; choose block_map = 1, or products = 7}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#even>) schedule(#schedule) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, products = 5, stages = 2, features = specialize_warps>
!q = tensor<1x1x512x64xf16>
!l = tensor<1x1x512xf32>

func.func @fused_without_turns(%q: !q, %lse: !l) {
  %t, %c = flash.block_map of[1, 1, 512, 512] tiles([128, 128]) over_queries : tensor<1x1x4x4xi32>, tensor<1x1x4x2xi32>
  // expected-error @below {{cannot be tiled: products = 5 goes through lists of tiles of queries that have ranks; leave out blocks and query_blocks, or choose products = 7}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q query_blocks(%t, %c : tensor<1x1x4x4xi32>, tensor<1x1x4x2xi32>) schedule(#schedule) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, products = 5, stages = 2, features = specialize_warps|sum_diagonals>
!q = tensor<1x1x512x64xf16>
!l = tensor<1x1x512xf32>

func.func @diagonals_of_lists(%q: !q, %lse: !l, %bias: tensor<1023xf32>) {
  %t, %c, %ranks = flash.block_map of[1, 1, 512, 512] tiles([128, 128]) over_queries : tensor<1x1x4x12xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x4xi32>
  // expected-error @below {{cannot be tiled: sum_diagonals needs a mask that leaves each tile of keys one range of tiles of queries, without lists; leave it out of the features}}
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q query_blocks(%t, %c, %ranks : tensor<1x1x4x12xi32>, tensor<1x1x4x2xi32>, tensor<1x1x4x4xi32>)
      schedule(#schedule) wrt(%bias : tensor<1023xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c511 = arith.constant 511 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %c511 : index
    %e = tensor.extract %bias[%at] : tensor<1023xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<1023xf32>)
  return
}

// -----

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, products = 5, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x40xf16>
!l = tensor<2x4x512xf32>

func.func @fused_columns(%q: !q, %lse: !l) {
  // expected-error @below {{cannot be tiled: products = 5 needs a head dimension that is a multiple of 16, got 40; choose products = 7}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

// Persistent blocks claim their tiles: there are more counts than tiles of queries.
#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 128, products = 5, stages = 2, features = specialize_warps|persistent>
!q = tensor<2x4x16x64xf16>
!l = tensor<2x4x16xf32>
// CHECK-LABEL: func @claimed(
// CHECK:         scf.forall
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[COUNTS:.*]][%{{.*}}, %{{.*}}, 0] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xi32>
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[COUNTS]][%{{.*}}, %{{.*}}, 1] [1, 1, 1] [1, 1, 1] : tensor<1x1x1xi32>
// CHECK:         flash.parallel_add %{{.*}} to %{{.*}} counting %{{.*}} : tensor<2x4x1x128x64xf32>, tensor<2x4x2xi32>
func.func @claimed(%q: !q, %lse: !l) -> (!q, !q, !q) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// -----

// Where warps have roles, tiles of sums have 128 rows, of keys, so that statistics are of columns.
#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, key_step = 128, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x64xf16>
!l = tensor<2x4x512xf32>
!t = tensor<4x1024xf32>
// CHECK-LABEL: func @distances_with_roles(
// CHECK:         %[[TILES:.*]] = scf.forall {{.*}} in (1, 4, 7)
// CHECK:           flash.captured_grad_step {{.*}} outs(%{{.*}} : tensor<128x128xf32>) {{.*}} over_queries
// CHECK:         } {flash.schedule = #flash.schedule<warps = 8, stages = 2, features = specialize_warps>
// CHECK:         scf.forall {{.*}} to (1, 4, 1023) step (1, 1, 256)
// CHECK:           scf.for %[[KEY:.*]] = %c0 to %c128 step %c1
// CHECK:             tensor.extract %[[TILES]][%{{.*}}, %{{.*}}, %{{.*}}, %[[KEY]], %{{.*}}]
func.func @distances_with_roles(%q: !q, %lse: !l, %t: !t) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%t : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c512 = arith.constant 512 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %c512 : index
    %e = tensor.extract %t[%h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

// A sum of each head is one over queries first, as tiles of keys and values stay.
#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, key_step = 64, stages = 2, features = specialize_warps>
!q = tensor<2x4x512x128xf16>
!l = tensor<2x4x512xf32>
!t = tensor<4xf32>
// CHECK-LABEL: func @heads_with_roles(
// CHECK:         scf.forall {{.*}} to (2, 4, 512) step (1, 1, 128)
// CHECK:           flash.captured_grad_step {{.*}} outs(%{{.*}} : tensor<128xf32>) {{.*}} over_queries
// CHECK:         } {flash.schedule = #flash.schedule<warps = 8, stages = 2, features = specialize_warps|ping_pong>
func.func @heads_with_roles(%q: !q, %lse: !l, %t: !t) -> !t {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q schedule(#schedule) wrt(%t : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : !t
    %r = arith.mulf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %0#3 : !t
}

// -----

// Sums of diagonals: the step gives the gradients of scores, whose diagonals go to the row of
// their pair of tiles; the gradient of the bias is read from these, and there is no program that
// computes scores again.

#schedule = #flash.schedule<query_tile = 128, key_tile = 128, query_step = 64, products = 5, stages = 2, features = specialize_warps|sum_diagonals>
!q = tensor<2x4x256x128xf16>
!k = tensor<2x2x256x128xf16>
!l = tensor<2x4x256xf32>
!w = tensor<4x512xf32>
// CHECK-LABEL: func.func @diagonals(
// CHECK-NOT:     flash.captured_grad_step
// CHECK:         scf.forall {{.*}} -> (tensor<2x2x256x128xf16>, tensor<2x2x256x128xf16>, tensor<2x4x4x128x64xf32>, tensor<2x4x8xi32>, tensor<2x4x2x4x192xf32>)
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[ALL:.*]][%{{.*}}, %{{.*}}, %{{.*}}, 0, 0] [1, 2, 1, 4, 192] [1, 1, 1, 1, 1] : tensor<2x4x2x4x192xf32> to tensor<2x4x192xf32>
// CHECK:           %{{.*}}, %{{.*}}, %[[GRADS:.*]]:2 = flash.key_grad_step {{.*}} score_grads
// CHECK:           flash.insert_diagonals %[[GRADS]]#1 into %{{.*}}[%{{.*}}, %{{.*}}] : tensor<128x64xf16> into tensor<2x4x192xf32>
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[ALL]][%{{.*}}, %{{.*}}, %{{.*}}, 0, 0] [1, 2, 1, 4, 192]
// CHECK:         scf.forall {{.*}} step (1, 1, 256)
// CHECK:           tensor.extract %{{.*}} : tensor<2x4x2x768xf32>
// CHECK-NOT:     flash.captured_grad_step
// CHECK:         return
func.func @diagonals(%q: !q, %k: !k, %lse: !l, %w: !w) -> (!q, !k, !k, !w) {
  %n = arith.constant 256 : index
  %0:4 = flash.attention_grad %q, %k, %k, %q, %lse, %q mask(#flash.causal) schedule(#schedule) wrt(%w : !w) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%h, %e] : !w
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !w)
  return %0#0, %0#1, %0#2, %0#3 : !q, !k, !k, !w
}
