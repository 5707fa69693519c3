//===- Inputs.cpp - The arguments of a run --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Inputs.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/InputSpecs.h"
#include "flash/Run/Npy.h"
#include "flash/Run/Pages.h"
#include "flash/Run/RandomInputs.h"
#include "flash/Support/StripCasts.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace flash::run;

/// The number of keys, or of queries, of the attention whose lengths the
/// argument gives.
static std::optional<int64_t> getMostRows(BlockArgument argument,
                                          ArrayRef<TensorSpec> specs) {
  std::optional<int64_t> most;
  argument.getOwner()->walk([&](flash::AttentionOpInterface attention) {
    for (auto [lengths, rows] :
         {std::pair<Value, Value>(attention.getLengths(), attention.getKey()),
          {attention.getKeyLengths(), attention.getKey()},
          {attention.getQueryLengths(), attention.getQuery()}})
      if (lengths && flash::stripCasts(lengths) == argument)
        if (auto sizes = getSizes(rows, specs))
          most = (*sizes)[sizes->size() - 2];
    return most ? WalkResult::interrupt() : WalkResult::advance();
  });
  return most;
}

/// The number of rows, if the argument says where sequences among them start.
static std::optional<int64_t> getPackedRows(BlockArgument argument,
                                            ArrayRef<TensorSpec> specs) {
  for (flash::AddressOpInterface address : getPackedBy(argument))
    if (auto sizes = getSizes(address.getMemory(), specs))
      return sizes->front() * (*sizes)[2];
  return std::nullopt;
}

/// Fails unless offsets, which start and end sequences among `rows` rows, lie
/// between 0 and these and do not decrease.
static llvm::Error verifyOffsets(const HostTensor &offsets, unsigned argument,
                                 int64_t rows) {
  double before = 0;
  for (int64_t i = 0, e = offsets.getSpec().getNumElements(); i != e; ++i) {
    double offset = offsets.get(i);
    if (offset < before || offset > static_cast<double>(rows))
      return llvm::createStringError(llvm::formatv(
          "argument {0} says where sequences start among {1} rows, but offset "
          "{2} is {3}; offsets do not decrease and are from 0 to {1}",
          argument, rows, i, static_cast<int64_t>(offset)));
    before = offset;
  }
  return llvm::Error::success();
}

/// Makes the lists of blocks of an attention that are arguments: some blocks of
/// keys, and of gradients the queries' blocks that are the same pairs.
static llvm::Error makeBlocks(flash::AttentionOpInterface op,
                              ArrayRef<TensorSpec> specs, uint64_t seed,
                              std::vector<HostTensor> &inputs) {
  auto getNumber = [](Value list) -> std::optional<unsigned> {
    if (auto argument = dyn_cast<BlockArgument>(flash::stripCasts(list)))
      return argument.getArgNumber();
    return std::nullopt;
  };
  SmallVector<Value> lists;
  if (auto attention = dyn_cast<flash::AttentionOp>(op.getOperation())) {
    lists = {attention.getKeyTiles(), attention.getTileCounts()};
  } else {
    auto grad = cast<flash::AttentionGradOp>(op.getOperation());
    lists = {grad.getKeyTiles(), grad.getKeyTileCounts(), grad.getQueryTiles(),
             grad.getQueryTileCounts()};
  }
  SmallVector<unsigned> numbers;
  for (Value list : lists)
    if (std::optional<unsigned> number = getNumber(list))
      numbers.push_back(*number);
  auto key = getSizes(op.getKey(), specs);
  if (numbers.size() != lists.size() || !key)
    return llvm::Error::success();
  // Each as often as there are attentions that have it, always the same.
  int64_t block = op.getBlockSizes()->back();
  fillBlocks(inputs[numbers[0]], inputs[numbers[1]],
             llvm::divideCeil((*key)[2], block), seed, numbers[0]);
  if (numbers.size() == 2 ||
      transposeBlocks(inputs[numbers[0]], inputs[numbers[1]],
                      inputs[numbers[2]], inputs[numbers[3]]))
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "argument {0}, lists of blocks of queries, has no room for the pairs of "
      "argument {1}; give it as many batches and heads, and a last size of {2}",
      numbers[2], numbers[0], specs[numbers[0]].shape[2]));
}

