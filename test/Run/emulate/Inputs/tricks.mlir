func.func @attention(%q: tensor<1x2x300x32xf16>, %k: tensor<1x1x150x32xf16>, %v: tensor<1x1x150x24xf16>) -> tensor<1x2x300x24xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal) schedule(<query_tile = 128, key_tile = 32, features = specialize_warps|overlap|lazy_rescale>)
      : (tensor<1x2x300x32xf16>, tensor<1x1x150x32xf16>, tensor<1x1x150x24xf16>) -> tensor<1x2x300x24xf16>
  return %o : tensor<1x2x300x24xf16>
}
