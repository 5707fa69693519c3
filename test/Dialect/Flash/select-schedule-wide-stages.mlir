// Stages that are given leave wide heads room for shorter tiles of keys, with pages, too.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=query_stages=2' | FileCheck %s --check-prefix=QUERIES
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=stages=3' | FileCheck %s --check-prefix=STAGES
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=stages=8' 2>&1 | FileCheck %s --check-prefix=NONE
// CHECK:   key_tile = 32, warps = 4, stages = 2, query_stages = 1, features = specialize_warps
// QUERIES: key_tile = 16, warps = 4, stages = 2, query_stages = 2, features = specialize_warps
// STAGES:  key_tile = 16, warps = 4, stages = 3, query_stages = 1, features = specialize_warps
// NONE:    the tiles need {{[0-9]+}} bytes of shared memory, and a block may have 231424; choose smaller tiles or fewer stages
!q = tensor<8x16x64x576xf16>
!o = tensor<8x16x64x512xf16>
!keys = tensor<8x1x4096x576xf16>
!values = tensor<8x1x4096x512xf16>
func.func @pages(%q: !q, %k: tensor<900x1x64x576xf16>, %v: tensor<900x1x64x512xf16>, %table: tensor<8x64xi32>, %n: tensor<8xi32>) -> !o {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x1x64x576xf16>, tensor<8x64xi32> -> !keys
  %vs = flash.unpage %v by %table lengths(%n : tensor<8xi32>) : tensor<900x1x64x512xf16>, tensor<8x64xi32> -> !values
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<8xi32>) : (!q, !keys, !values) -> !o
  return %o : !o
}
