//===- LaunchPlan.cpp - Evaluation of launch plans ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/LaunchPlan.h"

#include "flash/Runtime/LaunchLimits.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace flash;
using namespace flash::runtime;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Checks that the bytes between the first and the last element can be counted.
static bool hasSpan(const TensorArgument &argument, int64_t elementBytes) {
  int64_t low = 0, high = elementBytes;
  for (auto [size, stride] :
       llvm::zip_equal(argument.sizes, argument.strides)) {
    int64_t step;
    if (size <= 1)
      continue;
    if (llvm::MulOverflow(stride, elementBytes, step) ||
        llvm::MulOverflow(step, size - 1, step) ||
        llvm::AddOverflow(step < 0 ? low : high, step, step < 0 ? low : high))
      return false;
  }
  int64_t span;
  return !llvm::SubOverflow(high, low, span);
}

static Error checkStrides(unsigned index, const LaunchPlan::Argument &expected,
                          const TensorArgument &argument) {
  int64_t dense = 1;
  for (size_t d = argument.sizes.size(); d-- > 0;) {
    int64_t wanted = expected.strides[d];
    if (wanted == LaunchPlan::dynamic && expected.isDense)
      wanted = dense;
    if (argument.sizes[d] > 1 && wanted != LaunchPlan::dynamic &&
        argument.strides[d] != wanted)
      return createStringError(formatv(
          "argument {0}: the stride of dimension {1} is {2}, expected {3}{4}",
          index, d, argument.strides[d], wanted,
          d + 1 == argument.sizes.size() && wanted == 1
              ? ": the innermost dimension must be contiguous"
              : ""));
    if (expected.isDense && llvm::MulOverflow(dense, argument.sizes[d], dense))
      return createStringError(formatv(
          "argument {0}: the number of elements does not fit in 64 bits",
          index));
  }
  if (!hasSpan(argument, expected.elementBytes))
    return createStringError(formatv(
        "argument {0}: the bytes that its strides span do not fit in 64 bits",
        index));
  return Error::success();
}

