//===- SplitVectors.cpp - Vectors taken apart into scalars ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitVectors.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/Allocator.h"

using namespace llvm;

namespace {

class VectorSplitter {
public:
  void run(Function &function);

private:
  void visit(Instruction &instruction);
  void split(PHINode &phi);
  void split(ShuffleVectorInst &shuffle);
  void splitElementwise(Instruction &instruction);

  /// The scalars that the value consists of.
  ArrayRef<Value *> getParts(Value *value);
  MutableArrayRef<Value *> allocateParts(Type *type);
  void setParts(Instruction &instruction, MutableArrayRef<Value *> scalars);
  void eraseSplit();

  DenseMap<Value *, ArrayRef<Value *>> parts;
  BumpPtrAllocator allocator;
  /// Instructions that scalars replace, in the order of the program.
  SmallVector<Instruction *> splits;
  SmallVector<InsertElementInst *> insertions;
};

} // namespace

/// The element that an insertion or extraction names, if it is a constant one.
static std::optional<unsigned> getElement(Value *index, Type *vector) {
  auto *type = dyn_cast<FixedVectorType>(vector);
  auto *constant = dyn_cast<ConstantInt>(index);
  if (!type || !constant || constant->uge(type->getNumElements()))
    return std::nullopt;
  return constant->getZExtValue();
}

static bool isElementwise(const Instruction &instruction) {
  auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  if (!type)
    return false;
  if (isa<UnaryOperator, BinaryOperator, CmpInst, SelectInst>(instruction))
    return true;
  if (isa<CastInst>(instruction)) {
    auto *source =
        dyn_cast<FixedVectorType>(instruction.getOperand(0)->getType());
    return source && source->getNumElements() == type->getNumElements();
  }
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  return call && isTriviallyVectorizable(call->getIntrinsicID()) &&
         all_of(call->args(),
                [&](Value *value) { return value->getType() == type; });
}

MutableArrayRef<Value *> VectorSplitter::allocateParts(Type *type) {
  unsigned count = cast<FixedVectorType>(type)->getNumElements();
  auto *data = allocator.Allocate<Value *>(count);
  std::uninitialized_fill_n(data, count, nullptr);
  return {data, count};
}

void VectorSplitter::setParts(Instruction &instruction,
                              MutableArrayRef<Value *> scalars) {
  parts[&instruction] = scalars;
  splits.push_back(&instruction);
}

ArrayRef<Value *> VectorSplitter::getParts(Value *value) {
  if (auto known = parts.find(value); known != parts.end())
    return known->second;
  MutableArrayRef<Value *> scalars = allocateParts(value->getType());
  // The last insertion of an element counts.
  Value *base = value;
  while (auto *insertion = dyn_cast<InsertElementInst>(base)) {
    auto element = getElement(insertion->getOperand(2), base->getType());
    if (!element)
      break;
    if (!scalars[*element])
      scalars[*element] = insertion->getOperand(1);
    base = insertion->getOperand(0);
  }
  if (is_contained(scalars, nullptr)) {
    if (base != value) {
      for (auto [scalar, part] : zip_equal(scalars, getParts(base)))
        if (!scalar)
          scalar = part;
    } else {
      IRBuilder<> b(value->getContext());
      if (auto *instruction = dyn_cast<Instruction>(value))
        b.SetInsertPoint(*instruction->getInsertionPointAfterDef());
      else if (auto *argument = dyn_cast<Argument>(value))
        b.SetInsertPointPastAllocas(argument->getParent());
      for (auto [i, scalar] : enumerate(scalars))
        scalar = b.CreateExtractElement(value, i);
    }
  }
  parts[value] = scalars;
  return scalars;
}

void VectorSplitter::split(PHINode &phi) {
  MutableArrayRef<Value *> scalars = allocateParts(phi.getType());
  IRBuilder<> b(&phi);
  for (Value *&scalar : scalars)
    scalar =
        b.CreatePHI(phi.getType()->getScalarType(), phi.getNumIncomingValues());
  setParts(phi, scalars);
}

