//===- HostProgram.h - The host side of a GPU program -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A host program is what the host needs to run a compiled program on a GPU. It
// consists of machine code and of data. The code computes the memory and the
// launches of a call from the sizes and strides of its arguments. The data
// describe the arguments, the results, and the parameters of the kernels.
// Target/Nvptx/BuildHostProgram.h makes host programs of IR, and CHeader.h
// prints them as C. This file does not depend on MLIR.
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

/// An argument of a call: a tensor in device memory. `address` is the address
/// of the first element; strides count elements. The arrays belong to the
/// caller.
struct TensorArgument {
  uint64_t address = 0;
  llvm::ArrayRef<int64_t> sizes;
  llvm::ArrayRef<int64_t> strides;
};

/// Strides do not matter in dimensions of size 0 or 1, nor in tensors without
/// elements. Such strides get the values that they have in a row-major tensor,
/// because kernels take them as parameters and programs assert properties of
/// them.
void setIdleStrides(llvm::ArrayRef<int64_t> sizes,
                    llvm::MutableArrayRef<int64_t> strides);

/// A function by which the driver encodes a tensor map. Error messages begin
/// with `name`.
using TensorMapEncoder = llvm::function_ref<llvm::Expected<TensorMap>(
    const llvm::Twine &name, const TensorMapOptions &options)>;

struct HostCall;
struct Invocation;

/// The machine code of a host program. Returns 0 on success. After an error it
/// returns another number, and `call->error` is set.
using HostFunction = int32_t (*)(HostCall *call);

struct HostProgram {
  /// A size or stride that the program leaves open.
  static constexpr int64_t dynamic = INT64_MIN;
  /// Alignment of memory in bytes, which cuMemAlloc guarantees.
  static constexpr int64_t alignment = 256;

  /// What an argument must be. Strides of dimensions with at most one element
  /// do not matter.
  struct Argument {
    /// The name in the program, without the `%`; empty if there is none.
    std::string name;
    /// The name of the type in MLIR, such as "bf16".
    std::string elementType;
    int64_t elementBytes = 0;
    /// One number for each dimension; each may be `dynamic`. Strides count
    /// elements.
    llvm::SmallVector<int64_t, 4> sizes, strides;
    /// Whether the tensor must be row-major without gaps, even if its strides
    /// are dynamic.
    bool isDense = false;
    /// The address is a multiple of this many bytes.
    int64_t alignment = 1;
  };

  /// A result of the program. The caller allocates its memory after `prepare`,
  /// which computes the sizes.
  struct Result {
    std::string elementType;
    int64_t elementBytes = 0;
    /// One number for each dimension; each may be `dynamic`.
    llvm::SmallVector<int64_t, 4> sizes;
    /// The strides that the caller may choose, one for each dimension: any
    /// stride if `dynamic`, or else this number of elements.
    llvm::SmallVector<int64_t, 4> strides;
    /// Whether the result must be row-major without gaps, even if its strides
    /// are dynamic.
    bool isDense = false;
    /// The caller's address is a multiple of this many bytes.
    int64_t alignment = 16;
  };

  /// How TMA copies read a tensor that has as many dimensions as the box. The
  /// stride of its last dimension must be 1. The fields mean what they mean in
  /// `TensorMapOptions`.
  struct TensorMapRecipe {
    TensorMapElement element = TensorMapElement::F16;
    llvm::SmallVector<int64_t, 4> box;
    int swizzleBytes = 0;
    int l2PromotionBytes = 0;
  };

  /// One parameter of a kernel.
  struct Field {
    AbiField abi;
    /// For messages: the operand of the kernel to which the parameter belongs,
    /// and the argument to which its memory belongs, such as "operand 1
    /// (argument query)".
    std::string owner = {};
    /// The number of the argument to which the memory belongs; -1 if it belongs
    /// to none.
    int argument = -1;
    /// The position of the parameter in the parameter buffer.
    unsigned byteOffset = 0;
    /// The size of an element in bytes. For pointers and tensor maps.
    int64_t elementBytes = 0;
    /// An index into `Launch::tensorMaps`. For tensor maps.
    unsigned tensorMap = 0;
    /// How many values of a `host.launch` belong to the parameter: 2 for a
    /// pointer, 2 and two for each dimension for a tensor map, else 1.
    unsigned numValues = 1;
  };

  /// A `host.launch` of the program.
  struct Launch {
    /// The gpu.module, and the function in it.
    std::string module, kernel;
    /// The bytes of dynamic shared memory; `dynamic` if they depend on sizes.
    int64_t sharedBytes = 0;
    std::vector<Field> fields;
    std::vector<TensorMapRecipe> tensorMaps;
    /// The size of the parameter buffer.
    unsigned parameterBytes = 0;
    /// Whether the kernel may start before the previous kernel has ended
    /// (programmatic dependent launch). It then waits for that kernel itself.
    bool isDependent = false;

    /// Appends a field, and sets its position: the next aligned byte of the
    /// parameter buffer.
    void addField(Field field);
    /// Appends the field and the recipe of a tensor map.
    void addTensorMap(Field field, TensorMapRecipe recipe);
    /// Whether a parameter is a tensor map. If so, the parameter buffer cannot
    /// be passed as a whole: a tensor map is aligned in the constant memory of
    /// the device, where the first parameter need not be at a multiple of 64,
    /// so only the driver knows the offsets. It takes a pointer to each
    /// parameter instead (`getPointers`).
    bool hasTensorMaps() const { return !tensorMaps.empty(); }
  };

