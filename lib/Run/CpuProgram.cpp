//===- CpuProgram.cpp - A program compiled for this machine ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/CpuProgram.h"

#include "RunPasses.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Run/Kernel.h"
#include "flash/Run/Reference.h"
#include "flash/Run/Stopwatch.h"
#include "flash/Target/Cpu/Pipeline.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace flash::run;
using llvm::createStringError;

/// From the program to linalg on tensors, by way of tiles.
static llvm::Error runFront(ModuleOp module, Variant variant,
                            const Options &options, CpuProgram &program) {
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build,
                 Dump stage) -> llvm::Error {
    if (llvm::Error error = runPasses(module, build))
      return error;
    dump(stage, module, options);
    return llvm::Error::success();
  };
  auto emulate = [&] { return run(flash::buildEmulatePipeline, Dump::Linalg); };
  if (isBlockLevel(module)) {
    program.level0 = module.clone();
    if (options.target != Target::Emulate)
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func); use --target=emulate or "
                               "a GPU target");
    if (options.has(Dump::L0) || options.has(Dump::L1))
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func): there is no level above to "
                               "dump");
    dump(Dump::L2, module, options);
    return emulate();
  }

  // What is emulated is what the GPU runs.
  bool emulates = options.target == Target::Emulate;
  flash::FrontOptions front;
  setSchedule(front, emulates ? getName(options.emulated) : "cpu", module,
              options);
  auto recognize = [](OpPassManager &pm) {
    pm.addPass(createSymbolDCEPass());
    flash::buildRecognizePipeline(pm);
  };
  if (llvm::Error error = run(recognize, Dump::L0))
    return error;
  program.level0 = module.clone();
  auto tile = [&](OpPassManager &pm) {
    if (variant == Variant::Naive)
      return flash::buildNaiveTilePipeline(pm);
    flash::buildTilePipeline(pm, front);
    if (options.countTiles)
      pm.addPass(flash::createCountTiles());
  };
  if (llvm::Error error = run(tile, Dump::L1))
    return error;
  if (!emulates)
    return run(flash::buildDecomposePipeline, Dump::Linalg);
  if (llvm::Error error = run(flash::buildBlockPipeline, Dump::L2))
    return error;
  return emulate();
}

llvm::Expected<CpuProgram> CpuProgram::compile(ModuleOp source, StringRef entry,
                                               Variant variant,
                                               const Options &options) {
  CpuProgram program;
  bool isFlash = variant == Variant::Flash;
  bool emulates =
      options.target == Target::Emulate && variant != Variant::Reference;
  if (emulates)
    program.target = Target::Emulate;
  OwningOpRef<ModuleOp> module = copyProgram(source, entry);
  Stopwatch watch;
  auto stage = [&](StringRef name) {
    program.times.emplace_back(name, watch.lap());
  };

  auto func = module->lookupSymbol<func::FuncOp>(entry);
  if (variant == Variant::Reference)
    returnLogSumExp(func);
  for (Type type : func.getResultTypes()) {
    DType dtype = *getDType(cast<ShapedType>(type).getElementType());
    program.resultTypes.push_back(
        variant == Variant::Reference && isFloat(dtype) ? DType::F64 : dtype);
  }

  if (isFlash || emulates) {
    if (llvm::Error error = runFront(*module, variant, options, program))
      return error;
  } else if (llvm::Error error = runPasses(*module, [&](OpPassManager &pm) {
               pm.addPass(createSymbolDCEPass());
               if (variant == Variant::Naive)
                 flash::buildNaivePipeline(pm, flash::NaiveOptions());
               else
                 flash::buildReferencePipeline(pm);
             })) {
    return error;
  }
  stage("front");

  if (llvm::Error error = runPasses(*module, [](OpPassManager &pm) {
        flash::buildCpuBackendPipeline(pm, flash::CpuBackendOptions());
      }))
    return error;
  stage("backend");

  flash::JitOptions jit;
  jit.keepText = isFlash && (options.has(Dump::LLVM) || options.has(Dump::Asm));
  auto executable = flash::CpuExecutable::compile(*module, entry, jit);
  if (!executable)
    return executable.takeError();
  flash::CompileTimes times = (*executable)->getTimes();
  program.times.append({{"translate", times.translate},
                        {"optimize", times.optimize},
                        {"codegen", times.codegen},
                        {"link", times.link}});
  if (isFlash) {
    dump(Dump::LLVM, (*executable)->getLLVMIR(), options);
    dump(Dump::Asm, (*executable)->getAssembly(), options);
  }
  program.executable = std::move(*executable);
  return program;
}
