// T5's buckets of distances: at 16, 32 and 64 the quotient of logarithms is a whole
// number in f32 and just below it in f64. The check fails, as it must, and says why.
// RUN: not flash-run %s --function=buckets --target=cpu --check --json=%t.json | FileCheck %s
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: not flash-run %s --function=buckets --target=emulate --check | FileCheck %s
// CHECK:      check: FAILED
// CHECK-NEXT: hint: arith.fptosi at {{.*}}truncation.mlir:[[# @LINE + 25]]:10 in a score region jumps at whole numbers: where its operand is near one, f32 and the fp64 reference may get different results, and both be right; compute it from integers or read it from a tensor, or add a small constant to the operand, such as 1e-3, so that no element is near a whole number
// JSON: "hint": "arith.fptosi at

// RUN: flash-run %s --function=away_from_whole_numbers --target=cpu --check | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --function=away_from_whole_numbers --target=emulate --check | FileCheck %s --check-prefix=OK
// OK:     check: ok
// OK-NOT: hint
!t = tensor<1x2x100x32xf32>

func.func @buckets(%q: !t, %k: !t, %table: tensor<2x16xf32>) -> !t {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c8 = arith.constant 8 : i32
    %c15 = arith.constant 15 : i32
    %f8 = arith.constant 8.0 : f32
    %log16 = arith.constant 2.7725887 : f32
    %d = arith.subi %i, %j : index
    %di = arith.index_cast %d : index to i32
    %n = math.absi %di : i32
    %m = arith.maxsi %n, %c8 : i32
    %f = arith.sitofp %m : i32 to f32
    %x = arith.divf %f, %f8 : f32
    %l = math.log %x : f32
    %y = arith.divf %l, %log16 : f32
    %z = arith.mulf %y, %f8 : f32
    %u = arith.fptosi %z : f32 to i32
    %far = arith.addi %u, %c8 : i32
    %capped = arith.minsi %far, %c15 : i32
    %isNear = arith.cmpi slt, %n, %c8 : i32
    %bucket = arith.select %isNear, %n, %capped : i32
    %at = arith.index_cast %bucket : i32 to index
    %bias = tensor.extract %table[%h, %at] : tensor<2x16xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

func.func @away_from_whole_numbers(%q: !t, %k: !t, %table: tensor<2x16xf32>) -> !t {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c8 = arith.constant 8 : i32
    %c15 = arith.constant 15 : i32
    %f8 = arith.constant 8.0 : f32
    %log16 = arith.constant 2.7725887 : f32
    %d = arith.subi %i, %j : index
    %di = arith.index_cast %d : index to i32
    %n = math.absi %di : i32
    %m = arith.maxsi %n, %c8 : i32
    %f = arith.sitofp %m : i32 to f32
    %x = arith.divf %f, %f8 : f32
    %l = math.log %x : f32
    %y = arith.divf %l, %log16 : f32
    %z = arith.mulf %y, %f8 : f32
    %small = arith.constant 1.0e-3 : f32
    %away = arith.addf %z, %small : f32
    %u = arith.fptosi %away : f32 to i32
    %far = arith.addi %u, %c8 : i32
    %capped = arith.minsi %far, %c15 : i32
    %isNear = arith.cmpi slt, %n, %c8 : i32
    %bucket = arith.select %isNear, %n, %capped : i32
    %at = arith.index_cast %bucket : i32 to index
    %bias = tensor.extract %table[%h, %at] : tensor<2x16xf32>
    %r = arith.addf %s, %bias : f32
    flash.yield %r : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
