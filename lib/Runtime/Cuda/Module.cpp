//===- Module.cpp - Loaded programs ---------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Runtime/Cuda/Module.h"

#include "LoadedModule.h"
#include "ProgramImage.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::cuda;
using llvm::formatv;
using llvm::StringRef;

/// Why the driver refused a program, with what to do.
static llvm::Error explainRefusal(Context &context, CUresult result,
                                  const ProgramImage &program, StringRef name,
                                  StringRef log) {
  const Driver &driver = context.getDriver();
  std::string failure = driver.describe(result, "cuModuleLoadDataEx");
  if (!log.empty())
    failure += ":\n" + log.str();
  std::string doing = formatv("cannot load '{0}'", name);
  auto refuse = [&](ErrorKind kind, const llvm::Twine &why) {
    return fail(kind, doing + ": " + why + "; " + failure);
  };
  // Some drivers report the version as any other error in the text.
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
      log.contains("Unsupported .version"))
    return refuse(
        ErrorKind::DriverTooOld,
        formatv("the driver (CUDA {0}) is too old for PTX {1}; update it, or "
                "make a cubin with ptxas --gpu-name={2}",
                driver.getVersionString(), program.version, program.target));
  switch (result) {
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
    return refuse(
        ErrorKind::InvalidProgram,
        formatv("{0} does not run on {1} ({2})",
                program.isCubin ? std::string("this cubin")
                                : formatv("PTX for {0}", program.target).str(),
                context.getInfo().name, context.getInfo().getArchitecture()));
  case CUDA_ERROR_INVALID_PTX:
    return refuse(ErrorKind::InvalidProgram,
                  formatv("the driver (CUDA {0}) finds errors in the PTX",
                          driver.getVersionString()));
  case CUDA_ERROR_INVALID_IMAGE:
    return refuse(ErrorKind::InvalidProgram,
                  formatv("the driver (CUDA {0}) does not know this format",
                          driver.getVersionString()));
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    return refuse(ErrorKind::DriverFailure,
                  formatv("the driver cannot assemble PTX here (it needs "
                          "libnvidia-ptxjitcompiler.so.1, and "
                          "CUDA_DISABLE_PTX_JIT unset); make a cubin with "
                          "ptxas --gpu-name={0}",
                          program.target));
  default:
    return context.failCall(result, "cuModuleLoadDataEx", doing);
  }
}

llvm::Expected<Module> Module::load(const Device &device, StringRef image,
                                    StringRef name) {
  auto program = inspectProgram(image, name);
  if (!program)
    return program.takeError();
  Context &context = *device.getContext();
  if (llvm::Error error = context.enterAndDrain())
    return error;

  // The driver finds the end of PTX text by the zero byte after it.
  std::string text = image.str();
  std::vector<char> info(1 << 16), errors(1 << 16);
  auto asPointer = [](uintptr_t value) {
    return reinterpret_cast<void *>(value);
  };
  CUjit_option options[] = {
      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_LOG_VERBOSE};
  void *values[] = {info.data(), asPointer(info.size() - 1), errors.data(),
                    asPointer(errors.size() - 1), asPointer(1)};
  CUmodule handle = nullptr;
  CUresult result = context.getApi().cuModuleLoadDataEx.function(
      &handle, text.c_str(), std::size(options), options, values);
  if (result != CUDA_SUCCESS)
    return explainRefusal(context, result, *program, name,
                          StringRef(errors.data()).trim());

  Module module;
  module.loaded = std::make_shared<Function::Loaded>(device.getContext(),
                                                     name.str(), handle);
  if (!program->isCubin)
    module.loaded->parameters = countParameters(image);
  module.log = StringRef(info.data()).trim().str();
  return module;
}

llvm::Expected<Function> Module::getFunction(StringRef name) const {
  Context &context = *loaded->context;
  const DriverApi &api = context.getApi();
  // Looking at a kernel may load its code, which may wait for running ones.
  if (llvm::Error error = context.enterAndDrain())
    return error;
  std::string doing =
      formatv("cannot get kernel '{0}' of '{1}'", name, loaded->name);
  Function function;
  function.module = loaded;
  CUresult result = api.cuModuleGetFunction.function(
      &function.handle, loaded->handle, name.str().c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    return fail(ErrorKind::InvalidRequest,
                formatv("'{0}' has no kernel '{1}'", loaded->name, name));
  if (result != CUDA_SUCCESS)
    return context.failCall(result, "cuModuleGetFunction", doing);

  FunctionInfo &info = function.info;
  info.name = name.str();
  int sharedLimit = 0;
  std::pair<int *, CUfunction_attribute> attributes[] = {
      {&info.registers, CU_FUNC_ATTRIBUTE_NUM_REGS},
      {&info.localBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
      {&info.staticSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {&info.constantBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES},
      {&info.maxThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {&info.binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION},
      {&info.ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION},
      {&sharedLimit, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES}};
  for (auto [value, attribute] : attributes)
    if (llvm::Error error = context.call(doing, api.cuFuncGetAttribute, value,
                                         attribute, function.handle))
      return error;
  {
    std::lock_guard<std::mutex> lock(loaded->mutex);
    function.sharedLimit =
        &loaded->sharedLimits.try_emplace(name, sharedLimit).first->second;
  }
  auto count = loaded->parameters.find(name);
  if (count == loaded->parameters.end())
    return function;
  info.parameters = count->second;
  if (count->second == 0) {
    info.parameterBytes = 0;
  } else if (api.cuFuncGetParamInfo.function) {
    size_t offset = 0, size = 0; // The last parameter's.
    if (llvm::Error error =
            context.call(doing, api.cuFuncGetParamInfo, function.handle,
                         count->second - 1, &offset, &size))
      return error;
    info.parameterBytes = offset + size;
  }
  return function;
}
