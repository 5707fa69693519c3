//===- GpuProgram.cpp - A program compiled for GPUs -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/GpuProgram.h"

#include "RunPasses.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Run/Kernel.h"
#include "flash/Run/OutputFile.h"
#include "flash/Run/Stopwatch.h"
#include "flash/Runtime/LaunchPlanHeader.h"
#include "flash/Support/Version.h"
#include "flash/Target/Nvptx/ExtractLaunchPlan.h"
#include "flash/Target/Nvptx/Ptx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;
namespace runtime = flash::runtime;
using llvm::createStringError;
using llvm::formatv;

llvm::StringRef GpuProgram::Module::getImage() const {
  return cubin ? llvm::StringRef(cubin->bytes.data(), cubin->bytes.size())
               : llvm::StringRef(ptx);
}

/// Those of the attentions, which level 1 has in pieces.
static std::vector<std::string> getSchedules(ModuleOp module) {
  std::vector<std::string> schedules;
  llvm::DenseSet<std::pair<Location, flash::ScheduleAttr>> seen;
  module.walk([&](flash::OnlineAttentionOp op) {
    std::optional<flash::ScheduleAttr> schedule = op.getSchedule();
    if (schedule && seen.insert({op.getLoc(), *schedule}).second)
      llvm::raw_string_ostream(schedules.emplace_back()) << *schedule;
  });
  return schedules;
}

/// From the program to the LLVM dialect and host functions on memrefs.
static llvm::Error runGpuPasses(ModuleOp module, Variant variant,
                                const Options &options, GpuProgram &program) {
  Stopwatch watch;
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build,
                 std::optional<Dump> stage, StringRef name) -> llvm::Error {
    if (llvm::Error error = runPasses(module, build))
      return error;
    program.times.emplace_back(name, watch.lap());
    if (stage)
      dump(*stage, module, options);
    return llvm::Error::success();
  };

  auto toThreads = [&]() -> llvm::Error {
    if (llvm::Error error = run(flash::buildThreadPipeline, Dump::L3, "l3"))
      return error;
    // One stage: verifying the kernels takes longer than the host's passes,
    // which leave them alone.
    auto toLLVM = [](OpPassManager &pm) {
      flash::buildThreadToLLVMPipeline(pm);
      flash::buildHostPipeline(pm);
    };
    return run(toLLVM, std::nullopt, "nvvm");
  };
  if (isBlockLevel(module)) {
    program.level0 = module.clone();
    return toThreads();
  }

  flash::FrontOptions front;
  setSchedule(front, getName(program.target), module, options);
  auto recognize = [](OpPassManager &pm) {
    pm.addPass(createSymbolDCEPass());
    flash::buildRecognizePipeline(pm);
  };
  if (llvm::Error error = run(recognize, Dump::L0, "l0"))
    return error;
  program.level0 = module.clone();
  auto tile = [&](OpPassManager &pm) {
    if (variant == Variant::Naive)
      flash::buildNaiveTilePipeline(pm);
    else
      flash::buildTilePipeline(pm, front);
  };
  if (llvm::Error error = run(tile, Dump::L1, "l1"))
    return error;
  program.schedules = getSchedules(module);
  if (llvm::Error error = run(flash::buildBlockPipeline, Dump::L2, "l2"))
    return error;
  return toThreads();
}

llvm::Expected<GpuProgram> GpuProgram::compile(ModuleOp source, StringRef entry,
                                               Variant variant, Target gpu,
                                               const Options &options) {
  GpuProgram program;
  program.target = gpu;
  OwningOpRef<ModuleOp> module = copyProgram(source, entry);
  auto func = module->lookupSymbol<func::FuncOp>(entry);
  for (Type type : func.getResultTypes())
    program.resultTypes.push_back(
        *getDType(cast<ShapedType>(type).getElementType()));
  if (llvm::Error error = runGpuPasses(*module, variant, options, program))
    return error;

  func = module->lookupSymbol<func::FuncOp>(entry);
  auto plan = extractLaunchPlan(func);
  if (failed(plan))
    return createStringError(
        formatv("@{0} computes what no GPU target can launch yet", entry));
  program.plan = std::move(*plan);

  flash::PtxTimes times;
  for (auto gpuModule : module->getOps<gpu::GPUModuleOp>()) {
    flash::PtxOptions ptxOptions;
    ptxOptions.chip = getName(program.target).str();
    auto ptx = flash::emitPtx(gpuModule, ptxOptions);
    if (!ptx)
      return ptx.takeError();
    times.translate += ptx->times.translate;
    times.optimize += ptx->times.optimize;
    times.codegen += ptx->times.codegen;
    dump(Dump::Ptx, ptx->text, options);
    program.modules.push_back(
        {gpuModule.getName().str(), std::move(ptx->text), std::nullopt});
  }
  program.times.append({{"translate", times.translate},
                        {"optimize", times.optimize},
                        {"codegen", times.codegen}});
  return program;
}

llvm::Error GpuProgram::assembleFor(StringRef chip) {
  Stopwatch watch;
  for (Module &module : modules) {
    auto cubin = flash::assemble(module.ptx, chip);
    if (!cubin)
      return cubin.takeError();
    module.cubin = std::move(*cubin);
  }
  times.emplace_back("ptxas", watch.lap());
  return llvm::Error::success();
}

/// The file of a function's kernels, where there are several functions: f.ptx
/// becomes f.name.ptx.
static std::string getImagePath(StringRef output, StringRef function,
                                bool isOnly) {
  if (isOnly)
    return output.str();
  auto [stem, ending] = output.rsplit('.');
  return formatv("{0}.{1}.{2}", stem, function, ending);
}

llvm::Error
flash::run::writeAheadOfTime(llvm::MutableArrayRef<GpuProgram> programs,
                             StringRef text, const Options &options) {
  bool isCubin = StringRef(options.output).ends_with(".cubin");
  auto getImage = [&](const GpuProgram &program) {
    const GpuProgram::Module &module = program.modules.front();
    return isCubin ? module.getImage() : StringRef(module.ptx);
  };
  std::string compiler = formatv("flash-mlir {0}", flash::getVersion());
  std::string header;
  llvm::raw_string_ostream os(header);
  for (GpuProgram &program : programs) {
    if (program.modules.size() != 1)
      return createStringError(
          formatv("-o: @{0} has {1} gpu.modules, and one file holds one",
                  program.plan.name, program.modules.size()));
    if (isCubin && !program.modules.front().cubin)
      if (llvm::Error error = program.assembleFor(getName(program.target)))
        return error;
    runtime::KernelOrigin origin;
    origin.compiler = compiler;
    origin.target = getName(program.target);
    origin.file = options.file == "-" ? "" : StringRef(options.file);
    origin.schedules = program.schedules;
    // Once is enough.
    if (&program == programs.begin())
      origin.program = text;
    else
      os << "\n";
    if (llvm::Error error = runtime::printCHeader(
            program.plan, program.plan.name,
            {/*isEmbedded=*/true, getImage(program)}, origin, os))
      return error;
  }
  for (GpuProgram &program : programs)
    if (llvm::Error error =
            writeFile(getImagePath(options.output, program.plan.name,
                                   programs.size() == 1),
                      [&](llvm::raw_ostream &os) { os << getImage(program); }))
      return error;
  return writeFile(options.header,
                   [&](llvm::raw_ostream &os) { os << header; });
}
