//===- MaskNodes.cpp - A mask as a list of its parts ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskNodes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace flash;

/// How many parts each part is a part of.
static DenseMap<Attribute, unsigned> countUses(MaskAttrInterface mask) {
  DenseMap<Attribute, unsigned> uses;
  SmallVector<MaskAttrInterface> left = {mask};
  while (!left.empty())
    for (MaskAttrInterface part : left.pop_back_val().getForm().parts)
      if (uses[part]++ == 0)
        left.push_back(part);
  return uses;
}

std::vector<MaskNode> flash::getMaskNodes(MaskAttrInterface mask) {
  DenseMap<Attribute, unsigned> uses = countUses(mask);
  // The distinct parts of a union or intersection. A part of the same kind that
  // is used once is replaced by its own parts.
  auto getParts = [&](MaskForm form) {
    SetVector<MaskAttrInterface> parts;
    SmallVector<MaskAttrInterface> left(llvm::reverse(form.parts));
    while (!left.empty()) {
      MaskAttrInterface part = left.pop_back_val();
      MaskForm inner = part.getForm();
      if (inner.kind == form.kind && uses.lookup(part) == 1)
        llvm::append_range(left, llvm::reverse(inner.parts));
      else
        parts.insert(part);
    }
    return parts.takeVector();
  };

  struct Open {
    MaskAttrInterface mask;
    MaskForm form;
    SmallVector<MaskAttrInterface> parts;
    unsigned next = 0;
  };
  auto open = [&](MaskAttrInterface mask) {
    MaskForm form = mask.getForm();
    return Open{mask, form, getParts(form)};
  };
  std::vector<MaskNode> nodes;
  DenseMap<Attribute, unsigned> positions;
  std::vector<Open> stack = {open(mask)};
  while (!stack.empty()) {
    Open &top = stack.back();
    if (top.next < top.parts.size()) {
      MaskAttrInterface part = top.parts[top.next++];
      if (!positions.contains(part))
        stack.push_back(open(part));
      continue;
    }
    MaskNode node{top.form.kind, top.form.set, {}};
    for (MaskAttrInterface part : top.parts)
      node.parts.push_back(positions.lookup(part));
    positions[top.mask] = nodes.size();
    nodes.push_back(std::move(node));
    stack.pop_back();
  }
  return nodes;
}

bool flash::dependsOn(MaskAttrInterface mask, unsigned dim) {
  return llvm::any_of(getMaskNodes(mask), [&](const MaskNode &node) {
    return node.kind == MaskForm::Kind::Set &&
           llvm::any_of(node.set.getConstraints(), [&](AffineExpr expr) {
             return expr.isFunctionOfDim(dim);
           });
  });
}

MaskAttrInterface flash::transposeMask(MaskAttrInterface mask) {
  MLIRContext *context = mask.getContext();
  SmallVector<AffineExpr> dims, symbols;
  for (unsigned dim : {0, 1, 3, 2})
    dims.push_back(getAffineDimExpr(dim, context));
  for (unsigned symbol : {1, 0})
    symbols.push_back(getAffineSymbolExpr(symbol, context));
  std::vector<MaskNode> nodes = getMaskNodes(mask);
  SmallVector<MaskAttrInterface> transposed;
  for (MaskNode &node : nodes) {
    SmallVector<MaskAttrInterface> parts;
    for (unsigned part : node.parts)
      parts.push_back(transposed[part]);
    switch (node.kind) {
    case MaskForm::Kind::Set:
      transposed.push_back(AffineMaskAttr::get(
          context, IntegerSetAttr::get(node.set.replaceDimsAndSymbols(
                       dims, symbols, dims.size(), symbols.size()))));
      break;
    case MaskForm::Kind::Intersection:
      transposed.push_back(AllOfAttr::get(context, parts));
      break;
    case MaskForm::Kind::Union:
      transposed.push_back(AnyOfAttr::get(context, parts));
      break;
    }
  }
  return transposed.back();
}
