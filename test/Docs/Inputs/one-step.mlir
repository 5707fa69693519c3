// What docs/one-step.md shows between passes: f16, D = 64.
func.func @attention(%q: tensor<1x16x1024x64xf16>, %k: tensor<1x16x1024x64xf16>, %v: tensor<1x16x1024x64xf16>) -> tensor<1x16x1024x64xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 128, key_tile = 64, features = specialize_warps|overlap|ping_pong|lazy_rescale>)
      : (tensor<1x16x1024x64xf16>, tensor<1x16x1024x64xf16>, tensor<1x16x1024x64xf16>) -> tensor<1x16x1024x64xf16>
  return %o : tensor<1x16x1024x64xf16>
}
