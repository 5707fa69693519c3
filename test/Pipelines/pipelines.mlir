// The registered pipelines: --flash-front ends in linalg on tiles, the others in
// the LLVM dialect alone, the tiled ones with a function for the parallel loop. Names of ops stand in strings, for messages.
// RUN: flash-opt %s --flash-front="schedule=query_tile=16,key_tile=32" | FileCheck %s --check-prefix=FRONT
// DEFINE: %{only_llvm} = --implicit-check-not='{{[^"](flash|scf|linalg|vector|memref|tensor|math|arith)[.]}}'
// RUN: flash-opt %s --flash-cpu | FileCheck %s --check-prefixes=LLVM,PARALLEL %{only_llvm}
// RUN: flash-opt %s --flash-emulate="schedule=query_tile=16" | FileCheck %s --check-prefixes=LLVM,PARALLEL,RINGS %{only_llvm} --implicit-check-not=gpu.
// RUN: flash-opt %s --flash-naive="row-block=16" | FileCheck %s --check-prefixes=LLVM,PARALLEL %{only_llvm}
// RUN: flash-opt %s --flash-naive | FileCheck %s --check-prefix=LLVM %{only_llvm} --implicit-check-not=parallel
// RUN: flash-opt %s --flash-reference | FileCheck %s --check-prefixes=LLVM,PARALLEL %{only_llvm} --implicit-check-not=f32

// FRONT:     scf.forall {{.*}} step (1, 1, 16)
// FRONT:       tensor<32x16xf32>
// FRONT-NOT: = flash.

// LLVM:      llvm.func @_mlir_ciface_attention(
// PARALLEL:  llvm.func internal @attention_parallel_0(
// RINGS:       llvm.call @flash_emulation_wait(
func.func @attention(%q: tensor<2x3x64x16xf32>, %k: tensor<2x3x96x16xf32>) -> tensor<2x3x64x16xf32> {
  %o = flash.attention %q, %k, %k mask(#flash.causal)
      : (tensor<2x3x64x16xf32>, tensor<2x3x96x16xf32>, tensor<2x3x96x16xf32>) -> tensor<2x3x64x16xf32>
  return %o : tensor<2x3x64x16xf32>
}
