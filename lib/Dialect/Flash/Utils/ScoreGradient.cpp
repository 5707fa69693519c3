//===- ScoreGradient.cpp - Derivatives of score regions -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a function has no derivative, at a kink, the gradient is what PyTorch
// takes there; docs/language.md has the list.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Utils/ScoreGradient.h"

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;
using Predicate = arith::CmpFPredicate;

/// Sums of gradients of 16-bit values are f32.
static Type getGradientType(Type type) {
  if (type.getIntOrFloatBitWidth() >= 32)
    return type;
  return Float32Type::get(type.getContext());
}

namespace {
/// A gradient: `value` where `condition` holds, if there is one, else 0. The
/// choice is made as late as possible, behind the derivatives of functions that
/// are infinite where it does not hold: 0 times infinity would be NaN.
struct Gradient {
  Value value;
  Value condition;
  bool isZeroElsewhere = false; ///< Whether `value` is 0 there already.
};

class Differentiator {
public:
  Differentiator(OpBuilder &b, Region &region, const IRMapping &values,
                 ValueRange captured)
      : b(region.getLoc(), b), block(region.front()), values(values),
        captured(captured.begin(), captured.end()) {}

  /// Finds out which values the gradients depend on.
  LogicalResult findActive();
  LogicalResult run(Value resultGradient, Value condition);
  ScoreGradient getGradients();

private:
  /// Hands the gradient of a result of `op`, the current one, to the operands.
  LogicalResult differentiate(Operation &op, unsigned result);
  /// Functions of one value; null for any other operation.
  Value derivative(Operation &op, Value x);
  void differentiateChoice(Operation &op);

  bool isActive(Value value) const { return active.contains(value); }

  //===--------------------------------------------------------------------===//
  // Arithmetic on gradients
  //===--------------------------------------------------------------------===//

