// Few queries: the heads that read the same keys are packed into tiles.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --flash-select-schedule=target=sm_90a | FileCheck %s

// CHECK-LABEL: func @few(
// CHECK:         schedule(<query_tile = 64, {{.*}} packed_heads = 4,
// CHECK-LABEL: func @one_key_head(
// CHECK:         schedule(<query_tile = 128, {{.*}} packed_heads = 71,
// More heads than the largest tile has rows: a part of them that divides them.
// CHECK-LABEL: func @many_heads(
// CHECK:         schedule(<query_tile = 128, {{.*}} packed_heads = 120,
// What is written goes before, and is room for fewer.
// CHECK-LABEL: func @written(
// CHECK:         schedule(<query_tile = 64, {{.*}} packed_heads = 60,
// CHECK:         schedule(<query_tile = 64, {{.*}} packed_heads = 1,
// CHECK-LABEL: func @apart(
// CHECK-NOT:     packed_heads
func.func @few(%q: tensor<16x32x8x128xf16>, %k: tensor<16x8x4096x128xf16>) -> tensor<16x32x8x128xf16> {
  %o = flash.attention %q, %k, %k : (tensor<16x32x8x128xf16>, tensor<16x8x4096x128xf16>, tensor<16x8x4096x128xf16>) -> tensor<16x32x8x128xf16>
  return %o : tensor<16x32x8x128xf16>
}
func.func @one_key_head(%q: tensor<4x71x1x64xf16>, %k: tensor<4x1x?x64xf16>) -> tensor<4x71x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<4x71x1x64xf16>, tensor<4x1x?x64xf16>, tensor<4x1x?x64xf16>) -> tensor<4x71x1x64xf16>
  return %o : tensor<4x71x1x64xf16>
}
func.func @many_heads(%q: tensor<4x240x2x64xf16>, %k: tensor<4x1x?x64xf16>) -> tensor<4x240x2x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<4x240x2x64xf16>, tensor<4x1x?x64xf16>, tensor<4x1x?x64xf16>) -> tensor<4x240x2x64xf16>
  return %o : tensor<4x240x2x64xf16>
}
func.func @written(%q: tensor<4x240x2x64xf16>, %k: tensor<4x1x?x64xf16>) -> (tensor<4x240x2x64xf16>, tensor<4x240x2x64xf16>) {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64>) : (tensor<4x240x2x64xf16>, tensor<4x1x?x64xf16>, tensor<4x1x?x64xf16>) -> tensor<4x240x2x64xf16>
  %p = flash.attention %q, %k, %k schedule(<query_tile = 64, packed_heads = 1>) : (tensor<4x240x2x64xf16>, tensor<4x1x?x64xf16>, tensor<4x1x?x64xf16>) -> tensor<4x240x2x64xf16>
  return %o, %p : tensor<4x240x2x64xf16>, tensor<4x240x2x64xf16>
}
// A head for each key head, more queries, sizes that are not known.
func.func @apart(%q: tensor<2x4x1x64xf16>, %k: tensor<2x4x512x64xf16>, %q2: tensor<2x8x33x64xf16>, %q3: tensor<2x?x1x64xf16>, %k3: tensor<2x?x512x64xf16>, %q4: tensor<2x8x?x64xf16>) {
  %a = flash.attention %q, %k, %k : (tensor<2x4x1x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x4x1x64xf16>
  %b = flash.attention %q2, %k, %k : (tensor<2x8x33x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x8x33x64xf16>
  %c = flash.attention %q3, %k3, %k3 : (tensor<2x?x1x64xf16>, tensor<2x?x512x64xf16>, tensor<2x?x512x64xf16>) -> tensor<2x?x1x64xf16>
  %d = flash.attention %q4, %k, %k : (tensor<2x8x?x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x8x?x64xf16>
  return
}

// -----

func.func @uneven(%q: tensor<1x8x2x64xf16>, %k: tensor<1x2x256x64xf16>) {
  // expected-error @below {{cannot be scheduled: packed_heads must divide the 4 query heads that read the same keys, got 3; the nearest is 2}}
  %o = flash.attention %q, %k, %k schedule(<packed_heads = 3>) : (tensor<1x8x2x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>) -> tensor<1x8x2x64xf16>
  return
}

// -----

func.func @open(%q: tensor<1x?x2x64xf16>, %k: tensor<1x?x256x64xf16>) {
  // expected-error @below {{cannot be scheduled: packed_heads needs types that say how many heads there are}}
  %o = flash.attention %q, %k, %k schedule(<packed_heads = 2>) : (tensor<1x?x2x64xf16>, tensor<1x?x256x64xf16>, tensor<1x?x256x64xf16>) -> tensor<1x?x2x64xf16>
  return
}

// -----

// expected-error @below {{packed_heads must be at most query_tile, which has a row for each, got 16 and 8}}
func.func private @f() attributes {m = #flash.schedule<query_tile = 8, packed_heads = 16>}
