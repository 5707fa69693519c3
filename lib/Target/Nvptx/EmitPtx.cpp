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

/// A module and what it refers to, in the order of destruction.
struct Compilation {
  LLVMContext context;
  std::unique_ptr<TargetMachine> machine;
  std::unique_ptr<Module> module;
  std::string firstError;
};

Error checkOperations(mlir::Operation *module, StringRef chip) {
  auto offered = mlir::NVVM::NVVMCheckSMVersion::getTargetSMVersionFromStr(chip);
  Error error = Error::success();
  module->walk([&](mlir::NVVM::RequiresSMInterface op) {
    mlir::NVVM::NVVMCheckSMVersion needed = op.getRequiredMinSMVersion();
    if (needed.isCompatibleWith(offered))
      return mlir::WalkResult::advance();
    consumeError(std::move(error));
    error = createStringError(
        formatv("'{0}' needs sm_{1:$[a or sm_]}{2}, but the code is for {3}",
                op->getName(),
                make_range(needed.smVersionList.begin(),
                           needed.smVersionList.end()),
                needed.archAccelerated ? "a" : " or later", chip));
    return mlir::WalkResult::interrupt();
  });
  return error;
}

/// Types of the LLVM dialect get their alignment from the data layout during
/// translation, so the module must carry it by then.
std::unique_ptr<Module> translate(mlir::Operation *op, LLVMContext &context,
                                  const TargetMachine &machine) {
  StringRef name = mlir::LLVM::LLVMDialect::getDataLayoutAttrName();
  mlir::Attribute previous = op->getDiscardableAttr(name);
  std::string layout = machine.createDataLayout().getStringRepresentation();
  op->setDiscardableAttr(name,
                         mlir::StringAttr::get(op->getContext(), layout));
  std::unique_ptr<Module> module = mlir::translateModuleToLLVMIR(op, context);
  if (previous)
    op->setDiscardableAttr(name, previous);
  else
    op->removeDiscardableAttr(name);
  if (module)
    module->setTargetTriple(machine.getTargetTriple());
  return module;
}

/// Flushing denormal numbers is what `ex2.approx.ftz` and its like ask for.
/// Calls that LLVM knows nothing about may name all threads of a warp, so they
/// must not move to where only some of them come: neither inline assembly nor
/// mma.sync says so by itself.
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

/// LLVM's code generator makes a load that is only stored again a copy in the
/// place of the store from 128 bytes on (NVPTXLowerAggrCopies), behind any
/// barrier in between.
Error checkLoads(const Module &module) {
  constexpr unsigned maxBytes = 64;
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function)) {
      if (!isa<LoadInst>(instruction))
        continue;
      Type *type = instruction.getType();
      uint64_t bytes = module.getDataLayout().getTypeStoreSize(type);
      if (bytes <= maxBytes)
        continue;
      std::string text;
      raw_string_ostream(text) << *type;
      return createStringError(
          formatv("@{0} loads {1}, which is {2} bytes at once; load at most "
                  "{3} bytes",
                  function.getName(), text, bytes, maxBytes));
    }
  return Error::success();
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

Expected<flash::PtxText> flash::emitPtx(mlir::Operation *module,
                                        const PtxOptions &options) {
  Expected<unsigned> version = getPtxVersion(options);
  if (!version)
    return version.takeError();
  if (Error error = checkOperations(module, options.chip))
    return std::move(error);
  PtxText result;
  auto start = std::chrono::steady_clock::now();
  auto lap = [&] {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(start, now))
        .count();
  };

  auto compilation = std::make_unique<Compilation>();
  compilation->context.setDiagnosticHandlerCallBack(keepFirstError,
                                                    &compilation->firstError);
  Expected<std::unique_ptr<TargetMachine>> machine =
      createNvptxMachine(options.chip, *version);
  if (!machine)
    return machine.takeError();
  compilation->machine = std::move(*machine);
  compilation->module =
      translate(module, compilation->context, *compilation->machine);
  if (!compilation->module)
    return createStringError("the module has no translation to LLVM IR; it must "
                             "be in the llvm and nvvm dialects");
  if (Error error = checkLoads(*compilation->module))
    return std::move(error);
  setAttributes(*compilation->module);
  result.times.translate = lap();

  Error failure = runRecoverably([&] {
    optimizeForNvptx(*compilation->module, *compilation->machine);
    result.times.optimize = lap();
    if (options.keepLLVMIR)
      raw_string_ostream(result.llvmIR) << *compilation->module;
    lap();
    generate(*compilation, result.text);
    result.times.codegen = lap();
  });
  auto describe = [&](StringRef why) {
    return createStringError(
        formatv("LLVM cannot generate PTX {0}.{1} for {2}: {3}", *version / 10,
                *version % 10, options.chip, why));
  };
  if (failure) {
    // Passes that were abandoned midway still watch the module.
    static_cast<void>(compilation.release());
    return describe(toString(std::move(failure)));
  }
  if (!compilation->firstError.empty())
    return describe(compilation->firstError);
  return result;
}
