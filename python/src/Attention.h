//===- Attention.h - The function of an attention variant -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_ATTENTION_H
#define FLASH_PYTHON_ATTENTION_H

#include "Kernel.h"

namespace flash::python {

/// What a captured tensor must be.
struct Capture {
  std::string name;
  FlashElementType element;
  bool isBool;
  int rank;
  /// For each dimension that is only indexed by 'b', 'h', 'q' or 'k': that, and
  /// for others ' '.
  std::string indices;
};

/// One attention variant: checks arrays, finds the kernel for their types, and
/// calls it. This is what a cached call runs through.
class Attention {
public:
  /// `compile(dtype, rank, head dimension, value head dimension, device)`
  /// returns the kernel; device is -1 for the CPU.
  Attention(nb::object compile, std::vector<Capture> captures, bool returnLse)
      : compile(std::move(compile)), captures(std::move(captures)),
        returnLse(returnLse) {}

  nb::object call(nb::handle query, nb::handle key, nb::handle value,
                  nb::handle lengths, nb::handle sink, nb::handle captured);

private:
  /// What a kernel is compiled for.
  struct Specialization {
    FlashElementType element;
    int rank, device;
    int64_t headDim, valueDim;
    nb::object owner;
    Kernel *kernel;
  };

  void checkAttention(const Array &query, const Array &key,
                      const Array &value) const;
  void checkCapture(const Capture &capture, const Array &array,
                    const Array &query, const Array &key) const;
  Kernel &getKernel(const Array &query, const Array &value);

  nb::object compile;
  std::vector<Capture> captures;
  bool returnLse;
  std::vector<Specialization> kernels;
};

} // namespace flash::python

#endif // FLASH_PYTHON_ATTENTION_H
