//===- Launch.cpp - Launching kernels on a GPU ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

namespace cuda = flash::cuda;
using namespace flash::compile;
using flash::capi::fail;
using flash::runtime::HostProgram;
using flash::runtime::TensorArgument;
using llvm::formatv;
using llvm::SmallVector;

struct FlashCall {
  const HostProgram &host;
  std::shared_ptr<LoadedProgram> program;
  /// Shapes of the arguments, and of the results where the caller gives them;
  /// `tensors` and `resultTensors` refer to it.
  SmallVector<int64_t, 64> shapes;
  SmallVector<TensorArgument, 8> tensors, resultTensors;
  flash::runtime::Invocation invocation;
  /// What the last launch was given.
  SmallVector<uint64_t, 8> results, scratch;
  bool isPrepared = false;

  FlashCall(const HostProgram &host, std::shared_ptr<LoadedProgram> program)
      : host(host), program(std::move(program)) {}

  void copyShapes(llvm::ArrayRef<FlashTensor> arguments,
                  llvm::ArrayRef<FlashTensor> results);
  llvm::Error prepare();
  /// Whoever owns the memory of a result sees its sizes only.
  llvm::Error checkResult(size_t index) const;
};

llvm::Expected<cuda::Device> flash::capi::getDevice(int ordinal) {
  // Never closed: at exit the driver may be gone before this library.
  static std::mutex mutex;
  static auto *devices = new std::map<int, cuda::Device>;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = devices->find(ordinal);
  if (found != devices->end())
    return found->second;
  auto device = cuda::Device::open(ordinal);
  if (!device)
    return device.takeError();
  // Kernels of others run on the same device, for as long as they like.
  device->setTimeout(std::numeric_limits<double>::infinity());
  devices->emplace(ordinal, *device);
  return device;
}

FlashStatus flashGetDevice(int device, FlashDevice *description) {
  if (!description)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashGetDevice: description must not be null");
  auto opened = flash::capi::getDevice(device);
  if (!opened)
    return fail(FLASH_UNAVAILABLE, opened.takeError());
  const cuda::DeviceInfo &info = opened->getInfo();
  const flash::Machine *target = info.getTarget();
  if (!target)
    return fail(FLASH_UNAVAILABLE, info.getReasonForNone());
  static std::mutex mutex;
  static auto *warnings = new std::map<int, std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  std::string &warning =
      warnings->try_emplace(device, info.getWarning(target)).first->second;
  *description = {target->name.data(), info.name.c_str(), info.multiprocessors,
                  warning.empty() ? nullptr : warning.c_str()};
  return FLASH_SUCCESS;
}

FlashStatus flashGetDeviceTarget(int device, const char **target) {
  if (!target)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashGetDeviceTarget: target must not be null");
  FlashDevice description;
  if (FlashStatus status = flashGetDevice(device, &description))
    return status;
  *target = description.target;
  return FLASH_SUCCESS;
}

FlashStatus flashCallCreate(FlashKernel *kernel, int device, FlashCall **call) {
  if (!kernel || !call)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashCallCreate: kernel and call must not be null");
  if (!kernel->program)
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashCallCreate: the kernel is for {0}; run it with "
                        "flashKernelRun",
                        kernel->target));
  std::lock_guard<std::mutex> lock(kernel->mutex);
  std::shared_ptr<LoadedProgram> &program = kernel->loaded[device];
  if (!program) {
    auto opened = flash::capi::getDevice(device);
    if (!opened)
      return fail(FLASH_UNAVAILABLE, opened.takeError());
    auto loaded = LoadedProgram::load(*kernel->program, *opened);
    if (!loaded)
      return fail(FLASH_UNAVAILABLE, loaded.takeError());
    program = std::make_shared<LoadedProgram>(std::move(*loaded));
  }
  *call = new FlashCall(kernel->program->host, program);
  return FLASH_SUCCESS;
}

void flashCallDestroy(FlashCall *call) { delete call; }

/// Gives a result that is to be dense in another order than the program can
/// write it in the strides of a row-major one.
static void limitStrides(const HostProgram::Result &result,
                         llvm::ArrayRef<int64_t> sizes,
                         llvm::MutableArrayRef<int64_t> strides) {
  bool isOpen = !result.isDense;
  for (auto [size, stride, expected] :
       llvm::zip_equal(sizes, strides, result.strides))
    isOpen &=
        size <= 1 || expected == HostProgram::dynamic || expected == stride;
  int64_t dense = 1;
  for (size_t d = sizes.size(); !isOpen && d-- > 0;) {
    strides[d] = dense;
    dense *= sizes[d];
  }
}

