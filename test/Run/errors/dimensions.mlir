// Dimensions that a tensor does not have are an error with the line.
// RUN: not flash-run %s --target=cpu 2>&1 | FileCheck %s

// CHECK: dimensions.mlir:[[@LINE+5]]:8: error: 'tensor.dim' op reads the size of dimension -1 of 'tensor<?x?xf32>', whose dimensions are 0 to 1
func.func @softmax(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0 : index
  %last = arith.constant -1 : index
  %a = tensor.dim %x, %zero : tensor<?x?xf32>
  %b = tensor.dim %x, %last : tensor<?x?xf32>
  %e = tensor.empty(%a, %b) : tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}
