//===- BlockConverter.h - The body of a parallel loop as a kernel -*- C++ -*-=//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_BLOCKCONVERTER_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_BLOCKCONVERTER_H

#include "BodyEmitter.h"
#include "Layouts.h"
#include "MemoryTile.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace flash {

/// A value of the program that an argument of a kernel stands for. The kernel
/// sees the dimensions of a tensor in an order of its own, so that the
/// dimensions of a tile come last.
struct Capture {
  mlir::Value value;
  llvm::SmallVector<unsigned> order;
};

/// Converts the body of one scf.forall into a kernel, operation by operation.
class BlockConverter {
public:
  /// `kernel` is empty and has no arguments yet.
  BlockConverter(mlir::scf::ForallOp forall, mlir::gpu::GPUFuncOp kernel);

  /// Fails where an operation has no conversion, after an error at it.
  mlir::LogicalResult run();

  /// What the kernel's arguments stand for, in their order. Of the loop's
  /// outputs, the block arguments stand here.
  llvm::ArrayRef<Capture> getCaptures() const { return captures; }
  int64_t getNumWarps() const { return layouts.getNumWarps(); }

private:
  //===--------------------------------------------------------------------===//
  // Values (BlockConverter.cpp)
  //===--------------------------------------------------------------------===//

  mlir::Value constant(int64_t value);
  mlir::Value constantF32(double value);
  /// The kernel's argument for a tensor, whose last dimension is contiguous.
  mlir::Value capture(mlir::Value tensor, llvm::ArrayRef<unsigned> order = {});
  /// The kernel's value for a scalar of the program.
  mlir::Value lookup(mlir::Value scalar);
  mlir::Value lookup(mlir::OpFoldResult scalar);
  /// The registers of a tile, in the layout of `type`, for `user`. Fails after
  /// an error where the tile has none, or another layout.
  mlir::FailureOr<mlir::Value> getRegisters(mlir::Value tile,
                                            mlir::RankedTensorType type,
                                            mlir::Operation *user);
  /// The registers of a tile of memory or of registers, or of what it is
  /// transposed; a vector is `of` rows or columns.
  mlir::FailureOr<mlir::Value> getRegisters(mlir::Value tile, VectorOf of,
                                            bool transposed,
                                            mlir::Operation *user);
  /// The type of a tile in registers; fails after an error at `user`.
  mlir::FailureOr<mlir::RankedTensorType> getType(mlir::Value tile,
                                                  mlir::Operation *user);
  mlir::InFlightDiagnostic refuseShape(mlir::RankedTensorType type,
                                       mlir::Operation *user);
  /// Whether the tensor is an output of the loop.
  bool isOutput(mlir::Value memory);

  //===--------------------------------------------------------------------===//
  // Operations (BlockConverter.cpp)
  //===--------------------------------------------------------------------===//

  /// The loop's induction variables from the block's number.
  void emitPosition();
  /// To how many tiles of sums a tile of the loop adds at most, or none where
  /// that does not matter. `trips` are the sizes of the grid.
  mlir::Value countAdditions(mlir::ValueRange trips);
  /// The order in which blocks take the tiles of the loop.
  tile::OrderAttr getBlockOrder();
  mlir::LogicalResult convert(mlir::Block &block);
  mlir::LogicalResult convert(mlir::Operation &op);
  mlir::LogicalResult convertLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult convertChoice(mlir::scf::IfOp choice);
  mlir::LogicalResult convertAny(AnyOp op);
  mlir::LogicalResult convertYield(mlir::scf::YieldOp yield);
  /// An operation on scalars, which may read memory; of a tile, it is refused.
  mlir::LogicalResult copyScalar(mlir::OpBuilder &builder, mlir::Operation &op,
                                 mlir::IRMapping &map);

  //===--------------------------------------------------------------------===//
  // Memory (Memory.cpp)
  //===--------------------------------------------------------------------===//

