// RUN: flash-opt %s --flash-assert-reads --split-input-file | FileCheck %s

// CHECK-LABEL: func @extract(
// CHECK-SAME:    %[[T:.*]]: tensor<4x?xf32>, %[[I:.*]]: index
// CHECK:         %[[SOME:.*]] = arith.cmpi sge, %[[I]], %{{.*}} : index
// CHECK-NEXT:    cf.assert %[[SOME]], "tensor.extract at {{.*}}assert-reads.mlir:[[# @LINE + 8]]:8: the index of dimension 0 is negative"
// CHECK-NEXT:    %[[BELOW:.*]] = arith.cmpi slt, %[[I]], %c4{{.*}} : index
// CHECK-NEXT:    cf.assert %[[BELOW]], "tensor.extract at {{.*}}: the index of dimension 0 is not below the size of the dimension, 4"
// CHECK:         %[[END:.*]] = tensor.dim %[[T]], %c1
// CHECK:         cf.assert {{.*}} the index of dimension 1 is negative"
// CHECK-NEXT:    arith.cmpi slt, %[[I]], %[[END]]
// CHECK-NEXT:    cf.assert {{.*}} the index of dimension 1 is not below the size of the dimension"
func.func @extract(%t: tensor<4x?xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i, %i] : tensor<4x?xf32>
  return %x : f32
}

// -----

// CHECK-LABEL: func @load(
// CHECK:         memref.dim
// CHECK:         cf.assert {{.*}}"memref.load at
// CHECK:         memref.load
func.func @load(%m: memref<?xf32>, %i: index) -> f32 {
  %x = memref.load %m[%i] : memref<?xf32>
  return %x : f32
}

// -----

// CHECK-LABEL: func @known(
// CHECK-NOT:     cf.assert
func.func @known(%t: tensor<4xf32>) -> f32 {
  %c3 = arith.constant 3 : index
  %x = tensor.extract %t[%c3] : tensor<4xf32>
  return %x : f32
}

// -----

// CHECK-LABEL: func @store(
// CHECK:         cf.assert {{.*}}"memref.store at {{.*}}: the index of dimension 0 is negative"
// CHECK:         cf.assert {{.*}}"memref.store at
// CHECK:         memref.store
func.func @store(%m: memref<?xi32>, %i: index, %x: i32) {
  memref.store %x, %m[%i] : memref<?xi32>
  return
}
