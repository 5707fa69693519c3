//===- Specialize.cpp - Programs made of programs -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "flash/Compile/RunPasses.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Schedule/SizeClass.h"
#include "llvm/ADT/StringExtras.h"

using namespace flash::capi;
using namespace flash::compile;

int64_t flashGetSizeClass(int64_t size) { return flash::getSizeClass(size); }

int64_t flashGetCpuLength(int64_t length) {
  return flash::getCpuLength(length);
}

/// The sizes, as flash-specialize takes them.
static std::string describe(const FlashTensor &tensor) {
  return llvm::join(llvm::map_range(llvm::ArrayRef(tensor.sizes, tensor.rank),
                                    [](int64_t size) {
                                      return size == FLASH_DYNAMIC
                                                 ? "?"
                                                 : std::to_string(size);
                                    }),
                    "x");
}

namespace {
/// What is made of a program's text.
struct Rewritten {
  std::string text, schedule;
};
} // namespace

/// Makes a version of the program for each of some calls, or gives its maps a
/// function of their own. Each call has the same number of `arguments`.
static llvm::Error
rewrite(const FlashKernel &kernel, llvm::ArrayRef<FlashTensor> arguments,
        size_t numCalls, bool plans, std::string &diagnostics,
        llvm::function_ref<void(size_t call, Rewritten result)> take) {
  auto rewriteFor = [&](Program &parsed, llvm::ArrayRef<FlashTensor> sizes,
                        Rewritten &result) -> llvm::Error {
    auto module = copyProgram(*parsed.module, parsed.entry.getSymName());
    flash::CallOptions call;
    const CompileOptions &of = kernel.options;
    setSchedule(call, of.target.getMachine().name, *module, of);
    call.sizes = llvm::ArrayRef(llvm::map_to_vector(sizes, describe));
    llvm::Error error = runPasses(*module, [&](mlir::OpPassManager &pm) {
      if (plans)
        flash::buildPlanPipeline(pm, call);
      else
        flash::buildVersionPipeline(pm, call);
    });
    if (error)
      return error;
    module->walk([&](flash::AttentionOpInterface op) {
      auto isMap = [](mlir::Value operand) {
        return operand.getDefiningOp<flash::BlockMapOp>() != nullptr;
      };
      if (llvm::none_of(op->getOperands(), isMap))
        return;
      const flash::Schedule &of = op.getSchedule()->getValue();
      flash::Schedule tiles;
      tiles.queryTile = of.queryTile;
      tiles.keyTile = of.keyTile;
      if (mlir::isa<flash::AttentionGradOp>(op)) {
        tiles.queryStep = of.getQueryStep();
        tiles.keyStep = of.getKeyStep();
        // Seven, too: with another score five may be what pays.
        tiles.products =
            of.products.value_or(flash::Schedule::separatePrograms);
      } else {
        tiles.packedHeads = of.getPackedHeads();
      }
      result.schedule = tiles.str();
    });
    llvm::raw_string_ostream stream(result.text);
    // The names of arguments are in messages and headers. Passes have verified
    // what is printed.
    module->print(
        stream,
        mlir::OpPrintingFlags().printNameLocAsPrefix().assumeVerified());
    return llvm::Error::success();
  };
  return kernel.withProgram(diagnostics, [&](Program &parsed) -> llvm::Error {
    size_t count = numCalls ? arguments.size() / numCalls : 0;
    for (size_t call = 0; call < numCalls; ++call) {
      Rewritten result;
      if (llvm::Error error =
              rewriteFor(parsed, arguments.slice(call * count, count), result))
        return error;
      take(call, std::move(result));
    }
    return llvm::Error::success();
  });
}

/// Reads the operands of a function of this file, `name`.
static FlashStatus readProgram(llvm::StringRef name, const char *text,
                               size_t length,
                               const FlashCompileOptions *options,
                               llvm::ArrayRef<FlashTensor> arguments,
                               FlashKernel &kernel) {
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (argument.rank < 0 || (argument.rank && !argument.sizes))
      return fail(FLASH_INVALID_TENSOR,
                  "argument " + llvm::Twine(i) + " has no sizes");
  kernel.text.assign(text, length);
  if (llvm::Error error = kernel.readOptions(*options))
    return fail(FLASH_INVALID_ARGUMENT, std::move(error));
  if (!kernel.versions.empty())
    return fail(FLASH_INVALID_ARGUMENT,
                name + " makes one version; give versions to "
                       "flashKernelCompile");
  return FLASH_SUCCESS;
}

FlashStatus flashProgramSpecialize(const char *text, size_t length,
                                   const FlashCompileOptions *options,
                                   const FlashTensor *arguments,
                                   size_t numArguments, const char **version,
                                   size_t *versionLength) {
  if (!text || !options || (!arguments && numArguments) || !version ||
      !versionLength)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashProgramSpecialize: no argument may be null");
  FlashKernel kernel;
  llvm::ArrayRef<FlashTensor> given(arguments, numArguments);
  if (FlashStatus status = readProgram("flashProgramSpecialize", text, length,
                                       options, given, kernel))
    return status;
  static thread_local std::string kept;
  auto take = [](size_t, Rewritten made) { kept = std::move(made.text); };
  std::string diagnostics;
  if (llvm::Error error =
          rewrite(kernel, given, 1, /*plans=*/false, diagnostics, take))
    return flash::capi::failProgram(std::move(error), diagnostics);
  *version = kept.data();
  *versionLength = kept.size();
  return FLASH_SUCCESS;
}

FlashStatus flashProgramSpecializeEach(
    const char *text, size_t length, const FlashCompileOptions *options,
    const FlashTensor *arguments, size_t numArguments, size_t numCalls,
    void (*take)(void *data, size_t call, const char *version, size_t length),
    void *data) {
  if (!text || !options || (!arguments && numArguments && numCalls) || !take)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashProgramSpecializeEach: text, options, arguments and take "
                "must not be null");
  FlashKernel kernel;
  llvm::ArrayRef<FlashTensor> given(arguments, numArguments * numCalls);
  if (FlashStatus status = readProgram("flashProgramSpecializeEach", text,
                                       length, options, given, kernel))
    return status;
  auto takeText = [&](size_t call, Rewritten made) {
    take(data, call, made.text.data(), made.text.size());
  };
  std::string diagnostics;
  if (llvm::Error error = rewrite(kernel, given, numCalls, /*plans=*/false,
                                  diagnostics, takeText))
    return flash::capi::failProgram(std::move(error), diagnostics);
  return FLASH_SUCCESS;
}

FlashStatus flashProgramPlan(const char *text, size_t length,
                             const FlashCompileOptions *options,
                             const FlashTensor *arguments, size_t numArguments,
                             const char **planned, const char **schedule) {
  if (!text || !options || (!arguments && numArguments) || !planned ||
      !schedule)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashProgramPlan: no argument may be null");
  FlashKernel kernel;
  llvm::ArrayRef<FlashTensor> given(arguments, numArguments);
  if (FlashStatus status =
          readProgram("flashProgramPlan", text, length, options, given, kernel))
    return status;
  static thread_local Rewritten kept;
  auto take = [](size_t, Rewritten made) { kept = std::move(made); };
  std::string diagnostics;
  if (llvm::Error error =
          rewrite(kernel, given, 1, /*plans=*/true, diagnostics, take))
    return flash::capi::failProgram(std::move(error), diagnostics);
  bool isNeeded = !kept.schedule.empty();
  *planned = isNeeded ? kept.text.c_str() : nullptr;
  *schedule = isNeeded ? kept.schedule.c_str() : nullptr;
  return FLASH_SUCCESS;
}
