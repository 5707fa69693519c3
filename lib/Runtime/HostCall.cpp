//===- HostCall.cpp - Calls of host programs ------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/HostCall.h"

#include "HostSteps.h"
#include "flash/Runtime/LaunchLimits.h"
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

int64_t flash::runtime::getAddressStandIn(unsigned memory, uint64_t address) {
  return int64_t(memory) << 32 | uint32_t(address);
}

static uint32_t getMemory(int64_t standIn) { return standIn >> 32; }

//===----------------------------------------------------------------------===//
// What the code calls
//===----------------------------------------------------------------------===//

void flash_host_fail(HostCall *call, const char *format, int64_t numValues,
                     int64_t first, int64_t second) {
  std::string message = format;
  const int64_t values[] = {first, second};
  for (int64_t i = 0; i != numValues; ++i) {
    std::string place = formatv("{{{0}}", i), value = std::to_string(values[i]);
    for (size_t at = 0; (at = message.find(place, at)) != std::string::npos;
         at += value.size())
      message.replace(at, place.size(), value);
  }
  call->error = createStringError(message);
}

int64_t flash_host_allocate(HostCall *call, int64_t bytes) {
  // No device has as much as does not fit in 64 bits.
  int64_t offset = call->usedBytes, end;
  constexpr int64_t most = INT64_MAX - HostProgram::alignment + 1;
  if (llvm::AddOverflow(offset, bytes, end) || end > most)
    end = most;
  call->usedBytes = llvm::alignTo(end, HostProgram::alignment);
  Invocation &invocation = call->invocation;
  const HostProgram &program = call->program;
  unsigned memory = program.arguments.size() + program.results.size() +
                    invocation.scratch.size();
  invocation.scratch.push_back({offset, bytes});
  invocation.scratchBytes = std::max(invocation.scratchBytes, call->usedBytes);
  return getAddressStandIn(memory);
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
        formatv("@{0}, {1}: the size of dimension {2} is {3}, but must "
                "be 0 to {4}",
                launch.kernel, field.owner, abi.dimension, value, INT32_MAX));
  if (abi.type == AbiType::I32 && !llvm::isInt<32>(value))
    return createStringError(
        formatv("@{0}, {1}: {2} does not fit in the kernel's 32 bits",
                launch.kernel, field.owner, value));
  int64_t bytes;
  if ((abi.type == AbiType::Pointer || abi.type == AbiType::TensorMap) &&
      llvm::MulOverflow(value, field.elementBytes, bytes))
    return createStringError(
        formatv("@{0}, {1}: an offset of {2} elements does not fit in "
                "64 bits",
                launch.kernel, field.owner, value));
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

/// Checks the field and writes it or, where that takes an address, notes what
/// is to be written.
static Error prepareField(HostCall &call, unsigned number, unsigned index,
                          size_t firstByte, const int64_t *values) {
  const HostProgram::Launch &launch = call.program.launches[number];
  const HostProgram::Field &field = launch.fields[index];
  Invocation &invocation = call.invocation;
  bool isMap = field.abi.type == AbiType::TensorMap;
  firstByte += field.byteOffset;
  if (!isMap && field.abi.type != AbiType::Pointer) {
    // The first bytes are the smaller type's value: the device and every host
    // it has are little-endian.
    std::memcpy(invocation.parameters.data() + firstByte, values,
                getBytes(field.abi.type));
    return checkField(launch, field, *values);
  }
  if (Error error = checkField(launch, field, values[1]))
    return error;
  invocation.addresses.push_back(
      {number, index, firstByte, getMemory(values[0]),
       values[1] * field.elementBytes, invocation.shapes.size()});
  if (!isMap)
    return Error::success();
  const int64_t *shape = values + 2;
  invocation.shapes.append(shape, values + field.numValues);
  return checkTensorMap(launch, field, shape);
}

