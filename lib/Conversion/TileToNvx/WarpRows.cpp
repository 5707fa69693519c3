//===- WarpRows.cpp - Rows of global memory, each in one warp -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;

static Value isLess(ThreadBuilder &t, Value x, Value y) {
  return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt, x, y);
}

static Value select(ThreadBuilder &t, Value condition, Value x, Value y) {
  return arith::SelectOp::create(t.b, t.loc, condition, x, y);
}

namespace {
/// Where the elements lie that a thread has of a matrix of warp rows. Elements
/// that it reads or writes at once are a chunk.
class WarpRowsAccess {
public:
  /// `start` are the coordinates of the tile's first element; `rows` and
  /// `columns`, how many exist, are null if all do.
  WarpRowsAccess(ThreadBuilder &t, GlobalMemory memory, RankedTensorType type,
                 SmallVector<Value> start, Value rows, Value columns);

  int64_t getNumRows() { return numRows; }
  int64_t getNumChunks() { return numChunks; }
  int64_t getVector() { return vector; }
  int64_t getElementBytes() { return elementBytes; }
  /// The type of a chunk: a vector of registers of 32 bits.
  VectorType getChunkType();
  Type getElementType() { return memory.type.getElementType(); }

  /// Whether the `index`-th row of the thread exists; null if it does.
  Value getRowExists(int64_t index);
  /// Whether an element of the `number`-th chunk of a row that exists exists.
  Value getColumnExists(int64_t number, int64_t element);
  Value getColumn(int64_t number, int64_t element);
  /// The address of an element; one of two rows that `row` says.
  Value getAddress(Value row, Value column);
  Value getRow(int64_t index);
  /// A row that may be read instead of the `index`-th one of the thread: that
  /// one if it exists, else the thread's first, which starts at a multiple of
  /// as many bytes, or where that does not exist either, the tile's.
  Value getRowToRead(int64_t index);

  /// Whether chunks are aligned, and each of them exists wholly or not at all.
  Value hasWholeChunks();
  /// Whether the tile's first element exists; null if it is known to.
  Value isNonempty();

private:
  ThreadBuilder &t;
  GlobalMemory memory;
  SmallVector<Value> start;
  Value rows, columns;
  SmallVector<Value, 2> ofThread;
  int64_t rowsAtOnce, chunk, vector, elementBytes, width, numRows, numChunks;
};
} // namespace

WarpRowsAccess::WarpRowsAccess(ThreadBuilder &t, GlobalMemory memory,
                               RankedTensorType type, SmallVector<Value> start,
                               Value rows, Value columns)
    : t(t), memory(memory), start(std::move(start)), rows(rows),
      columns(columns), elementBytes(memory.type.getElementTypeBitWidth() / 8),
      width(type.getDimSize(1)) {
  auto warpRows = cast<tile::WarpRowsAttr>(type.getEncoding());
  ofThread = t.getPosition(warpRows, /*rank=*/2);
  rowsAtOnce = warpRows.getNumRowsAtOnce();
  vector = warpRows.getVector();
  chunk = warpRows.getLanes() * vector;
  numRows = type.getDimSize(0) / rowsAtOnce;
  numChunks = warpRows.getNumRegisters(type.getShape()) / (numRows * vector);
  // What is beyond the tile is no part of it, whether it exists or not.
  if (columns && width % chunk != 0)
    this->columns =
        arith::MinSIOp::create(t.b, t.loc, columns, t.constant(width));
}

VectorType WarpRowsAccess::getChunkType() {
  Type type = elementBytes == 4 ? getElementType() : t.b.getI32Type();
  return VectorType::get({vector * elementBytes / 4}, type);
}

Value WarpRowsAccess::getRow(int64_t index) {
  return t.add(ofThread[0], t.constant(index * rowsAtOnce));
}

Value WarpRowsAccess::getRowToRead(int64_t index) {
  Value row = getRow(index), exists = getRowExists(index);
  if (!exists)
    return row;
  Value other = index == 0 ? t.constant(0) : getRowToRead(0);
  return select(t, exists, row, other);
}

Value WarpRowsAccess::getRowExists(int64_t index) {
  return rows ? isLess(t, getRow(index), rows) : Value();
}

Value WarpRowsAccess::getColumn(int64_t number, int64_t element) {
  return t.add(ofThread[1], t.constant(number * chunk + element));
}

