//===- RoleSlice.h - What some warps do of a kernel -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_ROLESLICE_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_ROLESLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace flash::tile {

/// Clones what some warps do: the ops that are their own, the loops and
/// branches around these, and the scalars that all of it needs. Tiles that
/// loops carry, and ops on tiles that are not their own, are left out.
class RoleSlice {
public:
  using IsOwn = std::function<bool(mlir::Operation *)>;
  /// Emits what the warps do for an op of their own. Nothing of its results is
  /// there for other ops.
  using EmitOwn = std::function<void(mlir::OpBuilder &, mlir::Operation &,
                                     const mlir::IRMapping &)>;

  /// Why an op cannot be cloned.
  struct Fault {
    mlir::Operation *op = nullptr;
    /// An operand that only other warps compute. Without one, the op has ops
    /// of these warps inside, and is neither a loop nor a branch.
    mlir::Value operand;
  };

  /// With `firstWarp` the warps have the register tiles that lie in warps from
  /// it on, too. Without `emitOwn` their own ops are cloned.
  RoleSlice(mlir::OpBuilder b, IsOwn isOwn,
            std::optional<int64_t> firstWarp = std::nullopt,
            EmitOwn emitOwn = nullptr)
      : b(b), isOwn(std::move(isOwn)), emitOwn(std::move(emitOwn)),
        firstWarp(firstWarp) {}

  /// Clones the op, if the warps do it, to the insertion point. Operands that
  /// were not cloned before are taken as they are.
  mlir::LogicalResult clone(mlir::Operation &op);
  /// Clones a block of a loop or branch to the start of `to`, which yields the
  /// results with the numbers `kept`.
  mlir::LogicalResult cloneBody(mlir::Block &from, mlir::Block &to,
                                llvm::ArrayRef<unsigned> kept);
  /// The numbers of the types whose values the warps have.
  llvm::SmallVector<unsigned> getKept(mlir::TypeRange types);
  /// What was wrong, after a failure. What was cloned before it is still there.
  Fault getFault() { return fault; }

private:
  bool containsOwn(mlir::Operation &op);
  mlir::LogicalResult cloneLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult cloneChoice(mlir::scf::IfOp choice);
  /// Fails if one of the values, operands of the op, is missing.
  mlir::LogicalResult checkOperands(mlir::Operation &op,
                                    mlir::ValueRange operands);
  /// The values themselves, or their clones.
  llvm::SmallVector<mlir::Value> lookup(mlir::ValueRange values);

  mlir::OpBuilder b;
  IsOwn isOwn;
  EmitOwn emitOwn;
  std::optional<int64_t> firstWarp;
  mlir::IRMapping mapping;
  /// What only other warps compute.
  llvm::DenseSet<mlir::Value> missing;
  Fault fault;
};

/// Whether values of the type belong to the threads of a role only: register
/// tiles, pending ones, and tiles in shared memory.
bool isTile(mlir::Type type);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_ROLESLICE_H
