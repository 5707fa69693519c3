// Blocks that claim their tiles, as all gradients of one program up to D = 64 have it,
// and those that have one: the same bits, of ragged tiles and grouped heads, too.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --seed=11
// RUN: %{run} --check --schedule=products=5 --outputs=%t-a0.npy,%t-a1.npy,%t-a2.npy
// RUN: %{run} --schedule='products=5,features=specialize_warps|bulk_store|defer_products' --outputs=%t-b0.npy,%t-b1.npy,%t-b2.npy
// RUN: cmp %t-a0.npy %t-b0.npy
// RUN: cmp %t-a1.npy %t-b1.npy
// RUN: cmp %t-a2.npy %t-b2.npy
// RUN: flash-run %s --target=sm_90a --dump=l2 --schedule=products=5 | FileCheck %s

// Each role has the claim, and what a loop over tiles brings: steps of the ring whose
// products are deferred go on counting, one more for each tile.
// CHECK:      tile.warp_specialize @consumer
// CHECK-NEXT:   scf.for %[[N:.*]] = %c0 to %[[TILES:.*]] step %c1 iter_args(%[[STEPS:.*]] = %c0)
// CHECK-NEXT:     tile.claim %[[N]]
// CHECK:          %[[FIRST:.*]] = arith.addi %[[STEPS]], %[[N]]
// CHECK:          tile.ring.acquire %[[DS:.*]][%[[FIRST]]]
// CHECK-NEXT:     tile.ring.put %{{.*}} to %[[DS]][%[[FIRST]]]
// CHECK:      } @producer
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.claim
// CHECK:      } @adder
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.claim
// CHECK:      } @nonfinite_check
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.claim
!q = tensor<2x4x300x64xf16>
!k = tensor<2x2x520x64xf16>
!l = tensor<2x4x300xf32>
func.func @grad(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
