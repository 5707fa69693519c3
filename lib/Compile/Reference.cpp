//===- Reference.cpp - What the reference adds ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/Reference.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace flash;
using namespace flash::compile;

/// The log-sum-exp of an attention, which is replaced if it does not have that
/// result yet.
static Value getLogSumExp(AttentionOp op) {
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
  auto replacement = cast<AttentionOp>(rewriter.create(state));
  rewriter.replaceAllUsesWith(op.getOutput(), replacement.getOutput());
  rewriter.eraseOp(op);
  return replacement.getLse();
}

/// Whether results may be added: callers expect those the function has.
static bool mayAddResults(func::FuncOp func) {
  return func.getBody().hasOneBlock() &&
         SymbolTable::symbolKnownUseEmpty(func, func->getParentOp());
}

bool GradientResult::isDifference() const {
  AttentionGradOp grad = op;
  Value result = grad->getResult(ofOp);
  // The gradients of the value and of the sink are one sum each.
  return result != grad.getValueGrad() && result != grad.getSinkGrad();
}

SmallVector<GradientResult>
flash::compile::getGradientResults(func::FuncOp func) {
  SmallVector<GradientResult> results;
  if (!func.getBody().hasOneBlock())
    return results;
  for (auto [number, value] :
       llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    while (auto cast = value.getDefiningOp<tensor::CastOp>())
      value = cast.getSource();
    if (auto op = value.getDefiningOp<AttentionGradOp>())
      results.push_back({op, static_cast<unsigned>(number),
                         cast<OpResult>(value).getResultNumber()});
  }
  return results;
}

ReferenceResults flash::compile::getReferenceResults(func::FuncOp func) {
  ReferenceResults added;
  if (!mayAddResults(func))
    return added;
  Block &body = func.getBody().front();
  added.logSumExps = llvm::range_size(body.getOps<AttentionOp>()) +
                     llvm::range_size(body.getOps<AttentionGradOp>());
  added.firstSums = llvm::count_if(
      getGradientResults(func),
      [](const GradientResult &result) { return result.isDifference(); });
  return added;
}

/// The gradients without what the output and the gradient of the log-sum-exp
/// add to them: p * dp in place of p * (dp - delta).
static AttentionGradOp getFirstSums(AttentionGradOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto grad = cast<AttentionGradOp>(b.clone(*op));
  b.setInsertionPoint(grad);
  Type element = op.getOutput().getType().getElementType();
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, op.getOutput()), element);
  grad.getOutputMutable().assign(
      linalg::FillOp::create(b, loc, zero, empty).getResult(0));
  grad.getLseGradMutable().clear();
  return grad;
}

void flash::compile::addReferenceResults(func::FuncOp func) {
  if (!mayAddResults(func))
    return;
  Block &body = func.getBody().front();
  Operation *exit = body.getTerminator();
  SmallVector<GradientResult> gradients = getGradientResults(func);
  SmallVector<Value> added;
  for (auto op : llvm::make_early_inc_range(body.getOps<AttentionOp>()))
    added.push_back(getLogSumExp(op));
  for (auto op : body.getOps<AttentionGradOp>())
    added.push_back(op.getLse());
  llvm::MapVector<Operation *, AttentionGradOp> firstSums;
  for (const GradientResult &gradient : gradients) {
    if (!gradient.isDifference())
      continue;
    AttentionGradOp &sums = firstSums[gradient.op];
    if (!sums)
      sums = getFirstSums(gradient.op);
    added.push_back(sums->getResult(gradient.ofOp));
  }

  SmallVector<Type> types(func.getResultTypes());
  llvm::append_range(types, ValueRange(added).getTypes());
  exit->insertOperands(exit->getNumOperands(), added);
  // The verifier wants as many attributes as results.
  SmallVector<DictionaryAttr> attributes;
  func.getAllResultAttrs(attributes);
  attributes.resize(types.size(), DictionaryAttr::get(func.getContext()));
  func.setAllResultAttrs(ArrayRef<DictionaryAttr>{});
  func.setType(
      FunctionType::get(func.getContext(), func.getArgumentTypes(), types));
  func.setAllResultAttrs(attributes);
}
