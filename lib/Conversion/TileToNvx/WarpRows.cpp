//===- WarpRows.cpp - Rows of global memory, each in one warp -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <limits>

using namespace mlir;
using namespace flash;

namespace {
/// Where the elements of a thread lie that belong to one row.
struct WarpRow {
  /// `start` are the coordinates of the tile's first element, `index` is the
  /// number of the row among those of the warp.
  WarpRow(ThreadBuilder &t, GlobalMemory &memory, RankedTensorType type,
          ValueRange start, Value rows, Value columns, int64_t index);

  /// The column of a chunk's first element, in the tile.
  Value getColumn(ThreadBuilder &t, int64_t chunk) {
    return t.add(t.mul(t.lane(), vector), t.constant(chunk * 32 * vector));
  }
  Value isInside(ThreadBuilder &t, Value column) {
    return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt, column,
                                 columns);
  }
  /// The address of an element of the row.
  Value getAddress(ThreadBuilder &t, Value column) {
    return t.advance(pointer, t.mul(column, elementBytes));
  }
  /// Whether chunks are aligned, and each of them exists wholly or not at all.
  Value hasWholeChunks(ThreadBuilder &t);

  int64_t vector, chunks, elementBytes;
  Value columns, pointer;
  Value exists; ///< Null if it is known to.
};
} // namespace

WarpRow::WarpRow(ThreadBuilder &t, GlobalMemory &memory, RankedTensorType type,
                 ValueRange start, Value rows, Value columns, int64_t index)
    : elementBytes(memory.type.getElementTypeBitWidth() / 8), columns(columns) {
  auto warpRows = cast<tile::WarpRowsAttr>(type.getEncoding());
  vector = warpRows.getVector();
  chunks = type.getDimSize(1) / (32 * vector);
  Value row = t.add(t.warp(), t.constant(index * warpRows.getWarps()));
  if (rows) {
    exists =
        arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt, row, rows);
    // Of a row that does not exist the first one is read instead.
    row = arith::SelectOp::create(t.b, t.loc, exists, row, t.constant(0));
  }
  SmallVector<Value> indices(start);
  indices[indices.size() - 2] = t.add(indices[indices.size() - 2], row);
  pointer = memory.getAddress(t, indices);
}

Value WarpRow::hasWholeChunks(ThreadBuilder &t) {
  OpBuilder &b = t.b;
  Type i64 = b.getI64Type();
  auto isZero = [&](Value value, Value zero) -> Value {
    return arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::eq, value,
                                 zero);
  };
  auto wide = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, t.loc, i64, value);
  };
  Value address = LLVM::PtrToIntOp::create(b, t.loc, i64, pointer);
  Value low =
      arith::AndIOp::create(b, t.loc, address, wide(vector * elementBytes - 1));
  return arith::AndIOp::create(b, t.loc, isZero(low, wide(0)),
                               isZero(t.rem(columns, vector), t.constant(0)));
}

/// Emits an scf.if whose branches `emitThen` and, if it gives a value,
/// `emitElse` fill.
static Value emitChoice(ThreadBuilder &t, Value condition, Type type,
                        function_ref<Value()> emitThen,
                        function_ref<Value()> emitElse) {
  auto choice =
      scf::IfOp::create(t.b, t.loc, type ? TypeRange(type) : TypeRange(),
                        condition, /*withElseRegion=*/!!emitElse);
  OpBuilder::InsertionGuard guard(t.b);
  auto fill = [&](Block &block, function_ref<Value()> emit) {
    t.b.setInsertionPointToStart(&block);
    Value value = emit();
    if (value)
      scf::YieldOp::create(t.b, t.loc, value);
  };
  fill(*choice.thenBlock(), emitThen);
  if (emitElse)
    fill(*choice.elseBlock(), emitElse);
  return type ? choice.getResult(0) : Value();
}

static SmallVector<Value> getIndices(ArrayRef<ValueRange> indices) {
  return llvm::map_to_vector(
      indices, [](ValueRange values) -> Value { return values.front(); });
}

