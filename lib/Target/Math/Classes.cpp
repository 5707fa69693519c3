//===- Classes.cpp - Classes of floats ------------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/Functions.h"
#include <limits>

using namespace mlir;
using namespace flash;

Value any::isFinite(FloatEmitter &e, Value x) {
  return e.less(e.abs(x), std::numeric_limits<double>::infinity());
}

Value any::isInfinite(FloatEmitter &e, Value x) {
  return e.equal(e.abs(x), std::numeric_limits<double>::infinity());
}

Value any::isNaN(FloatEmitter &e, Value x) { return e.isNaN(x); }

Value any::isNormal(FloatEmitter &e, Value x) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(getElementTypeOrSelf(x)).getFloatSemantics();
  double smallest = APFloat::getSmallestNormalized(semantics).convertToDouble();
  Value isLarge =
      e.compare(arith::CmpFPredicate::OGE, e.abs(x), e.constant(smallest));
  return e.both(isLarge, isFinite(e, x));
}
