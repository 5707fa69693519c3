// RUN: flash-opt %s --flash-select-schedule --split-input-file | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: flash-opt %s --flash-select-schedule=target=sm_80 --split-input-file | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: not flash-opt %s --flash-select-schedule="target=sm_80 schedule=key_tile=24" 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not flash-opt %s --flash-select-schedule="schedule=num_splits=2" 2>&1 | FileCheck %s --check-prefix=SPLITS

// TILE: 'flash.attention_grad' op cannot be scheduled: key_tile must be a multiple of 16 on tensor cores, got 24; the nearest is 32
// SPLITS: 'flash.attention_grad' op cannot be scheduled: the programs of gradients have query_tile and key_tile alone, got 'query_tile=64,key_tile=32,num_splits=2'

!q = tensor<1x2x333x128xf16>
!k = tensor<1x2x20x128xf16>
!l = tensor<1x2x333xf32>

// Short tensors have short tiles; of wide heads GPUs take fewer queries.

// CHECK-LABEL: func @grad(
// CPU:           schedule(<query_tile = 64, key_tile = 32>)
// GPU:           schedule(<query_tile = 32, key_tile = 32>)
// What the program says stays.
// CHECK:         schedule(<query_tile = 16, key_tile = 32>)
func.func @grad(%q: !q, %k: !k, %lse: !l) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  %1:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(<query_tile = 16>) : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return
}
