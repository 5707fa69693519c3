// A tile of keys divides the rows of a page, or is several pages, whichever the models would have; they choose the rest for it.
// RUN: flash-opt %s --split-input-file --flash-select-schedule | FileCheck %s --check-prefix=CPU
// RUN: flash-opt %s --split-input-file --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s --check-prefix=SM80
// RUN: flash-opt %s --split-input-file --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefix=SM90
// RUN: not flash-opt %s --split-input-file --flash-select-schedule='schedule=key_tile=40' 2>&1 | FileCheck %s --check-prefix=WRITTEN
// RUN: not flash-opt %s --split-input-file --flash-attach-target=target=sm_80 --flash-select-schedule='schedule=key_tile=112' 2>&1 | FileCheck %s --check-prefix=GPU

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x4800x64xf16>
// CPU-LABEL:  func @of_48(
// CPU:        key_tile = 144
// SM80-LABEL: func @of_48(
// SM80:       key_tile = 96
// SM90-LABEL: func @of_48(
// SM90:       key_tile = 144, {{.*}}specialize_warps{{.*}}split_ctas
// WRITTEN:    key_tile must divide the 48 rows of a page, or be a multiple of them, of up to 32 pages, got 40; the nearest is 48
// GPU:        key_tile must divide the 48 rows of a page, or be a multiple of them, of up to 32 pages, got 112; the nearest is 96
func.func @of_48(%q: !q, %k: tensor<900x2x48x64xf16>, %table: tensor<8x100xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x48x64xf16>, tensor<8x100xi32> -> !view
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<8x8x64x64xf16>
!view = tensor<8x2x4000x64xf16>
// Of pages that no tile of the models fits to.
// CPU-LABEL:  func @of_40(
// CPU:        key_tile = 120
// SM80-LABEL: func @of_40(
// SM80:       key_tile = 80
// SM90-LABEL: func @of_40(
// SM90:       key_tile = 160
// WRITTEN-NOT: the 40 rows of a page
// GPU:        the 40 rows of a page, or be a multiple of them, of up to 32 pages, got 112; the nearest is 80
func.func @of_40(%q: !q, %k: tensor<900x2x40x64xf16>, %table: tensor<8x100xi32>, %n: tensor<8xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<8xi32>) : tensor<900x2x40x64xf16>, tensor<8x100xi32> -> !view
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<8xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<?x8x1x64xf16>
!view = tensor<?x2x?x64xf16>
// Pages are sequences' own: the keys of one token are split as those of batches are.
// CPU-LABEL:  func @token(
// SM80-LABEL: func @token(
// SM80:       split_ctas
// SM90-LABEL: func @token(
// SM90:       split_ctas
func.func @token(%q: !q, %k: tensor<?x2x16x64xf16>, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : tensor<?x2x16x64xf16>, tensor<?x?xi32> -> !view
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<?xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<4x8x4096x64xf16>
!view = tensor<4x1x8800x64xf16>
// The one tile that fits leaves room for fewer queries than the models take.
// CPU-LABEL:  func @of_88(
// SM80-LABEL: func @of_88(
// SM80:       query_tile = 64, key_tile = 176
// SM90-LABEL: func @of_88(
// SM90:       query_tile = 128, key_tile = 176, {{.*}}specialize_warps
func.func @of_88(%q: !q, %k: tensor<900x1x88x64xf16>, %table: tensor<4x100xi32>, %n: tensor<4xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<4xi32>) : tensor<900x1x88x64xf16>, tensor<4x100xi32> -> !view
  %o = flash.attention %q, %ks, %ks mask(#flash.causal) key_lengths(%n : tensor<4xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}

// -----

!q = tensor<4x32x2048x128xbf16>
!view = tensor<4x8x8192x128xbf16>
// Three warpgroups have no registers for the numbers of pages.
// SM90-LABEL: func @prompts(
// SM90:       query_tile = 128, key_tile = 128
func.func @prompts(%q: !q, %k: tensor<900x8x16x128xbf16>, %table: tensor<4x512xi32>, %n: tensor<4xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<4xi32>) : tensor<900x8x16x128xbf16>, tensor<4x512xi32> -> !view
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<4xi32>) : (!q, !view, !view) -> !q
  return %o : !q
}
