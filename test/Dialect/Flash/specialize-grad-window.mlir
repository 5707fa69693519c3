// The keys that a query sees are those of the sizes that a version is for.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=8x16x2048x128,8x16x2048x128" | FileCheck %s --check-prefix=SHORT
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=1x16x16384x128,1x16x16384x128" | FileCheck %s --check-prefix=LONG
// LONG: products = 5
// SHORT:      schedule(<query_tile = 128
// SHORT-NOT:  products
#part = affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0, j * 8 - i * 8 + nk >= 0)>
!q = tensor<?x?x?x128xf16>
!l = tensor<?x?x?xf32>
func.func @gradients(%q: !q, %k: !q, %l: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %l, %q mask(#flash.affine<#part>)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}
