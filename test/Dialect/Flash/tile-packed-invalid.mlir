// RUN: flash-opt %s --flash-online-softmax --flash-tile --convert-flash-to-scf --split-input-file --verify-diagnostics

func.func @open(%q: tensor<1x?x2x64xf16>, %k: tensor<1x?x256x64xf16>) -> tensor<1x?x2x64xf16> {
  // expected-error @below {{'flash.online_attention' op can pack heads only where the types say how many there are}}
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, packed_heads = 2>)
      : (tensor<1x?x2x64xf16>, tensor<1x?x256x64xf16>, tensor<1x?x256x64xf16>) -> tensor<1x?x2x64xf16>
  return %o : tensor<1x?x2x64xf16>
}

// -----

func.func @uneven(%q: tensor<1x8x2x64xf16>, %k: tensor<1x2x256x64xf16>) -> tensor<1x8x2x64xf16> {
  // expected-error @below {{packs 3 heads, which must divide the 4 query heads that read the same keys}}
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, packed_heads = 3>)
      : (tensor<1x8x2x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>) -> tensor<1x8x2x64xf16>
  return %o : tensor<1x8x2x64xf16>
}
