//===- ScoreBody.cpp - Masking and modifying one score --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreRegion.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace flash;

/// The constraints of `set` that are not known to hold everywhere.
static SmallVector<std::pair<AffineExpr, bool>>
openConstraints(IntegerSet set) {
  SmallVector<std::pair<AffineExpr, bool>> open;
  for (auto [constraint, isEquality] :
       llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
    auto constant = dyn_cast<AffineConstantExpr>(constraint);
    if (constant &&
        (isEquality ? constant.getValue() == 0 : constant.getValue() >= 0))
      continue;
    open.emplace_back(constraint, isEquality);
  }
  return open;
}

/// Does what affine::expandAffineExpr does, where neither dimensions nor
/// symbols are negative. Quotients and remainders by powers of two are one
/// operation, and so are others of what cannot be negative, instead of eight.
static Value expand(OpBuilder &b, Location loc, AffineExpr expr,
                    ArrayRef<Value> dims, ArrayRef<Value> symbols) {
  SmallVector<std::optional<int64_t>> least(dims.size() + symbols.size(), 0),
      most(least.size());
  SmallVector<Value> values(dims);
  DenseMap<AffineExpr, AffineExpr> divided;
  expr.walk([&](AffineExpr part) {
    bool isQuotient = part.getKind() == AffineExprKind::FloorDiv;
    if ((!isQuotient && part.getKind() != AffineExprKind::Mod) ||
        divided.contains(part))
      return;
    auto binary = cast<AffineBinaryOpExpr>(part);
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!divisor)
      return;
    bool isPowerOf2 = llvm::isPowerOf2_64(divisor.getValue());
    std::optional<int64_t> bound = getBoundForAffineExpr(
        binary.getLHS(), dims.size(), symbols.size(), least, most,
        /*isUpper=*/false);
    if (!isPowerOf2 && bound.value_or(-1) < 0)
      return;
    Value dividend = affine::expandAffineExpr(
        b, loc, binary.getLHS().replace(divided), values, symbols);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    divided[part] = b.getAffineDimExpr(values.size());
    int64_t by = divisor.getValue();
    // A shift gives the floor, and a mask the remainder, of negative numbers,
    // too.
    if (isPowerOf2 && isQuotient)
      values.push_back(arith::ShRSIOp::create(b, loc, dividend,
                                              constant(llvm::Log2_64(by))));
    else if (isPowerOf2)
      values.push_back(
          arith::AndIOp::create(b, loc, dividend, constant(by - 1)));
    else if (isQuotient)
      values.push_back(arith::DivUIOp::create(b, loc, dividend, constant(by)));
    else
      values.push_back(arith::RemUIOp::create(b, loc, dividend, constant(by)));
  });
  return affine::expandAffineExpr(b, loc, expr.replace(divided), values,
                                  symbols);
}

/// The value of an expression that may not fit in 32 bits, the indices of a
/// GPU, as an i64. An operation of index type would be done in 32 bits there.
static Value expandWide(OpBuilder &b, Location loc, AffineExpr expr,
                        ArrayRef<Value> dims, ArrayRef<Value> symbols) {
  Block *block = b.getInsertionBlock();
  auto end = b.getInsertionPoint();
  Operation *before = end == block->begin() ? nullptr : &*std::prev(end);
  Value value = expand(b, loc, expr, dims, symbols);

  Type wide = b.getI64Type();
  IRMapping widened;
  auto widen = [&](Value operand) -> Value {
    if (Value known = widened.lookupOrNull(operand))
      return known;
    Value cast = arith::IndexCastOp::create(b, loc, wide, operand);
    widened.map(operand, cast);
    return cast;
  };
  SmallVector<Operation *> ops;
  for (auto it = before ? std::next(before->getIterator()) : block->begin();
       it != end; ++it)
    ops.push_back(&*it);
  OpBuilder::InsertionGuard guard(b);
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
      widened.map(op->getResult(0),
                  arith::ConstantIntOp::create(b, loc, constant.value(), 64));
      continue;
    }
    Operation *clone = cloneWide(b, *op, widen);
    for (auto [old, result] :
         llvm::zip_equal(op->getResults(), clone->getResults()))
      widened.map(old, result);
  }
  return widen(value);
}

