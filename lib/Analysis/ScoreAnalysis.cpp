//===- ScoreAnalysis.cpp - What the elements of a tensor mean -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreAnalysis.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Debug.h"
#include <cmath>

#define DEBUG_TYPE "flash-score-analysis"

using namespace mlir;
using namespace flash;

/// The source of a chain of widening casts.
static Value skipExtensions(Value value) {
  while (auto extension = value.getDefiningOp<arith::ExtFOp>())
    value = extension.getIn();
  return value;
}

/// The other operand of the commutative `op` if `operand` is one of them.
static Value otherOperand(Operation *op, Value operand) {
  if (op->getOperand(0) == operand)
    return op->getOperand(1);
  if (op->getOperand(1) == operand)
    return op->getOperand(0);
  return {};
}

bool flash::isFloatProduct(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1 ||
      !op.hasOnlyProjectedPermutations())
    return false;
  Block *body = op.getBlock();
  auto add =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value product = otherOperand(add, body->getArgument(2));
  if (!product)
    return false;
  auto multiply = skipExtensions(product).getDefiningOp<arith::MulFOp>();
  if (!multiply)
    return false;
  return otherOperand(multiply, multiply.getLhs()) &&
         llvm::is_contained(
             {std::pair<Value, Value>(body->getArgument(0),
                                      body->getArgument(1)),
              std::pair<Value, Value>(body->getArgument(1),
                                      body->getArgument(0))},
             std::pair<Value, Value>(skipExtensions(multiply.getLhs()),
                                     skipExtensions(multiply.getRhs())));
}

static bool isNegativeInfinity(const Element &element) {
  return element.kind == Element::Number && std::isinf(element.number) &&
         element.number < 0;
}

/// `element` as something that is added to a score, where it can be one.
static std::optional<Element> asBias(Element element) {
  if (element.kind == Element::Bias)
    return element;
  bool zero = element.kind == Element::Number && element.number == 0;
  if (!zero && !isNegativeInfinity(element))
    return std::nullopt;
  element.kind = Element::Bias;
  element.kept = zero ? MaskFormula::always() : MaskFormula::never();
  return element;
}

static std::optional<Element> withMask(Element element,
                                       const std::optional<MaskFormula> &kept) {
  if (!kept)
    return std::nullopt;
  element.kept = *kept;
  return element;
}

static Element withKind(Element element, Element::Kind kind) {
  element.kind = kind;
  return element;
}

static bool dependsOnKey(ArrayRef<AffineExpr> exprs) {
  return llvm::any_of(
      exprs, [](AffineExpr expr) { return expr.isFunctionOfDim(keyVar); });
}

std::optional<Element> ScoreAnalysis::evaluate(Value value, Indices at) {
  if (--stepsLeft < 0)
    return std::nullopt;
  Result result = compute(value, at);
  LLVM_DEBUG(if (!result) llvm::dbgs()
             << value.getLoc() << ": not understood: " << value << "\n");
  if (result && result->isFunctionOfScore() &&
      isa<RankedTensorType>(value.getType()))
    scoreTensors.insert(value);
  return result;
}

bool ScoreAnalysis::accumulatesFromZero(linalg::LinalgOp op) {
  Value init = op.getDpsInits()[0];
  SmallVector<AffineExpr> anywhere(
      cast<RankedTensorType>(init.getType()).getRank(),
      getAffineConstantExpr(0, context));
  Result start = evaluate(init, anywhere);
  return start && start->kind == Element::Number && start->number == 0;
}