  /// What `value` has become, in the type of its gradient.
  Value get(Value value) {
    return convert(values.lookupOrDefault(value),
                   getGradientType(value.getType()));
  }
  Value convert(Value value, Type type) {
    unsigned from = value.getType().getIntOrFloatBitWidth(),
             to = type.getIntOrFloatBitWidth();
    if (from < to)
      return arith::ExtFOp::create(b, type, value);
    if (from > to)
      return arith::TruncFOp::create(b, type, value);
    return value;
  }
  Value constant(Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value constantLike(Value like, double value) {
    return constant(like.getType(), value);
  }
  Value neg(Value x) { return arith::NegFOp::create(b, x); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value mul(Value x, double y) { return mul(x, constantLike(x, y)); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value div(double x, Value y) { return div(constantLike(y, x), y); }
  /// `offset + sign * x * x`.
  Value square(Value x, double offset, double sign = 1) {
    return math::FmaOp::create(b, sign < 0 ? neg(x) : x, x,
                               constantLike(x, offset));
  }
  Value compare(Predicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, predicate, x, y);
  }
  Value compare(Predicate predicate, Value x, double y) {
    return compare(predicate, x, constantLike(x, y));
  }
  Value conjoin(Value x, Value y) {
    if (!x || !y)
      return x ? x : y;
    return arith::AndIOp::create(b, x, y);
  }
  Value disjoin(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
  Value negate(Value x) {
    Value yes = arith::ConstantIntOp::create(b, 1, 1);
    return arith::XOrIOp::create(b, x, yes);
  }
  /// `x / y`, where `y` has become what `divisor` was.
  Value quotient(Value x, Value divisor);

  /// The gradient with its choice.
  Value choose(const Gradient &gradient) {
    if (!gradient.condition || gradient.isZeroElsewhere)
      return gradient.value;
    return arith::SelectOp::create(b, gradient.condition, gradient.value,
                                   constantLike(gradient.value, 0));
  }
  /// Adds to the gradient of `operand` what the operation at hand makes of its
  /// own, where `condition` holds, if there is one. `emit` is not called if its
  /// result has no use.
  void contribute(Value operand, function_ref<Value()> emit,
                  function_ref<Value()> condition = nullptr);

  ImplicitLocOpBuilder b;
  Block &block;
  const IRMapping &values;
  SmallVector<Value> captured;
  llvm::DenseSet<Value> active;
  DenseMap<Value, Gradient> gradients;
  Gradient current; ///< The gradient of the result at hand.
  SmallVector<ReadGradient> reads;
};
} // namespace

LogicalResult Differentiator::findActive() {
  active.insert(block.getArgument(0));
  for (Value value : captured)
    if (!isa<ShapedType>(value.getType()))
      active.insert(value);
  for (Operation &op : block.without_terminator()) {
    auto read = dyn_cast<tensor::ExtractOp>(op);
    if (read ? !llvm::is_contained(captured, read.getTensor())
             : !llvm::any_of(op.getOperands(),
                             [&](Value operand) { return isActive(operand); }))
      continue;
    if (isa<arith::BitcastOp>(op))
      return op.emitOpError("has no derivative: it takes the bits of a value "
                            "whose gradient is needed; use a function of "
                            "arith or math");
    // Steps have the derivative 0 wherever they have one.
    if (isa<math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp,
            math::TruncOp>(op))
      continue;
    for (Value result : op.getResults())
      if (isa<FloatType>(result.getType()))
        active.insert(result);
  }
  return success();
}

void Differentiator::contribute(Value operand, function_ref<Value()> emit,
                                function_ref<Value()> condition) {
  if (!isActive(operand))
    return;
  Gradient added = {convert(emit(), getGradientType(operand.getType())),
                    current.condition};
  if (condition)
    added.condition = conjoin(current.condition, condition());
  else
    added.isZeroElsewhere =
        current.isZeroElsewhere && added.value == current.value;
  Gradient &sum = gradients[operand];
  if (!sum.value) {
    sum = added;
    return;
  }
  if (sum.condition == added.condition) {
    sum = {add(sum.value, added.value), sum.condition};
    return;
  }
  Value condition0 = sum.condition, condition1 = added.condition;
  sum = {add(choose(sum), choose(added)), Value()};
  if (condition0 && condition1) {
    sum.condition = disjoin(condition0, condition1);
    sum.isZeroElsewhere = true;
  }
}

Value Differentiator::quotient(Value x, Value divisor) {
  APFloat constant(0.0);
  if (matchPattern(divisor, m_ConstantFloat(&constant))) {
    bool losesInfo = false;
    constant.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &losesInfo);
    double inverse = 1.0 / constant.convertToDouble();
    // A division is ten instructions with a branch.
    if (APFloat(static_cast<float>(inverse)).isNormal())
      return mul(x, inverse);
  }
  return div(x, get(divisor));
}

Value Differentiator::derivative(Operation &op, Value x) {
  auto result = [&] { return get(op.getResult(0)); };
  using namespace llvm::numbers;
  return TypeSwitch<Operation *, Value>(&op)
      .Case([&](math::ExpOp) { return result(); })
      .Case([&](math::Exp2Op) { return mul(result(), ln2); })
      .Case([&](math::ExpM1Op) { return add(result(), constantLike(x, 1)); })
      .Case([&](math::LogOp) { return div(1, x); })
      .Case([&](math::Log2Op) { return div(1 / ln2, x); })
      .Case([&](math::Log10Op) { return div(1 / ln10, x); })
      .Case([&](math::Log1pOp) { return div(1, add(x, constantLike(x, 1))); })
      .Case([&](math::SqrtOp) { return div(0.5, result()); })
      .Case([&](math::RsqrtOp) {
        Value r = result();
        return mul(mul(mul(r, r), r), -0.5);
      })
      .Case([&](math::CbrtOp) {
        Value r = result();
        return div(1.0 / 3, mul(r, r));
      })
      .Case([&](math::SinOp) { return math::CosOp::create(b, x); })
      .Case([&](math::CosOp) { return neg(math::SinOp::create(b, x)); })
      .Case([&](math::TanOp) { return square(result(), 1); })
      .Case([&](math::AsinOp) {
        return math::RsqrtOp::create(b, square(x, 1, -1));
      })
      .Case([&](math::AcosOp) {
        return neg(math::RsqrtOp::create(b, square(x, 1, -1)));
      })
      .Case([&](math::AtanOp) { return div(1, square(x, 1)); })
      .Case([&](math::SinhOp) { return math::CoshOp::create(b, x); })
      .Case([&](math::CoshOp) { return math::SinhOp::create(b, x); })
      .Case([&](math::TanhOp) { return square(result(), 1, -1); })
      .Case(
          [&](math::AsinhOp) { return math::RsqrtOp::create(b, square(x, 1)); })
      .Case([&](math::AcoshOp) {
        return math::RsqrtOp::create(b, square(x, -1));
      })
      .Case([&](math::AtanhOp) { return div(1, square(x, 1, -1)); })
      .Case<math::ErfOp, math::ErfcOp>([&](Operation *) {
        Value bell = math::ExpOp::create(b, mul(neg(x), x));
        double factor = 2 * inv_sqrtpi;
        return mul(bell, isa<math::ErfOp>(op) ? factor : -factor);
      })
      .Default([](Operation *) { return Value(); });
}

void Differentiator::differentiateChoice(Operation &op) {
  Value g = current.value;
  auto take = [&] { return g; };
  if (auto clamp = dyn_cast<math::ClampFOp>(op)) {
    Value x = clamp.getValue(), lower = clamp.getMin(), upper = clamp.getMax();
    // By its definition max(min(x, lower), upper).
    contribute(x, take, [&] {
      return conjoin(compare(Predicate::OLE, get(x), get(lower)),
                     compare(Predicate::OGE, get(x), get(upper)));
    });
    contribute(lower, take, [&] {
      return conjoin(compare(Predicate::OLT, get(lower), get(x)),
                     compare(Predicate::OGE, get(lower), get(upper)));
    });
    contribute(upper, take, [&] {
      return disjoin(compare(Predicate::OGT, get(upper), get(x)),
                     compare(Predicate::OGT, get(upper), get(lower)));
    });
    return;
  }
  Value lhs = op.getOperand(0), rhs = op.getOperand(1);
  bool isMax = isa<arith::MaximumFOp, arith::MaxNumFOp>(op);
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op)) {
    // Halves of two equal values; both gradients of what is not a number.
    auto ofOne = [&](Value one, Value other) {
      contribute(
          one,
          [&] {
            Value isTie = compare(Predicate::OEQ, get(one), get(other));
            return arith::SelectOp::create(b, isTie, mul(g, 0.5), g);
          },
          [&] {
            return compare(isMax ? Predicate::UGE : Predicate::ULE, get(one),
                           get(other));
          });
    };
    ofOne(lhs, rhs);
    ofOne(rhs, lhs);
    return;
  }
  // The first of two equal values, and what is a number.
  auto isFirst = [&] {
    return disjoin(
        compare(isMax ? Predicate::OGE : Predicate::OLE, get(lhs), get(rhs)),
        compare(Predicate::UNO, get(rhs), get(rhs)));
  };
  contribute(lhs, take, isFirst);
  contribute(rhs, take, [&] { return negate(isFirst()); });
}

