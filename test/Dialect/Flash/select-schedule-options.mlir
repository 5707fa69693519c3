// Features as an option, and targets that there are not.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=specialize_warps|persistent" | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=none" | FileCheck %s --check-prefix=NONE
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=-overlap|-persistent" | FileCheck %s --check-prefix=WITHOUT
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=features=-overlap" | FileCheck %s --check-prefix=NONE
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=-overlap|ping_pong" 2>&1 | FileCheck %s --check-prefix=MIXED
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=query_tile=128,key_tile=128" | FileCheck %s --check-prefix=TILES
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=features=fast" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule="schedule=features=specialize_warps" 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: not flash-opt %s --flash-attach-target=target=sm_70 --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=TARGET

// CHECK: schedule(<query_tile = {{.*}}, features = specialize_warps|persistent
// NONE: schedule(<query_tile = {{[^f]*}}, features = none, 
// WITHOUT: schedule(<query_tile = {{.*}}, features = specialize_warps|lazy_rescale|bulk_store,
// MIXED: error: the schedule that is given: '-overlap|ping_pong' is no list of features such as specialize_warps|overlap, nor one of features to leave out, each with its minus, such as -overlap|-ping_pong; the features are
// UNKNOWN: error: the schedule that is given: 'fast' is no list of features such as specialize_warps|overlap
// SM80: error: 'flash.attention' op cannot be scheduled: the features specialize_warps need the target sm_90a and elements of 16 bits
// TARGET: error: there is no target 'sm_70'; the targets are cpu, emulate, sm_75, sm_80, sm_86, sm_89, sm_90a and sm_120
func.func @f(%q: tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16>
  return %o : tensor<2x4x512x64xf16>
}

// Blocks of larger tiles share no multiprocessor, as those that are proposed do.
// TILES-LABEL: func.func @short_rows(
// TILES: schedule(<query_tile = 128, key_tile = 128, warps = 8, stages = 2, query_stages = 2, features =
func.func @short_rows(%q: tensor<32x32x512x64xf16>) -> tensor<32x32x512x64xf16> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<32x32x512x64xf16>, tensor<32x32x512x64xf16>, tensor<32x32x512x64xf16>) -> tensor<32x32x512x64xf16>
  return %o : tensor<32x32x512x64xf16>
}

// As an attribute, of an attention and of gradients; what the option leaves out is missing, too.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefix=ATTRIBUTE
// ATTRIBUTE-LABEL: func.func @attribute(
// ATTRIBUTE: flash.attention {{.*}} features = specialize_warps|overlap|persistent|bulk_store,
// ATTRIBUTE: flash.attention_grad {{.*}} features = specialize_warps|persistent>
// WITHOUT-LABEL: func.func @attribute(
// WITHOUT: flash.attention {{.*}} features = specialize_warps|bulk_store,
// WITHOUT: flash.attention_grad {{.*}} features = specialize_warps>
func.func @attribute(%q: tensor<2x4x512x64xf16>)
    -> (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) {
  %o, %l = flash.attention %q, %q, %q schedule(<features = -lazy_rescale>) : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> (tensor<2x4x512x64xf16>, tensor<2x4x512xf32>)
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %l, %o schedule(<features = -bulk_store>) : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512xf32>, tensor<2x4x512x64xf16>) -> (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>)
  return %dq, %dk, %dv : tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>
}
