// The softmax of rows on warp rows: in steps, with and without whole chunks.
// RUN: flash-run %s --target=emulate --check --shape 0=3x37x1003 | FileCheck %s
// RUN: flash-run %s --target=emulate --check --shape 0=1x1x1 | FileCheck %s
// RUN: flash-run %s --target=emulate --check --shape 0=2x9x2048 | FileCheck %s
// Rows that are in registers as a whole, of one warp or of several.
// RUN: sed 's/?x?x?xbf16/2x9x300xf16/g' %s | flash-run - --target=emulate --check | FileCheck %s
// RUN: sed 's/?x?x?xbf16/3x1x1xf32/g' %s | flash-run - --target=emulate --check | FileCheck %s
// RUN: sed 's/?x?x?xbf16/1x11x5003xbf16/g' %s | flash-run - --target=emulate --check | FileCheck %s
// RUN: sed 's/?x?x?xbf16/1x3x16384xf32/g' %s | flash-run - --target=emulate:sm_90a --check | FileCheck %s
// RUN: sed 's/?x?x?xbf16/1x?x16385xf16/g' %s | flash-run - --target=emulate:sm_90a --check --shape 0=1x9x16385 | FileCheck %s
// Rows of -inf are NaN, and a NaN is one in its row alone.
// RUN: sed 's/?x?x?xbf16/1x4x5000xf32/g' %s | flash-run - --target=emulate --check --fill=0=-inf@0 --fill=0=nan@2 | FileCheck %s
// CHECK: check: ok
func.func @softmax(%x: tensor<?x?x?xbf16>) -> tensor<?x?x?xbf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<?x?x?xbf16>) outs(%x : tensor<?x?x?xbf16>) -> tensor<?x?x?xbf16>
  return %p : tensor<?x?x?xbf16>
}
