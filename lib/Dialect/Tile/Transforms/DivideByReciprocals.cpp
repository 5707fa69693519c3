//===- DivideByReciprocals.cpp - Quotients of a launch's numbers ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace flash::tile {
#define GEN_PASS_DEF_DIVIDEBYRECIPROCALS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// The reciprocals of a kernel. Of a divisor d that is
///
///   F = floor((2^64 - 1) / d),
///
/// and n floordiv d is the upper half of the 128 bits of (n + 1) * F, for all n
/// and d below 2^32: with n = q d + t and F = (2^64 - e) / d, 1 <= e <= d, that
/// product is (q + (t + 1) / d) (2^64 - e). Divided by 2^64 it is less than
/// q + 1, since t + 1 <= d, and at least q, since (n + 1) e <= 2^64.
class Reciprocals {
public:
  explicit Reciprocals(gpu::GPUFuncOp kernel)
      : kernel(kernel), body(kernel.getBody().front()) {}

  /// Replaces quotients and remainders of what is known at the launch.
  void run();
  /// Passes the reciprocals to the kernel.
  void passAt(gpu::LaunchFuncOp launch);

private:
  /// Whether a number is one that the launch knows, or a choice among such.
  static bool isKnown(Value divisor);
  /// The reciprocal of a divisor, where that is known.
  Value get(Value divisor);
  Value divide(OpBuilder &b, Location loc, Value dividend, Value divisor);

  gpu::GPUFuncOp kernel;
  Block &body;
  /// The divisors, and the arguments that are their reciprocals.
  llvm::MapVector<Value, Value> arguments;
  DenseMap<Value, Value> chosen;
};
} // namespace

/// Whether the value is a size of one of the kernel's arguments.
static bool isSizeOfArgument(Value value) {
  auto dim = value.getDefiningOp<memref::DimOp>();
  return dim && dim.getConstantIndex() && isa<BlockArgument>(dim.getSource());
}

/// Whether the value is an argument of a kernel.
static bool isArgumentOfKernel(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<gpu::GPUFuncOp>(argument.getOwner()->getParentOp());
}

bool Reciprocals::isKnown(Value divisor) {
  if (auto choice = divisor.getDefiningOp<arith::SelectOp>())
    return isKnown(choice.getTrueValue()) && isKnown(choice.getFalseValue());
  return isArgumentOfKernel(divisor) || isSizeOfArgument(divisor);
}

Value Reciprocals::get(Value divisor) {
  auto choice = divisor.getDefiningOp<arith::SelectOp>();
  if (!choice) {
    // Sizes of the same dimension are several operations.
    for (auto &[known, argument] : arguments) {
      auto lhs = known.getDefiningOp<memref::DimOp>(),
           rhs = divisor.getDefiningOp<memref::DimOp>();
      if (known == divisor ||
          (lhs && rhs && lhs.getSource() == rhs.getSource() &&
           lhs.getConstantIndex() == rhs.getConstantIndex()))
        return argument;
    }
    return arguments[divisor] = body.addArgument(
               IntegerType::get(kernel.getContext(), 64), divisor.getLoc());
  }
  if (Value known = chosen.lookup(divisor))
    return known;
  Value ifTrue = get(choice.getTrueValue()),
        ifFalse = get(choice.getFalseValue());
  OpBuilder b(choice);
  return chosen[divisor] = arith::SelectOp::create(
             b, choice.getLoc(), choice.getCondition(), ifTrue, ifFalse);
}

Value Reciprocals::divide(OpBuilder &b, Location loc, Value dividend,
                          Value divisor) {
  Type i64 = b.getI64Type();
  Value reciprocal = get(divisor);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  // Numbers of tiles have 31 bits, and the products of 32 bits fit in 64.
  Value next = arith::AddIOp::create(b, loc, dividend,
                                     arith::ConstantIndexOp::create(b, loc, 1),
                                     arith::IntegerOverflowFlags::nuw);
  next = arith::IndexCastUIOp::create(b, loc, i64, next);
  Value half = constant(32);
  Value low = arith::AndIOp::create(b, loc, reciprocal, constant(0xffffffff));
  Value high = arith::ShRUIOp::create(b, loc, reciprocal, half);
  Value carried = arith::ShRUIOp::create(
      b, loc, arith::MulIOp::create(b, loc, low, next), half);
  Value product = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, high, next), carried);
  Value quotient = arith::ShRUIOp::create(b, loc, product, half);
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), quotient);
}

void Reciprocals::run() {
  SmallVector<Operation *> ops;
  // What each element of a tile computes may divide any number.
  kernel.walk([&](Operation *op) {
    if (isa<arith::DivUIOp, arith::RemUIOp>(op) &&
        op->getResult(0).getType().isIndex() && isKnown(op->getOperand(1)) &&
        isa<gpu::GPUFuncOp, scf::ForOp, scf::IfOp>(op->getParentOp()))
      ops.push_back(op);
  });
  // A quotient and a remainder of the same numbers have one multiplication.
  DenseMap<std::pair<Value, Value>, Value> quotients;
  DominanceInfo dominance(kernel);
  for (Operation *op : ops) {
    Value dividend = op->getOperand(0), divisor = op->getOperand(1);
    OpBuilder b(op);
    Value &quotient = quotients[{dividend, divisor}];
    if (!quotient || !dominance.properlyDominates(quotient, op))
      quotient = divide(b, op->getLoc(), dividend, divisor);
    Value result = quotient;
    if (isa<arith::RemUIOp>(op))
      result = arith::SubIOp::create(
          b, op->getLoc(), dividend,
          arith::MulIOp::create(b, op->getLoc(), quotient, divisor));
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
  kernel.setFunctionType(
      FunctionType::get(kernel.getContext(), body.getArgumentTypes(), {}));
}

void Reciprocals::passAt(gpu::LaunchFuncOp launch) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  auto getOperand = [&](Value argument) {
    return launch.getKernelOperand(
        cast<BlockArgument>(argument).getArgNumber());
  };
  SmallVector<Value> added;
  for (auto &[divisor, argument] : arguments) {
    Value number;
    if (auto dim = divisor.getDefiningOp<memref::DimOp>())
      number = memref::DimOp::create(b, loc, getOperand(dim.getSource()),
                                     *dim.getConstantIndex());
    else
      number = getOperand(divisor);
    number = arith::IndexCastOp::create(b, loc, b.getI64Type(), number);
    // Where it is 0, there are no blocks.
    number = arith::MaxUIOp::create(
        b, loc, number, arith::ConstantIntOp::create(b, loc, 1, 64));
    Value all = arith::ConstantIntOp::create(b, loc, -1, 64);
    added.push_back(arith::DivUIOp::create(b, loc, all, number));
  }
  launch.getKernelOperandsMutable().append(added);
}

namespace {
struct DivideByReciprocals
    : flash::tile::impl::DivideByReciprocalsBase<DivideByReciprocals> {
  void runOnOperation() override {
    DenseMap<Operation *, Reciprocals> kernels;
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      kernels.try_emplace(kernel, kernel).first->second.run();
    });
    SymbolTableCollection symbols;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = kernels.find(
          symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr()));
      if (kernel != kernels.end())
        kernel->second.passAt(launch);
    });
  }
};
} // namespace