void FlashCall::copyShapes(llvm::ArrayRef<FlashTensor> arguments,
                           llvm::ArrayRef<FlashTensor> results) {
  size_t total = 0;
  for (llvm::ArrayRef<FlashTensor> all : {arguments, results})
    for (const FlashTensor &tensor : all)
      total += 2 * tensor.rank;
  shapes.resize_for_overwrite(total);
  tensors.clear();
  resultTensors.clear();
  int64_t *next = shapes.data();
  auto copy = [&](const int64_t *values, size_t count) {
    llvm::MutableArrayRef<int64_t> copied(next, count);
    next = std::copy_n(values, count, next);
    return copied;
  };
  for (const FlashTensor &argument : arguments) {
    auto sizes = copy(argument.sizes, argument.rank);
    auto strides = copy(argument.strides, argument.rank);
    flash::runtime::setIdleStrides(sizes, strides);
    tensors.push_back(
        {reinterpret_cast<uint64_t>(argument.data), sizes, strides});
  }
  for (auto [i, result] : llvm::enumerate(results)) {
    auto sizes = copy(result.sizes, result.rank);
    auto strides = copy(result.strides, result.rank);
    flash::runtime::setIdleStrides(sizes, strides);
    limitStrides(host.results[i], sizes, strides);
    resultTensors.push_back({0, sizes, strides});
  }
}

llvm::Error FlashCall::checkResult(size_t index) const {
  flash::runtime::Invocation::Result result = invocation.getResult(host, index);
  if (!resultTensors.empty() && result.sizes != resultTensors[index].sizes)
    return llvm::createStringError(
        formatv("result {0} has other sizes than its tensor", index));
  auto order = llvm::to_vector<8>(llvm::seq<unsigned>(result.sizes.size()));
  if (!resultTensors.empty())
    llvm::sort(order, [&](unsigned left, unsigned right) {
      return std::pair(result.strides[right], left) <
             std::pair(result.strides[left], right);
    });
  int64_t count = 1, end = 1;
  bool isDense = true, areApart = true;
  for (unsigned d : llvm::reverse(order)) {
    int64_t size = result.sizes[d], stride = result.strides[d];
    isDense &= size <= 1 || stride == count;
    areApart &= size <= 1 || stride >= end;
    count *= size;
    end += (size - 1) * stride;
  }
  int64_t bytes = count * host.results[index].elementBytes;
  bool isPlace = !resultTensors.empty();
  if (bytes == result.bytes && (isDense || (isPlace && areApart) || bytes == 0))
    return llvm::Error::success();
  if (isPlace)
    return llvm::createStringError(formatv(
        "elements of the tensor of result {0} may share an address", index));
  return llvm::createStringError(
      formatv("result {0} is a part of a tensor, or has gaps; only whole "
              "tensors can be returned",
              index));
}

llvm::Error FlashCall::prepare() {
  if (llvm::Error error = host.prepare(tensors, invocation, resultTensors))
    return error;
  for (size_t i = 0; i != host.results.size(); ++i)
    if (llvm::Error error = checkResult(i))
      return error;
  isPrepared = true;
  return llvm::Error::success();
}

/// `results` are tensors to write to, or there are none.
static FlashStatus prepare(const char *function, FlashCall *call,
                           const FlashTensor *arguments, size_t numArguments,
                           llvm::ArrayRef<FlashTensor> results) {
  if (!call || (!arguments && numArguments))
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("{0}: no argument may be null", function));
  call->isPrepared = false;
  const HostProgram &host = call->host;
  if (numArguments != host.arguments.size())
    return fail(FLASH_INVALID_TENSOR,
                formatv("@{0} takes {1} arguments, but {2} are given",
                        host.name, host.arguments.size(), numArguments));
  for (size_t i = 0; i != numArguments; ++i) {
    std::string fault =
        flash::capi::findFault(arguments[i], host.arguments[i].sizes.size());
    if (!fault.empty())
      return fail(FLASH_INVALID_TENSOR, formatv("argument {0} {1}", i, fault));
  }
  call->copyShapes({arguments, numArguments}, results);
  if (llvm::Error error = call->prepare())
    return fail(FLASH_INVALID_TENSOR, std::move(error));
  return FLASH_SUCCESS;
}

FlashStatus flashCallPrepare(FlashCall *call, const FlashTensor *arguments,
                             size_t numArguments) {
  return prepare("flashCallPrepare", call, arguments, numArguments, {});
}

FlashStatus flashCallPrepareResults(FlashCall *call,
                                    const FlashTensor *arguments,
                                    size_t numArguments,
                                    const FlashTensor *results,
                                    size_t numResults) {
  if (call)
    call->isPrepared = false;
  if (!results && numResults)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashCallPrepareResults: no argument may be null");
  if (call && numResults != call->host.results.size())
    return fail(
        FLASH_INVALID_TENSOR,
        formatv("@{0} has {1} results, but {2} tensors for results are given",
                call->host.name, call->host.results.size(), numResults));
  for (size_t i = 0; call && i != numResults; ++i) {
    FlashTensor place = results[i];
    place.data = &place; // There need be no memory yet.
    std::string fault =
        flash::capi::findFault(place, call->host.results[i].sizes.size());
    if (!fault.empty())
      return fail(FLASH_INVALID_TENSOR, formatv("result {0} {1}", i, fault));
  }
  return prepare("flashCallPrepareResults", call, arguments, numArguments,
                 {results, numResults});
}

