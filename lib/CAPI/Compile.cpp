//===- Compile.cpp - Compiling a program into a kernel --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "flash/Compile/CompileOptions.h"
#include "flash/Compile/RunPasses.h"
#include "flash/Machine/Machine.h"
#include "flash/Pipelines/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::compile;
using flash::capi::fail;
using llvm::createStringError;
using llvm::formatv;

/// The options of a caller that may have been compiled with an older header.
static llvm::Expected<FlashCompileOptions>
complete(const FlashCompileOptions &given) {
  // The members that the first version of the struct had.
  constexpr size_t least = offsetof(FlashCompileOptions, device);
  FlashCompileOptions all = {};
  if (given.struct_size < least || given.struct_size > sizeof(all))
    return createStringError(formatv(
        "struct_size of the options is {0}; expected sizeof(FlashCompile"
        "Options), which is {1} in this library and not less than {2}",
        given.struct_size, sizeof(all), least));
  std::memcpy(&all, &given, given.struct_size);
  return all;
}

llvm::Error FlashKernel::readOptions(const FlashCompileOptions &given) {
  auto all = complete(given);
  if (!all)
    return all.takeError();
  auto read = [](const char *from) { return from ? from : ""; };
  if (!all->target)
    return createStringError("target of the options must not be null");
  target = all->target;
  function = read(all->function);
  schedule = read(all->schedule);
  versions = read(all->versions);
  device = read(all->device);
  tuningFile = read(all->tuning_file);
  multiprocessors = all->multiprocessors;
  isInterrupted = all->is_interrupted;
  return readOptions();
}

llvm::Error FlashKernel::readOptions() {
  options.function = function;
  options.versions = versions;
  options.tuningFile = tuningFile;
  options.isReference = target == "reference";
  if (llvm::Error error =
          parseTarget(options.isReference ? "cpu" : target, options))
    return error;
  if (options.target == Target::Auto)
    return createStringError(
        "the target 'auto' is of flash-run; give cpu, a GPU such as sm_90a, or "
        "what flashGetDeviceTarget says");
  options.device = device;
  if (device.empty() && !options.isGpu())
    options.device = getHostDevice(options.target);
  if (multiprocessors < 0 || multiprocessors > flash::mostMultiprocessors)
    return createStringError(formatv("multiprocessors of the options is {0}, "
                                     "which is not from 1 to {1}, or 0",
                                     multiprocessors,
                                     flash::mostMultiprocessors));
  if (multiprocessors && options.target == Target::Cpu)
    return createStringError("multiprocessors are of GPUs; the target is cpu");
  options.multiprocessors = multiprocessors;
  if (schedule.empty())
    return llvm::Error::success();
  return parseSchedule(schedule, options);
}

static FlashKernel::Type getType(mlir::Type type, bool isReference) {
  auto tensor = llvm::cast<mlir::RankedTensorType>(type);
  DType element = *getDType(tensor.getElementType());
  return {isReference && isPromoted(element) ? DType::F64 : element,
          llvm::SmallVector<int64_t, 4>(tensor.getShape())};
}

const char *flashGetTargets() {
  static const std::string targets = [] {
    std::string names = "cpu,emulate";
    for (const flash::Machine &gpu : flash::getGpus())
      names += ("," + gpu.name + ",emulate:" + gpu.name).str();
    return names + ",reference";
  }();
  return targets.c_str();
}

FlashStatus flashTargetGetNumber(const char *target, const char *key,
                                 int64_t *value) {
  if (!target || !key || !value)
    return fail(FLASH_INVALID_ARGUMENT, "flashTargetGetNumber: target, key and "
                                        "value must not be null");
  const flash::Machine *machine = flash::findMachine(target);
  std::optional<int64_t> found;
  if (machine && machine->isGpu())
    machine->forEach([&](llvm::StringRef each, llvm::StringRef text) {
      int64_t number;
      if (each == key && !text.getAsInteger(10, number))
        found = number;
    });
  if (!found)
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashTargetGetNumber: there is no number '{0}' "
                        "of a GPU '{1}'",
                        key, target));
  *value = *found;
  return FLASH_SUCCESS;
}

std::unique_lock<std::mutex> flash::capi::lockCompiler() {
  static std::mutex mutex;
  return std::unique_lock<std::mutex>(mutex);
}

llvm::Error
FlashKernel::withProgram(std::string &diagnostics,
                         llvm::function_ref<llvm::Error(Program &)> use) const {
  auto lock = flash::capi::lockCompiler();
  mlir::DialectRegistry registry;
  flash::registerAllDialects(registry);
  // One function at a time is compiled, which threads cannot speed up.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  InterruptionScope scope(context, isInterrupted);
  llvm::raw_string_ostream os(diagnostics);
  auto parsed = loadProgram(
      context, llvm::MemoryBuffer::getMemBufferCopy(text, "program"), options,
      os);
  if (!parsed)
    return parsed.takeError();
  return use(*parsed);
}

