// RUN: flash-opt %s --flash-cpu-lower-assert | FileCheck %s

// CHECK: llvm.mlir.global internal constant @flash_message_0("lengths[b] exceeds Nk\00")
// CHECK-LABEL: func.func @check
// CHECK-SAME: (%[[OK:.*]]: i1)
// CHECK: %[[BAD:.*]] = arith.xori %[[OK]], %true
// CHECK: scf.if %[[BAD]]
// CHECK:   %[[MESSAGE:.*]] = llvm.mlir.addressof @flash_message_0
// CHECK:   llvm.call @flash_runtime_failure(%[[MESSAGE]])
// CHECK-NOT: cf.assert
func.func @check(%ok: i1) {
  cf.assert %ok, "lengths[b] exceeds Nk"
  return
}
