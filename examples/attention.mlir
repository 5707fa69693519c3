// Plain attention. The schedule is optional; here it keeps what the compiler makes of it short.
func.func @attention(%q: tensor<2x4x512x64xf16>, %k: tensor<2x4x512x64xf16>, %v: tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16> {
  %o = flash.attention %q, %k, %v schedule(#flash.schedule<query_tile = 64, key_tile = 64>)
      : (tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>, tensor<2x4x512x64xf16>) -> tensor<2x4x512x64xf16>
  return %o : tensor<2x4x512x64xf16>
}
