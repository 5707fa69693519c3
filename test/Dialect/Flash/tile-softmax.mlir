// RUN: flash-opt %s --flash-tile-softmax=transpose-tiles --split-input-file | FileCheck %s
// RUN: flash-opt %s --flash-tile-softmax="row-tile=7 reduction-tile=16" --split-input-file | FileCheck %s --check-prefix=SMALL

// Sizes that the tiles divide: no padding, no dynamic size.

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @last(
// CHECK:         scf.forall (%[[H:.*]], %[[I:.*]]) = (0, 0) to (4, 64) step (1, 16) shared_outs(%[[OUT:.*]] = %{{.*}})
// CHECK:           %[[LEAST:.*]] = linalg.fill ins(%{{.*}} : f32) outs({{.*}} : tensor<16xf32>)
// CHECK:           %[[STATE:.*]]:2 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[M:.*]] = %[[LEAST]], %[[L:.*]] = %{{.*}}) -> (tensor<16xf32>, tensor<16xf32>)
// CHECK:             %[[X:.*]] = tensor.extract_slice %arg0[%[[H]], %[[I]], %[[J]]] [1, 16, 128] [1, 1, 1] : tensor<4x64x512xf16> to tensor<16x128xf16>
// CHECK-NOT:         tensor.pad
// CHECK:             %[[XT:.*]] = linalg.transpose ins(%[[X]] : tensor<16x128xf16>)
// CHECK:             %[[T:.*]] = arith.extf %[[XT]] : tensor<128x16xf16> to tensor<128x16xf32>
// CHECK:             %[[TM:.*]] = linalg.generic {indexing_maps = [#[[TILE]], #[[ROWS]]], iterator_types = ["reduction", "parallel"]} ins(%[[T]]
// CHECK:               arith.maxnumf
// CHECK:             %[[G:.*]]:2 = linalg.generic {{.*}} ins(%[[TM]] : {{.*}}) outs(%[[M]], %{{.*}} :
// CHECK:               arith.maxnumf
// CHECK:               math.exp2
// CHECK:             %[[Z:.*]] = linalg.generic {{.*}} ins(%[[G]]#0
// CHECK:             %[[P:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[Z]] :
// CHECK:               math.exp2
// CHECK:             %[[RL:.*]] = linalg.generic {{.*}} ins(%[[G]]#1 : {{.*}}) outs(%[[L]]
// CHECK:             %[[NL:.*]] = linalg.generic {{.*}} ["reduction", "parallel"]} ins(%[[P]] : {{.*}}) outs(%[[RL]]
// CHECK:             scf.yield %[[G]]#0, %[[NL]]
// CHECK:           %[[Z:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#0
// CHECK:           %[[R:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#1
// CHECK:             arith.divf
// CHECK:           %[[BLOCK:.*]] = scf.for
// CHECK:             %[[Y:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[Z]], %[[R]]
// CHECK:               arith.extf
// CHECK:               math.exp2
// CHECK:               arith.truncf
// CHECK:             tensor.insert_slice %[[Y]] into %{{.*}}[0, 0, %{{.*}}] [1, 16, 128]
// CHECK:           tensor.parallel_insert_slice %[[BLOCK]] into %[[OUT]][%[[H]], %[[I]], 0] [1, 16, 512]
// CHECK-NOT:     linalg.softmax

// SMALL-LABEL: func @last(
// SMALL:         scf.forall {{.*}} step (1, 7)
// SMALL:           affine.min
// SMALL:           tensor<7x16xf32>
func.func @last(%x: tensor<4x64x512xf16>, %e: tensor<4x64x512xf16>) -> tensor<4x64x512xf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<4x64x512xf16>) outs(%e : tensor<4x64x512xf16>) -> tensor<4x64x512xf16>
  return %p : tensor<4x64x512xf16>
}

// -----

// Unknown sizes: tiles stay static, padded with -inf, and only what exists is
// written.

// CHECK-LABEL: func @ragged(
// CHECK:         scf.for
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %arg0[{{.*}}] [%[[ROWS:.*]], %[[COLUMNS:.*]]] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
// CHECK:           %[[NINF:.*]] = arith.constant 0xFF800000 : f32
// CHECK:           tensor.pad %[[SLICE]] low[0, 0]
// CHECK:             tensor.yield %[[NINF]]
// CHECK:           } : tensor<?x?xf32> to tensor<16x128xf32>
// CHECK:         scf.for
// CHECK:           %[[Y:.*]] = tensor.extract_slice %{{.*}}[0, 0] [%[[ROWS]], %{{.*}}] [1, 1] : tensor<16x128xf32> to tensor<?x?xf32>
// CHECK:           tensor.insert_slice %[[Y]] into
func.func @ragged(%x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}

// -----

// Not along the last dimension: a tile is in the right order as it is.

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @first(
// CHECK:         scf.forall (%[[A:.*]], %[[I:.*]]) = (0, 0) to (3, 48) step (1, 16)
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%{{.*}}, %[[A]], %[[I]]] [128, 1, 16] {{.*}} to tensor<128x16xf32>
// CHECK-NOT:       linalg.transpose
// CHECK:           linalg.generic {indexing_maps = [#[[TILE]], #[[ROWS]]], iterator_types = ["reduction", "parallel"]} ins(%[[X]]
func.func @first(%x: tensor<256x3x48xf32>, %e: tensor<256x3x48xf32>) -> tensor<256x3x48xf32> {
  %p = linalg.softmax dimension(0) ins(%x : tensor<256x3x48xf32>) outs(%e : tensor<256x3x48xf32>) -> tensor<256x3x48xf32>
  return %p : tensor<256x3x48xf32>
}

// -----

// CHECK-LABEL: func @vector(
// CHECK:         %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1]]
// CHECK:         %[[P:.*]] = scf.forall
// CHECK:           tensor.extract_slice %[[X]]{{.*}} to tensor<1x128xbf16>
// CHECK:         tensor.collapse_shape %[[P]]
func.func @vector(%x: tensor<1024xbf16>, %e: tensor<1024xbf16>) -> tensor<1024xbf16> {
  %p = linalg.softmax dimension(0) ins(%x : tensor<1024xbf16>) outs(%e : tensor<1024xbf16>) -> tensor<1024xbf16>
  return %p : tensor<1024xbf16>
}

// -----

// Only 16- and 32-bit floats on tensors.

// CHECK-LABEL: func @others(
// CHECK-COUNT-2: linalg.softmax
func.func @others(%x: tensor<8x8xf64>, %m: memref<8x8xf32>) -> tensor<8x8xf64> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<8x8xf64>) outs(%x : tensor<8x8xf64>) -> tensor<8x8xf64>
  linalg.softmax dimension(1) ins(%m : memref<8x8xf32>) outs(%m : memref<8x8xf32>)
  return %p : tensor<8x8xf64>
}
