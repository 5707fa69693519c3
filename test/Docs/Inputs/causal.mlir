// What docs/one-step.md shows of a tile of queries: f16, D = 64.
func.func @attention(%q: tensor<1x16x1024x64xf16>, %k: tensor<1x16x1024x64xf16>, %v: tensor<1x16x1024x64xf16>) -> tensor<1x16x1024x64xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) schedule(<query_tile = 128, key_tile = 64>)
      : (tensor<1x16x1024x64xf16>, tensor<1x16x1024x64xf16>, tensor<1x16x1024x64xf16>) -> tensor<1x16x1024x64xf16>
  return %o : tensor<1x16x1024x64xf16>
}
