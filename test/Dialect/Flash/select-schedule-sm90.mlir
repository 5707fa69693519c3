// Schedules for warps with roles: the model's, what is written, refusals.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s

// CHECK-LABEL: func @model(
// CHECK: schedule(<query_tile = 192, key_tile = 80, warps = 12, stages = {{.*}} features = specialize_warps
func.func @model(%q: tensor<2x16x4096x128xf16>) -> tensor<2x16x4096x128xf16> {
  %o = flash.attention %q, %q, %q : (tensor<2x16x4096x128xf16>, tensor<2x16x4096x128xf16>, tensor<2x16x4096x128xf16>) -> tensor<2x16x4096x128xf16>
  return %o : tensor<2x16x4096x128xf16>
}

// Few tiles. 88 of 192 queries would leave a third of the multiprocessors idle,
// 256 of 64 make two waves: 128 of 128 make one.
// CHECK-LABEL: func @one_wave(
// CHECK: schedule(<query_tile = 128, key_tile = 128, {{.*}} features = {{[a-z_|]*}}ping_pong{{[a-z_|]*}}persistent
// CHECK-NOT: split_ctas
// CHECK: return
func.func @one_wave(%q: tensor<1x8x2048x64xf16>) -> tensor<1x8x2048x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x8x2048x64xf16>, tensor<1x8x2048x64xf16>, tensor<1x8x2048x64xf16>) -> tensor<1x8x2048x64xf16>
  return %o : tensor<1x8x2048x64xf16>
}

// Under a causal mask two waves are as long as the longest tile, and a tile of
// 64 queries takes less time.
// CHECK-LABEL: func @longest_tile(
// CHECK: schedule(<query_tile = 64, key_tile = 128, {{.*}}persistent
// CHECK-NOT: split_ctas
// CHECK: return
func.func @longest_tile(%q: tensor<1x8x2048x64xf16>) -> tensor<1x8x2048x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<1x8x2048x64xf16>, tensor<1x8x2048x64xf16>, tensor<1x8x2048x64xf16>) -> tensor<1x8x2048x64xf16>
  return %o : tensor<1x8x2048x64xf16>
}

// Shared keys, where to combine the results costs less than it saves; 128 here
// are 4 of each tile.
// CHECK-LABEL: func @split_keys(
// CHECK: schedule(<query_tile = 64, key_tile = 128, {{.*}} split_ctas = 128>)
func.func @split_keys(%q: tensor<1x1x2048x64xf16>) -> tensor<1x1x2048x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x2048x64xf16>, tensor<1x1x2048x64xf16>, tensor<1x1x2048x64xf16>) -> tensor<1x1x2048x64xf16>
  return %o : tensor<1x1x2048x64xf16>
}

// CHECK-LABEL: func @too_few_keys_to_split(
// CHECK: schedule(<query_tile = 64, key_tile = 128,
// CHECK-NOT: split_ctas
// CHECK: return
func.func @too_few_keys_to_split(%q: tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16>
  return %o : tensor<1x1x512x64xf16>
}

// One query of each head: all multiprocessors read keys, in short tiles.
// CHECK-LABEL: func @one_query(
// CHECK: schedule(<query_tile = 64, key_tile = 64, {{.*}} split_ctas = 128>)
func.func @one_query(%q: tensor<1x8x1x128xf16>, %k: tensor<1x8x65536x128xf16>) -> tensor<1x8x1x128xf16> {
  %o = flash.attention %q, %k, %k : (tensor<1x8x1x128xf16>, tensor<1x8x65536x128xf16>, tensor<1x8x65536x128xf16>) -> tensor<1x8x1x128xf16>
  return %o : tensor<1x8x1x128xf16>
}

// Of more keys long tiles have more on their way, and so they have of narrow ones.
// CHECK-LABEL: func @one_query_of_many_keys(
// CHECK: schedule(<query_tile = 64, key_tile = 128, {{.*}} split_ctas = 128>)
func.func @one_query_of_many_keys(%q: tensor<1x8x1x128xf16>, %k: tensor<1x8x131072x128xf16>) -> tensor<1x8x1x128xf16> {
  %o = flash.attention %q, %k, %k : (tensor<1x8x1x128xf16>, tensor<1x8x131072x128xf16>, tensor<1x8x131072x128xf16>) -> tensor<1x8x1x128xf16>
  return %o : tensor<1x8x1x128xf16>
}

