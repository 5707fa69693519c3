//===- Kernel.cpp - A compiled function -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Kernel.h"

#include "CpuExecutor.h"
#include "RunPasses.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Run/Reference.h"
#include "flash/Run/Stopwatch.h"
#include "flash/Target/Cpu/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

bool flash::run::isBlockLevel(ModuleOp program) {
  return program.walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

llvm::Error Kernel::runFront(ModuleOp module, Variant variant,
                             const Options &options) {
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build, Dump dump,
                 StringRef name) -> llvm::Error {
    if (llvm::Error error = runPasses(module, build))
      return error;
    if (options.has(dump))
      print(module, name);
    return llvm::Error::success();
  };
  auto emulate = [&] {
    return run(buildEmulatePipeline, Dump::Linalg, "linalg");
  };
  if (isBlockLevel(module)) {
    level0 = module.clone();
    if (options.target != Target::Emulate)
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func); use --target=emulate or "
                               "a GPU target");
    if (options.has(Dump::L0) || options.has(Dump::L1))
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func): there is no level above to "
                               "dump");
    if (options.has(Dump::L2))
      print(module, "l2");
    return emulate();
  }

  // What is emulated is what the GPU runs.
  bool emulates = options.target == Target::Emulate;
  FrontOptions front;
  setSchedule(front, emulates ? getName(options.emulated) : "cpu", module,
              options);
  auto recognize = [](OpPassManager &pm) {
    pm.addPass(createSymbolDCEPass());
    buildRecognizePipeline(pm);
  };
  if (llvm::Error error = run(recognize, Dump::L0, "l0"))
    return error;
  level0 = module.clone();
  auto tile = [&](OpPassManager &pm) {
    if (variant == Variant::Naive)
      return buildNaiveTilePipeline(pm);
    buildTilePipeline(pm, front);
    if (options.countTiles)
      pm.addPass(createCountTiles());
  };
  if (llvm::Error error = run(tile, Dump::L1, "l1"))
    return error;
  if (!emulates)
    return run(buildDecomposePipeline, Dump::Linalg, "linalg");
  if (llvm::Error error = run(buildBlockPipeline, Dump::L2, "l2"))
    return error;
  return emulate();
}

llvm::Expected<Kernel> Kernel::compile(ModuleOp program, StringRef entry,
                                       Variant variant,
                                       const Options &options) {
  Kernel kernel;
  bool isFlash = variant == Variant::Flash;
  bool emulates =
      options.target == Target::Emulate && variant != Variant::Reference;
  if (emulates)
    kernel.target = Target::Emulate;
  OwningOpRef<ModuleOp> module = copyProgram(program, entry);
  Stopwatch watch;
  auto stage = [&](StringRef name) {
    kernel.times.emplace_back(name, watch.lap());
  };

  auto func = module->lookupSymbol<func::FuncOp>(entry);
  if (variant == Variant::Reference)
    returnLogSumExp(func);
  SmallVector<DType> resultTypes;
  for (Type type : func.getResultTypes()) {
    DType dtype = *getDType(cast<ShapedType>(type).getElementType());
    resultTypes.push_back(
        variant == Variant::Reference && isFloat(dtype) ? DType::F64 : dtype);
  }

  if (isFlash || emulates) {
    if (llvm::Error error = kernel.runFront(*module, variant, options))
      return error;
  } else if (llvm::Error error = runPasses(*module, [&](OpPassManager &pm) {
               pm.addPass(createSymbolDCEPass());
               if (variant == Variant::Naive)
                 buildNaivePipeline(pm, NaiveOptions());
               else
                 buildReferencePipeline(pm);
             })) {
    return error;
  }
  stage("front");

  if (llvm::Error error = runPasses(*module, [](OpPassManager &pm) {
        buildCpuBackendPipeline(pm, CpuBackendOptions());
      }))
    return error;
  stage("backend");

  JitOptions jit;
  jit.keepText = isFlash && (options.has(Dump::LLVM) || options.has(Dump::Asm));
  auto executable = CpuExecutable::compile(*module, entry, jit);
  if (!executable)
    return executable.takeError();
  CompileTimes times = (*executable)->getTimes();
  kernel.times.append({{"translate", times.translate},
                       {"optimize", times.optimize},
                       {"codegen", times.codegen},
                       {"link", times.link}});
  if (isFlash && options.has(Dump::LLVM))
    llvm::outs() << "; flash-run: llvm\n" << (*executable)->getLLVMIR();
  if (isFlash && options.has(Dump::Asm))
    llvm::outs() << "# flash-run: asm\n" << (*executable)->getAssembly();
  kernel.executor =
      std::make_unique<CpuExecutor>(std::move(*executable), resultTypes);
  return kernel;
}

llvm::Expected<Kernel> Kernel::load(GpuProgram program, Gpu &gpu,
                                    const Options &options) {
  auto executor = loadOnGpu(program, gpu, options);
  if (!executor)
    return executor.takeError();
  Kernel kernel;
  kernel.executor = std::move(*executor);
  kernel.target = program.target;
  kernel.level0 = std::move(program.level0);
  kernel.times = std::move(program.times);
  return kernel;
}

llvm::Expected<Kernel> Kernel::compileApart(const DialectRegistry &registry,
                                            StringRef text, Variant variant,
                                            Target target, Gpu &gpu,
                                            const Options &options) {
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  auto program = loadProgram(*context, llvm::MemoryBuffer::getMemBuffer(text),
                             options, llvm::nulls());
  if (!program)
    return program.takeError();
  Options named = options;
  if (named.device.empty())
    named.device = gpu.device.getInfo().name;
  auto compiled = GpuProgram::compile(
      *program->module, program->entry.getSymName(), variant, target, named);
  if (!compiled)
    return compiled.takeError();
  auto kernel = load(std::move(*compiled), gpu, options);
  if (!kernel)
    return kernel.takeError();
  kernel->context = std::move(context);
  return std::move(*kernel);
}
