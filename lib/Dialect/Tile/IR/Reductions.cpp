//===- Reductions.cpp - How values are combined ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Reductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash::tile;

Value flash::tile::combine(OpBuilder &b, Location loc, Reduction reduction,
                           Value x, Value y) {
  switch (reduction) {
  case Reduction::Add:
    return arith::AddFOp::create(b, loc, x, y);
  case Reduction::Mul:
    return arith::MulFOp::create(b, loc, x, y);
  case Reduction::Max:
    return arith::MaxNumFOp::create(b, loc, x, y);
  case Reduction::Min:
    return arith::MinNumFOp::create(b, loc, x, y);
  case Reduction::Maximum:
    return arith::MaximumFOp::create(b, loc, x, y);
  case Reduction::Minimum:
    return arith::MinimumFOp::create(b, loc, x, y);
  }
  llvm_unreachable("a reduction");
}

std::optional<Reduction> flash::tile::getReduction(Operation *op) {
  return TypeSwitch<Operation *, std::optional<Reduction>>(op)
      .Case([](arith::AddFOp) { return Reduction::Add; })
      .Case([](arith::MulFOp) { return Reduction::Mul; })
      .Case([](arith::MaxNumFOp) { return Reduction::Max; })
      .Case([](arith::MinNumFOp) { return Reduction::Min; })
      .Case([](arith::MaximumFOp) { return Reduction::Maximum; })
      .Case([](arith::MinimumFOp) { return Reduction::Minimum; })
      .Default(std::nullopt);
}

double flash::tile::getNeutralElement(Reduction reduction) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
  case Reduction::Add:
    return 0;
  case Reduction::Mul:
    return 1;
  case Reduction::Max:
  case Reduction::Maximum:
    return -infinity;
  case Reduction::Min:
  case Reduction::Minimum:
    return infinity;
  }
  llvm_unreachable("a reduction");
}
