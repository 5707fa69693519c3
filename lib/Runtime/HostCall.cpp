//===- HostCall.cpp - Calls of host programs ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/HostCall.h"

#include "HostSteps.h"
#include "flash/Runtime/LaunchLimits.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
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
// What the code calls
//===----------------------------------------------------------------------===//

void flash_host_fail(HostCall *call, const char *format, const int64_t *values,
                     int64_t numValues) {
  std::string message = format;
  for (int64_t i = 0; i != numValues; ++i) {
    std::string place = formatv("{{{0}}", i), value = std::to_string(values[i]);
    for (size_t at = 0; (at = message.find(place, at)) != std::string::npos;
         at += value.size())
      message.replace(at, place.size(), value);
  }
  call->error = createStringError(message);
}

int64_t flash_host_allocate(HostCall *call, int64_t bytes) {
  // Where it does not fit in 64 bits, nobody has so much.
  int64_t offset = call->usedBytes, end;
  constexpr int64_t most = INT64_MAX - HostProgram::alignment + 1;
  if (llvm::AddOverflow(offset, bytes, end) || end > most)
    end = most;
  call->usedBytes = llvm::alignTo(end, HostProgram::alignment);
  size_t number = call->numAllocations++;
  if (call->isBound)
    return call->scratch[number];
  Invocation &invocation = call->invocation;
  invocation.scratch.push_back({offset, bytes});
  invocation.scratchBytes = std::max(invocation.scratchBytes, call->usedBytes);
  return 0;
}

int64_t flash_host_mark(HostCall *call) { return call->usedBytes; }

void flash_host_release(HostCall *call, int64_t usedBytes) {
  call->usedBytes = usedBytes;
}

static Error checkField(const HostProgram::Launch &launch,
                        const HostProgram::Field &field, int64_t value) {
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

static Error checkDimension(const HostProgram::Launch &launch,
                            llvm::StringRef what, unsigned dimension,
                            int64_t value, int64_t low, int64_t high) {
  if (low <= value && value <= high)
    return Error::success();
  return createStringError(
      formatv("@{0}: the {1} has {2} in {3}, but must have {4} to {5}",
              launch.kernel, what, value, "xyz"[dimension], low, high));
}

/// Checks grid, block and shared memory, and sets them.
static Error checkShape(const HostProgram::Launch &launch,
                        const int64_t *values, Invocation::Launch &result) {
  int64_t threads = 1;
  for (unsigned d = 0; d != 3; ++d) {
    int64_t blocks = values[d], size = values[3 + d];
    if (Error error = checkDimension(launch, "grid", d, blocks, 0, maxGrid[d]))
      return error;
    if (Error error = checkDimension(launch, "block", d, size, 1, maxBlock[d]))
      return error;
    threads *= size;
    result.grid[d] = blocks;
    result.block[d] = size;
  }
  if (threads > maxThreads)
    return createStringError(
        formatv("@{0}: a block has {1} threads, but may have at most {2}",
                launch.kernel, threads, maxThreads));
  int64_t sharedBytes = values[6];
  if (sharedBytes < 0 || sharedBytes > maxSharedBytes)
    return createStringError(
        formatv("@{0}: {1} bytes of dynamic shared memory are not in the range "
                "from 0 to {2}",
                launch.kernel, sharedBytes, maxSharedBytes));
  result.sharedBytes = sharedBytes;
  return Error::success();
}

/// Whether the values before the field's are an address and an offset.
static bool hasAddress(const HostProgram::Field &field) {
  return field.abi.type == AbiType::Pointer ||
         field.abi.type == AbiType::TensorMap;
}

static Error checkLaunch(const HostProgram::Launch &launch,
                         const int64_t *values) {
  for (const HostProgram::Field &field : launch.fields) {
    if (Error error = checkField(launch, field, values[hasAddress(field)]))
      return error;
    if (field.abi.type == AbiType::TensorMap)
      if (Error error = checkTensorMap(launch, field, values + 2))
        return error;
    values += field.numValues;
  }
  return Error::success();
}

/// Appends the launch, whose values have been checked when the call was
/// prepared.
static Error appendLaunch(HostCall &call, Invocation::Launch shape,
                          const int64_t *values) {
  const HostProgram::Launch &launch = call.program.launches[shape.index];
  Invocation &invocation = call.invocation;
  shape.firstByte =
      llvm::alignTo(invocation.parameters.size(), maxAbiAlignment);
  invocation.parameters.resize(shape.firstByte + launch.parameterBytes);
  invocation.launches.push_back(shape);
  char *first = invocation.parameters.data() + shape.firstByte;
  for (const HostProgram::Field &field : launch.fields) {
    char *parameter = first + field.byteOffset;
    uint64_t word = values[0];
    if (hasAddress(field))
      word += uint64_t(values[1]) * field.elementBytes;
    if (field.abi.type == AbiType::TensorMap) {
      auto map = encodeTensorMap(launch, field, word, values + 2, call.encode);
      if (!map)
        return map.takeError();
      std::memcpy(parameter, &*map, sizeof(*map));
    } else {
      // The bytes in front are those of the smaller type: the device and every
      // host it has are little-endian.
      std::memcpy(parameter, &word, getBytes(field.abi.type));
    }
    values += field.numValues;
  }
  return Error::success();
}

static Error prepareLaunch(HostCall &call, unsigned number,
                           const int64_t *values) {
  const HostProgram::Launch &launch = call.program.launches[number];
  Invocation::Launch shape;
  shape.index = number;
  if (Error error = checkShape(launch, values, shape))
    return error;
  if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0)
    return Error::success();
  values += 7;
  return call.isBound ? appendLaunch(call, shape, values)
                      : checkLaunch(launch, values);
}

