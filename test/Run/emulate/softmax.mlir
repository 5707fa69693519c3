// The softmax of rows on warp rows, of lengths with and without whole chunks.
// RUN: flash-run %s --target=emulate --check --shape 0=3x37x1003 | FileCheck %s
// RUN: flash-run %s --target=emulate --check --shape 0=1x1x1 | FileCheck %s
// RUN: flash-run %s --target=emulate --check --shape 0=2x9x2048 | FileCheck %s
// CHECK: check: ok
func.func @softmax(%x: tensor<?x?x?xbf16>) -> tensor<?x?x?xbf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<?x?x?xbf16>) outs(%x : tensor<?x?x?xbf16>) -> tensor<?x?x?xbf16>
  return %p : tensor<?x?x?xbf16>
}
