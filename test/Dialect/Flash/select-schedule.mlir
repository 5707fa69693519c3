// RUN: flash-opt %s --flash-select-schedule | FileCheck %s --check-prefixes=ALL,MODEL
// RUN: flash-opt %s --flash-select-schedule="schedule=query_tile=8,key_tile=24" | FileCheck %s --check-prefixes=ALL,GIVEN
// RUN: not flash-opt %s --flash-select-schedule=schedule=query_tile=12 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: not flash-opt %s --flash-select-schedule=schedule=key_tile=-8 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// BAD: error: the schedule that is given: query_tile must be a multiple of 8 from 8 to 1024, got 12; the nearest is 16
// NEGATIVE: error: the schedule that is given: key_tile must be a multiple of 8 from 8 to 1024, got -8; the nearest is 8

// Tiles no larger than the lengths need; the largest where those are unknown.
// ALL-LABEL: func @short(
// MODEL: schedule(<query_tile = 16, key_tile = 32>)
// GIVEN: schedule(<query_tile = 8, key_tile = 24>)
func.func @short(%q: tensor<1x1x1x8xf32>, %k: tensor<1x1x20x8xf32>) -> tensor<1x1x1x8xf32> {
  %o = flash.attention %q, %k, %k
      : (tensor<1x1x1x8xf32>, tensor<1x1x20x8xf32>, tensor<1x1x20x8xf32>) -> tensor<1x1x1x8xf32>
  return %o : tensor<1x1x1x8xf32>
}

// ALL-LABEL: func @dynamic(
// MODEL: schedule(<query_tile = 128, key_tile = 128>)
func.func @dynamic(%q: tensor<4x?x64xf16>) -> tensor<4x?x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<4x?x64xf16>, tensor<4x?x64xf16>, tensor<4x?x64xf16>) -> tensor<4x?x64xf16>
  return %o : tensor<4x?x64xf16>
}

// ALL-LABEL: func @long(
// MODEL: schedule(<query_tile = 128, key_tile = 128>)
func.func @long(%q: tensor<1x9223372036854775807x8xf32>) -> tensor<1x9223372036854775807x8xf32> {
  %o = flash.attention %q, %q, %q : (tensor<1x9223372036854775807x8xf32>, tensor<1x9223372036854775807x8xf32>,
      tensor<1x9223372036854775807x8xf32>) -> tensor<1x9223372036854775807x8xf32>
  return %o : tensor<1x9223372036854775807x8xf32>
}

// Few heads: smaller tiles, so that there is work for all threads.
// ALL-LABEL: func @few(
// MODEL: schedule(<query_tile = 32, key_tile = 128>)
func.func @few(%q: tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16>
  return %o : tensor<1x1x512x64xf16>
}

// Wide heads: smaller tiles, so that a step stays in the cache.
// ALL-LABEL: func @wide(
// MODEL: schedule(<query_tile = 64, key_tile = 128>)
func.func @wide(%q: tensor<4x8x4096x256xf16>) -> tensor<4x8x4096x256xf16> {
  %o = flash.attention %q, %q, %q : (tensor<4x8x4096x256xf16>, tensor<4x8x4096x256xf16>, tensor<4x8x4096x256xf16>) -> tensor<4x8x4096x256xf16>
  return %o : tensor<4x8x4096x256xf16>
}

// What is written stays, unless something else is given.
// ALL-LABEL: func @written(
// MODEL: schedule(<query_tile = 128, key_tile = 8>)
// GIVEN: schedule(<query_tile = 8, key_tile = 24>)
func.func @written(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 128, key_tile = 8>)
      : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}
