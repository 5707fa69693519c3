func.func @attention(%q: tensor<1x4x1024x64xf16>, %k: tensor<1x4x1024x64xf16>, %v: tensor<1x4x1024x64xf16>) -> tensor<1x4x1024x64xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal)
      : (tensor<1x4x1024x64xf16>, tensor<1x4x1024x64xf16>, tensor<1x4x1024x64xf16>) -> tensor<1x4x1024x64xf16>
  return %o : tensor<1x4x1024x64xf16>
}
