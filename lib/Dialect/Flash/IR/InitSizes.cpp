//===- InitSizes.cpp - Sizes of what results start from -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/InitSizes.h"

#include "flash/Support/StripCasts.h"

using namespace mlir;
using namespace flash;

linalg::FillOp flash::getFill(Value tensor) {
  return stripCasts(tensor).getDefiningOp<linalg::FillOp>();
}

SmallVector<OpFoldResult> flash::getInitSizes(OpBuilder &b, Location loc,
                                              Value tensor) {
  Value init = stripCasts(tensor);
  if (linalg::FillOp fill = getFill(init))
    init = stripCasts(fill.getOutputs()[0]);
  auto empty = init.getDefiningOp<tensor::EmptyOp>();
  return empty ? empty.getMixedSizes() : tensor::getMixedSizes(b, loc, tensor);
}
