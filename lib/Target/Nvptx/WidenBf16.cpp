//===- WidenBf16.cpp - Numbers of bf16 as such of f32 ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WidenBf16.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

/// The bits of a number in the upper half of a register, and zeros. Two numbers
/// share a register, whose other half is cleared or shifted out.
static Value *getUpperHalf(IRBuilder<> &b, Value *number) {
  using namespace PatternMatch;
  Value *pair;
  uint64_t at;
  if (match(number, m_ExtractElt(m_Value(pair), m_ConstantInt(at))) &&
      cast<VectorType>(pair->getType())->getElementCount() ==
          ElementCount::getFixed(2)) {
    Value *bits = b.CreateBitCast(pair, b.getInt32Ty());
    return at == 1 ? b.CreateAnd(bits, 0xFFFF0000) : b.CreateShl(bits, 16);
  }
  Value *bits = b.CreateBitCast(number, b.getInt16Ty());
  return b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16);
}

PreservedAnalyses flash::WidenBf16Pass::run(Function &function,
                                            FunctionAnalysisManager &) {
  for (Instruction &instruction : instructions(function)) {
    auto *compare = dyn_cast<FCmpInst>(&instruction);
    if (!compare || !compare->getOperand(0)->getType()->isBFloatTy())
      continue;
    IRBuilder<> b(compare);
    for (Use &operand : compare->operands())
      operand.set(b.CreateFPExt(operand.get(), b.getFloatTy()));
  }
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *extension = dyn_cast<FPExtInst>(&instruction);
    if (!extension || !extension->getSrcTy()->isBFloatTy() ||
        !extension->getDestTy()->isFloatTy())
      continue;
    IRBuilder<> b(extension);
    Value *bits = getUpperHalf(b, extension->getOperand(0));
    extension->replaceAllUsesWith(b.CreateBitCast(bits, b.getFloatTy()));
    extension->eraseFromParent();
  }
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
