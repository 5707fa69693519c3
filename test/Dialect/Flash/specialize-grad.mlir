// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x1024x128,2x8x1001x128" | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x32x0x128,2x8x1001x128" | FileCheck %s --check-prefix=EMPTY
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-specialize="sizes=2x32x1024x128,2x8x0x128" | FileCheck %s --check-prefix=EMPTY

// No queries and no keys have a schedule, too.
// EMPTY: flash.attention_grad {{.*}} schedule(<query_tile = {{[0-9]+}}, key_tile = {{[0-9]+}}

// Gradients: the schedule of such sizes, the numbers of heads, and whole tiles.
// CHECK: func.func @gradients(%[[Q:.*]]: tensor<?x32x?x128xf16>, %[[K:.*]]: tensor<?x8x?x128xf16>, %[[L:.*]]: tensor<?x32x?xf32>)
// CHECK: %[[DQ:.*]], %{{.*}}, %{{.*}} = flash.attention_grad %[[Q]], %[[K]], %[[K]], %[[Q]], %[[L]], %[[Q]] mask(#flash.causal) multiples([{{[0-9]+}}, 1])
// CHECK-SAME: schedule(<query_tile = {{[0-9]+}}, key_tile = {{[0-9]+}}
// CHECK-SAME: -> (tensor<?x32x?x128xf16>, tensor<?x8x?x128xf16>, tensor<?x8x?x128xf16>)
// CHECK: tensor.cast %[[DQ]] : tensor<?x32x?x128xf16> to tensor<?x?x?x128xf16>
// CHECK-NOT: tensor.cast %[[Q]]
func.func @gradients(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %l: tensor<?x?x?xf32>)
    -> (tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>) {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %l, %q mask(#flash.causal)
      : (tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?xf32>, tensor<?x?x?x128xf16>)
      -> (tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>)
  return %0#0, %0#1, %0#2 : tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>
}
