//===- LinalgTiles.cpp - linalg on tiles as parts of a kernel -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

RankedTensorType BlockProgram::getFragmentType(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return types.fragment(type.getDimSize(1), type.getElementType());
}

static LogicalResult refuse(linalg::ContractOp contract) {
  return contract.emitOpError(
      "has no translation to a block program: only products of two slices of "
      "operands have, with static sums of f32, whose rows are a multiple of 16 "
      "(the same in all products) and columns of 8");
}

LogicalResult BlockProgram::checkContracts() {
  WalkResult walk = forall.walk([&](linalg::ContractOp contract) {
    auto type = dyn_cast<RankedTensorType>(contract.getOutputs()[0].getType());
    if (type && type.getRank() == 2 && type.hasStaticShape() &&
        type.getElementType().isF32() && type.getDimSize(0) == types.queries &&
        types.queries > 0 && types.queries % 16 == 0 &&
        type.getDimSize(1) > 0 && type.getDimSize(1) % 8 == 0)
      return WalkResult::advance();
    return WalkResult(refuse(contract));
  });
  return failure(walk.wasInterrupted());
}

LogicalResult BlockProgram::translateContract(linalg::ContractOp contract) {
  SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
  AffineExpr row, column, inner;
  bindDims(b.getContext(), row, column, inner);
  auto map = [&](AffineExpr first, AffineExpr second) {
    return AffineMap::get(3, 0, {first, second}, b.getContext());
  };
  bool transposed = maps[1] == map(column, inner);
  if (maps[0] != map(row, inner) || maps[2] != map(row, column) ||
      (!transposed && maps[1] != map(inner, column)))
    return refuse(contract);

  Value init = contract.getOutputs()[0], sum;
  auto fill = init.getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat())) {
    FailureOr<Value> state = getState(init);
    if (failed(state))
      return failure();
    sum = *state;
  }
  SmallVector<Value> operands;
  for (Value input : contract.getInputs()) {
    if (!getSlice(input))
      return refuse(contract);
    FailureOr<Value> tile = fetch(input);
    if (failed(tile))
      return failure();
    operands.push_back(*tile);
  }
  RankedTensorType result = getFragmentType(contract.getResult(0));
  Value pending = tile::MmaAsyncOp::create(
      b, contract.getLoc(), tile::PendingType::get(b.getContext(), result),
      operands[0], operands[1], sum, transposed, /*tf32=*/false,
      /*warpgroup=*/false);
  mapping.map(contract.getResult(0),
              tile::MmaWaitOp::create(b, contract.getLoc(), result, pending)
                  .getResult());
  return success();
}

LogicalResult BlockProgram::translateMap(linalg::GenericOp generic) {
  auto refuse = [&] {
    return generic.emitOpError(
        "has no translation to a block program: only arithmetic on each "
        "element of one tile has");
  };
  if (generic.getNumDpsInputs() != 0 || generic.getNumDpsInits() != 1 ||
      generic.getNumLoops() != 2 || generic.getNumReductionLoops() != 0 ||
      !generic.getIndexingMapsArray()[0].isIdentity())
    return refuse();
  Value x = mapping.lookupOrNull(generic.getDpsInits()[0]);
  if (!x)
    return refuse();
  Location loc = generic.getLoc();
  auto copy = tile::MapOp::create(b, loc, x.getType(), x);
  mapping.map(generic.getResult(0), copy.getResult());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(
      &copy.getBody(), {},
      {getElementTypeOrSelf(x), b.getIndexType(), b.getIndexType()},
      {loc, loc, loc});
  IRMapping inner;
  inner.map(generic.getBody()->getArgument(0), body->getArgument(0));
  for (Operation &op : generic.getBody()->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      inner.map(index.getResult(), body->getArgument(1 + index.getDim()));
    else if (op.getNumRegions() == 0 && isMemoryEffectFree(&op))
      copyScalarOp(b, op, inner);
    else
      return refuse();
  }
  Value yielded = generic.getBody()->getTerminator()->getOperand(0);
  tile::YieldOp::create(b, loc,
                        inner.contains(yielded) ? inner.lookup(yielded)
                                                : lookup(yielded));
  return success();
}

LogicalResult BlockProgram::translateElementwise(Operation &op) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    Value known = mapping.lookupOrNull(operand);
    if (!known)
      return op.emitOpError("has no translation to a block program: its "
                            "operands are no tiles in registers");
    operands.push_back(known);
  }
  Operation *copy =
      b.create(op.getLoc(), op.getName().getIdentifier(), operands,
               getFragmentType(op.getResult(0)), op.getAttrs());
  mapping.map(op.getResult(0), copy->getResult(0));
  return success();
}
