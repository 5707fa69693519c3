// Where kernels alone run, nothing is copied between views and memory.
// RUN: flash-opt %s --convert-flash-to-scf=only-kernels --split-input-file --verify-diagnostics

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>
!offsets = tensor<?xi32>
func.func @as_tensor(%x: !memory, %offsets: !offsets) -> !view {
  // expected-error @below {{is used as a tensor, and on a GPU kernels of attention alone read it; use --target=cpu}}
  %xs, %n = flash.unpack %x by %offsets : !memory, !offsets -> !view, !offsets
  // expected-note @below {{it is used here}}
  return %xs : !view
}

// -----

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>
!offsets = tensor<?xi32>
func.func @lengths(%x: !memory, %offsets: !offsets) -> !offsets {
  // expected-error @below {{is used as a tensor, and on a GPU kernels of attention alone read it; use --target=cpu}}
  %xs, %n = flash.unpack %x by %offsets : !memory, !offsets -> !view, !offsets
  // expected-note @below {{it is used here}}
  return %n : !offsets
}

// -----

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>
!offsets = tensor<?xi32>
func.func @of_none(%y: !view, %offsets: !offsets, %to: !memory) -> !memory {
  // expected-error @below {{packs what no attention computes, and on a GPU its kernels alone store rows; use --target=cpu}}
  %o = flash.pack %y by %offsets into %to : !view, !offsets into !memory
  return %o : !memory
}

// -----

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>
!offsets = tensor<?xi32>
func.func @twice(%c: index, %t: index, %offsets: !offsets, %e: !view) -> (!memory, !view) {
  %y = flash.kernel over(%c, %c, %c) by [1, 1, 16] outs(%e : !view) {
  ^bb0(%i: index, %h: index, %row: index, %to: !view):
    %tile = tensor.empty() : tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] rows(%c) : tensor<16x8xf16> into !view
    }
  }
  %memory = tensor.empty(%t) : !memory
  // expected-error @below {{packs what is used elsewhere, too, and on a GPU a result is stored once; let the others take flash.unpack of what was packed}}
  %o = flash.pack %y by %offsets into %memory : !view, !offsets into !memory
  // expected-note @below {{it is used here}}
  return %o, %y : !memory, !view
}

// -----

!memory = tensor<1x4x?x8xf16>
!view = tensor<?x4x?x8xf16>
!offsets = tensor<?xi32>
func.func @with_values(%c: index, %offsets: !offsets, %e: !view, %memory: !memory) -> !memory {
  %y = flash.kernel over(%c, %c, %c) by [1, 1, 16] outs(%e : !view) {
  ^bb0(%i: index, %h: index, %row: index, %to: !view):
    %tile = tensor.empty() : tensor<16x8xf16>
    flash.store {
      flash.store_rows %tile into %to[%i, %h, %row] rows(%c) : tensor<16x8xf16> into !view
    }
  }
  // expected-error @below {{packs into a tensor that has values, and on a GPU rows of no sequence would not keep them; pack into a tensor.empty or, [1, H, T, ...], a linalg.fill, or use --target=cpu}}
  %o = flash.pack %y by %offsets into %memory : !view, !offsets into !memory
  return %o : !memory
}
