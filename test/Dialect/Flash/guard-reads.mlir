// RUN: flash-opt %s --flash-guard-reads | FileCheck %s
// Twice is once.
// RUN: flash-opt %s --flash-guard-reads --flash-guard-reads | FileCheck %s

!t = tensor<2x4x?x16xf32>

// What is computed from the query, the key or the score, but not positions, and
// not what depends on batch and head alone.
// CHECK-LABEL: func @computed(
// CHECK:       ^bb0(%[[S:.*]]: f32, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
// CHECK:         %[[D:.*]] = arith.subi %[[I]], %[[J]] : index
// CHECK-NEXT:    %[[N:.*]] = flash.guard %[[D]] else 0 : index
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[H]], %[[N]]]
// CHECK:         %[[ID:.*]] = tensor.extract %{{.*}}[%[[J]]]
// CHECK-NEXT:    %[[AT:.*]] = arith.index_cast %[[ID]]
// CHECK:         %[[M:.*]] = flash.guard %[[AT]] else 0 : index
// CHECK-NEXT:    tensor.extract %{{.*}}[%{{.*}}, %[[M]]]
// CHECK:         %[[HALF:.*]] = arith.divui %[[H]]
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[HALF]], %[[I]]]
func.func @computed(%q: !t, %table: tensor<?x?xf32>, %ids: tensor<?xi32>) -> !t {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = tensor.extract %table[%h, %d] : tensor<?x?xf32>
    %id = tensor.extract %ids[%j] : tensor<?xi32>
    %at = arith.index_cast %id : i32 to index
    %c0 = arith.constant 0 : index
    %y = tensor.extract %table[%c0, %at] : tensor<?x?xf32>
    %c2 = arith.constant 2 : index
    %half = arith.divui %h, %c2 : index
    %z = tensor.extract %table[%half, %i] : tensor<?x?xf32>
    %r = arith.addf %x, %y : f32
    %t = arith.addf %r, %z : f32
    flash.yield %t : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// What is in range whatever the position is: by a remainder, a clamp, a product of
// sizes that are known. One more is not.
// CHECK-LABEL: func @in_range(
// CHECK-COUNT-3: tensor.extract
// CHECK:         %[[N:.*]] = flash.guard
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[N]]]
// CHECK:         return
func.func @in_range(%q: tensor<2x4x8x16xf32>, %table: tensor<32xf32>) -> tensor<2x4x8x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c31 = arith.constant 31 : index
    %c32 = arith.constant 32 : index
    %rest = arith.remui %j, %c32 : index
    %x = tensor.extract %table[%rest] : tensor<32xf32>
    %d = arith.subi %i, %j : index
    %low = arith.maxsi %d, %c0 : index
    %clamped = arith.minsi %low, %c31 : index
    %y = tensor.extract %table[%clamped] : tensor<32xf32>
    %row = arith.muli %i, %c4 : index
    %place = arith.addi %row, %h : index
    %z = tensor.extract %table[%place] : tensor<32xf32>
    %next = arith.addi %place, %c1 : index
    %u = tensor.extract %table[%next] : tensor<32xf32>
    %a = arith.addf %x, %y : f32
    %e = arith.addf %z, %u : f32
    %r = arith.addf %a, %e : f32
    flash.yield %r : f32
  } : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// CHECK-LABEL: func @divisor(
// CHECK:         %[[D:.*]] = arith.subi
// CHECK-NEXT:    %[[N:.*]] = flash.guard %[[D]] else 1 : index
// CHECK-NEXT:    arith.divsi %{{.*}}, %[[N]]
// CHECK-NOT:     flash.guard
func.func @divisor(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = arith.divsi %i, %d : index
    %c2 = arith.constant 2 : index
    %y = arith.divsi %x, %c2 : index
    %n = arith.index_cast %y : index to i32
    %r = arith.sitofp %n : i32 to f32
    flash.yield %r : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// The gradients read at the same elements.
// CHECK-LABEL: func @gradients(
// CHECK:         %[[D:.*]] = arith.subi
// CHECK-NEXT:    %[[N:.*]] = flash.guard %[[D]] else 0 : index
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[N]]]
func.func @gradients(%q: !t, %lse: tensor<2x4x?xf32>, %table: tensor<?xf32>) -> tensor<?xf32> {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q wrt(%table : tensor<?xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = tensor.extract %table[%d] : tensor<?xf32>
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!t, !t, !t, !t, tensor<2x4x?xf32>, !t) -> (!t, !t, !t, tensor<?xf32>)
  return %0#3 : tensor<?xf32>
}

// In a block map the last two positions vary, too.
// CHECK-LABEL: func @block_map(
// CHECK:         %[[D:.*]] = arith.subi
// CHECK-NEXT:    %[[N:.*]] = flash.guard %[[D]] else 0 : index
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[N]]]
// CHECK-NOT:     flash.guard
func.func @block_map(%t: tensor<32xi32>, %n: index) -> tensor<1x4x5x2xi32> {
  %tiles, %counts = flash.block_map of[1, 4, 300, %n] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = tensor.extract %t[%d] : tensor<32xi32>
    %h2 = arith.addi %h, %h : index
    %y = tensor.extract %t[%h2] : tensor<32xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<1x4x5x?xi32>, tensor<1x4x5x2xi32>
  return %counts : tensor<1x4x5x2xi32>
}
