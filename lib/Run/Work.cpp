//===- Work.cpp - What a program has to do --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Work.h"

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Compile/Program.h"
#include "flash/Dialect/Flash/Transforms/GetProblem.h"
#include "flash/Run/InputSpecs.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::run;

/// The input that a value is, if it is one.
static const HostTensor *getInput(Value value, func::FuncOp func,
                                  ArrayRef<HostTensor> inputs) {
  auto argument =
      value ? dyn_cast<BlockArgument>(flash::stripCasts(value)) : nullptr;
  if (!argument || argument.getOwner() != &func.getBody().front())
    return nullptr;
  return &inputs[argument.getArgNumber()];
}

/// The numbers of rows that the batches of an attention have, of `most` each:
/// nothing if they are not known. `lengths` may be null.
static std::optional<SmallVector<int64_t>>
getLengths(Value lengths, int64_t batches, int64_t most, func::FuncOp func,
           ArrayRef<HostTensor> inputs) {
  SmallVector<int64_t> result(batches, most);
  if (!lengths)
    return result;
  auto unpack = flash::stripCasts(lengths).getDefiningOp<flash::UnpackOp>();
  const HostTensor *input =
      getInput(unpack ? Value(unpack.getOffsets()) : lengths, func, inputs);
  if (!input)
    return std::nullopt;
  for (auto [batch, length] : llvm::enumerate(result)) {
    int64_t rows = input->get(unpack ? batch + 1 : batch);
    if (unpack)
      rows -= static_cast<int64_t>(input->get(batch));
    length = std::clamp<int64_t>(rows, 0, most);
  }
  return result;
}

static std::optional<int64_t> countPairs(flash::AttentionOpInterface op,
                                         func::FuncOp func,
                                         ArrayRef<int64_t> query,
                                         ArrayRef<int64_t> key,
                                         ArrayRef<HostTensor> inputs) {
  SmallVector<int64_t> lengths;
  if (op.getLengths()) {
    const HostTensor *input = getInput(op.getLengths(), func, inputs);
    if (!input)
      return std::nullopt;
    for (int64_t batch = 0; batch < query[0]; ++batch)
      lengths.push_back(input->get(batch));
  }
  flash::MaskAttrInterface mask = op.getMaskOrFull();
  if (!op.getQueryLengths() && !op.getKeyLengths())
    return flash::countUnmasked(mask, {query[0], query[1], query[2], key[2]},
                                lengths);
  auto queries =
      getLengths(op.getQueryLengths(), query[0], query[2], func, inputs);
  auto keys = getLengths(op.getKeyLengths(), query[0], key[2], func, inputs);
  if (!queries || !keys || flash::dependsOn(mask, 0))
    return std::nullopt;
  int64_t pairs = 0;
  for (int64_t batch = 0; batch < query[0]; ++batch) {
    ArrayRef<int64_t> used(lengths);
    auto ofBatch = flash::countUnmasked(
        mask, {1, query[1], (*queries)[batch], (*keys)[batch]},
        used.slice(used.empty() ? 0 : batch, used.empty() ? 0 : 1));
    if (!ofBatch)
      return std::nullopt;
    pairs += *ofBatch;
  }
  return pairs;
}