int32_t flash_host_launch(HostCall *call, int64_t number,
                          const int64_t *values) {
  Error error = prepareLaunch(*call, number, values);
  if (!error)
    return 0;
  call->error = std::move(error);
  return 1;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static Error run(HostCall &call) {
  call.program.function(&call);
  return call.error ? std::move(*call.error) : Error::success();
}

Error HostProgram::prepare(ArrayRef<TensorArgument> given,
                           Invocation &call) const {
  if (given.size() != arguments.size())
    return createStringError(formatv("@{0} takes {1} arguments, but {2} are "
                                     "given",
                                     name, arguments.size(), given.size()));
  for (size_t i = 0; i != given.size(); ++i)
    if (Error error = checkArgument(i, arguments[i], given[i]))
      return error;
  call.inputs.assign(1, 0);
  for (const TensorArgument &argument : given) {
    call.inputs.push_back(argument.address);
    llvm::append_range(call.inputs, argument.sizes);
    llvm::append_range(call.inputs, argument.strides);
  }
  call.inputs.resize(getResultInput(results.size()));
  call.outputs.resize_for_overwrite(getResultOutput(results.size()));
  call.scratch.clear();
  call.scratchBytes = 0;
  HostCall state{call.inputs.data(), call.outputs.data(), *this,  call,
                 /*isBound=*/false,  /*scratch=*/{},      nullptr};
  return run(state);
}

Error HostProgram::bind(ArrayRef<TensorArgument> given,
                        ArrayRef<uint64_t> resultAddresses,
                        ArrayRef<uint64_t> scratch, Invocation &call,
                        TensorMapEncoder encode) const {
  call.inputs[0] = 1;
  for (size_t i = 0; i != given.size(); ++i)
    call.inputs[getArgumentInput(i)] = given[i].address;
  for (size_t i = 0; i != results.size(); ++i) {
    int64_t *input = &call.inputs[getResultInput(i)];
    *input = resultAddresses[i];
    // Sizes and strides, which come behind the bytes.
    std::copy_n(&call.outputs[getResultOutput(i)] + 1,
                2 * results[i].sizes.size(), input + 1);
  }
  call.launches.clear();
  call.parameters.clear();
  HostCall state{call.inputs.data(),
                 call.outputs.data(),
                 *this,
                 call,
                 /*isBound=*/true,
                 scratch,
                 encode};
  return run(state);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

void HostProgram::Launch::addField(Field field) {
  AbiType type = field.abi.type;
  field.byteOffset = llvm::alignTo(parameterBytes, getAlignment(type));
  parameterBytes = field.byteOffset + getBytes(type);
  if (type == AbiType::Pointer)
    field.numValues = 2;
  fields.push_back(field);
}

void HostProgram::Launch::addTensorMap(Field field, TensorMapRecipe recipe) {
  field.tensorMap = tensorMaps.size();
  field.numValues = 2 + 2 * recipe.box.size();
  tensorMaps.push_back(std::move(recipe));
  addField(field);
}

unsigned HostProgram::getArgumentInput(unsigned argument) const {
  // The first input says whether there are places for results.
  unsigned input = 1;
  for (const Argument &before : ArrayRef(arguments).take_front(argument))
    input += 1 + 2 * before.sizes.size();
  return input;
}

unsigned HostProgram::getResultInput(unsigned result) const {
  return getArgumentInput(arguments.size()) + getResultOutput(result);
}

unsigned HostProgram::getResultOutput(unsigned result) const {
  unsigned output = 0;
  for (const Result &before : ArrayRef(results).take_front(result))
    output += 1 + 2 * before.sizes.size();
  return output;
}

Invocation::Result Invocation::getResult(const HostProgram &program,
                                         unsigned index) const {
  size_t rank = program.results[index].sizes.size();
  ArrayRef<int64_t> words =
      ArrayRef(outputs).slice(program.getResultOutput(index), 1 + 2 * rank);
  return {words.slice(1, rank), words.drop_front(1 + rank), words[0]};
}

llvm::SmallVector<const void *>
HostProgram::getPointers(const Invocation &call, unsigned launchIndex) const {
  const Invocation::Launch &launch = call.launches[launchIndex];
  const char *first = call.parameters.data() + launch.firstByte;
  return llvm::map_to_vector(launches[launch.index].fields,
                             [&](const Field &field) -> const void * {
                               return first + field.byteOffset;
                             });
}
