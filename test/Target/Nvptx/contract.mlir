// A product and the sum that it is part of may be one instruction.
// RUN: flash-opt %s --flash-gpu-contract | FileCheck %s

// CHECK-LABEL: func.func @scores
// CHECK:         %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK-NEXT:    %[[SCORE:.*]] = arith.addf %[[SCALED]], %{{.*}} fastmath<contract> : f32
// CHECK-NEXT:    arith.subf %[[SCORE]], %{{.*}} fastmath<nnan,contract> : f32
func.func @scores(%x: f32, %scale: f32, %bias: f32, %shift: f32) -> f32 {
  %scaled = arith.mulf %x, %scale : f32
  %score = arith.addf %scaled, %bias : f32
  %r = arith.subf %score, %shift fastmath<nnan> : f32
  return %r : f32
}

// What becomes an integer, or is compared, is computed as it is written; what is chosen is not.

// CHECK-LABEL: func.func @buckets
// CHECK:         arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    arith.fptosi
// CHECK:         arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    arith.cmpf
// CHECK:         arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK-NEXT:    arith.select
func.func @buckets(%x: f32, %y: f32, %z: f32) -> (i32, f32) {
  %product = arith.mulf %x, %y : f32
  %sum = arith.addf %product, %z : f32
  %bucket = arith.fptosi %sum : f32 to i32
  %other = arith.mulf %x, %z : f32
  %power = math.exp %other : f32
  %isLess = arith.cmpf olt, %power, %y : f32
  %chosen = arith.mulf %y, %z : f32
  %r = arith.select %isLess, %chosen, %x : f32
  return %bucket, %r : i32, f32
}

// The maximum of a row of scores is compared, and scores are contracted nevertheless.

// CHECK-LABEL: func.func @maximum
// CHECK:         arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
func.func @maximum(%x: f32, %y: f32, %old: f32) -> (f32, i1) {
  %score = arith.mulf %x, %y : f32
  %max = arith.maximumf %score, %old : f32
  %grows = arith.cmpf ogt, %max, %old : f32
  return %max, %grows : f32, i1
}
