//===- HostProgram.h - The host side of a GPU program -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the host does to run a compiled program once: machine code that computes
// with the sizes and strides of the arguments, allocates and launches; and, as
// data, what it is passed and how kernels take their parameters. It is made of
// IR by Target/Nvptx/BuildHostProgram.h, and printed as C by CHeader.h. No
// dependency on MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_HOSTPROGRAM_H
#define FLASH_RUNTIME_HOSTPROGRAM_H

#include "flash/Runtime/AbiField.h"
#include "flash/Runtime/ParameterAllocator.h"
#include "flash/Runtime/TensorMap.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace flash::runtime {

/// An argument of a call: device memory. The address is of the first element,
/// strides are in elements.
struct TensorArgument {
  uint64_t address = 0;
  llvm::ArrayRef<int64_t> sizes;
  llvm::ArrayRef<int64_t> strides;
};

/// Gives strides that do not matter, of dimensions with at most one element and
/// of tensors without elements, the value that they have in a dense tensor:
/// kernels are passed them, and what programs assert of strides is to hold.
void setIdleStrides(llvm::ArrayRef<int64_t> sizes,
                    llvm::MutableArrayRef<int64_t> strides);

/// Has the driver encode a tensor map; the text says which, for messages.
using TensorMapEncoder = llvm::function_ref<llvm::Expected<TensorMap>(
    const llvm::Twine &name, const TensorMapOptions &options)>;

struct HostCall;
struct Invocation;

/// Returns 0, or another number after an error, which the call then has.
using HostFunction = int32_t (*)(HostCall *call);

struct HostProgram {
  /// A size or stride that the program leaves open.
  static constexpr int64_t dynamic = INT64_MIN;
  /// Alignment of memory in bytes, which cuMemAlloc guarantees.
  static constexpr int64_t alignment = 256;

  /// What an argument must be. Strides of dimensions with at most one element
  /// do not matter.
  struct Argument {
    /// As the program has it, without the `%`; empty if it has none.
    std::string name;
    /// As MLIR names it, such as "bf16".
    std::string elementType;
    int64_t elementBytes = 0;
    llvm::SmallVector<int64_t, 4> sizes, strides;
    /// Row-major without gaps, also where the strides are dynamic.
    bool isDense = false;
    /// The address is a multiple of this many bytes.
    int64_t alignment = 1;
  };

  /// Memory that the caller gives once the sizes are known.
  struct Result {
    std::string elementType;
    int64_t elementBytes = 0;
    /// `dynamic`, or a number.
    llvm::SmallVector<int64_t, 4> sizes;
    /// What the strides must be where the caller gives them: `dynamic`, or a
    /// number.
    llvm::SmallVector<int64_t, 4> strides;
    /// The caller's strides must be the strides of a dense tensor.
    bool isDense = false;
    /// The caller's address is a multiple of this many bytes.
    int64_t alignment = 16;
  };

  /// How TMA copies read a tensor of as many dimensions as the box. The stride
  /// of the last one must be 1.
  struct TensorMapRecipe {
    TensorMapElement element = TensorMapElement::F16;
    llvm::SmallVector<int64_t, 4> box;
    int swizzleBytes = 0;
    int l2PromotionBytes = 0;
  };

  /// One parameter of a kernel.
  struct Field {
    AbiField abi;
    /// The kernel's operand it belongs to, and whose memory that is, for
    /// messages: "operand 1 (argument query)".
    std::string owner = {};
    /// The argument whose memory it is; -1 if it is not one's.
    int argument = -1;
    /// Where it lies in the parameter buffer.
    unsigned byteOffset = 0;
    /// The size of an element, for pointers and tensor maps.
    int64_t elementBytes = 0;
    /// The number of the recipe, for tensor maps.
    unsigned tensorMap = 0;
    /// How many of the values of a launch are its (host.launch).
    unsigned numValues = 1;
  };

  struct Launch {
    /// The gpu.module and the function in it.
    std::string module, kernel;
    /// The dynamic shared memory; `dynamic` where it depends on sizes.
    int64_t sharedBytes = 0;
    std::vector<Field> fields;
    std::vector<TensorMapRecipe> tensorMaps;
    /// Size of the parameter buffer.
    unsigned parameterBytes = 0;
    /// Whether the kernel may start before the one launched before it has
    /// ended, for which it waits itself.
    bool isDependent = false;

