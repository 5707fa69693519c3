//===- Kernel.cpp - A compiled function -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Kernel.h"

#include "CpuExecutor.h"
#include "flash/Compile/CpuProgram.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace flash::run;

llvm::Expected<Kernel> Kernel::compile(ModuleOp source, StringRef entry,
                                       Variant variant,
                                       const Options &options) {
  auto program = CpuProgram::compile(source, entry, variant, options);
  if (!program)
    return program.takeError();
  Kernel kernel;
  kernel.executor = std::make_unique<CpuExecutor>(
      std::move(program->executable), program->resultTypes);
  kernel.target = program->target;
  kernel.level0 = std::move(program->level0);
  kernel.times = std::move(program->times);
  return kernel;
}

llvm::Expected<Kernel> Kernel::load(GpuProgram program, Gpu &gpu,
                                    const Options &options) {
  auto executor = loadOnGpu(program, gpu, options);
  if (!executor)
    return executor.takeError();
  Kernel kernel;
  kernel.executor = std::move(*executor);
  kernel.target = {Target::Gpu, flash::findMachine(program.gpu)->name};
  kernel.level0 = std::move(program.level0);
  kernel.times = std::move(program.times);
  return kernel;
}

llvm::Expected<Kernel> Kernel::compileApart(const DialectRegistry &registry,
                                            StringRef text, Variant variant,
                                            Gpu &gpu, const Options &options) {
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  auto program = compile::loadProgram(
      *context, llvm::MemoryBuffer::getMemBuffer(text), options, llvm::nulls());
  if (!program)
    return program.takeError();
  Options named = options;
  if (named.device.empty())
    named.device = gpu.device.getInfo().name;
  if (!named.multiprocessors)
    named.multiprocessors = gpu.device.getInfo().multiprocessors;
  auto compiled = GpuProgram::compile(
      *program->module, program->entry.getSymName(), variant, named);
  if (!compiled)
    return compiled.takeError();
  auto kernel = load(std::move(*compiled), gpu, options);
  if (!kernel)
    return kernel.takeError();
  kernel->context = std::move(context);
  return std::move(*kernel);
}
