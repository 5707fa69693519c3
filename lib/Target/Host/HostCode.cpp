//===- HostCode.cpp - Host programs as machine code and C -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Host/HostCode.h"

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Runtime/HostCall.h"
#include "flash/Target/Cpu/NativeCode.h"
#include "flash/Target/Host/Passes.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/Cpp/CppEmitter.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using llvm::createStringError;

/// Not that of the program, which might be that of a function it calls.
static constexpr llvm::StringLiteral functionName = "flash_host_program";

static llvm::Error lower(ModuleOp module,
                         llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addPass(flash::createHostExpandChecked());
  build(pm);
  if (succeeded(pm.run(module)))
    return llvm::Error::success();
  return createStringError("the host program cannot be lowered");
}

llvm::Expected<std::string> flash::compileHostCode(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (auto function : copy->getOps<func::FuncOp>())
    function.setName(functionName);
  llvm::Error error = lower(*copy, [](OpPassManager &pm) {
    pm.addPass(createSCFToControlFlowPass());
    pm.addPass(createConvertHostToLLVM());
  });
  if (error)
    return std::move(error);
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(*copy, context);
  if (!code)
    return createStringError("translation of the host program to LLVM IR "
                             "failed");
  // It takes a fraction of a microsecond as it is.
  auto machine = createNativeMachine(llvm::CodeGenOptLevel::None);
  if (!machine)
    return machine.takeError();
  code->setDataLayout((*machine)->createDataLayout());
  code->setTargetTriple((*machine)->getTargetTriple());
  SmallVector<char, 0> object;
  if (llvm::Error error = emitNativeCode(
          *code, **machine, llvm::CodeGenFileType::ObjectFile, object))
    return std::move(error);
  return std::string(object.begin(), object.end());
}

llvm::Error flash::linkHostCode(runtime::HostProgram &program,
                                llvm::StringRef object) {
  static const NativeSymbol symbols[] = {
      {"flash_host_fail", &flash_host_fail},
      {"flash_host_allocate", &flash_host_allocate},
      {"flash_host_mark", &flash_host_mark},
      {"flash_host_release", &flash_host_release},
      {"flash_host_launch", &flash_host_launch},
  };
  auto jit = linkNativeCode(object, symbols);
  if (!jit)
    return jit.takeError();
  auto function = lookUpNativeCode(**jit, functionName);
  if (!function)
    return function.takeError();
  program.function = reinterpret_cast<runtime::HostFunction>(*function);
  program.code = std::shared_ptr<llvm::orc::LLJIT>(std::move(*jit));
  return llvm::Error::success();
}

llvm::Expected<std::string> flash::printHostCode(llvm::StringRef module,
                                                 llvm::StringRef prefix) {
  DialectRegistry registry;
  registry.insert<host::HostDialect, func::FuncDialect, scf::SCFDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto parsed = parseSourceString<ModuleOp>(module, &context);
  if (!parsed)
    return createStringError("the host program cannot be read");
  llvm::Error error = lower(*parsed, [&](OpPassManager &pm) {
    ConvertHostToEmitCOptions options;
    options.prefix = prefix.str();
    pm.addPass(createConvertHostToEmitC(options));
  });
  if (error)
    return std::move(error);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(emitc::translateToCpp(*parsed, os)))
    return createStringError("the host program cannot be printed as C");
  return text;
}