// CHECK-LABEL: func @one_query_of_narrow_keys(
// CHECK: schedule(<query_tile = 64, key_tile = 128, {{.*}} split_ctas = 128>)
func.func @one_query_of_narrow_keys(%q: tensor<1x8x1x64xf16>, %k: tensor<1x8x16384x64xf16>) -> tensor<1x8x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<1x8x1x64xf16>, tensor<1x8x16384x64xf16>, tensor<1x8x16384x64xf16>) -> tensor<1x8x1x64xf16>
  return %o : tensor<1x8x1x64xf16>
}

// The keys of a window are few, however many there are.
// CHECK-LABEL: func @one_window(
// CHECK: schedule(<query_tile = 64, key_tile = 128,
// CHECK-NOT: split_ctas
// CHECK: return
func.func @one_window(%q: tensor<1x1x8192x128xf16>) -> tensor<1x1x8192x128xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 255, right = 0>) : (tensor<1x1x8192x128xf16>, tensor<1x1x8192x128xf16>, tensor<1x1x8192x128xf16>) -> tensor<1x1x8192x128xf16>
  return %o : tensor<1x1x8192x128xf16>
}

// More tiles make waves enough: their rate counts.
// CHECK-LABEL: func @many_tiles(
// CHECK: schedule(<query_tile = 192, key_tile = 128,
func.func @many_tiles(%q: tensor<4x16x2048x64xf16>) -> tensor<4x16x2048x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<4x16x2048x64xf16>, tensor<4x16x2048x64xf16>, tensor<4x16x2048x64xf16>) -> tensor<4x16x2048x64xf16>
  return %o : tensor<4x16x2048x64xf16>
}

// A warpgroup has 64 queries; there are no more. (Of fewer, warps have no roles: select-schedule-few-rows.mlir.)
// CHECK-LABEL: func @short(
// CHECK: schedule(<query_tile = 64, {{.*}} warps = 4, {{.*}} features = specialize_warps
func.func @short(%q: tensor<2x4x40x128xf16>, %k: tensor<2x4x4096x128xf16>) -> tensor<2x4x40x128xf16> {
  %o = flash.attention %q, %k, %k : (tensor<2x4x40x128xf16>, tensor<2x4x4096x128xf16>, tensor<2x4x4096x128xf16>) -> tensor<2x4x40x128xf16>
  return %o : tensor<2x4x40x128xf16>
}

// Products of f32 have no form for warpgroups: the schedules of sm_80 serve.
// CHECK-LABEL: func @f32(
// CHECK: features = none
// CHECK: return
func.func @f32(%q: tensor<2x4x128x64xf32>) -> tensor<2x4x128x64xf32> {
  %o = flash.attention %q, %q, %q : (tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>, tensor<2x4x128x64xf32>) -> tensor<2x4x128x64xf32>
  return %o : tensor<2x4x128x64xf32>
}

// CHECK-LABEL: func @written(
// CHECK: schedule(<query_tile = 128, key_tile = 64, warps = 8, stages = 3, query_stages = 1, features = specialize_warps|overlap|ping_pong|lazy_rescale, num_splits = 1>)
func.func @written(%q: tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16> {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 128, key_tile = 64, stages = 3, features = specialize_warps|overlap|ping_pong|lazy_rescale>) : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16>
  return %o : tensor<2x4x512x64xf16>
}

// Many short rows: blocks share multiprocessors.
// CHECK-LABEL: func @many_short(
// CHECK: schedule(<query_tile = 64, key_tile = 64, warps = 4, stages = 2, query_stages = 2, ctas_per_sm = 3, features =
func.func @many_short(%q: tensor<32x32x512x64xf16>) -> tensor<32x32x512x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<32x32x512x64xf16>, tensor<32x32x512x64xf16>, tensor<32x32x512x64xf16>) -> tensor<32x32x512x64xf16>
  return %o : tensor<32x32x512x64xf16>
}

// Few of them: no other block would be there to share with.
// CHECK-LABEL: func @few_short(
// CHECK-NOT: ctas_per_sm
// CHECK: return
func.func @few_short(%q: tensor<1x2x512x64xf16>) -> tensor<1x2x512x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<1x2x512x64xf16>, tensor<1x2x512x64xf16>, tensor<1x2x512x64xf16>) -> tensor<1x2x512x64xf16>
  return %o : tensor<1x2x512x64xf16>
}

