//===- MemoryTile.h - Tiles that lie in global memory -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace flash {

/// A tile of the program that lies in a tensor from outside of the loop: what
/// slices, casts and paddings of such a tensor come to.
struct MemoryTile {
  /// Defined outside of the loop, or an output of it.
  mlir::Value memory;
  /// The index of the first element, in each dimension of the memory, and the
  /// distance to the next.
  llvm::SmallVector<mlir::OpFoldResult> offsets, strides;
  /// For each dimension of the tile, the dimension of the memory along which it
  /// lies, how many elements are padding in front of those that exist, and how
  /// many exist. Behind them is padding again.
  struct Dim {
    unsigned inMemory;
    mlir::OpFoldResult low, existing;
    /// The elements of two dimensions of the memory may lie along it: so many
    /// of `innerInMemory` for each of the first; 0 if it is one.
    int64_t packed = 0;
    unsigned innerInMemory = 0;
  };
  llvm::SmallVector<Dim> dims;
  /// The value of the padding; null if there is none.
  mlir::Value padding;
  /// Whether the rows of the padding lie behind the memory's last one.
  bool toEnd = false;
  /// The last of the operations that make the tile.
  mlir::Operation *definition = nullptr;

  /// Whether nothing but the tile's first elements exist, next to each other.
  bool isDense() const;
  /// Whether copies to shared memory can make the tile: it is dense, and the
  /// rest is zero.
  bool isPlain() const;
  /// Whether rows of `columns` elements, which all exist, start at multiples of
  /// so many elements. Strides that are known at run time only are assumed to
  /// be such multiples: the call asserts that.
  bool isAligned(int64_t columns, int64_t elements) const;
  /// Whether two dimensions of the memory lie along one of the tile.
  bool isPacked() const {
    return llvm::any_of(dims, [](const Dim &dim) { return dim.packed > 0; });
  }
  /// Whether the elements that exist are the same, at the same positions.
  bool isSameAs(const MemoryTile &other) const;
};

/// What an operation that takes or writes part of a tensor says is not of a
/// form that a block program has: which rule it breaks.
mlir::InFlightDiagnostic refuse(mlir::Operation *op, const llvm::Twine &rule);

/// The tiles that a tile is put together from, one behind the other; else the
/// tile alone.
llvm::SmallVector<mlir::Value> getParts(mlir::Value tile);

/// Whether `tile` is made of a tensor from outside of `loop`, or of one of its
/// outputs, by slices, casts and paddings alone, or of such parts of as many
/// rows.
bool isMemoryTile(mlir::Value tile, mlir::scf::ForallOp loop);

/// The type of the tensor that such a tile is made of.
mlir::RankedTensorType getMemoryType(mlir::Value tile,
                                     mlir::scf::ForallOp loop);

/// The tile of memory that a value is for which `isMemoryTile` holds. Fails,
/// after an error at the operation, where one takes part of a padded tile, or
/// pads with what depends on the position.
llvm::FailureOr<MemoryTile> getMemoryTile(mlir::Value tile,
                                          mlir::scf::ForallOp loop);

/// The part of an output that an insertion writes to. `source` becomes what it
/// was before it was expanded and transposed.
llvm::FailureOr<MemoryTile>
getMemoryTile(mlir::tensor::ParallelInsertSliceOp store, mlir::Value &source);

/// Whether the index is known to be a multiple of `factor`.
bool isMultipleOf(mlir::OpFoldResult index, int64_t factor);

/// Whether the operation only changes where the elements of a tile of memory,
/// or of one that is stored, are taken to lie: rows are put together from two
/// dimensions, or taken apart.
bool isRowView(mlir::Operation *op);

/// Whether the operation takes the columns of a matrix apart into parts of
/// multiples of 16 bytes, which panels in shared memory can make up.
bool isPartsOfColumns(mlir::tensor::ExpandShapeOp op);

/// The slice of an output of `loop`, or the output, that `tensor` is after
/// tiles or elements were inserted into it, one after the other, in loops or
/// not; null if it is none. It is not in registers: each tile is stored to the
/// output.
mlir::Value getWrittenSlice(mlir::Value tensor, mlir::scf::ForallOp loop);

/// The addition of the contributions that become of `contributions` where
/// others are added to them, in loops or not; null if that is no such value.
ParallelAddOp getAddition(mlir::Value contributions);

/// The part of memory of a tile that is inserted into such a slice.
MemoryTile getMemoryTile(mlir::tensor::InsertSliceOp store,
                         mlir::scf::ForallOp loop);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_MEMORYTILE_H
