// Query heads that read the same keys share tiles: `packed_heads`.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

// Three heads, of 21 queries each: one row of 64 is left, and most queries do not
// exist. The heads of a query are next to each other, whatever the layout.

// CHECK-DAG:   #[[EXIST:.*]] = affine_map<(d0) -> (-d0 + 50, 21)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0) -> (d0 * 3)>
// CHECK-DAG:   #[[GROUP:.*]] = affine_map<(d0) -> (d0 floordiv 6)>
// CHECK-LABEL: func @packed(
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 12, 50) step (1, 3, 21) shared_outs(%[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[N:.*]] = affine.min #[[EXIST]](%[[I]])
// CHECK:           %[[HEADS:.*]] = tensor.extract_slice %arg0[%[[B]], %[[H]], %[[I]], 0] [1, 3, %[[N]], 64] {{.*}} to tensor<3x?x64xf16>
// CHECK:           %[[QUERIES:.*]] = linalg.transpose ins(%[[HEADS]] : {{.*}} outs(%{{.*}} : tensor<?x3x64xf16>) permutation = [1, 0, 2]
// CHECK:           %[[FLAT:.*]] = tensor.collapse_shape %[[QUERIES]] {{\[\[}}0, 1], [2]] : tensor<?x3x64xf16> into tensor<?x64xf16>
// CHECK:           %[[Q:.*]] = tensor.pad %[[FLAT]]
// CHECK:           : tensor<?x64xf16> to tensor<64x64xf16>
// CHECK:           %[[KEYHEAD:.*]] = affine.apply #[[GROUP]](%[[H]])
// CHECK:           tensor.extract_slice %arg1[%[[B]], %[[KEYHEAD]], %[[J:.*]], 0]
// CHECK:           flash.online_attention ins(%[[Q]], {{.*}} at[%[[B]], %[[H]], %[[I]], %[[J]]] of[50, 256] packed(3) scale
// CHECK:           %[[TILE:.*]], %[[LSES:.*]] = flash.finalize
// CHECK:           %[[M:.*]] = affine.apply #[[ROWS]](%[[N]])
// CHECK:           %[[DONE:.*]] = tensor.extract_slice %[[TILE]][0, 0] [%[[M]], 48]
// CHECK:           %[[APART:.*]] = tensor.expand_shape %[[DONE]] {{\[\[}}0, 1], [2]] output_shape [%[[N]], 3, 48]
// CHECK:           %[[RESULT:.*]] = linalg.transpose ins(%[[APART]] : {{.*}} permutation = [1, 0, 2]
// CHECK:           %[[LSE:.*]] = linalg.transpose ins(%{{.*}} : tensor<?x3xf32>) outs(%{{.*}} : tensor<3x?xf32>) permutation = [1, 0]
// CHECK:           tensor.parallel_insert_slice %[[RESULT]] into %[[O]][%[[B]], %[[H]], %[[I]], 0] [1, 3, %[[N]], 48]
// CHECK:           tensor.parallel_insert_slice %[[LSE]] into %[[L]][%[[B]], %[[H]], %[[I]]] [1, 3, %[[N]]]
func.func @packed(%q: tensor<2x12x50x64xf16>, %k: tensor<2x2x256x64xf16>, %v: tensor<2x2x256x48xf16>) -> (tensor<2x12x50x48xf16>, tensor<2x12x50xf32>) {
  %o, %l = flash.attention %q, %k, %v schedule(<query_tile = 64, key_tile = 128, packed_heads = 3>)
      : (tensor<2x12x50x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x48xf16>) -> (tensor<2x12x50x48xf16>, tensor<2x12x50xf32>)
  return %o, %l : tensor<2x12x50x48xf16>, tensor<2x12x50xf32>
}

// -----

// Each row starts from the sink of its own head.

// CHECK-LABEL: func @sinks(
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}) = (0, 0, 0) to (2, 8, 20) step (1, 4, 16)
// CHECK:           linalg.generic
// CHECK:             %[[ROW:.*]] = linalg.index 0
// CHECK:             %[[OFROW:.*]] = arith.remui %[[ROW]], %c4
// CHECK:             %[[HEAD:.*]] = arith.addi %[[H]], %[[OFROW]]
// CHECK:             tensor.extract %arg2[%[[HEAD]]]
// CHECK:           } -> tensor<64xf32>
func.func @sinks(%q: tensor<2x8x20x64xf16>, %k: tensor<2x2x256x64xf16>, %s: tensor<8xf32>) -> tensor<2x8x20x64xf16> {
  %o = flash.attention %q, %k, %k sink(%s : tensor<8xf32>) schedule(<query_tile = 64, key_tile = 128, packed_heads = 4>)
      : (tensor<2x8x20x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x64xf16>) -> tensor<2x8x20x64xf16>
  return %o : tensor<2x8x20x64xf16>
}

// -----

// Few queries: what the combination works on at a time are heads of one query. The
// number of splits is that of tiles of packed heads.

// CHECK-LABEL: func @splits(
// CHECK:         %[[PART:.*]]:2 = scf.forall (%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0, 0) to (7, 2, 32, 20) step (1, 1, 4, 16)
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[S]], %[[B]], %[[H]], %[[I]], 0] [1, 1, 4, %{{.*}}, 64]
// CHECK:         scf.forall (%[[B:.*]], %[[I:.*]], %[[H:.*]]) = (0, 0, 0) to (2, 20, 32) step (1, 1, 8)
// CHECK:           tensor.extract_slice %[[PART]]#0[0, %[[B]], %[[H]], %[[I]], 0] [7, 1, 8, 1, 64] {{.*}} to tensor<7x8x64xf32>
// CHECK:           tensor.extract_slice %[[PART]]#1[0, %[[B]], %[[H]], %[[I]]] [7, 1, 8, 1]
// CHECK:           %[[X:.*]] = flash.combine
// CHECK:           tensor.parallel_insert_slice %[[X]] into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 8, 1, 64]
func.func @splits(%q: tensor<2x32x20x64xf16>, %k: tensor<2x8x2048x64xf16>) -> tensor<2x32x20x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, packed_heads = 4, split_ctas = 224>)
      : (tensor<2x32x20x64xf16>, tensor<2x8x2048x64xf16>, tensor<2x8x2048x64xf16>) -> tensor<2x32x20x64xf16>
  return %o : tensor<2x32x20x64xf16>
}
