// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @rank(%k: tensor<4x9x16xi8>, %s: tensor<1xf32>) {
  // expected-error @below {{dequantizes [B, H, N, D], got 'tensor<4x9x16xi8>'}}
  %0 = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<4x9x16xi8> -> tensor<4x9x16xf16>
  return
}

// -----

func.func @result(%k: tensor<2x4x9x16xi8>, %s: tensor<1xf32>) {
  // expected-error @below {{of 'tensor<2x4x9x16xi8>' gives 'tensor<2x4x9x16xf16>', got 'tensor<2x4x8x16xf16>'}}
  %0 = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x8x16xf16>
  return
}

// -----

func.func @element(%k: tensor<2x4x9x16xi8>, %s: tensor<1xf32>) {
  // expected-error @below {{result #0 must be ranked tensor without encoding of 16-bit float or bfloat16 type values, but got 'tensor<2x4x9x16xf32>'}}
  %0 = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf32>
  return
}

// -----

func.func @source(%k: tensor<2x4x9x16xf8E5M2>, %s: tensor<1xf32>) {
  // expected-error @below {{operand #0 must be ranked tensor without encoding of f8E4M3FN type or 8-bit signless integer values, but got 'tensor<2x4x9x16xf8E5M2>'}}
  %0 = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x9x16xf8E5M2> -> tensor<2x4x9x16xf16>
  return
}

// -----

func.func @heads(%k: tensor<2x4x9x16xi8>, %s: tensor<2x3xf32>) {
  // expected-error @below {{has one scale [1], or one for each batch and head [B, H] or for each row [B, H, N] of 'tensor<2x4x9x16xi8>', got 'tensor<2x3xf32>'}}
  %0 = flash.dequantize %k scale(%s : tensor<2x3xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf16>
  return
}

// -----

func.func @elements(%k: tensor<2x4x9x16xi8>, %s: tensor<2x4x9x16xf32>) {
  // expected-error @below {{has one scale [1], or one for each batch and head [B, H] or for each row [B, H, N] of}}
  %0 = flash.dequantize %k scale(%s : tensor<2x4x9x16xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf16>
  return
}

// -----

func.func @several(%k: tensor<2x4x9x16xi8>, %s: tensor<2xf32>) {
  // expected-error @below {{has one scale [1], or one for each batch and head [B, H] or for each row [B, H, N] of}}
  %0 = flash.dequantize %k scale(%s : tensor<2xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf16>
  return
}

// -----

func.func @queries(%q: tensor<2x4x9x16xi8>, %s: tensor<1xf32>) {
  %0 = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf16>
  // expected-error @below {{takes dequantized rows as queries; keys and values of flash.attention alone are, its queries with precision(fp8), and gradients have 16 bits or more}}
  %1 = flash.attention %0, %0, %0 : (tensor<2x4x9x16xf16>, tensor<2x4x9x16xf16>, tensor<2x4x9x16xf16>) -> tensor<2x4x9x16xf16>
  return
}

// -----

!t = tensor<2x4x9x16xf16>
func.func @gradients(%q: !t, %k: tensor<2x4x9x16xi8>, %s: tensor<1xf32>, %lse: tensor<2x4x9xf32>) {
  %0 = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> !t
  // expected-error @below {{takes dequantized rows; keys and values of flash.attention alone are, its queries with precision(fp8), and gradients have 16 bits or more}}
  %1:3 = flash.attention_grad %q, %0, %q, %q, %lse, %q : (!t, !t, !t, !t, tensor<2x4x9xf32>, !t) -> (!t, !t, !t)
  return
}

// -----

// What an address is of counts, as of other rows.
func.func @lengths(%q: tensor<2x4x9x16xf16>, %k: tensor<1x4x9x16xi8>, %o: tensor<3xi32>, %s: tensor<1xf32>) {
  %ks, %n = flash.unpack %k by %o : tensor<1x4x9x16xi8>, tensor<3xi32> -> tensor<2x4x9x16xi8>, tensor<2xi32>
  %0 = flash.dequantize %ks scale(%s : tensor<1xf32>) : tensor<2x4x9x16xi8> -> tensor<2x4x9x16xf16>
  // expected-error @below {{takes rows of flash.unpack, and needs key_lengths that are the lengths of the same offsets}}
  %1 = flash.attention %q, %0, %0 : (tensor<2x4x9x16xf16>, tensor<2x4x9x16xf16>, tensor<2x4x9x16xf16>) -> tensor<2x4x9x16xf16>
  return
}

// -----

func.func @tile(%t: tensor<16x16xi8>, %s: f32) {
  // expected-error @below {{gives as many elements as a tile of static size has, got 'tensor<16x16xi8>' and 'tensor<8x16xf16>'}}
  %0 = flash.dequantize_tile %t : tensor<16x16xi8> -> tensor<8x16xf16> {
  ^bb0(%row: index):
    flash.yield %s : f32
  }
  return
}

// -----

func.func @region(%t: tensor<16x16xi8>, %s: f32) {
  // expected-error @below {{has a region that takes a row, an index, and yields its scale, of f32}}
  %0 = flash.dequantize_tile %t : tensor<16x16xi8> -> tensor<16x16xf16> {
    flash.yield %s : f32
  }
  return
}
