//===- NativeCode.h - Code for the processor of this process ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_CPU_NATIVECODE_H
#define FLASH_TARGET_CPU_NATIVECODE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm {
class Module;
class TargetMachine;
namespace orc {
class LLJIT;
} // namespace orc
} // namespace llvm

namespace flash {

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createNativeMachine(llvm::CodeGenOptLevel level);

/// Appends an object or assembly file.
llvm::Error emitNativeCode(llvm::Module &module, llvm::TargetMachine &machine,
                           llvm::CodeGenFileType type,
                           llvm::SmallVectorImpl<char> &output);

/// A function that code calls. It is given by address, so that no tool needs to
/// export symbols.
struct NativeSymbol {
  template <typename Function>
  NativeSymbol(llvm::StringRef name, Function *function)
      : name(name), address(reinterpret_cast<void *>(function)) {}

  llvm::StringRef name;
  void *address;
};

/// Loads an object file, which may also call what the process exports, such as
/// libm.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
linkNativeCode(llvm::StringRef object, llvm::ArrayRef<NativeSymbol> symbols);

/// The address of a function in it.
llvm::Expected<void *> lookUpNativeCode(llvm::orc::LLJIT &jit,
                                        llvm::StringRef name);

} // namespace flash

#endif // FLASH_TARGET_CPU_NATIVECODE_H
