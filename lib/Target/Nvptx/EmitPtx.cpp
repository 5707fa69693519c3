//===- EmitPtx.cpp - From the LLVM dialect to PTX -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Target/TargetMachine.h"
#include <chrono>

using namespace llvm;

namespace {

using Clock = std::chrono::steady_clock;

/// A module and what it refers to, in the order of destruction.
struct Compilation {
  /// The seconds since the last call.
  double lap() {
    Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(start, now))
        .count();
  }

  LLVMContext context;
  std::unique_ptr<TargetMachine> machine;
  std::unique_ptr<Module> module;
  unsigned version;
  std::string firstError;
  flash::PtxTimes times;
  Clock::time_point start = Clock::now();
};

/// Types of the LLVM dialect get their alignment from the data layout during
/// translation, so the module must carry it by then.
std::unique_ptr<Module> translate(mlir::Operation *op, LLVMContext &context,
                                  const TargetMachine &machine) {
  StringRef name = mlir::LLVM::LLVMDialect::getDataLayoutAttrName();
  mlir::Attribute previous = op->getDiscardableAttr(name);
  std::string layout = machine.createDataLayout().getStringRepresentation();
  op->setDiscardableAttr(name, mlir::StringAttr::get(op->getContext(), layout));
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(op, context);
  if (previous)
    op->setDiscardableAttr(name, previous);
  else
    op->removeDiscardableAttr(name);
  if (module)
    module->setTargetTriple(machine.getTargetTriple());
  return module;
}

/// Instructions like `ex2.approx.ftz` need denormal numbers to be flushed.
/// Calls that LLVM may not speculate can be meant for all threads of a warp or
/// block at once. Neither inline assembly nor mma.sync says so by itself, and
/// simplifycfg would give each way to a barrier a barrier of its own.
void setAttributes(Module &module) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!function.hasFnAttribute("denormal-fp-math-f32"))
      function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallBase>(&instruction))
        if (!call->hasFnAttr(Attribute::Speculatable))
          call->setConvergent();
  }
}

void keepFirstError(const DiagnosticInfo *info, void *message) {
  auto &text = *static_cast<std::string *>(message);
  if (info->getSeverity() != DS_Error || !text.empty())
    return;
  raw_string_ostream stream(text);
  DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

void generate(Compilation &compilation, std::string &result) {
  SmallVector<char, 0> text;
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  // Fails for targets without an assembly printer, which this one has.
  [[maybe_unused]] bool failed = compilation.machine->addPassesToEmitFile(
      passes, stream, nullptr, CodeGenFileType::AssemblyFile);
  assert(!failed);
  passes.run(*compilation.module);
  result.assign(text.begin(), text.end());
}

} // namespace

void flash::registerNvptxDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

/// From MLIR to LLVM.
static Expected<std::unique_ptr<Compilation>>
prepare(mlir::Operation *module, const flash::PtxOptions &options) {
  Expected<unsigned> version = flash::getPtxVersion(options);
  if (!version)
    return version.takeError();
  if (Error error = flash::checkOperations(module, options.chip))
    return std::move(error);
  auto compilation = std::make_unique<Compilation>();
  compilation->version = *version;
  // To name values takes a third of the time that optimizing them does.
  compilation->context.setDiscardValueNames(true);
  compilation->context.setDiagnosticHandlerCallBack(keepFirstError,
                                                    &compilation->firstError);
  Expected<std::unique_ptr<TargetMachine>> machine =
      flash::createNvptxMachine(options.chip, *version);
  if (!machine)
    return machine.takeError();
  compilation->machine = std::move(*machine);
  compilation->module =
      translate(module, compilation->context, *compilation->machine);
  if (!compilation->module)
    return createStringError(
        "the module has no translation to LLVM IR; it must "
        "be in the llvm and nvvm dialects");
  if (Error error = flash::checkModule(*compilation->module))
    return std::move(error);
  setAttributes(*compilation->module);
  compilation->times.translate = compilation->lap();
  return std::move(compilation);
}

static Expected<flash::PtxText>
finish(Expected<std::unique_ptr<Compilation>> prepared) {
  if (!prepared)
    return prepared.takeError();
  std::unique_ptr<Compilation> compilation = std::move(*prepared);
  std::string text;
  Error failure = flash::runRecoverably([&] {
    flash::optimizeForNvptx(*compilation->module, *compilation->machine);
    compilation->times.optimize = compilation->lap();
    generate(*compilation, text);
    compilation->times.codegen = compilation->lap();
  });
  auto describe =
      [version = compilation->version,
       chip = compilation->machine->getTargetCPU().str()](StringRef why) {
        return createStringError(
            formatv("LLVM cannot generate PTX {0}.{1} for {2}: {3}",
                    version / 10, version % 10, chip, why));
      };
  if (failure) {
    // Passes that were abandoned midway still watch the module.
    static_cast<void>(compilation.release());
    return describe(toString(std::move(failure)));
  }
  if (!compilation->firstError.empty())
    return describe(compilation->firstError);
  return flash::PtxText{std::move(text), compilation->times};
}

Expected<flash::PtxText> flash::emitPtx(mlir::Operation *module,
                                        const PtxOptions &options) {
  return finish(prepare(module, options));
}

std::future<Expected<flash::PtxText>>
flash::startPtx(mlir::Operation *module, const PtxOptions &options) {
  // Where no thread can be started, whoever waits does the work.
  return std::async(std::launch::async | std::launch::deferred,
                    [prepared = prepare(module, options)]() mutable {
                      return finish(std::move(prepared));
                    });
}
