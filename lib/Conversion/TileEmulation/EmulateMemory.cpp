//===- EmulateMemory.cpp - Shared memory and rings on the CPU -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"
#include "flash/Dialect/Tile/Utils/TileOrder.h"
#include "flash/Support/ElementType.h"

#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// The value that an operand of an unchanged type has become.
static Value single(ValueRange values) {
  return values.empty() ? Value() : values.front();
}

static SmallVector<Value> single(ArrayRef<ValueRange> operands) {
  return llvm::map_to_vector(operands,
                             [](ValueRange values) { return single(values); });
}

static Value constant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

/// Calls `emit` with each position in a tile of these sizes.
static void forEachElement(
    ImplicitLocOpBuilder &b, ArrayRef<Value> sizes,
    llvm::function_ref<void(ImplicitLocOpBuilder &, ValueRange)> emit) {
  SmallVector<Value> zeros(sizes.size(), constant(b, 0)),
      ones(sizes.size(), constant(b, 1));
  scf::buildLoopNest(b, b.getLoc(), zeros, sizes, ones,
                     [&](OpBuilder &nested, Location loc, ValueRange at) {
                       ImplicitLocOpBuilder b(loc, nested);
                       emit(b, at);
                     });
}

/// How many rows of a tile of `tileRows` rows exist.
static Value emitRows(ImplicitLocOpBuilder &b, Value rows, int64_t tileRows) {
  Value all = constant(b, tileRows);
  if (!rows)
    return all;
  Value atLeastNone = arith::MaxSIOp::create(b, rows, constant(b, 0));
  return arith::MinSIOp::create(b, atLeastNone, all);
}

/// How many rows exist, and how many columns unless the tile is a vector.
template <typename Operands>
static std::pair<Value, Value>
emitExtents(ImplicitLocOpBuilder &b, Operands operands, RankedTensorType type) {
  Value rows = emitRows(b, single(operands.getRows()), type.getDimSize(0));
  if (type.getRank() == 1)
    return {rows, Value()};
  return {rows, emitRows(b, single(operands.getColumns()), type.getDimSize(1))};
}

/// Checks that the memory has all that the op touches: `rows` rows from the
/// index `rowDim` on, if there are any, of `columns` elements if there is a
/// further index. Of `packed` rows, so many are along that dimension, and the
/// others along the one before it.
static void emitRangeChecks(EmulationBuilder &b, Value memory,
                            ValueRange indices, size_t rowDim, Value rows,
                            Value columns,
                            std::optional<int64_t> packed = std::nullopt) {
  Value one = arith::MinSIOp::create(b, rows, constant(b, 1));
  Value inner = rows, outer = one;
  if (packed) {
    Value most = constant(b, *packed);
    inner = arith::MinSIOp::create(b, rows, most);
    outer = arith::CeilDivSIOp::create(b, rows, most);
  }
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value count = d == rowDim ? inner : d + 1 == rowDim ? outer : one;
    if (d > rowDim)
      count = arith::MulIOp::create(b, one, columns);
    Value dimension = constant(b, d);
    Value size = memref::DimOp::create(b, memory, dimension);
    b.call("check_range", {index, count, dimension, size});
  }
}

/// Checks that the memory has one element.
static Value emitElementCheck(EmulationBuilder &b, Value memory,
                              ValueRange indices) {
  Value one = constant(b, 1);
  emitRangeChecks(b, memory, indices, /*rowDim=*/indices.size(), one, one);
  return one;
}

/// The address of an element of the memory.
static Value emitAddress(ImplicitLocOpBuilder &b, Value memory,
                         memref::ExtractStridedMetadataOp metadata,
                         ValueRange indices, int64_t elementBytes) {
  Value element = metadata.getOffset();
  for (auto [index, stride] : llvm::zip(indices, metadata.getStrides())) {
    Value distance = arith::MulIOp::create(b, index, stride);
    element = arith::AddIOp::create(b, element, distance);
  }
  Value bytes = constant(b, elementBytes);
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, memory);
  return arith::AddIOp::create(b, start,
                               arith::MulIOp::create(b, element, bytes));
}

/// The rows that a copy of up to `most` rows brings where it stops at the end
/// of memory, as a bulk copy does, which reads no number of rows.
static Value emitRowsToEnd(ImplicitLocOpBuilder &b, Value memory,
                           ValueRange indices, int64_t most,
                           std::optional<int64_t> packed) {
  int64_t inner = packed.value_or(1);
  int64_t dim = cast<MemRefType>(memory.getType()).getRank() - (packed ? 3 : 2);
  Value left = arith::SubIOp::create(b, memref::DimOp::create(b, memory, dim),
                                     indices[dim]);
  left = arith::MulIOp::create(b, left, constant(b, inner));
  Value rows =
      arith::MinSIOp::create(b, left, constant(b, most - most % inner));
  return arith::MaxSIOp::create(b, rows, constant(b, 0));
}

