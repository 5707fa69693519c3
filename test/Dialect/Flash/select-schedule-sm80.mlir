// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s --check-prefixes=ALL,MODEL
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=num_splits=5" | FileCheck %s --check-prefixes=ALL,GIVEN
// RUN: flash-opt %s --flash-select-schedule | FileCheck %s --check-prefix=CPU
// RUN: flash-opt %s --flash-attach-target=target=emulate --flash-select-schedule | FileCheck %s --check-prefix=EMULATE
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=num_splits=300" 2>&1 | FileCheck %s --check-prefix=MOST
// MOST: error: the schedule that is given: num_splits must be from 1 to 256, got 300

// Enough query tiles for the GPU.
// ALL-LABEL: func @many(
// MODEL: schedule(<query_tile = 128, key_tile = 64, warps = 4, stages = 1, features = none, num_splits = 1>)
// GIVEN: schedule(<query_tile = 128, key_tile = 64, warps = 4, stages = 1, features = none, num_splits = 5>)
func.func @many(%q: tensor<4x8x2048x64xf16>) -> tensor<4x8x2048x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<4x8x2048x64xf16>, tensor<4x8x2048x64xf16>, tensor<4x8x2048x64xf16>) -> tensor<4x8x2048x64xf16>
  return %o : tensor<4x8x2048x64xf16>
}

// One head: its keys are shared. GPUs have 132 multiprocessors, for each of
// which there are two blocks of four warps.
// ALL-LABEL: func @one_head(
// MODEL: schedule(<query_tile = 128, key_tile = 64, warps = 4, stages = 1, features = none, split_ctas = 264>)
func.func @one_head(%q: tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16>
  return %o : tensor<1x1x4096x64xf16>
}

// A short one: that is not enough, so query tiles are smaller.
// ALL-LABEL: func @short(
// MODEL: schedule(<query_tile = 64, key_tile = 64, warps = 4, stages = 1, features = none, split_ctas = 264>)
func.func @short(%q: tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16>
  return %o : tensor<1x1x512x64xf16>
}

// One query for each head: blocks of one warp.
// ALL-LABEL: func @decode(
// MODEL: schedule(<query_tile = 16, key_tile = 64, warps = 1, stages = 1, features = none, split_ctas = 1056>)
func.func @decode(%q: tensor<2x8x1x64xf16>, %k: tensor<2x8x?x64xf16>) -> tensor<2x8x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<2x8x1x64xf16>, tensor<2x8x?x64xf16>, tensor<2x8x?x64xf16>) -> tensor<2x8x1x64xf16>
  return %o : tensor<2x8x1x64xf16>
}

// Sizes that are known at run time only may be small.
// ALL-LABEL: func @dynamic(
// MODEL: schedule(<query_tile = 128, key_tile = 64, warps = 4, stages = 1, features = none, split_ctas = 264>)
func.func @dynamic(%q: tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}

// What the program says is taken, unless an option says otherwise, but ignored
// by the CPU.
// ALL-LABEL: func @written(
// MODEL: schedule(<query_tile = 64, key_tile = 32, warps = 4, stages = 1, features = none, num_splits = 2>)
// GIVEN: schedule(<query_tile = 64, key_tile = 32, warps = 4, stages = 1, features = none, num_splits = 5>)
// CPU-LABEL: func @written(
// CPU: schedule(<query_tile = 64, key_tile = 32>)
// EMULATE-LABEL: func @written(
// EMULATE: schedule(<query_tile = 64, key_tile = 32, num_splits = 2>)
func.func @written(%q: tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16> {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 32, num_splits = 2>)
      : (tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>) -> tensor<1x1x512x64xf16>
  return %o : tensor<1x1x512x64xf16>
}
