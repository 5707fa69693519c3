// The tiling interface, driven by upstream's transform dialect.
// RUN: flash-opt %s --split-input-file --transform-interpreter --canonicalize --cse --verify-diagnostics | FileCheck %s

// Along the keys: the state is carried, the position moves.
// CHECK-LABEL: func @keys(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<1x4x32x16xf16>, %[[K:[^:]*]]: tensor<1x2x512x16xf16>
// CHECK:         scf.for %[[J:[^ ]*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[KT:.*]] = tensor.extract_slice %[[K]][0, 0, %[[J]], 0] [1, 2, 128, 16]
// CHECK:           %[[A1:.*]], %[[M1:.*]], %[[L1:.*]] = flash.online_attention ins(%[[Q]], %[[KT]]
// CHECK-SAME:        outs(%[[A]], %[[M]], %[[L]]
// CHECK-SAME:        at[0, 0, 0, %[[J]]] of[32, 512] scale({{.*}}) mask(#flash.causal)
// CHECK:           scf.yield %[[A1]], %[[M1]], %[[L1]]
func.func @keys(%q: tensor<1x4x32x16xf16>, %k: tensor<1x2x512x16xf16>, %v: tensor<1x2x512x16xf16>,
                %a: tensor<1x4x32x16xf32>, %m: tensor<1x4x32xf32>, %l: tensor<1x4x32xf32>)
    -> (tensor<1x4x32x16xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>) {
  %0:3 = flash.online_attention
      ins(%q, %k, %v : tensor<1x4x32x16xf16>, tensor<1x2x512x16xf16>, tensor<1x2x512x16xf16>)
      outs(%a, %m, %l : tensor<1x4x32x16xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>)
      at[0, 0, 0, 0] of[32, 512] scale(0.25) mask(#flash.causal)
  return %0#0, %0#1, %0#2 : tensor<1x4x32x16xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 0, 0, 128] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A tile of one head: its existing keys are divided among the key tiles.
// CHECK-DAG: #[[CLIP:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 4)>
// CHECK-DAG: #[[ZERO:.*]] = affine_map<(d0) -> (0, d0)>
// CHECK-LABEL: func @padded_tile(
// CHECK-SAME:    %[[I:[^:]*]]: index, %[[N:[^:]*]]: index)
// CHECK:         scf.for %[[J:[^ ]*]] =
// CHECK:           %[[AT:.*]] = affine.apply #{{.*}}(%[[J]])
// CHECK:           %[[CLIPPED:.*]] = affine.min #[[CLIP]](%[[J]])[%[[N]]]
// CHECK:           %[[KEYS:.*]] = affine.max #[[ZERO]](%[[CLIPPED]])
// CHECK:           flash.online_attention
// CHECK-SAME:        at[0, 1, %[[I]], %[[AT]]] of[100, 200] keys(%[[KEYS]])
// CHECK:           ^bb0
// CHECK:           flash.yield
func.func @padded_tile(%q: tensor<4x8xf32>, %k: tensor<8x8xf32>, %a: tensor<4x8xf32>, %m: tensor<4xf32>,
                       %i: index, %n: index) -> tensor<4x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
      outs(%a, %m, %m : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
      at[0, 1, %i, 64] of[100, 200] keys(%n) scale(1.0) score {
  ^bb0(%s: f32, %b: index, %h: index, %r: index, %j: index):
    flash.yield %s : f32
  }
  return %0#0 : tensor<4x8xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Along batch, heads and queries, the step fused into the finalize.
// CHECK-DAG: #[[HEAD:.*]] = affine_map<(d0) -> (d0 floordiv 2)>
// CHECK-LABEL: func @fuse(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<3x4x64x16xf16>, %[[K:[^:]*]]: tensor<3x2x70x16xf16>
// CHECK-SAME:    %[[N:[^:]*]]: tensor<3xi32>
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[TILE:.*]]) in (3, 4, 2)
// CHECK:           %[[I:.*]] = affine.apply #{{.*}}(%[[TILE]])
// CHECK-DAG:       %[[KH:.*]] = affine.apply #[[HEAD]](%[[H]])
// CHECK-DAG:       tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 32, 16]
// CHECK-DAG:       tensor.extract_slice %[[K]][%[[B]], %[[KH]], 0, 0] [1, 1, 70, 16]
// CHECK-DAG:       tensor.extract_slice %[[N]][%[[B]]] [1]
// CHECK:           flash.online_attention
// CHECK-SAME:        at[%[[B]], %[[H]], %[[I]], 0] of[64, 70] {{.*}} lengths(%{{.*}} : tensor<1xi32>)
// CHECK:           flash.finalize
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 32, 16]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[H]], %[[I]]] [1, 1, 32]
func.func @fuse(%q: tensor<3x4x64x16xf16>, %k: tensor<3x2x70x16xf16>, %v: tensor<3x2x70x16xf16>, %n: tensor<3xi32>,
                %a: tensor<3x4x64x16xf32>, %m: tensor<3x4x64xf32>, %l: tensor<3x4x64xf32>, %e: tensor<3x4x64x16xf16>)
    -> (tensor<3x4x64x16xf16>, tensor<3x4x64xf32>) {
  %0:3 = flash.online_attention
      ins(%q, %k, %v : tensor<3x4x64x16xf16>, tensor<3x2x70x16xf16>, tensor<3x2x70x16xf16>)
      outs(%a, %m, %l : tensor<3x4x64x16xf32>, tensor<3x4x64xf32>, tensor<3x4x64xf32>)
      at[0, 0, 0, 0] of[64, 70] scale(0.25) lengths(%n : tensor<3xi32>)
  %o, %lse = flash.finalize ins(%0#0, %0#1, %0#2 : tensor<3x4x64x16xf32>, tensor<3x4x64xf32>, tensor<3x4x64xf32>)
      outs(%e, %l : tensor<3x4x64x16xf16>, tensor<3x4x64xf32>) -> (tensor<3x4x64x16xf16>, tensor<3x4x64xf32>)
  return %o, %lse : tensor<3x4x64x16xf16>, tensor<3x4x64xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %op = transform.structured.match ops{["flash.finalize"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [1, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %new = transform.structured.fuse_into_containing_op %step into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Head counts known at run time only: the group is their quotient.
// CHECK-LABEL: func @dynamic_heads(
// CHECK:         scf.forall (%[[H:.*]], %{{.*}}) in
// CHECK:           %[[G:.*]] = arith.divui
// CHECK:           %[[KH:.*]] = arith.divui %[[H]], %[[G]]
// CHECK:           tensor.extract_slice %{{.*}}[0, %[[KH]], 0, 0]
func.func @dynamic_heads(%q: tensor<1x?x64x16xf32>, %k: tensor<1x?x70x16xf32>, %a: tensor<1x?x64x16xf32>,
                         %m: tensor<1x?x64xf32>) -> tensor<1x?x64x16xf32> {
  %0:3 = flash.online_attention
      ins(%q, %k, %k : tensor<1x?x64x16xf32>, tensor<1x?x70x16xf32>, tensor<1x?x70x16xf32>)
      outs(%a, %m, %m : tensor<1x?x64x16xf32>, tensor<1x?x64xf32>, tensor<1x?x64xf32>)
      at[0, 0, 0, 0] of[64, 70] scale(0.25)
  return %0#0 : tensor<1x?x64x16xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 1, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Untiled heads of unknown number stay whole.
// CHECK-LABEL: func @untiled_heads(
// CHECK:         scf.forall (%[[I:.*]]) in (2)
// CHECK:           tensor.extract_slice %{{.*}}[0, 0, %{{.*}}, 0] [1, %{{.*}}, 32, 16]
// CHECK-NOT:       arith.divui
// CHECK:           flash.online_attention
func.func @untiled_heads(%q: tensor<1x?x64x16xf32>, %k: tensor<1x?x70x16xf32>, %a: tensor<1x?x64x16xf32>,
                         %m: tensor<1x?x64xf32>) -> tensor<1x?x64x16xf32> {
  %0:3 = flash.online_attention
      ins(%q, %k, %k : tensor<1x?x64x16xf32>, tensor<1x?x70x16xf32>, tensor<1x?x70x16xf32>)
      outs(%a, %m, %m : tensor<1x?x64x16xf32>, tensor<1x?x64xf32>, tensor<1x?x64xf32>)
      at[0, 0, 0, 0] of[64, 70] scale(0.25)
  return %0#0 : tensor<1x?x64x16xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 0, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Two heads at a time could split a group.
func.func @two_heads(%q: tensor<1x4x64x16xf32>, %k: tensor<1x1x70x16xf32>, %a: tensor<1x4x64x16xf32>,
                     %m: tensor<1x4x64xf32>) {
  // expected-error @below {{can be tiled along heads only one head at a time}}
  // expected-error @below {{to tile operation}}
  // expected-error @below {{failed to generate tiling loops}}
  // expected-note @below {{when applied to this op}}
  %0:3 = flash.online_attention
      ins(%q, %k, %k : tensor<1x4x64x16xf32>, tensor<1x1x70x16xf32>, tensor<1x1x70x16xf32>)
      outs(%a, %m, %m : tensor<1x4x64x16xf32>, tensor<1x4x64xf32>, tensor<1x4x64xf32>)
      at[0, 0, 0, 0] of[64, 70] scale(0.25)
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{transform.structured.tile_using_forall failed to apply}}
    %tiled, %loop = transform.structured.tile_using_forall %op tile_sizes [0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The precision stays.
// CHECK-LABEL: func @precision(
// CHECK:         scf.for
// CHECK:           flash.online_attention {{.*}} scale({{.*}}) precision(tf32)
func.func @precision(%q: tensor<32x16xf32>, %k: tensor<512x16xf32>, %a: tensor<32x16xf32>, %m: tensor<32xf32>) -> tensor<32x16xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<32x16xf32>, tensor<512x16xf32>, tensor<512x16xf32>)
      outs(%a, %m, %m : tensor<32x16xf32>, tensor<32xf32>, tensor<32xf32>)
      at[0, 0, 0, 0] of[32, 512] scale(0.25) precision(tf32)
  return %0#0 : tensor<32x16xf32>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["flash.online_attention"]} in %root : (!transform.any_op) -> !transform.any_op
    %tiled, %loop = transform.structured.tile_using_for %op tile_sizes [0, 128] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