/// The arguments of a copy: address of the first row, distance of rows in
/// bytes, number of rows that exist, how many are packed, and their distance.
template <typename Op>
static SmallVector<Value> emitSource(EmulationBuilder &b, Op op, Value memory,
                                     ValueRange indices, Value rows,
                                     int64_t mostRows, SmemType tile) {
  std::optional<int64_t> packed = op.getPacked();
  rows = op.getToEnd() ? emitRowsToEnd(b, memory, indices, mostRows, packed)
                       : emitRows(b, rows, mostRows);
  size_t rowDim = cast<MemRefType>(memory.getType()).getRank() - 2;
  emitRangeChecks(b, memory, indices, rowDim, rows,
                  constant(b, tile.getColumns()), packed);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memory);
  Value address =
      emitAddress(b, memory, metadata, indices, tile.getElementBytes());
  Value bytes = constant(b, tile.getElementBytes());
  auto byteStride = [&](size_t dim) -> Value {
    return arith::MulIOp::create(b, metadata.getStrides()[dim], bytes);
  };
  Value stride = byteStride(rowDim);
  if (!packed)
    return {address, stride, rows, constant(b, 1), constant(b, 0)};
  return {address, byteStride(rowDim - 1), rows, constant(b, *packed), stride};
}

static Value asIs(ImplicitLocOpBuilder &, Value element) { return element; }

static Value extendToF32(ImplicitLocOpBuilder &b, Value element) {
  if (element.getType().isF32())
    return element;
  return emitWiden(b, b.getLoc(), element);
}

/// Memory of this shape that `from` of `source` fills, as a tensor.
static Value copyToTensor(ImplicitLocOpBuilder &b, Value source, AffineMap from,
                          ArrayRef<int64_t> shape, Type elementType,
                          ConvertElement convert) {
  Value copy = memref::AllocOp::create(b, MemRefType::get(shape, elementType));
  createGeneric(b, source, copy, {from, b.getMultiDimIdentityMap(2)},
                [&](ImplicitLocOpBuilder &b, ValueRange elements) {
                  return convert(b, elements[0]);
                });
  return bufferization::ToTensorOp::create(
      b, RankedTensorType::get(shape, elementType), copy,
      /*restrict=*/true, /*writable=*/true);
}

Value flash::tile::takeColumns(ImplicitLocOpBuilder &b, Value buffer,
                               SmemType type, ValueRange panel,
                               int64_t columns) {
  if (panel.empty() && columns == type.getColumns())
    return buffer;
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1), first = zero;
  if (!panel.empty())
    first = arith::MulIOp::create(
                b, panel[0],
                arith::ConstantIndexOp::create(b, type.getPanelColumns()))
                .getResult();
  return memref::SubViewOp::create(
      b, buffer, {zero, first},
      {b.getIndexAttr(type.getRows()), b.getIndexAttr(columns)}, {one, one});
}

Value flash::tile::readTile(ImplicitLocOpBuilder &b, Value buffer,
                            bool transpose, Type elementType,
                            ConvertElement convert) {
  SmallVector<int64_t> shape(cast<MemRefType>(buffer.getType()).getShape());
  AffineMap from = b.getMultiDimIdentityMap(2);
  if (transpose) {
    std::swap(shape[0], shape[1]);
    from =
        AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, b.getContext());
  }
  return copyToTensor(b, buffer, from, shape, elementType, convert);
}

Value flash::tile::emitInterleaved(ImplicitLocOpBuilder &b, Value index) {
  auto rest = [&](Value x, int64_t of) -> Value {
    return arith::RemUIOp::create(b, x, constant(b, of));
  };
  auto part = [&](int64_t of, int64_t by, int64_t times) -> Value {
    Value x = arith::DivUIOp::create(b, rest(index, of), constant(b, by));
    return arith::MulIOp::create(b, x, constant(b, times));
  };
  // 16 c + 8 i + 2 t + e as 16 c + 4 t + 2 i + e.
  Value result = arith::SubIOp::create(b, index, rest(index, 16));
  for (Value x : {part(8, 2, 4), part(16, 8, 2), rest(index, 2)})
    result = arith::AddIOp::create(b, result, x);
  return result;
}

Value flash::tile::readInterleaved(ImplicitLocOpBuilder &b, Value buffer,
                                   Type elementType, ConvertElement convert) {
  SmallVector<int64_t> shape(
      llvm::reverse(cast<MemRefType>(buffer.getType()).getShape()));
  Value copy = memref::AllocOp::create(b, MemRefType::get(shape, elementType));
  forEachElement(b, {constant(b, shape[0]), constant(b, shape[1])},
                 [&](ImplicitLocOpBuilder &b, ValueRange at) {
                   Value element = memref::LoadOp::create(
                       b, buffer, ValueRange{at[1], emitInterleaved(b, at[0])});
                   memref::StoreOp::create(b, convert(b, element), copy, at);
                 });
  return bufferization::ToTensorOp::create(
      b, RankedTensorType::get(shape, elementType), copy,
      /*restrict=*/true, /*writable=*/true);
}

