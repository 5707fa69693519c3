// RUN: flash-opt %s --flash-online-softmax --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @plain(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x8x333x64xf16>, %[[K:[^:]*]]: tensor<2x2x517x64xf16>, %[[V:[^:]*]]: tensor<2x2x517x48xf16>
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:     %[[A:.*]] = linalg.fill {{.*}} -> tensor<2x8x333x48xf32>
// CHECK-DAG:     %[[M:.*]] = linalg.fill ins(%[[INF]] : f32) {{.*}} -> tensor<2x8x333xf32>
// CHECK:         %[[L:.*]] = linalg.fill {{.*}} -> tensor<2x8x333xf32>
// CHECK:         %[[A1:.*]], %[[M1:.*]], %[[L1:.*]] = flash.online_attention ins(%[[Q]], %[[K]], %[[V]]
// CHECK-SAME:      outs(%[[A]], %[[M]], %[[L]]
// CHECK-SAME:      at[0, 0, 0, 0] of[333, 517] scale(1.250000e-01) unit(1.250000e-01) mask(#flash.causal)
// CHECK:         flash.finalize ins(%[[A1]], %[[M1]], %[[L1]]
// CHECK-SAME:      unit(1.250000e-01)
// CHECK-SAME:      -> (tensor<2x8x333x48xf16>, tensor<2x8x333xf32>)
func.func @plain(%q: tensor<2x8x333x64xf16>, %k: tensor<2x2x517x64xf16>, %v: tensor<2x2x517x48xf16>)
    -> (tensor<2x8x333x48xf16>, tensor<2x8x333xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal)
      : (tensor<2x8x333x64xf16>, tensor<2x2x517x64xf16>, tensor<2x2x517x48xf16>)
      -> (tensor<2x8x333x48xf16>, tensor<2x8x333xf32>)
  return %o, %lse : tensor<2x8x333x48xf16>, tensor<2x8x333xf32>
}

// -----

// A sink is a key whose logit has been seen and whose value is 0: its maximum
// is the logit, its sum 1. Dynamic sizes come from q and k.
// CHECK-LABEL: func @sink(
// CHECK-SAME:    %[[SINK:[^:]*]]: tensor<?xf32>
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%[[SINK]] : tensor<?xf32>)
// CHECK:           linalg.yield %in
// CHECK:         %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:         %[[L:.*]] = linalg.fill ins(%[[ONE]] : f32)
// CHECK:         flash.online_attention {{.*}} outs(%{{.*}}, %[[M]], %[[L]]
// CHECK-SAME:      at[0, 0, 0, 0] of[%{{.*}}, %{{.*}}]
// CHECK-SAME:      lengths(%{{.*}} : tensor<?xi32>) schedule(<query_tile = 8, key_tile = 8>) score {
// CHECK:           flash.yield
func.func @sink(%q: tensor<?x?x?x16xf32>, %s: tensor<?xf32>, %n: tensor<?xi32>) -> tensor<?x?x?x16xf32> {
  %o = flash.attention %q, %q, %q lengths(%n : tensor<?xi32>) sink(%s : tensor<?xf32>)
      schedule(<query_tile = 8, key_tile = 8>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %y = arith.mulf %x, %x : f32
    flash.yield %y : f32
  } : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// -----

// Where the unit is the scale, the sink is divided by it.
// CHECK-LABEL: func @sink_of_products(
// Where the unit is the scale, the sink is divided by it. A NaN stays one.
// CHECK:         arith.mulf
// CHECK:         arith.minimumf
// CHECK:         flash.online_attention {{.*}} scale(2.500000e-01) unit(2.500000e-01)
func.func @sink_of_products(%q: tensor<1x2x8x16xf32>, %s: tensor<2xf32>) -> tensor<1x2x8x16xf32> {
  %o = flash.attention %q, %q, %q sink(%s : tensor<2xf32>)
      : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o : tensor<1x2x8x16xf32>
}

// -----

// A scale that f32 cannot bear, or that is not positive, multiplies scores.
// CHECK-LABEL: func @scales(
// CHECK:         flash.online_attention {{.*}} scale(1.000000e-46){{$}}
// CHECK:         flash.online_attention {{.*}} scale(-1.000000e+00){{$}}
func.func @scales(%q: tensor<1x2x8x16xf32>) -> (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) {
  %o = flash.attention %q, %q, %q scale(1.0e-46) : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  %p = flash.attention %q, %q, %q scale(-1.0) : (tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x8x16xf32>
  return %o, %p : tensor<1x2x8x16xf32>, tensor<1x2x8x16xf32>
}

// -----

// A result type may know more, or less, than the operands.
// CHECK-LABEL: func @result_types(
// CHECK:         tensor.cast %{{.*}} : tensor<1x2x?x8xf32> to tensor<1x2x5x8xf32>
// CHECK:         tensor.cast %{{.*}} : tensor<1x2x?xf32> to tensor<1x?x?xf32>
// CHECK:         flash.finalize {{.*}} -> (tensor<1x2x5x8xf32>, tensor<1x?x?xf32>)
func.func @result_types(%q: tensor<1x2x?x8xf32>) -> (tensor<1x2x5x8xf32>, tensor<1x?x?xf32>) {
  %o, %lse = flash.attention %q, %q, %q
      : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) -> (tensor<1x2x5x8xf32>, tensor<1x?x?xf32>)
  return %o, %lse : tensor<1x2x5x8xf32>, tensor<1x?x?xf32>
}

// -----

func.func @rank3(%q: tensor<4x64x16xf32>) -> tensor<4x64x16xf32> {
  // expected-error @below {{needs rank 4 here; run flash-expand-rank first}}
  %o = flash.attention %q, %q, %q
      : (tensor<4x64x16xf32>, tensor<4x64x16xf32>, tensor<4x64x16xf32>) -> tensor<4x64x16xf32>
  return %o : tensor<4x64x16xf32>
}
