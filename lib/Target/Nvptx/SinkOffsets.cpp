//===- SinkOffsets.cpp - Constant offsets where they are used -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SinkOffsets.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

static void sink(GetElementPtrInst *offset) {
  for (Use &use : make_early_inc_range(offset->uses())) {
    auto *user = cast<Instruction>(use.getUser());
    if (isa<PHINode>(user) || user->getParent() == offset->getParent())
      continue;
    Instruction *copy = offset->clone();
    copy->insertBefore(user->getIterator());
    use.set(copy);
  }
  if (offset->use_empty())
    offset->eraseFromParent();
}

PreservedAnalyses flash::SinkOffsetsPass::run(Function &function,
                                              FunctionAnalysisManager &) {
  SmallVector<GetElementPtrInst *> offsets;
  for (Instruction &instruction : instructions(function))
    if (auto *offset = dyn_cast<GetElementPtrInst>(&instruction))
      if (offset->hasAllConstantIndices() &&
          !isa<Constant>(offset->getPointerOperand()))
        offsets.push_back(offset);
  for (GetElementPtrInst *offset : offsets)
    sink(offset);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
