//===- BodyEmitter.cpp - The body of a linalg operation on tiles ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BodyEmitter.h"

#include "MemoryTile.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

Value flash::emitSplat(OpBuilder &b, Location loc, Value scalar,
                       RankedTensorType type) {
  Attribute known;
  if (matchPattern(scalar, m_Constant(&known)))
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, known));
  return tile::BroadcastOp::create(b, loc, type, scalar);
}

bool flash::isTileArithmetic(Operation *op) {
  // Numbers that are stored.
  if (isa<arith::FPToSIOp>(op))
    return getElementTypeOrSelf(op->getOperand(0)).isF32() &&
           getElementTypeOrSelf(op->getResult(0)).isInteger(32);
  // Weights of values of 8 bits.
  if (isa<arith::TruncFOp>(op) &&
      isa<Float8E4M3FNType>(getElementTypeOrSelf(op->getResult(0))))
    return getElementTypeOrSelf(op->getOperand(0)).isF32();
  auto isElement = [](Type type) {
    type = getElementTypeOrSelf(type);
    return isa<Float16Type, BFloat16Type, Float32Type>(type) ||
           type.isInteger(1);
  };
  return OpTrait::hasElementwiseMappableTraits(op) &&
         op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         llvm::all_of(op->getResultTypes(), isElement) &&
         llvm::all_of(op->getOperandTypes(), isElement);
}

static int64_t getRank(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

Value BodyEmitter::lift(Value value, RankedTensorType type) {
  if (value.getType() == type)
    return value;
  if (getRank(value) == 0)
    return emitSplat(b, loc, value, type);
  return tile::BroadcastOp::create(b, loc, type, value);
}

Value BodyEmitter::resolve(Value value) {
  if (Value known = values.lookupOrNull(value))
    return known;
  return lookup(value);
}

void BodyEmitter::setArgument(unsigned number, Value value) {
  auto give = [&](Value inBody, Value outside) {
    values.map(inBody, outside);
    given.push_back(inBody);
  };
  BlockArgument argument = op.getBlock()->getArgument(number);
  Type element = getElementTypeOrSelf(value.getType());
  if (element == argument.getType()) {
    give(argument, value);
    return;
  }
  // What widens them gives them as they are.
  bool isWidenedOnly = true;
  for (Operation *user : argument.getUsers()) {
    auto widen = dyn_cast<arith::ExtFOp>(user);
    if (widen && widen.getType() == element)
      give(widen.getResult(), value);
    else
      isWidenedOnly = false;
  }
  if (isWidenedOnly)
    return;
  auto type = cast<RankedTensorType>(value.getType());
  give(argument,
       arith::TruncFOp::create(b, loc, type.clone(argument.getType()), value));
}

SmallVector<Operation *> BodyEmitter::getOpsFor(Value wanted) {
  Block *body = op.getBlock();
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Value> list = {wanted};
  while (!list.empty()) {
    Value next = list.pop_back_val();
    Operation *definition = next.getDefiningOp();
    if (values.contains(next) || !definition ||
        definition->getBlock() != body || !needed.insert(definition).second)
      continue;
    definition->walk([&](Operation *inner) {
      llvm::append_range(list, inner->getOperands());
    });
  }
  SmallVector<Operation *> ops;
  for (Operation &inner : *body)
    if (needed.contains(&inner))
      ops.push_back(&inner);
  return ops;
}

void BodyEmitter::emitArithmetic(Operation *inner) {
  // The result has as few dimensions as the operands have. A value for each row
  // and one for each column make a matrix.
  RankedTensorType type;
  for (Value operand : inner->getOperands()) {
    auto own = dyn_cast<RankedTensorType>(resolve(operand).getType());
    if (!own)
      continue;
    if (!type || own.getRank() > type.getRank())
      type = own;
    else if (own.getRank() == 1 && own.getEncoding() != type.getEncoding() &&
             type.getRank() == 1)
      type = getType(own.getElementType());
  }
  SmallVector<Value> operands;
  for (Value operand : inner->getOperands()) {
    Value value = resolve(operand);
    if (type)
      value = lift(value, type.clone(getElementTypeOrSelf(value.getType())));
    operands.push_back(value);
  }
  Type result = inner->getResult(0).getType();
  if (type)
    result = type.clone(result);
  values.map(inner->getResult(0),
             b.create(loc, inner->getName().getIdentifier(), operands, result,
                      inner->getAttrs())
                 ->getResult(0));
}

FailureOr<Value> BodyEmitter::emitMap(Value wanted, ArrayRef<Operation *> ops) {
  Type f32 = b.getF32Type();
  RankedTensorType type = getType(f32);
  Type element = wanted.getType();
  if (!isa<Float16Type, BFloat16Type, Float32Type>(element))
    return refuse(op, "a tile computed from positions has elements of f16, "
                      "bf16 or f32; compare and choose in the same operation");
  // The tiles that the body reads, as f32.
  SmallVector<Value> read = llvm::to_vector(llvm::make_filter_range(
      given, [&](Value value) { return getRank(values.lookup(value)) > 0; }));
  SmallVector<Value> inputs;
  for (Value element : read) {
    Value value = values.lookup(element);
    auto own = cast<RankedTensorType>(value.getType());
    if (!own.getElementType().isF32())
      value = arith::ExtFOp::create(b, loc, own.clone(f32), value);
    inputs.push_back(lift(value, type));
  }
  auto map = tile::MapOp::create(b, loc, type, inputs);
  SmallVector<Type> types(inputs.size(), f32);
  types.append(type.getRank(), b.getIndexType());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, types,
                              SmallVector<Location>(types.size(), loc));
  auto convertTo = [&](Value value, Type to) -> Value {
    if (value.getType() == to)
      return value;
    if (to.isF32())
      return arith::ExtFOp::create(b, loc, to, value);
    return arith::TruncFOp::create(b, loc, to, value);
  };
  IRMapping inner;
  for (auto [element, value] : llvm::zip(read, body->getArguments()))
    inner.map(element, convertTo(value, element.getType()));
  for (Value element : given)
    if (!inner.contains(element))
      inner.map(element, values.lookup(element));
  for (Operation *each : ops) {
    if (auto index = dyn_cast<linalg::IndexOp>(each)) {
      Value known = indices.lookup(index.getDim());
      inner.map(index.getResult(),
                known ? known
                      : body->getArgument(inputs.size() +
                                          dims.lookup(index.getDim())));
      continue;
    }
    if (failed(copyScalar(b, *each, inner)))
      return failure();
  }
  Value yielded = inner.lookupOrNull(wanted);
  tile::YieldOp::create(b, loc,
                        convertTo(yielded ? yielded : lookup(wanted), f32));
  Value result = map;
  if (!element.isF32()) {
    b.setInsertionPointAfter(map);
    result = arith::TruncFOp::create(b, loc, type.clone(element), result);
  }
  return result;
}

