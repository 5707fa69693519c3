// Keys and values of 8 bits: decodes spill no register, but a few on sm_75, where copies go by way of registers, too.
// REQUIRES: ptxas
// DEFINE: %{target} =
// DEFINE: %{run} = flash-opt %s --flash-gpu=target=%{target} | flash-translate --ptxas --chip=%{target} | FileCheck %s
// RUN: flash-opt %s --flash-gpu=target=sm_75 | flash-translate --ptxas --chip=sm_75 --allow-spills | FileCheck %s --check-prefix=LOADS
// REDEFINE: %{target} = sm_80
// RUN: %{run}
// REDEFINE: %{target} = sm_86
// RUN: %{run}
// REDEFINE: %{target} = sm_89
// RUN: %{run}
// REDEFINE: %{target} = sm_90a
// RUN: %{run}
// REDEFINE: %{target} = sm_120
// RUN: %{run}
// CHECK-DAG: decode: {{.*}} spill stores 0
// CHECK-DAG: pages: {{.*}} spill stores 0
// LOADS-DAG: decode: {{.*}} registers
// LOADS-DAG: pages: {{.*}} spill stores 0
!q = tensor<?x32x1x128xf16>
!c = tensor<?x8x?x128xf8E4M3FN>
!k = tensor<?x8x?x128xf16>
func.func @decode(%q: !q, %k: !c, %v: !c, %ks: tensor<?x8xf32>, %vs: tensor<?x8xf32>) -> !q {
  %kd = flash.dequantize %k scale(%ks : tensor<?x8xf32>) : !c -> !k
  %vd = flash.dequantize %v scale(%vs : tensor<?x8xf32>) : !c -> !k
  %o = flash.attention %q, %kd, %vd : (!q, !k, !k) -> !q
  return %o : !q
}
!p = tensor<?x8x16x128xi8>
!u = tensor<?x8x?x128xi8>
!s = tensor<?x8x16xf32>
func.func @pages(%q: !q, %k: !p, %v: !p, %table: tensor<?x?xi32>, %n: tensor<?xi32>, %ks: !s, %vs: !s) -> !q {
  %ku = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : !p, tensor<?x?xi32> -> !u
  %vu = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : !p, tensor<?x?xi32> -> !u
  %ksu = flash.unpage %ks by %table lengths(%n : tensor<?xi32>) : !s, tensor<?x?xi32> -> tensor<?x8x?xf32>
  %vsu = flash.unpage %vs by %table lengths(%n : tensor<?xi32>) : !s, tensor<?x?xi32> -> tensor<?x8x?xf32>
  %kd = flash.dequantize %ku scale(%ksu : tensor<?x8x?xf32>) : !u -> !k
  %vd = flash.dequantize %vu scale(%vsu : tensor<?x8x?xf32>) : !u -> !k
  %o = flash.attention %q, %kd, %vd key_lengths(%n : tensor<?xi32>) : (!q, !k, !k) -> !q
  return %o : !q
}
