//===- OpRules.h - Rules that several ops share -----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_IR_OPRULES_H
#define FLASH_LIB_DIALECT_FLASH_IR_OPRULES_H

#include "flash/Dialect/Flash/IR/Flash.h"

namespace flash::detail {

/// Whether two sizes are equal, or one is known only at run time.
bool mayBeEqual(int64_t lhs, int64_t rhs);

/// A size as in a type.
std::string printSize(int64_t size);

/// Checks that `name` is a static multiple of 8 from 8 to 576.
mlir::LogicalResult verifyHeadDim(mlir::Operation *op, llvm::StringRef name,
                                  int64_t size);

/// Checks that two sizes may be equal; `what` names them in the error.
mlir::LogicalResult verifySameSize(mlir::Operation *op, const llvm::Twine &what,
                                   int64_t lhs, int64_t rhs);

/// Checks a region on elements, `name` in errors. Such a region runs on vectors
/// of elements, so only ops with an elementwise or an explicit gather meaning
/// can be allowed in it.
mlir::LogicalResult verifyElementwise(mlir::Block &block, llvm::StringRef name);

/// Checks a score region, or that there is none.
mlir::LogicalResult verifyScoreRegion(mlir::Operation *op,
                                      mlir::Region &region);

/// Rules that hold for q, k, v of any rank; sizes counted from the back.
mlir::LogicalResult verifyOperandShapes(mlir::Operation *op,
                                        mlir::RankedTensorType query,
                                        mlir::RankedTensorType key,
                                        mlir::RankedTensorType value);

/// Checks batch and head counts, where `batchDim` and `headDim` are the
/// positions of those dimensions, or -1.
mlir::LogicalResult verifyLeadingDims(mlir::Operation *op,
                                      mlir::RankedTensorType query,
                                      mlir::RankedTensorType key,
                                      mlir::RankedTensorType value,
                                      int64_t batchDim, int64_t headDim);

/// Checks what the numbers of queries and keys are said to be multiples of;
/// they may be dynamic.
mlir::LogicalResult verifyMultiples(mlir::Operation *op,
                                    llvm::ArrayRef<int64_t> multiples,
                                    int64_t queries, int64_t keys);

/// Checks that the scale of scores is finite.
mlir::LogicalResult verifyScale(mlir::Operation *op,
                                const llvm::APFloat &scale);

/// Checks that the unit of a state's maximum is one that f32 can bear.
mlir::LogicalResult verifyUnit(mlir::Operation *op, const llvm::APFloat &unit);

/// Checks that a tile of a step has as many rows as the step's schedule says
/// under `key`, if it says it; `what` are the rows.
mlir::LogicalResult verifyTile(mlir::Operation *op, llvm::StringRef what,
                               mlir::RankedTensorType tile, llvm::StringRef key,
                               std::optional<int64_t> scheduled);

/// Checks that a precision is only said of f32.
mlir::LogicalResult verifyPrecision(mlir::Operation *op,
                                    std::optional<Precision> precision,
                                    mlir::Type elementType);

/// Checks that `type` has `shape`, up to dynamic sizes; if it
/// ends in the value dimension, that one must be static.
mlir::LogicalResult verifyShape(mlir::Operation *op, llvm::StringRef name,
                                mlir::RankedTensorType type,
                                llvm::ArrayRef<int64_t> shape,
                                bool endsInValueDim = false);

/// `shape` with another last size.
llvm::SmallVector<int64_t> withLast(llvm::ArrayRef<int64_t> shape,
                                    int64_t last);

/// Checks the operands and clauses that an attention and its gradients share.
mlir::LogicalResult verifyAttention(AttentionOpInterface op);

/// Checks a tensor of one row for each query, with the elements of the query
/// and as many as the value has.
mlir::LogicalResult verifyOutput(AttentionOpInterface op, llvm::StringRef name,
                                 mlir::RankedTensorType type);

/// Checks a tensor of one element for each query.
mlir::LogicalResult verifyRows(AttentionOpInterface op, llvm::StringRef name,
                               mlir::RankedTensorType type);

/// Whether a tile has the columns of `whole`, or `column` is the first of fewer
/// of them.
bool areColumnsOf(mlir::RankedTensorType tile, mlir::RankedTensorType whole,
                  mlir::Value column);

/// Whose tiles a block map is of: of attention, or of the programs of gradients
/// over queries and over keys.
enum class BlockUser { Attention, QueryGrad, KeyGrad };

/// Checks that the block map of an attention, the two results `keyTiles` and
/// `counts`, is made for it and its tiles; nothing if both are null. With
/// `blockSizes` they are lists of blocks that the caller gives, whose types are
/// checked.
mlir::LogicalResult
verifyBlocks(mlir::Operation *op, mlir::Value keyTiles, mlir::Value counts,
             mlir::RankedTensorType query, mlir::RankedTensorType key,
             std::optional<MaskAttrInterface> mask, mlir::Value lengths,
             mlir::Region &score, std::optional<ScheduleAttr> schedule,
             std::optional<llvm::ArrayRef<int64_t>> blockSizes,
             BlockUser user = BlockUser::Attention);

/// Checks where the first element of a step is.
template <typename Op> mlir::LogicalResult verifyPosition(Op op) {
  if (op.getStaticPosition().size() != 4)
    return op.emitOpError("'at' takes the four indices [b, h, i, j]");
  if (op.getStaticExtents().size() != 2)
    return op.emitOpError("'of' takes the two lengths [nq, nk]");
  for (int64_t value : llvm::concat<const int64_t>(op.getStaticPosition(),
                                                   op.getStaticExtents()))
    if (!mlir::ShapedType::isDynamic(value) && value < 0)
      return op.emitOpError("'at' and 'of' must not be negative, got ")
             << value;
  auto countDynamic = [](llvm::ArrayRef<int64_t> values) {
    return static_cast<size_t>(
        llvm::count_if(values, mlir::ShapedType::isDynamic));
  };
  if (countDynamic(op.getStaticPosition()) != op.getPosition().size() ||
      countDynamic(op.getStaticExtents()) != op.getExtents().size())
    return op.emitOpError("'at' and 'of' need one operand per dynamic entry");
  return llvm::success();
}

} // namespace flash::detail

#endif // FLASH_LIB_DIALECT_FLASH_IR_OPRULES_H
