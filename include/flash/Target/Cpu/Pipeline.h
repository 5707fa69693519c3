//===- Pipeline.h - From linalg on tensors to the LLVM dialect --*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_CPU_PIPELINE_H
#define FLASH_TARGET_CPU_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace flash {

/// Options of the passes from linalg to the LLVM dialect for CPUs.
struct CpuBackendOptions : mlir::PassPipelineOptions<CpuBackendOptions> {
  Option<int64_t> vectorBits{
      *this, "vector-bits",
      llvm::cl::desc("Width of a vector register; 0 for what the host has"),
      llvm::cl::init(0)};
  Option<int64_t> registers{
      *this, "registers",
      llvm::cl::desc("Number of vector registers; 0 for what the host has"),
      llvm::cl::init(0)};
  Option<int64_t> maxStackBytes{
      *this, "max-stack-bytes",
      llvm::cl::desc("Static buffers of one parallel body beyond this many "
                     "bytes go to the heap"),
      llvm::cl::init(1 << 20)};
};

/// The width in bits and the number of the vector registers of the processor on
/// which this process runs.
std::pair<int64_t, int64_t> getHostVectorRegisters();

/// From tensors (linalg, tensor, scf.forall and scf.for) to buffers without any
/// linalg operation: tensors become memrefs, linalg operations become loops
/// over register tiles, and the bodies of parallel loops become functions.
void buildCpuBufferizePipeline(mlir::OpPassManager &pm,
                               const CpuBackendOptions &options);

/// From the result of `buildCpuBufferizePipeline` to the LLVM dialect.
void buildCpuLowerToLLVMPipeline(mlir::OpPassManager &pm);

/// Both pipelines above, one after the other.
void buildCpuBackendPipeline(mlir::OpPassManager &pm,
                             const CpuBackendOptions &options);

/// Registers the pipeline `--flash-cpu-backend` of flash-opt.
void registerCpuPipelines();

} // namespace flash

#endif // FLASH_TARGET_CPU_PIPELINE_H
