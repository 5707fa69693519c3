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
