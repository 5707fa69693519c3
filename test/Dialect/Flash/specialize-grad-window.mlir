// The keys that a query sees are those of the sizes that a version is for.
// RUN: flash-opt %s --flash-specialize="sizes=8x16x2048x64,8x16x2048x64 target=sm_90a" | FileCheck %s --check-prefix=SHORT
// RUN: flash-opt %s --flash-specialize="sizes=1x16x16384x64,1x16x16384x64 target=sm_90a" | FileCheck %s --check-prefix=LONG
// SHORT: products = 5
// LONG:      schedule(<query_tile = 128
// LONG-NOT:  products
!q = tensor<?x?x?x64xf16>
!l = tensor<?x?x?xf32>
func.func @gradients(%q: !q, %k: !q, %l: !l) -> (!q, !q, !q) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %l, %q mask(#flash.window<left = 511, right = 0>)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %0#0, %0#1, %0#2 : !q, !q, !q
}