  /// Where a tile lies, as copies and stores say it.
  struct TileAddress {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> indices;
    /// How many rows exist, or elements of a vector, and how many columns; null
    /// if all do.
    mlir::Value existing, columns;
    /// How many of them lie along the last of two dimensions; null if all.
    mlir::IntegerAttr packed;
  };
  /// The address of a tile of `shape` whose last dimension is the last
  /// dimension of the memory.
  TileAddress getAddress(const MemoryTile &tile, llvm::ArrayRef<int64_t> shape);
  void setInsertionPointAt(mlir::Operation *definition, bool isEarly);
  /// A tile of memory that the loop may read.
  mlir::FailureOr<MemoryTile> getInput(mlir::Value tile, mlir::Operation *user);
  /// The matrix in shared memory. If warpgroups divide its columns, each part
  /// begins with a panel, and so do keys whose finite copies are divided.
  tile::SmemType getSharedType(mlir::Value matrix);
  /// The tile in shared memory; null where copies cannot make it.
  mlir::FailureOr<mlir::Value> fetch(mlir::Value tile, mlir::Operation *user);
  /// The tile, or what it is transposed, read element by element.
  mlir::FailureOr<mlir::Value> read(mlir::Value tile,
                                    mlir::RankedTensorType type,
                                    mlir::Operation *user, bool transposed);
  /// The tile read as warp rows, or a value for each of their rows; null where
  /// its elements are no neighbours in memory.
  mlir::FailureOr<mlir::Value> readWarpRows(mlir::Value tile,
                                            mlir::RankedTensorType type,
                                            mlir::Operation *user);
  /// A vector of memory in registers, of fragments.
  mlir::FailureOr<mlir::Value> loadVector(mlir::Value tile,
                                          mlir::RankedTensorType type,
                                          mlir::Operation *user);
  /// A tile of memory in registers, by the shortest way.
  mlir::FailureOr<mlir::Value> load(mlir::Value tile,
                                    mlir::RankedTensorType type,
                                    mlir::Operation *user,
                                    bool transposed = false);
  /// A tile of registers in shared memory, and from there transposed.
  mlir::FailureOr<mlir::Value> share(mlir::Value registers,
                                     mlir::Operation *user);
  mlir::FailureOr<mlir::Value> transpose(mlir::Value registers,
                                         mlir::Operation *user);
  /// A tile of memory or of registers in shared memory.
  mlir::FailureOr<mlir::Value> getSharedTile(mlir::Value tile,
                                             mlir::Operation *user);
  /// The tile itself, or a tile that it is some columns of: from a panel on, or
  /// from the first one on if that is null.
  struct SharedColumns {
    mlir::Value tile, panel;
  };
  mlir::FailureOr<SharedColumns> getSharedColumns(mlir::Value tile,
                                                  mlir::Operation *user);
  /// Stores a tile of memory to its part of an output, interleaved.
  mlir::LogicalResult storeInterleaved(mlir::Operation *op,
                                       InterleaveOp interleave,
                                       const MemoryTile &destination);
  /// Stores a tile in registers to its part of an output.
  mlir::LogicalResult store(mlir::Operation *op, mlir::Value source,
                            const MemoryTile &destination);
  /// A store of one element, which all threads make alike.
  mlir::LogicalResult convertInsertion(mlir::tensor::InsertOp op);
  /// The insertion of a row of sums, by a role of its own.
  mlir::LogicalResult convertInsertion(InsertDiagonalsOp op);
  /// Where the element lies that `indices`, of the first dimensions, name in
  /// the part `dest` of an output.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  getElementIndices(mlir::Operation *op, mlir::Value dest,
                    mlir::OperandRange indices, mlir::Value &memory);
  mlir::LogicalResult convertInsertion(mlir::tensor::InsertSliceOp op);
  mlir::LogicalResult convertInsertion(mlir::tensor::ParallelInsertSliceOp op);
  mlir::LogicalResult convertIsFinite(IsFiniteOp op);
  mlir::LogicalResult convertZeroNonfinite(ZeroNonfiniteOp op);
  /// A quantized tile of memory in shared memory, dequantized.
  mlir::FailureOr<mlir::Value> dequantize(DequantizeTileOp op);

  //===--------------------------------------------------------------------===//
  // Sums that blocks add to (Contributions.cpp)
  //===--------------------------------------------------------------------===//

  /// Whether blocks add to sums of other blocks, and whether these then have
  /// wide gradients of their own.
  bool addsToOthers();
  bool hasWideGradients();
  mlir::LogicalResult convertContribution(ContributeOp op);
  /// Checks what an addition takes and in which order; its tiles were added
  /// when they were made.
  mlir::LogicalResult verifyAddition(ParallelAddOp op);

  //===--------------------------------------------------------------------===//
  // linalg (Products.cpp, Generics.cpp)
  //===--------------------------------------------------------------------===//

  /// The first operand of a product, or what it is transposed: in shared memory
  /// where it is copied there, else in registers.
  mlir::FailureOr<mlir::Value> getFirstFactor(mlir::Value tile, bool transposed,
                                              mlir::Operation *user);
  mlir::LogicalResult convertLinalg(mlir::linalg::LinalgOp op);
  mlir::LogicalResult convertFill(mlir::linalg::FillOp fill);
  mlir::LogicalResult convertProduct(mlir::linalg::LinalgOp op);
  /// A sum of terms other than products of two elements, one after the other.
  mlir::LogicalResult convertSumOfTerms(mlir::linalg::LinalgOp op);
  mlir::LogicalResult convertElementwise(mlir::linalg::LinalgOp op);
  mlir::LogicalResult convertReduction(mlir::linalg::LinalgOp op);
  mlir::FailureOr<mlir::Value> convertReduction(mlir::linalg::LinalgOp op,
                                                unsigned number);
  mlir::LogicalResult convertTensorArithmetic(mlir::Operation &op);
  /// The registers of an operand of an operation whose loops `rows` and
  /// `columns` go through matrices: a matrix, a vector or a scalar.
  mlir::FailureOr<mlir::Value> getOperand(mlir::linalg::LinalgOp op,
                                          mlir::OpOperand &operand,
                                          unsigned rows, unsigned columns);
  /// Gives the body the operands that it reads.
  mlir::LogicalResult setArguments(BodyEmitter &body, mlir::linalg::LinalgOp op,
                                   llvm::ArrayRef<mlir::OpOperand *> operands,
                                   unsigned rows, unsigned columns);
  BodyEmitter createBody(mlir::linalg::LinalgOp op,
                         llvm::ArrayRef<int64_t> shape, VectorOf of);

  mlir::scf::ForallOp forall;
  mlir::gpu::GPUFuncOp kernel;
  mlir::OpBuilder b;
  mlir::Location loc;
  Layouts layouts;
  mlir::IRMapping mapping;
  /// Which tile of the grid the block takes.
  tile::PositionOp blockPosition;
  llvm::SmallVector<Capture> captures;
  /// The fetches, by the values of the program and by what these come to, and
  /// the tiles that were read as warp rows, and vectors, and tiles of registers
  /// in shared memory.
  llvm::DenseMap<mlir::Value, mlir::Value> fetched, warpRows, vectors, shared;
  llvm::SmallVector<std::pair<llvm::SmallVector<MemoryTile>, tile::FetchOp>>
      fetches;
  /// Where a tile of memory is made: the block, and its last operation then.
  llvm::DenseMap<mlir::Operation *, std::pair<mlir::Block *, mlir::Operation *>>
      insertionPoints;
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_BLOCKCONVERTER_H