llvm::Error FlashKernel::compile(std::string &diagnostics) {
  return withProgram(diagnostics, [&](Program &parsed) -> llvm::Error {
    mlir::func::FuncOp entry = parsed.entry;
    arguments.clear();
    for (mlir::Type type : entry.getArgumentTypes())
      arguments.push_back(getType(type, options.isReference));
    results.clear();
    for (mlir::Type type : entry.getResultTypes())
      results.push_back(getType(type, options.isReference));

    if (options.isGpu()) {
      auto compiled = GpuProgram::compile(*parsed.module, entry.getSymName(),
                                          Variant::Flash, options);
      if (!compiled)
        return compiled.takeError();
      compiled->level0 = nullptr; // It belongs to the context that ends here.
      program = std::move(*compiled);
      return llvm::Error::success();
    }
    auto compiled = CpuProgram::compile(
        *parsed.module, entry.getSymName(),
        options.isReference ? Variant::Reference : Variant::Flash, options);
    if (!compiled)
      return compiled.takeError();
    executable = std::move(compiled->executable);
    return llvm::Error::success();
  });
}

FlashStatus flashKernelCompile(const char *text, size_t length,
                               const FlashCompileOptions *options,
                               FlashKernel **kernel) {
  if (!text || !options || !kernel)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelCompile: text, options and kernel must not be "
                "null");
  if (length > size_t(PTRDIFF_MAX))
    return fail(FLASH_INVALID_ARGUMENT,
                formatv("flashKernelCompile: no text has {0} bytes", length));
  auto result = std::make_unique<FlashKernel>();
  result->text.assign(text, length);
  if (llvm::Error error = result->readOptions(*options))
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  std::string diagnostics;
  if (llvm::Error error = result->compile(diagnostics))
    return flash::capi::failProgram(std::move(error), diagnostics);
  // What the kernel compiles later cannot be interrupted.
  result->isInterrupted = nullptr;
  *kernel = result.release();
  return FLASH_SUCCESS;
}

void flashKernelDestroy(FlashKernel *kernel) { delete kernel; }

/// Leaves a message if there is no kernel.
static bool isKernel(const FlashKernel *kernel, llvm::StringRef function) {
  if (!kernel)
    fail(FLASH_INVALID_ARGUMENT, function + ": kernel must not be null");
  return kernel;
}

const char *flashKernelGetTarget(const FlashKernel *kernel) {
  return isKernel(kernel, "flashKernelGetTarget") ? kernel->target.c_str() : "";
}

size_t flashKernelGetNumArguments(const FlashKernel *kernel) {
  return isKernel(kernel, "flashKernelGetNumArguments")
             ? kernel->arguments.size()
             : 0;
}

size_t flashKernelGetNumResults(const FlashKernel *kernel) {
  return isKernel(kernel, "flashKernelGetNumResults") ? kernel->results.size()
                                                      : 0;
}

static FlashTensorType describe(llvm::ArrayRef<FlashKernel::Type> types,
                                size_t index, const char *what) {
  if (index >= types.size()) {
    fail(FLASH_INVALID_ARGUMENT,
         formatv("there is no {0} {1}: the kernel has {2}, counted from "
                 "0",
                 what, index, types.size()));
    return {FLASH_F16, -1, nullptr};
  }
  const FlashKernel::Type &type = types[index];
  return {FlashElementType(type.element), int32_t(type.sizes.size()),
          type.sizes.data()};
}

// Both list the types in the same order.
static_assert(int(DType::F16) == FLASH_F16 && int(DType::F64) == FLASH_F64 &&
              int(DType::I8) == FLASH_I8 && int(DType::I64) == FLASH_I64 &&
              int(DType::F8E4M3FN) == FLASH_F8E4M3FN);
static_assert(mlir::ShapedType::kDynamic == FLASH_DYNAMIC);

FlashTensorType flashKernelGetArgument(const FlashKernel *kernel,
                                       size_t index) {
  if (!isKernel(kernel, "flashKernelGetArgument"))
    return {FLASH_F16, -1, nullptr};
  return describe(kernel->arguments, index, "argument");
}

FlashTensorType flashKernelGetResult(const FlashKernel *kernel, size_t index) {
  if (!isKernel(kernel, "flashKernelGetResult"))
    return {FLASH_F16, -1, nullptr};
  return describe(kernel->results, index, "result");
}
