//===- Checks.cpp - What cannot become PTX --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

Error flash::checkOperations(mlir::Operation *module, StringRef chip) {
  auto offered =
      mlir::NVVM::NVVMCheckSMVersion::getTargetSMVersionFromStr(chip);
  Error error = Error::success();
  module->walk([&](mlir::NVVM::RequiresSMInterface op) {
    mlir::NVVM::NVVMCheckSMVersion needed = op.getRequiredMinSMVersion();
    if (needed.isCompatibleWith(offered))
      return mlir::WalkResult::advance();
    consumeError(std::move(error));
    error = createStringError(formatv(
        "'{0}' needs sm_{1:$[a or sm_]}{2}, but the code is for {3}",
        op->getName(),
        make_range(needed.smVersionList.begin(), needed.smVersionList.end()),
        needed.archAccelerated ? "a" : " or later", chip));
    return mlir::WalkResult::interrupt();
  });
  return error;
}

/// LLVM's code generator makes a load that is only stored again a copy where
/// the store is, from 128 bytes on (NVPTXLowerAggrCopies), behind any barrier
/// in between.
static Error checkLoad(const LoadInst &load) {
  constexpr unsigned maxBytes = 64;
  uint64_t bytes = load.getDataLayout().getTypeStoreSize(load.getType());
  if (bytes <= maxBytes)
    return Error::success();
  std::string text;
  raw_string_ostream(text) << *load.getType();
  return createStringError(
      formatv("@{0} loads {1}, which is {2} bytes at once; "
              "load at most {3} bytes",
              load.getFunction()->getName(), text, bytes, maxBytes));
}

/// Says for which functions of the language C LLVM would want a library.
static bool needsLibrary(const CallInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::cos:
  case Intrinsic::sin:
  case Intrinsic::tanh:
    return !call.hasApproxFunc();
  case Intrinsic::acos:
  case Intrinsic::asin:
  case Intrinsic::atan:
  case Intrinsic::atan2:
  case Intrinsic::cosh:
  case Intrinsic::exp:
  case Intrinsic::exp10:
  case Intrinsic::log:
  case Intrinsic::log10:
  case Intrinsic::log2:
  case Intrinsic::pow:
  case Intrinsic::powi:
  case Intrinsic::sinh:
  case Intrinsic::tan:
    return true;
  default:
    return false;
  }
}

static Error checkCall(const CallInst &call) {
  const Function *callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration())
    return Error::success();
  StringRef caller = call.getFunction()->getName();
  if (!callee->isIntrinsic())
    return createStringError(formatv("@{0} calls @{1}, which has no body",
                                     caller, callee->getName()));
  if (needsLibrary(call))
    return createStringError(
        formatv("@{0} calls {1}, for which there is no instruction; there are "
                "llvm.exp2 and, with the flag afn, llvm.sin, llvm.cos and "
                "llvm.tanh",
                caller, callee->getName()));
  return Error::success();
}

Error flash::checkModule(const Module &module) {
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function)) {
      if (const auto *load = dyn_cast<LoadInst>(&instruction))
        if (Error error = checkLoad(*load))
          return error;
      if (const auto *call = dyn_cast<CallInst>(&instruction))
        if (Error error = checkCall(*call))
          return error;
    }
  return Error::success();
}
