// Masks that a score region writes as -inf become what the element's part is.
// RUN: flash-opt %s --flash-separate-masks | FileCheck %s

!t = tensor<1x1x64x16xf32>

// CHECK-LABEL: func @documents(
// CHECK:       ^bb0(%[[S:.*]]: f32,
// CHECK:         %[[SAME:.*]] = arith.cmpi eq
// CHECK-NEXT:    flash.yield %[[S]] keep %[[SAME]] : f32
func.func @documents(%q: !t, %ids: tensor<64xi32>) -> !t {
  %inf = arith.constant 0xFF800000 : f32
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<64xi32>
    %y = tensor.extract %ids[%j] : tensor<64xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %r = arith.select %same, %s, %inf : f32
    flash.yield %r : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// Two, of which one says what is left out, and what the region has kept before.
// CHECK-LABEL: func @several(
// CHECK:         %[[R:.*]] = math.tanh
// CHECK:         %[[NOT:.*]] = arith.xori %[[A:.*]], %true
// CHECK-NEXT:    %[[FIRST:.*]] = arith.andi %[[NOT]], %[[C:.*]] : i1
// CHECK-NEXT:    %[[ALL:.*]] = arith.andi %[[B:.*]], %[[FIRST]] : i1
// CHECK-NEXT:    flash.yield %[[R]] keep %[[ALL]] : f32
func.func @several(%q: !t, %n: index) -> !t {
  %inf = arith.constant 0xFF800000 : f32
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi slt, %i, %n : index
    %c = arith.cmpi slt, %j, %n : index
    %d = arith.cmpi ne, %i, %j : index
    %t = math.tanh %s : f32
    %x = arith.select %c, %t, %inf : f32
    %y = arith.select %a, %inf, %x : f32
    flash.yield %y keep %d : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// A choice by the score is none by the position, and a large number no mask.
// CHECK-LABEL: func @others(
// CHECK:         flash.yield %{{.*}} : f32
// CHECK:         flash.yield %{{.*}} : f32
func.func @others(%q: !t, %n: index) -> (!t, !t) {
  %inf = arith.constant 0xFF800000 : f32
  %large = arith.constant -1.0e30 : f32
  %zero = arith.constant 0.0 : f32
  %0 = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpf olt, %s, %zero : f32
    %x = arith.select %a, %s, %inf : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  %1 = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi slt, %i, %n : index
    %x = arith.select %a, %s, %large : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  return %0, %1 : !t, !t
}
