//===- Kernel.h - What the handles of the C library point to ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CAPI_KERNEL_H
#define FLASH_LIB_CAPI_KERNEL_H

#include "flash-c/Flash.h"
#include "flash/Compile/CpuProgram.h"
#include "flash/Compile/LoadedProgram.h"
#include "flash/Compile/Program.h"
#include <mutex>

/// A compiled program, of either kind, and what it was made from.
struct FlashKernel {
  struct Type {
    flash::compile::DType element;
    llvm::SmallVector<int64_t, 4> sizes;
  };

  std::string text, target, function, schedule, versions, device, tuningFile;
  int64_t multiprocessors = 0;
  /// From the options of a caller, while it waits.
  int (*isInterrupted)() = nullptr;
  /// The options that flash-run has, too.
  flash::compile::CompileOptions options;
  std::vector<Type> arguments, results;

  /// One of the two.
  std::unique_ptr<flash::CpuExecutable> executable;
  std::optional<flash::compile::GpuProgram> program;

  /// What was given to callers, by stage.
  std::map<std::string, std::string> stages;
  std::string serialized;

  std::mutex mutex; // Guards the member below.
  /// By device.
  std::map<int, std::shared_ptr<flash::compile::LoadedProgram>> loaded;

  /// Takes the options of a caller, which are checked.
  llvm::Error readOptions(const FlashCompileOptions &given);
  /// Reads the members of this name into `options`.
  llvm::Error readOptions();
  /// Calls `use` with the program, parsed from the text in a context that ends
  /// with the call. On failure `diagnostics` says why.
  llvm::Error withProgram(
      std::string &diagnostics,
      llvm::function_ref<llvm::Error(flash::compile::Program &)> use) const;
  /// Compiles the text; `options` may enable dumps. On failure `diagnostics`
  /// says why.
  llvm::Error compile(std::string &diagnostics);
};

namespace flash::capi {

/// Keeps the message for flashGetErrorMessage and returns the status.
FlashStatus fail(FlashStatus status, const llvm::Twine &message);
/// The same for an error; errors of the CUDA runtime and interruptions have a
/// status of their own.
FlashStatus fail(FlashStatus status, llvm::Error error);

/// The same for a program that does not compile, with its diagnostics.
FlashStatus failProgram(llvm::Error error, llvm::StringRef diagnostics);

/// Why a tensor is none of this rank: the rank, or what is null. Empty if it
/// is.
std::string findFault(const FlashTensor &tensor, size_t rank);

/// LLVM registers its targets in tables that threads share without care, so
/// that one thread compiles at a time.
std::unique_lock<std::mutex> lockCompiler();

/// The device and its driver, opened once for the process.
llvm::Expected<cuda::Device> getDevice(int ordinal);

} // namespace flash::capi

#endif // FLASH_LIB_CAPI_KERNEL_H
