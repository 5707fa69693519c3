// The programs of gradients spill no registers and ptxas has no remark on them:
// of rows, of tiles of queries, of tiles of keys, and of sinks.
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas --chip=sm_80 | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s
// CHECK-COUNT-7: spill stores 0, spill loads 0
// CHECK-NOT:     spill
!q = tensor<?x8x?x64xf16>
!k = tensor<?x2x?x64xf16>
!l = tensor<?x8x?xf32>
func.func @narrow(%q: !q, %k: !k, %v: !k, %o: !q, %l: !l, %do: !q, %s: tensor<8xf32>) -> (!q, !k, !k, tensor<8xf32>) {
  %dq, %dk, %dv, %ds = flash.attention_grad %q, %k, %v, %o, %l, %do mask(#flash.causal) sink(%s : tensor<8xf32>)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<8xf32>)
  return %dq, %dk, %dv, %ds : !q, !k, !k, tensor<8xf32>
}

!w = tensor<2x8x1000x128xbf16>
!wl = tensor<2x8x1000xf32>
func.func @wide(%q: !w, %k: !w, %v: !w, %o: !w, %l: !wl, %do: !w) -> (!w, !w, !w) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %do mask(#flash.causal)
      : (!w, !w, !w, !w, !wl, !w) -> (!w, !w, !w)
  return %dq, %dk, %dv : !w, !w, !w
}
