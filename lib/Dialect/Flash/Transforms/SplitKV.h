//===- SplitKV.h - The splits of the keys of a query tile -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SPLITKV_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SPLITKV_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {

/// How many splits the keys of each query tile have.
class KeySplits {
public:
  KeySplits() = default;
  /// The splits that the schedule of `online` says. If `rows` are given, a
  /// kernel goes over these rows of the queries. Emits what depends on sizes
  /// that are known at run time only.
  KeySplits(mlir::OpBuilder &b, OnlineAttentionOp online,
            AddressOpInterface rows);

  mlir::OpFoldResult getCount() const { return count; }
  /// The keys of each, which lie next to each other; nothing where splits take
  /// every n-th tile of keys.
  std::optional<int64_t> getKeys() const { return keys; }
  /// Whether there may be one only, which then writes the results, or several,
  /// which write partial ones.
  bool mayBeOne() const { return isDynamic() || !maySplit(); }
  bool maySplit() const { return !mlir::isOneInteger(count); }
  /// `one` where there is one split, else `several`.
  mlir::OpFoldResult choose(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult one,
                            mlir::OpFoldResult several) const;

private:
  bool isDynamic() const { return !mlir::getConstantIntValue(count); }

  mlir::OpFoldResult count;
  std::optional<int64_t> keys;
};

/// Puts a dimension of blocks of `columns` columns, if these are not all, in
/// front of the others of a kernel. Positions along it are the first columns of
/// blocks.
void addValueBlocks(mlir::OpBuilder &b, int64_t all, int64_t columns,
                    llvm::SmallVectorImpl<mlir::OpFoldResult> &ends,
                    llvm::SmallVectorImpl<int64_t> &steps);

/// Combines the partial results of the splits, `outputs` of rank 5 and their
/// log-sum-exps, into `inits`, an output and, if there is a second, its
/// log-sum-exp. Where there is one split, they stay as they are. An iteration
/// of the parallel loop has some queries of a head, or some heads of a query.
/// With the `rows` of a view, partial results are where these lie. Of a batch
/// only the first splits are read, as many as `countOf` says.
llvm::SmallVector<mlir::Value>
combineSplits(mlir::OpBuilder &b, mlir::Location loc, const KeySplits &splits,
              mlir::Value outputs, mlir::Value lses, mlir::ValueRange inits,
              bool alongHeads, mlir::Value rows,
              llvm::function_ref<mlir::OpFoldResult(mlir::OpBuilder &b,
                                                    mlir::Value batch)>
                  countOf);

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_SPLITKV_H
