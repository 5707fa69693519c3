// A measured schedule with sum_diagonals is of programs that can have it: another one of the
// same sizes has the model's.
// RUN: split-file %s %t
// RUN: flash-opt %t/program.mlir --flash-attach-target=target=sm_90a --flash-select-schedule="device=X tuning-file=%t/table.jsonl" | FileCheck %s

// CHECK-LABEL: func @with
// CHECK: stages = 1, features = specialize_warps|bulk_store|sum_diagonals
// CHECK-LABEL: func @without
// CHECK: stages = 2, features = specialize_warps|bulk_store>

//--- table.jsonl
{"device":"X","target":"sm_90a","dtype":"f16","head_dim":128,"value_dim":128,"mask":"full","score":true,"lengths":false,"gradients":true,"sums_by_distance":true,"queries":1024,"keys":1024,"keys_per_query":1024,"blocks":"many","schedule":{"query_tile":128,"key_tile":128,"query_step":64,"key_step":128,"products":5,"stages":1,"features":"specialize_warps|bulk_store|sum_diagonals"},"ms":1,"default_ms":2}
//--- program.mlir
!q = tensor<16x16x1024x128xf16>
!l = tensor<16x16x1024xf32>
!w = tensor<16x2048xf32>
func.func @with(%q: !q, %lse: !l, %w: !w) {
  %n = arith.constant 1024 : index
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q wrt(%w : !w) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%h, %e] : !w
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !w)
  return
}
func.func @without(%q: !q, %lse: !l, %w: !w) {
  %n = arith.constant 1024 : index
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%h, %e] : !w
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return
}
