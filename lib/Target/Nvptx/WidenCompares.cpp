//===- WidenCompares.cpp - Comparisons of bf16 as such of f32 -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WidenCompares.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

PreservedAnalyses flash::WidenComparesPass::run(Function &function,
                                                FunctionAnalysisManager &) {
  for (Instruction &instruction : instructions(function)) {
    auto *compare = dyn_cast<FCmpInst>(&instruction);
    if (!compare || !compare->getOperand(0)->getType()->isBFloatTy())
      continue;
    IRBuilder<> b(compare);
    for (Use &operand : compare->operands())
      operand.set(b.CreateFPExt(operand.get(), b.getFloatTy()));
  }
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