namespace {
struct Read : OpConversionPattern<tile::ReadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    GlobalMemory memory(op.getSource().getType(), adaptor.getSource());
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto warpRows = dyn_cast<tile::WarpRowsAttr>(type.getEncoding());
    if (!warpRows)
      return rewriter.notifyMatchFailure(op, "reads no warp rows");
    SmallVector<Value> start = getIndices(adaptor.getIndices()), registers;
    Value rows = op.getRows() ? adaptor.getRows().front() : Value();
    int64_t count = type.getDimSize(0) / warpRows.getWarps();
    if (type.getRank() == 1) {
      for (int64_t index = 0; index < count; ++index)
        registers.push_back(
            readValue(t, memory, start, rows, index * warpRows.getWarps()));
      rewriter.replaceOp(op, t.pack(registers));
      return success();
    }
    Value columns = adaptor.getColumns().front();
    auto rowType = VectorType::get({type.getDimSize(1) / 32}, t.b.getF32Type());
    for (int64_t index = 0; index < count; ++index) {
      WarpRow row(t, memory, type, start, rows, columns, index);
      if (op.getAligned()) {
        registers.append(t.unpack(readChunks(t, memory, row)));
        continue;
      }
      Value values = emitChoice(
          t, row.hasWholeChunks(t), rowType,
          [&] { return readChunks(t, memory, row); },
          [&] { return readElements(t, memory, row); });
      registers.append(t.unpack(values));
    }
    rewriter.replaceOp(op, t.pack(registers));
    return success();
  }

private:
  /// A value of a row, for all lanes; of a row that does not exist, the first.
  static Value readValue(ThreadBuilder &t, GlobalMemory &memory,
                         ArrayRef<Value> start, Value rows, int64_t firstRow) {
    Value row = t.add(t.warp(), t.constant(firstRow));
    if (rows) {
      Value exists = arith::CmpIOp::create(
          t.b, t.loc, arith::CmpIPredicate::slt, row, rows);
      row = arith::SelectOp::create(t.b, t.loc, exists, row, t.constant(0));
    }
    SmallVector<Value> indices(start);
    indices.back() = t.add(indices.back(), row);
    return LLVM::LoadOp::create(t.b, t.loc, memory.type.getElementType(),
                                memory.getAddress(t, indices));
  }
  /// An element as f32, or -inf where it does not exist.
  static Value complete(ThreadBuilder &t, Value value, Value exists) {
    if (!value.getType().isF32())
      value = arith::ExtFOp::create(t.b, t.loc, t.b.getF32Type(), value);
    Value none = t.f32(-std::numeric_limits<double>::infinity());
    return arith::SelectOp::create(t.b, t.loc, exists, value, none);
  }
  /// The column, or 0 where it does not exist: reading there does no harm.
  static Value clamp(ThreadBuilder &t, Value column, Value exists) {
    return arith::SelectOp::create(t.b, t.loc, exists, column, t.constant(0));
  }

  static Value readChunks(ThreadBuilder &t, GlobalMemory &memory,
                          WarpRow &row) {
    auto type = VectorType::get({row.vector}, memory.type.getElementType());
    SmallVector<Value> registers;
    for (int64_t chunk = 0; chunk < row.chunks; ++chunk) {
      Value column = row.getColumn(t, chunk), exists = row.isInside(t, column);
      Value loaded = LLVM::LoadOp::create(
          t.b, t.loc, type, row.getAddress(t, clamp(t, column, exists)),
          /*alignment=*/row.vector * row.elementBytes);
      for (Value value : t.unpack(loaded))
        registers.push_back(complete(t, value, exists));
    }
    return t.pack(registers);
  }

  static Value readElements(ThreadBuilder &t, GlobalMemory &memory,
                            WarpRow &row) {
    SmallVector<Value> registers;
    for (int64_t chunk = 0; chunk < row.chunks; ++chunk)
      for (int64_t k = 0; k < row.vector; ++k) {
        Value column = t.add(row.getColumn(t, chunk), t.constant(k));
        Value exists = row.isInside(t, column);
        Value value =
            LLVM::LoadOp::create(t.b, t.loc, memory.type.getElementType(),
                                 row.getAddress(t, clamp(t, column, exists)));
        registers.push_back(complete(t, value, exists));
      }
    return t.pack(registers);
  }
};

