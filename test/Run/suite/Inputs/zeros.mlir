// Each size that may be 0, static and open, with one query of grouped heads and
// with several.
func.func @batch_one(%q: tensor<0x3x1x64xf16>, %k: tensor<0x1x17x64xf16>) -> tensor<0x3x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<0x3x1x64xf16>, tensor<0x1x17x64xf16>, tensor<0x1x17x64xf16>) -> tensor<0x3x1x64xf16>
  return %o : tensor<0x3x1x64xf16>
}
func.func @batch_key_one(%q: tensor<?x3x1x64xf16>, %k: tensor<0x1x17x64xf16>) -> tensor<?x3x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<?x3x1x64xf16>, tensor<0x1x17x64xf16>, tensor<0x1x17x64xf16>) -> tensor<?x3x1x64xf16>
  return %o : tensor<?x3x1x64xf16>
}
func.func @keys_one(%q: tensor<2x3x1x64xf16>, %k: tensor<2x1x0x64xf16>) -> (tensor<2x3x1x64xf16>, tensor<2x3x1xf32>) {
  %o, %lse = flash.attention %q, %k, %k : (tensor<2x3x1x64xf16>, tensor<2x1x0x64xf16>, tensor<2x1x0x64xf16>) -> (tensor<2x3x1x64xf16>, tensor<2x3x1xf32>)
  return %o, %lse : tensor<2x3x1x64xf16>, tensor<2x3x1xf32>
}
func.func @batch(%q: tensor<0x4x70x64xf16>, %k: tensor<0x2x17x64xf16>, %n: tensor<0xi32>) -> tensor<0x4x70x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) lengths(%n : tensor<0xi32>) : (tensor<0x4x70x64xf16>, tensor<0x2x17x64xf16>, tensor<0x2x17x64xf16>) -> tensor<0x4x70x64xf16>
  return %o : tensor<0x4x70x64xf16>
}
func.func @queries(%q: tensor<2x4x0x64xf16>, %k: tensor<2x2x17x64xf16>) -> tensor<2x4x0x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<2x4x0x64xf16>, tensor<2x2x17x64xf16>, tensor<2x2x17x64xf16>) -> tensor<2x4x0x64xf16>
  return %o : tensor<2x4x0x64xf16>
}
func.func @keys(%q: tensor<2x4x70x64xf16>, %k: tensor<2x2x0x64xf16>) -> tensor<2x4x70x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) : (tensor<2x4x70x64xf16>, tensor<2x2x0x64xf16>, tensor<2x2x0x64xf16>) -> tensor<2x4x70x64xf16>
  return %o : tensor<2x4x70x64xf16>
}
func.func @open(%q: tensor<?x6x?x64xf16>, %k: tensor<?x2x?x64xf16>, %n: tensor<?xi32>) -> tensor<?x6x?x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) lengths(%n : tensor<?xi32>) : (tensor<?x6x?x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) -> tensor<?x6x?x64xf16>
  return %o : tensor<?x6x?x64xf16>
}
func.func @open_one(%q: tensor<?x6x1x64xf16>, %k: tensor<?x2x?x64xf16>) -> tensor<?x6x1x64xf16> {
  %o = flash.attention %q, %k, %k : (tensor<?x6x1x64xf16>, tensor<?x2x?x64xf16>, tensor<?x2x?x64xf16>) -> tensor<?x6x1x64xf16>
  return %o : tensor<?x6x1x64xf16>
}
