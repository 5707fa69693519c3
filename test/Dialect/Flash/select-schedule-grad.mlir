// RUN: flash-opt %s --flash-select-schedule --split-input-file | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule --split-input-file | FileCheck %s --check-prefixes=CHECK,GPU
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=key_tile=24" 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not flash-opt %s --flash-select-schedule="schedule=num_splits=2" 2>&1 | FileCheck %s --check-prefix=SPLITS

// TILE: 'flash.attention_grad' op cannot be scheduled: key_tile must be a multiple of 16 on tensor cores, got 24; the nearest is 32
// SPLITS: 'flash.attention_grad' op cannot be scheduled: a schedule of gradients has no key 'num_splits'; its keys are query_tile, key_tile, query_step, key_step, products, key_programs, stages, key_program_stages, ctas_per_sm, features, block_map

// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=query_stages=1" 2>&1 | FileCheck %s --check-prefix=QUERYSTAGES
// QUERYSTAGES: 'flash.attention_grad' op cannot be scheduled: a schedule of gradients has no key 'query_stages'; its keys are query_tile, key_tile, query_step, key_step, products, key_programs, stages, key_program_stages, ctas_per_sm, features, block_map
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=stages=2" 2>&1 | FileCheck %s --check-prefix=WITHOUTROLES
// WITHOUTROLES: 'flash.attention_grad' op cannot be scheduled: stages, key_program_stages and ctas_per_sm are of gradients whose warps have roles (specialize_warps, with the target sm_90a and elements of 16 bits); leave them out

// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule --split-input-file | FileCheck %s --check-prefix=ROLES
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=query_step=48" 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=overlap" 2>&1 | FileCheck %s --check-prefix=FEATURES
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=key_tile=256,features=specialize_warps" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=stages=6" 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=query_step=128" 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=key_tile=64,features=specialize_warps|ping_pong" 2>&1 | FileCheck %s --check-prefix=PINGPONG
// STEP: 'flash.attention_grad' op cannot be scheduled: query_step must be a multiple of 64 where warps have roles, got 48; the nearest is 64
// FEATURES: 'flash.attention_grad' op cannot be scheduled: the features overlap need specialize_warps too
// ROWS: 'flash.attention_grad' op cannot be scheduled: key_tile must be 64, 128 or 192 where warps have roles, got 256
// PINGPONG: 'flash.attention_grad' op cannot be scheduled: ping_pong takes two or three warpgroups, so key_tile must be 128 or 192, got 64
// SHARED: 'flash.attention_grad' op cannot be scheduled: tiles of a query_tile of 128 and steps of 64 need 262144 bytes of shared memory, and a block may have 231424; choose smaller ones or fewer stages, such as stages = 5
// REGISTERS: 'flash.attention_grad' op cannot be scheduled: the products of a query_step of 128 and the gradients need 320 registers of a thread, and with 2 warpgroups there are 240; choose a smaller query_step, or key_programs = 2, such as query_step = 64

// No feature is dropped without a word.
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=specialize_warps|overlap" 2>&1 | FileCheck %s --check-prefix=OVERLAP
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=specialize_warps|defer_products" 2>&1 | FileCheck %s --check-prefix=DEFER
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=specialize_warps|lazy_rescale|skip_rows" 2>&1 | FileCheck %s --check-prefix=NONE
// OVERLAP: 'flash.attention_grad' op cannot be scheduled: overlap is of a program that has the gradients of values alone; write key_programs = 2, or leave overlap out of the features
// DEFER: 'flash.attention_grad' op cannot be scheduled: defer_products is of one program for all gradients; write products = 5, or leave defer_products out of the features
// NONE: 'flash.attention_grad' op cannot be scheduled: the features lazy_rescale|skip_rows do nothing in a schedule of gradients; leave them out

// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=features=specialize_warps" 2>&1 | FileCheck %s --check-prefix=SM80
// SM80: 'flash.attention_grad' op cannot be scheduled: the features specialize_warps need the target sm_90a and elements of 16 bits

// An attention has no steps of its own, nor what one program of gradients does.
// RUN: not flash-opt %S/../../../examples/attention.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=specialize_warps|defer_products" 2>&1 | FileCheck %s --check-prefix=OFGRADIENTS
// OFGRADIENTS: 'flash.attention' op cannot be scheduled: the features defer_products do nothing in a schedule of an attention; leave them out
// RUN: not flash-opt %S/../../../examples/attention.mlir --flash-select-schedule="schedule=key_step=64" 2>&1 | FileCheck %s --check-prefix=ATTENTION
// ATTENTION: 'flash.attention' op cannot be scheduled: a schedule of an attention has no key 'key_step'; its keys are query_tile, key_tile, packed_heads, value_columns, warps, stages, query_stages, ctas_per_sm, features, block_map, num_splits, split_ctas, split_keys

!q = tensor<1x2x333x128xf16>
!k = tensor<1x2x20x128xf16>
!l = tensor<1x2x333xf32>

// Short tensors have short tiles; of wide heads GPUs take fewer queries.

// CHECK-LABEL: func @grad(
// CPU:           schedule(<query_tile = 64, key_tile = 32, products = 5>)
// GPU:           schedule(<query_tile = 32, key_tile = 32>)
// Warps have roles, unless tiles are none of warpgroups.
// ROLES-LABEL: func @grad(
// ROLES:         schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 64, stages = 2, features = specialize_warps|persistent|bulk_store>)
// ROLES:         schedule(<query_tile = 16, key_tile = 32>)
// What the program says stays.
// CPU:           schedule(<query_tile = 16, key_tile = 32, products = 5>)
// GPU:           schedule(<query_tile = 16, key_tile = 32>)
func.func @grad(%q: !q, %k: !k, %lse: !l) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  %1:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q schedule(<query_tile = 16>) : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return
}

