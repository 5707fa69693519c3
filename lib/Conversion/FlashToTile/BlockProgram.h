//===- BlockProgram.h - The body of a parallel loop as a kernel -*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_FLASHTOTILE_BLOCKPROGRAM_H
#define FLASH_LIB_CONVERSION_FLASHTOTILE_BLOCKPROGRAM_H

#include "OnlineStep.h"
#include "RowSoftmax.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace flash {

/// The type as which a kernel sees a tensor: strides are known at run time
/// only, but the last dimension is contiguous.
mlir::MemRefType getKernelMemRefType(mlir::RankedTensorType type);

/// Translates the body of one scf.forall into a kernel.
class BlockProgram {
public:
  /// `kernel` is empty and has no arguments yet.
  BlockProgram(mlir::scf::ForallOp forall, mlir::gpu::GPUFuncOp kernel);

  /// Translates; failure has been reported at the op that has no translation.
  mlir::LogicalResult run();

  /// Whether a loop is one over tiles of queries, keys or rows.
  static bool isTranslated(mlir::scf::ForallOp forall);

  /// The values of the program that the kernel's arguments stand for, in their
  /// order. Of the loop's outputs, the block arguments stand here.
  llvm::ArrayRef<mlir::Value> getCaptures() const { return captures; }
  int64_t getNumWarps() const { return types.warps; }

private:
  /// Which part of the state a value of the program is.
  enum class Part { Acc, Max, Sum };

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  /// What an op on whole rows reads, a softmax its scores and a flash.combine
  /// its outputs; null if `op` is neither.
  static mlir::Value getRowInput(mlir::Operation *op);
  /// How the block works: from the first op that says so.
  void chooseTypes();
  /// The kernel's argument for a value from outside the loop.
  mlir::Value capture(mlir::Value value, mlir::Type type);
  mlir::Value captureTensor(mlir::Value tensor);
  /// The kernel's value for a scalar of the program.
  mlir::Value lookup(mlir::Value value);
  mlir::Value lookup(mlir::OpFoldResult value);

  /// Gives every value that is part of a state its part.
  mlir::LogicalResult findParts();
  /// The loop's induction variables from the block's number.
  void emitPosition();
  mlir::LogicalResult translate(mlir::Block &block);
  mlir::LogicalResult translate(mlir::Operation &op);
  mlir::LogicalResult translateFor(mlir::scf::ForOp loop);
  mlir::LogicalResult translateIf(mlir::scf::IfOp choice);
  mlir::LogicalResult translateStep(OnlineAttentionOp step);
  /// Refuses products whose tiles cannot be register tiles.
  mlir::LogicalResult checkContracts();
  mlir::LogicalResult translateContract(mlir::linalg::ContractOp contract);
  mlir::LogicalResult translateMap(mlir::linalg::GenericOp generic);
  mlir::LogicalResult translateElementwise(mlir::Operation &op);
  /// The softmax of rows, which writes its results to where they are stored.
  mlir::LogicalResult translateSoftmax(mlir::Operation &op);
  mlir::LogicalResult translateStores(mlir::scf::InParallelOp stores);
  /// The same for a combination of rows.
  mlir::LogicalResult translateCombine(CombineOp combine);
  /// Finds where the results of an op on rows are stored.
  mlir::LogicalResult findStores(mlir::Operation &op,
                                 llvm::ArrayRef<MemoryPlace *> places);
  llvm::SmallVector<mlir::Value>
  lookupAll(llvm::ArrayRef<mlir::OpFoldResult> values) {
    return llvm::map_to_vector(
        values, [&](mlir::OpFoldResult entry) { return lookup(entry); });
  }
  void copyScalarOp(mlir::OpBuilder &builder, mlir::Operation &op,
                    mlir::IRMapping &map);

  /// The kernel's value for a part of a state, created if it is an initial one.
  mlir::FailureOr<mlir::Value> getState(mlir::Value value);
  mlir::FailureOr<mlir::Value> initialState(mlir::Value value, Part part);
  mlir::Type getStateType(mlir::Value value);
  /// Of a tile of the program, the type in registers.
  mlir::RankedTensorType getFragmentType(mlir::Value tile);

  /// The slice that a padded or whole tile comes from.
  static mlir::tensor::ExtractSliceOp getSlice(mlir::Value tile);
  /// Fetches the tile that a slice takes, into shared memory.
  mlir::FailureOr<mlir::Value> fetch(mlir::Value tile);
  /// Copies the ops that compute a scalar inside `loop` to the insertion point.
  mlir::Value rematerialize(mlir::Value value, mlir::scf::ForOp loop);

  mlir::scf::ForallOp forall;
  mlir::gpu::GPUFuncOp kernel;
  mlir::OpBuilder b;
  mlir::Location loc;
  BlockTypes types;
  mlir::IRMapping mapping;
  llvm::SmallVector<mlir::Value> captures;
  llvm::MapVector<mlir::Value, Part> parts;
  llvm::DenseMap<mlir::Value, mlir::Value> tiles; ///< Fetched for all steps.
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_FLASHTOTILE_BLOCKPROGRAM_H
