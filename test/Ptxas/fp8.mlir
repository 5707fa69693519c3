// Products of f8E4M3FN: no kernel spills a register, and no product of warpgroups waits for another without need.
// REQUIRES: ptxas
// RUN: flash-opt %s --flash-gpu=target=sm_90a | flash-translate --ptxas --chip=sm_90a | FileCheck %s
// CHECK-DAG: full64: {{.*}} spill stores 0
// CHECK-DAG: full64_0: {{.*}} spill stores 0
// CHECK-DAG: causal64_1: {{.*}} spill stores 0
// CHECK-DAG: full128_2: {{.*}} spill stores 0
// CHECK-DAG: causal128_3: {{.*}} spill stores 0
// CHECK-DAG: wide_4: {{.*}} spill stores 0
// CHECK-DAG: scores_5: {{.*}} spill stores 0
!q64 = tensor<?x?x?x64xf8E4M3FN>
!t64 = tensor<?x?x?x64xbf16>
!q128 = tensor<?x?x?x128xf8E4M3FN>
!t128 = tensor<?x?x?x128xbf16>
!q192 = tensor<?x?x?x192xf8E4M3FN>
!t192 = tensor<?x?x?x192xbf16>
!s = tensor<?x?xf32>
func.func @full64(%q: !q64, %k: !q64, %v: !q64, %qs: !s, %ks: !s, %vs: !s) -> !t64 {
  %qd = flash.dequantize %q scale(%qs : !s) : !q64 -> !t64
  %kd = flash.dequantize %k scale(%ks : !s) : !q64 -> !t64
  %vd = flash.dequantize %v scale(%vs : !s) : !q64 -> !t64
  %o = flash.attention %qd, %kd, %vd precision(fp8) : (!t64, !t64, !t64) -> !t64
  return %o : !t64
}
func.func @causal64(%q: !q64, %k: !q64, %v: !q64, %qs: !s, %ks: !s, %vs: !s) -> !t64 {
  %qd = flash.dequantize %q scale(%qs : !s) : !q64 -> !t64
  %kd = flash.dequantize %k scale(%ks : !s) : !q64 -> !t64
  %vd = flash.dequantize %v scale(%vs : !s) : !q64 -> !t64
  %o = flash.attention %qd, %kd, %vd mask(#flash.causal) precision(fp8) : (!t64, !t64, !t64) -> !t64
  return %o : !t64
}
func.func @full128(%q: !q128, %k: !q128, %v: !q128, %qs: !s, %ks: !s, %vs: !s) -> !t128 {
  %qd = flash.dequantize %q scale(%qs : !s) : !q128 -> !t128
  %kd = flash.dequantize %k scale(%ks : !s) : !q128 -> !t128
  %vd = flash.dequantize %v scale(%vs : !s) : !q128 -> !t128
  %o = flash.attention %qd, %kd, %vd precision(fp8) : (!t128, !t128, !t128) -> !t128
  return %o : !t128
}
func.func @causal128(%q: !q128, %k: !q128, %v: !q128, %qs: !s, %ks: !s, %vs: !s, %n: tensor<?xi32>) -> (!t128, tensor<?x?x?xf32>) {
  %qd = flash.dequantize %q scale(%qs : !s) : !q128 -> !t128
  %kd = flash.dequantize %k scale(%ks : !s) : !q128 -> !t128
  %vd = flash.dequantize %v scale(%vs : !s) : !q128 -> !t128
  %o, %l = flash.attention %qd, %kd, %vd mask(#flash.causal) lengths(%n : tensor<?xi32>) precision(fp8) : (!t128, !t128, !t128) -> (!t128, tensor<?x?x?xf32>)
  return %o, %l : !t128, tensor<?x?x?xf32>
}
func.func @wide(%q: !q192, %k: !q192, %v: !q192, %qs: !s, %ks: !s, %vs: !s) -> !t192 {
  %qd = flash.dequantize %q scale(%qs : !s) : !q192 -> !t192
  %kd = flash.dequantize %k scale(%ks : !s) : !q192 -> !t192
  %vd = flash.dequantize %v scale(%vs : !s) : !q192 -> !t192
  %o = flash.attention %qd, %kd, %vd precision(fp8) : (!t192, !t192, !t192) -> !t192
  return %o : !t192
}
func.func @scores(%q: !q128, %k: !q128, %v: !q128, %qs: !s, %ks: !s, %vs: !s) -> !t128 {
  %qd = flash.dequantize %q scale(%qs : !s) : !q128 -> !t128
  %kd = flash.dequantize %k scale(%ks : !s) : !q128 -> !t128
  %vd = flash.dequantize %v scale(%vs : !s) : !q128 -> !t128
  %o = flash.attention %qd, %kd, %vd mask(#flash.causal) precision(fp8) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 5.0 : f32
    %y = arith.divf %x, %c : f32
    %t = math.tanh %y : f32
    %z = arith.mulf %t, %c : f32
    flash.yield %z : f32
  } : (!t128, !t128, !t128) -> !t128
  return %o : !t128
}
