//===- Array.h - NumPy arrays and PyTorch tensors as the C library has them *-
// C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_ARRAY_H
#define FLASH_PYTHON_ARRAY_H

#include "Exchange.h"
#include "flash-c/Flash.h"
#include <nanobind/nanobind.h>
#include <string>

namespace flash::python {

namespace nb = nanobind;

/// Ranks that programs may have; more is an error.
inline constexpr int maxRank = 16;

/// A NumPy array or a PyTorch tensor. Does not keep it alive.
struct Array {
  void *data = nullptr;
  int32_t rank = 0;
  int64_t sizes[maxRank];
  /// In elements.
  int64_t strides[maxRank];
  FlashElementType element = FLASH_F32;
  /// Booleans are bytes to the library, and integers have signs.
  bool isBool = false;
  bool isUnsigned = false;
  bool isTorch = false;
  /// False for tensors of the meta device, for tensors that stand for others
  /// (fake ones, tensors of vmap and the like), for jagged ones, whose rows
  /// another tensor has, and where storage was freed. Then there are no sizes
  /// and strides either.
  bool hasMemory = true;
  bool isJagged = false;
  /// The number of a CUDA device, or -1 for the host.
  int device = -1;
  /// The tensor itself if it is row-major, also in dimensions of one element:
  /// PyTorch makes one like it in half the time of any other.
  nb::handle prototype;

  bool isDense() const;
  /// Dense, and dimensions of one element have the strides of others.
  bool isRowMajor() const;
  bool isEmpty() const;
  /// Whether each element lies at a multiple of its size.
  bool isAligned() const;
  /// Whether it has an element type of the library.
  bool hasType(FlashElementType type) const {
    return element == type && !isBool && !isUnsigned;
  }
  /// Gives dimensions of one element, whose strides mean nothing but are read
  /// by kernels, the strides of a dense tensor.
  void setUnitStrides();
  /// Makes of an array with the rows before the heads, as they are in pages, a
  /// view with the heads before the rows.
  void putHeadsFirst();
  FlashTensor getTensor() const { return {data, rank, sizes, strides}; }
  /// "float16 of shape (2, 8, 512, 64)".
  std::string describe() const;
  std::string describeType() const;
  std::string describeShape() const;
  std::string describeDevice() const;
};

/// Reads what Python has. `name` is for messages. `owner` becomes what the
/// memory belongs to: a copy where the memory of a tensor does not hold its
/// elements. Raises TypeError for other objects and for element types that the
/// library lacks.
Array readArray(nb::handle object, const char *name, nb::object &owner);

/// The same, with a row-major copy where there are gaps, or elements that are
/// not aligned.
Array readDense(nb::handle object, const char *name, nb::object &owner);

/// Raises ValueError for an array without memory.
[[noreturn]] void raiseNoMemory(nb::handle object, const char *name);

/// That `what` requires gradients.
std::string describeNoBackward(const std::string &what);

/// The name in NumPy and PyTorch, such as "bfloat16".
const char *getName(FlashElementType element);
int64_t getBytes(FlashElementType element);
/// The name in MLIR, such as "bf16".
const char *getMlirName(FlashElementType element);

/// A result on the host as an array of the kind that `like` is. The array owns
/// the buffer.
nb::object makeArray(FlashBuffer *buffer, FlashElementType element,
                     const Array &like);

/// Takes over what a function of Python's C API returned.
inline nb::object steal(PyObject *object) {
  if (!object)
    throw nb::python_error();
  return nb::steal(object);
}

constexpr int numElementTypes = FLASH_F8E4M3FN + 1;

/// Parts of PyTorch, looked up once it has been imported.
struct Torch {
  nb::object tensorType, parameterType, empty, emptyLike, emptyStrided,
      currentStream, currentDevice, deviceGuard, gradEnabled, autocastEnabled,
      isNegated;
  nb::object dtypes[numElementTypes], boolType;
  /// uint8, uint16 and uint32, at the indices of the integers with signs; none
  /// where PyTorch is older than they are.
  nb::object unsignedDtypes[numElementTypes];
  /// None where PyTorch lacks them.
  nb::object strided, jagged, disabledDispatch, countModes, isTracing,
      forwardAd;
  /// Null where PyTorch is older than the interface.
  const ExchangeApi *exchange = nullptr;

  /// Null until something has imported PyTorch.
  static Torch *get();

  /// A tensor on the current device, and its address. PyTorch itself makes it:
  /// the memory of one that came by the exchange interface is foreign to its
  /// allocator, so that `record_stream` would do nothing.
  nb::object allocate(const int64_t *sizes, int32_t rank,
                      FlashElementType element, void *&address);
  /// One like another, which is a prototype of `Array`.
  nb::object allocateLike(nb::handle tensor, void *&address);
  /// The same with any strides.
  nb::object allocateStrided(const FlashTensor &shape, FlashElementType element,
                             void *&address);
  void *getCurrentStream(int device);
  int getCurrentDevice();

  /// Whether operators note how results are computed from tensors that require
  /// gradients.
  bool isGradEnabled() const {
    return steal(PyObject_CallNoArgs(gradEnabled.ptr())).ptr() == Py_True;
  }
  static bool requiresGrad(nb::handle tensor);
  /// Whether a tensor is what its memory holds with the other sign: a lazy view
  /// such as the imaginary part of what was conjugated.
  bool isNegative(nb::handle tensor) const;

  /// Whether something wants to see the operators that are called: a mode, such
  /// as that of fake tensors, torch.jit.trace, or forward-mode differentiation.
  bool isWatched() const;

  /// Whether torch.autocast is on for CUDA.
  bool isAutocastEnabled() const {
    return steal(PyObject_CallNoArgs(autocastEnabled.ptr())).ptr() == Py_True;
  }

  /// Whether it is no subclass, whose functions may do other things.
  bool isPlain(nb::handle object) const {
    return object.type().is(tensorType) || object.type().is(parameterType);
  }
  bool isTensor(nb::handle object) const {
    return PyObject_TypeCheck(
        object.ptr(), reinterpret_cast<PyTypeObject *>(tensorType.ptr()));
  }
};

/// Raises the Python exception for a status other than success. `note` follows
/// messages about tensors.
void check(FlashStatus status, const char *note = "");

/// Raises an exception with a message that names the call.
template <typename... Parts>
[[noreturn]] void raise(PyObject *type, const Parts &...parts) {
  std::string message;
  auto append = [&](const auto &part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
      message += std::to_string(part);
    else
      message += part;
  };
  (append(parts), ...);
  PyErr_SetString(type, message.c_str());
  throw nb::python_error();
}

} // namespace flash::python

#endif // FLASH_PYTHON_ARRAY_H
