// RUN: flash-opt %s --verify-diagnostics --flash-select-schedule=target=sm_80

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x2000x64xf16>
func.func @of_20(%q: !q, %k: tensor<900x2x20x64xf16>, %table: tensor<8x100xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x20x64xf16>, tensor<8x100xi32> -> !view
  // expected-error @below {{cannot be scheduled: pages that are shorter than a tile have a multiple of 8 rows on a GPU, got 20; the nearest is 24}}
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
