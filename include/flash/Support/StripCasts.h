//===- StripCasts.h - A tensor of another static type -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_STRIPCASTS_H
#define FLASH_SUPPORT_STRIPCASTS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {

/// The tensor before its type became more or less static.
inline mlir::Value stripCasts(mlir::Value tensor) {
  while (auto cast = tensor.getDefiningOp<mlir::tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

} // namespace flash

#endif // FLASH_SUPPORT_STRIPCASTS_H
