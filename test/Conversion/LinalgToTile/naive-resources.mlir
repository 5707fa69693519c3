// REQUIRES: ptxas
// The naive kernels of the widest head dimension keep their tiles in registers.
// RUN: flash-opt %s --flash-gpu-naive=target=sm_80 -o %t.mlir
// RUN: flash-translate --ptxas %t.mlir | FileCheck %s
// CHECK-COUNT-3: spill stores 0, spill loads 0
func.func @attention(%q: tensor<?x?x?x256xf32>, %k: tensor<?x?x?x256xf32>) -> tensor<?x?x?x256xf32> {
  %o = flash.attention %q, %k, %k : (tensor<?x?x?x256xf32>, tensor<?x?x?x256xf32>, tensor<?x?x?x256xf32>) -> tensor<?x?x?x256xf32>
  return %o : tensor<?x?x?x256xf32>
}
