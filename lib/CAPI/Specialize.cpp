//===- Specialize.cpp - Versions of programs for certain sizes ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "flash/Compile/RunPasses.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Schedule/SizeClass.h"
#include "llvm/ADT/StringExtras.h"

using namespace flash::capi;
using namespace flash::compile;

int64_t flashGetSizeClass(int64_t size) { return flash::getSizeClass(size); }

/// As flash-specialize takes them.
static std::string describe(const FlashTensor &tensor) {
  return llvm::join(llvm::map_range(llvm::ArrayRef(tensor.sizes, tensor.rank),
                                    [](int64_t size) {
                                      return size == FLASH_DYNAMIC
                                                 ? "?"
                                                 : std::to_string(size);
                                    }),
                    "x");
}

static llvm::Expected<std::string>
specialize(const FlashKernel &kernel, llvm::ArrayRef<FlashTensor> arguments,
           std::string &diagnostics) {
  std::string text;
  auto use = [&](Program &parsed) -> llvm::Error {
    auto module = copyProgram(*parsed.module, parsed.entry.getSymName());
    flash::FrontOptions front;
    const CompileOptions &of = kernel.options;
    setSchedule(front,
                getName(of.target == Target::Emulate ? of.emulated : of.target),
                *module, of);
    flash::SpecializeOptions options;
    options.sizes = llvm::map_to_vector(arguments, describe);
    options.schedule = front.schedule;
    options.target = front.target;
    options.device = front.device;
    options.tuningFile = front.tuningFile;
    llvm::Error error = runPasses(*module, [&](mlir::OpPassManager &pm) {
      pm.addNestedPass<mlir::func::FuncOp>(flash::createRaiseAttention());
      pm.addPass(flash::createSpecialize(options));
    });
    if (error)
      return error;
    llvm::raw_string_ostream stream(text);
    // The names of arguments are in messages and headers.
    module->print(stream, mlir::OpPrintingFlags().printNameLocAsPrefix());
    return llvm::Error::success();
  };
  if (llvm::Error error = kernel.withProgram(diagnostics, use))
    return std::move(error);
  return text;
}

FlashStatus flashProgramSpecialize(const char *text, size_t length,
                                   const FlashCompileOptions *options,
                                   const FlashTensor *arguments,
                                   size_t numArguments, const char **version,
                                   size_t *versionLength) {
  if (!text || !options || !options->target || (!arguments && numArguments) ||
      !version || !versionLength)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashProgramSpecialize: no argument may be null");
  if (options->versions)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashProgramSpecialize makes one version; give versions to "
                "flashKernelCompile");
  for (size_t i = 0; i < numArguments; ++i)
    if (arguments[i].rank < 0 || (arguments[i].rank && !arguments[i].sizes))
      return fail(FLASH_INVALID_TENSOR,
                  "argument " + llvm::Twine(i) + " has no sizes");
  FlashKernel kernel;
  kernel.text.assign(text, length);
  kernel.target = options->target;
  kernel.function = options->function ? options->function : "";
  kernel.schedule = options->schedule ? options->schedule : "";
  if (llvm::Error error = kernel.readOptions())
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  std::string diagnostics;
  auto specialized =
      specialize(kernel, llvm::ArrayRef(arguments, numArguments), diagnostics);
  if (!specialized)
    return fail(FLASH_INVALID_PROGRAM,
                llvm::toString(specialized.takeError()) +
                    (diagnostics.empty() ? "" : "\n" + diagnostics));
  static thread_local std::string kept;
  kept = std::move(*specialized);
  *version = kept.data();
  *versionLength = kept.size();
  return FLASH_SUCCESS;
}
