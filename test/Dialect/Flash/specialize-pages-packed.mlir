// A version for packed queries of few rows whose keys lie in pages. Sizes describe the rows by sequences of the mean length, and what
// stands before the table as it is: a scalar has no sizes, and offsets are no rows.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=4x32x1x128,900x8x16x128,900x8x16x128,,?,4x100" | FileCheck %s
// More than fill the GPU have splits by what lengths may be, if there is one query for each in the mean: a prompt among more might
// have many rows.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=64x32x1x128,900x8x16x128,900x8x16x128,,?,64x1632" | FileCheck %s --check-prefix=TOKENS
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=64x32x2x128,900x8x16x128,900x8x16x128,,?,64x1632" | FileCheck %s --check-prefix=DRAFTS
// Of any lengths, some sequences have one query: heads that read the same keys share tiles, as far as it is known how many there are.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=?x32x?x128,?x8x16x128,?x8x16x128,,?,?x?" | FileCheck %s --check-prefix=ANY
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=?x?x?x128,?x?x16x128,?x?x16x128,,?,?x?" | FileCheck %s --check-prefix=OPEN
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=?x32x?x128,?x5x16x128,?x5x16x128,,?,?x?" | FileCheck %s --check-prefix=OPEN

!q = tensor<?x?x?x128xbf16>
!rows = tensor<1x?x?x128xbf16>
!cache = tensor<?x?x16x128xbf16>
// CHECK: func @attention(%{{.*}}: tensor<1x32x?x128xbf16>, %{{.*}}: tensor<?x8x16x128xbf16>,
// CHECK: flash.attention {{.*}} schedule(<query_tile = 16, {{.*}}packed_heads = 4, {{.*}}split_ctas = 132
// TOKENS: flash.attention {{.*}} features = none, {{.*}}split_keys = 1024>
// DRAFTS: flash.attention {{.*}} schedule(<query_tile = 64, {{.*}} features = specialize_warps{{.*}} num_splits = 1>
// ANY: func @attention(%{{.*}}: tensor<1x32x?x128xbf16>, %{{.*}}: tensor<?x8x16x128xbf16>,
// ANY: flash.unpage {{.*}} -> tensor<?x8x?x128xbf16>
// OPEN: func @attention(%{{.*}}: tensor<1x?x?x128xbf16>, %{{.*}}: tensor<?x?x16x128xbf16>,
func.func @attention(%q: !rows, %k: !cache, %v: !cache, %bias: tensor<f32>, %offsets: tensor<?xi32>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !rows {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %offsets : !rows, tensor<?xi32> -> !q, tensor<?xi32>
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %os = flash.attention %qs, %ks, %vs query_lengths(%nq : tensor<?xi32>) key_lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %t = tensor.extract %bias[] : tensor<f32>
    %r = arith.addf %s, %t : f32
    flash.yield %r : f32
  } : (!q, !q, !q) -> !q
  %h = tensor.dim %q, %c1 : !rows
  %t = tensor.dim %q, %c2 : !rows
  %e = tensor.empty(%h, %t) : !rows
  %o = flash.pack %os by %offsets into %e : !q, tensor<?xi32> into !rows
  return %o : !rows
}
