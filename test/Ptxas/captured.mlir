// The programs for a learned bias of the distance spill no registers: those of rows, queries and
// keys, of tiles that are as far apart, of their diagonals, and of who they belong to.
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas --chip=sm_80 | FileCheck %s
// CHECK-COUNT-6: spill stores 0, spill loads 0
// CHECK-NOT:     spill
!q = tensor<1x16x4096x128xbf16>
!k = tensor<1x16x4096x128xbf16>
!l = tensor<1x16x4096xf32>
func.func @distances(%q: !q, %k: !k, %v: !k, %o: !q, %l: !l, %do: !q, %t: tensor<16x8192xf32>) -> (!q, !k, !k, tensor<16x8192xf32>) {
  %c4096 = arith.constant 4096 : index
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %l, %do mask(#flash.causal) wrt(%t : tensor<16x8192xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %c4096 : index
    %e = tensor.extract %t[%h, %at] : tensor<16x8192xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<16x8192xf32>)
  return %dq, %dk, %dv, %dt : !q, !k, !k, tensor<16x8192xf32>
}
