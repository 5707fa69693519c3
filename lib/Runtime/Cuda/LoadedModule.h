//===- LoadedModule.h - A module, unloaded with its last kernel -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_RUNTIME_CUDA_LOADEDMODULE_H
#define FLASH_LIB_RUNTIME_CUDA_LOADEDMODULE_H

#include "Context.h"
#include "flash/Runtime/Cuda/Module.h"
#include "llvm/ADT/StringMap.h"

namespace flash::cuda {

/// What a module and its kernels share.
struct Function::Loaded {
  Loaded(std::shared_ptr<Context> context, std::string name, CUmodule handle)
      : context(std::move(context)), name(std::move(name)), handle(handle) {}
  ~Loaded() {
    context->releaseUnused(context->getApi().cuModuleUnload, handle);
  }
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;

  std::shared_ptr<Context> context;
  std::string name;
  CUmodule handle;
  /// How many parameters each kernel has, of PTX.
  llvm::StringMap<int> parameters;

  std::mutex mutex; // Guards the member below.
  /// How much dynamic shared memory each kernel may have, as far as it has been
  /// read: all objects of a kernel take it from here, and no launch calls the
  /// driver for it.
  llvm::StringMap<std::atomic<int>> sharedLimits;
};

} // namespace flash::cuda

#endif // FLASH_LIB_RUNTIME_CUDA_LOADEDMODULE_H
