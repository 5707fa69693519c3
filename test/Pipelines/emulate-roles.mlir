// Block programs with roles come down to the LLVM dialect: a function for the
// blocks and one for the roles of a block.
// RUN: flash-opt %s --flash-emulate=target=sm_90a | FileCheck %s --implicit-check-not='{{[^"](flash|scf|linalg|vector|memref|tensor|math|arith|gpu)[.]}}'

// CHECK-DAG: llvm.func internal @attention_parallel_0(
// CHECK-DAG: llvm.call @flash_emulation_start_roles(
// CHECK-DAG: llvm.call @flash_concurrent_for(
// CHECK-DAG: llvm.func internal @attention_parallel_0_concurrent_1(
// CHECK-DAG: llvm.call @flash_emulation_acquire(
// CHECK-DAG: llvm.call @flash_emulation_wait(
// CHECK-DAG: llvm.call @flash_emulation_set_checked(
// CHECK-DAG: llvm.call @flash_emulation_wait_checked(
// CHECK-DAG: llvm.call @flash_emulation_finish_role(
func.func @attention(%q: tensor<1x3x300x16xf16>, %k: tensor<1x3x96x16xf16>) -> tensor<1x3x300x16xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal)
      : (tensor<1x3x300x16xf16>, tensor<1x3x96x16xf16>, tensor<1x3x96x16xf16>) -> tensor<1x3x300x16xf16>
  return %o : tensor<1x3x300x16xf16>
}
