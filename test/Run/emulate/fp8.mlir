// With precision(fp8) probabilities have 3 bits of mantissa where warps have roles, and the tolerance is theirs; other programs dequantize. A scale
// of 0 makes all keys alike, and a negative one of queries, which has no meaning, all results NaN; of values it has a meaning. A NaN among
// the values of a key that a length leaves out has no effect.
// DEFINE: %{sizes} = --shape 0=2x6x150x64 --shape 1=2x2x333x64 --shape 2=2x2x333x64 --check
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} | FileCheck %s --check-prefix=E4M3
// RUN: flash-run %s --target=emulate,cpu %{sizes} | FileCheck %s --check-prefix=DEQUANTIZED
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --fill=3=0 | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --fill=5=-2 | FileCheck %s --check-prefix=OK
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --fill=6=100 --fill=2=nan@-1 | FileCheck %s --check-prefix=OK
// RUN: not flash-run %s --target=emulate:sm_90a %{sizes} --fill=3=-1 | FileCheck %s --check-prefix=NAN
// E4M3: {{^}}check: ok {{.*}} rms 0.0{{[12][0-9]+}} {{.*}}(tolerance 0.0{{[34][0-9]+}})
// DEQUANTIZED: emulate check: ok {{.*}} (tolerance 0.008)
// DEQUANTIZED: cpu check: ok {{.*}} (tolerance 0.008)
// OK: check: ok
// NAN: FAILED {{.*}} got nan
!q = tensor<2x6x?x64xbf16>
!k = tensor<2x2x?x64xbf16>
func.func @attention(%q: tensor<2x6x?x64xf8E4M3FN>, %k: tensor<2x2x?x64xf8E4M3FN>, %v: tensor<2x2x?x64xf8E4M3FN>,
                     %qs: tensor<1xf32>, %ks: tensor<2x2xf32>, %vs: tensor<2x2xf32>, %n: tensor<2xi32>) -> (!q, tensor<2x6x?xf32>) {
  %qd = flash.dequantize %q scale(%qs : tensor<1xf32>) : tensor<2x6x?x64xf8E4M3FN> -> !q
  %kd = flash.dequantize %k scale(%ks : tensor<2x2xf32>) : tensor<2x2x?x64xf8E4M3FN> -> !k
  %vd = flash.dequantize %v scale(%vs : tensor<2x2xf32>) : tensor<2x2x?x64xf8E4M3FN> -> !k
  %o, %l = flash.attention %qd, %kd, %vd mask(#flash.causal<top_left>) lengths(%n : tensor<2xi32>) precision(fp8) : (!q, !k, !k) -> (!q, tensor<2x6x?xf32>)
  return %o, %l : !q, tensor<2x6x?xf32>
}
