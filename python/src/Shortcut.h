//===- Shortcut.h - From a function's arguments to a call -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_SHORTCUT_H
#define FLASH_PYTHON_SHORTCUT_H

#include "Attention.h"

namespace flash::python {

/// A function of Python that calls a method of `self` with its arguments, which
/// no argument is converted for, and returns None for null.
template <typename T,
          nb::object (T::*method)(PyObject *const *arguments, size_t count)>
nb::object makeFastFunction(nb::handle self) {
  static PyMethodDef definition = {
      "call",
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(
          +[](PyObject *self, PyObject *const *arguments,
              Py_ssize_t count) -> PyObject * {
            try {
              nb::object result =
                  (nb::inst_ptr<T>(self)->*method)(arguments, size_t(count));
              return (result ? std::move(result) : nb::object(nb::none()))
                  .release()
                  .ptr();
            } catch (nb::python_error &error) {
              error.restore();
            } catch (const std::exception &error) {
              PyErr_SetString(PyExc_RuntimeError, error.what());
            }
            return nullptr;
          })),
      METH_FASTCALL, nullptr};
  return steal(PyCFunction_NewEx(&definition, self.ptr(), nullptr));
}

/// What a function of Python, whose arguments are arrays and options, does with
/// arguments like ones before: it calls a variant of attention, which depends
/// on the options, and of the arrays on which there are and of what type.
///
/// Arguments come in the order of `Array`, and the options follow.
class Shortcut {
public:
  enum Array {
    Query,
    Key,
    Value,
    Lengths,
    Sink,
    QueryOffsets,
    KeyOffsets,
    PageTable,
    KeyLengths,
    Out,
    NumArrays
  };

  /// What a variant depends on, of arrays: their types, ranks and the rows of a
  /// page.
  struct Kinds {
    std::array<uint64_t, NumArrays> kinds = {};
    int64_t page = -1;
    bool operator==(const Kinds &other) const {
      return kinds == other.kinds && page == other.page;
    }
  };
  /// What calls with some options, and with arrays of some kinds, do.
  struct Entry {
    std::vector<nb::object> options;
    Kinds kinds;
    nb::object owner;
    Attention *attention;
  };
  /// The arrays of a call, without those that there are not between the sink
  /// and the last.
  struct Arrays {
    Attention::Given given;
    Signature signature;
    Kinds kinds;
    /// Of each its number among them, or -1.
    int places[NumArrays];
    bool read(Torch &torch, PyObject *const *arguments);
  };

  /// Whether the function has the rows before the heads, as `callRows`.
  explicit Shortcut(bool areRows) : areRows(areRows) {}

  /// The result of a call like one before, or null: then the function is to do
  /// it.
  nb::object call(PyObject *const *arguments, size_t count);

  /// What a call like this one did, and this one's arrays, which are read; null
  /// where there was none.
  std::shared_ptr<const Entry> find(Torch &torch, PyObject *const *arguments,
                                    size_t count, Arrays &arrays);
  bool haveRows() const { return areRows; }

  /// Notes that a function calls `attention`, which must be an `Attention`, for
  /// such arguments. Options must not become others. They are compared by type
  /// and `==`, and floating-point numbers by their bits.
  void keep(nb::handle attention, const nb::args &arguments);
  void clear() { entries.clear(); }

  /// A function of Python that calls `call` of `self`, a Shortcut, and returns
  /// None for null.
  static nb::object getFunction(nb::handle self);

private:
  static bool haveOptions(const Entry &entry, PyObject *const *options,
                          size_t count);

  static constexpr size_t maxEntries = 64;
  bool areRows;
  /// The last one that was found comes first.
  std::vector<std::shared_ptr<const Entry>> entries;
};

} // namespace flash::python

#endif // FLASH_PYTHON_SHORTCUT_H