Value flash::emitMaskPredicate(OpBuilder &b, Location loc,
                               MaskAttrInterface mask,
                               const ScorePosition &position) {
  Value dims[] = {position.batch, position.head, position.query, position.key};
  Value symbols[] = {position.numQueries, position.numKeys};
  auto getMost = [](Value length) {
    std::optional<int64_t> known =
        length ? getConstantIntValue(length) : std::nullopt;
    return std::max(known.value_or(0), kMostLength);
  };
  int64_t queries = getMost(position.numQueries),
          keys = getMost(position.numKeys);
  Value zero;
  // What is null always holds.
  auto conjoin = [&](Value lhs, Value rhs) -> Value {
    if (!lhs || !rhs)
      return lhs ? lhs : rhs;
    return arith::AndIOp::create(b, loc, lhs, rhs);
  };
  auto addConstraints = [&](Value all, IntegerSet set) {
    for (auto [constraint, isEquality] : openConstraints(set)) {
      auto predicate =
          isEquality ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
      if (!fitsIn32Bits(constraint, {kMostHeads, kMostHeads, queries, keys},
                        {queries, keys})) {
        Value lhs = expandWide(b, loc, constraint, dims, symbols);
        Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
        all = conjoin(all, arith::CmpIOp::create(b, loc, predicate, lhs, zero));
        continue;
      }
      if (!zero)
        zero = arith::ConstantIndexOp::create(b, loc, 0);
      Value lhs = expand(b, loc, constraint, dims, symbols);
      all = conjoin(all, arith::CmpIOp::create(b, loc, predicate, lhs, zero));
    }
    return all;
  };

  // A set that belongs to one intersection only adds its constraints to it;
  // other parts are computed once, however many share them.
  std::vector<MaskNode> nodes = getMaskNodes(mask);
  std::vector<unsigned> uses(nodes.size());
  for (const MaskNode &node : nodes)
    for (unsigned part : node.parts)
      ++uses[part];
  std::vector<Value> values(nodes.size());
  auto add = [&](Value all, unsigned part) {
    if (nodes[part].kind == MaskForm::Kind::Set && uses[part] == 1)
      return addConstraints(all, nodes[part].set);
    return conjoin(all, values[part]);
  };
  for (auto [index, node] : llvm::enumerate(nodes)) {
    Value &value = values[index];
    switch (node.kind) {
    case MaskForm::Kind::Set:
      if (uses[index] != 1)
        value = addConstraints(Value(), node.set);
      break;
    case MaskForm::Kind::Intersection:
      for (unsigned part : node.parts)
        value = add(value, part);
      break;
    case MaskForm::Kind::Union:
      value = add(Value(), node.parts.front());
      for (unsigned part : ArrayRef(node.parts).drop_front()) {
        Value holds = value ? add(Value(), part) : Value();
        value = holds ? arith::OrIOp::create(b, loc, value, holds).getResult()
                      : Value();
      }
      break;
    }
  }
  return values.back();
}

Value flash::emitLengthPredicate(OpBuilder &b, Location loc, Value predicate,
                                 Value length, Value key) {
  if (!length)
    return predicate;
  Value bound = arith::IndexCastOp::create(b, loc, b.getIndexType(), length);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, bound);
  if (!predicate)
    return exists;
  return arith::AndIOp::create(b, loc, predicate, exists);
}

Value flash::emitGuard(OpBuilder &b, GuardOp guard, Value value,
                       Value takesPart) {
  if (!takesPart)
    return value;
  Value otherwise = arith::ConstantOp::create(
      b, guard.getLoc(),
      b.getIntegerAttr(value.getType(), guard.getOtherwise()));
  return arith::SelectOp::create(b, guard.getLoc(), takesPart, value,
                                 otherwise);
}

Value flash::emitRowExists(OpBuilder &b, Location loc, Value predicate,
                           Value query, Value numQueries) {
  Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, query,
                                       numQueries);
  if (!predicate)
    return exists;
  return arith::AndIOp::create(b, loc, predicate, exists);
}

