//===- Reference.cpp - What the reference adds ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/Reference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace flash;
using namespace flash::compile;

/// The log-sum-exp of an attention, which is replaced if it does not have that
/// result yet.
static Value getLogSumExp(AttentionOp op) {
  if (op.getLse())
    return op.getLse();
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto type = RankedTensorType::get(query.getShape().drop_back(),
                                    Float32Type::get(op.getContext()));
  OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                       {op.getOutput().getType(), type}, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  IRRewriter rewriter(op);
  auto replacement = cast<AttentionOp>(rewriter.create(state));
  rewriter.replaceAllUsesWith(op.getOutput(), replacement.getOutput());
  rewriter.eraseOp(op);
  return replacement.getLse();
}

/// Whether results may be added: callers expect those the function has.
static bool mayAddResults(func::FuncOp func) {
  return func.getBody().hasOneBlock() &&
         SymbolTable::symbolKnownUseEmpty(func, func->getParentOp());
}

/// Visits what the function returns from its own block, behind casts and, if
/// `whateverRows`, also where its rows are packed.
static void
forEachResult(func::FuncOp func, bool whateverRows,
              llvm::function_ref<void(unsigned number, Value value)> visit) {
  if (!func.getBody().hasOneBlock())
    return;
  for (auto [number, value] :
       llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    while (true) {
      if (auto cast = value.getDefiningOp<tensor::CastOp>())
        value = cast.getSource();
      else if (auto pack = value.getDefiningOp<PackOp>(); pack && whateverRows)
        value = pack.getView();
      else
        break;
    }
    visit(number, value);
  }
}

SmallVector<GradientResult>
flash::compile::getGradientResults(func::FuncOp func) {
  SmallVector<GradientResult> results;
  forEachResult(func, /*whateverRows=*/true, [&](unsigned number, Value value) {
    if (auto op = value.getDefiningOp<AttentionGradOp>())
      results.push_back({op, number, cast<OpResult>(value).getResultNumber()});
  });
  return results;
}

SmallVector<unsigned> flash::compile::getLogSumExpResults(func::FuncOp func) {
  SmallVector<unsigned> results;
  forEachResult(func, /*whateverRows=*/true, [&](unsigned number, Value value) {
    auto op = value.getDefiningOp<AttentionOp>();
    if (op && value == op.getLse())
      results.push_back(number);
  });
  return results;
}

SmallVector<std::pair<unsigned, unsigned>>
flash::compile::getOutputResults(func::FuncOp func) {
  SmallVector<std::pair<unsigned, unsigned>> results;
  if (!mayAddResults(func))
    return results;
  auto attentions =
      llvm::to_vector(func.getBody().front().getOps<AttentionOp>());
  forEachResult(func, /*whateverRows=*/false,
                [&](unsigned number, Value value) {
                  auto *found = llvm::find_if(attentions, [&](AttentionOp op) {
                    return value == op.getOutput();
                  });
                  if (found != attentions.end())
                    results.push_back({number, found - attentions.begin()});
                });
  return results;
}

ReferenceResults flash::compile::getReferenceResults(func::FuncOp func) {
  ReferenceResults added;
  if (!mayAddResults(func))
    return added;
  Block &body = func.getBody().front();
  added.logSumExps = llvm::range_size(body.getOps<AttentionOp>()) +
                     llvm::range_size(body.getOps<AttentionGradOp>());
  added.terms = getGradientResults(func).size();
  return added;
}

/// Zeros of the tensor's type and sizes.
static Value createZeros(OpBuilder &b, Location loc, Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, tensor), element);
  return linalg::FillOp::create(b, loc, zero, empty).getResult(0);
}