Value WarpRowsAccess::getColumnExists(int64_t number, int64_t element) {
  if (columns)
    return isLess(t, getColumn(number, element), columns);
  if ((number + 1) * chunk <= width)
    return Value();
  return isLess(t, getColumn(number, element), t.constant(width));
}

Value WarpRowsAccess::getAddress(Value row, Value column) {
  SmallVector<Value> indices(start);
  indices[indices.size() - 2] = t.add(indices[indices.size() - 2], row);
  // In bytes, which are 32 bits within a row.
  return t.advance(memory.getAddress(t, indices), t.mul(column, elementBytes));
}

Value WarpRowsAccess::hasWholeChunks() {
  OpBuilder &b = t.b;
  Type i64 = b.getI64Type();
  auto wide = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, t.loc, i64, value);
  };
  auto isZero = [&](Value value, Value zero) -> Value {
    return arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::eq, value,
                                 zero);
  };
  Value bits = LLVM::PtrToIntOp::create(
      b, t.loc, i64, getAddress(getRowToRead(0), t.constant(0)));
  // Where the next rows of the thread start.
  if (numRows > 1) {
    Value stride = memory.getByteStride(t, memory.type.getRank() - 2);
    stride = arith::MulIOp::create(b, t.loc, stride, wide(rowsAtOnce));
    bits = arith::OrIOp::create(b, t.loc, bits, stride);
  }
  bits = arith::AndIOp::create(b, t.loc, bits, wide(vector * elementBytes - 1));
  Value count = columns ? columns : t.constant(width);
  return arith::AndIOp::create(b, t.loc, isZero(bits, wide(0)),
                               isZero(t.rem(count, vector), t.constant(0)));
}

Value WarpRowsAccess::isNonempty() {
  Value nonempty;
  for (Value count : {rows, columns}) {
    if (!count)
      continue;
    Value isPositive = isLess(t, t.constant(0), count);
    nonempty = nonempty
                   ? arith::AndIOp::create(t.b, t.loc, nonempty, isPositive)
                         .getResult()
                   : isPositive;
  }
  return nonempty;
}

static Value both(ThreadBuilder &t, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(t.b, t.loc, x, y);
}

// Reads are volatile loads where they are in order: ptxas delays others behind
// what needs the first of them, if that saves registers.

/// A value for each row, for all lanes that share it.
static Value readVector(ThreadBuilder &t, tile::ReadOp op, GlobalMemory &memory,
                        ArrayRef<Value> start, Value rows, Value padding) {
  RankedTensorType type = op.getResult().getType();
  auto warpRows = cast<tile::WarpRowsAttr>(type.getEncoding());
  if (!padding)
    padding = t.f32(0.0);
  SmallVector<Value> registers, indices(start);
  for (int64_t i = 0; i < warpRows.getNumRegisters(type.getShape()); ++i) {
    Value row =
        t.add(t.getPosition(warpRows, /*rank=*/1).front(),
              t.constant(warpRows.getRegisterPart(type.getShape(), i).front()));
    Value exists = rows ? isLess(t, row, rows) : Value();
    if (exists && op.getNonempty())
      row = select(t, exists, row, t.constant(0));
    indices.back() = t.add(start.back(), row);
    auto read = [&]() -> Value {
      return LLVM::LoadOp::create(t.b, t.loc, type.getElementType(),
                                  memory.getAddress(t, indices),
                                  /*alignment=*/0, op.getInOrder());
    };
    if (!exists)
      registers.push_back(read());
    else if (op.getNonempty())
      registers.push_back(select(t, exists, read(), padding));
    else
      registers.push_back(t.emitChoice(exists, type.getElementType(), read,
                                       [&]() -> Value { return padding; }));
  }
  return t.pack(registers);
}

/// The register that holds the first elements of `elements`: an f32, or two
/// of 16 bits.
static Value getRegister(ThreadBuilder &t, ArrayRef<Value> elements) {
  if (elements[0].getType().isF32())
    return elements[0];
  return LLVM::BitcastOp::create(t.b, t.loc, t.b.getI32Type(),
                                 t.pack(elements));
}