!long = tensor<1x8x1024x64xbf16>
!longLse = tensor<1x8x1024xf32>
!short = tensor<4x16x512x64xbf16>
!shortLse = tensor<4x16x512xf32>
!many = tensor<16x16x512x64xbf16>
!manyLse = tensor<16x16x512xf32>

// One program for all gradients, where rows are long; short rows need many tiles,
// under a causal mask the shorter ones.

// ROLES-LABEL: func @fused(
// ROLES:         products = 5
// ROLES:         schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 128, stages = 2, features = specialize_warps|persistent|bulk_store>)
// ROLES:         products = 5
// ROLES:         schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 128, stages = 2, features = specialize_warps|bulk_store>)
// ROLES:         products = 5
// CHECK-LABEL: func @fused(
func.func @fused(%q: !long, %lse: !longLse, %s: !short, %sl: !shortLse, %m: !many, %ml: !manyLse) {
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) : (!long, !long, !long, !long, !longLse, !long) -> (!long, !long, !long)
  %1:3 = flash.attention_grad %s, %s, %s, %s, %sl, %s : (!short, !short, !short, !short, !shortLse, !short) -> (!short, !short, !short)
  %2:3 = flash.attention_grad %m, %m, %m, %m, %ml, %m : (!many, !many, !many, !many, !manyLse, !many) -> (!many, !many, !many)
  %3:3 = flash.attention_grad %s, %s, %s, %s, %sl, %s mask(#flash.causal) : (!short, !short, !short, !short, !shortLse, !short) -> (!short, !short, !short)
  %4:3 = flash.attention_grad %m, %m, %m, %m, %ml, %m mask(#flash.causal) : (!many, !many, !many, !many, !manyLse, !many) -> (!many, !many, !many)
  return
}

// -----

// Of wide tiles in f32 not every GPU for sm_80 has shared memory for two of 32 rows.
// GPU-LABEL: func @wide(
// GPU:           schedule(<query_tile = 32, key_tile = 32, query_step = 16, key_step = 16>)
// ROLES-LABEL: func @wide(
// ROLES:         schedule(<query_tile = 32, key_tile = 32>)
func.func @wide(%q: tensor<1x2x333x256xf32>, %l: tensor<1x2x333xf32>) -> tensor<1x2x333x256xf32> {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %l, %q
      : (tensor<1x2x333x256xf32>, tensor<1x2x333x256xf32>, tensor<1x2x333x256xf32>, tensor<1x2x333x256xf32>, tensor<1x2x333xf32>, tensor<1x2x333x256xf32>)
      -> (tensor<1x2x333x256xf32>, tensor<1x2x333x256xf32>, tensor<1x2x333x256xf32>)
  return %dq : tensor<1x2x333x256xf32>
}

// -----

// One program by ranges of head dimensions: short heads have it as D = 64 does. From D = 80 on blocks claim tiles where there is no mask and no score
// function; narrow windows and lists of tiles have two programs, and so do dimensions that are no multiples of 16.

!d32 = tensor<1x8x1024x32xbf16>
!l1024 = tensor<1x8x1024xf32>
!d72 = tensor<1x16x4096x72xbf16>
!d80 = tensor<1x16x4096x80xbf16>
!d112 = tensor<1x16x4096x112xbf16>
!l4096 = tensor<1x16x4096xf32>

// ROLES-LABEL: func @dims(
// ROLES:         key_step = 128, products = 5
// ROLES:         schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 64, stages
// ROLES:         products = 5, stages = 2, features = specialize_warps|persistent|bulk_store>
// ROLES:         products = 5, stages = 2, features = specialize_warps|bulk_store>
// ROLES:         schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 64, stages
// ROLES:         products = 5, stages = 2, features = specialize_warps|persistent|bulk_store>
// ROLES:         products = 5, stages = 2, features = specialize_warps|bulk_store>
func.func @dims(%a: !d32, %la: !l1024, %b: !d72, %c: !d80, %d: !d112, %l: !l4096) {
  %0:3 = flash.attention_grad %a, %a, %a, %a, %la, %a mask(#flash.causal) : (!d32, !d32, !d32, !d32, !l1024, !d32) -> (!d32, !d32, !d32)
  %1:3 = flash.attention_grad %b, %b, %b, %b, %l, %b mask(#flash.causal) : (!d72, !d72, !d72, !d72, !l4096, !d72) -> (!d72, !d72, !d72)
  %2:3 = flash.attention_grad %c, %c, %c, %c, %l, %c : (!d80, !d80, !d80, !d80, !l4096, !d80) -> (!d80, !d80, !d80)
  %3:3 = flash.attention_grad %c, %c, %c, %c, %l, %c mask(#flash.causal) : (!d80, !d80, !d80, !d80, !l4096, !d80) -> (!d80, !d80, !d80)
  %4:3 = flash.attention_grad %c, %c, %c, %c, %l, %c mask(#flash.window<left = 1000, right = 0>) : (!d80, !d80, !d80, !d80, !l4096, !d80) -> (!d80, !d80, !d80)
  %5:3 = flash.attention_grad %d, %d, %d, %d, %l, %d : (!d112, !d112, !d112, !d112, !l4096, !d112) -> (!d112, !d112, !d112)
  %6:3 = flash.attention_grad %d, %d, %d, %d, %l, %d score {
  ^bb0(%s: f32, %b0: index, %h: index, %i: index, %j: index):
    %r = math.tanh %s : f32
    flash.yield %r : f32
  } : (!d112, !d112, !d112, !d112, !l4096, !d112) -> (!d112, !d112, !d112)
  return
}
