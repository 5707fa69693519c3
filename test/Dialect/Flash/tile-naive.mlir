// Three loops, with scores and probabilities padded to whole tiles of keys.
// RUN: flash-opt %s --flash-tile-naive --convert-flash-to-scf --canonicalize --cse | FileCheck %s

// CHECK-DAG:   #[[PADDED:.*]] = affine_map<()[s0] -> ((s0 ceildiv 128) * 128)>
// CHECK-LABEL: func @dynamic(
// CHECK:         %[[NQ:.*]] = tensor.dim %arg0
// CHECK:         %[[NK:.*]] = tensor.dim %arg1
// CHECK:         %[[N:.*]] = affine.apply #[[PADDED]]()[%[[NK]]]
// CHECK:         %[[S:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[J:.*]]) = (0, 0, 0, 0) to (2, 4, %[[NQ]], %[[NK]]) step (1, 1, 128, 128)
// CHECK:           %[[QK:.*]] = scf.for {{.*}} iter_args
// CHECK:             linalg.contract
// CHECK:           linalg.generic {{.*}} outs(%[[QK]]
// CHECK:             arith.select
// CHECK:           arith.truncf {{.*}} : tensor<128x128xf32> to tensor<128x128xf16>
// CHECK:           tensor.parallel_insert_slice {{.*}}[%[[B]], %[[H]], %[[I]], %[[J]]]
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 4, %[[NQ]]) step (1, 1, 8)
// CHECK:           %[[ROWS:.*]] = tensor.extract_slice %[[S]][%[[B]], %[[H]], %[[I]], 0] [1, 1, %{{.*}}, %[[N]]]
// CHECK:           %[[SINK:.*]] = tensor.extract %arg3[%[[H]]]
// CHECK:           flash.softmax %[[ROWS]] sink(%[[SINK]]) : tensor<?x?xf16> -> (tensor<?x?xf16>, tensor<?xf32>)
// CHECK:         scf.forall {{.*}} step (1, 1, 128, 48)
// CHECK:           scf.for %{{.*}} = %c0 to %[[NK]] step %c64
// CHECK:             linalg.contract {{.*}} ins(%{{.*}} : tensor<128x64xf16>, tensor<64x48xf16>)
func.func @dynamic(%q: tensor<2x4x?x128xf16>, %k: tensor<2x2x?x128xf16>, %v: tensor<2x2x?x48xf16>, %s: tensor<4xf32>) -> (tensor<2x4x?x48xf16>, tensor<2x4x?xf32>) {
  %o, %l = flash.attention %q, %k, %v sink(%s : tensor<4xf32>)
      : (tensor<2x4x?x128xf16>, tensor<2x2x?x128xf16>, tensor<2x2x?x48xf16>) -> (tensor<2x4x?x48xf16>, tensor<2x4x?xf32>)
  return %o, %l : tensor<2x4x?x48xf16>, tensor<2x4x?xf32>
}

// Of f32 the tiles are smaller; whole tiles without a mask need no selection.
// CHECK-LABEL: func @whole(
// CHECK:         scf.forall {{.*}} to (1, 2, 128, 192) step (1, 1, 64, 64)
// CHECK-NOT:       arith.select
// CHECK-NOT:       arith.truncf
// CHECK:         flash.softmax %{{.*}} : tensor<8x192xf32> -> tensor<8x192xf32>
func.func @whole(%q: tensor<1x2x128x32xf32>, %k: tensor<1x2x192x32xf32>) -> tensor<1x2x128x32xf32> {
  %o = flash.attention %q, %k, %k : (tensor<1x2x128x32xf32>, tensor<1x2x192x32xf32>, tensor<1x2x192x32xf32>) -> tensor<1x2x128x32xf32>
  return %o : tensor<1x2x128x32xf32>
}
