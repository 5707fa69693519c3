// For a CPU: scores are held keys by queries, and products are of f32.
// RUN: flash-opt %s --flash-decompose="transpose-scores guard-values" --split-input-file | FileCheck %s

// CHECK-DAG:   #[[DI:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG:   #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[QUERY:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG:   #[[P:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-LABEL: func @step(
// CHECK-SAME:    %[[Q:.*]]: tensor<16x8xf16>, %[[K:.*]]: tensor<64x8xf16>, %[[V:.*]]: tensor<64x24xf16>,
// The query tile is transposed and widened before the loop.
// CHECK:         %[[QT:.*]] = linalg.generic {indexing_maps = [#[[DI]], {{.*}} ins(%[[Q]] : {{.*}}) outs(%{{.*}} : tensor<8x16xf32>)
// CHECK:         scf.for
// CHECK:           %[[WIDE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<32x8xf32>)
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        arith.extf
// CHECK:           %[[S:.*]] = linalg.contract indexing_maps = [#[[KEY]], #[[QUERY]], {{.*}}] ins(%[[WIDE]], %[[QT]] : {{.*}}) outs(%{{.*}} : tensor<32x16xf32>)
// CHECK:           %[[X:.*]] = linalg.generic {{.*}} outs(%[[S]]
// CHECK:             linalg.index 1
// CHECK:             linalg.index 0
// CHECK:           linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[X]]
// CHECK:           %[[PROBABILITIES:.*]] = linalg.generic {indexing_maps = [#[[COLUMN]], #[[COLUMN]], {{.*}} outs(%[[X]]
// CHECK:             math.fma
// CHECK:             math.exp2
// CHECK:           %[[WIDE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<32x24xf32>)
// CHECK-NOT:       arith.truncf
// CHECK:           flash.is_finite %[[WIDE]] : tensor<32x24xf32>
// CHECK:           linalg.contract indexing_maps = [#[[P]], #[[QUERY]], {{.*}}] ins(%[[PROBABILITIES]], %[[WIDE]]
// CHECK:           linalg.generic {indexing_maps = [#[[P]], #[[QUERY]], {{.*}} ins(%[[PROBABILITIES]], %[[WIDE]]
func.func @step(%q: tensor<16x8xf16>, %k: tensor<64x8xf16>, %v: tensor<64x24xf16>, %acc: tensor<16x24xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x24xf32> {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %r:3 = scf.for %j = %c0 to %c64 step %c32 iter_args(%a = %acc, %m = %max, %l = %sum) -> (tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) {
    %kt = tensor.extract_slice %k[%j, 0] [32, 8] [1, 1] : tensor<64x8xf16> to tensor<32x8xf16>
    %vt = tensor.extract_slice %v[%j, 0] [32, 24] [1, 1] : tensor<64x24xf16> to tensor<32x24xf16>
    %s:3 = flash.online_attention ins(%q, %kt, %vt : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x24xf16>)
        outs(%a, %m, %l : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, %j] of[16, 64] scale(0.5) unit(0.5) mask(#flash.causal)
    scf.yield %s#0, %s#1, %s#2 : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>
  }
  return %r#0 : tensor<16x24xf32>
}
