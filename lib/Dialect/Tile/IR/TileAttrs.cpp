//===- TileAttrs.cpp - Layouts of register tiles --------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Machine/Machine.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

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

static LogicalResult verifyWarps(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t warps, int64_t firstWarp = 0) {
  constexpr int64_t mostWarps = 32;
  if (warps < 1 || warps > mostWarps)
    return emitError() << "a layout is spread over 1 to 32 warps, got "
                       << warps;
  if (firstWarp >= 0 && firstWarp <= mostWarps - warps)
    return success();
  return emitError() << "a layout over " << warps
                     << " of a block's 32 warps is from one of the first "
                     << mostWarps - warps + 1 << " on, got " << firstWarp;
}

/// Registers hold elements of some number of bits.
static LogicalResult verifyElement(function_ref<InFlightDiagnostic()> emitError,
                                   Type element) {
  if (element.isIntOrFloat())
    return success();
  return emitError() << "this layout is of integers or floats of some number "
                        "of bits, such as i32, not "
                     << element;
}

/// Checks the number of dimensions and of rows, which all layouts share.
static LogicalResult verifyRows(function_ref<InFlightDiagnostic()> emitError,
                                int64_t warps, ArrayRef<int64_t> shape,
                                Type element, size_t rank) {
  if (failed(verifyElement(emitError, element)))
    return failure();
  if (shape.size() != rank || ShapedType::isDynamicShape(shape))
    return emitError() << "this layout is of static tensors of rank " << rank;
  if (shape[0] <= 0 || shape[0] % (flash::rowsOfWarp * warps) != 0)
    return emitError() << "the rows of a tile over " << warps
                       << " warps must be a multiple of "
                       << flash::rowsOfWarp * warps << ", got " << shape[0];
  return success();
}

/// The same for matrices, whose columns are a multiple of `multiple`.
static LogicalResult verifyMatrix(function_ref<InFlightDiagnostic()> emitError,
                                  StringRef name, int64_t warps,
                                  ArrayRef<int64_t> shape, Type element,
                                  int64_t multiple) {
  if (failed(verifyRows(emitError, warps, shape, element, 2)))
    return failure();
  if (shape[1] > 0 && shape[1] % multiple == 0)
    return success();
  return emitError() << "the columns of a " << name << " must be a multiple of "
                     << multiple << ", got " << shape[1];
}

/// The row part of a thread's coordinates: its warp, and a quad of lanes.
static int64_t getThreadRow(int64_t warp, int64_t lane) {
  return flash::rowsOfWarp * warp + lane / 4;
}

/// The row part of the `index`-th row of a thread.
static int64_t getRegisterRow(int64_t warps, int64_t index) {
  return index / 2 * flash::rowsOfWarp * warps + index % 2 * 8;
}

//===----------------------------------------------------------------------===//
// Fragment
//===----------------------------------------------------------------------===//

LogicalResult FragmentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t warps, int64_t firstWarp) {
  return verifyWarps(emitError, warps, firstWarp);
}

LogicalResult FragmentAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type element,
    function_ref<InFlightDiagnostic()> emitError) const {
  return verifyMatrix(emitError, "fragment", getWarps(), shape, element, 8);
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
// Wide fragment
//===----------------------------------------------------------------------===//

LogicalResult
WideFragmentAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t warps, int64_t firstWarp) {
  return verifyWarps(emitError, warps, firstWarp);
}

LogicalResult WideFragmentAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type element,
    function_ref<InFlightDiagnostic()> emitError) const {
  return verifyMatrix(emitError, "wide fragment", getWarps(), shape, element,
                      16);
}

int64_t WideFragmentAttr::getNumWarps() const { return getWarps(); }

int64_t WideFragmentAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] * shape[1] / (32 * getWarps());
}

SmallVector<int64_t, 2> WideFragmentAttr::getThreadPart(int64_t warp,
                                                        int64_t lane) const {
  return {getThreadRow(warp, lane), lane % 4 * 4};
}

SmallVector<int64_t, 2>
WideFragmentAttr::getRegisterPart(ArrayRef<int64_t> shape,
                                  int64_t index) const {
  int64_t pairs = shape[1] / 8, pair = index / 4;
  int64_t row = pair / pairs * 2 + index / 2 % 2, inRow = pair % pairs;
  return {getRegisterRow(getWarps(), row),
          inRow / 2 * 16 + inRow % 2 * 2 + index % 2};
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t warps, int64_t firstWarp) {
  return verifyWarps(emitError, warps, firstWarp);
}

LogicalResult
RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                         function_ref<InFlightDiagnostic()> emitError) const {
  return verifyRows(emitError, getWarps(), shape, element, 1);
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
                                  int64_t warps, int64_t firstWarp) {
  return verifyWarps(emitError, warps, firstWarp);
}