static Error prepareLaunch(HostCall &call, unsigned number,
                           const int64_t *values) {
  const HostProgram::Launch &launch = call.program.launches[number];
  Invocation &invocation = call.invocation;
  Invocation::Launch result;
  result.index = number;
  if (Error error = checkShape(launch, values, result))
    return error;
  if (result.grid[0] == 0 || result.grid[1] == 0 || result.grid[2] == 0)
    return Error::success();
  result.firstByte =
      llvm::alignTo(invocation.parameters.size(), maxAbiAlignment);
  invocation.parameters.resize(result.firstByte + launch.parameterBytes);
  invocation.launches.push_back(result);
  values += 7;
  for (auto [i, field] : llvm::enumerate(launch.fields)) {
    if (Error error = prepareField(call, number, i, result.firstByte, values))
      return error;
    values += field.numValues;
  }
  return Error::success();
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

Error HostProgram::prepare(ArrayRef<TensorArgument> given, Invocation &call,
                           ArrayRef<TensorArgument> places) const {
  if (given.size() != arguments.size())
    return createStringError(formatv("@{0} takes {1} arguments, but {2} are "
                                     "given",
                                     name, arguments.size(), given.size()));
  for (size_t i = 0; i != given.size(); ++i)
    if (Error error = checkArgument(i, arguments[i], given[i]))
      return error;
  call.inputs.resize_for_overwrite(getResultInput(results.size()));
  int64_t *input = call.inputs.data();
  *input++ = !places.empty();
  for (auto [i, argument] : llvm::enumerate(given)) {
    *input++ = getAddressStandIn(i, argument.address);
    input = llvm::copy(argument.sizes, input);
    input = llvm::copy(argument.strides, input);
  }
  for (auto [i, result] : llvm::enumerate(results)) {
    *input = getAddressStandIn(arguments.size() + i);
    if (!places.empty())
      llvm::copy(places[i].strides, llvm::copy(places[i].sizes, input + 1));
    input += 1 + 2 * result.sizes.size();
  }
  call.outputs.resize_for_overwrite(getResultOutput(results.size()));
  call.scratch.clear();
  call.scratchBytes = 0;
  call.launches.clear();
  call.parameters.clear();
  call.addresses.clear();
  call.shapes.clear();
  call.maps.clear();
  HostCall state{call.inputs.data(), call.outputs.data(), *this, call};
  function(&state);
  return state.error ? std::move(*state.error) : Error::success();
}

/// How many tensor maps a call keeps.
static constexpr unsigned mostMaps = 1024;

Error HostProgram::bind(ArrayRef<TensorArgument> given,
                        ArrayRef<uint64_t> resultAddresses,
                        ArrayRef<uint64_t> scratch, Invocation &call,
                        TensorMapEncoder encode) const {
  auto getAddress = [&](size_t memory) {
    if (memory < given.size())
      return given[memory].address;
    memory -= given.size();
    return memory < resultAddresses.size()
               ? resultAddresses[memory]
               : scratch[memory - resultAddresses.size()];
  };
  for (Invocation::Address &missing : call.addresses) {
    const Launch &launch = launches[missing.launch];
    const Field &field = launch.fields[missing.field];
    char *parameter = call.parameters.data() + missing.firstByte;
    uint64_t address = getAddress(missing.memory) + missing.byteOffset;
    if (field.abi.type == AbiType::Pointer) {
      std::memcpy(parameter, &address, sizeof(address));
      continue;
    }
    if (missing.encoded == address)
      continue;
    unsigned number = &missing - call.addresses.begin();
    auto known = call.maps.find({address, number});
    if (known == call.maps.end()) {
      auto map = encodeTensorMap(launch, field, address,
                                 &call.shapes[missing.firstShape], encode);
      if (!map)
        return map.takeError();
      if (call.maps.size() == mostMaps)
        call.maps.clear();
      known = call.maps.try_emplace({address, number}, *map).first;
    }
    std::memcpy(parameter, &known->second, sizeof(TensorMap));
    missing.encoded = address;
  }
  return Error::success();
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
  // The first input says whether there are buffers for results.
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

llvm::SmallVector<const void *, 32>
HostProgram::getPointers(const Invocation &call, unsigned launchIndex) const {
  const Invocation::Launch &launch = call.launches[launchIndex];
  const char *first = call.parameters.data() + launch.firstByte;
  llvm::SmallVector<const void *, 32> pointers;
  for (const Field &field : launches[launch.index].fields)
    pointers.push_back(first + field.byteOffset);
  return pointers;
}