Value flash::emitScoreValues(
    OpBuilder &b, Region &region, Value score, const ScorePosition &position,
    Value takesPart, IRMapping &values,
    function_ref<Value(Operation &, const IRMapping &)> replace) {
  Block &block = region.front();
  values.map(block.getArguments(),
             ValueRange{score, position.batch, position.head, position.query,
                        position.key});
  for (Operation &op : block.without_terminator()) {
    Value replacement;
    if (auto guard = dyn_cast<GuardOp>(op))
      replacement = emitGuard(
          b, guard, values.lookupOrDefault(guard.getValue()), takesPart);
    else if (replace)
      replacement = replace(op, values);
    if (replacement)
      values.map(op.getResult(0), replacement);
    else
      b.clone(op, values);
  }
  return values.lookupOrDefault(
      cast<YieldOp>(block.getTerminator()).getResult());
}

Value flash::emitScoreRegion(OpBuilder &b, Location loc, Region &region,
                             Value score, const ScorePosition &position,
                             Value takesPart) {
  if (region.empty())
    return score;
  IRMapping values;
  return emitScoreValues(b, region, score, position, takesPart, values);
}

void flash::dropKeep(Region &score) {
  if (score.empty())
    return;
  cast<YieldOp>(score.front().getTerminator()).getKeepMutable().clear();
  if (changesScore(score))
    eraseDeadOps(score.front());
  else
    score.front().erase();
}

/// Clones what computes some values of a region, which must not depend on the
/// score; `replace` gives another value for a guard, or null.
static SmallVector<Value>
cloneValues(OpBuilder &b, Region &region, ArrayRef<Value> values,
            const ScorePosition &position,
            function_ref<Value(GuardOp, Value)> replace) {
  Block &block = region.front();
  llvm::DenseSet<Value> needed(values.begin(), values.end());
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (llvm::any_of(op.getResults(),
                     [&](Value result) { return needed.contains(result); }))
      needed.insert_range(op.getOperands());
  IRMapping mapping;
  mapping.map(
      block.getArguments().take_back(4),
      ValueRange{position.batch, position.head, position.query, position.key});
  for (Operation &op : block.without_terminator()) {
    if (!needed.contains(op.getResult(0)))
      continue;
    auto guard = dyn_cast<GuardOp>(op);
    Value replacement =
        guard ? replace(guard, mapping.lookupOrDefault(guard.getValue()))
              : Value();
    if (replacement)
      mapping.map(guard.getResult(), replacement);
    else
      b.clone(op, mapping);
  }
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> flash::emitValues(OpBuilder &b, Region &region,
                                     ArrayRef<Value> values,
                                     const ScorePosition &position,
                                     Value takesPart) {
  return cloneValues(b, region, values, position,
                     [&](GuardOp guard, Value value) {
                       return emitGuard(b, guard, value, takesPart);
                     });
}

Value flash::emitKeep(OpBuilder &b, Region &region,
                      const ScorePosition &position, Value takesPart) {
  Value keep = getKeep(region);
  return keep ? emitValues(b, region, keep, position, takesPart).front()
              : Value();
}

Value flash::cloneKeepWithGuards(OpBuilder &b, Region &region,
                                 const ScorePosition &position) {
  Value keep = getKeep(region);
  auto withGuard = [](GuardOp, Value) { return Value(); };
  return keep ? cloneValues(b, region, keep, position, withGuard).front()
              : Value();
}

Value flash::emitKeep(OpBuilder &b, const MaskingChoice &choice) {
  if (!choice.keepsIfFalse)
    return choice.condition;
  Location loc = choice.condition.getLoc();
  return arith::XOrIOp::create(b, loc, choice.condition,
                               arith::ConstantIntOp::create(b, loc, 1, 1));
}

Operation *flash::cloneWide(OpBuilder &b, Operation &op,
                            function_ref<Value(Value)> widen) {
  OperationState state(op.getLoc(), op.getName());
  for (Value operand : op.getOperands())
    state.operands.push_back(operand.getType().isIndex() ? widen(operand)
                                                         : operand);
  for (Type type : op.getResultTypes())
    state.types.push_back(type.isIndex() ? b.getI64Type() : type);
  state.attributes.append(op.getAttrs());
  return b.create(state);
}

void flash::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}
