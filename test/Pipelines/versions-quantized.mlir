// The version of a program whose keys and values have 8 bits has a schedule of kernels that convert them.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=64x32x1x128,64x8x8192x128" | FileCheck %s
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=64x32x1x128,64x8x8192x128 schedule=key_tile=64" | FileCheck %s --check-prefix=GIVEN

// CHECK: flash.dequantize
// CHECK: schedule(<{{.*}}features = none, split_ctas = {{[0-9]+}}>)
// GIVEN: schedule(<{{.*}}key_tile = 64, {{.*}}features = none
!q = tensor<?x?x?x128xbf16>
!cache = tensor<?x?x?x128xf8E4M3FN>
func.func @decode(%q: !q, %k: !cache, %v: !cache, %ks: tensor<?x?xf32>, %vs: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%ks : tensor<?x?xf32>) : !cache -> !q
  %vd = flash.dequantize %v scale(%vs : tensor<1xf32>) : !cache -> !q
  %o = flash.attention %q, %kd, %vd : (!q, !q, !q) -> !q
  return %o : !q
}