/// Exactly where 0 times the number is a number, it is finite.
static Value isNumber(ImplicitLocOpBuilder &b, Value value) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, value, value);
}

/// Puts 0 in position of NaN and infinities.
static void makeFinite(ImplicitLocOpBuilder &b, Value buffer) {
  createGeneric(
      b, ValueRange(), buffer, b.getMultiDimIdentityMap(2),
      [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        Value wide = extendToF32(b, args[0]);
        Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
        Value product = arith::MulFOp::create(b, wide, zero);
        Value isFinite = isNumber(b, product);
        return arith::SelectOp::create(
            b, isFinite, args[0],
            arith::ConstantOp::create(b, b.getZeroAttr(args[0].getType())));
      });
}

/// Whether all elements are finite: the sum of 0 times each is a number.
static Value isFinite(ImplicitLocOpBuilder &b, Value buffer) {
  Value elements =
      readTile(b, buffer, /*transpose=*/false, b.getF32Type(), extendToF32);
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0));
  Value init = tensor::EmptyOp::create(b, ArrayRef<int64_t>{}, b.getF32Type());
  init = linalg::FillOp::create(b, zero, init).getResult(0);
  Value sum = createGeneric(
      b, elements, init,
      {b.getMultiDimIdentityMap(2), AffineMap::get(2, 0, b.getContext())},
      [&](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        Value part = arith::MulFOp::create(b, args[0], zero);
        return arith::AddFOp::create(b, args[1], part);
      });
  return isNumber(b, tensor::ExtractOp::create(b, sum, ValueRange{}));
}

static void copyInto(ImplicitLocOpBuilder &b, Value tile, Value memory) {
  bufferization::MaterializeInDestinationOp::create(b, /*result=*/Type(), tile,
                                                    memory)
      .setWritable(true);
}

//===----------------------------------------------------------------------===//
// Tiles that are fetched at once
//===----------------------------------------------------------------------===//

static SmallVector<Value> emulatePosition(PositionOp op, PositionOp::Adaptor,
                                          EmulationBuilder &b) {
  return emitPosition(b, op, flash::getMachineOfKernels(op).multiprocessors);
}

static Value allocate(ImplicitLocOpBuilder &b, SmemType type) {
  return memref::AllocOp::create(
      b, MemRefType::get({type.getRows(), type.getColumns()},
                         type.getElementType()));
}

/// The tile as the patterns see it, which no step of a ring lends.
static SmallVector<Value> asTile(ImplicitLocOpBuilder &b, SmemType type,
                                 Value memory) {
  Value tile = memref::CastOp::create(b, getEmulatedType(type), memory);
  return {tile, arith::ConstantIntOp::create(b, 0, 64)};
}

static SmallVector<Value> emulateFetch(FetchOp op, ManyValues<FetchOp> operands,
                                       EmulationBuilder &b) {
  SmemType type = op.getResult().getType();
  Value memory = allocate(b, type);
  int64_t parts = op.getNumParts(), rowsOfPart = type.getRows() / parts,
          rowBytes = type.getColumns() * type.getElementBytes();
  SmallVector<Value> indices = single(operands.getIndices()),
                     rows = single(operands.getRows());
  int64_t perPart = indices.size() / parts;
  for (int64_t part = 0; part < parts; ++part) {
    Value start = arith::AddIOp::create(
        b, memref::ExtractAlignedPointerAsIndexOp::create(b, memory),
        constant(b, part * rowsOfPart * rowBytes));
    SmallVector<Value> arguments = {start, constant(b, rowsOfPart),
                                    constant(b, rowBytes)};
    llvm::append_range(
        arguments,
        emitSource(b, op, single(operands.getSource()),
                   ArrayRef(indices).slice(part * perPart, perPart),
                   rows.empty() ? Value() : rows[part], rowsOfPart, type));
    b.calls.create(b, b.getLoc(), "fetch", Type(), arguments);
  }
  SmallVector<Value> tile = asTile(b, type, memory);
  if (op.getFinite())
    makeFinite(b, tile[0]);
  return tile;
}

/// Puts a register tile into one of shared memory, values of rows eight in a
/// row.
static void put(EmulationBuilder &b, Value x, SmemType type, Value memory) {
  auto tensor = cast<RankedTensorType>(x.getType());
  if (tensor.getRank() == 1)
    x = tensor::ExpandShapeOp::create(
        b,
        RankedTensorType::get({type.getRows(), type.getColumns()},
                              tensor.getElementType()),
        x, ArrayRef<ReassociationIndices>{{0, 1}});
  copyInto(b, x, memory);
}