struct StoreWarpRows : OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getX().getType());
    auto warpRows = dyn_cast<tile::WarpRowsAttr>(type.getEncoding());
    if (!warpRows)
      return rewriter.notifyMatchFailure(op, "stores no warp rows");
    ThreadBuilder t{rewriter, op.getLoc()};
    GlobalMemory memory(op.getDestination().getType(),
                        adaptor.getDestination());
    SmallVector<Value> start = getIndices(adaptor.getIndices());
    SmallVector<Value> registers = t.unpack(adaptor.getX().front());
    Value rows = op.getRows() ? adaptor.getRows().front() : Value();
    int64_t count = type.getDimSize(0) / warpRows.getWarps();
    size_t inRow = registers.size() / count;
    for (int64_t index = 0; index < count; ++index) {
      if (type.getRank() == 1) {
        storeValue(t, memory, start, rows, registers[index],
                   index * warpRows.getWarps());
        continue;
      }
      Value columns = op.getColumns() ? adaptor.getColumns().front()
                                      : t.constant(type.getDimSize(1));
      WarpRow row(t, memory, type, start, rows, columns, index);
      auto values = ArrayRef<Value>(registers).slice(index * inRow, inRow);
      auto store = [&]() -> Value {
        emitChoice(
            t, row.hasWholeChunks(t), Type(),
            [&] { return storeChunks(t, row, values); },
            [&] { return storeElements(t, row, values); });
        return Value();
      };
      if (row.exists)
        emitChoice(t, row.exists, Type(), store, nullptr);
      else
        store();
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// One value of a row, which all lanes hold.
  static void storeValue(ThreadBuilder &t, GlobalMemory &memory,
                         ArrayRef<Value> start, Value rows, Value value,
                         int64_t firstRow) {
    Value row = t.add(t.warp(), t.constant(firstRow));
    Value execute = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                                          t.lane(), t.constant(0));
    if (rows) {
      Value exists = arith::CmpIOp::create(
          t.b, t.loc, arith::CmpIPredicate::slt, row, rows);
      execute = arith::AndIOp::create(t.b, t.loc, execute, exists);
    }
    emitChoice(
        t, execute, Type(),
        [&]() -> Value {
          SmallVector<Value> indices(start);
          indices.back() = t.add(indices.back(), row);
          LLVM::StoreOp::create(t.b, t.loc, value,
                                memory.getAddress(t, indices));
          return Value();
        },
        nullptr);
  }

  static Value storeChunks(ThreadBuilder &t, WarpRow &row,
                           ArrayRef<Value> registers) {
    size_t inChunk = registers.size() / row.chunks;
    for (int64_t chunk = 0; chunk < row.chunks; ++chunk) {
      Value column = row.getColumn(t, chunk);
      emitChoice(
          t, row.isInside(t, column), Type(),
          [&]() -> Value {
            Value values = t.pack(registers.slice(chunk * inChunk, inChunk));
            LLVM::StoreOp::create(t.b, t.loc, values, row.getAddress(t, column),
                                  /*alignment=*/row.vector * row.elementBytes);
            return Value();
          },
          nullptr);
    }
    return Value();
  }

  static Value storeElements(ThreadBuilder &t, WarpRow &row,
                             ArrayRef<Value> registers) {
    int64_t inRegister = 4 / row.elementBytes;
    for (int64_t i = 0; i < row.chunks * row.vector; ++i) {
      Value column =
          t.add(row.getColumn(t, i / row.vector), t.constant(i % row.vector));
      emitChoice(
          t, row.isInside(t, column), Type(),
          [&]() -> Value {
            Value value = registers[i / inRegister];
            if (inRegister == 2) {
              value =
                  arith::ShRUIOp::create(t.b, t.loc, value, t.i32(i % 2 * 16));
              value =
                  arith::TruncIOp::create(t.b, t.loc, t.b.getI16Type(), value);
            }
            LLVM::StoreOp::create(t.b, t.loc, value, row.getAddress(t, column),
                                  /*alignment=*/row.elementBytes);
            return Value();
          },
          nullptr);
    }
    return Value();
  }
};
} // namespace

void flash::populateWarpRowsPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<Read, StoreWarpRows>(converter, patterns.getContext());
}