ScoreAnalysis::Result ScoreAnalysis::compute(Value value, Indices at) {
  Attribute attribute;
  if (matchPattern(value, m_Constant(&attribute)))
    return constant(attribute);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto op =
        dyn_cast_or_null<linalg::LinalgOp>(argument.getOwner()->getParentOp());
    if (!op)
      return std::nullopt;
    OpOperand *operand = op.getMatchingOpOperand(argument);
    AffineMap map = op.getMatchingIndexingMap(operand);
    SmallVector<AffineExpr> inner;
    for (AffineExpr expr : map.getResults())
      inner.push_back(expr.replaceDims(at));
    return evaluate(operand->get(), inner);
  }
  auto result = cast<OpResult>(value);
  return TypeSwitch<Operation *, Result>(result.getOwner())
      .Case([&](linalg::LinalgOp op) { return linalgResult(op, result, at); })
      .Case([&](linalg::SoftmaxOp op) { return softmax(op, at); })
      .Case(
          [&](linalg::IndexOp op) { return Element::ofIndex(at[op.getDim()]); })
      .Case([&](tensor::CastOp op) -> Result {
        if (!isa<RankedTensorType>(op.getSource().getType()))
          return std::nullopt;
        return evaluate(op.getSource(), at);
      })
      .Case([&](tensor::CollapseShapeOp op) { return collapsed(op, at); })
      .Case([&](tensor::ExpandShapeOp op) { return expanded(op, at); })
      .Default([&](Operation *op) { return elementwise(op, at); });
}

ScoreAnalysis::Result ScoreAnalysis::constant(Attribute attribute) {
  if (auto splat = dyn_cast<SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return Element::ofNumber(number.getValueAsDouble());
  auto integer = dyn_cast<IntegerAttr>(attribute);
  if (!integer || integer.getValue().getBitWidth() > 64)
    return std::nullopt;
  if (integer.getType().isInteger(1))
    return withMask(Element(Element::Predicate), integer.getValue().isZero()
                                                     ? MaskFormula::never()
                                                     : MaskFormula::always());
  return Element::ofIndex(
      getAffineConstantExpr(integer.getValue().getSExtValue(), context));
}

ScoreAnalysis::Result ScoreAnalysis::linalgResult(linalg::LinalgOp op,
                                                  OpResult result, Indices at) {
  OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
  AffineMap map = op.getMatchingIndexingMap(init);
  if (!op.hasPureTensorSemantics() || !map.isProjectedPermutation() ||
      map.getNumResults() != op.getNumParallelLoops() ||
      op.getNumReductionLoops() > 1)
    return std::nullopt;
  // What is reduced is reduced over j.
  SmallVector<AffineExpr> loops(op.getNumLoops(),
                                getAffineDimExpr(keyVar, context));
  for (auto [loop, expr] : llvm::zip_equal(map.getResults(), at))
    loops[cast<AffineDimExpr>(loop).getPosition()] = expr;
  if (op.getNumReductionLoops() == 0)
    return evaluate(op.getMatchingYieldValue(init)->get(), loops);
  return reduction(op, at, loops);
}

ScoreAnalysis::Result ScoreAnalysis::reduction(linalg::LinalgOp op, Indices at,
                                               Indices loops) {
  if (isFloatProduct(op)) {
    if (!accumulatesFromZero(op))
      return std::nullopt;
    Element score(Element::Score);
    score.product = op;
    score.at.assign(at.begin(), at.end());
    return score;
  }
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 ||
      op.getNumReductionLoops() != 1 || dependsOnKey(at))
    return std::nullopt;
  Block *body = op.getBlock();
  Operation *combine = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!combine || combine->getNumOperands() != 2 ||
      otherOperand(combine, body->getArgument(1)) != body->getArgument(0))
    return std::nullopt;
  Result start = evaluate(op.getDpsInits()[0], at);
  Result element = evaluate(body->getArgument(0), loops);
  if (!start || start->kind != Element::Number || !element)
    return std::nullopt;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(combine)) {
    APFloat lowest = APFloat::getLargest(
        cast<FloatType>(combine->getResult(0).getType()).getFloatSemantics(),
        /*Negative=*/true);
    if (element->kind != Element::Score ||
        start->number > lowest.convertToDouble())
      return std::nullopt;
    return withKind(*element, Element::RowMaximum);
  }
  if (isa<arith::AddFOp>(combine) && element->kind == Element::Exponential &&
      start->number == 0)
    return withKind(*element, Element::RowSum);
  return std::nullopt;
}

ScoreAnalysis::Result ScoreAnalysis::softmax(linalg::SoftmaxOp op, Indices at) {
  SmallVector<AffineExpr> others(at);
  others.erase(others.begin() + op.getDimension());
  if (at[op.getDimension()] != getAffineDimExpr(keyVar, context) ||
      dependsOnKey(others))
    return std::nullopt;
  Result score = evaluate(op.getInput(), at);
  if (!score || score->kind != Element::Score)
    return std::nullopt;
  return withKind(*score, Element::Probability);
}