static SmallVector<Value> emulateShare(ShareOp op, ManyValues<ShareOp> operands,
                                       EmulationBuilder &b) {
  SmemType type = op.getResult().getType();
  Value memory = allocate(b, type);
  put(b, single(operands.getX()), type, memory);
  return asTile(b, type, memory);
}

Value flash::tile::dequantize(EmulationBuilder &b, Region &scaleOfRow,
                              Value tile, Value destination) {
  Block &scale = scaleOfRow.front();
  AffineMap all = b.getMultiDimIdentityMap(2);
  Type type = getElementTypeOrSelf(destination.getType());
  return createGeneric(
      b, tile, destination, {all, all},
      [&](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        IRMapping mapping;
        mapping.map(scale.getArgument(0), linalg::IndexOp::create(b, 0));
        for (Operation &inner : scale.without_terminator())
          b.clone(inner, mapping);
        Value ofRow = mapping.lookupOrDefault(
            cast<YieldOp>(scale.getTerminator()).getResult());
        Value product =
            arith::MulFOp::create(b, extendToF32(b, elements[0]), ofRow);
        return arith::TruncFOp::create(b, type, product);
      });
}

static SmallVector<Value> emulateDequantize(DequantizeOp op,
                                            ManyValues<DequantizeOp> operands,
                                            EmulationBuilder &b) {
  SmemType type = op.getResult().getType();
  Value memory = allocate(b, type);
  b.checkLease(operands.getTile()[1]);
  dequantize(b, op.getScale(), operands.getTile()[0], memory);
  return asTile(b, type, memory);
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

static SmallVector<Value> emulateRing(RingOp op, ManyValues<RingOp>,
                                      EmulationBuilder &b) {
  RingType type = op.getResult().getType();
  SmemType stage = type.getTile();
  Value stages = memref::AllocOp::create(
      b,
      MemRefType::get({type.getStages(), stage.getRows(), stage.getColumns()},
                      stage.getElementType()));
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, stages);
  Value ring = b.call(
      "ring",
      {address, constant(b, type.getStages()), constant(b, stage.getRows()),
       constant(b, stage.getColumns() * stage.getElementBytes()),
       constant(b, std::max<int64_t>(b.calls.readers.lookup(op), 1)),
       constant(b, op.getNumCopies())},
      b.getI64Type());
  return {stages, ring};
}

/// The numbers of the ring and of its step, with which its functions are
/// called.
template <typename Operands>
static SmallVector<Value> getStep(Operands operands) {
  return {operands.getRing()[1], single(operands.getStep())};
}

/// The tile of the step of a ring.
template <typename Op>
static Value getStage(EmulationBuilder &b, Op op, ManyValues<Op> operands) {
  RingType type = op.getRing().getType();
  SmemType tile = type.getTile();
  Value stage = arith::RemUIOp::create(b, single(operands.getStep()),
                                       constant(b, type.getStages()));
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return memref::SubViewOp::create(
      b, getEmulatedType(tile), operands.getRing()[0],
      ArrayRef<OpFoldResult>{stage, zero, zero},
      ArrayRef<OpFoldResult>{one, b.getIndexAttr(tile.getRows()),
                             b.getIndexAttr(tile.getColumns())},
      ArrayRef<OpFoldResult>{one, one, one});
}

static SmallVector<Value> emulateAcquire(RingAcquireOp,
                                         ManyValues<RingAcquireOp> operands,
                                         EmulationBuilder &b) {
  b.call("acquire", getStep(operands));
  return {};
}

static SmallVector<Value> emulateRelease(RingReleaseOp,
                                         ManyValues<RingReleaseOp> operands,
                                         EmulationBuilder &b) {
  b.call("release", getStep(operands));
  return {};
}

static SmallVector<Value> emulateCopyAsync(CopyAsyncOp op,
                                           ManyValues<CopyAsyncOp> operands,
                                           EmulationBuilder &b) {
  SmemType stage = op.getRing().getType().getTile();
  auto ring = op.getRing().getDefiningOp<RingOp>();
  SmallVector<Value> arguments = getStep(operands);
  Value part = single(operands.getPart());
  arguments.push_back(part ? part : constant(b, 0));
  llvm::append_range(
      arguments,
      emitSource(b, op, single(operands.getSource()),
                 single(operands.getIndices()), single(operands.getRows()),
                 ring ? ring.getRowsOfCopy() : stage.getRows(), stage));
  b.call("copy_async", arguments);
  return {};
}

