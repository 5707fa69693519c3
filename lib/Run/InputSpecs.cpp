//===- InputSpecs.cpp - The program and the sizes of its inputs -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/InputSpecs.h"

#include "flash/Compile/RunPasses.h"
#include "flash/Run/Npy.h"
#include "flash/Support/InputFile.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Support/DebugStringHelper.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

llvm::Expected<Program> flash::run::loadProgram(MLIRContext &context,
                                                const Options &options) {
  auto file = flash::readTextFile(options.file);
  if (!file)
    return createStringError(formatv("cannot open input file '{0}': {1}",
                                     options.file,
                                     llvm::toString(file.takeError())));
  // -o writes what all functions need.
  bool isForAll = !options.output.empty() && !options.runs();
  return compile::loadProgram(context, std::move(*file), options, llvm::errs(),
                              isForAll);
}

flash::run::InlinedProgram::InlinedProgram(const Program &program) {
  StringRef name = func::FuncOp(program.entry).getSymName();
  module = copyProgram(*program.module, name);
  entry = module->lookupSymbol<func::FuncOp>(name);
  inlineCalls(entry);
}

SmallVector<flash::AddressOpInterface>
flash::run::getPackedBy(BlockArgument argument) {
  SmallVector<AddressOpInterface> addresses;
  argument.getOwner()->walk([&](AddressOpInterface address) {
    Value offsets;
    if (auto unpack = dyn_cast<UnpackOp>(*address))
      offsets = unpack.getOffsets();
    else if (auto pack = dyn_cast<PackOp>(*address))
      offsets = pack.getOffsets();
    if (offsets && stripCasts(offsets) == argument)
      addresses.push_back(address);
  });
  return addresses;
}

llvm::Expected<std::vector<TensorSpec>>
flash::run::getInputSpecs(func::FuncOp entry, const Options &options) {
  unsigned numInputs = entry.getNumArguments();
  for (auto &[index, shape] : options.shapes)
    if (index >= numInputs)
      return createStringError(
          formatv("--shape names argument {0}, but @{1} has {2} (counted from "
                  "0)",
                  index, entry.getSymName(), numInputs));

  std::vector<TensorSpec> specs;
  std::string unknown, example;
  for (auto [index, type] : llvm::enumerate(entry.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    auto found = options.shapes.find(index);
    SmallVector<int64_t, 4> shape(tensor.getShape());
    if (found != options.shapes.end()) {
      if (found->second.size() != shape.size())
        return createStringError(formatv(
            "--shape gives {0} sizes for argument {1}, which has rank {2}: {3}",
            found->second.size(), index, shape.size(), debugString(tensor)));
      for (auto [d, size] : llvm::enumerate(found->second)) {
        if (!tensor.isDynamicDim(d) && size != shape[d])
          return createStringError(
              formatv("--shape gives size {0} for dimension {1} of argument "
                      "{2}, which is fixed to {3}: {4}",
                      size, d, index, shape[d], debugString(tensor)));
        shape[d] = size;
      }
    } else if (!tensor.hasStaticShape() && index < options.inputs.size()) {
      auto sizes = readNpyShape(options.inputs[index]);
      if (!sizes)
        return sizes.takeError();
      bool fits = sizes->size() == shape.size();
      for (size_t d = 0; fits && d < shape.size(); ++d)
        fits = tensor.isDynamicDim(d) || (*sizes)[d] == shape[d];
      if (!fits)
        return createStringError(
            formatv("'{0}' has shape {1:$[x]}; expected one of {2}",
                    options.inputs[index],
                    llvm::make_range(sizes->begin(), sizes->end()),
                    debugString(tensor)));
      shape = *sizes;
    } else if (!tensor.hasStaticShape()) {
      // Show a size for every dimension, ready to be edited.
      std::string sizes = llvm::join(
          llvm::map_range(shape,
                          [](int64_t size) {
                            return std::to_string(
                                ShapedType::isDynamic(size) ? 4 : size);
                          }),
          "x");
      unknown += formatv("{0}{1} ({2})", unknown.empty() ? "" : ", ", index,
                         debugString(tensor))
                     .str();
      example += formatv(" --shape {0}={1}", index, sizes).str();
      continue;
    }
    auto spec = TensorSpec::create(*getDType(tensor.getElementType()), shape);
    if (!spec)
      return createStringError(formatv("argument {0} of @{1}: {2}", index,
                                       entry.getSymName(),
                                       llvm::toString(spec.takeError())));
    specs.push_back(std::move(*spec));
  }
  if (!unknown.empty())
    return createStringError(
        formatv("arguments of @{0} have dynamic dimensions: {1}; give files "
                "with --inputs or their sizes, for example{2}",
                entry.getSymName(), unknown, example));
  for (auto [index, spec] : llvm::enumerate(specs))
    if (!getPackedBy(entry.getArgument(index)).empty() &&
        spec.shape.front() < 1)
      return createStringError(
          formatv("argument {0} says where sequences start, and where the last "
                  "one ends, and has no element; it has one more than there "
                  "are sequences: {1}",
                  index, debugString(entry.getArgumentTypes()[index])));
  return specs;
}