/// Changes an argument as `--fill` says.
static llvm::Error applyFill(const Fill &fill,
                             std::vector<HostTensor> &inputs) {
  auto refuse = [&](const llvm::Twine &why) {
    return llvm::createStringError("--fill of argument " +
                                   llvm::Twine(fill.argument) + ": " + why);
  };
  if (fill.argument >= inputs.size())
    return refuse("there are " + llvm::Twine(inputs.size()) +
                  " arguments, counted from 0");
  HostTensor &input = inputs[fill.argument];
  const TensorSpec &spec = input.getSpec();
  if (!isFloat(spec.dtype) &&
      (fill.scales || fill.value != std::floor(fill.value)))
    return refuse("its elements are integers; give an integer to set them to");
  // The rows are the elements of a vector, else its slices along the last
  // dimension but one.
  int64_t rank = spec.shape.size();
  int64_t length = rank > 1 ? spec.shape.back() : 1;
  int64_t rows = rank > 1 ? spec.shape[rank - 2] : rank ? spec.shape[0] : 1;
  std::optional<int64_t> row = fill.row;
  if (row && *row < 0)
    *row += rows;
  if (row && (*row < 0 || *row >= rows))
    return refuse(llvm::formatv("the row {0} is not from {1} to {2}", *fill.row,
                                -rows, rows - 1)
                      .str());
  for (int64_t i = 0, e = spec.getNumElements(); i != e; ++i)
    if (!row || i / length % rows == *row)
      input.set(i, fill.scales ? input.get(i) * fill.value : fill.value);
  return llvm::Error::success();
}

/// The operations that dequantize a tensor, or with `isScale` those that scale
/// by it, whether through a view or not.
static SmallVector<flash::DequantizeOp>
getDequantizations(BlockArgument argument, bool isScale) {
  SmallVector<flash::DequantizeOp> found;
  argument.getOwner()->walk([&](flash::DequantizeOp op) {
    Value tensor = isScale ? Value(op.getScale()) : Value(op.getSource());
    if (auto address = tensor.getDefiningOp<flash::AddressOpInterface>())
      tensor = address.getMemory();
    if (flash::stripCasts(tensor) == argument)
      found.push_back(op);
  });
  return found;
}

static bool isDequantized(BlockArgument argument) {
  return !getDequantizations(argument, /*isScale=*/false).empty();
}

/// The type that the argument is a scale of, if it is one.
static std::optional<DType> getScaledType(BlockArgument argument) {
  SmallVector<flash::DequantizeOp> ops =
      getDequantizations(argument, /*isScale=*/true);
  if (ops.empty())
    return std::nullopt;
  return getDType(ops.front().getSource().getType().getElementType());
}

/// The largest integer of 8 bits whose negation is one, too.
static constexpr int64_t mostOfI8 = 127;

/// What makes dequantized elements as large as random numbers of other types.
static double getUnitOfScales(DType quantized) {
  return isFloat(quantized) ? 1 : 1.0 / 64;
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
    std::optional<DType> scaled = getScaledType(entry.getArgument(i));
    if (scaled)
      fillScales(*input, getUnitOfScales(*scaled), options.seed, i);
    else if (isFloat(spec.dtype))
      fillNormal(*input, options.seed, i);
    else if (isDequantized(entry.getArgument(i)))
      fillUniform(*input, -mostOfI8, mostOfI8, options.seed, i);
    else if (auto rows = getPackedRows(entry.getArgument(i), specs))
      fillOffsets(*input, *rows, options.seed);
    else
      fillUniform(*input, 0,
                  getMostRows(entry.getArgument(i), specs).value_or(7),
                  options.seed, i);
    inputs.push_back(std::move(*input));
  }
  llvm::Error failure = llvm::Error::success();
  if (options.inputs.empty())
    entry.walk([&](flash::AttentionOpInterface op) {
      if (op.getBlockSizes() && !failure)
        failure = makeBlocks(op, specs, options.seed, inputs);
    });
  if (failure)
    return std::move(failure);
  // Where pages lie depends on lengths.
  auto isOfPages = [&](const Fill &fill) {
    return areInPages(entry, fill.argument);
  };
  for (bool ofPages : {false, true}) {
    if (ofPages && options.inputs.empty())
      fillPages(entry, options.seed, inputs);
    for (const Fill &fill : options.fills)
      if (isOfPages(fill) == ofPages)
        if (llvm::Error error = applyFill(fill, inputs))
          return std::move(error);
  }
  for (auto [i, input] : llvm::enumerate(inputs))
    if (auto rows = getPackedRows(entry.getArgument(i), specs))
      if (llvm::Error error = verifyOffsets(input, i, *rows))
        return std::move(error);
  if (llvm::Error error = verifyPages(entry, inputs))
    return std::move(error);
  return inputs;
}

llvm::Expected<std::vector<HostTensor>>
flash::run::copyInputs(ArrayRef<HostTensor> inputs, bool promote,
                       Placement placement) {
  std::vector<HostTensor> copies;
  for (const HostTensor &input : inputs) {
    DType dtype = input.getSpec().dtype;
    auto copy = input.convert(promote && isPromoted(dtype) ? DType::F64 : dtype,
                              placement);
    if (!copy)
      return copy.takeError();
    copies.push_back(std::move(*copy));
  }
  return copies;
}