static SmallVector<Value>
emulatePut(RingPutOp op, ManyValues<RingPutOp> operands, EmulationBuilder &b) {
  b.call("start_put", getStep(operands));
  put(b, single(operands.getX()), op.getRing().getType().getTile(),
      getStage(b, op, operands));
  b.call("end_put", getStep(operands));
  return {};
}

static SmallVector<Value>
emulateRingDequantize(RingDequantizeOp op,
                      ManyValues<RingDequantizeOp> operands,
                      EmulationBuilder &b) {
  b.call("start_put", getStep(operands));
  b.checkLease(operands.getTile()[1]);
  dequantize(b, op.getScale(), operands.getTile()[0],
             getStage(b, op, operands));
  b.call("end_put", getStep(operands));
  return {};
}

template <typename Op>
static SmallVector<Value> emulateWait(Op op, ManyValues<Op> operands,
                                      EmulationBuilder &b) {
  auto ring = op.getRing().template getDefiningOp<RingOp>();
  bool isMadeFinite = ring && ring.getFinite();
  Value lease = b.call(isMadeFinite ? "wait_checked" : "wait",
                       getStep(operands), b.getI64Type());
  return {getStage(b, op, operands), lease};
}

template <typename Op>
static SmallVector<Value> emulateRingCheck(Op op, ManyValues<Op> operands,
                                           EmulationBuilder &b) {
  SmallVector<Value> step = getStep(operands);
  b.call("wait", step, b.getI64Type());
  bool isChecked = true;
  if constexpr (std::is_same_v<Op, RingMakeFiniteOp>)
    makeFinite(b, getStage(b, op, operands));
  else
    isChecked = !op.getUnchecked();
  if (isChecked)
    b.call("set_checked", step);
  b.call("release", step);
  return {};
}

static SmallVector<Value>
emulateRingIsFinite(RingIsFiniteOp op, ManyValues<RingIsFiniteOp> operands,
                    EmulationBuilder &b) {
  b.call("wait_checked", getStep(operands), b.getI64Type());
  return {isFinite(b, getStage(b, op, operands))};
}

/// The copy has memory of its own, since stages have other elements.
static SmallVector<Value>
emulateRingCopyFinite(RingCopyFiniteOp op,
                      ManyValues<RingCopyFiniteOp> operands,
                      EmulationBuilder &b) {
  b.checkLease(operands.getTile()[1]);
  Value tile = operands.getTile()[0];
  auto type = cast<MemRefType>(tile.getType());
  Value copy = memref::AllocOp::create(
      b, MemRefType::get(type.getShape(), type.getElementType()));
  memref::CopyOp::create(b, tile, copy);
  makeFinite(b, copy);
  copy = memref::CastOp::create(b, type, copy);
  return {
      arith::SelectOp::create(b, single(operands.getIsFinite()), tile, copy),
      operands.getTile()[1]};
}

//===----------------------------------------------------------------------===//
// What is done to tiles in memory
//===----------------------------------------------------------------------===//

static SmallVector<Value> emulateLoad(LoadOp op, ManyValues<LoadOp> operands,
                                      EmulationBuilder &b) {
  b.checkLease(operands.getSource()[1]);
  RankedTensorType type = op.getResult().getType();
  Value tile = readTile(b, operands.getSource()[0], op.getTranspose(),
                        type.getElementType(), asIs);
  if (type.getRank() == 1)
    tile = tensor::CollapseShapeOp::create(
        b, tile, ArrayRef<ReassociationIndices>{{0, 1}});
  return {tile};
}

static SmallVector<Value> emulateLoadRow(LoadRowOp op,
                                         ManyValues<LoadRowOp> operands,
                                         EmulationBuilder &b) {
  b.checkLease(operands.getSource()[1]);
  ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  Value buffer =
      takeColumns(b, operands.getSource()[0], op.getSource().getType(),
                  operands.getPanel(), shape[1]);
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1),
               columns = b.getIndexAttr(shape[1]);
  SmallVector<OpFoldResult> offsets = {single(operands.getRow()), zero},
                            sizes = {one, columns}, strides = {one, one};
  auto type = memref::SubViewOp::inferRankReducedResultType(
      shape[1], cast<MemRefType>(buffer.getType()), offsets, sizes, strides);
  Value row =
      memref::SubViewOp::create(b, type, buffer, offsets, sizes, strides);
  return {copyToTensor(b, row, AffineMap::get(2, 0, b.getAffineDimExpr(1)),
                       shape, b.getF32Type(), extendToF32)};
}

static SmallVector<Value> emulateIsFinite(IsFiniteOp,
                                          ManyValues<IsFiniteOp> operands,
                                          EmulationBuilder &b) {
  b.checkLease(operands.getSource()[1]);
  return {isFinite(b, operands.getSource()[0])};
}