ScoreAnalysis::Result ScoreAnalysis::collapsed(tensor::CollapseShapeOp op,
                                               Indices at) {
  SmallVector<AffineExpr> inner(op.getSrcType().getRank());
  for (auto [group, expr] : llvm::zip_equal(op.getReassociationIndices(), at)) {
    AffineExpr rest = expr;
    for (int64_t dim : llvm::reverse(ArrayRef(group).drop_front())) {
      int64_t size = op.getSrcType().getDimSize(dim);
      if (ShapedType::isDynamic(size) || size == 0)
        return std::nullopt;
      inner[dim] = rest % size;
      rest = rest.floorDiv(size);
    }
    // The flat index is in range, so no modulo is needed on the outermost.
    inner[group.front()] = rest;
  }
  return evaluate(op.getSrc(), inner);
}

ScoreAnalysis::Result ScoreAnalysis::expanded(tensor::ExpandShapeOp op,
                                              Indices at) {
  SmallVector<AffineExpr> inner;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    AffineExpr flat = at[group.front()];
    for (int64_t dim : ArrayRef(group).drop_front()) {
      int64_t size = op.getResultType().getDimSize(dim);
      if (ShapedType::isDynamic(size))
        return std::nullopt;
      flat = flat * size + at[dim];
    }
    inner.push_back(simplifyAffineExpr(flat, /*numDims=*/4, /*numSymbols=*/0));
  }
  return evaluate(op.getSrc(), inner);
}

ScoreAnalysis::Result ScoreAnalysis::elementwise(Operation *op, Indices at) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      op->getNumOperands() == 0 || !OpTrait::hasElementwiseMappableTraits(op))
    return std::nullopt;
  SmallVector<Element> operands;
  for (Value operand : op->getOperands()) {
    Result element = evaluate(operand, at);
    if (!element)
      return std::nullopt;
    operands.push_back(std::move(*element));
  }
  Element &first = operands[0];
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return first;
  if (isa<math::ExpOp>(op) && first.kind == Element::Shifted)
    return withKind(first, Element::Exponential);
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    // Narrower integers might not hold the index.
    Type type = getElementTypeOrSelf(op->getResult(0));
    if (first.kind == Element::Index &&
        (type.isIndex() || type.getIntOrFloatBitWidth() >= 32))
      return first;
    return std::nullopt;
  }
  if (isa<arith::SelectOp>(op))
    return select(first, operands[1], operands[2]);
  if (operands.size() != 2)
    return std::nullopt;
  if (isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))))
    return binaryFloat(op, first, operands[1]);
  return binaryInteger(op, first, operands[1]);
}

ScoreAnalysis::Result ScoreAnalysis::binaryFloat(Operation *op,
                                                 const Element &lhs,
                                                 const Element &rhs) {
  if (isa<arith::MulFOp, arith::DivFOp>(op)) {
    if (isa<arith::DivFOp>(op) && lhs.kind == Element::Exponential &&
        rhs.kind == Element::RowSum && lhs.hasScoresOf(rhs))
      return withKind(lhs, Element::Probability);
    if (isa<arith::MulFOp>(op) && lhs.kind == Element::Number &&
        rhs.kind != Element::Number)
      return binaryFloat(op, rhs, lhs);
    if ((lhs.kind != Element::Score && lhs.kind != Element::Bias) ||
        rhs.kind != Element::Number)
      return std::nullopt;
    double factor = isa<arith::MulFOp>(op) ? rhs.number : 1 / rhs.number;
    // A masked element has to stay at -inf.
    bool masked = lhs.kind == Element::Bias || !lhs.kept.isAlways();
    if (!std::isfinite(factor) || (masked && factor <= 0))
      return std::nullopt;
    Element scaled = lhs;
    if (lhs.kind == Element::Score)
      scaled.scale *= factor;
    if (!std::isfinite(scaled.scale))
      return std::nullopt;
    return scaled;
  }
  if (isa<arith::AddFOp>(op)) {
    if (rhs.kind == Element::Score && lhs.kind != Element::Score)
      return binaryFloat(op, rhs, lhs);
    Result bias = asBias(rhs);
    Result target = lhs.kind == Element::Score ? Result(lhs) : asBias(lhs);
    if (!bias || !target)
      return std::nullopt;
    return withMask(*target, target->kept.conjoin(bias->kept));
  }
  if (isa<arith::SubFOp>(op) && lhs.kind == Element::Score &&
      rhs.kind == Element::RowMaximum && lhs.hasScoresOf(rhs))
    return withKind(lhs, Element::Shifted);
  return std::nullopt;
}

