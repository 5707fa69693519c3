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

/// The target machine of LLVM for the processor of this process.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createNativeMachine(llvm::CodeGenOptLevel level);

/// Compiles a module of LLVM IR, and appends the object file or the assembly to
/// `output`. May change the module.
llvm::Error emitNativeCode(llvm::Module &module, llvm::TargetMachine &machine,
                           llvm::CodeGenFileType type,
                           llvm::SmallVectorImpl<char> &output);

/// A function of this process that loaded code may call. The address is given,
/// so that no tool needs to export symbols.
struct NativeSymbol {
  template <typename Function>
  NativeSymbol(llvm::StringRef name, Function *function)
      : name(name), address(reinterpret_cast<void *>(function)) {}

  llvm::StringRef name;
  void *address;
};

/// Loads the bytes of an object file, which are copied. Its code may call
/// `symbols`, and functions that the process exports, such as the ones of libm.
/// The code is valid as long as the result.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
linkNativeCode(llvm::StringRef object, llvm::ArrayRef<NativeSymbol> symbols);

/// The address of a function of the loaded object file. Fails if there is no
/// such function, or if a function that the file calls is missing.
llvm::Expected<void *> lookUpNativeCode(llvm::orc::LLJIT &jit,
                                        llvm::StringRef name);

} // namespace flash

#endif // FLASH_TARGET_CPU_NATIVECODE_H
