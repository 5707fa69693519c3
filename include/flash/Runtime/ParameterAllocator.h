//===- ParameterAllocator.h - Memory for kernel parameters ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_PARAMETERALLOCATOR_H
#define FLASH_RUNTIME_PARAMETERALLOCATOR_H

#include "flash/Runtime/AbiField.h"
#include <cstddef>
#include <new>

namespace flash::runtime {

/// An allocator for containers of parameters: the first element is at a
/// multiple of `maxAbiAlignment`, as any parameter requires.
template <typename T> struct ParameterAllocator {
  using value_type = T;

  ParameterAllocator() = default;
  template <typename U> ParameterAllocator(const ParameterAllocator<U> &) {}

  T *allocate(size_t count) {
    return static_cast<T *>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T *memory, size_t) { ::operator delete(memory, alignment); }

  bool operator==(const ParameterAllocator &) const { return true; }
  bool operator!=(const ParameterAllocator &) const { return false; }

private:
  static constexpr std::align_val_t alignment{maxAbiAlignment};
};

} // namespace flash::runtime

#endif // FLASH_RUNTIME_PARAMETERALLOCATOR_H
