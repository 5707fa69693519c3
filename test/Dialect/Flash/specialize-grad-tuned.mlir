// Versions of gradients have what was measured for the class of their sizes.
// RUN: split-file %s %t
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x1024x128,2x8x1001x128 device=X tuning-file=%t/table.jsonl" | FileCheck %s --check-prefix=TUNED
// What is given goes before it, and leaves all else to the model.
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x1024x128,2x8x1001x128 device=X tuning-file=%t/table.jsonl schedule=stages=2" | FileCheck %s --check-prefix=MODEL
// Calls of another class, and schedules that do not go with sizes that are open, have the model's.
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x4096x128,2x8x4096x128 device=X tuning-file=%t/table.jsonl" | FileCheck %s --check-prefix=MODEL
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x1024x128,2x8x1001x128 device=X tuning-file=%t/impossible.jsonl" 2>&1 | FileCheck %s --check-prefixes=IMPOSSIBLE,MODEL
// RUN: not flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x1024x128,2x8x1001x128 device=Y tuning-file=%t/table.jsonl" 2>&1 | FileCheck %s --check-prefix=DEVICE

// TUNED: flash.attention_grad
// TUNED-SAME: schedule(<query_tile = 128, key_tile = 128, query_step = 64, key_step = 48, {{.*}}stages = 1, features = specialize_warps|bulk_store>)
// IMPOSSIBLE: impossible.jsonl:1:1: warning: this schedule is not possible for sizes that are open: products = 5 needs
// MODEL: flash.attention_grad
// MODEL-NOT: key_step = 48
// MODEL: return
// DEVICE: error: the tuning file '{{.*}}table.jsonl' has no schedules for 'Y'; it has some for 'X'

//--- table.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"causal","score":false,"lengths":false,"gradients":true,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":128,"key_tile":128,"query_step":64,"key_step":48,"products":7,"stages":1,"features":"specialize_warps|persistent|bulk_store"},"ms":1,"default_ms":2}
//--- impossible.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"causal","score":false,"lengths":false,"gradients":true,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":32,"key_tile":32,"key_step":48,"products":5},"ms":1,"default_ms":2}
//--- program.mlir
!t = tensor<?x?x?x128xf16>
func.func @gradients(%q: !t, %k: !t, %l: tensor<?x?x?xf32>) -> (!t, !t, !t) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %l, %q mask(#flash.causal) : (!t, !t, !t, !t, tensor<?x?x?xf32>, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}
