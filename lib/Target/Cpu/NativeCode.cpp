//===- NativeCode.cpp - Code for the processor of this process ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/NativeCode.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <variant>

using namespace llvm;

/// Detects the host once.
static Expected<orc::JITTargetMachineBuilder> detectHost() {
  static const auto host =
      []() -> std::variant<orc::JITTargetMachineBuilder, std::string> {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    Expected<orc::JITTargetMachineBuilder> host =
        orc::JITTargetMachineBuilder::detectHost();
    if (host)
      return *host;
    return toString(host.takeError());
  }();
  if (auto *builder = std::get_if<orc::JITTargetMachineBuilder>(&host))
    return *builder;
  return createStringError(std::get<std::string>(host));
}

Expected<std::unique_ptr<TargetMachine>>
flash::createNativeMachine(CodeGenOptLevel level) {
  Expected<orc::JITTargetMachineBuilder> host = detectHost();
  if (!host)
    return host.takeError();
  host->setCodeGenOptLevel(level);
  return host->createTargetMachine();
}

Error flash::emitNativeCode(Module &module, TargetMachine &machine,
                            CodeGenFileType type,
                            SmallVectorImpl<char> &output) {
  raw_svector_ostream stream(output);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return createStringError("this target cannot emit code");
  passes.run(module);
  return Error::success();
}

Expected<std::unique_ptr<orc::LLJIT>>
flash::linkNativeCode(StringRef object, ArrayRef<NativeSymbol> symbols) {
  Expected<orc::JITTargetMachineBuilder> host = detectHost();
  if (!host)
    return host.takeError();
  // Threads take longer to start than this takes.
  auto control = orc::SelfExecutorProcessControl::Create(
      nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
  if (!control)
    return control.takeError();
  // No code runs when it is loaded or unloaded, and none is compiled here.
  Expected<std::unique_ptr<orc::LLJIT>> jit =
      orc::LLJITBuilder()
          .setExecutorProcessControl(std::move(*control))
          .setJITTargetMachineBuilder(*host)
          .setPlatformSetUp(orc::setUpInactivePlatform)
          .create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &library = (*jit)->getMainJITDylib();
  orc::MangleAndInterner mangle((*jit)->getExecutionSession(),
                                (*jit)->getDataLayout());
  orc::SymbolMap map;
  for (const NativeSymbol &symbol : symbols)
    map[mangle(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                JITSymbolFlags::Exported |
                                    JITSymbolFlags::Callable};
  if (Error error = library.define(orc::absoluteSymbols(std::move(map))))
    return std::move(error);
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      (*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  if (Error error =
          (*jit)->addObjectFile(MemoryBuffer::getMemBufferCopy(object)))
    return std::move(error);
  return jit;
}

Expected<void *> flash::lookUpNativeCode(orc::LLJIT &jit, StringRef name) {
  Expected<orc::ExecutorAddr> address = jit.lookup(name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}