LogicalResult Differentiator::differentiate(Operation &op, unsigned result) {
  Value g = current.value;
  auto operand = [&](unsigned i) { return op.getOperand(i); };
  auto take = [&] { return g; };
  bool isKnown = true;
  TypeSwitch<Operation *>(&op)
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](Operation *) { contribute(operand(0), take); })
      .Case([&](arith::NegFOp) {
        contribute(operand(0), [&] { return neg(g); });
      })
      .Case([&](arith::AddFOp) {
        contribute(operand(0), take);
        contribute(operand(1), take);
      })
      .Case([&](arith::SubFOp) {
        contribute(operand(0), take);
        contribute(operand(1), [&] { return neg(g); });
      })
      .Case([&](arith::MulFOp) {
        contribute(operand(0), [&] { return mul(g, get(operand(1))); });
        contribute(operand(1), [&] { return mul(g, get(operand(0))); });
      })
      .Case([&](arith::DivFOp) {
        contribute(operand(0), [&] { return quotient(g, operand(1)); });
        contribute(operand(1), [&] {
          return neg(mul(div(g, get(operand(1))), get(op.getResult(0))));
        });
      })
      .Case([&](arith::RemFOp) {
        contribute(operand(0), take);
        contribute(operand(1), [&] {
          Value times = div(get(operand(0)), get(operand(1)));
          return neg(mul(g, math::TruncOp::create(b, times)));
        });
      })
      .Case([&](math::FmaOp) {
        contribute(operand(0), [&] { return mul(g, get(operand(1))); });
        contribute(operand(1), [&] { return mul(g, get(operand(0))); });
        contribute(operand(2), take);
      })
      .Case([&](arith::SelectOp select) {
        auto chosen = [&] {
          return values.lookupOrDefault(select.getCondition());
        };
        contribute(select.getTrueValue(), take, chosen);
        contribute(select.getFalseValue(), take,
                   [&] { return negate(chosen()); });
      })
      .Case<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp, math::ClampFOp>(
          [&](Operation *) { differentiateChoice(op); })
      .Case([&](math::AbsFOp) {
        Value x = get(operand(0));
        contribute(
            operand(0),
            [&] {
              return mul(g, math::CopySignOp::create(b, constantLike(x, 1), x));
            },
            [&] { return compare(Predicate::UNE, x, 0); });
      })
      .Case([&](math::CopySignOp) {
        contribute(
            operand(0),
            [&] {
              Value one = constantLike(g, 1);
              Value signs =
                  mul(math::CopySignOp::create(b, one, get(operand(0))),
                      math::CopySignOp::create(b, one, get(operand(1))));
              return mul(g, signs);
            },
            [&] { return compare(Predicate::UNE, get(operand(0)), 0); });
      })
      .Case([&](math::Atan2Op) {
        auto part = [&](Value other) {
          Value y = get(operand(0)), x = get(operand(1));
          Value norm = math::FmaOp::create(b, x, x, mul(y, y));
          return div(mul(g, get(other)), norm);
        };
        contribute(operand(0), [&] { return part(operand(1)); });
        contribute(operand(1), [&] { return neg(part(operand(0))); });
      })
      .Case([&](math::PowFOp) {
        contribute(
            operand(0),
            [&] {
              Value n = get(operand(1));
              Value less = math::PowFOp::create(b, get(operand(0)),
                                                sub(n, constantLike(n, 1)));
              return mul(g, mul(n, less));
            },
            [&] { return compare(Predicate::UNE, get(operand(1)), 0); });
        contribute(
            operand(1),
            [&] {
              Value log = math::LogOp::create(b, get(operand(0)));
              return mul(g, mul(get(op.getResult(0)), log));
            },
            [&] {
              return disjoin(compare(Predicate::UNE, get(operand(0)), 0),
                             compare(Predicate::OLT, get(operand(1)), 0));
            });
      })
      .Case([&](math::FPowIOp) {
        Value n = values.lookupOrDefault(operand(1));
        Type type = n.getType();
        contribute(
            operand(0),
            [&] {
              Value one = arith::ConstantIntOp::create(b, type, 1);
              Value less = math::FPowIOp::create(
                  b, get(operand(0)), arith::SubIOp::create(b, n, one));
              return mul(g,
                         mul(arith::SIToFPOp::create(b, g.getType(), n), less));
            },
            [&] {
              Value zero = arith::ConstantIntOp::create(b, type, 0);
              return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, n,
                                           zero);
            });
      })
      .Case([&](math::SincosOp) {
        contribute(operand(0), [&] {
          Value product = mul(g, get(op.getResult(1 - result)));
          return result == 0 ? product : neg(product);
        });
      })
      .Case([&](tensor::ExtractOp read) {
        SmallVector<Value> indices =
            llvm::map_to_vector(read.getIndices(), [&](Value index) {
              return values.lookupOrDefault(index);
            });
        reads.push_back({read, indices, choose(current)});
      })
      .Default([&](Operation *) {
        isKnown = op.getNumOperands() == 1 && op.getNumResults() == 1;
        if (!isKnown)
          return;
        Value slope = derivative(op, get(operand(0)));
        isKnown = static_cast<bool>(slope);
        if (isKnown)
          contribute(operand(0), [&] { return mul(g, slope); });
      });
  if (isKnown)
    return success();
  return op.emitOpError("has no derivative, which the gradient needs; use "
                        "functions of arith and math on f32");
}

