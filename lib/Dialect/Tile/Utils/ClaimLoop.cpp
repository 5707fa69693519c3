//===- ClaimLoop.cpp - Loops over tiles that blocks claim -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/ClaimLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash::tile;

bool flash::tile::claimsTiles(gpu::GPUFuncOp kernel) {
  return kernel.walk([](ClaimOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

void flash::tile::lowerClaimLoop(OpBuilder &b, ClaimOp claim,
                                 llvm::function_ref<Value(Value)> emitNumber) {
  auto loop = cast<scf::ForOp>(claim->getParentOp());
  Location loc = claim.getLoc();
  b.setInsertionPoint(loop);
  // The step and what the loop carries, and behind the condition the number.
  SmallVector<Value> inits = {loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  SmallVector<Type> carried(ValueRange(inits).getTypes()), passed = carried;
  passed.push_back(b.getIndexType());
  SmallVector<Location> locs(passed.size(), loc);
  auto whileLoop = scf::WhileOp::create(b, loc, passed, inits);

  Block *before = b.createBlock(&whileLoop.getBefore(), {}, carried,
                                ArrayRef(locs).drop_back());
  SmallVector<Value> values(before->getArguments());
  values.push_back(emitNumber(values.front()));
  Value isLeft = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       values.back(), loop.getUpperBound());
  scf::ConditionOp::create(b, loc, isLeft, values);

  Block *after = b.createBlock(&whileLoop.getAfter(), {}, passed, locs);
  claim.replaceAllUsesWith(after->getArguments().back());
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
  loop.replaceAllUsesWith(whileLoop.getResults().drop_front().drop_back());
  loop.erase();
}
