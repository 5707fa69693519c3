//===- Tiles.cpp - Tiles that a kernel visits -----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "flash/Compile/VisitedTiles.h"
#include "llvm/Support/FormatVariadic.h"

using namespace flash::capi;
using namespace flash::compile;
using llvm::createStringError;
using llvm::formatv;

/// The sizes of arguments, if they are ones that the kernel takes.
static llvm::Expected<std::vector<TensorSpec>>
readSizes(const FlashKernel &kernel, llvm::ArrayRef<FlashTensor> arguments) {
  if (arguments.size() != kernel.arguments.size())
    return createStringError(formatv("the function takes {0} arguments, not "
                                     "{1}",
                                     kernel.arguments.size(),
                                     arguments.size()));
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const FlashKernel::Type &type = kernel.arguments[i];
    const FlashTensor &argument = arguments[i];
    if (argument.rank != int32_t(type.sizes.size()) ||
        (argument.rank && !argument.sizes))
      return createStringError(formatv("argument {0} has {1} dimensions, not "
                                       "{2}",
                                       i, type.sizes.size(), argument.rank));
    llvm::ArrayRef<int64_t> sizes(argument.sizes, argument.rank);
    for (auto [size, known] : llvm::zip_equal(sizes, type.sizes))
      if (known != FLASH_DYNAMIC && size != known)
        return createStringError(formatv("argument {0} has a size of {1}, not "
                                         "{2}",
                                         i, known, size));
    auto spec = TensorSpec::create(type.element, sizes);
    if (!spec)
      return spec.takeError();
    specs.push_back(std::move(*spec));
  }
  return specs;
}

static llvm::Expected<VisitedTiles>
countTiles(const FlashKernel &kernel, llvm::ArrayRef<TensorSpec> inputs) {
  VisitedTiles result;
  std::string diagnostics; // None: it has compiled before.
  llvm::Error error =
      kernel.withProgram(diagnostics, [&](Program &parsed) -> llvm::Error {
        return countVisitedTiles(*parsed.module, parsed.entry.getSymName(),
                                 inputs, kernel.options)
            .moveInto(result);
      });
  if (error)
    return std::move(error);
  return result;
}

FlashStatus flashKernelCountTiles(const FlashKernel *kernel,
                                  const FlashTensor *arguments,
                                  size_t numArguments,
                                  FlashTileCounts *counts) {
  if (!kernel || (numArguments && !arguments) || !counts)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelCountTiles: kernel, arguments and counts must not "
                "be null");
  if (kernel->options.isReference)
    return fail(FLASH_INVALID_ARGUMENT,
                "flashKernelCountTiles: the reference has no tiles");
  auto specs = readSizes(*kernel, llvm::ArrayRef(arguments, numArguments));
  if (!specs)
    return fail(FLASH_INVALID_TENSOR, specs.takeError());
  auto tiles = countTiles(*kernel, *specs);
  if (!tiles)
    return fail(FLASH_INVALID_TENSOR, tiles.takeError());
  *counts = {tiles->skipped, tiles->unmasked, tiles->masked, tiles->queryTile,
             tiles->keyTile};
  return FLASH_SUCCESS;
}
