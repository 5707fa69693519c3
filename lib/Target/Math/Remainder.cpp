//===- Remainder.cpp - The remainder of a truncated quotient in f64 -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Math/Functions.h"

#include <limits>

using namespace mlir;
using namespace flash;

/// Exact: x and y are numbers of f32. A step takes the 51 highest bits of the
/// quotient away, and what is left fits in f64, as a product of 53 and of 24
/// bits is off by 25 at most. A quotient has up to 277 bits.
Value wide::remainder(FloatEmitter &e, Value x, Value y) {
  constexpr int64_t steps = 6;
  Value size = e.abs(y), inverse = e.div(e.constant(1), size), rest = e.abs(x);
  for (int64_t step = 0; step < steps; ++step)
    rest = e.fma(e.neg(e.trunc(e.mul(rest, inverse))), size, rest);
  // The quotient, which was rounded, may be off by one.
  auto correct = [&](arith::CmpFPredicate predicate, Value bound, Value by) {
    rest = e.select(e.compare(predicate, rest, bound), e.add(rest, by), rest);
  };
  correct(arith::CmpFPredicate::OLT, e.constant(0), size);
  correct(arith::CmpFPredicate::OGE, size, e.neg(size));
  Value isWhole =
      e.both(e.equal(size, std::numeric_limits<double>::infinity()),
             e.less(e.abs(x), std::numeric_limits<double>::infinity()));
  return e.copySign(e.select(isWhole, x, rest), x);
}