FlashStatus flashCallSetAddresses(FlashCall *call, void *const *arguments,
                                  size_t numArguments) {
  if (!call || !call->isPrepared)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashCallSetAddresses: prepare the call first");
  call->isPrepared = false;
  if (numArguments != call->tensors.size() || (!arguments && numArguments))
    return fail(
        FLASH_INVALID_ARGUMENT,
        formatv("flashCallSetAddresses: {0} addresses for {1} arguments",
                arguments ? numArguments : 0, call->tensors.size()));
  for (size_t i = 0; i != numArguments; ++i) {
    TensorArgument &tensor = call->tensors[i];
    auto address = reinterpret_cast<uint64_t>(arguments[i]);
    if (!address && !llvm::is_contained(tensor.sizes, 0))
      return fail(
          FLASH_INVALID_TENSOR,
          formatv("argument {0} has elements, but its data is null", i));
    // The code looked at the rest alone (HostViews::assumeAlignment).
    if ((address ^ tensor.address) % HostProgram::alignment ||
        address % call->host.arguments[i].alignment)
      return fail(
          FLASH_INVALID_TENSOR,
          formatv("flashCallSetAddresses: argument {0} is at {1:x} and was at "
                  "{2:x}, which are not alike as multiples of {3} bytes; "
                  "prepare the call again",
                  i, address, tensor.address,
                  std::max(HostProgram::alignment,
                           call->host.arguments[i].alignment)));
    tensor.address = address;
  }
  call->isPrepared = true;
  return FLASH_SUCCESS;
}

FlashTensor flashCallGetResult(const FlashCall *call, size_t index) {
  if (!call || !call->isPrepared || index >= call->host.results.size()) {
    fail(FLASH_INVALID_ARGUMENT,
         !call || !call->isPrepared
             ? "flashCallGetResult: prepare the call first"
             : formatv("flashCallGetResult: there is no result {0}", index)
                   .str());
    return {nullptr, -1, nullptr, nullptr};
  }
  auto result = call->invocation.getResult(call->host, index);
  return {nullptr, int32_t(result.sizes.size()), result.sizes.data(),
          result.strides.data()};
}

int64_t flashCallGetScratchBytes(const FlashCall *call) {
  if (!call || !call->isPrepared) {
    fail(FLASH_INVALID_ARGUMENT,
         "flashCallGetScratchBytes: prepare the call first");
    return -1;
  }
  return call->invocation.scratchBytes;
}

FlashStatus flashCallLaunch(FlashCall *call, void *const *results,
                            size_t numResults, void *scratch, void *stream) {
  if (!call || !call->isPrepared)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashCallLaunch: prepare the call first");
  const HostProgram &host = call->host;
  flash::runtime::Invocation &invocation = call->invocation;
  if (numResults != host.results.size() || (!results && numResults))
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashCallLaunch: {0} addresses for {1} results",
                        numResults, host.results.size()));
  if (!scratch && invocation.scratchBytes)
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashCallLaunch: scratch is null, but {0} bytes of "
                        "scratch memory are needed",
                        invocation.scratchBytes));
  for (size_t i = 0; i != numResults; ++i)
    if (!results[i] && invocation.getResult(host, i).bytes)
      return fail(
          FLASH_INVALID_ARGUMENT,
          formatv("flashCallLaunch: the address of result {0} is null", i));
  call->results.clear();
  for (size_t i = 0; i != numResults; ++i)
    call->results.push_back(reinterpret_cast<uint64_t>(results[i]));
  auto first = reinterpret_cast<uint64_t>(scratch);
  call->scratch.clear();
  for (const auto &part : invocation.scratch)
    call->scratch.push_back(first + part.offset);
  for (size_t i = 0; i != numResults; ++i)
    if (call->results[i] % host.results[i].alignment)
      return fail(FLASH_INVALID_TENSOR,
                  formatv("flashCallLaunch: the address {0:x} of result {1} is "
                          "not a multiple of {2}",
                          call->results[i], i, host.results[i].alignment));
  if (first % HostProgram::alignment)
    return fail(FLASH_INVALID_TENSOR,
                formatv("flashCallLaunch: the address {0:x} of scratch memory "
                        "is not a multiple of {1}",
                        first, HostProgram::alignment));
  LoadedProgram &program = *call->program;
  if (llvm::Error error = program.bind(host, call->tensors, call->results,
                                       call->scratch, invocation))
    return fail(FLASH_INVALID_TENSOR, std::move(error));
  if (llvm::Error error = program.allowShared(invocation))
    return fail(FLASH_FAILURE, std::move(error));
  if (llvm::Error error =
          program.launch(host, invocation, cuda::Stream::borrow(stream)))
    return fail(FLASH_FAILURE, std::move(error));
  return FLASH_SUCCESS;
}