// Short rows of many columns have ping-pong, but do not overlap.
// CHECK-LABEL: func @short_wide(
// CHECK: features = specialize_warps|ping_pong|lazy_rescale|persistent|bulk_store, num_splits = 1>
func.func @short_wide(%q: tensor<16x8x1024x256xf16>) -> tensor<16x8x1024x256xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<16x8x1024x256xf16>, tensor<16x8x1024x256xf16>, tensor<16x8x1024x256xf16>) -> tensor<16x8x1024x256xf16>
  return %o : tensor<16x8x1024x256xf16>
}

// CHECK-LABEL: func @long_wide(
// CHECK: features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent|bulk_store, num_splits = 1>
func.func @long_wide(%q: tensor<8x8x2048x256xf16>) -> tensor<8x8x2048x256xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<8x8x2048x256xf16>, tensor<8x8x2048x256xf16>, tensor<8x8x2048x256xf16>) -> tensor<8x8x2048x256xf16>
  return %o : tensor<8x8x2048x256xf16>
}

// What counts is how many keys a query has: documents of 512 are short rows
// however long the sequence is.
// CHECK-LABEL: func @documents(
// CHECK: schedule(<query_tile = 64, key_tile = 64, warps = 4, stages = 2, query_stages = 2, ctas_per_sm = 3, features =
#same = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 512 - j floordiv 512 == 0)>
func.func @documents(%q: tensor<4x32x4096x64xf16>) -> tensor<4x32x4096x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.causal, #flash.affine<#same>]>) : (tensor<4x32x4096x64xf16>, tensor<4x32x4096x64xf16>, tensor<4x32x4096x64xf16>) -> tensor<4x32x4096x64xf16>
  return %o : tensor<4x32x4096x64xf16>
}

// CHECK-LABEL: func @long_documents(
// CHECK: schedule(<query_tile = 128, key_tile = 64, warps = 8, stages = 3, query_stages = {{.*}}, ctas_per_sm = 2, features =
#longer = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 1024 - j floordiv 1024 == 0)>
func.func @long_documents(%q: tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.causal, #flash.affine<#longer>]>) : (tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16>
  return %o : tensor<1x32x16384x64xf16>
}

// The same sequence in one document: rows are long.
// CHECK-LABEL: func @long_causal(
// CHECK: schedule(<query_tile = 192, key_tile = 128,
// CHECK-NOT: ctas_per_sm
// CHECK: return
func.func @long_causal(%q: tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16>
  return %o : tensor<1x32x16384x64xf16>
}

// Rows of a window are as long as the window is wide.
// CHECK-LABEL: func @window(
// CHECK: schedule(<query_tile = 64, key_tile = 64, {{.*}} ctas_per_sm = 3, features =
func.func @window(%q: tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 255, right = 0>) : (tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16>
  return %o : tensor<1x32x16384x64xf16>
}

// CHECK-LABEL: func @wide_window(
// CHECK: schedule(<query_tile = 192, key_tile = 128,
func.func @wide_window(%q: tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 4095, right = 0>) : (tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>, tensor<1x32x16384x64xf16>) -> tensor<1x32x16384x64xf16>
  return %o : tensor<1x32x16384x64xf16>
}

// Few queries at the end of many keys have long rows.
// CHECK-LABEL: func @few_queries_of_many_keys(
// CHECK: schedule(<query_tile = 192, key_tile = 128,
func.func @few_queries_of_many_keys(%q: tensor<8x32x512x64xf16>, %k: tensor<8x32x8192x64xf16>) -> tensor<8x32x512x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) : (tensor<8x32x512x64xf16>, tensor<8x32x8192x64xf16>, tensor<8x32x8192x64xf16>) -> tensor<8x32x512x64xf16>
  return %o : tensor<8x32x512x64xf16>
}

// Keys of unknown number: the schedule for all of them.
// CHECK-LABEL: func @unknown(
// CHECK: schedule(<query_tile = 192, key_tile = 128,
func.func @unknown(%q: tensor<32x32x512x64xf16>, %k: tensor<32x32x?x64xf16>) -> tensor<32x32x512x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) : (tensor<32x32x512x64xf16>, tensor<32x32x?x64xf16>, tensor<32x32x?x64xf16>) -> tensor<32x32x512x64xf16>
  return %o : tensor<32x32x512x64xf16>
}

