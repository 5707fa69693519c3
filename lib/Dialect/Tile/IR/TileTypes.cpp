//===- TileTypes.cpp - Shared memory, rings, pending values ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Schedule/SharedTile.h"
#include "flash/Support/ElementType.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::tile;

#define GET_TYPEDEF_CLASSES
#include "flash/Dialect/Tile/IR/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "flash/Dialect/Tile/IR/TileTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// SmemType
//===----------------------------------------------------------------------===//

SmemType SmemType::get(int64_t rows, int64_t columns, Type elementType) {
  int64_t bytes = columns * elementType.getIntOrFloatBitWidth() / 8;
  return get(elementType.getContext(), rows, columns, elementType,
             flash::getSwizzle(bytes));
}

int64_t SmemType::getElementBytes() const {
  return getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t SmemType::getNumPanels() const {
  return flash::getSharedTilePanels(getColumns() * getElementBytes(),
                                    getSwizzle());
}

int64_t SmemType::getAlignedBytes() const {
  return flash::getSharedTileBytes(getRows(), getColumns(), getElementBytes(),
                                   getSwizzle());
}

int64_t SmemType::getByteOffset(int64_t row, int64_t column) const {
  int64_t inPanel =
      row * getSwizzle() + column % getPanelColumns() * getElementBytes();
  int64_t swizzled = inPanel ^ (inPanel >> 7 & (getSwizzle() / 16 - 1)) << 4;
  return column / getPanelColumns() * getPanelBytes() + swizzled;
}

LogicalResult SmemType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t rows, int64_t columns, Type elementType,
                               int64_t swizzle) {
  if (!flash::ElementType::find(elementType))
    return emitError() << "shared-memory tiles hold f16, bf16, f32, f8E4M3FN "
                          "or i8, got "
                       << elementType;
  if (rows <= 0 || rows % 8 != 0 || columns <= 0 || columns % 8 != 0)
    return emitError() << "rows and columns of a shared-memory tile must be "
                          "positive multiples of 8, got "
                       << rows << " x " << columns;
  if (swizzle == 16 || swizzle == 32 || swizzle == 64 || swizzle == 128)
    return success();
  return emitError() << "the swizzle must be 16, 32, 64 or 128 bytes, got "
                     << swizzle;
}

Type SmemType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t swizzle;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseKeyword("swizzle") || parser.parseEqual() ||
      parser.parseInteger(swizzle) || parser.parseGreater())
    return {};
  if (shape.size() == 2)
    return parser.getChecked<SmemType>(parser.getContext(), shape[0], shape[1],
                                       elementType, swizzle);
  parser.emitError(parser.getNameLoc(), "a shared-memory tile has 2 dimensions,"
                                        " got ")
      << shape.size();
  return {};
}

void SmemType::print(AsmPrinter &printer) const {
  printer << '<' << getRows() << 'x' << getColumns() << 'x' << getElementType()
          << ", swizzle = " << getSwizzle() << '>';
}

//===----------------------------------------------------------------------===//
// RingType
//===----------------------------------------------------------------------===//

LogicalResult RingType::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t stages, SmemType) {
  if (stages >= 1 && stages <= 16)
    return success();
  return emitError() << "a ring has 1 to 16 stages, got " << stages;
}

int64_t RingType::getStageDistance() const {
  return getTile().getAlignedBytes();
}
