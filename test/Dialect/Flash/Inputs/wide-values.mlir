func.func @values(%q: tensor<4x16x128x512xbf16>, %k: tensor<4x16x4096x512xbf16>, %v: tensor<4x16x4096x512xbf16>) -> tensor<4x16x128x512xbf16> {
  %o = flash.attention %q, %k, %v : (tensor<4x16x128x512xbf16>, tensor<4x16x4096x512xbf16>, tensor<4x16x4096x512xbf16>) -> tensor<4x16x128x512xbf16>
  return %o : tensor<4x16x128x512xbf16>
}
