// Rows that are read once. What a kernel is made of: one read of a block of rows,
// two reductions along them, elementwise arithmetic, one write.
// RUN: flash-opt %s --flash-tile-softmax="row-tile=8 reduction-bytes=64 whole-rows=4096" --split-input-file | FileCheck %s

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @last(
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x37x500xf16>
// CHECK:         scf.forall (%[[B:.*]], %[[I:.*]]) = (0, 0) to (4, 37) step (1, 8) shared_outs(%[[OUT:.*]] = %[[E]])
// CHECK-NOT:       scf.for
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%[[B]], %[[I]], 0] [1, %[[N:.*]], 500]
// CHECK:           %[[P:.*]] = tensor.pad %[[X]]
// CHECK:           } : tensor<?x500xf16> to tensor<8x500xf16>
// CHECK:           %[[W:.*]] = arith.extf %[[P]]
// CHECK:           %[[M:.*]] = linalg.generic {indexing_maps = [#[[TILE]], #[[ROWS]]], iterator_types = ["parallel", "reduction"]} ins(%[[W]]
// CHECK:             arith.maxnumf
// CHECK:           %[[Z:.*]] = linalg.generic {{.*}} ins(%[[M]]
// CHECK:           %[[EXP:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[Z]] :
// CHECK:             math.exp2
// CHECK:           %[[L:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[EXP]]
// CHECK:           %[[R:.*]] = linalg.generic {{.*}} ins(%[[L]]
// CHECK:             arith.divf
// CHECK:           %[[Y:.*]] = linalg.generic {{.*}} ins(%[[EXP]], %[[R]] :
// CHECK:             arith.truncf
// CHECK:           %[[PART:.*]] = tensor.extract_slice %[[Y]][0, 0] [%[[N]], 500]
// CHECK:           tensor.parallel_insert_slice %[[PART]] into %[[OUT]][%[[B]], %[[I]], 0] [1, %[[N]], 500]
func.func @last(%x: tensor<4x37x500xf16>, %e: tensor<4x37x500xf16>) -> tensor<4x37x500xf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<4x37x500xf16>) outs(%e : tensor<4x37x500xf16>) -> tensor<4x37x500xf16>
  return %p : tensor<4x37x500xf16>
}

// -----

// Of longer rows a block has fewer. One that no block may hold is a block by
// itself, in two steps of about its half.

// CHECK-LABEL: func @fewer(
// CHECK:         scf.forall {{.*}} step (2)
// CHECK-NOT:       scf.for
// CHECK:           tensor.extract_slice {{.*}} to tensor<2x1500xf32>
func.func @fewer(%x: tensor<64x1500xf32>, %e: tensor<64x1500xf32>) -> tensor<64x1500xf32> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x1500xf32>) outs(%e : tensor<64x1500xf32>) -> tensor<64x1500xf32>
  return %p : tensor<64x1500xf32>
}

// -----

// CHECK-LABEL: func @long(
// CHECK:         scf.forall ({{.*}}) in (64)
// CHECK-COUNT-2:   scf.for {{.*}} step %c2112
func.func @long(%x: tensor<64x4097xf32>, %e: tensor<64x4097xf32>) -> tensor<64x4097xf32> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x4097xf32>) outs(%e : tensor<64x4097xf32>) -> tensor<64x4097xf32>
  return %p : tensor<64x4097xf32>
}

// -----

// The bytes of a step are neighbours along the last dimension alone.

// CHECK-LABEL: func @first(
// CHECK-NOT:     scf.forall
// CHECK:         linalg.softmax dimension(0)
func.func @first(%x: tensor<37x517xf16>, %e: tensor<37x517xf16>) -> tensor<37x517xf16> {
  %p = linalg.softmax dimension(0) ins(%x : tensor<37x517xf16>) outs(%e : tensor<37x517xf16>) -> tensor<37x517xf16>
  return %p : tensor<37x517xf16>
}

// -----

// A flash.softmax has a sink, which is one more score of each row, and gives the
// logarithm of the sum; its block of rows is given.

// CHECK-LABEL: func @block(
// CHECK:         %[[SINK:.*]] = tensor.extract
// CHECK-NOT:     scf.for
// CHECK:         %[[M:.*]] = linalg.generic
// CHECK:           arith.maxnumf
// CHECK:         %[[MS:.*]] = linalg.generic {{.*}} ins(%[[M]]
// CHECK:           arith.maxnumf %{{.*}}, %[[SINK]]
// CHECK:         %[[L:.*]] = linalg.generic {{.*}}"reduction"]
// CHECK:         %[[LS:.*]] = linalg.generic {{.*}} ins(%[[L]],
// CHECK:           arith.subf %[[SINK]]
// CHECK:         linalg.generic {{.*}} ins(%[[LS]]
// CHECK:           arith.select
// CHECK:           arith.divf
// CHECK:         linalg.generic {{.*}} ins(%[[MS]], %[[LS]]
// CHECK:           math.log
func.func @block(%x: tensor<8x512xf16>, %s: tensor<2xf32>, %b: index) -> (tensor<8x512xf16>, tensor<8xf32>) {
  %sink = tensor.extract %s[%b] : tensor<2xf32>
  %p, %lse = flash.softmax %x sink(%sink) : tensor<8x512xf16> -> (tensor<8x512xf16>, tensor<8xf32>)
  return %p, %lse : tensor<8x512xf16>, tensor<8xf32>
}