static Error checkArgument(unsigned index, const LaunchPlan::Argument &expected,
                           const TensorArgument &argument) {
  size_t rank = expected.sizes.size();
  if (argument.sizes.size() != rank)
    return createStringError(formatv("argument {0} has rank {1}, expected {2}",
                                     index, argument.sizes.size(), rank));
  if (argument.strides.size() != rank)
    return createStringError(formatv("argument {0} has {1} sizes, but {2} "
                                     "strides",
                                     index, rank, argument.strides.size()));
  if (argument.address % expected.alignment)
    return createStringError(
        formatv("argument {0}: the address {1:x} is not a multiple of {2}",
                index, argument.address, expected.alignment));
  bool isEmpty = false;
  for (size_t d = 0; d != rank; ++d) {
    int64_t size = argument.sizes[d];
    if (size < 0)
      return createStringError(formatv(
          "argument {0}: the size of dimension {1} is {2}, a negative number",
          index, d, size));
    if (expected.sizes[d] != LaunchPlan::dynamic && expected.sizes[d] != size)
      return createStringError(formatv(
          "argument {0}: the size of dimension {1} is {2}, expected {3}", index,
          d, size, expected.sizes[d]));
    isEmpty |= size == 0;
  }
  // Where there are no elements, strides have no meaning.
  return isEmpty ? Error::success() : checkStrides(index, expected, argument);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

static inline bool computeInline(const Instruction &instruction, int64_t a,
                                 int64_t b, int64_t c, int64_t &result) {
  uint64_t ua = a, ub = b;
  switch (instruction.opcode) {
  case Opcode::Constant:
    result = instruction.value;
    return true;
  case Opcode::Add:
    return !llvm::AddOverflow(a, b, result);
  case Opcode::Sub:
    return !llvm::SubOverflow(a, b, result);
  case Opcode::Mul:
    return !llvm::MulOverflow(a, b, result);
  case Opcode::DivS:
    return divides(a, b) && (result = a / b, true);
  case Opcode::DivU:
    return b != 0 && (result = ua / ub, true);
  case Opcode::CeilDivS:
    return divides(a, b) && (result = llvm::divideCeilSigned(a, b), true);
  case Opcode::CeilDivU:
    return b != 0 && (result = ua / ub + (ua % ub != 0), true);
  case Opcode::FloorDivS:
    return divides(a, b) && (result = llvm::divideFloorSigned(a, b), true);
  case Opcode::RemS:
    return b != 0 && (result = b == -1 ? 0 : a % b, true);
  case Opcode::RemU:
    return b != 0 && (result = ua % ub, true);
  case Opcode::MinS:
    result = std::min(a, b);
    return true;
  case Opcode::MinU:
    result = std::min(ua, ub);
    return true;
  case Opcode::MaxS:
    result = std::max(a, b);
    return true;
  case Opcode::MaxU:
    result = std::max(ua, ub);
    return true;
  case Opcode::And:
    result = a & b;
    return true;
  case Opcode::Or:
    result = a | b;
    return true;
  case Opcode::Xor:
    result = a ^ b;
    return true;
  case Opcode::Equal:
    result = a == b;
    return true;
  case Opcode::NotEqual:
    result = a != b;
    return true;
  case Opcode::LessS:
    result = a < b;
    return true;
  case Opcode::LessU:
    result = ua < ub;
    return true;
  case Opcode::LessEqualS:
    result = a <= b;
    return true;
  case Opcode::LessEqualU:
    result = ua <= ub;
    return true;
  case Opcode::Select:
    result = a ? b : c;
    return true;
  case Opcode::ToI32:
    result = a;
    return llvm::isInt<32>(a);
  case Opcode::Size:
  case Opcode::Stride:
  case Opcode::Assert:
    break;
  }
  llvm_unreachable("not an instruction to compute");
}

bool flash::runtime::compute(const Instruction &instruction, int64_t a,
                             int64_t b, int64_t c, int64_t &result) {
  return computeInline(instruction, a, b, c, result);
}

static Error explainFailure(Opcode opcode, int64_t a, int64_t b) {
  if (opcode == Opcode::ToI32)
    return createStringError(formatv("{0} does not fit in an i32", a));
  if (opcode != Opcode::Add && opcode != Opcode::Sub && opcode != Opcode::Mul &&
      b == 0)
    return createStringError(formatv("{0} is divided by 0", a));
  return createStringError(formatv("{0} of {1} and {2} does not fit in 64 bits",
                                   getName(opcode), a, b));
}

static Error runInstructions(const LaunchPlan &plan,
                             ArrayRef<TensorArgument> arguments, int64_t *r) {
  int64_t *result = r;
  for (const Instruction &instruction : plan.instructions) {
    switch (instruction.opcode) {
    case Opcode::Size:
      *result = arguments[instruction.a].sizes[instruction.b];
      break;
    case Opcode::Stride:
      *result = arguments[instruction.a].strides[instruction.b];
      break;
    case Opcode::Assert:
      *result = 0;
      if (!r[instruction.a])
        return createStringError(plan.messages[instruction.value]);
      break;
    case Opcode::Constant:
      *result = instruction.value;
      break;
    default:
      // Operands that the opcode lacks are 0: register 0 is written by then.
      int64_t a = r[instruction.a], b = r[instruction.b];
      if (!computeInline(instruction, a, b, r[instruction.c], *result))
        return explainFailure(instruction.opcode, a, b);
    }
    ++result;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Buffers and launches
//===----------------------------------------------------------------------===//

static Error computeBytes(unsigned index, const LaunchPlan::Buffer &buffer,
                          const int64_t *r, int64_t &bytes) {
  bytes = buffer.elementBytes;
  bool isEmpty = false, overflows = false;
  for (auto [d, size] : llvm::enumerate(buffer.sizes)) {
    if (r[size] < 0)
      return createStringError(formatv(
          "buffer {0}: the size of dimension {1} is {2}, a negative number",
          index, d, r[size]));
    isEmpty |= r[size] == 0;
    overflows |= llvm::MulOverflow(bytes, r[size], bytes);
  }
  if (isEmpty)
    bytes = 0;
  else if (overflows)
    return createStringError(formatv(
        "buffer {0}: the number of bytes does not fit in 64 bits", index));
  return Error::success();
}

static Error checkField(const LaunchPlan::Launch &launch,
                        const LaunchPlan::Field &field, int64_t value) {
  const AbiField &abi = field.abi;
  if (abi.role == AbiRole::Size && (value < 0 || value > INT32_MAX))
    return createStringError(
        formatv("@{0}, operand {1}: the size of dimension {2} is {3}, but must "
                "be 0 to {4}",
                launch.kernel, field.operand, abi.dimension, value, INT32_MAX));
  if (abi.type == AbiType::I32 && !llvm::isInt<32>(value))
    return createStringError(
        formatv("@{0}, operand {1}: {2} does not fit in the kernel's 32 bits",
                launch.kernel, field.operand, value));
  int64_t bytes;
  if (abi.type == AbiType::Pointer &&
      llvm::MulOverflow(value, field.elementBytes, bytes))
    return createStringError(
        formatv("@{0}, operand {1}: an offset of {2} elements does not fit in "
                "64 bits",
                launch.kernel, field.operand, value));
  return Error::success();
}

static Error checkDimension(const LaunchPlan::Launch &launch,
                            llvm::StringRef what, unsigned dimension,
                            int64_t value, int64_t low, int64_t high) {
  if (low <= value && value <= high)
    return Error::success();
  return createStringError(
      formatv("@{0}: the {1} has {2} in {3}, but must have {4} to {5}",
              launch.kernel, what, value, "xyz"[dimension], low, high));
}

/// Appends the launch, unless it has no blocks.
static Error prepareLaunch(unsigned index, const LaunchPlan::Launch &launch,
                           Invocation &call) {
  const int64_t *r = call.registers.data();
  Invocation::Launch result;
  result.index = index;
  bool isEmpty = false;
  int64_t threads = 1;
  for (unsigned d = 0; d != 3; ++d) {
    int64_t blocks = r[launch.grid[d]], size = r[launch.block[d]];
    if (Error error = checkDimension(launch, "grid", d, blocks, 0, maxGrid[d]))
      return error;
    if (Error error = checkDimension(launch, "block", d, size, 1, maxBlock[d]))
      return error;
    isEmpty |= blocks == 0;
    threads *= size;
    result.grid[d] = blocks;
    result.block[d] = size;
  }
  if (threads > maxThreads)
    return createStringError(
        formatv("@{0}: a block has {1} threads, but may have at most {2}",
                launch.kernel, threads, maxThreads));
  int64_t sharedBytes = r[launch.sharedBytes];
  if (sharedBytes < 0 || sharedBytes > maxSharedBytes)
    return createStringError(
        formatv("@{0}: {1} bytes of dynamic shared memory are not in the range "
                "from 0 to {2}",
                launch.kernel, sharedBytes, maxSharedBytes));
  if (isEmpty)
    return Error::success();

  result.sharedBytes = sharedBytes;
  result.firstByte = llvm::alignTo(call.parameters.size(), 64);
  call.parameters.resize(result.firstByte + launch.parameterBytes);
  for (const LaunchPlan::Field &field : launch.fields) {
    int64_t value = r[field.value];
    if (Error error = checkField(launch, field, value))
      return error;
    // The bytes in front are those of the smaller type: the device and every
    // host it has are little-endian.
    std::memcpy(call.parameters.data() + result.firstByte + field.byteOffset,
                &value, getBytes(field.abi.type));
  }
  call.launches.push_back(result);
  return Error::success();
}

Error LaunchPlan::prepare(ArrayRef<TensorArgument> given,
                          Invocation &call) const {
  if (given.size() != arguments.size())
    return createStringError(formatv("@{0} takes {1} arguments, but {2} are "
                                     "given",
                                     name, arguments.size(), given.size()));
  for (size_t i = 0; i != given.size(); ++i)
    if (Error error = checkArgument(i, arguments[i], given[i]))
      return error;
  call.registers.resize_for_overwrite(instructions.size());
  if (Error error = runInstructions(*this, given, call.registers.data()))
    return error;
  call.bufferBytes.resize_for_overwrite(buffers.size());
  for (size_t i = 0; i != buffers.size(); ++i)
    if (Error error = computeBytes(i, buffers[i], call.registers.data(),
                                   call.bufferBytes[i]))
      return error;
  call.launches.clear();
  call.parameters.clear();
  for (size_t i = 0; i != launches.size(); ++i)
    if (Error error = prepareLaunch(i, launches[i], call))
      return error;
  return Error::success();
}

void LaunchPlan::bind(ArrayRef<TensorArgument> given,
                      ArrayRef<uint64_t> allocated, Invocation &call) const {
  for (const Invocation::Launch &launch : call.launches)
    for (const Field &field : launches[launch.index].fields) {
      if (field.abi.type != AbiType::Pointer)
        continue;
      uint64_t address =
          field.isArgument ? given[field.root].address : allocated[field.root];
      address += call.registers[field.value] * field.elementBytes;
      std::memcpy(call.parameters.data() + launch.firstByte + field.byteOffset,
                  &address, sizeof(address));
    }
}
