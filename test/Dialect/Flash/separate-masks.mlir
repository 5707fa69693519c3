// Masks that a score region writes as -inf become what the element's part is.
// RUN: flash-opt %s --flash-separate-masks | FileCheck %s
// RUN: flash-opt %s --flash-separate-masks=only-unsaid | FileCheck %s --check-prefix=UNSAID

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

// What is written beside a mask that is said stays a score where a plan is made, which is of the mask alone.
// UNSAID-LABEL: func @said(
// UNSAID:         flash.yield %{{.*}} keep %{{.*}} : f32
// UNSAID:         %[[X:.*]] = arith.select
// UNSAID-NEXT:    flash.yield %[[X]] keep %{{.*}} : f32
// UNSAID:         %[[Y:.*]] = arith.select
// UNSAID-NEXT:    flash.yield %[[Y]] : f32
func.func @said(%q: !t, %n: index) -> (!t, !t, !t) {
  %inf = arith.constant 0xFF800000 : f32
  %0 = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi slt, %i, %n : index
    %x = arith.select %a, %s, %inf : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  %1 = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi slt, %i, %n : index
    %c = arith.cmpi ne, %i, %j : index
    %x = arith.select %a, %s, %inf : f32
    flash.yield %x keep %c : f32
  } : (!t, !t, !t) -> !t
  %2 = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi slt, %i, %n : index
    %x = arith.select %a, %s, %inf : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  return %0, %1, %2 : !t, !t, !t
}

// A block map is of the mask that the attention has, and of no more.
// CHECK-LABEL: func @with_map(
// CHECK:         %[[X:.*]] = arith.select
// CHECK-NEXT:    flash.yield %[[X]] : f32
func.func @with_map(%q: !t) -> !t {
  %inf = arith.constant 0xFF800000 : f32
  %tiles, %counts = flash.block_map of[1, 1, 64, 64] tiles([16, 16]) mask(#flash.causal) : tensor<1x1x4x4xi32>, tensor<1x1x4x2xi32>
  %o = flash.attention %q, %q, %q mask(#flash.causal) blocks(%tiles, %counts : tensor<1x1x4x4xi32>, tensor<1x1x4x2xi32>)
      schedule(<query_tile = 16, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %a = arith.cmpi ne, %j, %i : index
    %x = arith.select %a, %s, %inf : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
