// With precision(fp8) a kernel before the attention's interleaves values, and that loads tiles of 8 bits; without warps that have roles
// tiles are of dequantized rows.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --split-input-file | FileCheck %s

// CHECK-LABEL: func @attention
// CHECK-SAME:    %[[Q:[a-z0-9]*]]: tensor<2x4x100x64xf8E4M3FN>, %[[K:[a-z0-9]*]]: tensor<2x2x300x64xf8E4M3FN>, %[[V:[a-z0-9]*]]: tensor<2x2x300x64xf8E4M3FN>
// CHECK-SAME:    %[[QS:[a-z0-9]*]]: tensor<2x4xf32>, %[[KS:[a-z0-9]*]]: tensor<1xf32>, %[[VS:[a-z0-9]*]]: tensor<2x2xf32>
// Three tiles of 64 columns each.
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<2x2x192x128xf8E4M3FN>
// CHECK:         %[[VALUES:.*]] = flash.kernel over({{.*}}) by [1, 1, 128] outs(%[[E]] : {{.*}} schedule(<warps = 4>) {
// CHECK:           %[[TILE:.*]] = flash.load_rows %[[V]][%{{.*}}] rows(%{{.*}}) to_end : {{.*}} -> tensor<128x64xf8E4M3FN>
// CHECK:           %[[COLUMNS:.*]] = flash.interleave %[[TILE]]
// CHECK:           flash.store_rows %[[COLUMNS]] into %{{.*}} : tensor<64x128xf8E4M3FN> into tensor<2x2x192x128xf8E4M3FN>
// CHECK:         flash.kernel over
// CHECK:         ^bb0(%[[B:.*]]: index, %[[H:.*]]: index, %{{.*}}: index, %{{.*}}):
// CHECK:           %[[QT:.*]] = flash.load_rows %[[Q]]
// CHECK:           %[[HK:.*]] = affine.apply {{.*}}(%[[H]])
// CHECK:           %[[OF_Q:.*]] = tensor.extract %[[QS]][%[[B]], %[[H]]]
// CHECK:           %[[OF_K:.*]] = tensor.extract %[[KS]][%{{.*}}]
// CHECK:           %[[PRODUCT:.*]] = arith.mulf %[[OF_Q]], %[[OF_K]] : f32
// A factor below 0 makes all results NaN.
// CHECK:           %[[IS:.*]] = arith.cmpf oge, %[[PRODUCT]]
// CHECK:           %[[FACTOR:.*]] = arith.select %[[IS]]
// CHECK:           %[[OF_V:.*]] = tensor.extract %[[VS]][%[[B]], %[[HK]]]
// CHECK:           flash.visit
// CHECK:             %[[KT:.*]] = flash.load_rows %[[K]]
// CHECK:             %[[ROW:.*]] = affine.apply
// CHECK:             %[[VT:.*]] = flash.load_rows %[[VALUES]][%[[B]], %{{.*}}, %[[ROW]]] : {{.*}} -> tensor<64x128xf8E4M3FN>
// CHECK:             flash.online_attention ins(%[[QT]], %[[KT]], %[[VT]]
// CHECK-SAME:          factor(%[[FACTOR]]) scale(1.250000e-01) unit(0.69314718
// CHECK-SAME:          precision(fp8)
// CHECK:           %[[SCALED:.*]] = linalg.generic
// CHECK:             arith.mulf %{{.*}}, %[[OF_V]] : f32
// CHECK:           flash.finalize ins(%[[SCALED]], {{.*}} unit(0.69314718
!q = tensor<2x4x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @attention(%q: tensor<2x4x100x64xf8E4M3FN>, %k: tensor<2x2x300x64xf8E4M3FN>, %v: tensor<2x2x300x64xf8E4M3FN>,
                     %qs: tensor<2x4xf32>, %ks: tensor<1xf32>, %vs: tensor<2x2xf32>) -> !q {
  %qd = flash.dequantize %q scale(%qs : tensor<2x4xf32>) : tensor<2x4x100x64xf8E4M3FN> -> !q
  %kd = flash.dequantize %k scale(%ks : tensor<1xf32>) : tensor<2x2x300x64xf8E4M3FN> -> !k
  %vd = flash.dequantize %v scale(%vs : tensor<2x2xf32>) : tensor<2x2x300x64xf8E4M3FN> -> !k
  %o = flash.attention %qd, %kd, %vd precision(fp8) schedule(<query_tile = 64, key_tile = 128, features = specialize_warps>) : (!q, !k, !k) -> !q
  return %o : !q
}

// -----

// Keys that a batch does not have are zeros.
// CHECK-LABEL: func @lengths
// CHECK:         flash.kernel
// CHECK:           tensor.extract %{{.*}} : tensor<2xi32>
// CHECK:           flash.load_rows %{{.*}} rows(%{{[a-z0-9]*}}) : tensor<2x4x?x64xf8E4M3FN> -> tensor<128x64xf8E4M3FN>
// CHECK-NEXT:      flash.interleave
!t = tensor<2x4x?x64xbf16>
func.func @lengths(%q: tensor<2x4x?x64xf8E4M3FN>, %s: tensor<1xf32>, %n: tensor<2xi32>) -> !t {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x?x64xf8E4M3FN> -> !t
  %o = flash.attention %qd, %qd, %qd lengths(%n : tensor<2xi32>) precision(fp8) schedule(<query_tile = 64, key_tile = 128, features = specialize_warps>) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

// CHECK-LABEL: func @dequantized
// CHECK-NOT:     flash.interleave
// CHECK:         flash.load_rows {{.*}} -> tensor<64x64xbf16>
// CHECK:         flash.online_attention
// CHECK-NOT:       factor
!t = tensor<2x4x64x64xbf16>
func.func @dequantized(%q: tensor<2x4x64x64xf8E4M3FN>, %s: tensor<1xf32>) -> !t {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x64x64xf8E4M3FN> -> !t
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<query_tile = 64, key_tile = 64, features = none>) : (!t, !t, !t) -> !t
  return %o : !t
}
