//===- HostScalars.cpp - Scalar operations as plan instructions -----------===//
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
using flash::runtime::Opcode;
using flash::runtime::Register;

SmallVector<Register, 4> HostScalars::getMixed(ArrayRef<OpFoldResult> values) {
  return llvm::map_to_vector<4>(values, [&](OpFoldResult value) {
    if (auto known = dyn_cast<Attribute>(value))
      return builder.constant(cast<IntegerAttr>(known).getInt());
    return get(cast<Value>(value));
  });
}

std::optional<Register> HostScalars::translateConstant(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    const APInt &bits = integer.getValue();
    if (bits.getBitWidth() > 64)
      return std::nullopt;
    return builder.constant(bits.getBitWidth() == 1 ? bits.getZExtValue()
                                                    : bits.getSExtValue());
  }
  auto real = dyn_cast<FloatAttr>(value);
  if (!real || !(real.getType().isF32() || real.getType().isF64()))
    return std::nullopt;
  return builder.constant(real.getValue().bitcastToAPInt().getZExtValue());
}

std::optional<Register> HostScalars::translateCompare(Operation *op) {
  auto compare = cast<arith::CmpIOp>(op);
  // i1 would read as 0 and -1 in signed comparisons.
  if (compare.getLhs().getType().isInteger(1))
    return std::nullopt;
  Register a = get(compare.getLhs()), b = get(compare.getRhs());
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return builder.create(Opcode::Equal, a, b);
  case arith::CmpIPredicate::ne:
    return builder.create(Opcode::NotEqual, a, b);
  case arith::CmpIPredicate::slt:
    return builder.create(Opcode::LessS, a, b);
  case arith::CmpIPredicate::sle:
    return builder.create(Opcode::LessEqualS, a, b);
  case arith::CmpIPredicate::sgt:
    return builder.create(Opcode::LessS, b, a);
  case arith::CmpIPredicate::sge:
    return builder.create(Opcode::LessEqualS, b, a);
  case arith::CmpIPredicate::ult:
    return builder.create(Opcode::LessU, a, b);
  case arith::CmpIPredicate::ule:
    return builder.create(Opcode::LessEqualU, a, b);
  case arith::CmpIPredicate::ugt:
    return builder.create(Opcode::LessU, b, a);
  case arith::CmpIPredicate::uge:
    return builder.create(Opcode::LessEqualU, b, a);
  }
  llvm_unreachable("unknown predicate");
}

std::optional<Register> HostScalars::translateCast(Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  Register value = get(op->getOperand(0));
  // A bit is 0 or 1, which is what zero extension makes of it.
  bool isUnsigned = isa<arith::ExtUIOp, arith::IndexCastUIOp>(op);
  if (from.isInteger(1) != isUnsigned || to.isInteger(1))
    return std::nullopt;
  bool narrows = to.isInteger(32) && !from.isInteger(1);
  return narrows ? builder.create(Opcode::ToI32, value) : value;
}

static bool isSupported(Type type) {
  return type.isIndex() || type.isSignlessInteger(1) ||
         type.isSignlessInteger(32) || type.isSignlessInteger(64);
}

/// The opcode of an operation with two operands of the same type.
static std::optional<Opcode> getBinaryOpcode(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Opcode>>(op)
      .Case([](arith::AddIOp) { return Opcode::Add; })
      .Case([](arith::SubIOp) { return Opcode::Sub; })
      .Case([](arith::MulIOp) { return Opcode::Mul; })
      .Case([](arith::DivSIOp) { return Opcode::DivS; })
      .Case([](arith::DivUIOp) { return Opcode::DivU; })
      .Case([](arith::CeilDivSIOp) { return Opcode::CeilDivS; })
      .Case([](arith::CeilDivUIOp) { return Opcode::CeilDivU; })
      .Case([](arith::FloorDivSIOp) { return Opcode::FloorDivS; })
      .Case([](arith::RemSIOp) { return Opcode::RemS; })
      .Case([](arith::RemUIOp) { return Opcode::RemU; })
      .Case([](arith::MinSIOp) { return Opcode::MinS; })
      .Case([](arith::MinUIOp) { return Opcode::MinU; })
      .Case([](arith::MaxSIOp) { return Opcode::MaxS; })
      .Case([](arith::MaxUIOp) { return Opcode::MaxU; })
      .Case([](arith::AndIOp) { return Opcode::And; })
      .Case([](arith::OrIOp) { return Opcode::Or; })
      .Case([](arith::XOrIOp) { return Opcode::Xor; })
      .Default(std::nullopt);
}

