//===- Emulate.h - What the patterns of tile-emulate share ------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H
#define FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H

#include "flash/Conversion/FunctionPattern.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace flash::tile {

/// The types of the emulated program:
///
/// | tile                 | becomes                                           |
/// |----------------------|---------------------------------------------------|
/// | tensor with a layout | the tensor without                                |
/// | `!tile.smem`         | memref, i64: the lease of its step, 0 for a fetch |
/// | `!tile.ring`         | memref of all stages, i64: the ring's number      |
/// | `!tile.pending`      | tensor, i64, i64: the leases of a and b           |
class EmulationTypes : public mlir::TypeConverter {
public:
  EmulationTypes();
};

/// A tile in memory as the patterns see it, inside whatever surrounds it.
mlir::MemRefType getEmulatedType(SmemType type);
mlir::RankedTensorType getEmulatedType(mlir::RankedTensorType type);

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
  /// and end with the location of `op`.
  mlir::Value create(mlir::OpBuilder &b, mlir::Operation *op,
                     llvm::StringRef name, mlir::Type result,
                     mlir::ValueRange operands);
  /// Says how many roles the block of `op` has from here on, that one begins,
  /// and that one ends.
  void startRoles(mlir::OpBuilder &b, mlir::Operation *op, int64_t count);
  void enterRole(mlir::OpBuilder &b, WarpSpecializeOp roles, unsigned role);
  void finishRole(mlir::OpBuilder &b, mlir::Operation *op);
  /// How many roles give back the stages of a ring.
  llvm::DenseMap<mlir::Operation *, int64_t> readers;
  /// Checks that the tile of `lease` may be read.
  void checkLease(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value lease);

private:
  /// A pointer to the text.
  mlir::Value getText(mlir::OpBuilder &b, mlir::Location loc,
                      llvm::StringRef text);
  /// The state of the block that `op` is part of.
  mlir::Value getBlock(mlir::Operation *op);
  /// A pointer to the text "tile.load at file:line:column".
  mlir::Value getLocationText(mlir::OpBuilder &b, mlir::Operation *op);

  mlir::ModuleOp module;
  /// The block's state, for the loop over all blocks.
  llvm::DenseMap<mlir::Operation *, mlir::Value> blocks;
  llvm::StringMap<mlir::LLVM::GlobalOp> locations;
};

/// Emits what one op becomes.
class EmulationBuilder : public mlir::ImplicitLocOpBuilder {
public:
  EmulationBuilder(mlir::OpBuilder &b, mlir::Operation *op,
                   EmulationCalls &calls)
      : ImplicitLocOpBuilder(op->getLoc(), b), op(op), calls(calls) {}

  /// Calls a function that begins with the op's block, see EmulationCalls.
  mlir::Value call(llvm::StringRef name, mlir::ValueRange operands,
                   mlir::Type result = mlir::Type()) {
    return calls.create(*this, op, name, result, operands);
  }
  void checkLease(mlir::Value lease) { calls.checkLease(*this, op, lease); }
  /// Has the op recorded, and the tile that it reads, if any, by its lease.
  void note(mlir::Value lease = mlir::Value()) {
    call("note",
         lease ? lease
               : mlir::arith::ConstantIntOp::create(*this, 0, 64).getResult());
  }

  mlir::Operation *op;
  EmulationCalls &calls;
};

/// What an op becomes, see FunctionPattern.
template <typename Op, typename Operands>
using Emulation = llvm::SmallVector<mlir::Value> (*)(Op, Operands,
                                                     EmulationBuilder &);

template <typename... Op, typename... Operands>
void addEmulations(mlir::RewritePatternSet &patterns,
                   const EmulationTypes &types, EmulationCalls &calls,
                   Emulation<Op, Operands>... emulate) {
  (patterns.add<FunctionPattern<Op, Operands>>(
       types, patterns.getContext(), /*benefit=*/1,
       [&calls, emulate](Op op, Operands operands,
                         mlir::ConversionPatternRewriter &rewriter) {
         EmulationBuilder b(rewriter, op, calls);
         return emulate(op, operands, b);
       }),
   ...);
}

/// Patterns of shared memory, rings and stores.
void populateMemoryEmulation(const EmulationTypes &types, EmulationCalls &calls,
                             mlir::RewritePatternSet &patterns);
/// Patterns of products and register tiles.
void populateRegisterEmulation(const EmulationTypes &types,
                               EmulationCalls &calls,
                               mlir::RewritePatternSet &patterns);

/// A linalg.generic with one output, which starts as `init`: a tensor, whose
/// result is given, or memory. Loops that the last map does not mention are
/// reductions.
using BodyBuilder = llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &,
                                                   mlir::ValueRange)>;
mlir::Value createGeneric(mlir::ImplicitLocOpBuilder &b,
                          mlir::ValueRange inputs, mlir::Value init,
                          llvm::ArrayRef<mlir::AffineMap> maps,
                          BodyBuilder body);

/// Some columns of a tile in memory, from the first column of a panel on; of
/// the first panel if there is no `panel`.
mlir::Value takeColumns(mlir::ImplicitLocOpBuilder &b, mlir::Value buffer,
                        SmemType type, mlir::ValueRange panel, int64_t columns);

/// What a tile in memory holds at this point of the program, as a tensor of its
/// own; transposed, if so wanted, and with each element as `convert` makes it.
using ConvertElement =
    llvm::function_ref<mlir::Value(mlir::ImplicitLocOpBuilder &, mlir::Value)>;
mlir::Value readTile(mlir::ImplicitLocOpBuilder &b, mlir::Value buffer,
                     bool transpose, mlir::Type elementType,
                     ConvertElement convert);

/// Fills a tile, a tensor or memory as for `createGeneric`, with the elements
/// of a quantized one, each times the scale of its row.
mlir::Value dequantize(EmulationBuilder &b, mlir::Region &scaleOfRow,
                       mlir::Value tile, mlir::Value destination);

/// Where a row of values of 8 bits is among the columns of what
/// `flash.interleave` gives.
mlir::Value emitInterleaved(mlir::ImplicitLocOpBuilder &b, mlir::Value index);

/// As `readTile`, of the columns of a tile as rows, which are interleaved in
/// the tile and not in the result.
mlir::Value readInterleaved(mlir::ImplicitLocOpBuilder &b, mlir::Value buffer,
                            mlir::Type elementType, ConvertElement convert);

} // namespace flash::tile

#endif // FLASH_LIB_CONVERSION_TILEEMULATION_EMULATE_H
