// The keys cut into splits that run in parallel, by upstream's transform dialect.
// RUN: flash-opt %s --split-input-file --transform-interpreter --canonicalize --cse --verify-diagnostics | FileCheck %s

// Each split starts from the identity; the merge adds them to the op's state.
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-DAG: #[[FIRST:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @splits(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x32x16xf16>, %[[K:[^:]*]]: tensor<1x2x512x16xf16>
// CHECK-SAME:    %[[A:[^:]*]]: tensor<1x4x32x24xf32>, %[[M:[^:]*]]: tensor<1x4x32xf32>, %[[L:[^:]*]]: tensor<1x4x32xf32>)
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f32
// CHECK-DAG:     %[[A0:.*]] = linalg.fill {identity} ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x1x4x32x24xf32>)
// CHECK-DAG:     %[[M0:.*]] = linalg.fill {identity} ins(%[[INF]] : f32) outs(%{{.*}} : tensor<4x1x4x32xf32>)
// CHECK-DAG:     %[[L0:.*]] = linalg.fill {identity} ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x1x4x32xf32>)
// CHECK:         %[[P:.*]]:3 = scf.forall (%[[S:.*]]) in (4) shared_outs(%[[PA:.*]] = %[[A0]], %[[PM:.*]] = %[[M0]], %[[PL:.*]] = %[[L0]])
// CHECK-DAG:       %[[J:.*]] = affine.apply #{{.*}}(%[[S]])
// CHECK-DAG:       %[[AS:.*]] = tensor.extract_slice %[[PA]][%[[S]], 0, 0, 0, 0] [1, 1, 4, 32, 24] {{.*}} to tensor<1x4x32x24xf32>
// CHECK-DAG:       %[[MS:.*]] = tensor.extract_slice %[[PM]][%[[S]], 0, 0, 0] [1, 1, 4, 32] {{.*}} to tensor<1x4x32xf32>
// CHECK-DAG:       %[[LS:.*]] = tensor.extract_slice %[[PL]][%[[S]], 0, 0, 0]
// CHECK-DAG:       %[[KS:.*]] = tensor.extract_slice %[[K]][0, 0, %[[J]], 0] [1, 2, 128, 16]
// CHECK:           flash.online_attention ins(%[[Q]], %[[KS]], %{{.*}} outs(%[[AS]], %[[MS]], %[[LS]] :
// CHECK-SAME:        at[0, 0, 0, %[[J]]] of[32, 512] scale({{.*}}) mask(#flash.causal) {test.step}
// CHECK-COUNT-3:   tensor.parallel_insert_slice {{.*}}[%[[S]], 0, 0, 0
// CHECK:         } {loop}
// CHECK:         %[[ML:.*]]:2 = linalg.generic {indexing_maps = [#[[ALL]], #[[ALL]], #[[ROWS]], #[[ROWS]]]
// CHECK-SAME:      iterator_types = ["reduction", "parallel", "parallel", "parallel"]
// CHECK-SAME:      ins(%[[P]]#1, %[[P]]#2 : {{.*}}) outs(%[[M]], %[[L]] : {{.*}}) attrs = {merge}
// CHECK-NEXT:    ^bb0(%[[M1:.*]]: f32, %[[L1:.*]]: f32, %[[M2:.*]]: f32, %[[L2:.*]]: f32):
// CHECK:           %[[MAX:.*]] = arith.maxnumf %[[M2]], %[[M1]]
// CHECK:           %[[FACTOR:.*]] = arith.select
// CHECK:           %[[X2:.*]] = math.fma %[[M2]], %[[FACTOR]],
// CHECK:           %[[Z:.*]] = math.fma %[[MAX]], %[[FACTOR]],
// CHECK:           %[[SHIFT:.*]] = arith.maxnumf %[[Z]],
// CHECK:           arith.subf %[[X2]], %[[SHIFT]]
// CHECK:           %[[X1:.*]] = math.fma %[[M1]], %[[FACTOR]],
// CHECK:           arith.subf %[[X1]], %[[SHIFT]]
// CHECK:           linalg.yield %[[MAX]], %{{.*}}
// CHECK:         %[[SCALED:.*]] = linalg.generic {indexing_maps = [#[[FIRST]], #[[FIRST]], #[[ALL]]]
// CHECK-SAME:      ins(%[[M]], %[[ML]]#0 : {{.*}}) outs(%[[A]] : {{.*}}) attrs = {merge}
// CHECK:         %[[ACC:.*]] = linalg.generic
// CHECK-SAME:      iterator_types = ["reduction", "parallel", "parallel", "parallel", "parallel"]
// CHECK-SAME:      ins(%[[P]]#1, %[[ML]]#0, %[[P]]#0 : {{.*}}) outs(%[[SCALED]] : {{.*}}) attrs = {merge}
// CHECK:         return %[[ACC]], %[[ML]]#0, %[[ML]]#1
func.func @splits(%q: tensor<1x4x32x16xf16>, %k: tensor<1x2x512x16xf16>, %v: tensor<1x2x512x24xf16>,
                  %a: tensor<1x4x32x24xf32>, %m: tensor<1x4x32xf32>, %l: tensor<1x4x32xf32>)
    -> (tensor<1x4x32x24xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>) {
  %0:3 = flash.online_attention
      ins(%q, %k, %v : tensor<1x4x32x16xf16>, tensor<1x2x512x16xf16>, tensor<1x2x512x24xf16>)
      outs(%a, %m, %l : tensor<1x4x32x24xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>)
      at[0, 0, 0, 0] of[32, 512] scale(0.25) mask(#flash.causal)
  return %0#0, %0#1, %0#2 : tensor<1x4x32x24xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %identity:3, %step, %merge:3, %loop = transform.structured.tile_reduction_using_forall %op by num_threads = [0, 0, 0, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                  !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.annotate %identity#0 "identity" : !transform.any_op
    transform.annotate %identity#1 "identity" : !transform.any_op
    transform.annotate %identity#2 "identity" : !transform.any_op
    transform.annotate %step "test.step" : !transform.any_op
    transform.annotate %merge#0 "merge" : !transform.any_op
    transform.annotate %merge#1 "merge" : !transform.any_op
    transform.annotate %merge#2 "merge" : !transform.any_op
    transform.annotate %loop "loop" : !transform.any_op
    transform.yield
  }
}

