//===- CopyAddresses.cpp - Addresses of copies from their loop's index ----===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyAddresses.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

/// The most tensors of a step whose copies may carry their addresses. With two,
/// as in the forward, additions would not pay, and f32 of 80 columns would
/// spill.
constexpr size_t mostTensors = 2;

static bool isCopy(const Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call)
    return false;
  switch (call->getIntrinsicID()) {
  case Intrinsic::nvvm_cp_async_cg_shared_global_16:
  case Intrinsic::nvvm_cp_async_cg_shared_global_16_s:
    return true;
  default:
    return false;
  }
}

/// Whether copies of the loop read more tensors than registers can have the
/// addresses of.
static bool readsMany(const Loop &loop) {
  SmallPtrSet<const Value *, 4> tensors;
  for (const BasicBlock *block : loop.blocks())
    for (const Instruction &instruction : *block)
      if (isCopy(instruction))
        tensors.insert(getUnderlyingObject(instruction.getOperand(1)));
  return tensors.size() > mostTensors;
}

/// Gives all users of the index but the loop itself a frozen one.
static void freezeIndex(PHINode &index, Loop &loop) {
  auto *next = dyn_cast<BinaryOperator>(
      index.getIncomingValueForBlock(loop.getLoopLatch()));
  if (!next || next->getOpcode() != Instruction::Add ||
      next->getOperand(0) != &index)
    return;
  auto *frozen =
      new FreezeInst(&index, "", loop.getHeader()->getFirstNonPHIIt());
  index.replaceUsesWithIf(frozen, [&](Use &use) {
    return use.getUser() != next && use.getUser() != frozen;
  });
  // Copies ahead are made for the next index.
  Instruction *ahead = next->clone();
  ahead->setOperand(0, frozen);
  ahead->insertAfter(next->getIterator());
  next->replaceUsesWithIf(ahead, [&](Use &use) {
    return use.getUser() != &index && !isa<ICmpInst>(use.getUser());
  });
  if (ahead->use_empty())
    ahead->eraseFromParent();
}

PreservedAnalyses
flash::CopyAddressesPass::run(Function &function,
                              FunctionAnalysisManager &analyses) {
  for (Loop *loop :
       analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder())
    if (loop->isInnermost() && loop->getLoopLatch() && readsMany(*loop))
      for (PHINode &phi : loop->getHeader()->phis())
        if (phi.getType()->isIntegerTy(32))
          freezeIndex(phi, *loop);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
