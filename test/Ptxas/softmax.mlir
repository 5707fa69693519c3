// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu=target=sm_80 | flash-translate --ptxas --chip=sm_80 | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s

// Rows in registers, of one warp and of several that share them; rows in steps;
// rows that are never aligned.
// CHECK-DAG: short: {{.*}} spill stores 0
// CHECK-DAG: long: {{.*}} spill stores 0
// CHECK-DAG: wide: {{.*}} spill stores 0
// CHECK-DAG: open: {{.*}} spill stores 0
// CHECK-DAG: odd: {{.*}} spill stores 0
func.func @short(%x: tensor<64x2048xf16>) -> tensor<64x2048xf16> {
  %e = tensor.empty() : tensor<64x2048xf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x2048xf16>) outs(%e : tensor<64x2048xf16>) -> tensor<64x2048xf16>
  return %p : tensor<64x2048xf16>
}
func.func @long(%x: tensor<64x16384xbf16>) -> tensor<64x16384xbf16> {
  %e = tensor.empty() : tensor<64x16384xbf16>
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x16384xbf16>) outs(%e : tensor<64x16384xbf16>) -> tensor<64x16384xbf16>
  return %p : tensor<64x16384xbf16>
}
func.func @wide(%x: tensor<64x16385xf32>) -> tensor<64x16385xf32> {
  %e = tensor.empty() : tensor<64x16385xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x16385xf32>) outs(%e : tensor<64x16385xf32>) -> tensor<64x16385xf32>
  return %p : tensor<64x16385xf32>
}
func.func @open(%x: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<?x?xf16>) outs(%x : tensor<?x?xf16>) -> tensor<?x?xf16>
  return %p : tensor<?x?xf16>
}
func.func @odd(%x: tensor<7x5001xf32>) -> tensor<7x5001xf32> {
  %e = tensor.empty() : tensor<7x5001xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<7x5001xf32>) outs(%e : tensor<7x5001xf32>) -> tensor<7x5001xf32>
  return %p : tensor<7x5001xf32>
}
