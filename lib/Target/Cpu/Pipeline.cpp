//===- Pipeline.cpp - From linalg on tensors to the LLVM dialect ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Pipeline.h"

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/Transforms/RequestCWrappers.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

std::pair<int64_t, int64_t> flash::getHostVectorRegisters() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return {512, 32};
  if (features.lookup("avx2"))
    return {256, 16};
  return {128, features.lookup("neon") ? 32 : 16};
}

void flash::buildCpuBufferizePipeline(OpPassManager &pm,
                                      const CpuBackendOptions &options) {
  auto [hostBits, hostCount] = getHostVectorRegisters();
  pm.addPass(createFlashCpuFullRankSlices());
  // No common-subexpression elimination or hoisting on tensors: they would
  // make two buffers' initial fills one value, which then has to be copied.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createFlashCpuYieldInPlace());
  pm.addPass(createFlashCpuOwnResults());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());

  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  // Where a loop cannot update in place it may swap buffers: slower, not wrong.
  bufferize.allowReturnAllocsFromLoops = true;
  // The runtime aligns every allocation to a cache line.
  bufferize.bufferAlignment = 0;
  pm.addPass(bufferization::createOneShotBufferizePass(bufferize));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  bufferization::buildBufferDeallocationPipeline(pm);
  pm.addPass(createConvertBufferizationToMemRefPass());

  pm.addPass(createLowerAffinePass());
  // Vectors of the program itself: register tiles need none of this
  // pass's many patterns, which take long in unrolled code.
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createFlashCpuMicrokernel(
      {options.vectorBits ? options.vectorBits : hostBits,
       options.registers ? options.registers : hostCount}));
  pm.addPass(createFlashCpuExpandMath());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createFlashCpuOutlineParallel({options.maxStackBytes}));
  pm.addPass(createFlashCpuLowerAssert());
}

void flash::buildCpuLowerToLLVMPipeline(OpPassManager &pm) {
  // Before the declarations of library functions appear, which want none.
  pm.addNestedPass<func::FuncOp>(LLVM::createLLVMRequestCWrappersPass());
  // What LLVM has an intrinsic for, then what libm has; the latter takes
  // vectors apart.
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  // bf16 conversions by integer arithmetic: few machines have instructions,
  // and the library functions are not everywhere.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createFlashCpuConvertToLLVM());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void flash::buildCpuBackendPipeline(OpPassManager &pm,
                                    const CpuBackendOptions &options) {
  buildCpuBufferizePipeline(pm, options);
  buildCpuLowerToLLVMPipeline(pm);
}

void flash::registerCpuPipelines() {
  PassPipelineRegistration<CpuBackendOptions>(
      "flash-cpu-backend",
      "From linalg on tensors to the LLVM dialect for this machine",
      buildCpuBackendPipeline);
}
