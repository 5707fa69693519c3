// Tiles of dequantized rows are loaded as they lie and dequantized: as one operation for kernels, as linalg elsewhere. A scale of
// each batch and head is read before the loop over tiles.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf=only-kernels --canonicalize | FileCheck %s
// RUN: flash-opt %s --flash-select-schedule --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --canonicalize | FileCheck %s --check-prefix=LINALG

!q = tensor<2x4x64x32xf16>
!view = tensor<2x2x80x32xf16>
!quantized = tensor<2x2x80x32xf8E4M3FN>

// CHECK-LABEL: func @pages(
// CHECK:       scf.forall
// CHECK:         %[[OF_VALUES:.*]] = tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<2x2xf32>
// CHECK:         scf.for
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %{{.*}} : tensor<9x2x16x32xi8> to tensor<16x32xi8>
// CHECK:           %[[TILE:.*]] = tensor.concat dim(0) %{{.*}} : (tensor<16x32xi8>
// CHECK:           flash.dequantize_tile %[[TILE]] : tensor<[[ROWS:.*]]x32xi8> -> tensor<[[ROWS]]x32xf16> {
// CHECK:           ^bb0(%[[ROW:.*]]: index):
// The page of the row, and the row in it.
// CHECK:             %[[PAGE:.*]] = tensor.extract %{{.*}} : tensor<2x5xi32>
// CHECK:             %[[SCALE:.*]] = tensor.extract %{{.*}} : tensor<9x2x16xf32>
// CHECK:             flash.yield %{{.*}} : f32
// CHECK:           flash.dequantize_tile %{{.*}} : tensor<[[ROWS]]x32xf8E4M3FN> -> tensor<[[ROWS]]x32xf16> {
// CHECK-NEXT:      ^bb0(
// CHECK-NEXT:        flash.yield %[[OF_VALUES]] : f32

// LINALG-LABEL: func @pages(
// LINALG:       scf.forall
// LINALG:         %[[OF_VALUES:.*]] = tensor.extract %{{.*}} : tensor<2x2xf32>
// LINALG:         scf.for
// LINALG:           %[[SCALES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<[[ROWS:.*]]xf32>) {
// LINALG:             linalg.index 0
// LINALG:             tensor.extract %{{.*}} : tensor<9x2x16xf32>
// LINALG:           linalg.generic {{.*}} ins(%{{.*}}, %[[SCALES]] : tensor<[[ROWS]]x32xi8>, tensor<[[ROWS]]xf32>) outs(%{{.*}} : tensor<[[ROWS]]x32xf16>) {
// LINALG-NEXT:      ^bb0(%[[X:.*]]: i8, %[[S:.*]]: f32,
// LINALG-NEXT:        %[[WIDE:.*]] = arith.sitofp %[[X]] : i8 to f32
// LINALG-NEXT:        %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[S]] : f32
// LINALG-NEXT:        arith.truncf %[[PRODUCT]] to_nearest_even : f32 to f16
// LINALG:             %[[WIDE:.*]] = arith.extf %{{.*}} : f8E4M3FN to f32
// LINALG-NEXT:        arith.mulf %[[WIDE]], %[[OF_VALUES]] : f32
func.func @pages(%q: !q, %k: tensor<9x2x16x32xi8>, %v: tensor<9x2x16x32xf8E4M3FN>, %table: tensor<2x5xi32>, %n: tensor<2xi32>, %ks: tensor<9x2x16xf32>, %vs: tensor<2x2xf32>) -> !q {
  %ku = flash.unpage %k by %table lengths(%n : tensor<2xi32>) : tensor<9x2x16x32xi8>, tensor<2x5xi32> -> tensor<2x2x80x32xi8>
  %su = flash.unpage %ks by %table lengths(%n : tensor<2xi32>) : tensor<9x2x16xf32>, tensor<2x5xi32> -> tensor<2x2x80xf32>
  %vu = flash.unpage %v by %table lengths(%n : tensor<2xi32>) : tensor<9x2x16x32xf8E4M3FN>, tensor<2x5xi32> -> !quantized
  %kd = flash.dequantize %ku scale(%su : tensor<2x2x80xf32>) : tensor<2x2x80x32xi8> -> !view
  %vd = flash.dequantize %vu scale(%vs : tensor<2x2xf32>) : !quantized -> !view
  %o = flash.attention %q, %kd, %vd key_lengths(%n : tensor<2xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
