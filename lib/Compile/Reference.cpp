//===- Reference.cpp - What the reference adds ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/Reference.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

/// The log-sum-exp of an attention, which is replaced if it does not have that
/// result yet.
static Value getLogSumExp(flash::AttentionOp op) {
  if (op.getLse())
    return op.getLse();
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto type = RankedTensorType::get(query.getShape().drop_back(),
                                    Float32Type::get(op.getContext()));
  OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                       {op.getOutput().getType(), type}, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  IRRewriter rewriter(op);
  auto replacement = cast<flash::AttentionOp>(rewriter.create(state));
  rewriter.replaceAllUsesWith(op.getOutput(), replacement.getOutput());
  rewriter.eraseOp(op);
  return replacement.getLse();
}

void flash::compile::returnLogSumExp(func::FuncOp func) {
  if (!func.getBody().hasOneBlock() ||
      !SymbolTable::symbolKnownUseEmpty(func, func->getParentOp()))
    return; // Callers expect the results the function has.
  Operation *exit = func.getBody().front().getTerminator();
  SmallVector<Type> types(func.getResultTypes());
  for (auto op : llvm::make_early_inc_range(
           func.getBody().front().getOps<flash::AttentionOp>())) {
    Value lse = getLogSumExp(op);
    exit->insertOperands(exit->getNumOperands(), lse);
    types.push_back(lse.getType());
  }
  // The verifier wants as many attributes as results.
  SmallVector<DictionaryAttr> attributes;
  func.getAllResultAttrs(attributes);
  attributes.resize(types.size(), DictionaryAttr::get(func.getContext()));
  func.setAllResultAttrs(ArrayRef<DictionaryAttr>{});
  func.setType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
  func.setAllResultAttrs(attributes);
}
