// Two warpgroups that divide columns alternate between tiles of keys that are values, too, where blocks have full tiles of queries and many keys.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=-ping_pong' | FileCheck %s --check-prefix=LEFT
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=stages=1' | FileCheck %s --check-prefix=LEFT
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=stages=1,features=specialize_warps|divide_columns|ping_pong' 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not flash-opt %S/Inputs/wide-values.mlir --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=specialize_warps|divide_columns|ping_pong' 2>&1 | FileCheck %s --check-prefix=APART
// ODD:   ping_pong beside divide_columns takes tiles of keys in pairs, so stages must be even, got 1; the nearest is 2
// APART: ping_pong beside divide_columns is of values that are columns of the keys; leave one of the features out

// LEFT-LABEL:  @many
// LEFT:          features = specialize_warps|persistent|bulk_store|divide_columns
// CHECK-LABEL: @many
// CHECK:         stages = 2, {{.*}}features = specialize_warps|ping_pong|persistent|bulk_store|divide_columns
func.func @many(%q: tensor<128x128x1x576xbf16>, %k: tensor<128x1x4096x576xbf16>) -> tensor<128x128x1x512xbf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [128, 1, 4096, 512] [1, 1, 1, 1] : tensor<128x1x4096x576xbf16> to tensor<128x1x4096x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<128x128x1x576xbf16>, tensor<128x1x4096x576xbf16>, tensor<128x1x4096x512xbf16>) -> tensor<128x128x1x512xbf16>
  return %o : tensor<128x128x1x512xbf16>
}

// Few sequences leave a block few keys, and 16 heads no full tile.
// CHECK-LABEL: @few
// CHECK:         features = specialize_warps|persistent|bulk_store|divide_columns
func.func @few(%q: tensor<8x128x1x576xbf16>, %k: tensor<8x1x8192x576xbf16>) -> tensor<8x128x1x512xbf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [8, 1, 8192, 512] [1, 1, 1, 1] : tensor<8x1x8192x576xbf16> to tensor<8x1x8192x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<8x128x1x576xbf16>, tensor<8x1x8192x576xbf16>, tensor<8x1x8192x512xbf16>) -> tensor<8x128x1x512xbf16>
  return %o : tensor<8x128x1x512xbf16>
}
// CHECK-LABEL: @heads
// CHECK:         features = specialize_warps|persistent|bulk_store|divide_columns
func.func @heads(%q: tensor<128x16x1x576xbf16>, %k: tensor<128x1x4096x576xbf16>) -> tensor<128x16x1x512xbf16> {
  %v = tensor.extract_slice %k[0, 0, 0, 0] [128, 1, 4096, 512] [1, 1, 1, 1] : tensor<128x1x4096x576xbf16> to tensor<128x1x4096x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<128x16x1x576xbf16>, tensor<128x1x4096x576xbf16>, tensor<128x1x4096x512xbf16>) -> tensor<128x16x1x512xbf16>
  return %o : tensor<128x16x1x512xbf16>
}
