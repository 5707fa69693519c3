// Values that are columns of the keys where sizes stay open, as they do on the CPU, and where the keys are dequantized: the copy that the schedule is chosen for has slices of the same kind.
// RUN: flash-opt %s --flash-attach-target=target=cpu --flash-specialize="sizes=?x15x128,?x31x128" | FileCheck %s

!q = tensor<?x?x128xbf16>
!o = tensor<?x?x64xbf16>
// CHECK-LABEL: func.func @rank_3(
// CHECK:         flash.attention {{.*}} schedule(<
func.func @rank_3(%q: !q, %k: !q) -> !o {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = tensor.dim %k, %c0 : !q
  %n = tensor.dim %k, %c1 : !q
  %v = tensor.extract_slice %k[0, 0, 0] [%h, %n, 64] [1, 1, 1] : !q to !o
  %o = flash.attention %q, %k, %v : (!q, !q, !o) -> !o
  return %o : !o
}
