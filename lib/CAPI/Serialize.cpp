//===- Serialize.cpp - Kernels as bytes -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Archive.h"
#include "Kernel.h"

#include "flash/Target/Host/HostCode.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using flash::capi::fail;
using flash::capi::Reader;
using flash::capi::Writer;

namespace flash {

template <typename A> void describe(A &archive, AbiField &field) {
  archive(field.type, field.role, field.dimension);
}

template <typename A> void describe(A &archive, CpuObject &object) {
  archive(object.bytes, object.numInputs, object.resultRanks);
}

namespace runtime {

template <typename A> void describe(A &archive, HostProgram::Argument &value) {
  archive(value.name, value.elementType, value.elementBytes, value.sizes,
          value.strides, value.isDense, value.alignment);
}

template <typename A> void describe(A &archive, HostProgram::Result &value) {
  archive(value.elementType, value.elementBytes, value.sizes, value.strides,
          value.isDense, value.alignment);
}

template <typename A>
void describe(A &archive, HostProgram::TensorMapRecipe &value) {
  archive(value.element, value.box, value.swizzleBytes, value.l2PromotionBytes);
}

template <typename A> void describe(A &archive, HostProgram::Field &value) {
  archive(value.abi, value.owner, value.argument, value.byteOffset,
          value.elementBytes, value.tensorMap, value.numValues);
}

template <typename A> void describe(A &archive, HostProgram::Launch &value) {
  archive(value.module, value.kernel, value.sharedBytes, value.fields,
          value.tensorMaps, value.parameterBytes, value.isDependent);
}

template <typename A> void describe(A &archive, HostProgram &value) {
  archive(value.name, value.arguments, value.results, value.launches);
}

} // namespace runtime

namespace compile {

/// Cubins are made when a file of them is asked for.
template <typename A> void describe(A &archive, GpuProgram::Module &module) {
  archive(module.name, module.ptx);
}

template <typename A> void describe(A &archive, GpuProgram &program) {
  archive(program.gpu, program.host, program.hostText, program.hostObject,
          program.modules, program.resultTypes, program.versions,
          program.schedules);
}

} // namespace compile
} // namespace flash

template <typename A> void describe(A &archive, FlashKernel::Type &type) {
  archive(type.element, type.sizes);
}

/// All but what is compiled.
template <typename A> void describe(A &archive, FlashKernel &kernel) {
  archive(kernel.text, kernel.target, kernel.function, kernel.schedule,
          kernel.versions, kernel.device, kernel.tuningFile,
          kernel.multiprocessors, kernel.arguments, kernel.results);
}

/// What code of this library for this processor begins with.
static std::string getStamp() {
  llvm::SubtargetFeatures features;
  for (const auto &[name, isOn] : llvm::sys::getHostCPUFeatures())
    if (isOn)
      features.AddFeature(name);
  std::vector<std::string> names = features.getFeatures();
  llvm::sort(names);
  return llvm::formatv("flash-mlir {0} {1} {2}", flashGetVersion(),
                       llvm::sys::getHostCPUName(), llvm::join(names, ","));
}

FlashStatus flashKernelSerialize(FlashKernel *kernel, const char **bytes,
                                 size_t *length) {
  if (!kernel || !bytes || !length)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelSerialize: no argument may be null");
  if (kernel->serialized.empty()) {
    Writer writer(kernel->serialized);
    std::string stamp = getStamp();
    writer(stamp, *kernel);
    if (kernel->program) {
      writer(*kernel->program);
    } else {
      flash::CpuObject object = kernel->executable->getObject();
      writer(object);
    }
  }
  *bytes = kernel->serialized.data();
  *length = kernel->serialized.size();
  return FLASH_SUCCESS;
}

FlashStatus flashKernelDeserialize(const char *bytes, size_t length,
                                   FlashKernel **kernel) {
  if (!bytes || !kernel)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelDeserialize: no argument may be null");
  Reader reader(llvm::StringRef(bytes, length));
  auto result = std::make_unique<FlashKernel>();
  std::string stamp;
  reader(stamp);
  if (stamp != getStamp())
    return fail(FLASH_INVALID_ARGUMENT,
                "the bytes are no kernel of this library and processor");
  reader(*result);
  if (llvm::Error error = result->readOptions())
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  auto truncated = [] {
    return fail(FLASH_INVALID_ARGUMENT, "the bytes are no complete kernel");
  };
  if (result->options.isGpu()) {
    flash::compile::GpuProgram &program = result->program.emplace();
    reader(program);
    if (!reader.isComplete())
      return truncated();
    auto lock = flash::capi::lockCompiler();
    if (llvm::Error error =
            flash::linkHostCode(program.host, program.hostObject))
      return fail(FLASH_FAILURE, std::move(error));
  } else {
    flash::CpuObject object;
    reader(object);
    if (!reader.isComplete())
      return truncated();
    auto lock = flash::capi::lockCompiler();
    auto executable = flash::CpuExecutable::link(std::move(object));
    if (!executable)
      return fail(FLASH_FAILURE, executable.takeError());
    result->executable = std::move(*executable);
  }
  *kernel = result.release();
  return FLASH_SUCCESS;
}
