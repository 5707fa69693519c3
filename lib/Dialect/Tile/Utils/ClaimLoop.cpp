//===- ClaimLoop.cpp - Loops over tiles that blocks claim -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/ClaimLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace flash::tile;

ClaimOp flash::tile::findClaim(gpu::GPUFuncOp kernel) {
  ClaimOp found;
  kernel.walk([&](ClaimOp claim) {
    found = claim;
    return WalkResult::interrupt();
  });
  return found;
}

SmallVector<Value> flash::tile::emitScalarsOfTile(OpBuilder &b, ClaimOp claim,
                                                  Value number) {
  if (claim.getScalars().empty())
    return {};
  Location loc = claim.getLoc();
  auto loop = cast<scf::ForOp>(claim->getParentOp());
  Value isTile = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       number, loop.getUpperBound());
  Block &body = claim.getScalars().front();
  auto choice = scf::IfOp::create(
      b, loc, isTile,
      [&](OpBuilder &b, Location) {
        IRMapping mapping;
        mapping.map(body.getArgument(0), number);
        for (Operation &op : body.without_terminator())
          b.clone(op, mapping);
        SmallVector<Value> shared;
        for (Value value : body.getTerminator()->getOperands())
          shared.push_back(mapping.lookupOrDefault(value));
        scf::YieldOp::create(b, loc, shared);
      },
      [&](OpBuilder &b, Location) {
        SmallVector<Value> zeros;
        for (Type type : body.getTerminator()->getOperandTypes())
          zeros.push_back(
              arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
        scf::YieldOp::create(b, loc, zeros);
      });
  return llvm::to_vector_of<Value>(choice.getResults());
}

void flash::tile::lowerClaimLoop(
    OpBuilder &b, ClaimOp claim,
    llvm::function_ref<SmallVector<Value>(Value)> emitResults) {
  auto loop = cast<scf::ForOp>(claim->getParentOp());
  Location loc = claim.getLoc();
  b.setInsertionPoint(loop);
  // The step and what the loop carries, and behind the condition the results.
  SmallVector<Value> inits = {loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  SmallVector<Type> carried(ValueRange(inits).getTypes()), passed = carried;
  bool isShared = !llvm::all_of(
      claim.getShared(), [](Value shared) { return shared.use_empty(); });
  unsigned numResults = isShared ? claim.getNumResults() : 1;
  passed.append(numResults, b.getIndexType());
  SmallVector<Location> locs(passed.size(), loc);
  auto whileLoop = scf::WhileOp::create(b, loc, passed, inits);

  Block *before = b.createBlock(&whileLoop.getBefore(), {}, carried,
                                ArrayRef(locs).take_front(carried.size()));
  SmallVector<Value> values(before->getArguments());
  SmallVector<Value> results = emitResults(values.front());
  llvm::append_range(values, ArrayRef(results).take_front(numResults));
  Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       results.front(), loop.getUpperBound());
  scf::ConditionOp::create(b, loc, isLeft, values);

  Block *after = b.createBlock(&whileLoop.getAfter(), {}, passed, locs);
  for (auto [result, argument] : llvm::zip(
           claim.getResults(), after->getArguments().take_back(numResults)))
    result.replaceAllUsesWith(argument);
  claim.erase();
  for (auto [old, argument] :
       llvm::zip(loop.getBody()->getArguments(), after->getArguments()))
    old.replaceAllUsesWith(argument);
  after->getOperations().splice(after->end(), loop.getBody()->getOperations());
  Operation *yield = after->getTerminator();
  b.setInsertionPoint(yield);
  Value next =
      arith::AddIOp::create(b, loc, after->getArgument(0), loop.getStep());
  yield->insertOperands(0, next);
  loop.replaceAllUsesWith(
      whileLoop.getResults().drop_front().drop_back(numResults));
  loop.erase();
}
