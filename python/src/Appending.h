//===- Appending.h - New keys of a cache ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_APPENDING_H
#define FLASH_PYTHON_APPENDING_H

#include "Shortcut.h"

namespace flash::python {

/// Writes new keys and values into caches on a device, behind the rows that
/// each sequence has, by one kernel (flash_mlir/appending.py).
class Appending {
public:
  /// The arrays, in the order of the kernel's arguments: new rows (batch, rows,
  /// heads, D); caches, with the rows before the heads; the table of pages, or
  /// None; and int32 numbers of the rows that sequences have.
  enum Operand {
    Key,
    Value,
    KeyCache,
    ValueCache,
    Table,
    Lengths,
    NumOperands
  };

  /// `compile(dtype, head dimension, value head dimension, whether there is a
  /// table, device)` returns the kernel. `shortcut` knows what calls of
  /// attention behind it do, which a program keeps for as long.
  Appending(nb::object compile, Shortcut *shortcut)
      : compile(std::move(compile)), shortcut(shortcut) {}

  /// Appends, and returns how many rows sequences have then. None, and nothing
  /// is written, where PyTorch has to do it: with tensors that are not in
  /// memory as their strides say, rows with gaps, head dimensions that no
  /// kernel has, caches that begin together, or where something watches
  /// operators. The caller has checked types and sizes but for head dimensions.
  nb::object append(const nb::args &arrays);

  /// Appends, and calls what the shortcut would call with the lengths that
  /// result, where both are like calls before; null, and nothing is written,
  /// for others. The first arguments are the new keys and values; the
  /// shortcut's follow.
  nb::object callAgain(PyObject *const *arguments, size_t count);

  /// A function of Python that calls `callAgain` of `self`, an Appending, and
  /// returns None for null.
  static nb::object getFunction(nb::handle self) {
    return makeFastFunction<Appending, &Appending::callAgain>(self);
  }

private:
  /// The caches, and how many rows sequences have.
  static constexpr int numResults = 3;
  struct Launch;

  Kernel &getKernel(const Launch &launch, bool hasTable);

  nb::object compile;
  Shortcut *shortcut;
  /// By what `compile` was given.
  std::map<std::array<int64_t, 5>, nb::object> kernels;
  RepeatedCalls calls;
};

} // namespace flash::python

#endif // FLASH_PYTHON_APPENDING_H
