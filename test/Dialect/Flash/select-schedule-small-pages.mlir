// On the CPU, where pages may have any number of rows, a tile of keys is of up to 32 pages: each is a copy of its own.
// RUN: flash-opt %s --flash-select-schedule | FileCheck %s
// RUN: not flash-opt %s --flash-select-schedule='schedule=key_tile=128' 2>&1 | FileCheck %s --check-prefix=WRITTEN

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x100x64xf16>
// CHECK-LABEL: func @of_1(
// CHECK:       key_tile = 32
// WRITTEN:     key_tile must divide the 1 rows of a page, or be a multiple of them, of up to 32 pages, got 128; the nearest is 32
func.func @of_1(%q: !q, %k: tensor<900x2x1x64xf16>, %table: tensor<8x100xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x1x64xf16>, tensor<8x100xi32> -> !view
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
