//===- Emulate.h - What the patterns of tile-emulate share ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H
#define FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace flash::tile {

/// The types of the emulated program:
///
/// | tile                 | becomes                                           |
/// |----------------------|---------------------------------------------------|
/// | tensor with a layout | the tensor without                                |
/// | `!tile.smem`         | memref, i64: the lease of its step, 0 for a fetch |
/// | `!tile.ring`         | memref of all stages, i64: the ring's number | |
/// `!tile.pending`      | tensor, i64, i64: the leases of a and b           |
class EmulationTypes : public mlir::TypeConverter {
public:
  EmulationTypes();
};

/// A tile in memory as the patterns see it, inside whatever surrounds it.
mlir::MemRefType getEmulatedType(SmemType type);

/// Emits calls of the run-time library (flash/Runtime/Emulation.h).
class EmulationCalls {
public:
  explicit EmulationCalls(mlir::ModuleOp module) : module(module) {}

  /// Starts a block, whose number is given, at the start of `loop`.
  void beginBlock(mlir::OpBuilder &b, mlir::scf::ForallOp loop,
                  mlir::Value number);
  void endBlock(mlir::OpBuilder &b, mlir::scf::ForallOp loop);

  /// Calls `flash_emulation_<name>`; indices are passed as i64. Gives the
  /// result, or null if `result` is.
  mlir::Value create(mlir::OpBuilder &b, mlir::Location loc,
                     llvm::StringRef name, mlir::Type result,
                     mlir::ValueRange operands);
  /// As above, for the library's functions that begin with the block of `op`
  /// and end with the place of `op`.
  mlir::Value create(mlir::OpBuilder &b, mlir::Operation *op,
                     llvm::StringRef name, mlir::Type result,
                     mlir::ValueRange operands);
  /// Says how many roles the block of `op` has from here on, and that one ends.
  void startRoles(mlir::OpBuilder &b, mlir::Operation *op, int64_t count);
  void finishRole(mlir::OpBuilder &b, mlir::Operation *op);
  /// How many roles give back the stages of a ring.
  llvm::DenseMap<mlir::Operation *, int64_t> readers;
  /// Checks that the tile of `lease` may be read.
  void checkLease(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value lease);

private:
  /// The state of the block that `op` is part of.
  mlir::Value getBlock(mlir::Operation *op);
  /// A pointer to the text "tile.load at file:line:column".
  mlir::Value getPlace(mlir::OpBuilder &b, mlir::Operation *op);

  mlir::ModuleOp module;
  /// The block's state, for the loop over all blocks.
  llvm::DenseMap<mlir::Operation *, mlir::Value> blocks;
  llvm::StringMap<mlir::LLVM::GlobalOp> places;
};

/// A pattern that emits calls.
template <typename Op> struct EmulationPattern : mlir::OpConversionPattern<Op> {
  EmulationPattern(const EmulationTypes &types, mlir::MLIRContext *context,
                   EmulationCalls &calls)
      : mlir::OpConversionPattern<Op>(types, context), calls(calls) {}
  EmulationCalls &calls;
};

/// Patterns of shared memory, rings and stores.
void populateMemoryEmulation(const EmulationTypes &types, EmulationCalls &calls,
                             mlir::RewritePatternSet &patterns);
/// Patterns of products and register tiles.
void populateRegisterEmulation(const EmulationTypes &types,
                               EmulationCalls &calls,
                               mlir::RewritePatternSet &patterns);

/// What a tile in memory holds at this point of the program, as a tensor of its
/// own; transposed, if so wanted, and with each element as `convert` makes it.
using ConvertElement = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::Value)>;
mlir::Value readTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value buffer,
                     bool transpose, mlir::Type elementType,
                     ConvertElement convert);

} // namespace flash::tile

#endif // FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H
