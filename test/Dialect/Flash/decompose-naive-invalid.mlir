// RUN: flash-opt %s --flash-decompose-naive --split-input-file --verify-diagnostics
// RUN: not flash-opt %s --flash-decompose-naive=row-block=-1 --split-input-file 2>&1 | FileCheck %s

// CHECK: row-block must be 0 or positive, got -1
func.func @rank3(%q: tensor<4x16x16xf32>) -> tensor<4x16x16xf32> {
  // expected-error @below {{needs rank 4 here; run flash-expand-rank first}}
  %o = flash.attention %q, %q, %q : (tensor<4x16x16xf32>, tensor<4x16x16xf32>, tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  return %o : tensor<4x16x16xf32>
}

// -----

#bad = affine_set<(b, h, i, j)[nq, nk] : (i floordiv -2 == 0)>
func.func @divisor(%q: tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32> {
  // expected-error @below {{divides by a constant that is not positive}}
  %o = flash.attention %q, %q, %q mask(#flash.affine<#bad>) : (tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>, tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32>
  return %o : tensor<1x4x16x16xf32>
}
