//===- TileAttrs.cpp - Layouts of register tiles --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash::tile;

#include "flash/Dialect/Tile/IR/TileEnums.cpp.inc"
#include "flash/Dialect/Tile/IR/TileLayoutInterface.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "flash/Dialect/Tile/IR/TileAttrs.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "flash/Dialect/Tile/IR/TileAttrs.cpp.inc"
      >();
}

static constexpr int64_t rowsOfWarp = 16;

static LogicalResult verifyWarps(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t warps) {
  if (warps >= 1 && warps <= 32)
    return success();
  return emitError() << "a layout is spread over 1 to 32 warps, got " << warps;
}

/// Checks the number of dimensions and of rows, which all layouts share.
static LogicalResult verifyRows(function_ref<InFlightDiagnostic()> emitError,
                                int64_t warps, ArrayRef<int64_t> shape,
                                size_t rank) {
  if (shape.size() != rank || ShapedType::isDynamicShape(shape))
    return emitError() << "this layout is of static tensors of rank " << rank;
  if (shape[0] <= 0 || shape[0] % (rowsOfWarp * warps) != 0)
    return emitError() << "the rows of a tile over " << warps
                       << " warps must be a multiple of " << rowsOfWarp * warps
                       << ", got " << shape[0];
  return success();
}

/// The row part of a thread's coordinates: its warp, and a quad of lanes.
static int64_t getThreadRow(int64_t warp, int64_t lane) {
  return rowsOfWarp * warp + lane / 4;
}

/// The row part of the `index`-th row of a thread.
static int64_t getRegisterRow(int64_t warps, int64_t index) {
  return index / 2 * rowsOfWarp * warps + index % 2 * 8;
}

//===----------------------------------------------------------------------===//
// Fragment
//===----------------------------------------------------------------------===//

LogicalResult FragmentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t warps) {
  return verifyWarps(emitError, warps);
}

LogicalResult FragmentAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyRows(emitError, getWarps(), shape, 2)))
    return failure();
  if (shape[1] > 0 && shape[1] % 8 == 0)
    return success();
  return emitError() << "the columns of a fragment must be a multiple of 8, "
                        "got "
                     << shape[1];
}

int64_t FragmentAttr::getNumWarps() const { return getWarps(); }

int64_t FragmentAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] * shape[1] / (32 * getWarps());
}

SmallVector<int64_t, 2> FragmentAttr::getThreadPart(int64_t warp,
                                                    int64_t lane) const {
  return {getThreadRow(warp, lane), lane % 4 * 2};
}

SmallVector<int64_t, 2> FragmentAttr::getRegisterPart(ArrayRef<int64_t> shape,
                                                      int64_t index) const {
  int64_t blocks = shape[1] / 8, block = index / 4;
  int64_t row = block / blocks * 2 + index / 2 % 2;
  return {getRegisterRow(getWarps(), row), block % blocks * 8 + index % 2};
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t warps) {
  return verifyWarps(emitError, warps);
}

LogicalResult
RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                         function_ref<InFlightDiagnostic()> emitError) const {
  return verifyRows(emitError, getWarps(), shape, 1);
}

int64_t RowsAttr::getNumWarps() const { return getWarps(); }

int64_t RowsAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] / (8 * getWarps());
}

SmallVector<int64_t, 2> RowsAttr::getThreadPart(int64_t warp,
                                                int64_t lane) const {
  return {getThreadRow(warp, lane)};
}

SmallVector<int64_t, 2> RowsAttr::getRegisterPart(ArrayRef<int64_t>,
                                                  int64_t index) const {
  return {getRegisterRow(getWarps(), index)};
}

//===----------------------------------------------------------------------===//
// A value for each column
//===----------------------------------------------------------------------===//

LogicalResult ColumnsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t warps) {
  return verifyWarps(emitError, warps);
}

LogicalResult ColumnsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() == 1 && shape[0] > 0 && shape[0] % 8 == 0)
    return success();
  return emitError() << "this layout is of static vectors with a multiple of 8 "
                        "elements";
}

int64_t ColumnsAttr::getNumWarps() const { return getWarps(); }

int64_t ColumnsAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] / 4;
}

SmallVector<int64_t, 2> ColumnsAttr::getThreadPart(int64_t,
                                                   int64_t lane) const {
  return {lane % 4 * 2};
}

SmallVector<int64_t, 2> ColumnsAttr::getRegisterPart(ArrayRef<int64_t>,
                                                     int64_t index) const {
  return {index / 2 * 8 + index % 2};
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

LogicalResult LanesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t warps) {
  return verifyWarps(emitError, warps);
}

LogicalResult
LanesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyRows(emitError, getWarps(), shape, 2)))
    return failure();
  if (shape[1] == 4)
    return success();
  return emitError() << "four lanes share a row, got " << shape[1]
                     << " columns";
}

int64_t LanesAttr::getNumWarps() const { return getWarps(); }

int64_t LanesAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] / (8 * getWarps());
}

SmallVector<int64_t, 2> LanesAttr::getThreadPart(int64_t warp,
                                                 int64_t lane) const {
  return {getThreadRow(warp, lane), lane % 4};
}

SmallVector<int64_t, 2> LanesAttr::getRegisterPart(ArrayRef<int64_t>,
                                                   int64_t index) const {
  return {getRegisterRow(getWarps(), index), 0};
}

//===----------------------------------------------------------------------===//
// WarpRowsAttr
//===----------------------------------------------------------------------===//

static constexpr int64_t lanesOfWarp = 32;

LogicalResult WarpRowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t warps, int64_t vector) {
  if (failed(verifyWarps(emitError, warps)))
    return failure();
  if (vector == 1 || vector == 4 || vector == 8)
    return success();
  return emitError() << "a lane holds 1, 4 or 8 neighbouring elements, got "
                     << vector;
}

LogicalResult WarpRowsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (elementType.getIntOrFloatBitWidth() == 16 && getVector() == 1)
    return emitError() << "a lane holds pairs of elements of " << elementType;
  if (shape.empty() || shape.size() > 2 || ShapedType::isDynamicShape(shape))
    return emitError() << "this layout is of static tensors of rank 1 or 2";
  if (shape[0] <= 0 || shape[0] % getWarps() != 0)
    return emitError() << "the rows of #tile.warp_rows over " << getWarps()
                       << " warps must be a multiple of " << getWarps()
                       << ", got " << shape[0];
  int64_t columns = lanesOfWarp * getVector();
  if (shape.size() == 1 || (shape[1] > 0 && shape[1] % columns == 0))
    return success();
  return emitError()
         << "the columns of #tile.warp_rows here must be a multiple of "
         << columns << ", got " << shape[1];
}

int64_t WarpRowsAttr::getNumWarps() const { return getWarps(); }

int64_t WarpRowsAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  int64_t rows = shape[0] / getWarps();
  return shape.size() == 1 ? rows : rows * shape[1] / lanesOfWarp;
}

SmallVector<int64_t, 2> WarpRowsAttr::getThreadPart(int64_t warp,
                                                    int64_t lane) const {
  return {warp, lane * getVector()};
}

SmallVector<int64_t, 2> WarpRowsAttr::getRegisterPart(ArrayRef<int64_t> shape,
                                                      int64_t index) const {
  if (shape.size() == 1)
    return {index * getWarps(), 0};
  int64_t inRow = shape[1] / lanesOfWarp, at = index % inRow;
  return {index / inRow * getWarps(),
          at / getVector() * lanesOfWarp * getVector() + at % getVector()};
}