LogicalResult Differentiator::run(Value resultGradient, Value condition) {
  Value result = cast<YieldOp>(block.getTerminator()).getResult();
  if (isActive(result))
    gradients[result] = {resultGradient, condition};
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    b.setLoc(op.getLoc());
    for (OpResult result : op.getResults()) {
      current = gradients.lookup(result);
      if (current.value && failed(differentiate(op, result.getResultNumber())))
        return failure();
    }
  }
  return success();
}

ScoreGradient Differentiator::getGradients() {
  auto of = [&](Value value) {
    Gradient gradient = gradients.lookup(value);
    return gradient.value ? choose(gradient) : Value();
  };
  ScoreGradient result;
  result.score = of(block.getArgument(0));
  result.reads = std::move(reads);
  for (Value value : captured)
    result.scalars.push_back(of(value));
  return result;
}

FailureOr<ScoreGradient> flash::emitScoreGradient(OpBuilder &b, Region &region,
                                                  const IRMapping &values,
                                                  Value resultGradient,
                                                  Value condition,
                                                  ValueRange captured) {
  Differentiator differentiator(b, region, values, captured);
  if (failed(differentiator.findActive()) ||
      failed(differentiator.run(resultGradient, condition)))
    return failure();
  return differentiator.getGradients();
}
