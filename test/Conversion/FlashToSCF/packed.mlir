// Tiles of several heads: those are visited that a pair of any of them keeps, and are
// full where all pairs of all of them do.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

// A tile of 16 queries of four heads: a mask that depends on no head is that of 16
// queries.

// CHECK-DAG:   #[[END:.*]] = affine_map<(d0) -> (d0 floordiv 32 + 1, 4)>
// CHECK-LABEL: func @causal(
// CHECK:         scf.forall (%{{.*}}, %{{.*}}, %[[I:.*]]) = {{.*}} step (1, 4, 16)
// CHECK:           affine.min #[[END]](%[[I]])
// CHECK:           flash.online_attention {{.*}} packed(4) scale({{[^)]*}}) unit({{[^)]*}}) schedule
// CHECK:           flash.online_attention {{.*}} packed(4) scale({{[^)]*}}) unit({{[^)]*}}) mask(#flash.causal<top_left>)
func.func @causal(%q: tensor<1x8x128x16xf32>, %k: tensor<1x2x128x16xf32>) -> tensor<1x8x128x16xf32> {
  %o = flash.attention %q, %k, %k mask(#flash.causal<top_left>) schedule(<query_tile = 64, key_tile = 32, packed_heads = 4>)
      : (tensor<1x8x128x16xf32>, tensor<1x2x128x16xf32>, tensor<1x2x128x16xf32>) -> tensor<1x8x128x16xf32>
  return %o : tensor<1x8x128x16xf32>
}

// -----

// Head h keeps the first 10 h + 5 keys: of heads h to h + 3 the last keeps most, and
// the first, fewest.

// CHECK-DAG:   #[[END:.*]] = affine_map<(d0) -> (4, (d0 * 5 + 17) floordiv 16 + 1)>
// CHECK-DAG:   #[[FULL:.*]] = affine_map<(d0) -> ((d0 * 5 + 2) floordiv 16, 4, (d0 * 5 + 17) floordiv 16 + 1)>
// CHECK-LABEL: func @by_head(
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) = {{.*}} step (1, 4, 16)
// CHECK-DAG:       affine.min #[[END]](%[[H]])
// CHECK-DAG:       affine.min #[[FULL]](%[[H]])
#set = affine_set<(b, h, i, j)[nq, nk] : (10 * h + 4 - j >= 0)>
func.func @by_head(%q: tensor<1x8x2x16xf32>, %k: tensor<1x2x128x16xf32>) -> tensor<1x8x2x16xf32> {
  %o = flash.attention %q, %k, %k mask(#flash.affine<#set>) schedule(<query_tile = 64, key_tile = 32, packed_heads = 4>)
      : (tensor<1x8x2x16xf32>, tensor<1x2x128x16xf32>, tensor<1x2x128x16xf32>) -> tensor<1x8x2x16xf32>
  return %o : tensor<1x8x2x16xf32>
}