ScoreAnalysis::Result ScoreAnalysis::binaryInteger(Operation *op,
                                                   const Element &lhs,
                                                   const Element &rhs) {
  if (lhs.kind == Element::Predicate && rhs.kind == Element::Predicate) {
    if (isa<arith::AndIOp>(op))
      return withMask(lhs, lhs.kept.conjoin(rhs.kept));
    if (isa<arith::OrIOp>(op))
      return withMask(lhs, lhs.kept.disjoin(rhs.kept));
    if (isa<arith::XOrIOp>(op)) {
      // Written for `not x`, which is `x xor true`.
      if (rhs.kept == MaskFormula::always())
        return withMask(lhs, lhs.kept.negate());
      if (lhs.kept == MaskFormula::always())
        return withMask(rhs, rhs.kept.negate());
    }
    return std::nullopt;
  }
  if (lhs.kind != Element::Index || rhs.kind != Element::Index)
    return std::nullopt;
  auto divisor = dyn_cast<AffineConstantExpr>(rhs.index);
  bool divisible = divisor && divisor.getValue() > 0;
  bool truncates = !isKnownNonNegative(lhs.index);
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](arith::CmpIOp compare) {
        return withMask(
            Element(Element::Predicate),
            MaskFormula::compare(compare.getPredicate(), lhs.index, rhs.index));
      })
      .Case([&](arith::AddIOp) {
        return Element::ofIndex(lhs.index + rhs.index);
      })
      .Case([&](arith::SubIOp) {
        return Element::ofIndex(lhs.index - rhs.index);
      })
      .Case([&](arith::MulIOp) -> Result {
        AffineExpr product = lhs.index * rhs.index;
        if (!product.isPureAffine())
          return std::nullopt;
        return Element::ofIndex(product);
      })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
          [&](auto division) -> Result {
            if (!divisible || (truncates && !isa<arith::FloorDivSIOp>(op)))
              return std::nullopt;
            return Element::ofIndex(lhs.index.floorDiv(rhs.index));
          })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto remainder) -> Result {
        if (!divisible || truncates)
          return std::nullopt;
        return Element::ofIndex(lhs.index % rhs.index);
      })
      .Default([](Operation *) { return std::nullopt; });
}

ScoreAnalysis::Result ScoreAnalysis::select(const Element &condition,
                                            const Element &then,
                                            const Element &otherwise) {
  if (condition.kind != Element::Predicate)
    return std::nullopt;
  Result lhs = then, rhs = otherwise;
  // Beside a score, -inf is that score masked everywhere.
  if (lhs->kind == Element::Score && isNegativeInfinity(*rhs)) {
    rhs = withMask(*lhs, MaskFormula::never());
  } else if (rhs->kind == Element::Score && isNegativeInfinity(*lhs)) {
    lhs = withMask(*rhs, MaskFormula::never());
  } else if (lhs->kind != Element::Predicate && lhs->kind != Element::Score) {
    lhs = asBias(*lhs);
    rhs = asBias(*rhs);
  }
  if (!lhs || !rhs || lhs->kind != rhs->kind || lhs->scale != rhs->scale ||
      lhs->product != rhs->product || lhs->at != rhs->at)
    return std::nullopt;
  // (condition and lhs) or (not condition and rhs)
  std::optional<MaskFormula> opposite = condition.kept.negate();
  std::optional<MaskFormula> first = condition.kept.conjoin(lhs->kept);
  if (!opposite || !first)
    return std::nullopt;
  std::optional<MaskFormula> second = opposite->conjoin(rhs->kept);
  if (!second)
    return std::nullopt;
  return withMask(*lhs, first->disjoin(*second));
}
