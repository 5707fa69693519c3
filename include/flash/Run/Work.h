//===- Work.h - What a program has to do ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_WORK_H
#define FLASH_RUN_WORK_H

#include "flash/Run/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace flash::run {

/// Floating-point operations of the two matrix products over the unmasked
/// (query, key) pairs of every attention in a program at level 0. Lengths are
/// taken from the inputs. Nothing if a size does not follow from the inputs.
std::optional<double> countFlops(mlir::func::FuncOp level0,
                                 llvm::ArrayRef<HostTensor> inputs);

/// Bytes of the results of a function, where they follow from the inputs; a
/// result of unknown size counts as the largest input.
int64_t estimateResultBytes(mlir::func::FuncOp entry,
                            llvm::ArrayRef<TensorSpec> inputs);

/// The largest matrix of scores, in f32: what a program holds that stores the
/// scores of an attention. Nothing if sizes are unknown.
std::optional<double> countScoreBytes(mlir::func::FuncOp level0,
                                      llvm::ArrayRef<TensorSpec> inputs);

/// By the numbers of results, the rows of those whose others are undefined:
/// sequences that are packed into a tensor.empty have rows from the first of
/// each pair up to the second one. Offsets are taken from the inputs.
std::map<unsigned, llvm::SmallVector<std::pair<int64_t, int64_t>>>
getRowsOfSequences(mlir::func::FuncOp level0,
                   llvm::ArrayRef<HostTensor> inputs);

/// Whether an attention in a program at level 0 has `precision(tf32)`.
bool permitsTf32(mlir::ModuleOp level0);

} // namespace flash::run

#endif // FLASH_RUN_WORK_H