  std::string name;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  /// The code refers to a launch by its index in this list.
  std::vector<Launch> launches;
  HostFunction function = nullptr;
  /// Owns the memory of `function`.
  std::shared_ptr<const void> code;

  /// The number of the first input or output (host.input, host.output) that
  /// belongs to an argument or a result. For the number of arguments or of
  /// results, the first number behind them.
  unsigned getArgumentInput(unsigned argument) const;
  unsigned getResultInput(unsigned result) const;
  unsigned getResultOutput(unsigned result) const;

  /// Checks the arguments and runs the code, which computes everything but
  /// addresses: the sizes and strides of results, scratch memory, launches and
  /// their parameters. Only the alignment of the arguments' addresses is used.
  /// If `places` is empty, results are row-major. Otherwise it has one tensor
  /// for each result, of its rank, and results have the strides of these
  /// tensors; their addresses are not read. The number and ranks of `places`
  /// are not checked here. Errors name the argument, dimension or kernel. The
  /// memory of `call` is used again; after an error its contents are
  /// unspecified.
  llvm::Error prepare(llvm::ArrayRef<TensorArgument> arguments,
                      Invocation &call,
                      llvm::ArrayRef<TensorArgument> places = {}) const;

  /// Writes addresses into the parameters of a call that `prepare` has prepared
  /// for arguments of the same sizes and strides, whose addresses have the same
  /// remainders modulo `alignment`. There is one address for each result, and
  /// one for each element of `Invocation::scratch`; their numbers are not
  /// checked. May be called again with other addresses. Tensor maps are encoded
  /// here. A call keeps up to 1024 of them, and does not encode these again. It
  /// is an error if `encode` fails, or if a tensor map cannot have the address.
  llvm::Error bind(llvm::ArrayRef<TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> results,
                   llvm::ArrayRef<uint64_t> scratch, Invocation &call,
                   TensorMapEncoder encode) const;

  /// Pointers to the parameters of a launch of a bound call, as cuLaunchKernel
  /// takes them in kernelParams. They are valid until the call is prepared
  /// again. `launchIndex` is an index into `Invocation::launches`.
  llvm::SmallVector<const void *, 32> getPointers(const Invocation &call,
                                                  unsigned launchIndex) const;

  /// Prints everything but the code, for people and tests.
  void print(llvm::raw_ostream &os) const;
};

/// What one call of a host program computes: its launches, with their
/// parameters, and the memory that it needs.
struct Invocation {
  struct Launch {
    /// The index in `HostProgram::launches`. A launch in a loop is listed once
    /// for each iteration, and a launch without blocks is not listed.
    unsigned index;
    uint32_t grid[3], block[3], sharedBytes;
    /// The position of its parameters in `parameters`.
    size_t firstByte;
  };

  /// Device memory for intermediate values of the call. The caller may allocate
  /// `scratchBytes` bytes at a multiple of 256 for all of it; this part then
  /// begins `offset` bytes behind, a multiple of 256. Parts that are used at
  /// different times may overlap. `bytes` may be 0.
  struct Scratch {
    int64_t offset, bytes;
  };

  /// The shape of a result, and the bytes of the memory in which it is. If the
  /// result is only a part of a tensor, these are the bytes of that tensor.
  struct Result {
    llvm::ArrayRef<int64_t> sizes, strides;
    int64_t bytes;
  };
  Result getResult(const HostProgram &program, unsigned index) const;

  /// A parameter that `bind` writes: the address of a tensor, or its tensor
  /// map.
  struct Address {
    /// The indices of the launch in the program, and of its field.
    unsigned launch, field;
    /// The position of the parameter in `parameters`.
    size_t firstByte;
    /// The number of the memory. Arguments have the first numbers, then come
    /// results, and then the elements of `scratch`.
    uint32_t memory;
    /// The bytes from the beginning of the memory to the tensor.
    int64_t byteOffset;
    /// For tensor maps: the position of the sizes in `shapes`, which the
    /// strides follow.
    size_t firstShape;
    /// For tensor maps: the address for which the map in `parameters` was
    /// encoded; none before the first `bind`.
    std::optional<uint64_t> encoded = std::nullopt;
  };

  /// The values of host.input and host.output.
  llvm::SmallVector<int64_t, 64> inputs, outputs;
  llvm::SmallVector<Scratch, 4> scratch;
  /// The bytes of one allocation that holds all of `scratch`.
  int64_t scratchBytes = 0;
  llvm::SmallVector<Launch, 2> launches;
  /// The parameter buffers of all launches, one after the other, each aligned
  /// to maxAbiAlignment. The buffer of a launch without tensor maps may be
  /// passed as CU_LAUNCH_PARAM_BUFFER_POINTER.
  std::vector<char, ParameterAllocator<char>> parameters;
  llvm::SmallVector<Address, 16> addresses;
  llvm::SmallVector<int64_t, 32> shapes;
  /// The tensor maps that were encoded, by the address and the index in
  /// `addresses`. They are kept because the layers of a model, which are called
  /// one after the other, have caches at different addresses.
  llvm::DenseMap<std::pair<uint64_t, unsigned>, TensorMap> maps;
};

} // namespace flash::runtime

#endif // FLASH_RUNTIME_HOSTPROGRAM_H
