// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

!q = tensor<16x8xf32>
!v = tensor<16xf32>

// Without tiles there is one loop, whose steps have the mask and count rows.

// CHECK-LABEL: func @all(
// CHECK:         scf.for %[[J:.*]] = %c0 to %c64 step %c16
// CHECK:           %[[ROWS:.*]] = affine.min #{{.*}}(%[[J]])
// CHECK:           tensor.extract_slice %{{.*}}[0, 0, %[[J]], 0] [1, 1, %[[ROWS]], 8]
// CHECK:           tensor.pad
// CHECK:           flash.online_attention {{.*}} keys(%[[ROWS]]) {{.*}} mask(#flash.causal)
// CHECK-NOT:     scf.for
func.func @all(%q: !q, %k: tensor<1x1x50x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c50 = arith.constant 50 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c50) init(%acc, %max, %sum : !q, !v, !v) {
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

// Wherever the visit ends, the elements that exist say which tiles are whole: three of four.

// CHECK-LABEL: func @end_behind_keys(
// CHECK:         %[[WHOLE:.*]]:3 = scf.for %{{.*}} = %c0 to %c48 step %c16
// CHECK-NOT:       tensor.pad
// CHECK-NOT:       keys(
// CHECK:           scf.yield
// CHECK:         tensor.pad
// CHECK:         flash.online_attention
// CHECK-SAME:      keys(%c2)
// CHECK-NOT:     flash.online_attention
func.func @end_behind_keys(%q: !q, %k: tensor<1x1x50x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c50 = arith.constant 50 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c50)
      tiles(<hi = [#flash.bound<affine_map<(b, h, i)[nq, nk] -> (4)>>]>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] rows(%rows) : tensor<1x1x50x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[16, 50] keys(%rows) scale(1.0)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>

// A count of rows that is not the visit's says nothing about whole tiles: all have it.

// CHECK-LABEL: func @other_count(
// CHECK-COUNT-1: keys(%c5)
// CHECK-NOT:     flash.online_attention
func.func @other_count(%q: !q, %k: tensor<1x1x64x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64)
      tiles(<hi = [#flash.bound<affine_map<(b, h, i)[nq, nk] -> (4)>>]>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x64x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[16, 64] keys(%c5) scale(1.0)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!list = tensor<1x2x4x8xi32>
!n = tensor<1x2x4x2xi32>

// A list has two loops, of which the second computes full tiles. A list of one batch is for all.

// CHECK-LABEL: func @list(
// CHECK-SAME:    %[[B:[^:]*]]: index, %[[H:[^:]*]]: index
// CHECK:         %[[PARTS:[^ ]*]] = tensor.extract %{{.*}}[%c0, %[[H]], %c3, %c0]
// CHECK:         %[[END_PARTS:[^ ]*]] = arith.index_cast %[[PARTS]]
// CHECK:         %[[ALL:[^ ]*]] = tensor.extract %{{.*}}[%c0, %[[H]], %c3, %c1]
// CHECK:         %[[END:[^ ]*]] = arith.index_cast %[[ALL]]
// CHECK:         scf.for %[[E:.*]] = %c0 to %[[END_PARTS]] step %c1
// CHECK:           tensor.extract %{{.*}}[%c0, %[[H]], %c3, %[[E]]]
// CHECK:           keys(
// CHECK-SAME:      mask(#flash.causal)
// CHECK:         scf.for %{{.*}} = %[[END_PARTS]] to %[[END]] step %c1
// CHECK-NOT:       keys(
// CHECK-NOT:       mask
// CHECK:         return
func.func @list(%b: index, %h: index, %tiles: !list, %counts: !n, %q: !q, %k: tensor<1x2x50x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c3 = arith.constant 3 : index
  %c48 = arith.constant 48 : index
  %c50 = arith.constant 50 : index
  %r:3 = flash.visit keys tile(16) exist(%c50) list(%tiles, %counts : !list, !n)[%b, %h, %c3] init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%b, %h, %j] rows(%rows) : tensor<1x2x50x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[%b, %h, %c48, %j] of[64, 50] keys(%rows) scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

// Rows of several heads are one slice by heads, in the order of queries; the zeros behind them lie behind the tensor's last row.

// CHECK-LABEL: func @loads(
// CHECK:         tensor.extract_slice %{{.*}}[0, %{{.*}}, %{{.*}}, 0] [1, 4, %{{.*}}, 8]
// CHECK:         linalg.transpose
// CHECK:         tensor.pad
// CHECK:         {flash.to_end} : tensor<?x8xf16> to tensor<64x8xf16>
// CHECK:         tensor.extract_slice %{{.*}}[0, %{{.*}}, %{{.*}}] [1, 1, 32] [1, 1, 1] : tensor<1x8x?xf32> to tensor<32xf32>
// CHECK-NOT:     tensor.pad
func.func @loads(%h: index, %i: index, %n: index, %q: tensor<1x8x?x8xf16>, %lse: tensor<1x8x?xf32>) -> (tensor<64x8xf16>, tensor<32xf32>) {
  %c0 = arith.constant 0 : index
  %0 = flash.load_rows %q[%c0, %h, %i] rows(%n) packed(4) to_end : tensor<1x8x?x8xf16> -> tensor<64x8xf16>
  %1 = flash.load_rows %lse[%c0, %h, %i] : tensor<1x8x?xf32> -> tensor<32xf32>
  return %0, %1 : tensor<64x8xf16>, tensor<32xf32>
}
