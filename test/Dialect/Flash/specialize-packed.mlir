// A version for sequences of a few rows: heads that read the same keys share tiles, and keys are split as the calls need it.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=4x32x1x128,4x8x4096x128,4x8x4096x128" | FileCheck %s
// Many rows of each have long tiles, and no splits.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=16x32x2048x128,16x8x2048x128,16x8x2048x128" | FileCheck %s --check-prefix=LONG
// RUN: not flash-opt %s --flash-version="target=sm_90a sizes=64x32x1x64,64x8x4096x128,64x8x4096x128" 2>&1 | FileCheck %s --check-prefix=NONE

!q = tensor<1x?x?x128xbf16>
!qs = tensor<?x?x?x128xbf16>
// CHECK: func @attention(%{{.*}}: tensor<1x32x?x128xbf16>, %{{.*}}: tensor<1x8x?x128xbf16>,
// CHECK: flash.unpack %{{.*}} -> tensor<?x32x?x128xbf16>
// CHECK: %[[O:.*]] = flash.attention {{.*}} schedule(<query_tile = 16, {{.*}}packed_heads = 4, {{.*}}features = none, {{.*}}split_ctas = 264>)
// CHECK-NOT: tensor.cast %[[O]]
// CHECK: flash.pack %[[O]]
// LONG: flash.attention
// LONG-SAME: query_tile = 128
// LONG-NOT: split_ctas
// NONE: has an argument 0 of type 'tensor<1x?x?x128xbf16>', which is never of the sizes 64x32x1x64
func.func @attention(%q: !q, %k: !q, %v: !q, %of_queries: tensor<?xi32>, %of_keys: tensor<?xi32>) -> !q {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %ks, %nk = flash.unpack %k by %of_keys : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %vs, %nv = flash.unpack %v by %of_keys : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %os = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : tensor<?xi32>) key_lengths(%nk : tensor<?xi32>)
      : (!qs, !qs, !qs) -> !qs
  %h = tensor.dim %q, %c1 : !q
  %t = tensor.dim %q, %c2 : !q
  %e = tensor.empty(%h, %t) : !q
  %o = flash.pack %os by %of_queries into %e : !qs, tensor<?xi32> into !q
  return %o : !q
}

// Of gradients heads alone are known, which decide which loops there are.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=?x16x?x128,?x8x?x128,?x8x?x128" | FileCheck %s --check-prefix=GRAD
// Heads that no program of gradients can have leave it as it is.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=?x12x?x128,?x8x?x128,?x8x?x128" | FileCheck %s --check-prefix=OPEN

// GRAD-LABEL: func @gradients(
// GRAD-SAME:    %{{.*}}: tensor<1x16x?x128xbf16>, %{{.*}}: tensor<1x8x?x128xbf16>, %{{.*}}: tensor<1x8x?x128xbf16>, %{{.*}}: tensor<1x16x?x128xbf16>, %{{.*}}: tensor<1x16x?xf32>, %{{.*}}: tensor<1x16x?x128xbf16>,
// GRAD-SAME:    -> (tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>, tensor<1x?x?x128xbf16>)
// GRAD:         flash.attention_grad
// GRAD-NOT:     schedule
// GRAD-SAME:    -> (tensor<?x16x?x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16>)
// GRAD:         %[[Q:.*]] = flash.pack %{{.*}} into tensor<1x16x?x128xbf16>
// GRAD:         tensor.cast %[[Q]] : tensor<1x16x?x128xbf16> to tensor<1x?x?x128xbf16>
// GRAD:         flash.pack %{{.*}} into tensor<1x8x?x128xbf16>
// GRAD:         flash.pack %{{.*}} into tensor<1x8x?x128xbf16>
// OPEN-LABEL: func @gradients(
// OPEN-SAME:    %{{.*}}: tensor<1x?x?x128xbf16>, %{{.*}}: tensor<1x?x?x128xbf16>
func.func @gradients(%q: !q, %k: !q, %v: !q, %o: !q, %lse: tensor<1x?x?xf32>, %do: !q, %of_queries: tensor<?xi32>, %of_keys: tensor<?xi32>)
    -> (!q, !q, !q) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %of_queries : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %ks, %nk = flash.unpack %k by %of_keys : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %vs, %nv = flash.unpack %v by %of_keys : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %os, %no = flash.unpack %o by %of_queries : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %ls, %nl = flash.unpack %lse by %of_queries : tensor<1x?x?xf32>, tensor<?xi32> -> tensor<?x?x?xf32>, tensor<?xi32>
  %dos, %nd = flash.unpack %do by %of_queries : !q, tensor<?xi32> -> !qs, tensor<?xi32>
  %dqs, %dks, %dvs = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos mask(#flash.causal)
      query_lengths(%nq : tensor<?xi32>) key_lengths(%nk : tensor<?xi32>)
      : (!qs, !qs, !qs, !qs, tensor<?x?x?xf32>, !qs) -> (!qs, !qs, !qs)
  %h = tensor.dim %q, %c1 : !q
  %t = tensor.dim %q, %c2 : !q
  %g = tensor.dim %k, %c1 : !q
  %s = tensor.dim %k, %c2 : !q
  %eq = tensor.empty(%h, %t) : !q
  %ek = tensor.empty(%g, %s) : !q
  %dq = flash.pack %dqs by %of_queries into %eq : !qs, tensor<?xi32> into !q
  %dk = flash.pack %dks by %of_keys into %ek : !qs, tensor<?xi32> into !q
  %dv = flash.pack %dvs by %of_keys into %ek : !qs, tensor<?xi32> into !q
  return %dq, %dk, %dv : !q, !q, !q
}