/// The values with random signs, different ones for each sample.
static Value changeSigns(OpBuilder &b, Location loc, Value tensor,
                         Value sample) {
  auto type = cast<RankedTensorType>(tensor.getType());
  AffineMap all = b.getMultiDimIdentityMap(type.getRank());
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, tensor), type.getElementType());
  auto body = [&](OpBuilder &nested, Location loc, ValueRange args) {
    Type i64 = nested.getI64Type();
    auto number = [&](uint64_t value) -> Value {
      return arith::ConstantOp::create(nested, loc,
                                       nested.getIntegerAttr(i64, value));
    };
    // The highest bit of a product with an odd number depends on all others.
    Value hash = arith::AddIOp::create(
        nested, loc, arith::IndexCastOp::create(nested, loc, i64, sample),
        number(1));
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Value index = arith::IndexCastOp::create(
          nested, loc, i64, linalg::IndexOp::create(nested, loc, dim));
      hash = arith::AddIOp::create(nested, loc, hash, index);
      hash =
          arith::MulIOp::create(nested, loc, hash, number(0x9e3779b97f4a7c15));
      Value high = arith::ShRUIOp::create(nested, loc, hash, number(29));
      hash = arith::XOrIOp::create(nested, loc, hash, high);
    }
    hash = arith::MulIOp::create(nested, loc, hash, number(0xbf58476d1ce4e5b9));
    Value isMinus = arith::CmpIOp::create(
        nested, loc, arith::CmpIPredicate::slt, hash, number(0));
    Value minus = arith::NegFOp::create(nested, loc, args[0]);
    Value value = arith::SelectOp::create(nested, loc, isMinus, minus, args[0]);
    linalg::YieldOp::create(nested, loc, value);
  };
  return linalg::GenericOp::create(
             b, loc, empty.getType(), tensor, empty, {all, all},
             SmallVector<utils::IteratorType>(type.getRank(),
                                              utils::IteratorType::parallel),
             body)
      .getResult(0);
}

/// The gradients with other signs of the output's gradient: a sum of many terms
/// may be small by chance, but hardly is for other signs, too. Without
/// `hasOutput` they are the gradients of p * dp instead of p * (dp - delta),
/// which may be far smaller than both.
static AttentionGradOp getTerms(OpBuilder &b, AttentionGradOp op,
                                bool hasOutput, Value sample) {
  Location loc = op.getLoc();
  Value outputGrad = changeSigns(b, loc, op.getOutputGrad(), sample);
  auto terms = cast<AttentionGradOp>(b.clone(*op));
  terms.getOutputGradMutable().assign(outputGrad);
  terms.getLseGradMutable().clear();
  if (hasOutput)
    return terms;
  b.setInsertionPoint(terms);
  terms.getOutputMutable().assign(createZeros(b, loc, op.getOutput()));
  b.setInsertionPointAfter(terms);
  return terms;
}

/// How many samples show the size of what cancels in a result: 32 numbers,
/// since all of so many are small by chance once in millions of times, and at
/// least four samples, since the numbers of one may depend on each other.
/// Unknown sizes are assumed to be as small as those for few heads are.
static int64_t getNumSamples(RankedTensorType type) {
  constexpr int64_t leastNumbers = 32, leastSamples = 4, sizeIfUnknown = 8;
  int64_t numbers = 1;
  for (int64_t size : type.getShape())
    numbers *= ShapedType::isDynamic(size)
                   ? sizeIfUnknown
                   : std::clamp<int64_t>(size, 1, leastNumbers);
  return std::max(leastSamples, llvm::divideCeilSigned(leastNumbers, numbers));
}

/// The terms of a gradient, packed where `result` is that gradient packed,
/// since the mean is over all elements: a view has as many rows for each
/// sequence as the memory has in all, and most of them do not exist. Rows of no
/// sequence are 0.
static Value arrangeAs(OpBuilder &b, Value result, Value terms) {
  Location loc = result.getLoc();
  if (auto cast = result.getDefiningOp<tensor::CastOp>())
    return tensor::CastOp::create(b, loc, result.getType(),
                                  arrangeAs(b, cast.getSource(), terms));
  auto pack = result.getDefiningOp<PackOp>();
  if (!pack)
    return terms;
  Value zeros = createZeros(b, loc, pack.getMemory());
  return PackOp::create(b, loc, zeros.getType(),
                        arrangeAs(b, pack.getView(), terms), pack.getOffsets(),
                        zeros, pack.getCount(), pack.getSizes());
}

