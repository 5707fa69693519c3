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

/// A dimension that is cut into tiles of a static size. The last tile may be
/// ragged.
struct TiledDim {
  int64_t tile;
  mlir::OpFoldResult end;
  /// A known divisor of the end, which need not be constant.
  int64_t multiple = 1;
  /// Whether the end may be before the last element in memory. Then a tile may
  /// start after the end, and none of its rows exists.
  bool mayEndBefore = false;
  /// The number of elements of one entry in a list of blocks, if it is more
  /// than a tile. Some tiles of the last block may not exist.
  int64_t block = 0;

  /// Whether a tile may be cut off at the end or start after it. The first tile
  /// of a dimension without elements is cut off.
  bool isRagged() const {
    int64_t known = mlir::getConstantIntValue(end).value_or(multiple);
    return mayEndBefore || known == 0 || known % std::max(tile, block) != 0;
  }
  /// The number of elements of the tile at `start` that exist.
  mlir::OpFoldResult existing(mlir::OpBuilder &b, mlir::Location loc,
                              mlir::Value start) const;
};

/// Which key head each query head reads (grouped heads).
class HeadGroups {
public:
  HeadGroups() = default;
  /// The query and the key have rank 4, and the number of query heads is a
  /// multiple of the number of key heads.
  HeadGroups(mlir::OpBuilder &b, mlir::Location loc, mlir::Value query,
             mlir::Value key);
  mlir::OpFoldResult getKeyHead(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value head) const;
  /// The first query head that reads a key head, and the one after the last.
  std::pair<mlir::OpFoldResult, mlir::OpFoldResult>
  getQueryHeads(mlir::OpBuilder &b, mlir::Location loc,
                mlir::Value keyHead) const;
  mlir::OpFoldResult getSize() const { return group; }

private:
  mlir::OpFoldResult group; ///< Query heads per key head.
};

/// The number of rows in `batch`, which has `size` rows in memory: its length,
/// clamped to 0 and `size`, or `size` if `lengths` is null.
mlir::OpFoldResult getLength(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::OpFoldResult size, mlir::Value lengths,
                             mlir::Value batch);

/// A range of the last dimension.
struct Columns {
  mlir::OpFoldResult start;
  int64_t count;
};

/// The mapping of a parallel loop over `numDims` dimensions in which each
/// iteration is one thread block. Canonicalization inlines loops of one
/// iteration unless they have a mapping; without the loop there would be no
/// kernel.
mlir::ArrayAttr getBlockMapping(mlir::OpBuilder &b, size_t numDims);

/// An attribute of `tensor.pad`. It says that the rows which the op adds to a
/// slice lie after the last row of the tensor from which the slice is taken.
/// Bulk copies fill in zeros there by themselves.
constexpr llvm::StringLiteral toEndName = "flash.to_end";

/// The sizes of `tensor`. The sizes of a slice are the operands of the op that
/// takes it.
llvm::SmallVector<mlir::OpFoldResult>
getSizes(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor);

/// An upper bound, at least 1, on the number of rows of `tensor` along `dim`.
/// Emits an error at `op` and fails if no bound is known.
llvm::FailureOr<int64_t> getMostRows(mlir::Operation *op, mlir::Value tensor,
                                     int64_t dim);

/// The part of `tensor` at `offsets`, as a tensor of `shape`, which may lack
/// dimensions of size 1. If `tensor` is a slice, the part is taken from the
/// tensor behind the slice.
mlir::Value extractPart(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::OpFoldResult> offsets,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        llvm::ArrayRef<int64_t> shape);

/// `slice`, which has `sizes`, with `padding` added at its ends to become a
/// tile of `shape`. The slice itself if it has this shape.
mlir::Value padToTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value slice,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes,
                      llvm::ArrayRef<int64_t> shape, mlir::TypedAttr padding);

/// `rows` rows of a tensor from `first` = (batch, head, row) on, padded with
/// zeros to `tile` rows. The tensor has rank 4, or rank 3 if it has no columns.
/// All columns are taken unless `columns` are given. With `toEnd` the added
/// rows lie after the last row of the tensor (`toEndName`).
mlir::Value extractRows(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value tensor,
                        llvm::ArrayRef<mlir::OpFoldResult> first,
                        mlir::OpFoldResult rows, int64_t tile,
                        std::optional<Columns> columns = std::nullopt,
                        bool toEnd = false);

/// The rows of `heads` heads from `first` = (batch, head, query) on, with
/// `queries` queries of each head, as one tile. The rows of all heads for the
/// first query come first. Padding, `columns` and `toEnd` are as in
/// `extractRows`.
mlir::Value packRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                     llvm::ArrayRef<mlir::OpFoldResult> first, int64_t heads,
                     mlir::OpFoldResult queries, int64_t tile,
                     std::optional<Columns> columns, bool toEnd);

/// The first `rows` rows of a tile. If `heads` heads are packed in the tile,
/// the result has the first `rows` queries of each head, with the heads as its
/// outer dimension.
mlir::Value takeRows(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tile,
                     mlir::OpFoldResult rows, int64_t heads);

} // namespace flash

#endif // FLASH_DIALECT_FLASH_UTILS_TILESLICES_H
