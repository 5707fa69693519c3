// RUN: flash-opt %s --flash-online-softmax --flash-tile --verify-diagnostics

!q = tensor<2x4x1x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @packed(%q: tensor<2x4x1x64xf8E4M3FN>, %k: tensor<2x2x300x64xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x1x64xf8E4M3FN> -> !q
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x2x300x64xf8E4M3FN> -> !k
  // expected-error @below {{with precision(fp8) has a factor for each tile, so it packs no heads; leave out packed_heads}}
  %o = flash.attention %qd, %kd, %kd precision(fp8) schedule(<query_tile = 64, key_tile = 128, packed_heads = 2, features = specialize_warps>) : (!q, !k, !k) -> !q
  return %o : !q
}