// A head dimension of 128 has larger tiles from 3072 keys on.
// CHECK-LABEL: func @wide_short(
// CHECK: schedule(<query_tile = 128, key_tile = 128,
func.func @wide_short(%q: tensor<2x16x16384x128xf16>) -> tensor<2x16x16384x128xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 1023, right = 0>) : (tensor<2x16x16384x128xf16>, tensor<2x16x16384x128xf16>, tensor<2x16x16384x128xf16>) -> tensor<2x16x16384x128xf16>
  return %o : tensor<2x16x16384x128xf16>
}

// CHECK-LABEL: func @wide_long(
// CHECK: schedule(<query_tile = 192, key_tile = 80,
func.func @wide_long(%q: tensor<2x16x16384x128xf16>) -> tensor<2x16x16384x128xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<2x16x16384x128xf16>, tensor<2x16x16384x128xf16>, tensor<2x16x16384x128xf16>) -> tensor<2x16x16384x128xf16>
  return %o : tensor<2x16x16384x128xf16>
}

// Tiles that warpgroups cannot have are those of sm_80.
// CHECK-LABEL: func @without_roles(
// CHECK: schedule(<query_tile = 32, key_tile = 64, warps = 2, stages = 1, features = none, split_ctas = 264>)
func.func @without_roles(%q: tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16> {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 32, key_tile = 64>) : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16>
  return %o : tensor<2x4x512x64xf16>
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{'flash.attention' op cannot be scheduled: query_tile must be 64, 128 or 192 where warps have roles, got 96; the nearest is 128}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 96, key_tile = 64, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{'flash.attention' op cannot be scheduled: query_tile must be 64, 128 or 192 where warps have roles, got 80; the nearest is 64}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 80, key_tile = 64, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{query_tile must be 64, 128 or 192 where warps have roles, got 256; the nearest is 192}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 256, key_tile = 64, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{key_tile must be a multiple of 16 up to 256 where warps have roles, got 72; the nearest is 80}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 72, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{key_tile must be a multiple of 16 up to 256 where warps have roles, got 512; the nearest is 256}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 512, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{a query_tile of 128 needs 8 warps where warps have roles, got 4}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 128, key_tile = 64, warps = 4, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x256xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{scores, probabilities and accumulator of 64 queries and 64 keys need 200 registers of a thread, and with 3 warpgroups there are 160; choose a smaller key_tile or fewer value_columns, such as value_columns = 128}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 192, key_tile = 64, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x128xf16>
func.func @f(%q: !type, %v: !type) -> !type {
  // expected-error @below {{the tiles need 294912 bytes of shared memory, and a block may have 231424; choose smaller tiles or fewer stages}}
  %o = flash.attention %q, %q, %v schedule(<query_tile = 128, key_tile = 128, stages = 4, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf32>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{cannot be scheduled: the features specialize_warps need the target sm_90a and elements of 16 bits}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{cannot be scheduled: the features overlap|lazy_rescale need specialize_warps too}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, features = overlap|lazy_rescale>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{cannot be scheduled: ping_pong takes two or three warpgroups, so query_tile must be 128 or 192, got 64}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|ping_pong>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{need 116 registers of a thread, and with 2 warpgroups in each of 2 CTAs per SM there are 104; choose a smaller key_tile or fewer value_columns, such as key_tile = 64}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 128, key_tile = 80, ctas_per_sm = 2, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x128xf16>
func.func @f(%q: !type, %v: !type) -> !type {
  // expected-error @below {{the tiles need 131072 bytes of shared memory, and a block may have 114688; choose smaller tiles or fewer stages}}
  %o = flash.attention %q, %q, %v schedule(<query_tile = 64, key_tile = 112, ctas_per_sm = 2, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x256xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{a product with 256 columns needs 158 registers of a thread, and threads start with 128; choose fewer ctas_per_sm}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 32, ctas_per_sm = 2, features = specialize_warps>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{cannot be scheduled: ctas_per_sm is of kernels whose warps have roles; they are of the target sm_90a and elements of 16 bits}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, ctas_per_sm = 2, features = none>) : (!type, !type, !type) -> !type
  return %o : !type
}

// -----

!type = tensor<2x4x512x64xf16>
func.func @f(%q: !type) -> !type {
  // expected-error @below {{ctas_per_sm must be from 1 to 4, got 5}}
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, ctas_per_sm = 5>) : (!type, !type, !type) -> !type
  return %o : !type
}
