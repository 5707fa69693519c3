//===- MemoryTile.h - Tiles that lie in global memory -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {

/// A tile of the program that lies in a tensor from outside of the loop: what
/// slices, casts and paddings of such a tensor come to.
struct MemoryTile {
  /// Defined outside of the loop, or an output of it.
  mlir::Value memory;
  /// Of the first element, in each dimension of the memory.
  llvm::SmallVector<mlir::OpFoldResult> offsets;
  /// Of each dimension of the tile: the dimension of the memory along which it
  /// lies, and how many of its elements exist. The others, behind these, are
  /// zero unless the padding may be anything.
  struct Dim {
    unsigned inMemory;
    mlir::OpFoldResult existing;
  };
  llvm::SmallVector<Dim> dims;
  bool paddedWithAnything = false;
  /// The last of the operations that make the tile.
  mlir::Operation *definition = nullptr;
};

/// What an operation that takes or writes part of a tensor says is not of a
/// form that a block program has: which rule it breaks.
mlir::InFlightDiagnostic refuse(mlir::Operation *op, const llvm::Twine &rule);

/// The tensor before its type became more or less static.
mlir::Value stripCasts(mlir::Value tensor);

/// Whether `tile` is made of a tensor from outside of `loop`, or of one of its
/// outputs, by slices, casts and paddings alone.
bool isMemoryTile(mlir::Value tile, mlir::scf::ForallOp loop);

/// The tile of memory that a value is of which `isMemoryTile` holds. Fails,
/// after an error at the operation, where one of these is of a form that block
/// programs lack: a stride, a padding in front, or with another value than
/// zero.
llvm::FailureOr<MemoryTile> getMemoryTile(mlir::Value tile,
                                          mlir::scf::ForallOp loop);

/// The same for the place in an output that an insertion writes to.
llvm::FailureOr<MemoryTile>
getMemoryTile(mlir::tensor::ParallelInsertSliceOp store);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H