FailureOr<Value> BodyEmitter::emit(Value wanted) {
  for (Operation &inner : *op.getBlock())
    if (inner.getNumRegions() > 0 || !isMemoryEffectFree(&inner))
      return refuse(&inner, "the body of an operation on tiles has no regions "
                            "and no effects");
  SmallVector<Operation *> ops = getOpsFor(wanted);
  auto isScalar = [&](Operation *inner) {
    return llvm::none_of(
               inner->getOperands(),
               [&](Value operand) { return getRank(resolve(operand)) > 0; }) &&
           !isa<linalg::IndexOp>(inner);
  };
  bool isArithmeticOnly = llvm::all_of(ops, [&](Operation *inner) {
    return isTileArithmetic(inner) || inner->hasTrait<OpTrait::ConstantLike>();
  });
  // A function that takes many instructions is computed for one element at a
  // time: a thread has no registers for all at once.
  bool isLong = shape.size() == 2 && llvm::any_of(ops, [](Operation *inner) {
                  return isa<math::MathDialect>(inner->getDialect()) &&
                         !isa<math::Exp2Op, math::FmaOp, math::AbsFOp>(inner);
                });
  if (!isArithmeticOnly || isLong)
    return emitMap(wanted, ops);
  for (Operation *inner : ops) {
    if (values.contains(inner->getResult(0)))
      continue;
    if (!isScalar(inner))
      emitArithmetic(inner);
    else if (failed(copyScalar(b, *inner, values)))
      return failure();
  }
  return lift(resolve(wanted), getType(wanted.getType()));
}
