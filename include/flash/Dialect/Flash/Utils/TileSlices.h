//===- TileSlices.h - Tiles of attention's operands -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_UTILS_TILESLICES_H
#define FLASH_DIALECT_FLASH_UTILS_TILESLICES_H

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace flash {

/// A dimension cut into tiles of a static size; the last one may be ragged.
struct TiledDim {
  int64_t tile;
  mlir::OpFoldResult end;
  /// What the end is a multiple of, whatever it is.
  int64_t multiple = 1;
  /// Whether the end may be before the last element in memory: tiles may start
  /// behind it, and no row of these exists.
  bool mayEndBefore = false;
  /// How many elements are listed together, if that is more than a tile: of the
  /// last block tiles may be missing.
  int64_t block = 0;

  /// Whether a tile may be cut off, or start behind the end; of nothing the
  /// first one is.
  bool isRagged() const {
    int64_t known = mlir::getConstantIntValue(end).value_or(multiple);
    return mayEndBefore || known == 0 || known % std::max(tile, block) != 0;
  }
  /// How many elements of the tile that starts at `start` exist.
  mlir::OpFoldResult existing(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value start) const;
};

/// Which key head a query head reads.
class HeadGroups {
public:
  HeadGroups() = default;
  /// Of a query and a key of rank 4.
  HeadGroups(mlir::OpBuilder &b, mlir::Location loc, mlir::Value query,
             mlir::Value key);
  mlir::OpFoldResult getKeyHead(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value head) const;
  /// The query heads that read a key head, from the first to one past the last.
  std::pair<mlir::OpFoldResult, mlir::OpFoldResult>
  getQueryHeads(mlir::OpBuilder &b, mlir::Location loc,
                mlir::Value keyHead) const;
  mlir::OpFoldResult getSize() const { return group; }

private:
  mlir::OpFoldResult group; ///< Query heads per key head.
};

/// How many of `size` rows there are in `batch`, as its length says: all if
/// `lengths` is null.
mlir::OpFoldResult getLength(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::OpFoldResult size, mlir::Value lengths,
                             mlir::Value batch);

/// Part of the last dimension.
struct Columns {
  mlir::OpFoldResult start;
  int64_t count;
};

/// The mapping of a parallel loop over so many dimensions; each iteration is
/// one thread block. Mapped loops stay loops, also where there is one
/// iteration, which canonicalization would inline otherwise: no kernel would be
/// left.
mlir::ArrayAttr getBlockMapping(mlir::OpBuilder &b, size_t numDims);

/// On a `tensor.pad`: the rows that it adds to a slice lie behind the last row
/// of what the slice is taken from, where bulk copies fill in zeros by
/// themselves.
constexpr llvm::StringLiteral toEndName = "flash.to_end";

/// The sizes of `tensor`, of a slice those that it was taken with.
llvm::SmallVector<mlir::OpFoldResult>
getSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

/// The most rows, at least one, of a block of rows along `dim`. Fails after an
/// error at `op` if no bound is known.
llvm::FailureOr<int64_t> getMostRows(mlir::Operation *op, mlir::Value tensor,
                                     int64_t dim);

/// The part of `tensor` at `offsets` as a tensor of `shape`, without the
/// dimensions that `shape` lacks. Of a slice it is a part of what that was
/// taken from.
mlir::Value extractPart(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::OpFoldResult> offsets,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        llvm::ArrayRef<int64_t> shape);

/// `slice`, which has `sizes`, filled up with `padding` behind its ends to a
/// tile of `shape`; the slice itself if it is one.
mlir::Value padToTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value slice,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes,
                      llvm::ArrayRef<int64_t> shape, mlir::TypedAttr padding);

/// `rows` rows from `first` = (batch, head, row) on of a rank-4 or, without the
/// last dimension, rank-3 tensor, padded with zeros to `tile` rows; all columns
/// of them unless `columns` are given. With `toEnd` the rows behind them lie
/// behind the tensor's last one.
mlir::Value extractRows(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::OpFoldResult> first,
                        mlir::OpFoldResult rows, int64_t tile,
                        std::optional<Columns> columns = std::nullopt,
                        bool toEnd = false);

/// The rows of `heads` heads at `first` = (batch, head, query), of `queries`
/// queries each, as a tile: the heads of the first query come first.
/// Padded with zeros to `tile` rows, `columns` and `toEnd` as above.
mlir::Value packRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                     llvm::ArrayRef<mlir::OpFoldResult> first, int64_t heads,
                     mlir::OpFoldResult queries, int64_t tile,
                     std::optional<Columns> columns, bool toEnd);

/// The first `rows` rows of a tile; of one in which `heads` heads are packed,
/// the first `rows` queries of each, by heads and then queries.
mlir::Value takeRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tile,
                     mlir::OpFoldResult rows, int64_t heads);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_TILESLICES_H
