// Schedules that were measured go before those of the model.
// RUN: split-file %s %t
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl" | FileCheck %s --check-prefixes=ALL,TUNED
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_80 --flash-select-schedule="device=X tuning-file=%t/table.jsonl" | FileCheck %s --check-prefixes=ALL,MODEL
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefixes=ALL,MODEL
// What is given leaves the rest to what was measured, and this to the model.
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl schedule=stages=2" | FileCheck %s --check-prefixes=STAGES
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=query_stages=2,split_ctas=7" | FileCheck %s --check-prefix=GIVEN

// ALL-LABEL: func @causal(
// TUNED: schedule(<query_tile = 64, key_tile = 96, warps = 4, stages = 3, query_stages = 1, features = specialize_warps|overlap, num_splits = 1>)
// STAGES: schedule(<query_tile = 64, key_tile = 96, warps = 4, stages = 2, query_stages = 1, features = specialize_warps|overlap, num_splits = 1>)
// MODEL-NOT: key_tile = 96
// ALL-LABEL: func @longer(
// ALL-NOT: key_tile = 96
// ALL-LABEL: func @full(
// ALL-NOT: key_tile = 96
// ALL-LABEL: func @dynamic(
// TUNED: schedule(<query_tile = 32, key_tile = 32, warps = 2, stages = 1, features = none, num_splits = 1>)
// MODEL-NOT: query_tile = 32
// ALL-LABEL: func @written(
// ALL: schedule(<query_tile = 64, key_tile = 32, warps = 4, 
// What was measured with rounded products is not for accurate ones.
// ALL-LABEL: func @tf32(
// TUNED: schedule(<query_tile = 16, key_tile = 24, warps = 1, stages = 1, features = none, num_splits = 1>)
// MODEL-NOT: key_tile = 24
// ALL-LABEL: func @f32(
// ALL-NOT: key_tile = 24
// ALL: return
// GIVEN: query_stages = 2, {{.*}}split_ctas = 7
// It does not come with other tiles, or without the roles it was measured with.
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl schedule=query_tile=128" | FileCheck %s --check-prefix=TILES
// TILES-LABEL: func @causal(
// TILES-NOT: key_tile = 96
// TILES-LABEL: func @longer(
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl schedule=features=none" | FileCheck %s --check-prefix=ROLES
// ROLES-LABEL: func @causal(
// ROLES-NOT: key_tile = 96
// ROLES-LABEL: func @longer(

// RUN: not flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/none.jsonl" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot read the tuning file '{{.*}}none.jsonl': No such file or directory
// RUN: not flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=Y tuning-file=%t/table.jsonl" 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: error: the tuning file '{{.*}}table.jsonl' has no schedules for 'Y'; it has some for 'X', 'Z'
// RUN: not flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="tuning-file=%t/table.jsonl" 2>&1 | FileCheck %s --check-prefix=NAMELESS
// NAMELESS: error: the tuning file '{{.*}}table.jsonl' is for devices, and none is named
// The rules of the target hold for what was written by hand.
// RUN: not flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/large.jsonl" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: 'flash.attention' op cannot be scheduled: the tiles need 278528 bytes of shared memory
// LARGE: large.jsonl:2:1: error: this schedule is not possible for the program
// Also for gradients, whose entries are no others'.
// RUN: not flash-opt %t/gradients.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/gradients.jsonl" 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// GRADIENTS: error: 'flash.attention_grad' op cannot be scheduled: products = 5 needs the CPU, or specialize_warps,
// GRADIENTS: gradients.jsonl:1:1: error: this schedule is not possible for the program
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/gradients.jsonl" | FileCheck %s --check-prefix=OTHERS
// OTHERS-LABEL: func @causal(
// OTHERS-NOT: key_tile = 32
// OTHERS-LABEL: func @longer(

//--- gradients.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"causal","score":false,"lengths":false,"gradients":true,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":32,"key_tile":32,"products":5},"ms":1,"default_ms":2}
//--- gradients.mlir
!t = tensor<4x16x1000x128xf16>
func.func @causal(%q: !t, %lse: tensor<4x16x1000xf32>) -> (!t, !t, !t) {
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q mask(#flash.causal) : (!t, !t, !t, !t, tensor<4x16x1000xf32>, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
//--- table.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"causal","score":false,"lengths":false,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":64,"key_tile":96,"stages":3,"features":"specialize_warps|overlap"},"ms":1,"default_ms":2}

{"device":"X","target":"sm_90a","dtype":"f16","head_dim":64,"value_dim":64,"mask":"full","score":false,"lengths":false,"queries":null,"keys":null,"keys_per_query":null,"blocks":null,"schedule":{"query_tile":32,"key_tile":32},"ms":1,"default_ms":2}
{"device":"Z","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"full","score":false,"lengths":false,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":64,"key_tile":96},"ms":1,"default_ms":2}
{"device":"X","target":"sm_90a","dtype":"tf32","head_dim":64,"value_dim":64,"mask":"full","score":false,"lengths":false,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":16,"key_tile":24},"ms":1,"default_ms":2}
//--- large.jsonl

{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"causal","score":false,"lengths":false,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":64,"key_tile":128,"stages":8,"features":"specialize_warps"},"ms":1,"default_ms":2}
//--- program.mlir
!t = tensor<4x16x1000x128xf16>
func.func @causal(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (!t, !t, !t) -> !t
  return %o : !t
}
!l = tensor<4x16x1025x128xf16>
func.func @longer(%q: !l) -> !l {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (!l, !l, !l) -> !l
  return %o : !l
}
func.func @full(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q : (!t, !t, !t) -> !t
  return %o : !t
}
!d = tensor<?x?x?x64xf16>
func.func @dynamic(%q: !d) -> !d {
  %o = flash.attention %q, %q, %q : (!d, !d, !d) -> !d
  return %o : !d
}
func.func @written(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 32>) : (!t, !t, !t) -> !t
  return %o : !t
}
!f = tensor<4x16x1000x64xf32>
func.func @tf32(%q: !f) -> !f {
  %o = flash.attention %q, %q, %q precision(tf32) : (!f, !f, !f) -> !f
  return %o : !f
}
func.func @f32(%q: !f) -> !f {
  %o = flash.attention %q, %q, %q : (!f, !f, !f) -> !f
  return %o : !f
}
