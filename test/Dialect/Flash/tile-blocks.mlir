// Attention with a block map visits the tiles that it lists: those of which the
// mask leaves a part, with the mask, then whole ones without.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-tile-grad --convert-flash-to-scf --split-input-file | FileCheck %s
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-tile-grad --flash-refine-visits --convert-flash-to-scf --split-input-file | FileCheck %s --check-prefix=ORDER
// Attention takes its tiles as they come, gradients the tiles of one number of all heads.
// ORDER-COUNT-3: tile.order = #tile.order<linear>
// ORDER-COUNT-2: tile.order = #tile.order<heads_fastest>

!q = tensor<2x8x300x16xf32>
!k = tensor<2x4x500x16xf32>

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0) -> (d0 floordiv 64)>
// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0) -> (d0 * 32)>
// CHECK-DAG:   #[[EXIST:.*]] = affine_map<(d0) -> (d0 * -32 + 500, 32)>

// CHECK-LABEL: func @of_batch(
// CHECK:       %[[T:.*]], %[[N:.*]] = flash.block_map
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0)
// CHECK:         %[[ROW:.*]] = affine.apply #[[TILE]](%[[I]])
// CHECK:         %[[X:.*]] = tensor.extract %[[N]][%[[B]], %c0{{.*}}, %[[ROW]], %c0
// CHECK:         %[[PARTS:.*]] = arith.index_cast %[[X]]
// CHECK:         %[[Y:.*]] = tensor.extract %[[N]][%[[B]], %c0{{.*}}, %[[ROW]], %c1
// CHECK:         %[[END:.*]] = arith.index_cast %[[Y]]
// CHECK:         scf.for %[[P:.*]] = %c0{{.*}} to %[[PARTS]] step %c1
// CHECK:           %[[ENTRY:.*]] = tensor.extract %[[T]][%[[B]], %c0{{.*}}, %[[ROW]], %[[P]]]
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %[[ENTRY]]
// CHECK:           %[[J:.*]] = affine.apply #[[KEY]](%[[NUMBER]])
// CHECK:           %[[KEYS:.*]] = affine.min #[[EXIST]](%[[NUMBER]])
// CHECK:           tensor.pad
// CHECK:           flash.online_attention {{.*}} at[%[[B]], %[[H]], %[[I]], %[[J]]] of[300, 500] keys(%[[KEYS]]) {{.*}} mask(#flash.causal)
// CHECK:             flash.yield %{{.*}} keep %{{.*}} : f32
// CHECK:         scf.for %[[P:.*]] = %[[PARTS]] to %[[END]] step %c1
// CHECK:           tensor.extract %[[T]]
// CHECK-NOT:       tensor.pad
// CHECK:           flash.online_attention {{.*}} of[300, 500] scale(2.500000e-01) unit(2.500000e-01) schedule(<query_tile = 64, key_tile = 32>)
// CHECK-NEXT:      scf.yield
func.func @of_batch(%q: !q, %k: !k, %ids: tensor<2x500xi32>) -> !q {
  %t, %n = flash.block_map of[2, 1, 300, 500] tiles([64, 32]) mask(#flash.causal) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%b, %i] : tensor<2x500xi32>
    %y = tensor.extract %ids[%b, %j] : tensor<2x500xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<2x1x5x16xi32>, tensor<2x1x5x2xi32>
  %o = flash.attention %q, %k, %k mask(#flash.causal) blocks(%t, %n : tensor<2x1x5x16xi32>, tensor<2x1x5x2xi32>)
      schedule(<query_tile = 64, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%b, %i] : tensor<2x500xi32>
    %y = tensor.extract %ids[%b, %j] : tensor<2x500xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !k, !k) -> !q
  return %o : !q
}

// -----

!q = tensor<2x8x300x16xf32>

// Each split takes every n-th position of the list, and goes on behind the last
// part where its own next position is. A score that is changed stays so.
// CHECK-LABEL: func @splits(
// CHECK:       scf.forall (%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (3, 2, 8, 300)
// CHECK:         %[[LEFT:.*]] = arith.subi %[[PARTS:.*]], %[[S]]
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:         %[[STEPS:.*]] = arith.ceildivui %[[SOME]], %[[C3:.*]] : index
// CHECK:         %[[SKIPPED:.*]] = arith.muli %[[STEPS]], %[[C3]]
// CHECK:         %[[WHOLE:.*]] = arith.addi %[[S]], %[[SKIPPED]]
// CHECK:         scf.for %{{.*}} = %[[S]] to %[[WHOLE]] step %[[C3]]
// CHECK:         scf.for %{{.*}} = %[[WHOLE]] to %{{.*}} step %[[C3]]
// CHECK:           flash.online_attention
// CHECK:             %[[R:.*]] = math.tanh
// CHECK-NEXT:        flash.yield %[[R]] : f32
func.func @splits(%q: !q) -> !q {
  %t, %n = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %x : i1
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  %o = flash.attention %q, %q, %q blocks(%t, %n : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>)
      schedule(<query_tile = 64, key_tile = 32, num_splits = 3>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    %r = math.tanh %s : f32
    flash.yield %r keep %x : f32
  } : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x8x300x16xf16>

// Where loops are rotated, the first is entered wherever there is a tile at all.
// CHECK-LABEL: func @overlap(
// CHECK:         %[[ONE:.*]] = arith.minsi %[[END:.*]], %c1
// CHECK:         %[[FIRST:.*]] = arith.maxsi %[[PARTS:.*]], %[[ONE]]
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[C0:.*]], %[[FIRST]]
// CHECK:         scf.if %[[ANY]]
// CHECK:           scf.for %{{.*}} = %[[C0]] to %[[FIRST]]
// CHECK:           scf.for %{{.*}} = %[[FIRST]] to %[[END]]
func.func @overlap(%q: !q) -> !q {
  %t, %n = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %x : i1
  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  %o = flash.attention %q, %q, %q blocks(%t, %n : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>)
      schedule(<query_tile = 64, key_tile = 32, features = specialize_warps|overlap>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// Both programs of gradients, the one over keys for each query head of a key head.

!q = tensor<1x4x128x16xf32>
!k = tensor<1x2x256x16xf32>
!l = tensor<1x4x128xf32>

// CHECK-LABEL: func @gradients(
// CHECK:       %[[T:[^ ,]*]], %[[N:.*]] = flash.block_map of[1, 4, 128, 256] tiles([64, 32]) mask(#flash.causal) :
// CHECK:       %[[TQ:[^ ,]*]], %[[NQ:.*]] = flash.block_map of[1, 4, 128, 256] tiles([32, 64]) over_queries
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (1, 4, 128) step (1, 1, 64)
// CHECK:         tensor.extract %[[N]][%c0{{.*}}, %[[H]], %{{.*}}, %c0
// CHECK:         scf.for %[[P:.*]] = %c0{{.*}} to %[[PARTS:.*]] step %c1
// CHECK:           tensor.extract %[[T]][%c0{{.*}}, %[[H]], %{{.*}}, %[[P]]]
// CHECK:           flash.query_grad_step {{.*}} mask(#flash.causal)
// CHECK:         scf.for %{{.*}} = %[[PARTS]] to %{{.*}} step %c1
// CHECK:           flash.query_grad_step
// CHECK-NOT:       mask
// CHECK:       scf.forall (%[[B:.*]], %[[HK:.*]], %[[J:.*]]) = (0, 0, 0) to (1, 2, 256) step (1, 1, 64)
// CHECK:         scf.for %[[H:.*]] = %{{.*}} to
// CHECK:           %[[TILE:.*]] = affine.apply #{{.*}}(%[[J]])
// CHECK:           tensor.extract %[[NQ]][%c0{{.*}}, %[[H]], %[[TILE]], %c0
// CHECK:           scf.for %[[P:.*]] = %c0{{.*}} to %[[PARTS:.*]] step %c1
// CHECK:             tensor.extract %[[TQ]][%c0{{.*}}, %[[H]], %[[TILE]], %[[P]]]
// CHECK:             flash.key_grad_step {{.*}} at[%[[B]], %[[H]], %{{.*}}, %[[J]]] {{.*}} mask(#flash.causal)
// CHECK:           scf.for %{{.*}} = %[[PARTS]] to
// CHECK:             flash.key_grad_step
// CHECK-NOT:         mask
func.func @gradients(%q: !q, %k: !k, %l: !l) -> (!q, !k, !k) {
  %t, %n = flash.block_map of[1, 4, 128, 256] tiles([64, 32]) mask(#flash.causal) : tensor<1x4x2x8xi32>, tensor<1x4x2x2xi32>
  %tq, %nq = flash.block_map of[1, 4, 128, 256] tiles([32, 64]) over_queries mask(#flash.causal) : tensor<1x4x4x4xi32>, tensor<1x4x4x2xi32>
  %0, %1, %2 = flash.attention_grad %q, %k, %k, %q, %l, %q mask(#flash.causal)
      blocks(%t, %n : tensor<1x4x2x8xi32>, tensor<1x4x2x2xi32>) query_blocks(%tq, %nq : tensor<1x4x4x4xi32>, tensor<1x4x4x2xi32>)
      schedule(<query_tile = 64, key_tile = 64, query_step = 32, key_step = 32>)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %0, %1, %2 : !q, !k, !k
}

// -----

!q = tensor<2x8x300x16xf16>

// Without a score region one loop has all tiles, whose step computes whether its tile is a part.
// CHECK-LABEL: func @one_loop(
// CHECK:         %[[ANY:.*]] = arith.cmpi slt, %[[C0:.*]], %{{.*}} : index
// CHECK:         scf.if %[[ANY]]
// CHECK:           scf.for %[[ENTRY:.*]] = %[[C0]] to %{{.*}} step
// CHECK:             %[[IS_PART:.*]] = arith.cmpi slt, %[[ENTRY]], %{{.*}} : index
// CHECK:             flash.online_attention
// CHECK-SAME:          partial(%[[IS_PART]])
// CHECK-SAME:          mask(
// CHECK-NOT:     flash.online_attention
#stripes = affine_set<(b, h, i, j)[n, m] : (j floordiv 32 mod 2 == 0, i - j >= 0)>
func.func @one_loop(%q: !q) -> !q {
  %t, %n = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) mask(#flash.affine<#stripes>) : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
  %o = flash.attention %q, %q, %q mask(#flash.affine<#stripes>) blocks(%t, %n : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>)
      schedule(<query_tile = 64, key_tile = 32, features = specialize_warps|overlap>) : (!q, !q, !q) -> !q
  return %o : !q
}
