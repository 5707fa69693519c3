// Few queries of many keys: blocks of one or two warps, where warps could have roles.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s

// CHECK-LABEL: func @one_token(
// CHECK: schedule(<query_tile = 16, key_tile = 64, packed_heads = 4, warps = 1, stages = 2, features = none, split_ctas = 264>)
func.func @one_token(%q: tensor<4x32x1x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<4x32x1x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16>
  return %o : tensor<4x32x1x128xbf16>
}

// CHECK-LABEL: func @eight_tokens(
// CHECK: schedule(<query_tile = 32, key_tile = 64, packed_heads = 4, warps = 2, stages = 2, features = none, num_splits = 1>)
func.func @eight_tokens(%q: tensor<32x32x8x128xbf16>, %k: tensor<32x8x4096x128xbf16>, %v: tensor<32x8x4096x128xbf16>) -> tensor<32x32x8x128xbf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) : (tensor<32x32x8x128xbf16>, tensor<32x8x4096x128xbf16>, tensor<32x8x4096x128xbf16>) -> tensor<32x32x8x128xbf16>
  return %o : tensor<32x32x8x128xbf16>
}

// 512 blocks of long tiles would be a wave of 396 and a rest; of short ones all run at once.
// CHECK-LABEL: func @wave_of_short_tiles(
// CHECK: schedule(<query_tile = 16, key_tile = 32, {{.*}} features = none, num_splits = 1>)
func.func @wave_of_short_tiles(%q: tensor<64x32x1x128xbf16>, %k: tensor<64x8x4096x128xbf16>, %v: tensor<64x8x4096x128xbf16>) -> tensor<64x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<64x32x1x128xbf16>, tensor<64x8x4096x128xbf16>, tensor<64x8x4096x128xbf16>) -> tensor<64x32x1x128xbf16>
  return %o : tensor<64x32x1x128xbf16>
}

// CHECK-LABEL: func @wide(
// CHECK: schedule(<query_tile = 16, key_tile = 32, {{.*}} features = none
func.func @wide(%q: tensor<8x16x1x256xbf16>, %k: tensor<8x4x4096x256xbf16>, %v: tensor<8x4x4096x256xbf16>) -> tensor<8x16x1x256xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<8x16x1x256xbf16>, tensor<8x4x4096x256xbf16>, tensor<8x4x4096x256xbf16>) -> tensor<8x16x1x256xbf16>
  return %o : tensor<8x16x1x256xbf16>
}

// Warps have roles: of a tile for each multiprocessor, of few long rows and of short ones, of wider heads, and where a region masks.
// CHECK-LABEL: func @one_for_each(
// CHECK: features = specialize_warps
func.func @one_for_each(%q: tensor<16x32x1x128xbf16>, %k: tensor<16x8x4096x128xbf16>, %v: tensor<16x8x4096x128xbf16>) -> tensor<16x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<16x32x1x128xbf16>, tensor<16x8x4096x128xbf16>, tensor<16x8x4096x128xbf16>) -> tensor<16x32x1x128xbf16>
  return %o : tensor<16x32x1x128xbf16>
}
// CHECK-LABEL: func @long_row(
// CHECK: features = specialize_warps
func.func @long_row(%q: tensor<1x32x1x128xbf16>, %k: tensor<1x8x16384x128xbf16>, %v: tensor<1x8x16384x128xbf16>) -> tensor<1x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<1x32x1x128xbf16>, tensor<1x8x16384x128xbf16>, tensor<1x8x16384x128xbf16>) -> tensor<1x32x1x128xbf16>
  return %o : tensor<1x32x1x128xbf16>
}
// CHECK-LABEL: func @short_rows(
// CHECK: features = specialize_warps
func.func @short_rows(%q: tensor<64x32x1x128xbf16>, %k: tensor<64x8x1000x128xbf16>, %v: tensor<64x8x1000x128xbf16>) -> tensor<64x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<64x32x1x128xbf16>, tensor<64x8x1000x128xbf16>, tensor<64x8x1000x128xbf16>) -> tensor<64x32x1x128xbf16>
  return %o : tensor<64x32x1x128xbf16>
}
// CHECK-LABEL: func @wider(
// CHECK: features = specialize_warps
func.func @wider(%q: tensor<8x16x1x264xbf16>, %k: tensor<8x4x4096x264xbf16>, %v: tensor<8x4x4096x264xbf16>) -> tensor<8x16x1x264xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<8x16x1x264xbf16>, tensor<8x4x4096x264xbf16>, tensor<8x4x4096x264xbf16>) -> tensor<8x16x1x264xbf16>
  return %o : tensor<8x16x1x264xbf16>
}
// CHECK-LABEL: func @region(
// CHECK: features = specialize_warps
func.func @region(%q: tensor<4x32x1x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c4 = arith.constant 4 : index
    %r = arith.remui %j, %c4 : index
    %c0 = arith.constant 0 : index
    %keep = arith.cmpi eq, %r, %c0 : index
    flash.yield %s keep %keep : f32
  } : (tensor<4x32x1x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16>
  return %o : tensor<4x32x1x128xbf16>
}

// Given tiles stay, with the stages that go with them; given keys of roles, and bits (split_keys), keep warps with roles.
// CHECK-LABEL: func @given_tile(
// CHECK: schedule(<query_tile = 16, key_tile = 48, {{.*}} stages = 2, features = none
func.func @given_tile(%q: tensor<4x32x1x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v schedule(<key_tile = 48>) : (tensor<4x32x1x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16>
  return %o : tensor<4x32x1x128xbf16>
}
// CHECK-LABEL: func @given_roles(
// CHECK: ctas_per_sm = 1, {{.*}}features = specialize_warps
func.func @given_roles(%q: tensor<4x32x1x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v schedule(<ctas_per_sm = 1>) : (tensor<4x32x1x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16>
  return %o : tensor<4x32x1x128xbf16>
}
// CHECK-LABEL: func @given_bits(
// CHECK: features = specialize_warps{{.*}} split_keys = 1024>
func.func @given_bits(%q: tensor<4x32x1x128xbf16>, %k: tensor<4x8x4096x128xbf16>, %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16> {
  %o = flash.attention %q, %k, %v schedule(<key_tile = 64, split_keys = 1024>) : (tensor<4x32x1x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>) -> tensor<4x32x1x128xbf16>
  return %o : tensor<4x32x1x128xbf16>
}
