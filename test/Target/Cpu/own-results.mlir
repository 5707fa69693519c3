// RUN: flash-opt %s --flash-cpu-own-results | FileCheck %s

// CHECK-LABEL: func @shared(
// CHECK-SAME:    %[[ARG:[^:]*]]: tensor<4x?xf32> {bufferization.writable = false}, %[[X:[^:]*]]: f32
// CHECK:         %[[NEW:.*]] = tensor.splat %[[X]]
// CHECK:         %[[VIEW:.*]] = tensor.collapse_shape %[[NEW]]
// CHECK-DAG:     %[[COPY0:.*]] = bufferization.alloc_tensor() copy(%[[ARG]]) : tensor<4x?xf32>
// CHECK-DAG:     %[[COPY1:.*]] = bufferization.alloc_tensor() copy(%[[VIEW]]) : tensor<32xf32>
// CHECK:         return %[[COPY0]], %[[NEW]], %[[COPY1]]
func.func @shared(%arg: tensor<4x?xf32>, %x: f32) -> (tensor<4x?xf32>, tensor<4x8xf32>, tensor<32xf32>) {
  %new = tensor.splat %x : tensor<4x8xf32>
  %view = tensor.collapse_shape %new [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  return %arg, %new, %view : tensor<4x?xf32>, tensor<4x8xf32>, tensor<32xf32>
}

// The sum is stored as it was before it was added to, and after.
// CHECK-LABEL: func @older_tile(
// CHECK:         %[[OLD:.*]] = linalg.fill
// CHECK:         %[[NEW:.*]] = linalg.add {{.*}} outs(%[[OLD]] :
// CHECK:         %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[OLD]]) : tensor<16xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         tensor.parallel_insert_slice %[[NEW]] into
// CHECK:         tensor.parallel_insert_slice %[[COPY]] into
func.func @older_tile(%a: tensor<16xf32>, %b: tensor<16xf32>, %x: f32) -> (tensor<64xf32>, tensor<64xf32>) {
  %o0 = tensor.empty() : tensor<64xf32>
  %o1 = tensor.empty() : tensor<64xf32>
  %r:2 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%p0 = %o0, %p1 = %o1) -> (tensor<64xf32>, tensor<64xf32>) {
    %e = tensor.empty() : tensor<16xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.add ins(%a, %b : tensor<16xf32>, tensor<16xf32>) outs(%f : tensor<16xf32>) -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %p0[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
      tensor.parallel_insert_slice %f into %p1[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
    }
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// Two tiles that start from the same values, one of them by way of a loop.
// CHECK-LABEL: func @same_start(
// CHECK:         %[[START:.*]] = linalg.fill
// CHECK:         %[[SUM:.*]] = linalg.add {{.*}} outs(%[[START]] :
// CHECK:         %[[LOOP:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK-DAG:     %[[COPY0:.*]] = bufferization.alloc_tensor() copy(%[[SUM]]) : tensor<16xf32>
// CHECK-DAG:     %[[COPY1:.*]] = bufferization.alloc_tensor() copy(%[[LOOP]]) : tensor<16xf32>
// CHECK:         tensor.parallel_insert_slice %[[COPY0]] into
// CHECK:         tensor.parallel_insert_slice %[[COPY1]] into
func.func @same_start(%a: tensor<16xf32>, %b: tensor<16xf32>, %x: f32, %n: index) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o0 = tensor.empty() : tensor<64xf32>
  %o1 = tensor.empty() : tensor<64xf32>
  %r:2 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%p0 = %o0, %p1 = %o1) -> (tensor<64xf32>, tensor<64xf32>) {
    %e = tensor.empty() : tensor<16xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %s = linalg.add ins(%a, %b : tensor<16xf32>, tensor<16xf32>) outs(%f : tensor<16xf32>) -> tensor<16xf32>
    %l = scf.for %j = %c0 to %n step %c1 iter_args(%sum = %f) -> tensor<16xf32> {
      %0 = linalg.add ins(%sum, %b : tensor<16xf32>, tensor<16xf32>) outs(%sum : tensor<16xf32>) -> tensor<16xf32>
      scf.yield %0 : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %p0[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
      tensor.parallel_insert_slice %l into %p1[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
    }
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// Of tiles that start from the same empty tensor none has the values of another.
// CHECK-LABEL: func @same_empty(
// CHECK-NOT:     alloc_tensor
// CHECK:         return
func.func @same_empty(%x: f32, %y: f32) -> (tensor<64xf32>, tensor<64xf32>) {
  %o = tensor.empty() : tensor<64xf32>
  %r:2 = scf.forall (%i) = (0) to (64) step (16) shared_outs(%p0 = %o, %p1 = %o) -> (tensor<64xf32>, tensor<64xf32>) {
    %e = tensor.empty() : tensor<16xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %g = linalg.fill ins(%y : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %p0[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
      tensor.parallel_insert_slice %g into %p1[%i] [16] [1] : tensor<16xf32> into tensor<64xf32>
    }
  }
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}
