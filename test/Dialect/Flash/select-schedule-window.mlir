// What was measured for a window is not for another of the same lengths.
// RUN: split-file %s %t
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl" | FileCheck %s

// CHECK-LABEL: func @narrow(
// CHECK: schedule(<query_tile = 64, key_tile = 48,
// CHECK-LABEL: func @wide(
// CHECK: schedule(<query_tile = 128, key_tile = 96,
// CHECK-LABEL: func @between(
// CHECK-NOT: key_tile = 48
// CHECK-NOT: key_tile = 96
// CHECK: return

//--- table.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":64,"value_dim":64,"mask":"window","score":false,"lengths":false,"queries":8192,"keys":8192,"keys_per_query":64,"blocks":"many","schedule":{"query_tile":64,"key_tile":48,"features":"specialize_warps"},"ms":1,"default_ms":2}
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":64,"value_dim":64,"mask":"window","score":false,"lengths":false,"queries":8192,"keys":8192,"keys_per_query":4096,"blocks":"many","schedule":{"query_tile":128,"key_tile":96,"features":"specialize_warps"},"ms":1,"default_ms":2}
//--- program.mlir
!t = tensor<1x32x8192x64xf16>
func.func @narrow(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 63, right = 0>) : (!t, !t, !t) -> !t
  return %o : !t
}
func.func @wide(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 4095, right = 0>) : (!t, !t, !t) -> !t
  return %o : !t
}
func.func @between(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 999, right = 0>) : (!t, !t, !t) -> !t
  return %o : !t
}