static SmallVector<Value> emulateMakeFinite(MakeFiniteOp op,
                                            ManyValues<MakeFiniteOp> operands,
                                            EmulationBuilder &b) {
  b.checkLease(operands.getTile()[1]);
  if (op.getCopy()) {
    memref::CopyOp::create(b, operands.getTile()[0], operands.getCopy()[0]);
    makeFinite(b, operands.getCopy()[0]);
    return {};
  }
  makeFinite(b, operands.getTile()[0]);
  return {};
}

static SmallVector<Value> emulateClear(ClearOp op, ManyValues<ClearOp> operands,
                                       EmulationBuilder &b) {
  b.checkLease(operands.getTile()[1]);
  Value zero = arith::ConstantOp::create(
      b, b.getZeroAttr(op.getTile().getType().getElementType()));
  linalg::FillOp::create(b, zero, operands.getTile()[0]);
  return {};
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

static SmallVector<Value> emulateStoreBulk(StoreBulkOp op,
                                           ManyValues<StoreBulkOp> operands,
                                           EmulationBuilder &b) {
  if (op.getReused())
    b.checkLease(operands.getReused()[1]);
  // The copy stops where the memory does, and nowhere else.
  Value rows = op.getRows();
  if (!rows) {
    int64_t rowDim = op.getDestination().getType().getRank() - 2;
    Value end = memref::DimOp::create(b, op.getDestination(), rowDim);
    rows = arith::SubIOp::create(b, end, op.getIndices()[rowDim]);
    rows = arith::MinSIOp::create(
        b, rows,
        constant(b, cast<ShapedType>(op.getX().getType()).getDimSize(0)));
  }
  StoreOp::create(b, op.getAdd(), op.getX(), op.getDestination(),
                  op.getIndices(), rows, /*toEnd=*/false, /*columns=*/Value(),
                  /*packed=*/IntegerAttr());
  return {};
}

/// All roles of a block read the number of a step, and the first one claims it.
static SmallVector<Value> emulateClaim(ClaimOp, ManyValues<ClaimOp> operands,
                                       EmulationBuilder &b) {
  Value counts = single(operands.getCounts());
  SmallVector<Value> indices = single(operands.getIndices());
  emitElementCheck(b, counts, indices);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, counts);
  Value address = emitAddress(b, counts, metadata, indices,
                              /*elementBytes=*/sizeof(int32_t));
  Value number =
      b.call("claim", {single(operands.getStep()), address}, b.getI64Type());
  return {arith::IndexCastOp::create(b, b.getIndexType(), number)};
}

/// Blocks are run one after the other (see `inlineLaunch`), so that a count
/// which is less than the rank stays so.
static SmallVector<Value> emulateAddInOrder(AddInOrderOp op,
                                            ManyValues<AddInOrderOp> operands,
                                            EmulationBuilder &b) {
  SmemType tile = op.getTile().getType();
  b.checkLease(operands.getTile()[1]);
  Value sums = single(operands.getSums()),
        counts = single(operands.getCounts()),
        rank = single(operands.getRank());
  SmallVector<Value> indices = single(operands.getIndices()),
                     countIndices = single(operands.getCountIndices());
  Value one = emitElementCheck(b, counts, countIndices);
  Value count = arith::IndexCastOp::create(
      b, b.getIndexType(), memref::LoadOp::create(b, counts, countIndices));
  b.call("check_rank", {rank, count});

  // Rows that the memory does not have are left out.
  size_t rowDim = indices.size() - 1;
  Value size = memref::DimOp::create(b, sums, rowDim);
  Value rows = emitRows(b, arith::SubIOp::create(b, size, indices[rowDim]),
                        tile.getRows());
  emitRangeChecks(b, sums, indices, rowDim, rows, /*columns=*/Value());
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank, constant(b, 0));
  forEachElement(b, {rows, constant(b, tile.getColumns())},
                 [&](ImplicitLocOpBuilder &b, ValueRange at) {
                   SmallVector<Value> position(indices);
                   position[rowDim] =
                       arith::AddIOp::create(b, position[rowDim], at[0]);
                   position.push_back(at[1]);
                   Value x =
                       memref::LoadOp::create(b, operands.getTile()[0], at);
                   Value before = memref::LoadOp::create(b, sums, position);
                   Value sum = arith::AddFOp::create(b, before, x);
                   sum = arith::SelectOp::create(b, isFirst, x, sum);
                   memref::StoreOp::create(b, sum, sums, position);
                 });
  Value next = arith::IndexCastOp::create(b, b.getI32Type(),
                                          arith::AddIOp::create(b, rank, one));
  memref::StoreOp::create(b, next, counts, countIndices);
  return {};
}

