// What kernels keep of packed rows lies as these do: sums of rows, and partial results of splits.
// RUN: flash-opt %s --flash-tile-grad --split-input-file | FileCheck %s --check-prefix=GRAD
// RUN: flash-opt %s --flash-online-softmax --flash-tile --split-input-file | FileCheck %s --check-prefix=SPLIT

!m = tensor<1x4x?x64xf16>
!t = tensor<3x4x?x64xf16>
!n = tensor<3xi32>
// GRAD-LABEL: @captured(
// GRAD:         %[[VIEW:.*]], %{{.*}} = flash.unpack
// The sums of rows, for the rows of the view.
// GRAD:         flash.kernel over({{.*}}) by [1, 1, 64] rows(%[[VIEW]] : tensor<3x4x?x64xf16>) outs(%{{.*}} : tensor<1x4x?xf32>)
// GRAD:         flash.captured_grad_step
func.func @captured(%m: !m, %offsets: tensor<4xi32>, %l: tensor<3x4x?xf32>, %slopes: tensor<4xf32>) -> tensor<4xf32> {
  %q, %n = flash.unpack %m by %offsets : !m, tensor<4xi32> -> !t, !n
  %0:4 = flash.attention_grad %q, %q, %q, %q, %l, %q query_lengths(%n : !n) key_lengths(%n : !n) schedule(<query_tile = 64, key_tile = 64>)
      wrt(%slopes : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %slopes[%h] : tensor<4xf32>
    %r = arith.mulf %s, %x : f32
    flash.yield %r : f32
  } : (!t, !t, !t, !t, tensor<3x4x?xf32>, !t) -> (!t, !t, !t, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

!m = tensor<1x4x?x64xf16>
!t = tensor<3x4x?x64xf16>
!n = tensor<3xi32>
// SPLIT-LABEL: @splits(
// SPLIT:         %[[VIEW:.*]], %{{.*}} = flash.unpack
// SPLIT:         %[[PARTS:.*]] = tensor.empty(%{{.*}}) : tensor<2x1x4x?x64xf32>
// SPLIT:         flash.kernel over(%c2{{.*}}) by [1, 1, 1, 64] rows(%[[VIEW]] : tensor<3x4x?x64xf16>) outs(%[[PARTS]]
// SPLIT:         flash.kernel over({{.*}}) by [1, 1, 8] rows(%[[VIEW]] : tensor<3x4x?x64xf16>)
// SPLIT:         flash.combine
// SPLIT:         flash.pack
func.func @splits(%m: !m, %offsets: tensor<4xi32>, %e: !m) -> !m {
  %q, %n = flash.unpack %m by %offsets : !m, tensor<4xi32> -> !t, !n
  %o = flash.attention %q, %q, %q query_lengths(%n : !n) key_lengths(%n : !n) schedule(<query_tile = 64, key_tile = 64, num_splits = 2>) : (!t, !t, !t) -> !t
  %p = flash.pack %o by %offsets into %e : !t, tensor<4xi32> into !m
  return %p : !m
}

// -----

// Where a sequence's statistics and sums begin is read before the loop over its queries, and in none of its steps.
!m = tensor<1x4x?x64xf16>
!t = tensor<3x4x?x64xf16>
!n = tensor<3xi32>
// GRAD-LABEL: @steps(
// GRAD-SAME:    %{{.*}}: tensor<1x4x?x64xf16>, %[[OFFSETS:.*]]: tensor<4xi32>
// GRAD:         flash.kernel over({{.*}}) by [1, 1, 128]
// GRAD:           ^bb0(%[[B:.*]]: index, %{{.*}}: index, %{{.*}}: index
// GRAD:           tensor.extract %[[OFFSETS]][%[[B]]]
// GRAD:           tensor.extract %[[OFFSETS]][%[[B]]]
// GRAD:           flash.visit
// GRAD-NOT:         tensor.extract %
// GRAD:             flash.contribute
func.func @steps(%m: !m, %offsets: tensor<4xi32>, %l: tensor<3x4x?xf32>) -> (!t, !t, !t) {
  %q, %n = flash.unpack %m by %offsets : !m, tensor<4xi32> -> !t, !n
  %0:3 = flash.attention_grad %q, %q, %q, %q, %l, %q query_lengths(%n : !n) key_lengths(%n : !n)
      schedule(<query_tile = 128, key_tile = 128, stages = 2, products = 5, features = specialize_warps|bulk_store>)
      : (!t, !t, !t, !t, tensor<3x4x?xf32>, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}

// -----

// A tile of one query of each head may start behind the last one, as others may.
// SPLIT-LABEL: func @one_query(
// SPLIT:         %[[LEFT:.*]] = affine.min
// SPLIT:         %[[ROWS:.*]] = affine.max {{.*}}(%[[LEFT]])
// SPLIT:         flash.load_rows %{{.*}} rows(%[[ROWS]]) packed(16)
func.func @one_query(%q: tensor<3x16x7x64xf16>, %k: tensor<3x1x40x64xf16>, %n: tensor<3xi32>) -> tensor<3x16x7x64xf16> {
  %o = flash.attention %q, %k, %k query_lengths(%n : tensor<3xi32>) schedule(<query_tile = 16, key_tile = 32, packed_heads = 16>)
      : (tensor<3x16x7x64xf16>, tensor<3x1x40x64xf16>, tensor<3x1x40x64xf16>) -> tensor<3x16x7x64xf16>
  return %o : tensor<3x16x7x64xf16>
}