std::optional<double> flash::run::countFlops(func::FuncOp level0,
                                             ArrayRef<HostTensor> inputs) {
  std::vector<TensorSpec> specs;
  for (const HostTensor &input : inputs)
    specs.push_back(input.getSpec());
  double flops = 0;
  WalkResult result = level0.walk([&](flash::AttentionOpInterface op) {
    auto query = getSizes(op.getQuery(), specs);
    auto key = getSizes(op.getKey(), specs);
    if (!query || !key || query->size() != 4 || key->size() != 4 ||
        !isa<func::FuncOp>(op->getParentOp()))
      return WalkResult::interrupt();
    auto pairs = countPairs(op, level0, *query, *key, inputs);
    if (!pairs)
      return WalkResult::interrupt();
    // The gradients need the scores once more, and each of both products has
    // two gradients.
    double columns = op.getHeadDim() + op.getValueDim();
    if (isa<flash::AttentionGradOp>(op))
      columns = 3.0 * op.getHeadDim() + 2.0 * op.getValueDim();
    flops += 2.0 * columns * *pairs;
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || flops == 0)
    return std::nullopt;
  return flops;
}

int64_t flash::run::estimateResultBytes(func::FuncOp entry,
                                        ArrayRef<TensorSpec> inputs) {
  int64_t largest = 0, total = 0;
  for (const TensorSpec &input : inputs)
    largest = std::max(largest, input.getNumBytes());
  Operation *exit = entry.getBody().back().getTerminator();
  for (Value value : exit->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto dtype = type ? getDType(type.getElementType()) : std::nullopt;
    auto sizes = getSizes(value, inputs);
    int64_t bytes = largest;
    if (dtype && sizes) {
      auto spec = TensorSpec::create(*dtype, *sizes);
      // A result that cannot be addressed cannot be allocated either.
      if (!spec)
        llvm::consumeError(spec.takeError());
      bytes = spec ? spec->getNumBytes() : std::numeric_limits<int64_t>::max();
    }
    total = llvm::SaturatingAdd<uint64_t>(total, bytes) >
                    uint64_t(std::numeric_limits<int64_t>::max())
                ? std::numeric_limits<int64_t>::max()
                : total + bytes;
  }
  return total;
}

std::map<unsigned, SmallVector<std::pair<int64_t, int64_t>>>
flash::run::getRowsOfSequences(func::FuncOp level0,
                               ArrayRef<HostTensor> inputs) {
  std::map<unsigned, SmallVector<std::pair<int64_t, int64_t>>> found;
  for (auto [number, result] : llvm::enumerate(
           level0.getBody().back().getTerminator()->getOperands())) {
    SmallVector<std::pair<int64_t, int64_t>> rows;
    Value value = result;
    while (Operation *op = value.getDefiningOp()) {
      if (auto pack = dyn_cast<flash::PackOp>(op)) {
        DenseIntElementsAttr constants;
        if (matchPattern(flash::stripCasts(pack.getOffsets()),
                         m_Constant(&constants))) {
          auto offsets = llvm::to_vector(constants.getValues<APInt>());
          rows.push_back(
              {offsets.front().getSExtValue(), offsets.back().getSExtValue()});
        } else if (const HostTensor *offsets =
                       getInput(pack.getOffsets(), level0, inputs)) {
          int64_t last = offsets->getSpec().getNumElements() - 1;
          rows.push_back({offsets->get(0), offsets->get(last)});
        } else {
          break;
        }
        value = pack.getMemory();
      } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
        value = cast.getSource();
      } else {
        break;
      }
    }
    if (!rows.empty() && value.getDefiningOp<tensor::EmptyOp>())
      found[number] = rows;
  }
  return found;
}

std::optional<double> flash::run::countScoreBytes(func::FuncOp level0,
                                                  ArrayRef<TensorSpec> inputs) {
  double largest = 0;
  WalkResult result = level0.walk([&](flash::AttentionOpInterface op) {
    auto query = getSizes(op.getQuery(), inputs);
    auto key = getSizes(op.getKey(), inputs);
    if (!query || !key || query->size() != 4 || key->size() != 4)
      return WalkResult::interrupt();
    double elements = 1;
    for (int64_t size : ArrayRef(*query).drop_back())
      elements *= size;
    largest = std::max(largest, 4 * elements * (*key)[2]);
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || largest == 0)
    return std::nullopt;
  return largest;
}

std::optional<flash::Precision> flash::run::getPrecision(ModuleOp level0) {
  std::optional<Precision> precision;
  level0.walk([&](AttentionOpInterface op) {
    if (op.getPrecision() != Precision::FP8 || canMultiplyE4M3(op))
      precision = precision ? precision : op.getPrecision();
  });
  return precision;
}