void VectorSplitter::split(ShuffleVectorInst &shuffle) {
  MutableArrayRef<Value *> scalars = allocateParts(shuffle.getType());
  ArrayRef<Value *> first = getParts(shuffle.getOperand(0));
  ArrayRef<Value *> second = getParts(shuffle.getOperand(1));
  for (auto [scalar, element] : zip_equal(scalars, shuffle.getShuffleMask()))
    scalar = element < 0 ? PoisonValue::get(shuffle.getType()->getScalarType())
             : unsigned(element) < first.size()
                 ? first[element]
                 : second[element - first.size()];
  setParts(shuffle, scalars);
}

void VectorSplitter::splitElementwise(Instruction &instruction) {
  Type *type = instruction.getType()->getScalarType();
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  unsigned count = call ? call->arg_size() : instruction.getNumOperands();
  // Nothing for an operand that is the same for all elements.
  SmallVector<ArrayRef<Value *>, 3> operands;
  for (Value *operand :
       make_range(instruction.op_begin(), instruction.op_begin() + count))
    operands.push_back(operand->getType()->isVectorTy() ? getParts(operand)
                                                        : ArrayRef<Value *>());
  MutableArrayRef<Value *> scalars = allocateParts(instruction.getType());
  for (auto [i, scalar] : enumerate(scalars)) {
    Instruction *copy = instruction.clone();
    copy->mutateType(type);
    for (auto [n, operand] : enumerate(operands))
      if (!operand.empty())
        copy->setOperand(n, operand[i]);
    if (call)
      cast<CallInst>(copy)->setCalledFunction(Intrinsic::getOrInsertDeclaration(
          instruction.getModule(), call->getIntrinsicID(), type));
    copy->insertBefore(instruction.getIterator());
    scalar = copy;
  }
  setParts(instruction, scalars);
}

void VectorSplitter::visit(Instruction &instruction) {
  if (auto *extraction = dyn_cast<ExtractElementInst>(&instruction)) {
    Value *vector = extraction->getVectorOperand();
    auto element = getElement(extraction->getIndexOperand(), vector->getType());
    // What stays a vector needs no second extraction.
    if (!element || (!isa<InsertElementInst>(vector) && !parts.count(vector)))
      return;
    extraction->replaceAllUsesWith(getParts(vector)[*element]);
    extraction->eraseFromParent();
    return;
  }
  if (auto *insertion = dyn_cast<InsertElementInst>(&instruction)) {
    insertions.push_back(insertion);
    return;
  }
  if (!isa<FixedVectorType>(instruction.getType()))
    return;
  if (auto *phi = dyn_cast<PHINode>(&instruction))
    split(*phi);
  else if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
    split(*shuffle);
  else if (isElementwise(instruction))
    splitElementwise(instruction);
}

/// Removes the vectors, or puts them together for those who still use them.
void VectorSplitter::eraseSplit() {
  for (Instruction *instruction : splits)
    instruction->dropAllReferences();
  for (InsertElementInst *insertion : reverse(insertions))
    if (insertion->use_empty())
      insertion->eraseFromParent();
  for (Instruction *instruction : splits) {
    if (!instruction->use_empty()) {
      IRBuilder<> b(instruction->getContext());
      b.SetInsertPoint(isa<PHINode>(instruction)
                           ? instruction->getParent()->getFirstInsertionPt()
                           : instruction->getIterator());
      Value *vector = PoisonValue::get(instruction->getType());
      for (auto [i, part] : enumerate(parts[instruction]))
        vector = b.CreateInsertElement(vector, part, i);
      instruction->replaceAllUsesWith(vector);
    }
    instruction->eraseFromParent();
  }
}

void VectorSplitter::run(Function &function) {
  for (BasicBlock *block : ReversePostOrderTraversal(&function))
    for (Instruction &instruction : make_early_inc_range(*block))
      visit(instruction);
  for (Instruction *instruction : splits) {
    auto *phi = dyn_cast<PHINode>(instruction);
    if (!phi)
      continue;
    // A copy: reading the parts of others moves the map's entries.
    ArrayRef<Value *> scalars = parts.lookup(phi);
    for (auto [value, block] : zip_equal(phi->incoming_values(), phi->blocks()))
      for (auto [scalar, part] : zip_equal(scalars, getParts(value)))
        cast<PHINode>(scalar)->addIncoming(part, block);
  }
  eraseSplit();
}

PreservedAnalyses flash::SplitVectorsPass::run(Function &function,
                                               FunctionAnalysisManager &) {
  VectorSplitter().run(function);
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
