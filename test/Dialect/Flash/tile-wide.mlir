// Blocks of columns of wide values are positions of their own: the first dimension of the grid.
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(flash-online-softmax,flash-tile))' | FileCheck %s

// Three blocks of 184 columns begin 168 apart, and the last one ends with the columns. The log-sum-exp is stored by the first.
// CHECK-LABEL: @overlapping
// CHECK:         flash.kernel over(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) by [168, 1, 1, 16]
// CHECK-NEXT:    ^bb0(%[[C:.*]]: index, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[O:.*]]: tensor<1x2x40x520xf16>, %[[L:.*]]: tensor<1x2x40xf32>):
// CHECK:           flash.load_rows %{{.*}} -> tensor<16x64xf16>
// CHECK:           flash.visit keys
// CHECK:             flash.load_rows %{{.*}} : tensor<1x2x64x64xf16> -> tensor<32x64xf16>
// CHECK:             flash.load_rows %{{.*}} column(%[[C]]) : tensor<1x2x64x520xf16> -> tensor<32x184xf16>
// CHECK:           %[[IS_FIRST:.*]] = arith.cmpi eq, %[[C]], %{{.*}} : index
// CHECK:           %[[ROWS:.*]] = arith.select %[[IS_FIRST]]
// CHECK:           flash.store_rows %{{.*}} into %[[O]][%[[B]], %[[H]], %[[I]]] rows(%{{.*}}) column(%[[C]]) : tensor<16x184xf16> into tensor<1x2x40x520xf16>
// CHECK:           flash.store_rows %{{.*}} into %[[L]][%[[B]], %[[H]], %[[I]]] rows(%[[ROWS]]) : tensor<16xf32>
func.func @overlapping(%q: tensor<1x2x40x64xf16>, %k: tensor<1x2x64x64xf16>, %v: tensor<1x2x64x520xf16>) -> (tensor<1x2x40x520xf16>, tensor<1x2x40xf32>) {
  %o, %lse = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 32, value_columns = 184>)
    : (tensor<1x2x40x64xf16>, tensor<1x2x64x64xf16>, tensor<1x2x64x520xf16>) -> (tensor<1x2x40x520xf16>, tensor<1x2x40xf32>)
  return %o, %lse : tensor<1x2x40x520xf16>, tensor<1x2x40xf32>
}

// -----

// Partial results of splits, too; values that are columns of keys are taken from their tile, and the slice is gone.
// CHECK-LABEL: @of_keys
// CHECK-NOT:     tensor<1x1x256x512xf16>
// CHECK:         flash.kernel over(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) by [256, 1, 1, 16, 1]
// CHECK-NEXT:    ^bb0(%[[C:.*]]: index, %[[S:.*]]: index, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[O:.*]]: tensor<4x1x16x1x512xf32>
// CHECK:             %[[K:.*]] = flash.load_rows %{{.*}} : tensor<1x1x256x576xf16> -> tensor<32x576xf16>
// CHECK:             %[[V:.*]] = tensor.extract_slice %[[K]][0, %[[C]]] [32, 256] [1, 1] : tensor<32x576xf16> to tensor<32x256xf16>
// CHECK:             flash.online_attention ins(%{{.*}}, %[[K]], %[[V]]
// CHECK:           flash.store_rows %{{.*}} into %[[O]][%[[S]], %[[B]], %[[H]], %[[I]]] column(%[[C]]) packed(16) : tensor<16x256xf32>
func.func @of_keys(%q: tensor<1x16x1x576xf16>, %k: tensor<1x1x256x576xf16>) -> tensor<1x16x1x512xf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 256, 512] [1, 1, 1, 1] : tensor<1x1x256x576xf16> to tensor<1x1x256x512xf16>
  %o = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 32, packed_heads = 16, value_columns = 256, num_splits = 4>)
    : (tensor<1x16x1x576xf16>, tensor<1x1x256x576xf16>, tensor<1x1x256x512xf16>) -> tensor<1x16x1x512xf16>
  return %o : tensor<1x16x1x512xf16>
}

// -----

// Blocks that do not begin at panels of 128 bytes have tiles of their own, and so have columns that are not the first.
// CHECK-LABEL: @own_tiles
// CHECK:         flash.load_rows %{{.*}} column(%{{.*}}) : tensor<1x1x64x320xf16> -> tensor<32x160xf16>
// CHECK-LABEL: @last_columns
// CHECK:         flash.load_rows %{{.*}} : tensor<1x1x64x64xf16> -> tensor<32x64xf16>
func.func @own_tiles(%q: tensor<1x1x16x328xf16>, %k: tensor<1x1x64x328xf16>) -> tensor<1x1x16x320xf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [1, 1, 64, 320] [1, 1, 1, 1] : tensor<1x1x64x328xf16> to tensor<1x1x64x320xf16>
  %o = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 32, value_columns = 160>)
    : (tensor<1x1x16x328xf16>, tensor<1x1x64x328xf16>, tensor<1x1x64x320xf16>) -> tensor<1x1x16x320xf16>
  return %o : tensor<1x1x16x320xf16>
}
func.func @last_columns(%q: tensor<1x1x16x128xf16>, %k: tensor<1x1x64x128xf16>) -> tensor<1x1x16x64xf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 64] [1, 1, 64, 64] [1, 1, 1, 1] : tensor<1x1x64x128xf16> to tensor<1x1x64x64xf16>
  %o = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 32>)
    : (tensor<1x1x16x128xf16>, tensor<1x1x64x128xf16>, tensor<1x1x64x64xf16>) -> tensor<1x1x16x64xf16>
  return %o : tensor<1x1x16x64xf16>
}
