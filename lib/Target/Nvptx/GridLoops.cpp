//===- GridLoops.cpp - Registers across loops over tiles ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GridLoops.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

/// An expression with more instructions is kept rather than computed again.
constexpr unsigned mostInstructions = 8;

/// Where the loops inside carry so many values, there are registers left for
/// what is made of the block's number: to compute it again takes 1 % of the
/// time of short tiles.
constexpr unsigned fewCarriedValues = 104;

/// What a thread needs of its registers for the numbers of threads and for
/// sizes beside the values that loops carry.
constexpr unsigned otherRegisters = 64;

static Intrinsic::ID getIntrinsic(Value *value) {
  auto *call = dyn_cast<IntrinsicInst>(value);
  return call ? call->getIntrinsicID() : Intrinsic::not_intrinsic;
}

/// Reads of registers that always hold the same for a thread.
static const char *getRead(Value *value) {
  switch (getIntrinsic(value)) {
  case Intrinsic::nvvm_read_ptx_sreg_ctaid_x:
    return "mov.u32 $0, %ctaid.x;";
  case Intrinsic::nvvm_read_ptx_sreg_nctaid_x:
    return "mov.u32 $0, %nctaid.x;";
  case Intrinsic::nvvm_read_ptx_sreg_tid_x:
    return "mov.u32 $0, %tid.x;";
  default:
    return nullptr;
  }
}

/// Loops over tiles read the number of blocks to know which tile is next.
static bool usesGridSize(Loop &loop) {
  auto isGridSize = [](Value *value) {
    while (auto *cast = dyn_cast<CastInst>(value))
      value = cast->getOperand(0);
    return getIntrinsic(value) == Intrinsic::nvvm_read_ptx_sreg_nctaid_x;
  };
  return any_of(loop.blocks(), [&](BasicBlock *block) {
    return any_of(*block, [&](Instruction &instruction) {
      return any_of(instruction.operand_values(), isGridSize);
    });
  });
}

static bool isCheap(Instruction *instruction) {
  if (auto *call = dyn_cast<IntrinsicInst>(instruction))
    return call->hasFnAttr(Attribute::Speculatable) &&
           call->doesNotAccessMemory();
  return isa<BinaryOperator, CastInst, CmpInst, SelectInst, GetElementPtrInst>(
             instruction) &&
         !instruction->isIntDivRem();
}

/// Whether `user` runs once for each tile at most, and needs its operands then.
static bool isOncePerTile(Instruction *user, Loop *loop, LoopInfo &loops) {
  return loops.getLoopFor(user->getParent()) == loop && !isa<PHINode>(user);
}

/// Whether sizes that are known at run time only are terms of what each tile
/// computes.
static bool usesSizes(Loop *loop) {
  return any_of(loop->blocks(), [](BasicBlock *block) {
    return any_of(*block, [](Instruction &instruction) {
      return any_of(instruction.operand_values(), [](Value *operand) {
        return isa<Argument>(operand) && operand->getType()->isIntegerTy();
      });
    });
  });
}

namespace {
/// What has to be computed again to have a value again.
struct Expression {
  unsigned size = 0;
  bool hasBlock = false, hasThread = false;

  /// Returns whether it is worth it.
  bool add(Value *value);
};
} // namespace

bool Expression::add(Value *value) {
  // ptxas finds arguments in constant memory wherever they are used.
  if (isa<Constant, Argument>(value))
    return true;
  if (++size > mostInstructions)
    return false;
  if (getRead(value)) {
    bool isThread = getIntrinsic(value) == Intrinsic::nvvm_read_ptx_sreg_tid_x;
    return (isThread ? hasThread : hasBlock) = true;
  }
  auto *instruction = cast<Instruction>(value);
  return isCheap(instruction) &&
         all_of(instruction->operand_values(),
                [&](Value *operand) { return add(operand); });
}

/// Computes a value again before `user`. The code generator would merge a read
/// with one before the loop, and then what is computed of them, were it not
/// said to have side effects.
static Value *computeAgain(Value *value, Instruction *user) {
  if (isa<Constant, Argument>(value))
    return value;
  if (const char *text = getRead(value)) {
    auto *type = FunctionType::get(value->getType(), /*isVarArg=*/false);
    auto *read = InlineAsm::get(type, text, "=r", /*hasSideEffects=*/true);
    return CallInst::Create(type, read, "", user->getIterator());
  }
  Instruction *copy = cast<Instruction>(value)->clone();
  copy->insertBefore(user->getIterator());
  for (Use &use : copy->operands())
    use.set(computeAgain(use.get(), copy));
  return copy;
}

static void rematerialize(Loop *loop, LoopInfo &loops, bool ofThreads) {
  SmallVector<Use *> uses;
  for (BasicBlock *block : loop->blocks())
    for (Instruction &user : *block)
      for (Use &use : user.operands()) {
        auto *value = dyn_cast<Instruction>(use.get());
        Expression expression;
        if (value && !loop->contains(value) &&
            isOncePerTile(&user, loop, loops) && expression.add(value) &&
            (ofThreads ? expression.hasThread : expression.hasBlock))
          uses.push_back(&use);
      }
  for (Use *use : uses)
    use->set(computeAgain(use->get(), cast<Instruction>(use->getUser())));
}

static unsigned countCarriedValues(Loop *loop) {
  unsigned most = 0;
  for (Loop *inside : loop->getLoopsInPreorder())
    if (inside != loop)
      most = std::max<unsigned>(most, range_size(inside->getHeader()->phis()));
  return most;
}

/// What a thread has of the registers if a block takes all.
static unsigned getShareOfThread(Function &function, int64_t registers) {
  unsigned threads = 1;
  StringRef shape = function.getFnAttribute("nvvm.maxntid").getValueAsString();
  shape.split(',').first.getAsInteger(10, threads);
  return registers / std::max(threads, 1u);
}

PreservedAnalyses flash::GridLoopsPass::run(Function &function,
                                            FunctionAnalysisManager &analyses) {
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  unsigned share = getShareOfThread(function, registers);
  for (Loop *loop : loops) {
    if (!usesGridSize(*loop))
      continue;
    unsigned carried = countCarriedValues(loop);
    if (carried > fewCarriedValues)
      rematerialize(loop, loops, /*ofThreads=*/false);
    // The part of a sum that is the same for all tiles, of a size and the
    // thread's number, would be one more value to keep.
    if (carried + otherRegisters > share && usesSizes(loop))
      rematerialize(loop, loops, /*ofThreads=*/true);
  }
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
