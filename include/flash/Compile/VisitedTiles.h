//===- VisitedTiles.h - Tiles that a program visits -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_COMPILE_VISITEDTILES_H
#define FLASH_COMPILE_VISITEDTILES_H

#include "flash/Compile/CompileOptions.h"
#include "flash/Compile/TensorSpec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace flash::compile {

/// The numbers of tiles, pairs of a tile of queries and a tile of keys, of all
/// attentions of a program, in all batches and heads.
struct VisitedTiles {
  int64_t skipped = 0;  ///< Tiles that the program does not compute.
  int64_t unmasked = 0; ///< Full tiles, for which no mask is evaluated.
  int64_t masked = 0;   ///< Tiles whose mask is evaluated for each element.
  /// The sizes of the tiles of the last attention.
  int64_t queryTile = 0, keyTile = 0;
};

/// Counts the tiles of `entry` with the schedule that is chosen for `options`.
/// Only the mask decides which tiles are skipped, not lengths. `inputs` are the
/// types of the arguments. Fails if the program has no attention, if the sizes
/// of an attention do not follow from `inputs`, if it takes lists of blocks, or
/// if counting would take seconds.
llvm::Expected<VisitedTiles>
countVisitedTiles(mlir::ModuleOp program, llvm::StringRef entry,
                  llvm::ArrayRef<TensorSpec> inputs,
                  const CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_VISITEDTILES_H
