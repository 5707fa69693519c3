// Products that convert elements of 8 bits in registers: keys with a scale for each, values with one.
!q = tensor<1x4x1x48xbf16>
!k = tensor<1x1x70x48xbf16>
func.func @quantized(%q: !q, %k: tensor<1x1x70x48xf8E4M3FN>, %v: tensor<1x1x70x48xi8>, %ks: tensor<1x1x70xf32>, %vs: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%ks : tensor<1x1x70xf32>) : tensor<1x1x70x48xf8E4M3FN> -> !k
  %vd = flash.dequantize %v scale(%vs : tensor<1xf32>) : tensor<1x1x70x48xi8> -> !k
  %o = flash.attention %q, %kd, %vd schedule(<query_tile = 16, key_tile = 32>) : (!q, !k, !k) -> !q
  return %o : !q
}
