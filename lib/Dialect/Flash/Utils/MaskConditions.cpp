//===- MaskConditions.cpp - Conditions on tiles of a mask, as IR ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/MaskConditions.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace flash;

Value flash::emitIsIn(OpBuilder &b, Location loc, IntegerSet set,
                      ValueRange dims, ValueRange symbols) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), all;
  for (auto [constraint, isEquality] :
       llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
    Value value = affine::expandAffineExpr(b, loc, constraint, dims, symbols);
    Value holds = arith::CmpIOp::create(b, loc,
                                        isEquality ? arith::CmpIPredicate::eq
                                                   : arith::CmpIPredicate::sge,
                                        value, zero);
    all = all ? arith::AndIOp::create(b, loc, all, holds) : holds;
  }
  return all;
}

Value flash::emitIsInAny(OpBuilder &b, Location loc, ArrayRef<IntegerSet> sets,
                         ValueRange dims, ValueRange symbols) {
  Value any = arith::ConstantIntOp::create(b, loc, 0, 1);
  for (IntegerSet set : sets)
    any =
        arith::OrIOp::create(b, loc, any, emitIsIn(b, loc, set, dims, symbols));
  return any;
}
