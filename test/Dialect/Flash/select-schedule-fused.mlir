// Gradients as one program, which has steps of its own: where warps have roles, and
// tiles of queries have a range of tiles of keys, or there are lists.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5" --split-input-file | FileCheck %s --check-prefix=FUSED
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=products=5" --split-input-file 2>&1 | FileCheck %s --check-prefix=FUSED-ROLES
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,query_step=128" --split-input-file 2>&1 | FileCheck %s --check-prefix=FUSED-REGISTERS
// RUN: sed s/333x128/333x72/ %s | not flash-opt --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,query_step=64" --split-input-file 2>&1 | FileCheck %s --check-prefix=FUSED-STEPS
// RUN: sed s/333x128/333x160/ %s | not flash-opt --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,query_step=64,features=specialize_warps|defer_products" --split-input-file 2>&1 | FileCheck %s --check-prefix=DEFERRED
// RUN: sed s/333x128/333x176/ %s | not flash-opt --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,query_step=64" --split-input-file 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,block_map=1" --split-input-file | FileCheck %s --check-prefix=LISTS
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5,key_tile=64,query_step=64,block_map=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=HOLES

// FUSED: schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 128, products = 5, stages = 2, features = specialize_warps|persistent|bulk_store>)
// Up to D = 64 the product for dQ is deferred.
// FUSED: schedule(<query_tile = 128, key_tile = 128, query_step = 128, key_step = 128, products = 5, stages = 2, features = specialize_warps|persistent|bulk_store|defer_products>)
// FUSED-ROLES: 'flash.attention_grad' op cannot be scheduled: products = 5 needs the CPU, or specialize_warps, with the target sm_90a, elements of 16 bits and head dimensions of at most 192 each and 320 together; choose products = 7
// FUSED-REGISTERS: 'flash.attention_grad' op cannot be scheduled: the products of a query_step of 128 and the gradients need 288 registers of a thread, and with 2 warpgroups there are 240
// DEFERRED: 'flash.attention_grad' op cannot be scheduled: defer_products needs two stages of the gradients of scores, for which products = 5 has no room beside gradients of more than 256 columns together; leave it out of the features
// WIDE: 'flash.attention_grad' op cannot be scheduled: the products of a query_step of 64 and the gradients need 256 registers of a thread, and with 2 warpgroups there are 240; choose products = 7
// FUSED-STEPS: 'flash.attention_grad' op cannot be scheduled: products = 5 needs a query_step that divides the key_tile, 128, and with a query_step of 64 a head dimension that is a multiple of 16, got 72; choose such tiles, or products = 7
// LISTS-LABEL: func.func @holes(
// LISTS: schedule(<query_tile = 128, key_tile = 128, query_step = 128, key_step = 128, products = 5, {{.*}}, block_map = 1>)
// HOLES: 'flash.attention_grad' op cannot be scheduled: products = 5 needs a mask that leaves each tile of queries one range of tiles of keys, and the other way round; choose block_map = 1, or products = 7

!q = tensor<1x2x333x128xf16>
!l = tensor<1x2x333xf32>
func.func @grad(%q: !q, %lse: !l) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

#strided = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 512 == 0)>
!q = tensor<1x2x2048x64xf16>
!l = tensor<1x2x2048xf32>
func.func @holes(%q: !q, %lse: !l) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.affine<#strided>) : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<1x2x333x64xf16>
!l = tensor<1x2x333xf32>
func.func @claims(%q: !q, %lse: !l) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}
