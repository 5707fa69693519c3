//===- Steps.cpp - The numbers of steps of rings --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

std::pair<Value, int64_t> flash::tile::splitStep(Value step) {
  int64_t offset = 0;
  while (true) {
    if (std::optional<int64_t> constant = getConstantIntValue(step))
      return {Value(), offset + *constant};
    auto sum = step.getDefiningOp<arith::AddIOp>();
    if (!sum)
      return {step, offset};
    if (std::optional<int64_t> rhs = getConstantIntValue(sum.getRhs())) {
      offset += *rhs;
      step = sum.getLhs();
    } else if (std::optional<int64_t> lhs = getConstantIntValue(sum.getLhs())) {
      offset += *lhs;
      step = sum.getRhs();
    } else {
      return {step, offset};
    }
  }
}
