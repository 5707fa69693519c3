//===- TileBuilder.cpp - linalg on tiles of f32 ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;

Value TileBuilder::empty(ArrayRef<int64_t> shape, Type element) {
  return tensor::EmptyOp::create(b, shape, element);
}

Value TileBuilder::filled(ArrayRef<int64_t> shape, double value) {
  return linalg::FillOp::create(b, emitConstant(b, value), empty(shape))
      .getResult(0);
}

ValueRange TileBuilder::generic(ValueRange inputs, ValueRange outputs,
                                ArrayRef<AffineMap> maps, Body body) {
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < maps[0].getNumDims(); ++loop)
    iterators.push_back(maps.back().isFunctionOfDim(loop)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      b, outputs.getTypes(), inputs, outputs, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder inner(loc, nested);
        linalg::YieldOp::create(inner, body(inner, args));
      });
  eraseDeadOps(*generic.getBody());
  return generic.getResults();
}

ValueRange TileBuilder::rows(ValueRange inputs, ValueRange outputs, Body body) {
  SmallVector<AffineMap> maps(inputs.size() + outputs.size(),
                              b.getMultiDimIdentityMap(1));
  return generic(inputs, outputs, maps, body);
}

Value TileBuilder::filledRows(int64_t count, Value number) {
  return rows({}, empty({count}),
              [&](ImplicitLocOpBuilder &at, ValueRange) -> SmallVector<Value> {
                return {emitFloat(at, number)};
              })[0];
}

Value TileBuilder::addElementsOfRows(Value tile, Value sums) {
  return generic(
      tile, sums, {map(2, {0, 1}), map(2, {0})},
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::AddFOp::create(at, args[1], args[0])};
      })[0];
}

ValueRange TileBuilder::choose(Value condition, Branch then, Branch otherwise) {
  auto emit = [&](Branch branch) {
    return [this, branch](OpBuilder &, Location) {
      scf::YieldOp::create(b, branch());
    };
  };
  return scf::IfOp::create(b, condition, emit(then), emit(otherwise))
      .getResults();
}

Value flash::extendToF32(ImplicitLocOpBuilder &b, Value scalar) {
  if (scalar.getType().isF32())
    return scalar;
  return arith::ExtFOp::create(b, b.getF32Type(), scalar);
}

Value flash::truncateF32(ImplicitLocOpBuilder &b, Type type, Value scalar) {
  if (type.isF32())
    return scalar;
  return arith::TruncFOp::create(b, type, scalar);
}

Value flash::emitFloat(ImplicitLocOpBuilder &b, Value index) {
  Value narrow = arith::IndexCastOp::create(b, b.getI32Type(), index);
  return arith::SIToFPOp::create(b, b.getF32Type(), narrow);
}

Value flash::emitIndex(ImplicitLocOpBuilder &b, Value number) {
  Value narrow = arith::FPToSIOp::create(b, b.getI32Type(), number);
  return arith::IndexCastOp::create(b, b.getIndexType(), narrow);
}

Value flash::emitBelow(ImplicitLocOpBuilder &b, Value index, Value end) {
  Value last =
      arith::SubIOp::create(b, end, arith::ConstantIndexOp::create(b, 1));
  return arith::MinSIOp::create(b, index, last);
}
