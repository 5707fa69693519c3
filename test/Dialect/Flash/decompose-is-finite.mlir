// RUN: flash-opt %s --flash-decompose-is-finite | FileCheck %s

// CHECK-LABEL: func @tile(
// CHECK-SAME:    %[[V:.*]]: tensor<32x24xf16>
// CHECK:         %[[COLUMNS:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[V]] : {{.*}}) outs(%{{.*}} : tensor<24xf32>)
// CHECK:           %[[X:.*]] = arith.extf
// CHECK:           %[[ZERO:.*]] = arith.constant 0.0
// CHECK:           %[[PRODUCT:.*]] = arith.mulf %[[X]], %[[ZERO]]
// CHECK:           arith.addf %out, %[[PRODUCT]]
// CHECK:         %[[TOTAL:.*]] = linalg.generic {{.*}} ins(%[[COLUMNS]]
// CHECK:         %[[SUM:.*]] = tensor.extract %[[TOTAL]][]
// CHECK:         %[[FINITE:.*]] = arith.cmpf ord, %[[SUM]], %[[SUM]]
// CHECK:         return %[[FINITE]]
func.func @tile(%v: tensor<32x24xf16>) -> i1 {
  %f = flash.is_finite %v : tensor<32x24xf16>
  return %f : i1
}

// CHECK-LABEL: func @zeros(
// CHECK-SAME:    %[[K:.*]]: tensor<32x24xf16>
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[K]] : {{.*}}) outs(%{{.*}} : tensor<32x24xf16>)
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f16
// CHECK:           %[[SIZE:.*]] = math.absf
// CHECK:           %[[FINITE:.*]] = arith.cmpf olt, %[[SIZE]]
// CHECK:           arith.select %[[FINITE]], %[[X]], %{{.*}} : f16
// CHECK:         return %[[R]]
func.func @zeros(%k: tensor<32x24xf16>) -> tensor<32x24xf16> {
  %f = flash.zero_nonfinite %k : tensor<32x24xf16>
  return %f : tensor<32x24xf16>
}

// CHECK-LABEL: func @open(
// CHECK:         %[[N:.*]] = tensor.dim
// CHECK:         tensor.empty(%[[N]]) : tensor<?xf32>
func.func @open(%v: tensor<?x?xf32>) -> i1 {
  %f = flash.is_finite %v : tensor<?x?xf32>
  return %f : i1
}
