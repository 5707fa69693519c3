//===- LaunchPlan.h - The host side of a GPU program as data ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the host does to run a compiled program once: compute with the sizes
// and strides of the arguments, check them, allocate buffers, launch kernels.
// A plan is extracted from IR (Target/Nvptx/ExtractLaunchPlan.h), evaluated at
// each call, and printed as C (Runtime/LaunchPlanHeader.h). No dependency on
// MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUNTIME_LAUNCHPLAN_H
#define FLASH_RUNTIME_LAUNCHPLAN_H

#include "flash/Runtime/AbiField.h"
#include "flash/Runtime/ParameterAllocator.h"
#include "flash/Runtime/TensorMap.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace flash::runtime {

/// Names a value: the number of the instruction that computes it.
using Register = uint32_t;

/// All values are int64_t; i1 is 0 or 1. Signed operations come first where
/// there are two.
enum class Opcode : uint8_t {
  /// `value`, which for floats holds the bits.
  Constant,
  /// Of dimension b of argument a.
  Size,
  Stride,
  /// Of dimension c of result b, where the caller gives results a place with
  /// strides of its own (as the C header lets it). a is that of a dense tensor,
  /// which it is otherwise, and where it does not matter.
  ResultStride,
  Add,
  Sub,
  Mul,
  DivS,
  DivU,
  CeilDivS,
  CeilDivU,
  FloorDivS,
  RemS,
  RemU,
  MinS,
  MinU,
  MaxS,
  MaxU,
  And,
  Or,
  Xor,
  Equal,
  NotEqual,
  LessS,
  LessU,
  LessEqualS,
  LessEqualU,
  /// a ? b : c
  Select,
  /// a, which must fit in 32 bits.
  ToI32,
  /// a must not be 0, else messages[value] is the error. Computes nothing.
  Assert,
};

struct Instruction {
  Opcode opcode;
  uint32_t a = 0, b = 0, c = 0;
  int64_t value = 0;
};

/// The name of an opcode, such as "ceildivs".
llvm::StringRef getName(Opcode opcode);
/// How many of a, b and c are registers: 0 to 3.
unsigned getNumOperands(Opcode opcode);
/// Computes an instruction without side effects, of registers alone.
/// False if the result cannot be represented or the divisor is 0.
bool compute(const Instruction &instruction, int64_t a, int64_t b, int64_t c,
             int64_t &result);

/// An argument of a call: device memory. The address is of the first element,
/// strides are in elements.
struct TensorArgument {
  uint64_t address = 0;
  llvm::ArrayRef<int64_t> sizes;
  llvm::ArrayRef<int64_t> strides;
};

/// Gives strides that do not matter, of dimensions with at most one element and
/// of tensors without elements, the value that they have in a dense tensor:
/// kernels are passed them, and what plans assert of strides is to hold.
void setIdleStrides(llvm::ArrayRef<int64_t> sizes,
                    llvm::MutableArrayRef<int64_t> strides);

/// Has the driver encode a tensor map; the text says which, for messages.
using TensorMapEncoder = llvm::function_ref<llvm::Expected<TensorMap>(
    const llvm::Twine &name, const TensorMapOptions &options)>;

struct Invocation;

struct LaunchPlan {
  /// A size or stride that the program leaves open.
  static constexpr int64_t dynamic = INT64_MIN;
  /// Alignment of buffers in bytes, which cuMemAlloc guarantees.
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

  /// Memory that exists from the first launch to the last; a result's stays.
  struct Buffer {
    std::string elementType;
    int64_t elementBytes = 0;
    llvm::SmallVector<Register, 4> sizes;
    bool isResult = false;
  };

  /// A view of a buffer, from its first element.
  struct Result {
    unsigned buffer = 0;
    llvm::SmallVector<Register, 4> sizes, strides;
    /// What the strides must be where the caller gives them: `dynamic`, or a
    /// number.
    llvm::SmallVector<int64_t, 4> openStrides = {};
    /// The caller's must be those of a dense tensor.
    bool isDense = false;
    /// The caller's address is a multiple of this many bytes.
    int64_t alignment = 16;
  };

