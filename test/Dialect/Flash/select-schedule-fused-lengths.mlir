// Of lengths that only the data tell a mask has to leave ranges whatever they are, and not of as many rows as there are: those of a
// window and some first keys are one range for 235 queries and 200 keys, and two for others.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s
// RUN: not flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule="schedule=products=5" 2>&1 | FileCheck %s --check-prefix=FUSED

!q = tensor<1x3x235x64xf16>
!k = tensor<1x1x200x64xf16>
!l = tensor<1x3x235xf32>

// CHECK-LABEL: func.func @holes(
// CHECK:         flash.attention_grad
// CHECK-SAME:      schedule(<query_tile
// CHECK-NOT:         products = 5
// CHECK-LABEL: func.func @ranges(
// CHECK:         flash.attention_grad
// CHECK-SAME:      products = 5
// FUSED: [[# @LINE + 3]]:{{.*}} 'flash.attention_grad' op cannot be scheduled: products = 5 needs a mask that leaves each tile of queries one range of tiles of keys, and the other way round; choose products = 7
func.func @holes(%q: !q, %k: !k, %o: !q, %lse: !l, %offsets: tensor<2xi32>, %nq: tensor<1xi32>) -> !q {
  %keys, %nk = flash.unpack %k by %offsets : !k, tensor<2xi32> -> !k, tensor<1xi32>
  %0:3 = flash.attention_grad %q, %keys, %keys, %o, %lse, %o mask(#flash.any_of<[#flash.prefix<4>, #flash.window<left = 60, right = 0>]>)
      query_lengths(%nq : tensor<1xi32>) key_lengths(%nk : tensor<1xi32>) : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %0#0 : !q
}

func.func @ranges(%q: !q, %k: !k, %o: !q, %lse: !l, %offsets: tensor<2xi32>, %nq: tensor<1xi32>) -> !q {
  %keys, %nk = flash.unpack %k by %offsets : !k, tensor<2xi32> -> !k, tensor<1xi32>
  %0:3 = flash.attention_grad %q, %keys, %keys, %o, %lse, %o mask(#flash.causal)
      query_lengths(%nq : tensor<1xi32>) key_lengths(%nk : tensor<1xi32>) : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %0#0 : !q
}