static SmallVector<Value>
emulateStoreDiagonals(StoreDiagonalsOp op,
                      ManyValues<StoreDiagonalsOp> operands,
                      EmulationBuilder &b) {
  SmemType tile = op.getTile().getType();
  b.checkLease(operands.getTile()[1]);
  Value sums = single(operands.getSums()), x = operands.getTile()[0];
  SmallVector<Value> position = single(operands.getIndices());
  int64_t rows = tile.getRows(), columns = tile.getColumns();
  emitRangeChecks(b, sums, position, /*rowDim=*/position.size() - 1,
                  constant(b, 1),
                  /*columns=*/Value());
  position.push_back(Value());
  Value nothing = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  forEachElement(b, constant(b, rows + columns),
                 [&](ImplicitLocOpBuilder &b, ValueRange at) {
                   position.back() = at[0];
                   memref::StoreOp::create(b, nothing, sums, position);
                 });
  forEachElement(
      b, {constant(b, rows), constant(b, columns)},
      [&](ImplicitLocOpBuilder &b, ValueRange at) {
        position.back() = arith::SubIOp::create(
            b, arith::AddIOp::create(b, at[1], constant(b, rows)), at[0]);
        Value element = memref::LoadOp::create(b, x, at);
        element = arith::ExtFOp::create(b, b.getF32Type(), element);
        Value sum = memref::LoadOp::create(b, sums, position);
        memref::StoreOp::create(b, arith::AddFOp::create(b, sum, element), sums,
                                position);
      });
  return {};
}

static SmallVector<Value>
emulateStoreInterleaved(StoreInterleavedOp op,
                        ManyValues<StoreInterleavedOp> operands,
                        EmulationBuilder &b) {
  SmemType tile = op.getTile().getType();
  b.checkLease(operands.getTile()[1]);
  Value memory = single(operands.getDestination());
  SmallVector<Value> indices = single(operands.getIndices());
  indices.push_back(constant(b, 0));
  size_t rowDim = indices.size() - 2;
  emitRangeChecks(b, memory, indices, rowDim, constant(b, tile.getColumns()),
                  constant(b, tile.getRows()));
  forEachElement(
      b, {constant(b, tile.getRows()), constant(b, tile.getColumns())},
      [&](ImplicitLocOpBuilder &b, ValueRange at) {
        SmallVector<Value> position(indices);
        position[rowDim] = arith::AddIOp::create(b, position[rowDim], at[1]);
        position.back() = emitInterleaved(b, at[0]);
        memref::StoreOp::create(
            b, memref::LoadOp::create(b, operands.getTile()[0], at), memory,
            position);
      });
  return {};
}

/// Stores a tile whose rows are packed element by element: they are no view of
/// the memory.
static void storePackedRows(ImplicitLocOpBuilder &b, StoreOp op, Value tile,
                            Value memory, ArrayRef<Value> indices, Value rows,
                            Value columns) {
  size_t numDims = columns ? 2 : 1,
         rowDim = op.getDestination().getType().getRank() - numDims;
  SmallVector<Value> ends = {rows}, position(indices);
  if (columns)
    ends.push_back(columns);
  if (position.size() == rowDim + 1 && columns)
    position.push_back(constant(b, 0));
  Value packed = constant(b, *op.getPacked());
  forEachElement(b, ends, [&](ImplicitLocOpBuilder &b, ValueRange at) {
    auto advance = [&](size_t dim, Value distance) {
      position[dim] = arith::AddIOp::create(b, position[dim], distance);
    };
    advance(rowDim - 1, arith::DivUIOp::create(b, at[0], packed));
    advance(rowDim, arith::RemUIOp::create(b, at[0], packed));
    if (columns)
      advance(rowDim + 1, at[1]);
    Value x = tensor::ExtractOp::create(b, tile, at);
    if (op.getAdd())
      memref::AtomicRMWOp::create(b, arith::AtomicRMWKind::addf, x, memory,
                                  position);
    else
      memref::StoreOp::create(b, x, memory, position);
  });
}