static Value readChunks(ThreadBuilder &t, WarpRowsAccess &access,
                        bool inOrder) {
  SmallVector<Value> registers;
  for (int64_t index = 0; index < access.getNumRows(); ++index) {
    Value row = access.getRowToRead(index);
    for (int64_t chunk = 0; chunk < access.getNumChunks(); ++chunk) {
      Value column = access.getColumn(chunk, 0);
      if (Value exists = access.getColumnExists(chunk, 0))
        column = select(t, exists, column, t.constant(0));
      Value loaded = LLVM::LoadOp::create(
          t.b, t.loc, access.getChunkType(), access.getAddress(row, column),
          /*alignment=*/access.getVector() * access.getElementBytes(), inOrder);
      llvm::append_range(registers, t.unpack(loaded));
    }
  }
  return t.pack(registers);
}

/// What has been read, with `padding` for the chunks that do not exist.
static Value padChunks(ThreadBuilder &t, WarpRowsAccess &access, Value read,
                       Value padding) {
  SmallVector<Value> registers = t.unpack(read);
  Value none = getRegister(t, {padding, padding});
  size_t inChunk = access.getChunkType().getNumElements();
  for (auto [number, value] : llvm::enumerate(registers)) {
    int64_t index = number / inChunk / access.getNumChunks(),
            chunk = number / inChunk % access.getNumChunks();
    if (Value exists = both(t, access.getColumnExists(chunk, 0),
                            access.getRowExists(index)))
      value = select(t, exists, value, none);
  }
  return t.pack(registers);
}

static Value readElements(ThreadBuilder &t, WarpRowsAccess &access,
                          Value padding) {
  SmallVector<Value> registers;
  int64_t inRegister = 4 / access.getElementBytes();
  Type element = access.getElementType();
  Value none =
      padding ? padding
              : arith::ConstantOp::create(t.b, t.loc, t.b.getZeroAttr(element))
                    .getResult();
  for (int64_t index = 0; index < access.getNumRows(); ++index) {
    Value row = access.getRow(index), rowExists = access.getRowExists(index);
    for (int64_t chunk = 0; chunk < access.getNumChunks(); ++chunk) {
      SmallVector<Value> inChunk;
      for (int64_t i = 0; i < access.getVector(); ++i) {
        Value exists = both(t, access.getColumnExists(chunk, i), rowExists);
        auto read = [&]() -> Value {
          return LLVM::LoadOp::create(
              t.b, t.loc, element,
              access.getAddress(row, access.getColumn(chunk, i)));
        };
        inChunk.push_back(exists ? t.emitChoice(exists, element, read,
                                                [&]() -> Value { return none; })
                                 : read());
      }
      for (int64_t i = 0; i < access.getVector(); i += inRegister)
        registers.push_back(
            getRegister(t, ArrayRef<Value>(inChunk).slice(i, inRegister)));
    }
  }
  return t.pack(registers);
}

static FailureOr<Value> convertRead(tile::ReadOp op,
                                    ManyValues<tile::ReadOp> adaptor,
                                    ThreadBuilder &t) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto single = [](ValueRange values) {
    return values.empty() ? Value() : values.front();
  };
  GlobalMemory memory(op.getSource().getType(), adaptor.getSource());
  SmallVector<Value> start = getIndices(adaptor.getIndices());
  Value rows = single(adaptor.getRows()),
        padding = single(adaptor.getPadding());
  if (type.getRank() == 1) {
    return readVector(t, op, memory, start, rows, padding);
  }
  WarpRowsAccess access(t, memory, type, start, rows,
                        single(adaptor.getColumns()));
  Type result = getRegisterType(type);
  // Chunks are read where some element exists, which is read instead of those
  // that do not; so no read waits for a test.
  Value whole = op.getAligned() ? Value() : access.hasWholeChunks();
  if (!op.getNonempty())
    whole = both(t, whole, access.isNonempty());
  auto read = [&] { return readChunks(t, access, op.getInOrder()); };
  Value values =
      whole ? t.emitChoice(whole, result, read,
                           [&] { return readElements(t, access, padding); })
            : read();
  // Behind the choice: inside of it all would wait for what has been read,
  // before the next reads begin.
  return padding ? padChunks(t, access, values, padding) : values;
}

using StoreChunk = void (*)(ThreadBuilder &, WarpRowsAccess &, Value row,
                            int64_t chunk, ArrayRef<Value> registers);