    /// Appends a field, at the next aligned byte of the parameter buffer.
    void addField(Field field);
    /// Appends the field and the recipe of a tensor map.
    void addTensorMap(Field field, TensorMapRecipe recipe);
    /// Whether a parameter is a tensor map. If so, the kernel has its
    /// parameters at other offsets: they are aligned in the device's constant
    /// memory, where the first need not be at a multiple of 64. As only the
    /// driver knows them, it is given a pointer to each parameter
    /// (getPointers).
    bool hasTensorMaps() const { return !tensorMaps.empty(); }
  };

  std::string name;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  /// By the number that the code has for them.
  std::vector<Launch> launches;
  HostFunction function = nullptr;
  /// The memory of the function.
  std::shared_ptr<const void> code;

  /// The first input or output (host.input, host.output) of an argument or
  /// result; for one after the last, how many inputs or outputs there are.
  unsigned getArgumentInput(unsigned argument) const;
  unsigned getResultInput(unsigned result) const;
  unsigned getResultOutput(unsigned result) const;

  /// Runs the code and so computes everything but addresses; of the
  /// arguments' addresses, only the alignment is looked at. Results are dense,
  /// or have the strides of `places`, one for each, which must be such as
  /// `Result` says. Errors name the argument, dimension or kernel. Reuses the
  /// memory of `call`, which is unspecified after an error.
  llvm::Error prepare(llvm::ArrayRef<TensorArgument> arguments,
                      Invocation &call,
                      llvm::ArrayRef<TensorArgument> places = {}) const;

  /// Puts addresses into the parameters of a prepared call: the addresses
  /// of the arguments, one for each result, and one for each allocation of the
  /// call. May be repeated. Tensor maps are encoded here, each once for an
  /// address; `encode` is not called by programs without them. Errors: as
  /// `encode`, and tensors at addresses that no tensor map can have.
  llvm::Error bind(llvm::ArrayRef<TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> results,
                   llvm::ArrayRef<uint64_t> scratch, Invocation &call,
                   TensorMapEncoder encode) const;

  /// The parameters of a launch of a bound call, one by one: what
  /// cuLaunchKernel takes as kernelParams.
  llvm::SmallVector<const void *, 32> getPointers(const Invocation &call,
                                                  unsigned launchIndex) const;

  /// All but the code, for people and tests.
  void print(llvm::raw_ostream &os) const;
};

/// One call, as an executor needs it.
struct Invocation {
  struct Launch {
    /// In the program's list. A launch in a loop comes several times, one
    /// without blocks not at all.
    unsigned index;
    uint32_t grid[3], block[3], sharedBytes;
    /// Where its parameters start in `parameters`.
    size_t firstByte;
  };

  /// Device memory that the kernels of the call need for themselves: where it
  /// begins, if all of it is one piece, and its bytes; there may be none.
  struct Scratch {
    int64_t offset, bytes;
  };

  /// A result, and the bytes of the memory that it is in: more than its own
  /// where it is only a part of that.
  struct Result {
    llvm::ArrayRef<int64_t> sizes, strides;
    int64_t bytes;
  };
  Result getResult(const HostProgram &program, unsigned index) const;

  /// A parameter that is missing: the address of a tensor, or its map.
  struct Address {
    /// The launch of the program, and the field of its parameters.
    unsigned launch, field;
    /// Where it lies in `parameters`.
    size_t firstByte;
    /// The number of an argument or, counted from there, of a result or an
    /// allocation; and what comes before the first element.
    uint32_t memory;
    int64_t byteOffset;
    /// Where sizes and strides begin in `shapes`, for tensor maps.
    size_t firstShape;
    /// Of a tensor map that the parameters have: the address that it is of.
    std::optional<uint64_t> encoded = std::nullopt;
  };

  llvm::SmallVector<int64_t, 64> inputs, outputs;
  llvm::SmallVector<Scratch, 4> scratch;
  /// The bytes of all, if it is one piece.
  int64_t scratchBytes = 0;
  llvm::SmallVector<Launch, 2> launches;
  /// What CU_LAUNCH_PARAM_BUFFER_POINTER takes, where there are no tensor maps,
  /// launch after launch, each aligned to maxAbiAlignment.
  std::vector<char, ParameterAllocator<char>> parameters;
  llvm::SmallVector<Address, 16> addresses;
  llvm::SmallVector<int64_t, 32> shapes;
  /// The maps that were encoded, by the address and the number in `addresses`:
  /// layers of a model have caches at different addresses and are called one
  /// after the other.
  llvm::DenseMap<std::pair<uint64_t, unsigned>, TensorMap> maps;
};

} // namespace flash::runtime

#endif // FLASH_RUNTIME_HOSTPROGRAM_H
