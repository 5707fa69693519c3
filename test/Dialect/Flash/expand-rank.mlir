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
