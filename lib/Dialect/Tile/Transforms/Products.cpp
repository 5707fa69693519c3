//===- Products.cpp - Products that are in flight -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

using namespace mlir;
using namespace flash::tile;

bool flash::tile::dependsOn(Operation *op, Block &block,
                            const llvm::SmallPtrSetImpl<Value> &values) {
  SmallVector<Operation *> todo = {op};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!todo.empty()) {
    Operation *next = todo.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    bool found = false;
    next->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        found |= values.contains(operand);
        Operation *definition = operand.getDefiningOp();
        Operation *ancestor =
            definition ? block.findAncestorOpInBlock(*definition) : nullptr;
        if (ancestor && ancestor != next)
          todo.push_back(ancestor);
      }
    });
    if (found)
      return true;
  }
  return false;
}

RingOp flash::tile::getRing(Value tile) {
  auto wait = tile.getDefiningOp<RingWaitOp>();
  return wait ? wait.getRing().getDefiningOp<RingOp>() : RingOp();
}

bool flash::tile::readsPut(MmaAsyncOp product) {
  return llvm::any_of(product->getOperands(), [](Value operand) {
    RingOp ring = getRing(operand);
    return ring && ring.isFilledFromRegisters();
  });
}

void flash::tile::nameYounger(Block &block) {
  SmallVector<Value> running;
  for (Operation &op : block) {
    if (auto product = dyn_cast<MmaAsyncOp>(op)) {
      running.push_back(product);
      continue;
    }
    auto wait = dyn_cast<MmaWaitOp>(op);
    if (!wait)
      continue;
    auto *own = llvm::find(running, wait.getPending());
    if (own == running.end())
      continue;
    wait.getYoungerMutable().assign(
        SmallVector<Value>(std::next(own), running.end()));
    running.erase(own);
  }
}
