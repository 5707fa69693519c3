//===- InitSizes.cpp - Sizes of what results start from -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/InitSizes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

static Value dropCasts(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

linalg::FillOp flash::getFill(Value tensor) {
  return dropCasts(tensor).getDefiningOp<linalg::FillOp>();
}

SmallVector<OpFoldResult> flash::getInitSizes(OpBuilder &b, Location loc,
                                              Value tensor) {
  Value init = dropCasts(tensor);
  if (linalg::FillOp fill = getFill(init))
    init = dropCasts(fill.getOutputs()[0]);
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  return empty ? empty.getMixedSizes() : tensor::getMixedSizes(b, loc, tensor);
}
