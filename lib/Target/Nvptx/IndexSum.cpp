//===- IndexSum.cpp - Sums of indices with their constants ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

/// Positions have few terms.
static constexpr size_t mostTerms = 16;

bool IndexSum::isSmall(int64_t constant) {
  constexpr int64_t largest = int64_t(1) << 24;
  return constant >= -largest && constant <= largest;
}

void IndexSum::add(Value value, bool isSubtracted) {
  Operation *op = value.getDefiningOp();
  std::optional<int64_t> number = getConstantIntValue(value);
  if (number && isSmall(*number)) {
    constant += isSubtracted ? -*number : *number;
  } else if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) &&
             terms.size() < mostTerms) {
    add(op->getOperand(0), isSubtracted);
    add(op->getOperand(1), isSubtracted != isa<arith::SubIOp>(op));
  } else {
    terms.emplace_back(value, isSubtracted);
  }
}
