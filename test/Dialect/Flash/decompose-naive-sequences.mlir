// Of batches that are sequences of their own only the rows that exist are gone over.
// RUN: flash-opt %s --flash-decompose-naive=row-block=64 --flash-decompose-naive-grad=row-block=64 | FileCheck %s

!t = tensor<3x2x500x8xf32>
!l = tensor<3x2x500xf32>
!n = tensor<3xi32>

// CHECK-LABEL: func @forward(
// CHECK:         scf.forall (%[[B:.*]], %{{.*}}, %[[ROW:.*]]) = (0, 0, 0) to (3, 2, 500) step (1, 1, 64)
// CHECK:           tensor.extract %arg2[%[[B]]]
// CHECK:           %[[KEYS:.*]] = arith.minsi %{{.*}}, %c500
// CHECK:           tensor.extract %arg1[%[[B]]]
// CHECK:           %[[QUERIES:.*]] = arith.minsi
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %[[QUERIES]]
// CHECK:           %[[COUNT:.*]] = arith.select %[[EXISTS]], %[[KEYS]], %c0
// CHECK:           tensor.extract_slice %arg0[%[[B]], %{{.*}}, 0, 0] [1, 1, %[[COUNT]], 8]
func.func @forward(%x: !t, %nq: !n, %nk: !n) -> !t {
  %o = flash.attention %x, %x, %x query_lengths(%nq : !n) key_lengths(%nk : !n) : (!t, !t, !t) -> !t
  return %o : !t
}

// CHECK-LABEL: func @backward(
// CHECK:         scf.forall (%[[B:.*]], %{{.*}}) in (3, 2)
// CHECK:           tensor.extract %arg2[%[[B]]]
// CHECK:           %[[QUERIES:.*]] = arith.minsi
// CHECK:           tensor.extract %arg3[%[[B]]]
// CHECK:           %[[KEYS:.*]] = arith.minsi
// CHECK:           tensor.extract_slice %arg0[%[[B]], %{{.*}}, 0, 0] [1, 1, %[[KEYS]], 8]
// CHECK:           linalg.fill {{.*}} -> tensor<1x500x8xf32>
// CHECK:           scf.for %{{.*}} = %{{.*}} to %[[QUERIES]] step %c64
// CHECK:           %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<500x8xf32>
// CHECK:           tensor.insert_slice %{{.*}} into %[[ZEROS]][0, 0] [%[[KEYS]], 8]
func.func @backward(%x: !t, %l: !l, %nq: !n, %nk: !n) -> (!t, !t, !t) {
  %0:3 = flash.attention_grad %x, %x, %x, %x, %l, %x query_lengths(%nq : !n) key_lengths(%nk : !n)
      : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %0#0, %0#1, %0#2 : !t, !t, !t
}
