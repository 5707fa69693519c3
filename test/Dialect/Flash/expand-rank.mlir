// RUN: flash-opt %s --flash-expand-rank --split-input-file | FileCheck %s

// CHECK-LABEL: func @heads(
// CHECK:         %[[Q:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1], [2], [3]]
// CHECK-SAME:      into tensor<1x8x?x64xf32>
// CHECK:         %[[O:.*]] = flash.attention %[[Q]]
// CHECK-NOT:       leading
// CHECK-SAME:      -> tensor<1x8x?x64xf32>
// CHECK:         tensor.collapse_shape %[[O]] {{\[\[}}0, 1], [2], [3]]
func.func @heads(%q: tensor<8x?x64xf32>, %k: tensor<2x?x64xf32>, %v: tensor<2x?x64xf32>) -> tensor<8x?x64xf32> {
  %o = flash.attention %q, %k, %v : (tensor<8x?x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) -> tensor<8x?x64xf32>
  return %o : tensor<8x?x64xf32>
}

// -----

// CHECK-LABEL: func @batch(
// CHECK:         flash.attention
// CHECK-SAME:      lengths(%arg3 : tensor<3xi32>)
// CHECK-SAME:      -> (tensor<3x1x50x16xf16>, tensor<3x1x50xf32>)
// CHECK:         tensor.collapse_shape {{.*}} {{\[\[}}0, 1], [2]] : tensor<3x1x50xf32>
func.func @batch(%q: tensor<3x50x16xf16>, %k: tensor<3x70x16xf16>, %v: tensor<3x70x16xf16>, %n: tensor<3xi32>)
    -> (tensor<3x50x16xf16>, tensor<3x50xf32>) {
  %o, %lse = flash.attention %q, %k, %v leading(batch) lengths(%n : tensor<3xi32>)
      : (tensor<3x50x16xf16>, tensor<3x70x16xf16>, tensor<3x70x16xf16>) -> (tensor<3x50x16xf16>, tensor<3x50xf32>)
  return %o, %lse : tensor<3x50x16xf16>, tensor<3x50xf32>
}

// -----

// The gradients; vectors and what the score region reads stay as they are.
// CHECK-LABEL: func @gradients(
// CHECK:         %[[LSE:.*]] = tensor.expand_shape %arg2 {{\[\[}}0, 1], [2]] {{.*}} into tensor<3x1x50xf32>
// CHECK:         %[[DQ4:.*]], %{{.*}}, %{{.*}}, %[[DS:.*]], %[[DT:.*]] = flash.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LSE]], %{{.*}} lengths(%arg3 : tensor<3xi32>)
// CHECK-SAME:      sink(%arg4 : tensor<1xf32>) lse_grad(%{{.*}} : tensor<3x1x50xf32>) wrt(%arg5 : tensor<2xf32>) score {
// CHECK:         -> (tensor<3x1x50x16xf16>, tensor<3x1x70x16xf16>, tensor<3x1x70x16xf16>, tensor<1xf32>, tensor<2xf32>)
// CHECK:         %[[DQ:.*]] = tensor.collapse_shape %[[DQ4]] {{\[\[}}0, 1], [2], [3]]
// CHECK:         return %[[DQ]], %[[DS]], %[[DT]]
func.func @gradients(%q: tensor<3x50x16xf16>, %k: tensor<3x70x16xf16>, %lse: tensor<3x50xf32>, %n: tensor<3xi32>,
                     %s: tensor<1xf32>, %t: tensor<2xf32>) -> (tensor<3x50x16xf16>, tensor<1xf32>, tensor<2xf32>) {
  %0:5 = flash.attention_grad %q, %k, %k, %q, %lse, %q leading(batch) lengths(%n : tensor<3xi32>) sink(%s : tensor<1xf32>)
      lse_grad(%lse : tensor<3x50xf32>) wrt(%t : tensor<2xf32>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : tensor<2xf32>
    %r = arith.addf %x, %e : f32
    flash.yield %r : f32
  } : (tensor<3x50x16xf16>, tensor<3x70x16xf16>, tensor<3x70x16xf16>, tensor<3x50x16xf16>, tensor<3x50xf32>, tensor<3x50x16xf16>)
      -> (tensor<3x50x16xf16>, tensor<3x70x16xf16>, tensor<3x70x16xf16>, tensor<1xf32>, tensor<2xf32>)
  return %0#0, %0#3, %0#4 : tensor<3x50x16xf16>, tensor<1xf32>, tensor<2xf32>
}
