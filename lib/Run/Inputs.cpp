//===- Inputs.cpp - The arguments of a run --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Inputs.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/Npy.h"
#include "flash/Run/RandomInputs.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;

/// The number of keys of the attention whose lengths the argument gives.
static std::optional<int64_t> getNumKeys(BlockArgument argument,
                                         ArrayRef<TensorSpec> specs) {
  for (Operation *user : argument.getUsers()) {
    auto attention = dyn_cast<flash::AttentionOp>(user);
    if (!attention || attention.getLengths() != argument)
      continue;
    if (auto sizes = getSizes(attention.getKey(), specs))
      return (*sizes)[sizes->size() - 2];
  }
  return std::nullopt;
}

llvm::Expected<std::vector<HostTensor>>
flash::run::makeInputs(func::FuncOp entry, ArrayRef<TensorSpec> specs,
                       const Options &options, Placement placement) {
  if (!options.inputs.empty() && options.inputs.size() != specs.size())
    return llvm::createStringError(llvm::formatv(
        "--inputs names {0} file{1}, but @{2} has {3} argument{4}",
        options.inputs.size(), options.inputs.size() == 1 ? "" : "s",
        entry.getSymName(), specs.size(), specs.size() == 1 ? "" : "s"));
  std::vector<HostTensor> inputs;
  for (auto [i, spec] : llvm::enumerate(specs)) {
    if (!options.inputs.empty()) {
      auto input = readNpy(options.inputs[i], spec, placement);
      if (!input)
        return input.takeError();
      inputs.push_back(std::move(*input));
      continue;
    }
    auto input = HostTensor::allocate(spec, placement);
    if (!input)
      return input.takeError();
    if (isFloat(spec.dtype))
      fillNormal(*input, options.seed, i);
    else
      fillUniform(*input, 0,
                  getNumKeys(entry.getArgument(i), specs).value_or(7),
                  options.seed, i);
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

llvm::Expected<std::vector<HostTensor>>
flash::run::copyInputs(ArrayRef<HostTensor> inputs, bool promote,
                       Placement placement) {
  std::vector<HostTensor> copies;
  for (const HostTensor &input : inputs) {
    DType dtype = input.getSpec().dtype;
    auto copy = input.convert(promote && isFloat(dtype) ? DType::F64 : dtype,
                              placement);
    if (!copy)
      return copy.takeError();
    copies.push_back(std::move(*copy));
  }
  return copies;
}
