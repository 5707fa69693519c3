//===- CpuProgram.cpp - A program compiled for this machine ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/CpuProgram.h"

#include "flash/Compile/Reference.h"
#include "flash/Compile/RunPasses.h"
#include "flash/Compile/Stopwatch.h"
#include "flash/Pipelines/Pipelines.h"

using namespace mlir;
using namespace flash::compile;
using llvm::createStringError;

/// Why a program at level 2 cannot be compiled so; success if it can.
static llvm::Error checkBlockLevel(const CompileOptions &options) {
  if (options.target != Target::Emulate)
    return createStringError("the program is at level 2 (it has a "
                             "gpu.launch_func); use --target=emulate or "
                             "a GPU target");
  if (options.has(Dump::L0) || options.has(Dump::L1))
    return createStringError("the program is at level 2 (it has a "
                             "gpu.launch_func): there is no level above to "
                             "dump");
  return llvm::Error::success();
}

llvm::Expected<CpuProgram> CpuProgram::compile(ModuleOp source, StringRef entry,
                                               Variant variant,
                                               const CompileOptions &options) {
  CpuProgram program;
  bool isFlash = variant == Variant::Flash;
  bool emulates =
      options.target == Target::Emulate && variant != Variant::Reference;
  if (emulates)
    program.target = options.target;
  OwningOpRef<ModuleOp> module = copyProgram(source, entry);
  Stopwatch watch;
  auto stage = [&](StringRef name) {
    program.times.emplace_back(name, watch.lap());
  };

  auto func = module->lookupSymbol<func::FuncOp>(entry);
  if (variant == Variant::Reference && !options.isReference) {
    // A check needs more.
    inlineCalls(func);
    addReferenceResults(func);
  }
  for (Type type : func.getResultTypes()) {
    DType dtype = *getDType(cast<ShapedType>(type).getElementType());
    program.resultTypes.push_back(
        variant == Variant::Reference && isPromoted(dtype) ? DType::F64
                                                           : dtype);
  }

  bool isBlocks = isBlockLevel(*module);
  if (isBlocks && (isFlash || emulates)) {
    program.level0 = module->clone();
    if (llvm::Error error = checkBlockLevel(options))
      return std::move(error);
    dump(Dump::L2, *module, options);
  }
  // What is emulated is what the GPU runs.
  flash::FrontOptions front;
  if (isFlash)
    setSchedule(front, emulates ? options.target.getMachine().name : "cpu",
                *module, options);
  SmallVector<flash::Stage> stages =
      emulates ? flash::getEmulationStages(variant, front, isBlocks)
               : flash::getCpuStages(variant, front, isTileLevel(*module));
  auto after = [&](StringRef name) {
    if (name == "l0")
      program.level0 = module->clone();
    // What is in front of the linalg has names of its own on GPUs only.
    if (name == "linalg")
      stage("front");
  };
  // If one run has several programs, the first alone is printed.
  bool isPrinted = isFlash || emulates || options.isReference;
  if (llvm::Error error = runStages(
          *module, stages, isPrinted ? options : CompileOptions(), after))
    return std::move(error);
  stage("backend");

  flash::JitOptions jit;
  // Who emulates a program runs it a few times, with small sizes.
  jit.optimize =
      !emulates && (variant != Variant::Reference || options.optimizeReference);
  jit.keepText =
      isPrinted && (options.has(Dump::LLVM) || options.has(Dump::Asm));
  auto executable = flash::CpuExecutable::compile(*module, entry, jit);
  if (!executable)
    return executable.takeError();
  flash::CompileTimes times = (*executable)->getTimes();
  program.times.append({{"translate", times.translate},
                        {"optimize", times.optimize},
                        {"codegen", times.codegen},
                        {"link", times.link}});
  if (isPrinted) {
    dump(Dump::LLVM, (*executable)->getLLVMIR(), options);
    dump(Dump::Asm, (*executable)->getAssembly(), options);
  }
  program.executable = std::move(*executable);
  return program;
}
