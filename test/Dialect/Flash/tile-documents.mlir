// Two kernels find where documents begin.
// RUN: flash-opt %s --flash-tile-documents | FileCheck %s

// CHECK-LABEL: func @offsets(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?x?xi64>
// Where documents begin, and where ids are less than before.
// CHECK:         %[[C:.*]]:2 = flash.kernel over({{.*}}) by [1, 8]
// CHECK:           arith.cmpi ne, %{{.*}}, %{{.*}} : i64
// CHECK:           arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK:         %[[R:.*]]:2 = flash.kernel over({{.*}}) by [8]
// Groups of 128 counts, then a count, then an element.
// CHECK:           scf.for {{.*}} step %c128
// CHECK:             tensor.extract %[[C]]#0
// CHECK:             tensor.extract %[[C]]#1
// CHECK:           scf.for
// CHECK:             tensor.extract %[[C]]#0
// CHECK:           scf.for
// CHECK:             tensor.extract %[[IDS]]
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @offsets(%ids: tensor<?x?xi64>, %b: index, %n: index, %most: index) -> (tensor<?xi32>, tensor<1xi32>) {
  %offsets, %count = flash.document_offsets %ids of[%b, %n] most(%most) : tensor<?x?xi64> -> tensor<?xi32>, tensor<1xi32>
  return %offsets, %count : tensor<?xi32>, tensor<1xi32>
}