/// One value of a row, which all lanes hold that share it.
static void storeValue(ThreadBuilder &t, tile::WarpRowsAttr warpRows,
                       GlobalMemory &memory, ArrayRef<Value> start, Value rows,
                       Value value, int64_t firstRow) {
  SmallVector<Value, 2> ofThread = t.getPosition(warpRows, /*rank=*/2);
  Value row = t.add(ofThread[0], t.constant(firstRow));
  Value execute = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                                        ofThread[1], t.constant(0));
  if (rows)
    execute = both(t, execute, isLess(t, row, rows));
  t.emitChoice(
      execute, Type(),
      [&]() -> Value {
        SmallVector<Value> indices(start);
        indices.back() = t.add(indices.back(), row);
        LLVM::StoreOp::create(t.b, t.loc, value, memory.getAddress(t, indices));
        return Value();
      },
      nullptr);
}

/// Runs `body` where `condition` holds, or always if it is null.
static void emitWhere(ThreadBuilder &t, Value condition,
                      function_ref<void()> body) {
  if (!condition)
    return body();
  t.emitChoice(
      condition, Type(),
      [&]() -> Value {
        body();
        return Value();
      },
      nullptr);
}

static Value storeRows(ThreadBuilder &t, WarpRowsAccess &access,
                       ArrayRef<Value> registers, StoreChunk storeChunk) {
  size_t inChunk =
      registers.size() / (access.getNumRows() * access.getNumChunks());
  for (int64_t index = 0; index < access.getNumRows(); ++index)
    emitWhere(t, access.getRowExists(index), [&] {
      for (int64_t chunk = 0; chunk < access.getNumChunks(); ++chunk)
        storeChunk(
            t, access, access.getRow(index), chunk,
            registers.slice((index * access.getNumChunks() + chunk) * inChunk,
                            inChunk));
    });
  return Value();
}

static void storeChunk(ThreadBuilder &t, WarpRowsAccess &access, Value row,
                       int64_t chunk, ArrayRef<Value> registers) {
  emitWhere(t, access.getColumnExists(chunk, 0), [&] {
    LLVM::StoreOp::create(t.b, t.loc, t.pack(registers),
                          access.getAddress(row, access.getColumn(chunk, 0)),
                          /*alignment=*/access.getVector() *
                              access.getElementBytes());
  });
}

static void storeElements(ThreadBuilder &t, WarpRowsAccess &access, Value row,
                          int64_t chunk, ArrayRef<Value> registers) {
  int64_t inRegister = 4 / access.getElementBytes();
  for (int64_t i = 0; i < access.getVector(); ++i)
    emitWhere(t, access.getColumnExists(chunk, i), [&] {
      Value value = registers[i / inRegister];
      if (inRegister == 2) {
        value = arith::ShRUIOp::create(t.b, t.loc, value, t.i32(i % 2 * 16));
        value = arith::TruncIOp::create(t.b, t.loc, t.b.getI16Type(), value);
      }
      LLVM::StoreOp::create(t.b, t.loc, value,
                            access.getAddress(row, access.getColumn(chunk, i)),
                            /*alignment=*/access.getElementBytes());
    });
}

static FailureOr<Value> convertStoreWarpRows(tile::StoreOp op,
                                             ManyValues<tile::StoreOp> adaptor,
                                             ThreadBuilder &t) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  auto warpRows = dyn_cast<tile::WarpRowsAttr>(type.getEncoding());
  if (!warpRows)
    return failure();
  GlobalMemory memory(op.getDestination().getType(), adaptor.getDestination());
  SmallVector<Value> start = getIndices(adaptor.getIndices());
  SmallVector<Value> registers = t.unpack(adaptor.getX().front());
  Value rows = op.getRows() ? adaptor.getRows().front() : Value();
  if (type.getRank() == 1) {
    for (auto [index, value] : llvm::enumerate(registers))
      storeValue(t, warpRows, memory, start, rows, value,
                 index * warpRows.getNumRowsAtOnce());
    return Value();
  }
  Value columns = op.getColumns() ? adaptor.getColumns().front() : Value();
  WarpRowsAccess access(t, memory, type, start, rows, columns);
  t.emitChoice(
      access.hasWholeChunks(), Type(),
      [&] { return storeRows(t, access, registers, storeChunk); },
      [&] { return storeRows(t, access, registers, storeElements); });
  return Value();
}

void flash::populateWarpRowsPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/1, convertRead,
                 convertStoreWarpRows);
}
