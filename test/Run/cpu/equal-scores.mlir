// RUN: flash-run %s --target=cpu --check | FileCheck %s
// CHECK: check: ok

// Of 128 keys the first has the score 0, all others the same one. Their probabilities, added up one after the other in
// f32, are each rounded down: the sum would be off by 3.7e-6 of it, and may be by 1e-6.
func.func @equal_scores(%q: tensor<1x1x16x16xf32>, %k: tensor<1x1x128x16xf32>, %v: tensor<1x1x128x16xf32>) -> tensor<1x1x16x16xf32> {
  %o = flash.attention %q, %k, %v
      score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %first = arith.cmpi eq, %j, %c0 : index
    %zero = arith.constant 0.0 : f32
    %other = arith.constant -4.9493 : f32
    %score = arith.select %first, %zero, %other : f32
    flash.yield %score : f32
  } : (tensor<1x1x16x16xf32>, tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>) -> tensor<1x1x16x16xf32>
  return %o : tensor<1x1x16x16xf32>
}
