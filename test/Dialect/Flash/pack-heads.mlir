// Query heads that read the same keys become queries of one head.
// RUN: flash-opt %s --flash-pack-heads --split-input-file | FileCheck %s

// CHECK-DAG:   #[[ANY:.*]] = affine_set<(d0, d1, d2, d3)[s0, s1] : (-d3 + s1 - 1 >= 0)>
// CHECK-LABEL: func @causal(
// CHECK:         %[[HEADS:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [%{{.*}}, 32, 1, 128] [1, 1, 1, 1] : tensor<?x32x1x128xf16> to tensor<?x32x128xf16>
// CHECK:         %[[Q:.*]] = tensor.expand_shape %[[HEADS]] {{\[\[}}0], [1, 2], [3]] {{.*}} into tensor<?x8x4x128xf16>
// CHECK:         %[[O:.*]], %[[L:.*]] = flash.attention %[[Q]], %arg1, %arg1
// CHECK-SAME:      scale(5.000000e-01) mask(#flash.affine<#[[ANY]]>) lengths(%arg2
// CHECK-SAME:      -> (tensor<?x8x4x128xf16>, tensor<?x8x4xf32>)
// CHECK:         tensor.collapse_shape %[[O]] {{.*}} into tensor<?x32x128xf16>
// CHECK:         %[[OUT:.*]] = tensor.expand_shape {{.*}} into tensor<?x32x1x128xf16>
// CHECK:         tensor.collapse_shape %[[L]] {{\[\[}}0], [1, 2]] : tensor<?x8x4xf32> into tensor<?x32xf32>
// CHECK:         %[[LSE:.*]] = tensor.expand_shape {{.*}} into tensor<?x32x1xf32>
// CHECK:         return %[[OUT]], %[[LSE]]
func.func @causal(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xf16>, %n: tensor<?xi32>)
    -> (tensor<?x32x1x128xf16>, tensor<?x32x1xf32>) {
  %o, %lse = flash.attention %q, %k, %k scale(0.5) mask(#flash.causal) lengths(%n : tensor<?xi32>)
      : (tensor<?x32x1x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>) -> (tensor<?x32x1x128xf16>, tensor<?x32x1xf32>)
  return %o, %lse : tensor<?x32x1x128xf16>, tensor<?x32x1xf32>
}

// -----

// A head is known by its group and its place there, and the query is the first.
// CHECK-DAG:   #[[LEFT:.*]] = affine_set<(d0, d1, d2, d3)[s0, s1] : (d1 * 3 + d2 - d3 >= 0)>
// CHECK-DAG:   #[[RIGHT:.*]] = affine_set<(d0, d1, d2, d3)[s0, s1] : (d3 - 5 >= 0)>
// CHECK-LABEL: func @positions(
// CHECK:         mask(#flash.any_of<[#flash.affine<#[[LEFT]]>, #flash.affine<#[[RIGHT]]>]>) score {
// CHECK:         ^bb0(%[[S:.*]]: f32, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-DAG:       %[[SIZE:.*]] = arith.constant 3 : index
// CHECK-DAG:       %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:           %[[FIRST:.*]] = arith.muli %[[H]], %[[SIZE]]
// CHECK:           %[[HEAD:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK:           tensor.extract %arg2[%[[HEAD]], %[[ZERO]], %[[J]]]
#heads = affine_set<(b, h, i, j)[nq, nk] : (h - j >= 0)>
#rest = affine_set<(b, h, i, j)[nq, nk] : (j - 5 * nq - i >= 0)>
func.func @positions(%q: tensor<2x6x1x16xf32>, %k: tensor<2x2x90x16xf32>, %bias: tensor<6x1x90xf32>) -> tensor<2x6x1x16xf32> {
  %o = flash.attention %q, %k, %k mask(#flash.any_of<[#flash.affine<#heads>, #flash.affine<#rest>]>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%h, %i, %j] : tensor<6x1x90xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (tensor<2x6x1x16xf32>, tensor<2x2x90x16xf32>, tensor<2x2x90x16xf32>) -> tensor<2x6x1x16xf32>
  return %o : tensor<2x6x1x16xf32>
}

// -----

// What stays: a head for each key head, several queries, sizes that are not
// known, a sink, no sequences.
// CHECK-LABEL: func @apart(
// CHECK-NOT:     tensor.
// CHECK:         return
func.func @apart(%q: tensor<2x4x1x16xf32>, %k: tensor<2x4x90x16xf32>, %q2: tensor<2x4x2x16xf32>, %k2: tensor<2x2x90x16xf32>,
                 %any: tensor<2x?x1x16xf32>, %anyk: tensor<2x?x90x16xf32>, %sink: tensor<4xf32>,
                 %q0: tensor<0x4x1x16xf32>, %k0: tensor<0x2x90x16xf32>)
    -> (tensor<2x4x1x16xf32>, tensor<2x4x2x16xf32>, tensor<2x?x1x16xf32>, tensor<2x4x1x16xf32>, tensor<0x4x1x16xf32>) {
  %a = flash.attention %q, %k, %k : (tensor<2x4x1x16xf32>, tensor<2x4x90x16xf32>, tensor<2x4x90x16xf32>) -> tensor<2x4x1x16xf32>
  %b = flash.attention %q2, %k2, %k2 : (tensor<2x4x2x16xf32>, tensor<2x2x90x16xf32>, tensor<2x2x90x16xf32>) -> tensor<2x4x2x16xf32>
  %c = flash.attention %any, %anyk, %anyk : (tensor<2x?x1x16xf32>, tensor<2x?x90x16xf32>, tensor<2x?x90x16xf32>) -> tensor<2x?x1x16xf32>
  %d = flash.attention %q, %k2, %k2 sink(%sink : tensor<4xf32>)
      : (tensor<2x4x1x16xf32>, tensor<2x2x90x16xf32>, tensor<2x2x90x16xf32>) -> tensor<2x4x1x16xf32>
  %e = flash.attention %q0, %k0, %k0 : (tensor<0x4x1x16xf32>, tensor<0x2x90x16xf32>, tensor<0x2x90x16xf32>) -> tensor<0x4x1x16xf32>
  return %a, %b, %c, %d, %e : tensor<2x4x1x16xf32>, tensor<2x4x2x16xf32>, tensor<2x?x1x16xf32>, tensor<2x4x1x16xf32>, tensor<0x4x1x16xf32>
}