/// `numSamples` samples of the terms of some gradients of an op, one behind the
/// other in a leading dimension.
static SmallVector<Value> getSamples(AttentionGradOp op, bool hasOutput,
                                     int64_t numSamples,
                                     ArrayRef<GradientResult> results) {
  // What packs gradients is behind the op.
  Operation *exit = op->getBlock()->getTerminator();
  OpBuilder b(exit);
  Location loc = op.getLoc();
  SmallVector<Value> samples;
  for (const GradientResult &gradient : results) {
    Value result = exit->getOperand(gradient.number);
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, result);
    sizes.insert(sizes.begin(), b.getIndexAttr(numSamples));
    samples.push_back(
        tensor::EmptyOp::create(b, loc, sizes, type.getElementType()));
  }
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(
      b, loc, index(0), index(numSamples), index(1), samples,
      [&](OpBuilder &b, Location loc, Value sample, ValueRange before) {
        AttentionGradOp terms = getTerms(b, op, hasOutput, sample);
        SmallVector<Value> after;
        for (auto [gradient, all] : llvm::zip_equal(results, before)) {
          Value one = arrangeAs(b, exit->getOperand(gradient.number),
                                terms->getResult(gradient.ofOp));
          // No slice of nothing is in bounds.
          if (llvm::is_contained(cast<ShapedType>(one.getType()).getShape(),
                                 0)) {
            after.push_back(all);
            continue;
          }
          SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, one);
          sizes.insert(sizes.begin(), b.getIndexAttr(1));
          SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
          SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
          offsets.front() = sample;
          after.push_back(tensor::InsertSliceOp::create(
              b, loc, one, all, offsets, sizes, strides));
        }
        scf::YieldOp::create(b, loc, after);
      });
  return loop.getResults();
}

void flash::compile::addReferenceResults(func::FuncOp func) {
  if (!mayAddResults(func))
    return;
  Block &body = func.getBody().front();
  Operation *exit = body.getTerminator();
  SmallVector<GradientResult> gradients = getGradientResults(func);
  SmallVector<Value> added;
  for (auto op : llvm::make_early_inc_range(body.getOps<AttentionOp>()))
    added.push_back(getLogSumExp(op));
  for (auto op : body.getOps<AttentionGradOp>())
    added.push_back(op.getLse());
  // Which gradients of an op have as many samples; the sink's is a sum over the
  // output.
  using Group = std::pair<AttentionGradOp, int64_t>;
  llvm::MapVector<Group, SmallVector<unsigned>> groups[2];
  for (auto [i, gradient] : llvm::enumerate(gradients)) {
    AttentionGradOp op = gradient.op;
    bool hasOutput = op->getResult(gradient.ofOp) == op.getSinkGrad();
    auto type =
        cast<RankedTensorType>(exit->getOperand(gradient.number).getType());
    groups[hasOutput][{op, getNumSamples(type)}].push_back(i);
  }
  SmallVector<Value> terms(gradients.size());
  for (bool hasOutput : {false, true})
    for (auto &[group, members] : groups[hasOutput]) {
      auto [op, numSamples] = group;
      auto results = llvm::map_to_vector(
          members, [&](unsigned i) { return gradients[i]; });
      auto samples = getSamples(op, hasOutput, numSamples, results);
      for (auto [i, sample] : llvm::zip_equal(members, samples))
        terms[i] = sample;
    }
  llvm::append_range(added, terms);

  SmallVector<Type> types(func.getResultTypes());
  llvm::append_range(types, ValueRange(added).getTypes());
  exit->insertOperands(exit->getNumOperands(), added);
  // The verifier wants as many attributes as results.
  SmallVector<DictionaryAttr> attributes;
  func.getAllResultAttrs(attributes);
  attributes.resize(types.size(), DictionaryAttr::get(func.getContext()));
  func.setAllResultAttrs(ArrayRef<DictionaryAttr>{});
  func.setType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
  func.setAllResultAttrs(attributes);
}
