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
#include "llvm/Support/xxhash.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using flash::capi::fail;
using flash::capi::Reader;
using flash::capi::Writer;
using llvm::createStringError;
using llvm::formatv;

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

/// Cubins are made when a file with them is written.
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

namespace {

/// What serialized kernels begin with, in all versions from 0.1.0 on: so each
/// version can say which one wrote the bytes.
struct Header {
  std::string kind, version, processor, features;
  /// The hash of the bytes behind the header.
  uint64_t hash = 0;
};

template <typename A> void describe(A &archive, Header &header) {
  archive(header.kind, header.version, header.processor, header.features,
          header.hash);
}

} // namespace

static Header makeHeader(llvm::StringRef content) {
  llvm::SubtargetFeatures features;
  for (const auto &[name, isOn] : llvm::sys::getHostCPUFeatures())
    if (isOn)
      features.AddFeature(name);
  std::vector<std::string> names = features.getFeatures();
  llvm::sort(names);
  return {"flash-mlir kernel", flashGetVersion(),
          llvm::sys::getHostCPUName().str(), llvm::join(names, ","),
          llvm::xxh3_64bits(content)};
}

/// Reads what stands behind the header that `bytes` begin with. An error says
/// why this library cannot use it.
static llvm::Error readContent(llvm::StringRef bytes, std::string &content) {
  Header found;
  Reader reader(bytes);
  reader(found, content);
  Header expected = makeHeader(content);
  if (found.kind != expected.kind)
    return createStringError("the bytes are no kernel; expected what "
                             "flashKernelSerialize wrote");
  constexpr llvm::StringLiteral advice = "; compile the kernel's program again";
  // Other versions may have other contents.
  if (!found.version.empty() && found.version != expected.version)
    return createStringError(
        formatv("the kernel was written by flash-mlir {0}, and this is "
                "flash-mlir {1}, which reads only its own kernels{2}",
                found.version, expected.version, advice));
  if (!reader.isComplete())
    return createStringError(
        "the bytes of the kernel are truncated, or others follow them" +
        advice);
  if (found.hash != expected.hash)
    return createStringError("the bytes of the kernel are damaged" + advice);
  if (found.processor != expected.processor ||
      found.features != expected.features)
    return createStringError(formatv(
        "the kernel was compiled for the processor {0}, and this is "
        "{1}{2}{3}",
        found.processor, expected.processor,
        found.processor == expected.processor ? ", with other instruction sets"
                                              : "",
        advice));
  return llvm::Error::success();
}

FlashStatus flashKernelSerialize(FlashKernel *kernel, const char **bytes,
                                 size_t *length) {
  if (!kernel || !bytes || !length)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelSerialize: no argument may be null");
  if (kernel->serialized.empty()) {
    std::string content;
    Writer writer(content);
    writer(*kernel);
    if (kernel->program) {
      writer(*kernel->program);
    } else {
      flash::CpuObject object = kernel->executable->getObject();
      writer(object);
    }
    Header header = makeHeader(content);
    Writer file(kernel->serialized);
    file(header, content);
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
  std::string content;
  if (llvm::Error error = readContent({bytes, length}, content))
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  Reader reader(content);
  auto result = std::make_unique<FlashKernel>();
  reader(*result);
  if (llvm::Error error = result->readOptions())
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  auto ofOtherBuild = [] {
    return fail(FLASH_INVALID_ARGUMENT,
                "the kernel was written by another build of this version; "
                "compile the kernel's program again");
  };
  if (result->options.isGpu()) {
    flash::compile::GpuProgram &program = result->program.emplace();
    reader(program);
    if (!reader.isComplete())
      return ofOtherBuild();
    auto lock = flash::capi::lockCompiler();
    if (llvm::Error error =
            flash::linkHostCode(program.host, program.hostObject))
      return fail(FLASH_FAILURE, std::move(error));
  } else {
    flash::CpuObject object;
    reader(object);
    if (!reader.isComplete())
      return ofOtherBuild();
    auto lock = flash::capi::lockCompiler();
    auto executable = flash::CpuExecutable::link(std::move(object));
    if (!executable)
      return fail(FLASH_FAILURE, executable.takeError());
    result->executable = std::move(*executable);
  }
  *kernel = result.release();
  return FLASH_SUCCESS;
}
