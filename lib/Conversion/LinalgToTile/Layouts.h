//===- Layouts.h - Which thread holds which element -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_LINALGTOTILE_LAYOUTS_H
#define FLASH_LIB_CONVERSION_LINALGTOTILE_LAYOUTS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace flash {

/// Along which dimension of a matrix the elements of a vector lie.
enum class VectorOf { Rows, Columns };

/// Chooses the layouts of a loop's tiles in registers. All matrices are
/// fragments (`#tile.fragment`), as the results of products are, or all are
/// warp rows (`#tile.warp_rows`), where the loop only works along rows and each
/// can be one warp's, or a few warps'. A vector has a value for each row, or
/// for each column, of the matrices that it is used with. So have the vectors
/// that it is used with in operations on vectors, in loops that carry it, and
/// in choices.
class Layouts {
public:
  /// `warps` is 0 where no schedule says.
  Layouts(mlir::scf::ForallOp loop, int64_t warps);

  /// How many warps share the tiles.
  int64_t getNumWarps() const { return warps; }
  /// Whether rows of matrices are in lanes of their own.
  bool isWarpRows() const { return vector > 0; }
  /// The rows that all warps hold together, for warp rows.
  int64_t getNumRowsAtOnce() const { return 32 * warps / lanes; }

  /// The type in registers of a tile of the program, or null where its shape is
  /// none that registers have.
  mlir::RankedTensorType getType(mlir::Value tile) const;
  /// The type of a tile of another shape or element.
  mlir::RankedTensorType getType(llvm::ArrayRef<int64_t> shape,
                                 mlir::Type element,
                                 VectorOf of = VectorOf::Rows) const;

private:
  void visit(mlir::Operation *op);
  void visit(mlir::linalg::LinalgOp op);
  /// Both vectors are of the same.
  void unite(mlir::Value x, mlir::Value y);
  void unite(mlir::ValueRange x, mlir::ValueRange y);
  void propagate();
  void chooseWarpRows(mlir::scf::ForallOp loop, int64_t wantedWarps);

  int64_t warps;
  /// The neighbours that a lane holds, and the lanes that share a row, for warp
  /// rows.
  int64_t vector = 0, lanes = 0;
  /// In the order of the program: where a vector is used as both, the first use
  /// decides.
  llvm::MapVector<mlir::Value, VectorOf> vectors;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> united;
};

} // namespace flash

#endif // FLASH_LIB_CONVERSION_LINALGTOTILE_LAYOUTS_H
