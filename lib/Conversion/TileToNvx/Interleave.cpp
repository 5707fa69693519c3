//===- Interleave.cpp - Values of 8 bits with keys as neighbours ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "SharedTile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace flash;

// Rows that are interleaved together, columns of a word, and the rows that a
// thread takes at a time: a column of these fills a sector of memory.
static constexpr int64_t rowsOfGroup = 16, columnsOfWord = 4, mostRows = 32;

/// The columns of four words, of four rows, as words.
static std::array<Value, columnsOfWord> transpose(ThreadBuilder &t, Value a,
                                                  Value b, Value c, Value d) {
  // Of two words, the digits of bytes count from the first word on.
  auto permute = [&](Value x, Value y, int64_t bytes) -> Value {
    return NVVM::PermuteOp::create(t.b, t.loc, t.b.getI32Type(), x, y,
                                   t.i32(bytes), NVVM::PermuteMode::DEFAULT);
  };
  constexpr int64_t firstTwo = 0x5140, lastTwo = 0x7362, lower = 0x5410,
                    upper = 0x7632;
  std::array<Value, columnsOfWord> columns;
  for (auto [i, two] : llvm::enumerate(std::array{firstTwo, lastTwo})) {
    Value ab = permute(a, b, two), cd = permute(c, d, two);
    columns[2 * i] = permute(ab, cd, lower);
    columns[2 * i + 1] = permute(ab, cd, upper);
  }
  return columns;
}

static FailureOr<Value>
convertStoreInterleaved(tile::StoreInterleavedOp op,
                        ManyValues<tile::StoreInterleavedOp> adaptor,
                        ThreadBuilder &t) {
  OpBuilder &b = t.b;
  FailureOr<int64_t> threads = getNumThreads(op);
  if (failed(threads))
    return failure();
  tile::SmemType type = op.getTile().getType();
  GlobalMemory memory(op.getDestination().getType(), adaptor.getDestination());
  SmallVector<Value> indices = getIndices(adaptor.getIndices());
  int64_t rows = type.getRows() % mostRows == 0 ? mostRows : rowsOfGroup;
  int64_t words = type.getColumns() / columnsOfWord,
          items = words * (type.getRows() / rows);
  // A thread takes some rows of a word of columns; its neighbour the next word.
  auto store = [&](Value item) {
    Value column = t.mul(t.rem(item, words), columnsOfWord),
          row = t.mul(t.div(item, words), rows);
    SmallVector<Value> loaded;
    for (int64_t i = 0; i < rows; ++i) {
      Value offset =
          getElementOffset(t, type, t.add(row, t.constant(i)), column);
      loaded.push_back(LLVM::LoadOp::create(
          b, t.loc, b.getI32Type(),
          t.advance(adaptor.getTile().front(), offset), /*alignment=*/4));
    }
    SmallVector<SmallVector<Value>> columns(columnsOfWord);
    for (int64_t group = 0; group < rows; group += rowsOfGroup)
      for (int64_t i = group; i < group + rowsOfGroup / 2; i += 2)
        for (auto [all, word] :
             llvm::zip(columns, transpose(t, loaded[i], loaded[i + 1],
                                          loaded[i + 8], loaded[i + 9])))
          all.push_back(word);
    for (auto [number, all] : llvm::enumerate(columns)) {
      SmallVector<Value> position(indices);
      position.back() =
          t.add(t.add(position.back(), column), t.constant(number));
      position.push_back(row);
      Value address = memory.getAddress(t, position);
      for (size_t at = 0; at < all.size(); at += columnsOfWord)
        LLVM::StoreOp::create(b, t.loc,
                              t.pack(ArrayRef(all).slice(at, columnsOfWord)),
                              t.advance(address, static_cast<int64_t>(4 * at)),
                              /*alignment=*/16);
    }
  };
  for (int64_t first = 0; first < items; first += *threads) {
    Value item = t.add(t.thread(), t.constant(first));
    if (first + *threads <= items) {
      store(item);
      continue;
    }
    Value exists = arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::ult,
                                         item, t.constant(items));
    OpBuilder::InsertionGuard guard(b);
    auto choice = scf::IfOp::create(b, t.loc, exists);
    b.setInsertionPointToStart(choice.thenBlock());
    store(item);
  }
  return Value();
}

void flash::populateInterleavePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/1, convertStoreInterleaved);
}
