//===- HostScalars.cpp - Scalar operations of host functions --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostScalars.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;
using host::Arithmetic;

bool HostScalars::isSupported(Type type) {
  return type.isIndex() || type.isSignlessInteger(1) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

SmallVector<Value, 4> HostScalars::getMixed(ArrayRef<OpFoldResult> mixed) {
  return llvm::map_to_vector<4>(mixed, [&](OpFoldResult value) {
    if (auto known = dyn_cast<Attribute>(value))
      return builder.constant(cast<IntegerAttr>(known).getInt());
    return get(cast<Value>(value));
  });
}

Value HostScalars::translateConstant(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    const APInt &bits = integer.getValue();
    if (bits.getBitWidth() == 1)
      return builder.constantBit(!bits.isZero());
    return bits.getBitWidth() > 64 ? Value()
                                   : builder.constant(bits.getSExtValue());
  }
  auto real = dyn_cast<FloatAttr>(value);
  if (!real || !(real.getType().isF32() || real.getType().isF64()))
    return {};
  return builder.constant(real.getValue().bitcastToAPInt().getZExtValue());
}

Value HostScalars::translateCompare(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  // True would be -1 as a signed number.
  if (compare.getLhs().getType().isInteger(1))
    return {};
  return builder.compare(compare.getPredicate(), get(compare.getLhs()),
                         get(compare.getRhs()));
}

Value HostScalars::translateCast(Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  Value value = get(op->getOperand(0));
  // A bit is 0 or 1, which is what zero extension makes of it.
  bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
  if (from.isInteger(1) != isUnsigned || to.isInteger(1))
    return {};
  if (isUnsigned)
    return builder.createOp<arith::ExtUIOp>(builder.b.getI64Type(), value);
  return to.isInteger(32) ? builder.createOp<host::NarrowOp>(value) : value;
}

Value HostScalars::choose(CmpIPredicate predicate, Value lhs, Value rhs) {
  return builder.select(builder.compare(predicate, lhs, rhs), lhs, rhs);
}

/// What can fail, among the operations with two operands of the same type.
static std::optional<Arithmetic> getArithmetic(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Arithmetic>>(op)
      .Case([](arith::AddIOp) { return Arithmetic::Add; })
      .Case([](arith::SubIOp) { return Arithmetic::Sub; })
      .Case([](arith::MulIOp) { return Arithmetic::Mul; })
      .Case([](arith::DivSIOp) { return Arithmetic::DivS; })
      .Case([](arith::DivUIOp) { return Arithmetic::DivU; })
      .Case([](arith::CeilDivSIOp) { return Arithmetic::CeilDivS; })
      .Case([](arith::CeilDivUIOp) { return Arithmetic::CeilDivU; })
      .Case([](arith::FloorDivSIOp) { return Arithmetic::FloorDivS; })
      .Case([](arith::RemSIOp) { return Arithmetic::RemS; })
      .Case([](arith::RemUIOp) { return Arithmetic::RemU; })
      .Default(std::nullopt);
}

Value HostScalars::translateBinary(Operation *op) {
  Type type = op->getOperand(0).getType();
  Value lhs = get(op->getOperand(0)), rhs = get(op->getOperand(1));
  if (isa<arith::AndIOp>(op))
    return builder.createOp<arith::AndIOp>(lhs, rhs);
  if (isa<arith::OrIOp>(op))
    return builder.createOp<arith::OrIOp>(lhs, rhs);
  if (isa<arith::XOrIOp>(op))
    return builder.createOp<arith::XOrIOp>(lhs, rhs);
  if (type.isInteger(1))
    return {};
  if (isa<arith::MinSIOp>(op))
    return choose(CmpIPredicate::slt, lhs, rhs);
  if (isa<arith::MaxSIOp>(op))
    return choose(CmpIPredicate::sgt, lhs, rhs);
  if (isa<arith::MinUIOp>(op))
    return choose(CmpIPredicate::ult, lhs, rhs);
  if (isa<arith::MaxUIOp>(op))
    return choose(CmpIPredicate::ugt, lhs, rhs);
  std::optional<Arithmetic> kind = getArithmetic(op);
  if (!kind)
    return {};
  bool isNarrow = type.isInteger(32);
  // An i32 is held with its sign, so these would divide another number.
  if (isNarrow && (*kind == Arithmetic::DivU || *kind == Arithmetic::CeilDivU ||
                   *kind == Arithmetic::RemU))
    return {};
  Value result = builder.create(*kind, lhs, rhs);
  return isNarrow ? builder.createOp<host::NarrowOp>(result) : result;
}

Value HostScalars::translateArith(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return translateConstant(constant.getValue());
  if (!llvm::all_of(op->getOperandTypes(), isSupported) ||
      !llvm::all_of(op->getResultTypes(), isSupported) ||
      op->getNumResults() != 1)
    return {};
  if (isa<arith::CmpIOp>(op))
    return translateCompare(op);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return translateCast(op);
  if (isa<arith::SelectOp>(op))
    return builder.select(get(op->getOperand(0)), get(op->getOperand(1)),
                          get(op->getOperand(2)));
  return op->getNumOperands() == 2 ? translateBinary(op) : Value();
}

Value HostScalars::expand(AffineExpr expr, ValueRange operands,
                          unsigned numDims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.constant(constant.getValue());
  if (auto dimension = dyn_cast<AffineDimExpr>(expr))
    return get(operands[dimension.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return get(operands[numDims + symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value a = expand(binary.getLHS(), operands, numDims);
  Value b = expand(binary.getRHS(), operands, numDims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return builder.add(a, b);
  case AffineExprKind::Mul:
    return builder.mul(a, b);
  case AffineExprKind::FloorDiv:
    return builder.create(Arithmetic::FloorDivS, a, b);
  case AffineExprKind::CeilDiv:
    return builder.create(Arithmetic::CeilDivS, a, b);
  case AffineExprKind::Mod:
    // In [0, b), unlike rems.
    return builder.create(
        Arithmetic::Sub, a,
        builder.mul(builder.create(Arithmetic::FloorDivS, a, b), b));
  default:
    llvm_unreachable("not a binary expression");
  }
}

Value HostScalars::translateAffine(Operation *op) {
  auto combine = [&](AffineMap map, CmpIPredicate predicate) {
    Value result;
    for (AffineExpr expr : map.getResults()) {
      Value next = expand(expr, op->getOperands(), map.getNumDims());
      result = result ? choose(predicate, result, next) : next;
    }
    return result;
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](affine::AffineApplyOp apply) {
        return expand(apply.getAffineMap().getResult(0), op->getOperands(),
                      apply.getAffineMap().getNumDims());
      })
      .Case([&](affine::AffineMinOp min) {
        return combine(min.getMap(), CmpIPredicate::slt);
      })
      .Case([&](affine::AffineMaxOp max) {
        return combine(max.getMap(), CmpIPredicate::sgt);
      })
      .Default(Value());
}

LogicalResult HostScalars::translate(Operation *op) {
  bool isArith = isa_and_nonnull<arith::ArithDialect>(op->getDialect());
  Value result = isArith ? translateArith(op) : translateAffine(op);
  if (!result)
    return failure();
  set(op->getResult(0), result);
  return success();
}
