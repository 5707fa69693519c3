//===- GpuProgram.cpp - A program compiled for GPUs -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/GpuProgram.h"

#include "flash/Compile/RunPasses.h"
#include "flash/Compile/Stopwatch.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Machine/TargetAttr.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Target/Host/HostCode.h"
#include "flash/Target/Nvptx/BuildHostProgram.h"
#include "flash/Target/Nvptx/Ptx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::compile;
using llvm::createStringError;
using llvm::formatv;

llvm::StringRef GpuProgram::Module::getImage() const {
  return cubin ? llvm::StringRef(cubin->bytes.data(), cubin->bytes.size())
               : llvm::StringRef(ptx);
}

/// The schedules of the attentions, which level 1 has in pieces.
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
                                const CompileOptions &options,
                                GpuProgram &program) {
  bool isBlocks = isBlockLevel(module);
  if (isBlocks) {
    program.level0 = module.clone();
    auto target =
        module->getAttrOfType<flash::TargetAttr>(flash::TargetAttr::name);
    // A program of kernels alone may not know the dialect.
    module.getContext()->getOrLoadDialect<flash::FlashDialect>();
    if (!target)
      module->setAttr(flash::TargetAttr::name,
                      flash::TargetAttr::get(module.getContext(),
                                             options.target.getMachine()));
    else if (target.getMachine().name != program.gpu)
      return createStringError(
          formatv("the program is at level 2, for {0} (flash.target of its "
                  "module); use --target={0}",
                  target.getMachine().name));
  }
  flash::FrontOptions front;
  setSchedule(front, program.gpu, module, options);
  if (variant != Variant::Flash)
    front.versions = "";
  program.versions = front.versions;
  Stopwatch watch;
  auto after = [&](StringRef name) {
    program.times.emplace_back(name, watch.lap());
    if (name == "l0")
      program.level0 = module.clone();
    if (name == "l1")
      program.schedules = getSchedules(module);
  };
  return runStages(module, flash::getGpuStages(variant, front, isBlocks),
                   options, after);
}

static llvm::Error compileHost(func::FuncOp function, GpuProgram &program) {
  Stopwatch watch;
  auto built = flash::buildHostProgram(function);
  if (failed(built))
    return createStringError(
        formatv("@{0} computes what no GPU target can launch yet",
                function.getSymName()));
  program.host = std::move(built->program);
  llvm::raw_string_ostream(program.hostText) << *built->module;
  auto object = flash::compileHostCode(*built->module);
  if (!object)
    return object.takeError();
  program.hostObject = std::move(*object);
  if (llvm::Error error = flash::linkHostCode(program.host, program.hostObject))
    return error;
  program.times.emplace_back("host", watch.lap());
  return llvm::Error::success();
}

llvm::Expected<GpuProgram> GpuProgram::compile(ModuleOp source, StringRef entry,
                                               Variant variant,
                                               const CompileOptions &options) {
  GpuProgram program;
  program.gpu = options.target.gpu.str();
  OwningOpRef<ModuleOp> module = copyProgram(source, entry);
  auto func = module->lookupSymbol<func::FuncOp>(entry);
  for (Type type : func.getResultTypes())
    program.resultTypes.push_back(
        *getDType(cast<ShapedType>(type).getElementType()));
  if (llvm::Error error = runGpuPasses(*module, variant, options, program))
    return error;

  flash::PtxOptions ptxOptions;
  ptxOptions.chip = program.gpu;
  SmallVector<std::future<llvm::Expected<flash::PtxText>>> texts;
  for (auto gpuModule : module->getOps<gpu::GPUModuleOp>())
    texts.push_back(flash::startPtx(gpuModule, ptxOptions));
  // Beside the kernels, which take longer.
  func = module->lookupSymbol<func::FuncOp>(entry);
  llvm::Error failure = compileHost(func, program);

  flash::PtxTimes times;
  for (auto [gpuModule, text] :
       llvm::zip_equal(module->getOps<gpu::GPUModuleOp>(), texts)) {
    auto ptx = text.get();
    if (!ptx) {
      failure = llvm::joinErrors(std::move(failure), ptx.takeError());
      continue;
    }
    times.translate += ptx->times.translate;
    times.optimize += ptx->times.optimize;
    times.codegen += ptx->times.codegen;
    dump(Dump::Ptx, ptx->text, options);
    program.modules.push_back(
        {gpuModule.getName().str(), std::move(ptx->text), std::nullopt});
  }
  if (failure)
    return std::move(failure);
  program.times.append({{"translate", times.translate},
                        {"optimize", times.optimize},
                        {"codegen", times.codegen}});
  return program;
}

llvm::Error GpuProgram::runPtxas(StringRef chip) {
  Stopwatch watch;
  for (Module &module : modules) {
    auto cubin = flash::runPtxas(module.ptx, chip);
    if (!cubin)
      return cubin.takeError();
    module.cubin = std::move(*cubin);
  }
  times.emplace_back("ptxas", watch.lap());
  return llvm::Error::success();
}
