// RUN: flash-opt %s --flash-decompose-naive-grad --split-input-file --verify-diagnostics
// RUN: not flash-opt %s --flash-decompose-naive-grad=row-block=-1 --split-input-file 2>&1 | FileCheck %s

// CHECK: row-block must be 0 or positive, got -1
func.func @rank3(%q: tensor<4x16x16xf32>, %lse: tensor<4x16xf32>) -> tensor<4x16x16xf32> {
  // expected-error @below {{needs rank 4 here; run flash-expand-rank first}}
  %0:3 = flash.attention_grad %q, %q, %q, %q, %lse, %q
      : (tensor<4x16x16xf32>, tensor<4x16x16xf32>, tensor<4x16x16xf32>, tensor<4x16x16xf32>, tensor<4x16xf32>, tensor<4x16x16xf32>)
      -> (tensor<4x16x16xf32>, tensor<4x16x16xf32>, tensor<4x16x16xf32>)
  return %0#0 : tensor<4x16x16xf32>
}

// -----

// What has no derivative is refused once, also where it is needed twice.
func.func @underivable(%q: tensor<1x4x16x16xf32>, %lse: tensor<1x4x16xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q wrt(%t : tensor<4xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : tensor<4xf32>
    %x = arith.addf %s, %e : f32
    // expected-error @below {{has no derivative}}
    %y = arith.bitcast %x : f32 to i32
    %r = arith.bitcast %y : i32 to f32
    flash.yield %r : f32
  } : (tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16xf32>, tensor<1x4x16x16xf32>)
      -> (tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}