std::optional<Register> HostScalars::translateArith(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return translateConstant(constant.getValue());
  if (!llvm::all_of(op->getOperandTypes(), isSupported) ||
      !llvm::all_of(op->getResultTypes(), isSupported))
    return std::nullopt;
  if (isa<arith::CmpIOp>(op))
    return translateCompare(op);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return translateCast(op);
  if (isa<arith::SelectOp>(op))
    return builder.create(Opcode::Select, get(op->getOperand(0)),
                          get(op->getOperand(1)), get(op->getOperand(2)));

  std::optional<Opcode> opcode = getBinaryOpcode(op);
  if (!opcode)
    return std::nullopt;
  bool isLogical =
      *opcode == Opcode::And || *opcode == Opcode::Or || *opcode == Opcode::Xor;
  Type type = op->getOperand(0).getType();
  if (type.isInteger(1) && !isLogical)
    return std::nullopt;
  // Registers hold an i32 with its sign, so these would divide another number.
  if (type.isInteger(32) &&
      (*opcode == Opcode::DivU || *opcode == Opcode::CeilDivU ||
       *opcode == Opcode::RemU))
    return std::nullopt;
  Register result =
      builder.create(*opcode, get(op->getOperand(0)), get(op->getOperand(1)));
  if (type.isInteger(32) && !isLogical)
    result = builder.create(Opcode::ToI32, result);
  return result;
}

Register HostScalars::expand(AffineExpr expr, ValueRange operands,
                             unsigned numDims) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return builder.constant(constant.getValue());
  if (auto dimension = dyn_cast<AffineDimExpr>(expr))
    return get(operands[dimension.getPosition()]);
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return get(operands[numDims + symbol.getPosition()]);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Register a = expand(binary.getLHS(), operands, numDims);
  Register b = expand(binary.getRHS(), operands, numDims);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return builder.create(Opcode::Add, a, b);
  case AffineExprKind::Mul:
    return builder.create(Opcode::Mul, a, b);
  case AffineExprKind::FloorDiv:
    return builder.create(Opcode::FloorDivS, a, b);
  case AffineExprKind::CeilDiv:
    return builder.create(Opcode::CeilDivS, a, b);
  case AffineExprKind::Mod: {
    // In [0, b), unlike rems.
    Register quotient = builder.create(Opcode::FloorDivS, a, b);
    return builder.create(Opcode::Sub, a,
                          builder.create(Opcode::Mul, quotient, b));
  }
  default:
    llvm_unreachable("not a binary expression");
  }
}

std::optional<Register> HostScalars::translateAffine(Operation *op) {
  auto combine = [&](AffineMap map, Opcode opcode) {
    std::optional<Register> result;
    for (AffineExpr expr : map.getResults()) {
      Register next = expand(expr, op->getOperands(), map.getNumDims());
      result = result ? builder.create(opcode, *result, next) : next;
    }
    return result;
  };
  return llvm::TypeSwitch<Operation *, std::optional<Register>>(op)
      .Case([&](affine::AffineApplyOp apply) {
        return combine(apply.getAffineMap(), Opcode::Add);
      })
      .Case([&](affine::AffineMinOp min) {
        return combine(min.getMap(), Opcode::MinS);
      })
      .Case([&](affine::AffineMaxOp max) {
        return combine(max.getMap(), Opcode::MaxS);
      })
      .Default(std::nullopt);
}

LogicalResult HostScalars::translate(Operation *op) {
  bool isArith = isa_and_nonnull<arith::ArithDialect>(op->getDialect());
  std::optional<Register> result =
      isArith ? translateArith(op) : translateAffine(op);
  if (!result)
    return failure();
  set(op->getResult(0), *result);
  return success();
}
