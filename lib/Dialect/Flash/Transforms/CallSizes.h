//===- CallSizes.h - The sizes of a function's calls ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_CALLSIZES_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_CALLSIZES_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Schedule/SizeClass.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {

/// From the first to the last of these sizes.
struct SizeRange {
  int64_t first, last;
};

/// What is said of the sizes of some calls of a function: of the first
/// arguments, nothing where a size is not said.
struct Call {
  llvm::StringRef text; ///< For messages.
  std::vector<llvm::SmallVector<std::optional<SizeRange>>> arguments;
};

/// Reads "16x32x1x128,16x8x1..4096x128;...": calls with the sizes of arguments,
/// `?` where nothing is said. Errors are at `op`. The text must outlive the
/// calls.
llvm::FailureOr<llvm::SmallVector<Call>> parseCalls(mlir::Operation *op,
                                                    llvm::StringRef text);

/// A size on which schedules depend.
struct CallAxis {
  std::string name; ///< For messages, such as "number of keys".
  /// The arguments' dimensions, those that types leave open, that have it.
  llvm::SmallVector<std::pair<unsigned, int64_t>> members;
  /// What types say.
  std::optional<int64_t> known;
  /// Whether no other size is like it: of numbers of heads.
  bool isExact = false;
};

/// The sizes of a function's calls on which the schedules of its attentions
/// depend.
class CallAxes {
public:
  /// Refused are functions without attention, with branches, and with sizes
  /// that are computed.
  static llvm::FailureOr<CallAxes> of(mlir::func::FuncOp func);

  llvm::ArrayRef<CallAxis> get() const { return axes; }
  /// What a call says of each axis. Refused are calls that do not say it, or
  /// contradict types or themselves.
  llvm::FailureOr<llvm::SmallVector<SizeRange>> match(const Call &call) const;
  /// Whether an attention can have these sizes.
  llvm::LogicalResult verifySizes(const Call &call,
                                  llvm::ArrayRef<int64_t> sizes) const;
  /// Sizes of the axes as sizes of the first arguments, as flash-specialize
  /// takes them.
  llvm::SmallVector<std::string> describe(llvm::ArrayRef<int64_t> sizes) const;

private:
  explicit CallAxes(mlir::func::FuncOp func) : func(func) {}
  /// Adds dimensions of tensors that are one axis, and returns its number.
  llvm::FailureOr<size_t>
  add(AttentionOp op, llvm::StringRef name,
      llvm::ArrayRef<std::pair<mlir::Value, int64_t>> dims, bool isExact);
  /// The axis of an argument's dimension, or null.
  const CallAxis *find(unsigned argument, int64_t dim) const;

  mlir::func::FuncOp func;
  llvm::SmallVector<CallAxis> axes;
  /// The numbers of query heads and key heads of each attention that has them.
  llvm::SmallVector<std::pair<size_t, size_t>> heads;
};

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_CALLSIZES_H
