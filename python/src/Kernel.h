//===- Kernel.h - Kernels and their calls -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PYTHON_KERNEL_H
#define FLASH_PYTHON_KERNEL_H

#include "Array.h"
#include <map>
#include <mutex>
#include <vector>

namespace flash::python {

/// A result on a device that is allocated row-major with these sizes, other
/// than the program's, or written into memory that there is.
struct Destination {
  /// 0 for a result as usual.
  int32_t rank;
  int64_t sizes[4];
  /// A tensor like it, or null.
  nb::handle prototype = {};
  /// The array that has the memory, and its address; null for none.
  nb::handle given = {};
  void *data = nullptr;
};

/// The memory of a result on a device, and how it is made.
struct ResultMemory {
  enum Kind {
    /// An array that there is.
    Given,
    /// Like an array, a prototype of `Array`.
    Like,
    /// Row-major.
    Dense,
    /// Dense in another order of its dimensions.
    Strided
  } kind;
  FlashElementType element;
  int32_t rank = 0;
  int64_t sizes[maxRank], strides[maxRank];
  nb::handle array = {};
  /// Where the array that is given is.
  void *data = nullptr;

  /// Makes one that is not given; `like` stands for `array`.
  nb::object allocate(Torch &torch, void *&address, nb::handle like) const;
};

class Kernel {
public:
  explicit Kernel(FlashKernel *handle) : handle(handle) {}
  ~Kernel();
  Kernel(const Kernel &) = delete;

  /// `machine` is the text of a target, or a compiler.Machine.
  static Kernel *compile(const std::string &text, nb::handle machine,
                         const std::string &function,
                         const std::string &schedule,
                         const std::string &versions);
  static Kernel *deserialize(nb::bytes bytes);
  /// The text of the version of a program for arguments of these sizes.
  static nb::str specialize(const std::string &text, nb::handle machine,
                            const std::string &function,
                            const std::string &schedule,
                            const std::vector<std::vector<int64_t>> &sizes);

  /// (texts, numbers): the versions of a program for calls of these sizes, each
  /// once, and of each call the number of its version. All calls have sizes of
  /// as many arguments.
  static nb::tuple
  specializeEach(const std::string &text, nb::handle machine,
                 const std::vector<std::vector<std::vector<int64_t>>> &calls);

  /// (text, schedule) of a program whose block maps have a function of their
  /// own, as flashProgramPlan gives them, or None.
  static nb::object plan(const std::string &text, nb::handle machine,
                         const std::string &function,
                         const std::string &schedule,
                         const std::vector<std::vector<int64_t>> &sizes);

  FlashKernel *getHandle() const { return handle; }
  std::string getTarget() const { return flashKernelGetTarget(handle); }
  bool isGpu() const { return getTarget().rfind("sm_", 0) == 0; }
  /// (dtype, sizes), where None is a size that is open.
  nb::list getArguments() const;
  nb::list getResults() const;
  nb::str getText(const std::string &stage);
  void save(const std::string &path);
  /// (skipped, unmasked, masked, query_tile, key_tile) for arguments of these
  /// sizes.
  nb::tuple countTiles(const std::vector<std::vector<int64_t>> &sizes) const;
  nb::bytes serialize();

  /// Loads the kernel on a device, which is part of the first call there
  /// otherwise: the driver makes machine code of PTX, and may wait for kernels
  /// that run.
  void load(int device);
  /// (bytes of results, bytes of scratch memory) that a call with dense
  /// arguments of these sizes allocates on a device.
  nb::tuple countBytes(int device,
                       const std::vector<std::vector<int64_t>> &argumentSizes);

  /// Runs or launches the kernel on arrays that are all on one device.
  std::vector<nb::object> call(const std::vector<nb::object> &arguments);
  /// Raises what `call` would before it launches the kernel, or on the host
  /// before it runs.
  void checkArguments(const std::vector<nb::object> &arguments);

  /// The same after the arrays have been read: on the host, dense,
  std::vector<nb::object> run(const FlashTensor *arguments, size_t count,
                              const Array &like, const char *note = "");
  /// or on a device, on PyTorch's current stream there, that of the first of
  /// some arrays, which results may be like. `note` follows messages about
  /// tensors. `places` are the sizes and strides of all results, where these
  /// are not row-major, and `destinations` what these are allocated as.
  std::vector<nb::object> launch(const FlashTensor *arguments, size_t count,
                                 const Array *arrays, size_t numArrays,
                                 const char *note = "",
                                 const FlashTensor *places = nullptr,
                                 const Destination *destinations = nullptr);

  /// A call that is prepared as `launch` would, which becomes the caller's, and
  /// `memories` of its results.
  FlashCall *prepare(const FlashTensor *arguments, size_t count,
                     const Array *arrays, size_t numArrays, const char *note,
                     const FlashTensor *places, const Destination *destinations,
                     std::vector<ResultMemory> &memories);

private:
  /// The arguments of a call, which are read and checked.
  struct Arguments;
  /// A call of the device, given back to `calls` at the end of a scope.
  class Borrowed;

  void prepare(FlashCall *call, const FlashTensor *arguments, size_t count,
               const char *note, const FlashTensor *places);
  ResultMemory chooseMemory(FlashCall *call, size_t result, const Array *arrays,
                            size_t numArrays, const FlashTensor *places,
                            const Destination *destinations) const;

  std::vector<nb::object> launchHere(const FlashTensor *arguments, size_t count,
                                     const Array *arrays, size_t numArrays,
                                     Torch &torch, const char *note,
                                     const FlashTensor *places,
                                     const Destination *destinations);

  FlashKernel *handle;
  /// Guards the texts and bytes that the handle keeps, since threads read them
  /// without the GIL.
  std::mutex ofTexts;
  /// Calls not in use, by device. A call in use is in none, as PyTorch may let
  /// another thread run while it allocates.
  std::map<int, std::vector<FlashCall *>> calls;
};

} // namespace flash::python

#endif // FLASH_PYTHON_KERNEL_H
