// Lists of blocks that a caller gives: an entry is several tiles.
// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!list = tensor<1x?x4x8xi32>
!n = tensor<1x?x4x2xi32>

// Two tiles of each block, in one loop for what is partial and one for what is full, which computes no mask but counts rows.
// What the caller gives is clamped: the batch, which has one list, the head, the counts, the number of a block, and the
// start of a tile behind the end, which has no rows.

// CHECK-LABEL: func @blocks(
// CHECK-SAME:    %[[H:[a-z0-9]+]]: index, %[[LIST:[a-z0-9]+]]: tensor<1x?x4x8xi32>, %[[N:[a-z0-9]+]]: tensor<1x?x4x2xi32>
// CHECK:         %[[HEADS:.*]] = tensor.dim %[[LIST]], %c1
// CHECK:         %[[LAST:.*]] = arith.subi %[[HEADS]], %c1
// CHECK:         %[[HEAD:.*]] = arith.minsi %[[H]], %[[LAST]]
// CHECK:         tensor.extract %[[N]][%c0, %[[HEAD]], %c3, %c0]
// CHECK:         tensor.extract %[[N]][%c0, %[[HEAD]], %c3, %c1]
// CHECK:         %[[NOT_NEGATIVE:.*]] = arith.maxsi %{{.*}}, %c0
// CHECK:         %[[END:.*]] = arith.minsi %[[NOT_NEGATIVE]], %c8
// CHECK:         %[[PARTS:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK:         %[[END_TILE:.*]] = affine.apply #{{.*}}()[%[[END]]]
// CHECK:         %[[PARTS_TILE:.*]] = affine.apply #{{.*}}()[%[[PARTS]]]
// CHECK:         scf.for %[[T:.*]] = %c0 to %[[PARTS_TILE]] step %c1
// CHECK:           %[[ENTRY:.*]] = affine.apply #{{.*}}(%[[T]])
// CHECK:           tensor.extract %[[LIST]][%c0, %[[HEAD]], %c3, %[[ENTRY]]]
// CHECK:           affine.max
// CHECK:           affine.min
// CHECK:           %[[START:.*]] = affine.min #{{.*}}(%{{.*}}, %[[T]])
// CHECK:           %[[ROWS:.*]] = affine.min #{{.*}}(%[[START]])
// CHECK:           tensor.extract_slice %{{.*}}[0, 0, %[[START]], 0] [1, 1, %[[ROWS]], 8]
// CHECK:           flash.online_attention {{.*}} at[0, 0, 0, %[[START]]] of[16, 50] keys(%[[ROWS]]) {{.*}} mask(#flash.causal)
// CHECK:         scf.for %{{.*}} = %[[PARTS_TILE]] to %[[END_TILE]] step %c1
// CHECK:           flash.online_attention {{.*}} keys(%{{.*}})
// CHECK-NOT:       mask
func.func @blocks(%h: index, %list: !list, %n: !n, %q: !q, %k: tensor<1x1x50x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c50 = arith.constant 50 : index
  %r:3 = flash.visit keys tile(16) exist(%c50) list(%list, %n : !list, !n)[%c0, %h, %c3] cut(32) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] rows(%rows) : tensor<1x1x50x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[16, 50] keys(%rows) scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>

// Where blocks have all their keys no step counts them, and without a mask there is one loop. Splits take every other tile.

// CHECK-LABEL: func @whole(
// CHECK-SAME:    %[[SPLIT:[a-z0-9]+]]: index
// CHECK:         scf.for %{{.*}} = %[[SPLIT]] to %{{.*}} step %c2
// CHECK-NOT:       tensor.pad
// CHECK-NOT:       keys(
// CHECK:           flash.online_attention
// CHECK-NOT:     flash.online_attention
func.func @whole(%split: index, %list: !list, %n: !n, %q: !q, %k: tensor<1x1x64x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %split by %c2 exist(%c64) list(%list, %n : !list, !n)[%c0, %c0, %c0] cut(32) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x64x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[16, 64] scale(1.0)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
