// One row of 64 sees the only key: its error is that of one probability, and not of 64 whose errors are independent.
// RUN: flash-run %s --target=emulate:sm_90a --check --seed=1613148954 | FileCheck %s
// CHECK: check: ok {{.*}}rms 0.0446
!q = tensor<1x4x64x48xf8E4M3FN>
!k = tensor<1x2x1x48xf8E4M3FN>
!v = tensor<1x2x1x32xf8E4M3FN>
func.func @attention(%q: !q, %qs: tensor<1xf32>, %k: !k, %ks: tensor<1xf32>, %v: !v, %vs: tensor<1xf32>, %sink: tensor<4xf32>) -> tensor<1x4x64x32xbf16> {
  %qd = flash.dequantize %q scale(%qs : tensor<1xf32>) : !q -> tensor<1x4x64x48xbf16>
  %kd = flash.dequantize %k scale(%ks : tensor<1xf32>) : !k -> tensor<1x2x1x48xbf16>
  %vd = flash.dequantize %v scale(%vs : tensor<1xf32>) : !v -> tensor<1x2x1x32xbf16>
  %o = flash.attention %qd, %kd, %vd mask(#flash.causal) sink(%sink : tensor<4xf32>) precision(fp8) schedule(<key_tile = 32>) : (tensor<1x4x64x48xbf16>, tensor<1x2x1x48xbf16>, tensor<1x2x1x32xbf16>) -> tensor<1x4x64x32xbf16>
  return %o : tensor<1x4x64x32xbf16>
}
