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

/// What a program does with the tiles of queries and keys of its attentions, in
/// all batches and heads.
struct VisitedTiles {
  int64_t skipped = 0;  ///< Nothing is computed.
  int64_t unmasked = 0; ///< No element is masked by the mask.
  int64_t masked = 0;   ///< The mask is evaluated for each element.
  /// The sizes of a tile, of the last attention.
  int64_t queryTile = 0, keyTile = 0;
};

/// Counts them for the schedule that `options` give `entry`, from its mask
/// alone: lengths cut off nothing. `inputs` are the arguments' sizes. Fails if
/// the program has no attention, if its sizes do not follow from `inputs`, or
/// if counting would take seconds.
llvm::Expected<VisitedTiles>
countVisitedTiles(mlir::ModuleOp program, llvm::StringRef entry,
                  llvm::ArrayRef<TensorSpec> inputs,
                  const CompileOptions &options);

} // namespace flash::compile

#endif // FLASH_COMPILE_VISITEDTILES_H