static SmallVector<Value> emulateStore(StoreOp op, ManyValues<StoreOp> operands,
                                       EmulationBuilder &b) {
  b.note();
  Value tile = single(operands.getX()),
        memory = single(operands.getDestination());
  SmallVector<Value> indices = single(operands.getIndices());
  auto type = cast<RankedTensorType>(tile.getType());
  size_t rowDim = op.getDestination().getType().getRank() - type.getRank();
  auto [rows, columns] = emitExtents(b, operands, type);
  emitRangeChecks(b, memory, indices, rowDim, rows, columns, op.getPacked());
  if (op.getPacked()) {
    storePackedRows(b, op, tile, memory, indices, rows, columns);
    return {};
  }

  // What the checks have refused must not be known to be wrong at compile
  // time either, or the view would be an invalid operation.
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value size = memref::DimOp::create(b, memory, d);
    Value count = d == rowDim ? rows : d > rowDim ? columns : constant(b, 1);
    Value last = arith::SubIOp::create(b, size, count);
    index = arith::MinSIOp::create(b, index, last);
    index = arith::MaxSIOp::create(b, index, constant(b, 0));
  }

  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(indices),
                            sizes(rowDim, one), tileSizes;
  tileSizes.push_back(getAsOpFoldResult(rows));
  if (columns) {
    if (offsets.size() == rowDim + 1)
      offsets.push_back(zero);
    tileSizes.push_back(getAsOpFoldResult(columns));
  }
  llvm::append_range(sizes, tileSizes);
  SmallVector<OpFoldResult> memoryStrides(sizes.size(), one),
      tileOffsets(tileSizes.size(), zero), tileStrides(tileSizes.size(), one);
  auto existing = tensor::ExtractSliceOp::create(b, tile, tileOffsets,
                                                 tileSizes, tileStrides);
  auto viewType = memref::SubViewOp::inferRankReducedResultType(
      existing.getType().getShape(), op.getDestination().getType(), offsets,
      sizes, memoryStrides);
  Value view = memref::SubViewOp::create(b, viewType, memory, offsets, sizes,
                                         memoryStrides);
  if (!op.getAdd()) {
    copyInto(b, existing, view);
    return {};
  }
  // Blocks run at the same time.
  forEachElement(
      b, {rows, columns}, [&](ImplicitLocOpBuilder &b, ValueRange at) {
        Value x = tensor::ExtractOp::create(b, existing, at);
        memref::AtomicRMWOp::create(b, arith::AtomicRMWKind::addf, x, view, at);
      });
  return {};
}

static SmallVector<Value> emulateRead(ReadOp op, ManyValues<ReadOp> operands,
                                      EmulationBuilder &b) {
  Value memory = single(operands.getSource());
  SmallVector<Value> indices = single(operands.getIndices());
  RankedTensorType type = getEmulatedType(op.getType());
  auto [rows, columns] = emitExtents(b, operands, type);
  // A GPU reads the first element in any case if there is said to be one.
  auto least = [&](Value count) -> Value {
    if (!count || !op.getNonempty())
      return count;
    return arith::MaxSIOp::create(b, count, constant(b, 1));
  };
  Value leastRows = least(rows), leastColumns = least(columns);
  emitRangeChecks(b, memory, indices, indices.size() - type.getRank(),
                  leastRows, leastColumns);
  Value none = single(operands.getPadding());
  if (!none) {
    auto element = cast<FloatType>(type.getElementType());
    APFloat value = columns ? APFloat::getNaN(element.getFloatSemantics())
                            : APFloat(element.getFloatSemantics());
    none = arith::ConstantOp::create(b, b.getFloatAttr(element, value));
  }
  auto readElement = [&, rows = rows, columns = columns](
                         OpBuilder &b, Location loc, ValueRange at) {
    auto isBelow = [&](Value x, Value bound) {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, bound);
    };
    Value exists = isBelow(at[0], rows);
    if (columns)
      exists = arith::AndIOp::create(b, loc, exists, isBelow(at[1], columns));
    auto choice = scf::IfOp::create(
        b, loc, exists,
        [&](OpBuilder &b, Location loc) {
          SmallVector<Value> position(indices);
          for (auto [d, offset] : llvm::enumerate(at)) {
            Value &entry = position[position.size() - at.size() + d];
            entry = arith::AddIOp::create(b, loc, entry, offset);
          }
          Value value = memref::LoadOp::create(b, loc, memory, position);
          scf::YieldOp::create(b, loc, value);
        },
        [&](OpBuilder &b, Location loc) {
          scf::YieldOp::create(b, loc, none);
        });
    tensor::YieldOp::create(b, loc, choice.getResult(0));
  };
  return {tensor::GenerateOp::create(b, type, ValueRange(), readElement)};
}

void flash::tile::populateMemoryEmulation(const EmulationTypes &types,
                                          EmulationCalls &calls,
                                          RewritePatternSet &patterns) {
  addEmulations(patterns, types, calls, emulatePosition, emulateFetch,
                emulateShare, emulateRing, emulateAcquire, emulateRelease,
                emulateCopyAsync, emulatePut, emulateWait<RingWaitOp>,
                emulateWait<RingPeekOp>, emulateRingCheck<RingMakeFiniteOp>,
                emulateRingCheck<RingCheckFiniteOp>, emulateRingIsFinite,
                emulateRingCopyFinite, emulateDequantize, emulateRingDequantize,
                emulateLoad, emulateLoadRow, emulateIsFinite, emulateMakeFinite,
                emulateClear, emulateStoreBulk, emulateClaim, emulateAddInOrder,
                emulateStoreDiagonals, emulateStoreInterleaved, emulateStore,
                emulateRead);
}
