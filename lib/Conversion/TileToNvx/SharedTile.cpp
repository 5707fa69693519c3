//===- SharedTile.cpp - Addresses in shared-memory tiles ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedTile.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace flash;

Value flash::getSwizzleOfRow(ThreadBuilder &t, tile::SmemType type, Value row) {
  int64_t rowsInPeriod = 128 / type.getSwizzle();
  Value group = rowsInPeriod == 1 ? row : t.div(row, rowsInPeriod);
  return t.mul(t.rem(group, type.getSwizzle() / 16), 16);
}

Value flash::getSwizzledOffset(ThreadBuilder &t, tile::SmemType type, Value row,
                               Value chunk) {
  Value inRow = t.xorWith(t.mul(chunk, 16), getSwizzleOfRow(t, type, row));
  return t.add(t.mul(row, type.getSwizzle()), inRow);
}

Value flash::getElementOffset(ThreadBuilder &t, tile::SmemType type, Value row,
                              Value column) {
  int64_t bytes = type.getElementBytes(), inChunk = 16 / bytes;
  int64_t chunksInPanel = type.getSwizzle() / 16;
  Value chunk = t.div(column, inChunk);
  Value panel = t.div(chunk, chunksInPanel);
  Value offset = getSwizzledOffset(t, type, row, t.rem(chunk, chunksInPanel));
  offset = t.add(offset, t.mul(panel, type.getPanelBytes()));
  return t.add(offset, t.mul(t.rem(column, inChunk), bytes));
}

Value flash::getRowAddress(ThreadBuilder &t, tile::SmemType type, Value tile,
                           RankedTensorType rows, int64_t i) {
  auto layout = cast<tile::RowsAttr>(rows.getEncoding());
  Value row =
      t.add(t.fragmentRow(layout),
            t.constant(layout.getRegisterPart(rows.getShape(), i).front()));
  int64_t columns = type.getColumns();
  return t.advance(tile, getElementOffset(t, type, t.div(row, columns),
                                          t.rem(row, columns)));
}

Value flash::advanceToPanel(ThreadBuilder &t, tile::SmemType type, Value tile,
                            Value panel) {
  return panel ? t.advance(tile, t.mul(panel, type.getPanelBytes())) : tile;
}

SmallVector<Value> flash::loadMatrices(ThreadBuilder &t, Value address,
                                       int count, bool transpose) {
  OpBuilder &b = t.b;
  Type i32 = b.getI32Type();
  Type resultType = i32;
  if (count > 1)
    resultType = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(count, i32));
  Value loaded = NVVM::LdMatrixOp::create(
      b, t.loc, resultType, address, count,
      transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  if (count == 1)
    return {loaded};
  SmallVector<Value> registers;
  for (int i = 0; i < count; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, t.loc, loaded, i));
  return registers;
}

MatrixAccess::MatrixAccess(ThreadBuilder t, tile::SmemType type, Value base,
                           Value laneRow, Value laneChunk)
    : t(t), type(type) {
  rowBase = t.advance(base, t.mul(laneRow, type.getSwizzle()));
  // Without a swizzle each chunk of a row has a panel.
  swizzled =
      type.getSwizzle() == 16
          ? t.mul(laneChunk, type.getPanelBytes())
          : t.xorWith(t.mul(laneChunk, 16), getSwizzleOfRow(t, type, laneRow));
}

Value MatrixAccess::getAddress(int64_t row, int64_t chunk) {
  // Eight rows are a whole number of the swizzle's periods, so a multiple of
  // them changes nothing but the row's own offset; and as the chunk is even, it
  // and the lane's share no bit.
  int64_t chunksInPanel = type.getSwizzle() / 16;
  Value inRow = t.xorWith(swizzled, t.constant(chunk % chunksInPanel * 16));
  return t.advance(t.advance(rowBase, inRow),
                   row * type.getSwizzle() +
                       chunk / chunksInPanel * type.getPanelBytes());
}

void MatrixAccess::store(int64_t row, int64_t chunk, ValueRange registers) {
  MLIRContext *context = t.b.getContext();
  NVVM::StMatrixOp::create(
      t.b, t.loc, getAddress(row, chunk), registers,
      NVVM::MMALayoutAttr::get(context, NVVM::MMALayout::row),
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltTypeAttr::get(context, NVVM::LdStMatrixEltType::B16));
}

SmallVector<Value> MatrixAccess::load(int64_t row, int64_t chunk, int count,
                                      bool transpose) {
  return loadMatrices(t, getAddress(row, chunk), count, transpose);
}
