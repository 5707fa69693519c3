//===- Patterns.h - From tiles to the registers of a thread -----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILETONVX_PATTERNS_H
#define FLASH_LIB_CONVERSION_TILETONVX_PATTERNS_H

#include "flash/Conversion/FunctionPattern.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace flash {

/// Converts register tiles to vectors, shared-memory tiles to pointers, and
/// memrefs to a pointer, dynamic sizes and dynamic strides.
class ThreadTypeConverter : public mlir::TypeConverter {
public:
  ThreadTypeConverter();
};

/// What the registers of a thread for a tile with a layout are.
mlir::VectorType getRegisterType(mlir::RankedTensorType tile);

/// Scalar integer arithmetic, and where the thread is. The expressions are
/// emitted wherever they are needed; common ones are merged later.
struct ThreadBuilder {
  mlir::OpBuilder &b;
  mlir::Location loc;

  /// The GPU that the kernel is for.
  Machine machine() const;
  mlir::Value constant(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value f32(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y);
  mlir::Value div(mlir::Value x, int64_t y);
  mlir::Value rem(mlir::Value x, int64_t y);
  mlir::Value xorWith(mlir::Value x, mlir::Value y);
  mlir::Value thread();
  mlir::Value warp() { return div(thread(), 32); }
  /// The number of the warp among those that hold tiles in a layout.
  mlir::Value warpOf(mlir::Attribute layout);
  mlir::Value lane() { return rem(thread(), 32); }
  /// The number of the warpgroup, the same value for all threads of a warp.
  mlir::Value warpgroup();
  /// The row and the column of a fragment that belong to the thread alone: the
  /// coordinates of its first register. Without a layout it is no wide one.
  mlir::Value fragmentRow(mlir::Attribute layout);
  mlir::Value fragmentColumn(mlir::Attribute layout = {});
  /// The part of the coordinates in a tile of `rank` dimensions that belongs to
  /// the thread alone.
  llvm::SmallVector<mlir::Value, 2>
  getPosition(tile::LayoutAttrInterface layout, int64_t rank);
  /// The registers of a vector, and back.
  llvm::SmallVector<mlir::Value> unpack(mlir::Value vector);
  mlir::Value pack(mlir::ValueRange registers);
  /// The two elements of 16 bits in a register, as f32, or as they are.
  std::array<mlir::Value, 2> extendPair(mlir::Value pair, mlir::Type element);
  std::array<mlir::Value, 2> splitPair(mlir::Value pair, mlir::Type element);
  /// Two of f32, rounded to elements of 16 bits in a register.
  mlir::Value truncatePair(mlir::Value low, mlir::Value high,
                           mlir::Type element);
  /// A pointer some bytes further in shared memory; `offset` is an index.
  mlir::Value advance(mlir::Value pointer, mlir::Value offset);
  mlir::Value advance(mlir::Value pointer, int64_t offset);
  /// Where the block's shared memory starts.
  mlir::Value sharedMemory();
  /// Emits an scf.if whose branches `emitThen` and, if it gives a value of
  /// `type`, `emitElse` fill.
  mlir::Value emitChoice(mlir::Value condition, mlir::Type type,
                         llvm::function_ref<mlir::Value()> emitThen,
                         llvm::function_ref<mlir::Value()> emitElse);
};

/// The number of threads in the block, or failure with an error at `op`.
mlir::FailureOr<int64_t> getNumThreads(mlir::Operation *op);

/// Indices as the conversion has them, each of one value.
llvm::SmallVector<mlir::Value>
getIndices(llvm::ArrayRef<mlir::ValueRange> indices);

/// A memref as a kernel has it.
struct GlobalMemory {
  GlobalMemory(mlir::MemRefType type, mlir::ValueRange values);

  /// The size of a dimension, an index.
  mlir::Value getSize(ThreadBuilder &t, int64_t dim);
  /// The address of an element, whose offset is computed in 64 bits.
  mlir::Value getAddress(ThreadBuilder &t, mlir::ValueRange indices);
  /// An address so many elements further along the last dimension.
  mlir::Value advance(ThreadBuilder &t, mlir::Value address, int64_t elements);
  /// The stride of a dimension in bytes, an i64.
  mlir::Value getByteStride(ThreadBuilder &t, int64_t dim);

  mlir::MemRefType type;
  mlir::Value pointer;
  mlir::ValueRange dynamicSizes, dynamicStrides;
};

/// What an op becomes in a thread, see FunctionPattern: the value of its
/// result, null if it has none, or failure if another conversion is for it.
template <typename Op, typename Operands>
using ThreadConversion = mlir::FailureOr<mlir::Value> (*)(Op, Operands,
                                                          ThreadBuilder &);

template <typename... Op, typename... Operands>
void addConversions(const mlir::TypeConverter &converter,
                    mlir::RewritePatternSet &patterns,
                    mlir::PatternBenefit benefit,
                    ThreadConversion<Op, Operands>... convert) {
  (patterns.add<FunctionPattern<Op, Operands>>(
       converter, patterns.getContext(), benefit,
       [convert](Op op, Operands operands,
                 mlir::ConversionPatternRewriter &rewriter)
           -> mlir::FailureOr<llvm::SmallVector<mlir::Value>> {
         ThreadBuilder t{rewriter, op.getLoc()};
         mlir::FailureOr<mlir::Value> value = convert(op, operands, t);
         if (failed(value))
           return mlir::failure();
         return llvm::SmallVector<mlir::Value>(op->getNumResults(), *value);
       }),
   ...);
}

void populateRegisterPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateMemoryPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateInterleavePatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
void populateDequantizePatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
void populateDiagonalPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateWarpRowsPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateProductPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateWarpgroupProductPatterns(const mlir::TypeConverter &converter,
                                      mlir::RewritePatternSet &patterns);

} // namespace flash

#endif // FLASH_LIB_CONVERSION_TILETONVX_PATTERNS_H
