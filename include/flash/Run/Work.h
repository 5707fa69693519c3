//===- Work.h - Operations and bytes of programs ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_RUN_WORK_H
#define FLASH_RUN_WORK_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Run/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>

namespace flash::run {

/// The number of floating-point operations of the products of all attentions in
/// a program at level 0: two products for an attention, and five for its
/// gradients. Only pairs of query and key that are not masked count. Lengths
/// are read from the inputs. Nothing if a number does not follow from the
/// inputs, or if it is 0.
std::optional<double> countFlops(mlir::func::FuncOp level0,
                                 llvm::ArrayRef<HostTensor> inputs);

/// An estimate of the bytes of all results of a function. A result whose sizes
/// do not follow from the inputs counts as much as the largest input.
int64_t estimateResultBytes(mlir::func::FuncOp entry,
                            llvm::ArrayRef<TensorSpec> inputs);

/// The bytes of the scores of one attention in f32, for all batches and heads:
/// the largest number among the attentions of the program. Nothing if sizes do
/// not follow from the inputs, or if there is no attention.
std::optional<double> countScoreBytes(mlir::func::FuncOp level0,
                                      llvm::ArrayRef<TensorSpec> inputs);

/// For results in which only the rows of packed sequences are defined, because
/// they were packed into a tensor.empty: the defined rows, by the number of the
/// result, as ranges from a row to before another one. Offsets are read from
/// the inputs.
std::map<unsigned, llvm::SmallVector<std::pair<int64_t, int64_t>>>
getRowsOfSequences(mlir::func::FuncOp level0,
                   llvm::ArrayRef<HostTensor> inputs);

/// What kernels of a program at level 0 round operands of products to: the
/// precision of an attention, if the target multiplies such elements.
std::optional<Precision> getPrecision(mlir::ModuleOp level0);

} // namespace flash::run

#endif // FLASH_RUN_WORK_H
