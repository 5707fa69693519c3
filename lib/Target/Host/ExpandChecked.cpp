//===- ExpandChecked.cpp - Arithmetic that can fail -----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Target/Host/Passes.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"

namespace flash {
#define GEN_PASS_DEF_HOSTEXPANDCHECKED
#include "flash/Target/Host/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash::host;
using arith::CmpIPredicate;

namespace {
/// Writes what one operation becomes, folded where operands are known.
class Expansion {
public:
  Expansion(Operation *op) : b(op), loc(op->getLoc()) {}

  Value expand(CheckedOp op);
  Value expand(NarrowOp op);

private:
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  template <typename Op, typename... Operands>
  Value create(Operands... operands) {
    return b.createOrFold<Op>(loc, operands...);
  }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return create<arith::CmpIOp>(predicate, lhs, rhs);
  }
  Value invert(Value bit) {
    return create<arith::XOrIOp>(
        bit, arith::ConstantIntOp::create(b, loc, 1, 1).getResult());
  }
  void check(Value condition, const Twine &text, const Twine &format,
             ValueRange values) {
    if (!matchPattern(condition, m_One()))
      CheckOp::create(b, loc, condition, b.getStringAttr(text),
                      b.getStringAttr(format), values);
  }
  /// The quotient that rounds to 0, plus or minus 1 where there is a rest and
  /// `isOff` says that this is the wrong side.
  Value adjust(Value lhs, Value rhs, Value quotient, Value isOff, bool isUp);

  OpBuilder b;
  Location loc;
};
} // namespace

Value Expansion::adjust(Value lhs, Value rhs, Value quotient, Value isOff,
                        bool isUp) {
  Value rest = create<arith::SubIOp>(lhs, create<arith::MulIOp>(quotient, rhs));
  Value isRest = compare(CmpIPredicate::ne, rest, constant(0));
  Value one = create<arith::ExtUIOp>(
      b.getI64Type(), isOff ? create<arith::AndIOp>(isRest, isOff) : isRest);
  return isUp ? create<arith::AddIOp>(quotient, one)
              : create<arith::SubIOp>(quotient, one);
}

Value Expansion::expand(CheckedOp op) {
  Value lhs = op.getLhs(), rhs = op.getRhs();
  Arithmetic kind = op.getKind();
  StringRef name = stringifyArithmetic(kind);
  auto checkFits = [&](Value fits) {
    check(fits, name + " of two values does not fit in 64 bits",
          name + " of {0} and {1} does not fit in 64 bits", {lhs, rhs});
  };
  if (kind <= Arithmetic::Mul) {
    auto overflow = OverflowOp::create(b, loc, kind, lhs, rhs);
    checkFits(overflow.getFits());
    return overflow.getResult();
  }

  Value zero = constant(0);
  check(compare(CmpIPredicate::ne, rhs, zero), "a value is divided by 0",
        "{0} is divided by 0", lhs);
  switch (kind) {
  case Arithmetic::DivU:
    return create<arith::DivUIOp>(lhs, rhs);
  case Arithmetic::RemU:
    return create<arith::RemUIOp>(lhs, rhs);
  case Arithmetic::CeilDivU:
    return adjust(lhs, rhs, create<arith::DivUIOp>(lhs, rhs), /*isOff=*/nullptr,
                  /*isUp=*/true);
  default:
    break;
  }

  Value isMinusOne = compare(CmpIPredicate::eq, rhs, constant(-1));
  if (kind == Arithmetic::RemS)
    // The processor's quotient of the least number by -1 does not fit.
    return create<arith::RemSIOp>(
        lhs, create<arith::SelectOp>(isMinusOne, constant(1), rhs));
  checkFits(invert(create<arith::AndIOp>(
      isMinusOne, compare(CmpIPredicate::eq, lhs, constant(INT64_MIN)))));
  Value quotient = create<arith::DivSIOp>(lhs, rhs);
  if (kind == Arithmetic::DivS)
    return quotient;
  Value differ = create<arith::XOrIOp>(compare(CmpIPredicate::slt, lhs, zero),
                                       compare(CmpIPredicate::slt, rhs, zero));
  return kind == Arithmetic::CeilDivS
             ? adjust(lhs, rhs, quotient, invert(differ), /*isUp=*/true)
             : adjust(lhs, rhs, quotient, differ, /*isUp=*/false);
}

Value Expansion::expand(NarrowOp op) {
  Value value = op.getValue();
  Value low = compare(CmpIPredicate::sge, value, constant(INT32_MIN));
  Value high = compare(CmpIPredicate::sle, value, constant(INT32_MAX));
  check(create<arith::AndIOp>(low, high), "a value does not fit in an i32",
        "{0} does not fit in an i32", value);
  return value;
}

namespace {
struct ExpandChecked : flash::impl::HostExpandCheckedBase<ExpandChecked> {
  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      Value result;
      if (auto checked = dyn_cast<CheckedOp>(op))
        result = Expansion(op).expand(checked);
      else if (auto narrow = dyn_cast<NarrowOp>(op))
        result = Expansion(op).expand(narrow);
      else
        return;
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    });
    // Quotients have parts in common, and some that constants leave unused.
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    getOperation()->walk([&](FunctionOpInterface function) {
      (void)runRegionDCE(rewriter, function->getRegions());
    });
  }
};
} // namespace
