//===- Attention.h - The function of an attention variant -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_ATTENTION_H
#define FLASH_PYTHON_ATTENTION_H

#include "IndexRange.h"
#include "Kernel.h"

#include <array>

namespace flash::python {

/// What a captured tensor must be.
struct Capture {
  std::string name;
  FlashElementType element;
  bool isBool, isUnsigned;
  int rank;
  /// Of those indices whose ranges are known.
  std::vector<IndexRange> ranges;
};

/// One attention variant: checks arrays, finds the kernel for their types, and
/// calls it. This is what a cached call runs through.
class Attention {
public:
  /// `compile(dtype, rank, head dimension, value head dimension, device,
  /// sizes)` returns the kernel; device is -1 for the CPU, and sizes are those
  /// of query, key and value. `dispatch`, with the
  /// arguments of a call and whether all are plain tensors that nothing
  /// watches, of which some require gradients, goes by PyTorch. The last
  /// `numOfGradients` of the captures are for gradients alone: the kernel does
  /// not take them.
  Attention(nb::object compile, std::vector<Capture> captures, bool returnLse,
            nb::object dispatch, size_t numOfGradients)
      : compile(std::move(compile)), captures(std::move(captures)),
        returnLse(returnLse), dispatch(std::move(dispatch)),
        numOfGradients(numOfGradients) {}

  /// Runs the kernel, or leaves the call to `dispatch` where tensors have no
  /// memory, something wants to see the operators that are called, or there
  /// will be gradients.
  nb::object call(nb::handle query, nb::handle key, nb::handle value,
                  nb::handle lengths, nb::handle sink, nb::handle captured);

  /// Runs the kernel: what the operator does.
  nb::object run(nb::handle query, nb::handle key, nb::handle value,
                 nb::handle lengths, nb::handle sink, nb::handle captured);

  /// Checks the arguments of a call, and returns what a kernel is compiled for:
  /// (dtype, rank, head dimension, value head dimension, device, sizes), the
  /// last as in Specialization.
  nb::tuple check(nb::handle query, nb::handle key, nb::handle value,
                  nb::handle lengths, nb::handle sink, nb::handle captured);

private:
  static constexpr size_t maxArguments = 36;
  /// The arguments of a call: query, key, value and then those that there are.
  struct Arguments {
    Array arrays[maxArguments];
    nb::object owners[maxArguments];
    size_t count = 0;
  };
  /// Why a kernel alone will not do: an argument has no memory, or one that has
  /// requires gradients. An exception would take longer than the rest.
  struct Obstacle {
    enum { None, NoMemory, Gradient } kind = None;
    nb::handle array;
    const char *name = nullptr;
  };
  /// Reads and checks the arguments. Those behind one without memory are left.
  Obstacle read(Arguments &arguments, nb::handle query, nb::handle key,
                nb::handle value, nb::handle lengths, nb::handle sink,
                nb::handle captured) const;
  void readOrRaise(Arguments &arguments, nb::handle query, nb::handle key,
                   nb::handle value, nb::handle lengths, nb::handle sink,
                   nb::handle captured) const;
  nb::object execute(const Arguments &arguments);

  /// On a device: heads, key heads, and the classes (flashGetSizeClass) of the
  /// batch size and the lengths. On the CPU, the lengths (flashGetCpuLength),
  /// and zeros.
  using KernelSizes = std::array<int64_t, 5>;
  static KernelSizes getKernelSizes(const Array &query, const Array &key);

  /// What a kernel is compiled for.
  struct Specialization {
    FlashElementType element;
    int rank, device;
    int64_t headDim, valueDim;
    KernelSizes sizes;
    nb::object owner;
    Kernel *kernel;
  };

  void checkAttention(const Array &query, const Array &key,
                      const Array &value) const;
  void checkCapture(const Capture &capture, const Array &array,
                    const Array &query, const PositionSizes &sizes) const;
  Kernel &getKernel(const Array &query, const Array &key, const Array &value);

  nb::object compile;
  std::vector<Capture> captures;
  bool returnLse;
  nb::object dispatch;
  size_t numOfGradients;
  std::vector<Specialization> kernels;
};

} // namespace flash::python

#endif // FLASH_PYTHON_ATTENTION_H
