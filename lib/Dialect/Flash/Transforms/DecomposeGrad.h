//===- DecomposeGrad.h - Steps of the gradients as linalg -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSEGRAD_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSEGRAD_H

#include "ScoreTileBuilder.h"

namespace flash {

/// Tiles of keys, and the keys that gradients of queries are sums of: without
/// what is not finite, and with columns of zeros.
using KeysOfSums = llvm::DenseMap<mlir::Value, mlir::Value>;

/// Replaces a step of the gradients on tiles of static shape by linalg. Emits
/// an error at an operation of the score region that has no derivative.
llvm::LogicalResult decomposeGradStep(QueryGradStepOp op,
                                      const DecomposeOptions &options,
                                      ScoreTileBuilder::Transposed &transposed);
llvm::LogicalResult decomposeGradStep(KeyGradStepOp op,
                                      const DecomposeOptions &options,
                                      ScoreTileBuilder::Transposed &transposed,
                                      KeysOfSums &keysOfSums);
llvm::LogicalResult decomposeGradStep(CapturedGradStepOp op,
                                      const DecomposeOptions &options,
                                      ScoreTileBuilder::Transposed &transposed);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_DECOMPOSEGRAD_H