  /// How TMA copies read a tensor; where it lies is said by the field that is
  /// such a map. Strides are in elements; that of the last dimension must be
  /// 1.
  struct TensorMapRecipe {
    TensorMapElement element = TensorMapElement::F16;
    llvm::SmallVector<Register, 4> sizes, strides;
    llvm::SmallVector<int64_t, 4> box;
    int swizzleBytes = 0;
    int l2PromotionBytes = 0;
  };

  /// One parameter of a kernel.
  struct Field {
    AbiField abi;
    /// The kernel's operand it belongs to, for messages.
    unsigned operand = 0;
    /// Where it lies in the parameter buffer.
    unsigned byteOffset = 0;
    /// The value; of pointers and tensor maps, the offset in elements.
    Register value = 0;
    /// Of pointers and tensor maps: the number of an argument or a buffer, and
    /// the size of an element.
    bool isArgument = false;
    unsigned root = 0;
    int64_t elementBytes = 0;
    /// Of tensor maps: the number of the recipe.
    unsigned tensorMap = 0;
  };

  struct Launch {
    /// The gpu.module and the function in it.
    std::string module, kernel;
    Register grid[3] = {}, block[3] = {}, sharedBytes = 0;
    std::vector<Field> fields;
    /// Size of the parameter buffer.
    unsigned parameterBytes = 0;

    /// Whether a parameter is a tensor map. If so, the kernel has its
    /// parameters at other offsets: they are aligned in the device's constant
    /// memory, where the first need not be at a multiple of 64. As only the
    /// driver knows them, it is given a pointer to each parameter
    /// (getPointers).
    bool hasTensorMaps() const;
  };

  std::string name;
  std::vector<Argument> arguments;
  std::vector<Instruction> instructions;
  std::vector<std::string> messages;
  std::vector<Buffer> buffers;
  std::vector<Result> results;
  std::vector<TensorMapRecipe> tensorMaps;
  std::vector<Launch> launches;

  /// Computes everything but addresses; of those of the arguments, only the
  /// alignment is looked at. Errors name the argument, dimension or kernel.
  /// Reuses the memory of `call`, which is unspecified after an error.
  llvm::Error prepare(llvm::ArrayRef<TensorArgument> arguments,
                      Invocation &call) const;

  /// Puts addresses into the parameters of a prepared call: one per argument
  /// and, of what was allocated, one per buffer. May be repeated. Tensor maps
  /// are encoded here; `encode` is not called by plans without them. Errors:
  /// those of `encode`, and tensors at addresses that no tensor map can have.
  llvm::Error bind(llvm::ArrayRef<TensorArgument> arguments,
                   llvm::ArrayRef<uint64_t> buffers, Invocation &call,
                   TensorMapEncoder encode) const;

  /// The parameters of a launch of a bound call, one by one: what
  /// cuLaunchKernel takes as kernelParams.
  llvm::SmallVector<const void *> getPointers(const Invocation &call,
                                              unsigned launchIndex) const;

  /// For people and tests.
  void print(llvm::raw_ostream &os) const;
};

/// One call, as an executor needs it.
struct Invocation {
  struct Launch {
    /// In the plan's list; launches without blocks are left out.
    unsigned index;
    uint32_t grid[3], block[3], sharedBytes;
    /// Where its parameters start in `parameters`.
    uint32_t firstByte;
  };

  /// The value of each register; the sizes of results are among them.
  llvm::SmallVector<int64_t, 64> registers;
  /// Bytes to allocate for each buffer; may be 0.
  llvm::SmallVector<int64_t, 8> bufferBytes;
  llvm::SmallVector<Launch, 2> launches;
  /// What CU_LAUNCH_PARAM_BUFFER_POINTER takes, where there are no tensor maps,
  /// launch after launch, each aligned to maxAbiAlignment.
  std::vector<char, ParameterAllocator<char>> parameters;
};

} // namespace flash::runtime

#endif // FLASH_RUNTIME_LAUNCHPLAN_H
