// Rows of packed heads: row r is of head h + r mod 4 and query i + r floordiv 4.
// RUN: flash-opt %s --flash-decompose | FileCheck %s

// CHECK-LABEL: func @positions(
// CHECK-SAME:    %[[H:[^ ]*]]: index, %[[I:[^ ]*]]: index, %[[J:[^ ]*]]: index)
// CHECK:         %[[ROW:.*]] = linalg.index 0
// CHECK:         %[[COLUMN:.*]] = linalg.index 1
// CHECK:         %[[INGROUP:.*]] = arith.remui %[[ROW]], %{{.*}}
// CHECK:         %[[HEAD:.*]] = arith.addi %[[H]], %[[INGROUP]]
// CHECK:         %[[INTILE:.*]] = arith.divui %[[ROW]], %{{.*}}
// CHECK:         %[[QUERY:.*]] = arith.addi %[[I]], %[[INTILE]]
// CHECK:         %[[KEY:.*]] = arith.addi %[[J]], %[[COLUMN]]
#heads = affine_set<(b, h, i, j)[nq, nk] : (h + i - j >= 0)>
func.func @positions(%q: tensor<64x16xf16>, %k: tensor<32x16xf16>, %a: tensor<64x16xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>,
                     %h: index, %i: index, %j: index) -> (tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>) {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<64x16xf16>, tensor<32x16xf16>, tensor<32x16xf16>)
      outs(%a, %m, %l : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>)
      at[0, %h, %i, %j] of[8, 256] packed(4) scale(1.0) mask(#flash.affine<#heads>)
  return %0#0, %0#1, %0#2 : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
}
