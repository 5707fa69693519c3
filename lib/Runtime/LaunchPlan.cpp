//===- LaunchPlan.cpp - Evaluation of launch plans ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/LaunchPlan.h"

#include "LaunchPlanSteps.h"
#include "flash/Runtime/LaunchLimits.h"
#include "llvm/ADT/SmallVectorExtras.h"
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
  if ((abi.type == AbiType::Pointer || abi.type == AbiType::TensorMap) &&
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
static Error prepareLaunch(const LaunchPlan &plan, unsigned index,
                           Invocation &call) {
  const LaunchPlan::Launch &launch = plan.launches[index];
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
  result.firstByte = llvm::alignTo(call.parameters.size(), maxAbiAlignment);
  call.parameters.resize(result.firstByte + launch.parameterBytes);
  for (const LaunchPlan::Field &field : launch.fields) {
    int64_t value = r[field.value];
    if (Error error = checkField(launch, field, value))
      return error;
    if (field.abi.type == AbiType::TensorMap) {
      if (Error error = checkTensorMap(plan, launch, field, r))
        return error;
      continue;
    }
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
    if (Error error = prepareLaunch(*this, i, call))
      return error;
  return Error::success();
}

Error LaunchPlan::bind(ArrayRef<TensorArgument> given,
                       ArrayRef<uint64_t> allocated, Invocation &call,
                       TensorMapEncoder encode) const {
  const int64_t *r = call.registers.data();
  for (const Invocation::Launch &bound : call.launches) {
    const Launch &launch = launches[bound.index];
    for (const Field &field : launch.fields) {
      bool isMap = field.abi.type == AbiType::TensorMap;
      if (!isMap && field.abi.type != AbiType::Pointer)
        continue;
      uint64_t address =
          field.isArgument ? given[field.root].address : allocated[field.root];
      address += r[field.value] * field.elementBytes;
      char *parameter =
          call.parameters.data() + bound.firstByte + field.byteOffset;
      if (!isMap) {
        std::memcpy(parameter, &address, sizeof(address));
        continue;
      }
      auto map = encodeTensorMap(*this, launch, field, address, r, encode);
      if (!map)
        return map.takeError();
      std::memcpy(parameter, &*map, sizeof(*map));
    }
  }
  return Error::success();
}

bool LaunchPlan::Launch::hasTensorMaps() const {
  return llvm::any_of(fields, [](const Field &field) {
    return field.abi.type == AbiType::TensorMap;
  });
}

llvm::SmallVector<const void *>
LaunchPlan::getPointers(const Invocation &call, unsigned launchIndex) const {
  const Invocation::Launch &launch = call.launches[launchIndex];
  const char *first = call.parameters.data() + launch.firstByte;
  return llvm::map_to_vector(launches[launch.index].fields,
                             [&](const Field &field) -> const void * {
                               return first + field.byteOffset;
                             });
}
