// Pages to which no tile of keys fits, by themselves and beside others. The error names the nearest number of rows that has one.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --flash-attach-target=target=sm_80 --flash-select-schedule

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x2000x64xf16>
func.func @of_20(%q: !q, %k: tensor<900x2x20x64xf16>, %table: tensor<8x100xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x20x64xf16>, tensor<8x100xi32> -> !view
  // expected-error @below {{cannot be scheduled: there is no key_tile for pages of 20 rows: it is a multiple of 16 up to 256 that divides the rows of a page or is a multiple of them, which on a GPU are a multiple of 8; the nearest is 24}}
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x2000x64xf16>
func.func @of_1000(%q: !q, %k: tensor<900x2x1000x64xf16>, %table: tensor<8x2xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x1000x64xf16>, tensor<8x2xi32> -> !view
  // expected-error-re @below {{no key_tile for pages of 1000 rows: {{.*}}; the nearest is 1008}}
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x384x64xf16>
func.func @beside(%q: !q, %k: tensor<900x2x24x64xf16>, %of_k: tensor<8x16xi32>, %v: tensor<900x2x128x64xf16>, %of_v: tensor<8x3xi32>,
                  %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %of_k lengths(%n : tensor<8xi32>) : tensor<900x2x24x64xf16>, tensor<8x16xi32> -> !view
  %vs = flash.unpage %v by %of_v lengths(%n : tensor<8xi32>) : tensor<900x2x128x64xf16>, tensor<8x3xi32> -> !view
  // expected-error-re @below {{no key_tile for pages of 24 rows beside pages of 128: {{.*}}; the nearest is 32}}
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