LogicalResult ColumnsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type element,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyElement(emitError, element)))
    return failure();
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
                                int64_t warps, int64_t firstWarp) {
  return verifyWarps(emitError, warps, firstWarp);
}

LogicalResult
LanesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type element,
                          function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyRows(emitError, getWarps(), shape, element, 2)))
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

LogicalResult WarpRowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t warps, int64_t vector,
                                   int64_t lanes) {
  if (failed(verifyWarps(emitError, warps)))
    return failure();
  bool isPart = lanes > 0 && 32 % lanes == 0;
  bool areWarps = lanes > 0 && lanes % 32 == 0;
  if ((!isPart && !areWarps) || 32 * warps % lanes != 0)
    return emitError()
           << "a row of warp rows over " << warps
           << " warps is in a power of two of lanes up to 32, or in "
              "whole warps that are an equal part of all, got "
           << lanes << " lanes";
  if (vector == 1 || vector == 2 || vector == 4 || vector == 8)
    return success();
  return emitError() << "a lane holds 1, 2, 4 or 8 neighbouring elements, got "
                     << vector;
}

LogicalResult WarpRowsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (failed(verifyElement(emitError, elementType)))
    return failure();
  if (elementType.getIntOrFloatBitWidth() == 16 && getVector() == 1)
    return emitError() << "a lane holds pairs of elements of " << elementType;
  if (shape.empty() || shape.size() > 2 || ShapedType::isDynamicShape(shape))
    return emitError() << "this layout is of static tensors of rank 1 or 2";
  if (shape[0] <= 0 || shape[0] % getNumRowsAtOnce() != 0)
    return emitError() << "the rows of #tile.warp_rows over " << getWarps()
                       << " warps must be a multiple of " << getNumRowsAtOnce()
                       << ", got " << shape[0];
  if (shape.size() == 1 || shape[1] > 0)
    return success();
  return emitError() << "warp rows have at least one column";
}

int64_t WarpRowsAttr::getNumWarps() const { return getWarps(); }

/// The registers of a thread for one row.
static int64_t getRegistersOfRow(WarpRowsAttr warpRows,
                                 ArrayRef<int64_t> shape) {
  if (shape.size() == 1)
    return 1;
  int64_t vector = warpRows.getVector();
  return llvm::divideCeil(shape[1], warpRows.getLanes() * vector) * vector;
}

int64_t WarpRowsAttr::getNumRegisters(ArrayRef<int64_t> shape) const {
  return shape[0] / getNumRowsAtOnce() * getRegistersOfRow(*this, shape);
}

SmallVector<int64_t, 2> WarpRowsAttr::getThreadPart(int64_t warp,
                                                    int64_t lane) const {
  int64_t thread = warp * 32 + lane;
  return {thread / getLanes(), thread % getLanes() * getVector()};
}

SmallVector<int64_t, 2> WarpRowsAttr::getRegisterPart(ArrayRef<int64_t> shape,
                                                      int64_t index) const {
  int64_t inRow = getRegistersOfRow(*this, shape), at = index % inRow;
  int64_t row = index / inRow * getNumRowsAtOnce();
  if (shape.size() == 1)
    return {row};
  return {row, at / getVector() * getLanes() * getVector() + at % getVector()};
}

//===----------------------------------------------------------------------===//
// What belongs together
//===----------------------------------------------------------------------===//

bool flash::tile::isOfRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 1 &&
         isa_and_nonnull<RowsAttr, WarpRowsAttr>(tensor.getEncoding());
}

RankedTensorType flash::tile::getLanesType(RankedTensorType rows) {
  Attribute layout = rows.getEncoding();
  int64_t lanes = 4;
  if (auto warpRows = dyn_cast<WarpRowsAttr>(layout))
    lanes = warpRows.getLanes();
  else if (auto ofRows = cast<RowsAttr>(layout))
    layout = LanesAttr::get(rows.getContext(), ofRows.getWarps(),
                            ofRows.getFirstWarp());
  return RankedTensorType::get({rows.getDimSize(0), lanes},
                               rows.getElementType(), layout);
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   int64_t stage, int64_t cluster) {
  if (stage != 0 && stage != 1)
    return emitError() << "a pipeline has the stages 0 and 1, got " << stage;
  if (cluster < 0)
    return emitError() << "clusters are numbered from 0 on, got " << cluster;
  return success();
}

PipelineAttr PipelineAttr::of(Operation *op) {
  return TileDialect::PipelineAttrHelper(op->getContext()).getAttr(op);
}

void PipelineAttr::set(Operation *op, int64_t stage, int64_t cluster) {
  TileDialect::PipelineAttrHelper(op->getContext())
      .setAttr(op, get(op->getContext(), stage, cluster));
}
