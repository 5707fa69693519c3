//===- NaiveBuilder.h - What naive programs are made of ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The naive programs of attention and of its gradients are linalg on the scores
// of a piece of the problem. The order of the loops of their products is chosen
// for plain loops: the innermost one is parallel and reads and writes memory
// contiguously, so LLVM vectorises it without having to reassociate a sum. For
// products with a transposed operand this takes a transposed copy.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_TRANSFORMS_NAIVEBUILDER_H
#define FLASH_DIALECT_FLASH_TRANSFORMS_NAIVEBUILDER_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {

/// Where the scores that exist at a time are in the problem. The leading loops
/// of a generic are (b, h) for the whole problem, and none for a block of
/// queries of one head.
struct NaivePosition {
  unsigned lead = 0;
  /// The position of a block, without leading loops.
  mlir::Value batch, head, firstQuery;
};

class NaiveBuilder {
public:
  explicit NaiveBuilder(AttentionOpInterface op);

protected:
  using Value = mlir::Value;
  using OpBuilder = mlir::OpBuilder;
  using Location = mlir::Location;
  using Body =
      llvm::function_ref<Value(OpBuilder &, Location, mlir::ValueRange)>;

  static constexpr auto parallel = mlir::utils::IteratorType::parallel;
  static constexpr auto reduction = mlir::utils::IteratorType::reduction;

  //===--------------------------------------------------------------------===//
  // Tensors
  //===--------------------------------------------------------------------===//

  Value empty(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type type);
  /// A tensor of f32.
  Value fill(llvm::ArrayRef<mlir::OpFoldResult> sizes, double value);
  /// A map from `numLoops` loops to `results`.
  mlir::AffineMap map(unsigned numLoops,
                      llvm::ArrayRef<mlir::AffineExpr> results) {
    return mlir::AffineMap::get(numLoops, 0, results, b.getContext());
  }
  Value generic(llvm::ArrayRef<mlir::AffineMap> maps,
                llvm::ArrayRef<mlir::utils::IteratorType> iterators,
                mlir::ValueRange inputs, Value init, Body body);
  /// A copy in f32 whose last two dimensions are exchanged.
  Value transposed(Value tensor);
  /// How many of `rowBlock` queries from `first` on exist.
  mlir::OpFoldResult getRows(Value first, int64_t rowBlock);
  /// Dimensions from 2 on of `tensor` at (batch, head), `count` from `row` on
  /// of the first of them.
  Value slice(Value tensor, Value batch, mlir::OpFoldResult head,
              mlir::OpFoldResult row, mlir::OpFoldResult count);
  /// The key head that a query head reads.
  mlir::OpFoldResult keyHeadOf(Value head);
  Value keyHeadOf(OpBuilder &nested, Location loc, Value head);

  //===--------------------------------------------------------------------===//
  // Scalars, for the bodies
  //===--------------------------------------------------------------------===//

  Value constant(OpBuilder &nested, double value);
  Value minusInfinity(OpBuilder &nested);
  static Value widen(OpBuilder &nested, Location loc, Value value);
  /// Rounded from f32 to the operands' elements.
  Value narrow(OpBuilder &nested, Location loc, Value value);
  /// The scale in f32; one that f32 cannot hold is written in f64 first, so
  /// that flash-promote-to-f64 sees all of it.
  Value scale(OpBuilder &nested);
  Value sink(OpBuilder &nested, Location loc, Value head) {
    return mlir::tensor::ExtractOp::create(nested, loc, op.getSink(), head);
  }
  /// The position that the loops of a generic have reached. The loops after
  /// the leading ones are the row and, if `withKey`, the key.
  ScorePosition position(OpBuilder &nested, Location loc,
                         const NaivePosition &position, bool withKey);
  /// Whether mask and lengths keep the element at a position; null if they keep
  /// all. `blockLength` is the length of the block's batch, null if that is to
  /// be read.
  Value isInMask(OpBuilder &nested, Location loc, Value blockLength,
                 const ScorePosition &at);
  /// Whether it takes part, which `inMask` is a condition for; null if every
  /// one does.
  Value takesPart(OpBuilder &nested, Location loc, Value inMask,
                  const ScorePosition &at);

  AttentionOpInterface op;
  OpBuilder b;
  Location loc;
  mlir::Type f32, elementType;
  Value numQueries, numKeys;

private:
  /// What lists of blocks leave of each: 0 for nothing, 1 for a part and 2 for
  /// all, `[B or 1, H or 1, blocks of queries, blocks of keys]`.
  Value expandBlocks(Value list, Value counts);
  /// Whether the element's block is left in part, and whether whole; nulls
  /// where there are no lists.
  std::pair<Value, Value> findBlock(OpBuilder &nested, Location loc,
                                    const ScorePosition &at);

  Value blocks;
};

} // namespace flash

#endif // FLASH_DIALECT_FLASH_TRANSFORMS_NAIVEBUILDER_H