// -----

// A tile of one head, queries and keys of unknown number, the existing keys
// divided among the splits.
// CHECK-DAG: #[[UP:.*]] = affine_map<()[s0] -> (s0 ceildiv 64)>
// CHECK-DAG: #[[DOWN:.*]] = affine_map<()[s0] -> (s0 floordiv 64)>
// CHECK-LABEL: func @dynamic_tile(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<?x8xf32>, %[[K:[^:]*]]: tensor<?x8xf32>
// CHECK:         %[[SPLITS:.*]] = affine.apply #[[UP]]()
// CHECK:         tensor.empty(%[[SPLITS]], %{{.*}}) : tensor<?x?x8xf32>
// CHECK:         scf.forall (%[[J:.*]]) = (0) to (%{{.*}}) step (64)
// CHECK-DAG:       %[[S:.*]] = affine.apply #[[DOWN]]()[%[[J]]]
// CHECK-DAG:       tensor.extract_slice %{{.*}}[%[[S]], 0, 0] [1, %{{.*}}, 8] [1, 1, 1] : tensor<?x?x8xf32> to tensor<?x8xf32>
// CHECK-DAG:       tensor.extract_slice %[[K]][%[[J]], 0] [%{{.*}}, 8]
// CHECK:           %[[KEYS:.*]] = affine.max
// CHECK:           flash.online_attention {{.*}} at[0, 1, 2, %{{.*}}] of[100, 200] keys(%[[KEYS]])
// CHECK:             flash.yield
func.func @dynamic_tile(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %a: tensor<?x8xf32>, %m: tensor<?xf32>,
                        %n: index) -> tensor<?x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>)
      outs(%a, %m, %m : tensor<?x8xf32>, tensor<?xf32>, tensor<?xf32>)
      at[0, 1, 2, 3] of[100, 200] keys(%n) scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %j: index):
    flash.yield %s : f32
  }
  return %0#0 : tensor<?x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %identity:3, %step, %merge:3, %loop = transform.structured.tile_reduction_using_forall %op by tile_sizes = [0, 64]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                  !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A sequential loop would need a partial state for each key of a tile.
func.func @sequential(%q: tensor<4x8xf32>, %k: tensor<8x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>) {
  // expected-error @below {{can be split only by a parallel loop over its keys}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%a, %m, %m : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
      at[0, 0, 0, 0] of[4, 8] scale(1.0)
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{failed to tile using partial reduction}}
    %identity:3, %step, %merge:3, %loop = transform.structured.tile_reduction_using_for %op by tile_sizes = [0, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                  !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
