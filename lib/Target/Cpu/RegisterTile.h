//===- RegisterTile.h - A linalg operation as register tiles ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_CPU_REGISTERTILE_H
#define FLASH_LIB_TARGET_CPU_REGISTERTILE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"
#include <map>
#include <optional>
#include <tuple>

namespace flash {

/// The vector registers of the machine.
struct VectorRegisters {
  int64_t bits = 512;
  int64_t count = 32;
};

/// A run of consecutive lanes held by one vector.
struct LaneChunk {
  int64_t offset;
  int64_t width;
};

/// Rewrites one linalg operation on buffers as loops over register tiles.
///
/// Dimensions play four parts. The lane dimension is the last one of the
/// outputs, contiguous there, and is cut into vectors. The row dimension is
/// the parallel one that some vector operand does not depend on, so that a
/// loaded vector serves several rows. Reductions are the innermost loops. All
/// other dimensions are plain outer loops.
class RegisterTiler {
public:
  RegisterTiler(mlir::RewriterBase &rewriter, mlir::linalg::LinalgOp op,
                VectorRegisters registers);

  /// Decides the parts of the dimensions and the tile; changes nothing.
  /// Fails if the operation is not covered.
  mlir::LogicalResult analyze();

  /// Lets a reduction start from a scalar instead of the output's contents.
  void setInitialValue(mlir::OpOperand &init, mlir::Value scalar) {
    initialValues[&init] = scalar;
  }
  /// The loops visit every element of the output.
  bool writesAll(mlir::OpOperand &init) {
    return llvm::all_of(op.getMatchingIndexingMap(&init).getResults(),
                        llvm::IsaPred<mlir::AffineDimExpr>);
  }
  bool isReduction() const { return !reductions.empty(); }

  /// Emits the loops before the operation.
  void emit();

private:
  /// What a value of the body varies with, as a set of bits.
  enum : unsigned { OnLane = 1, OnRow = 2 };

  /// The values already emitted, by body value, row and chunk.
  struct Cache {
    std::map<std::tuple<void *, int64_t, int64_t>, mlir::Value> values;
    std::map<std::pair<int64_t, int64_t>, mlir::Value> indices;
    std::map<std::pair<void *, int64_t>, mlir::Value> broadcasts;
  };

  mlir::LogicalResult chooseDimensions();
  mlir::LogicalResult analyzeBody();
  void chooseTile();
  int64_t laneBits();
  bool dependsOn(mlir::AffineMap map, int64_t dim) const;
  bool isContiguousInLane(mlir::OpOperand &operand);
  mlir::SmallVector<LaneChunk> chunksOf(int64_t begin, int64_t end) const;

  void emitOuter(mlir::ArrayRef<unsigned> dims);
  void emitLaneBlocks();
  void emitRowBlocks(mlir::ArrayRef<LaneChunk> chunks);
  void emitTile(int64_t rows, mlir::ArrayRef<LaneChunk> chunks);
  void emitLoop(mlir::Value begin, mlir::Value end, int64_t step,
                llvm::function_ref<void(mlir::Value)> body);

  mlir::Value constant(int64_t value);
  mlir::Value index(Cache &cache, unsigned dim, int64_t offset);
  mlir::SmallVector<mlir::Value> address(Cache &cache, mlir::OpOperand &operand,
                                         int64_t row, int64_t lane);
  mlir::Value load(Cache &cache, mlir::OpOperand &operand, int64_t row,
                   LaneChunk chunk);
  void store(Cache &cache, mlir::OpOperand &operand, mlir::Value vector,
             int64_t row, LaneChunk chunk);
  mlir::Value broadcast(Cache &cache, mlir::Value value, int64_t width);
  mlir::Value evaluate(Cache &cache, mlir::Value value, int64_t row,
                       LaneChunk chunk);
  mlir::Value evaluateOp(Cache &cache, mlir::Operation *bodyOp, int64_t row,
                         LaneChunk chunk);
  mlir::Value fuseMultiplyAdd(Cache &cache, mlir::Operation *bodyOp,
                              int64_t row, LaneChunk chunk);
  mlir::Value compareWithNumber(Cache &cache, mlir::Operation *bodyOp,
                                int64_t row, LaneChunk chunk);
  bool isSum(mlir::OpOperand &init);
  bool isLongSum(mlir::OpOperand &init);
  bool isAccumulated(mlir::Value value);

  mlir::RewriterBase &b;
  mlir::linalg::LinalgOp op;
  mlir::Location loc;
  VectorRegisters registers;

  mlir::SmallVector<mlir::AffineMap> maps;
  mlir::SmallVector<int64_t> sizes;
  mlir::SmallVector<mlir::Value> sizeValues;
  unsigned lane = 0;
  std::optional<unsigned> row;
  mlir::SmallVector<unsigned> outer, reductions;
  llvm::DenseMap<mlir::Value, unsigned> varies;
  llvm::DenseMap<mlir::OpOperand *, mlir::Value> initialValues;
  int64_t width = 16;
  int64_t tileRows = 1, tileChunks = 1;

  /// Where the loops stand: the base index of every dimension.
  mlir::SmallVector<mlir::Value> position;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_CPU_REGISTERTILE_H
