//===- Text.cpp - What a kernel is, as text and as files ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "flash/Compile/AheadOfTime.h"
#include "flash/Support/OutputFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace flash::compile;
using flash::capi::fail;
using llvm::createStringError;
using llvm::formatv;
using llvm::StringRef;

/// The stages that programs for a target go through.
static llvm::SmallVector<StringRef> getStages(const CompileOptions &options) {
  if (options.isGpu())
    return {"l0", "l1", "l2", "l3", "ptx"};
  if (options.target == Target::Emulate)
    return {"l0", "l1", "l2", "linalg", "llvm", "asm"};
  if (options.isReference)
    return {"linalg", "llvm", "asm"};
  return {"l0", "l1", "linalg", "llvm", "asm"};
}

/// The text of a stage; compiles again for most of them.
static llvm::Expected<StringRef> getText(FlashKernel &kernel, StringRef stage) {
  llvm::SmallVector<StringRef> stages = getStages(kernel.options);
  if (!llvm::is_contained(stages, stage))
    return createStringError(
        formatv("there is no stage '{0}' for the target {1}; the stages are "
                "{2}",
                stage, kernel.target, llvm::join(stages, ", ")));
  auto found = kernel.stages.find(stage.str());
  if (found != kernel.stages.end())
    return found->second;
  std::string text;
  if (stage == "ptx") {
    for (const GpuProgram::Module &module : kernel.program->modules)
      text += module.ptx;
    return kernel.stages[stage.str()] = std::move(text);
  }
  FlashKernel again;
  again.text = kernel.text;
  again.target = kernel.target;
  again.options = kernel.options;
  if (llvm::Error error = parseDump(stage, again.options))
    return std::move(error);
  again.options.takeDump = [&](Dump, StringRef dumped) { text = dumped.str(); };
  // It has compiled before.
  std::string diagnostics;
  if (llvm::Error error = again.compile(diagnostics))
    return std::move(error);
  return kernel.stages[stage.str()] = std::move(text);
}

FlashStatus flashKernelGetText(FlashKernel *kernel, const char *stage,
                               const char **text, size_t *length) {
  if (!kernel || !stage || !text || !length)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelGetText: no argument may be null");
  auto found = getText(*kernel, stage);
  if (!found)
    return fail(FLASH_INVALID_ARGUMENT, found.takeError());
  *text = found->data();
  *length = found->size();
  return FLASH_SUCCESS;
}

static llvm::Error save(FlashKernel &kernel, StringRef path) {
  StringRef extension = llvm::sys::path::extension(path);
  if (llvm::Error error = flash::checkWritable(path))
    return error;
  if (kernel.options.isGpu() &&
      (extension == ".ptx" || extension == ".cubin")) {
    auto names = parseOutput(path, /*header=*/"");
    if (!names)
      return names.takeError();
    return writeAheadOfTime(*kernel.program, kernel.text, *names);
  }
  StringRef text = kernel.text;
  StringRef stage = extension == ".ll"  ? "llvm"
                    : extension == ".s" ? "asm"
                                        : "";
  if (kernel.options.isGpu() || stage.empty()) {
    if (extension != ".mlir")
      return createStringError(formatv(
          "cannot save '{0}': the name must end in {1}, which says what to "
          "write",
          path,
          kernel.options.isGpu() ? ".ptx, .cubin or .mlir"
                                 : ".ll, .s or .mlir"));
  } else {
    auto found = getText(kernel, stage);
    if (!found)
      return found.takeError();
    text = *found;
  }
  return flash::writeFile(path, [&](llvm::raw_ostream &os) { os << text; });
}

FlashStatus flashKernelSave(FlashKernel *kernel, const char *path) {
  if (!kernel || !path)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelSave: kernel and path must not be null");
  if (llvm::Error error = save(*kernel, path))
    return fail(FLASH_FAILURE, std::move(error));
  return FLASH_SUCCESS;
}
