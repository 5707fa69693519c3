//===- EmulateMemory.cpp - Shared memory and rings on the CPU -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"
#include "flash/Dialect/Tile/Utils/TileOrder.h"

#include "flash/Schedule/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flash::tile;

/// The value that an operand of an unchanged type has become.
static Value single(ValueRange values) {
  return values.empty() ? Value() : values.front();
}

static SmallVector<Value> single(ArrayRef<ValueRange> operands) {
  return llvm::map_to_vector(operands,
                             [](ValueRange values) { return single(values); });
}

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Calls `emit` with each place in a tile of these sizes.
static void forEachElement(
    OpBuilder &b, Location loc, ArrayRef<Value> sizes,
    llvm::function_ref<void(OpBuilder &, Location, ValueRange)> emit) {
  SmallVector<Value> zeros(sizes.size(), constant(b, loc, 0)),
      ones(sizes.size(), constant(b, loc, 1));
  scf::buildLoopNest(b, loc, zeros, sizes, ones, emit);
}

/// Of a tile of `tileRows` rows, how many exist.
static Value emitRows(OpBuilder &b, Location loc, Value rows,
                      int64_t tileRows) {
  Value all = constant(b, loc, tileRows);
  if (!rows)
    return all;
  Value atLeastNone = arith::MaxSIOp::create(b, loc, rows, constant(b, loc, 0));
  return arith::MinSIOp::create(b, loc, atLeastNone, all);
}

/// Checks that the memory has all that `op` touches: `rows` rows from the index
/// `rowDim` on, if there are any, of `columns` elements if there is a further
/// index. Of `packed` rows, so many are along that dimension, and the others
/// along the one before it.
static void emitRangeChecks(OpBuilder &b, Operation *op, EmulationCalls &calls,
                            Value memory, ValueRange indices, size_t rowDim,
                            Value rows, Value columns,
                            std::optional<int64_t> packed = std::nullopt) {
  Location loc = op->getLoc();
  Value one = arith::MinSIOp::create(b, loc, rows, constant(b, loc, 1));
  Value inner = rows, outer = one;
  if (packed) {
    Value most = constant(b, loc, *packed);
    inner = arith::MinSIOp::create(b, loc, rows, most);
    outer = arith::CeilDivSIOp::create(b, loc, rows, most);
  }
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value count = d == rowDim ? inner : d + 1 == rowDim ? outer : one;
    if (d > rowDim)
      count = arith::MulIOp::create(b, loc, one, columns);
    Value dimension = constant(b, loc, d);
    Value size = memref::DimOp::create(b, loc, memory, dimension);
    calls.create(b, op, "check_range", Type(), {index, count, dimension, size});
  }
}

/// The address of an element of the memory.
static Value emitAddress(OpBuilder &b, Location loc, Value memory,
                         memref::ExtractStridedMetadataOp metadata,
                         ValueRange indices, int64_t elementBytes) {
  Value element = metadata.getOffset();
  for (auto [index, stride] : llvm::zip(indices, metadata.getStrides())) {
    Value distance = arith::MulIOp::create(b, loc, index, stride);
    element = arith::AddIOp::create(b, loc, element, distance);
  }
  Value bytes = constant(b, loc, elementBytes);
  Value start = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memory);
  return arith::AddIOp::create(b, loc, start,
                               arith::MulIOp::create(b, loc, element, bytes));
}

/// The arguments of a copy: address of the first row, distance of rows in
/// bytes, number of rows that exist, how many are packed, and their distance.
static SmallVector<Value> emitSource(OpBuilder &b, Operation *op,
                                     EmulationCalls &calls, Value memory,
                                     ValueRange indices, Value rows,
                                     int64_t tileRows, SmemType tile,
                                     std::optional<int64_t> packed) {
  Location loc = op->getLoc();
  size_t rowDim = cast<MemRefType>(memory.getType()).getRank() - 2;
  rows = emitRows(b, loc, rows, tileRows);
  emitRangeChecks(b, op, calls, memory, indices, rowDim, rows,
                  constant(b, loc, tile.getColumns()), packed);
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memory);
  Value address =
      emitAddress(b, loc, memory, metadata, indices, tile.getElementBytes());
  Value bytes = constant(b, loc, tile.getElementBytes());
  auto byteStride = [&](size_t dim) -> Value {
    return arith::MulIOp::create(b, loc, metadata.getStrides()[dim], bytes);
  };
  Value stride = byteStride(rowDim);
  if (!packed)
    return {address, stride, rows, constant(b, loc, 1), constant(b, loc, 0)};
  return {address, byteStride(rowDim - 1), rows, constant(b, loc, *packed),
          stride};
}

Value flash::tile::readTile(OpBuilder &b, Location loc, Value buffer,
                            bool transpose, Type elementType,
                            ConvertElement convert) {
  SmallVector<int64_t> shape(cast<MemRefType>(buffer.getType()).getShape());
  AffineMap from = b.getMultiDimIdentityMap(2), to = from;
  if (transpose) {
    std::swap(shape[0], shape[1]);
    from =
        AffineMap::getPermutationMap(ArrayRef<unsigned>{1, 0}, b.getContext());
  }
  Value copy =
      memref::AllocOp::create(b, loc, MemRefType::get(shape, elementType));
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      b, loc, buffer, copy, {from, to}, iterators,
      [&](OpBuilder &b, Location loc, ValueRange elements) {
        linalg::YieldOp::create(b, loc, convert(b, loc, elements[0]));
      });
  return bufferization::ToTensorOp::create(
      b, loc, RankedTensorType::get(shape, elementType), copy,
      /*restrict=*/true, /*writable=*/true);
}

namespace {

struct EmulatePosition : EmulationPattern<PositionOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(PositionOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOp(op, emitPosition(b, op, flash::getMultiprocessors(op)));
    return success();
  }
};

static Value extendToF32(OpBuilder &b, Location loc, Value element) {
  if (element.getType().isF32())
    return element;
  return arith::ExtFOp::create(b, loc, b.getF32Type(), element);
}

/// Puts 0 in place of NaN and infinities.
static void makeFinite(ConversionPatternRewriter &b, Location loc,
                       Value buffer) {
  AffineMap all = b.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  linalg::GenericOp::create(
      b, loc, ValueRange(), buffer, {all}, loops,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        // Exactly where 0 times the element is a number.
        Value wide = extendToF32(b, loc, args[0]);
        Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
        Value product = arith::MulFOp::create(b, loc, wide, zero);
        Value isFinite = arith::CmpFOp::create(
            b, loc, arith::CmpFPredicate::ORD, product, product);
        Value element = arith::SelectOp::create(
            b, loc, isFinite, args[0],
            arith::ConstantOp::create(b, loc,
                                      b.getZeroAttr(args[0].getType())));
        linalg::YieldOp::create(b, loc, element);
      });
}

struct EmulateFetch : EmulationPattern<FetchOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(FetchOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    SmemType type = op.getResult().getType();
    SmallVector<Value> source = emitSource(
        b, op, calls, single(adaptor.getSource()), single(adaptor.getIndices()),
        single(adaptor.getRows()), type.getRows(), type, op.getPacked());
    Value tile = memref::AllocOp::create(
        b, loc,
        MemRefType::get({type.getRows(), type.getColumns()},
                        type.getElementType()));
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, tile);
    SmallVector<Value> arguments = {
        address, constant(b, loc, type.getRows()),
        constant(b, loc, type.getColumns() * type.getElementBytes())};
    llvm::append_range(arguments, source);
    calls.create(b, loc, "fetch", Type(), arguments);
    Value cast = memref::CastOp::create(b, loc, getEmulatedType(type), tile);
    Value lease = arith::ConstantIntOp::create(b, loc, 0, 64);
    if (op.getFinite())
      makeFinite(b, loc, cast);
    b.replaceOpWithMultiple(op, {{cast, lease}});
    return success();
  }
};

struct EmulateShare : EmulationPattern<ShareOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(ShareOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    SmemType type = op.getResult().getType();
    Value tile = memref::AllocOp::create(
        b, loc,
        MemRefType::get({type.getRows(), type.getColumns()},
                        type.getElementType()));
    auto copy = bufferization::MaterializeInDestinationOp::create(
        b, loc, /*result=*/Type(), single(adaptor.getX()), tile);
    copy.setWritable(true);
    Value cast = memref::CastOp::create(b, loc, getEmulatedType(type), tile);
    Value lease = arith::ConstantIntOp::create(b, loc, 0, 64);
    b.replaceOpWithMultiple(op, {{cast, lease}});
    return success();
  }
};

struct EmulateRing : EmulationPattern<RingOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    RingType type = op.getResult().getType();
    SmemType stage = type.getTile();
    Value stages = memref::AllocOp::create(
        b, loc,
        MemRefType::get({type.getStages(), stage.getRows(), stage.getColumns()},
                        stage.getElementType()));
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, loc, stages);
    Value ring = calls.create(
        b, op, "ring", b.getI64Type(),
        {address, constant(b, loc, type.getStages()),
         constant(b, loc, stage.getRows()),
         constant(b, loc, stage.getColumns() * stage.getElementBytes()),
         constant(b, loc, std::max<int64_t>(calls.readers.lookup(op), 1)),
         constant(b, loc, op.getNumCopies())});
    b.replaceOpWithMultiple(op, {{stages, ring}});
    return success();
  }
};

struct EmulateRingAcquire : EmulationPattern<RingAcquireOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingAcquireOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.create(b, op, "acquire", Type(),
                 {adaptor.getRing()[1], single(adaptor.getStep())});
    b.eraseOp(op);
    return success();
  }
};

struct EmulateCopyAsync : EmulationPattern<CopyAsyncOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(CopyAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    SmemType stage = op.getRing().getType().getTile();
    auto ring = op.getRing().getDefiningOp<RingOp>();
    Value part = single(adaptor.getPart());
    if (!part)
      part = constant(b, op.getLoc(), 0);
    SmallVector<Value> arguments = {adaptor.getRing()[1],
                                    single(adaptor.getStep()), part};
    arguments.append(emitSource(
        b, op, calls, single(adaptor.getSource()), single(adaptor.getIndices()),
        single(adaptor.getRows()),
        ring ? ring.getRowsOfCopy() : stage.getRows(), stage, op.getPacked()));
    calls.create(b, op, "copy_async", Type(), arguments);
    b.eraseOp(op);
    return success();
  }
};

/// The stage of a step of a ring whose stages are in `stages`.
static Value getStage(OpBuilder &b, Location loc, RingType type, Value stages,
                      Value step) {
  SmemType stageType = type.getTile();
  Value stage =
      arith::RemUIOp::create(b, loc, step, constant(b, loc, type.getStages()));
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  return memref::SubViewOp::create(
      b, loc, getEmulatedType(stageType), stages,
      ArrayRef<OpFoldResult>{stage, zero, zero},
      ArrayRef<OpFoldResult>{one, b.getIndexAttr(stageType.getRows()),
                             b.getIndexAttr(stageType.getColumns())},
      ArrayRef<OpFoldResult>{one, one, one});
}

struct EmulateRingPut : EmulationPattern<RingPutOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingPutOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value at[] = {adaptor.getRing()[1], single(adaptor.getStep())};
    calls.create(b, op, "start_put", Type(), at);
    Value tile = getStage(b, op.getLoc(), op.getRing().getType(),
                          adaptor.getRing()[0], at[1]);
    auto copy = bufferization::MaterializeInDestinationOp::create(
        b, op.getLoc(), /*result=*/Type(), single(adaptor.getX()), tile);
    copy.setWritable(true);
    calls.create(b, op, "end_put", Type(), at);
    b.eraseOp(op);
    return success();
  }
};

template <typename OpTy> struct EmulateRingWait : EmulationPattern<OpTy> {
  using EmulationPattern<OpTy>::EmulationPattern;
  using typename EmulationPattern<OpTy>::OneToNOpAdaptor;
  LogicalResult matchAndRewrite(OpTy op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto ring = op.getRing().template getDefiningOp<RingOp>();
    bool isMadeFinite = ring && ring.getFinite();
    Value lease = this->calls.create(
        b, op, isMadeFinite ? "wait_checked" : "wait", b.getI64Type(),
        {adaptor.getRing()[1], single(adaptor.getStep())});
    Value tile = getStage(b, op.getLoc(), op.getRing().getType(),
                          adaptor.getRing()[0], single(adaptor.getStep()));
    b.replaceOpWithMultiple(op, {{tile, lease}});
    return success();
  }
};

struct EmulateRingRelease : EmulationPattern<RingReleaseOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingReleaseOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.create(b, op, "release", Type(),
                 {adaptor.getRing()[1], single(adaptor.getStep())});
    b.eraseOp(op);
    return success();
  }
};

struct EmulateLoad : EmulationPattern<LoadOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(LoadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.checkLease(b, op, adaptor.getSource()[1]);
    auto asIs = [](OpBuilder &, Location, Value element) { return element; };
    RankedTensorType type = op.getResult().getType();
    Value tile = readTile(b, op.getLoc(), adaptor.getSource()[0],
                          op.getTranspose(), type.getElementType(), asIs);
    if (type.getRank() == 1)
      tile = tensor::CollapseShapeOp::create(
          b, op.getLoc(), tile, ArrayRef<ReassociationIndices>{{0, 1}});
    b.replaceOp(op, tile);
    return success();
  }
};

struct EmulateLoadRow : EmulationPattern<LoadRowOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(LoadRowOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    calls.checkLease(b, op, adaptor.getSource()[1]);
    Value buffer = adaptor.getSource()[0];
    ArrayRef<int64_t> shape = op.getResult().getType().getShape();
    OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1),
                 columns = b.getIndexAttr(shape[1]);
    SmallVector<OpFoldResult> offsets = {single(adaptor.getRow()), zero},
                              sizes = {one, columns}, strides = {one, one};
    auto type = memref::SubViewOp::inferRankReducedResultType(
        shape[1], cast<MemRefType>(buffer.getType()), offsets, sizes, strides);
    Value row = memref::SubViewOp::create(b, loc, type, buffer, offsets, sizes,
                                          strides);
    Value rows =
        memref::AllocOp::create(b, loc, MemRefType::get(shape, b.getF32Type()));
    AffineMap from = AffineMap::get(2, 0, b.getAffineDimExpr(1)),
              to = b.getMultiDimIdentityMap(2);
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::parallel);
    linalg::GenericOp::create(
        b, loc, row, rows, {from, to}, iterators,
        [&](OpBuilder &b, Location loc, ValueRange elements) {
          linalg::YieldOp::create(b, loc, extendToF32(b, loc, elements[0]));
        });
    b.replaceOpWithNewOp<bufferization::ToTensorOp>(
        op, RankedTensorType::get(shape, b.getF32Type()), rows,
        /*restrict=*/true, /*writable=*/true);
    return success();
  }
};

/// Whether all elements are finite: exactly then 0 times the elements sums to
/// something that equals itself.
static Value isFinite(ConversionPatternRewriter &b, Location loc,
                      Value buffer) {
  Value elements = readTile(b, loc, buffer, /*transpose=*/false, b.getF32Type(),
                            extendToF32);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  Value init =
      tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>{}, b.getF32Type());
  init = linalg::FillOp::create(b, loc, zero, init).getResult(0);
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::reduction);
  Value sum =
      linalg::GenericOp::create(
          b, loc, init.getType(), elements, init,
          {b.getMultiDimIdentityMap(2), AffineMap::get(2, 0, b.getContext())},
          iterators,
          [&](OpBuilder &b, Location loc, ValueRange args) {
            Value part = arith::MulFOp::create(b, loc, args[0], zero);
            Value next = arith::AddFOp::create(b, loc, args[1], part);
            linalg::YieldOp::create(b, loc, next);
          })
          .getResult(0);
  Value total = tensor::ExtractOp::create(b, loc, sum, ValueRange{});
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, total, total);
}

struct EmulateIsFinite : EmulationPattern<IsFiniteOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(IsFiniteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.checkLease(b, op, adaptor.getSource()[1]);
    b.replaceOp(op, isFinite(b, op.getLoc(), adaptor.getSource()[0]));
    return success();
  }
};

struct EmulateMakeFinite : EmulationPattern<MakeFiniteOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(MakeFiniteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.checkLease(b, op, adaptor.getTile()[1]);
    makeFinite(b, op.getLoc(), adaptor.getTile()[0]);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateRingMakeFinite : EmulationPattern<RingMakeFiniteOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingMakeFiniteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value at[] = {adaptor.getRing()[1], single(adaptor.getStep())};
    calls.create(b, op, "wait", b.getI64Type(), at);
    makeFinite(b, op.getLoc(),
               getStage(b, op.getLoc(), op.getRing().getType(),
                        adaptor.getRing()[0], at[1]));
    calls.create(b, op, "set_checked", Type(), at);
    calls.create(b, op, "release", Type(), at);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateRingCheckFinite : EmulationPattern<RingCheckFiniteOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingCheckFiniteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Value at[] = {adaptor.getRing()[1], single(adaptor.getStep())};
    calls.create(b, op, "wait", b.getI64Type(), at);
    if (!op.getUnchecked())
      calls.create(b, op, "set_checked", Type(), at);
    calls.create(b, op, "release", Type(), at);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateRingIsFinite : EmulationPattern<RingIsFiniteOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(RingIsFiniteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.create(b, op, "wait_checked", b.getI64Type(),
                 {adaptor.getRing()[1], single(adaptor.getStep())});
    Value tile = getStage(b, op.getLoc(), op.getRing().getType(),
                          adaptor.getRing()[0], single(adaptor.getStep()));
    b.replaceOp(op, isFinite(b, op.getLoc(), tile));
    return success();
  }
};

struct EmulateClear : EmulationPattern<ClearOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(ClearOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    calls.checkLease(b, op, adaptor.getTile()[1]);
    Value zero = arith::ConstantOp::create(
        b, op.getLoc(), b.getZeroAttr(op.getTile().getType().getElementType()));
    linalg::FillOp::create(b, op.getLoc(), zero, adaptor.getTile()[0]);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateStoreBulk : EmulationPattern<StoreBulkOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(StoreBulkOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    if (op.getReused())
      calls.checkLease(b, op, adaptor.getReused()[1]);
    // The copy stops where the memory does, and nowhere else.
    Location loc = op.getLoc();
    Value rows = op.getRows();
    if (!rows) {
      int64_t rowDim = op.getDestination().getType().getRank() - 2;
      Value end = memref::DimOp::create(b, loc, op.getDestination(), rowDim);
      rows = arith::SubIOp::create(b, loc, end, op.getIndices()[rowDim]);
      rows = arith::MinSIOp::create(
          b, loc, rows,
          constant(b, loc,
                   cast<ShapedType>(op.getX().getType()).getDimSize(0)));
    }
    b.replaceOpWithNewOp<StoreOp>(op, op.getAdd(), op.getX(),
                                  op.getDestination(), op.getIndices(), rows,
                                  /*toEnd=*/false, /*columns=*/Value(),
                                  /*packed=*/IntegerAttr());
    return success();
  }
};

/// All roles of a block ask for the number of a step, and the first one claims
/// it.
struct EmulateClaim : EmulationPattern<ClaimOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(ClaimOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value counts = single(adaptor.getCounts());
    SmallVector<Value> indices = single(adaptor.getIndices());
    Value one = constant(b, loc, 1);
    emitRangeChecks(b, op, calls, counts, indices, /*rowDim=*/indices.size(),
                    one, one);
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, counts);
    Value address = emitAddress(b, loc, counts, metadata, indices,
                                /*elementBytes=*/sizeof(int32_t));
    Value number = calls.create(b, op, "claim", b.getI64Type(),
                                {single(adaptor.getStep()), address});
    b.replaceOpWithNewOp<arith::IndexCastOp>(op, b.getIndexType(), number);
    return success();
  }
};

/// Blocks are run one after the other (see `inlineLaunch`), so that a count
/// which is less than the rank stays so.
struct EmulateAddInOrder : EmulationPattern<AddInOrderOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(AddInOrderOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    SmemType tile = op.getTile().getType();
    calls.checkLease(b, op, adaptor.getTile()[1]);
    Value sums = single(adaptor.getSums()),
          counts = single(adaptor.getCounts()),
          rank = single(adaptor.getRank());
    SmallVector<Value> indices = single(adaptor.getIndices()),
                       countIndices = single(adaptor.getCountIndices());
    Value one = constant(b, loc, 1);
    emitRangeChecks(b, op, calls, counts, countIndices,
                    /*rowDim=*/countIndices.size(), one, one);
    Value count = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        memref::LoadOp::create(b, loc, counts, countIndices));
    calls.create(b, op, "check_rank", Type(), {rank, count});

    // Rows that the memory does not have are left out.
    size_t rowDim = indices.size() - 1;
    Value size = memref::DimOp::create(b, loc, sums, rowDim);
    Value rows =
        emitRows(b, loc, arith::SubIOp::create(b, loc, size, indices[rowDim]),
                 tile.getRows());
    emitRangeChecks(b, op, calls, sums, indices, rowDim, rows,
                    /*columns=*/Value());
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          rank, constant(b, loc, 0));
    forEachElement(
        b, loc, {rows, constant(b, loc, tile.getColumns())},
        [&](OpBuilder &b, Location loc, ValueRange at) {
          SmallVector<Value> place(indices);
          place[rowDim] = arith::AddIOp::create(b, loc, place[rowDim], at[0]);
          place.push_back(at[1]);
          Value x = memref::LoadOp::create(b, loc, adaptor.getTile()[0], at);
          Value before = memref::LoadOp::create(b, loc, sums, place);
          Value sum = arith::AddFOp::create(b, loc, before, x);
          sum = arith::SelectOp::create(b, loc, isFirst, x, sum);
          memref::StoreOp::create(b, loc, sum, sums, place);
        });
    Value next = arith::IndexCastOp::create(
        b, loc, b.getI32Type(), arith::AddIOp::create(b, loc, rank, one));
    memref::StoreOp::create(b, loc, next, counts, countIndices);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateStoreDiagonals : EmulationPattern<StoreDiagonalsOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(StoreDiagonalsOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    SmemType tile = op.getTile().getType();
    calls.checkLease(b, op, adaptor.getTile()[1]);
    Value sums = single(adaptor.getSums()), x = adaptor.getTile()[0];
    SmallVector<Value> place = single(adaptor.getIndices());
    int64_t rows = tile.getRows(), columns = tile.getColumns();
    emitRangeChecks(b, op, calls, sums, place, /*rowDim=*/place.size() - 1,
                    constant(b, loc, 1), /*columns=*/Value());
    place.push_back(Value());
    Value nothing = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    forEachElement(b, loc, constant(b, loc, rows + columns),
                   [&](OpBuilder &b, Location loc, ValueRange at) {
                     place.back() = at[0];
                     memref::StoreOp::create(b, loc, nothing, sums, place);
                   });
    forEachElement(
        b, loc, {constant(b, loc, rows), constant(b, loc, columns)},
        [&](OpBuilder &b, Location loc, ValueRange at) {
          place.back() = arith::SubIOp::create(
              b, loc,
              arith::AddIOp::create(b, loc, at[1], constant(b, loc, rows)),
              at[0]);
          Value element = memref::LoadOp::create(b, loc, x, at);
          element = arith::ExtFOp::create(b, loc, b.getF32Type(), element);
          Value sum = memref::LoadOp::create(b, loc, sums, place);
          memref::StoreOp::create(
              b, loc, arith::AddFOp::create(b, loc, sum, element), sums, place);
        });
    b.eraseOp(op);
    return success();
  }
};

/// Stores a tile whose rows are packed element by element: they are no view of
/// the memory.
static void storePackedRows(OpBuilder &b, StoreOp op, Value tile, Value memory,
                            ArrayRef<Value> indices, Value rows,
                            Value columns) {
  Location loc = op.getLoc();
  size_t numDims = columns ? 2 : 1,
         rowDim = op.getDestination().getType().getRank() - numDims;
  SmallVector<Value> ends = {rows}, place(indices);
  if (columns)
    ends.push_back(columns);
  if (place.size() == rowDim + 1 && columns)
    place.push_back(constant(b, loc, 0));
  Value packed = constant(b, loc, *op.getPacked());
  forEachElement(b, loc, ends, [&](OpBuilder &b, Location loc, ValueRange at) {
    auto advance = [&](size_t dim, Value distance) {
      place[dim] = arith::AddIOp::create(b, loc, place[dim], distance);
    };
    advance(rowDim - 1, arith::DivUIOp::create(b, loc, at[0], packed));
    advance(rowDim, arith::RemUIOp::create(b, loc, at[0], packed));
    if (columns)
      advance(rowDim + 1, at[1]);
    Value x = tensor::ExtractOp::create(b, loc, tile, at);
    if (op.getAdd())
      memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::addf, x, memory,
                                  place);
    else
      memref::StoreOp::create(b, loc, x, memory, place);
  });
}

struct EmulateStore : EmulationPattern<StoreOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value tile = single(adaptor.getX()),
          memory = single(adaptor.getDestination());
    SmallVector<Value> indices = single(adaptor.getIndices());
    auto type = cast<RankedTensorType>(tile.getType());
    bool isMatrix = type.getRank() == 2;
    size_t rowDim =
        op.getDestination().getType().getRank() - (isMatrix ? 2 : 1);
    Value rows =
        emitRows(b, loc, single(adaptor.getRows()), type.getDimSize(0));
    Value columns = isMatrix ? emitRows(b, loc, single(adaptor.getColumns()),
                                        type.getDimSize(1))
                             : Value();
    emitRangeChecks(b, op, calls, memory, indices, rowDim, rows, columns,
                    op.getPacked());
    if (op.getPacked()) {
      storePackedRows(b, op, tile, memory, indices, rows, columns);
      b.eraseOp(op);
      return success();
    }

    // What the checks have refused must not be known to be wrong at compile
    // time either, or the view would be an invalid operation.
    for (auto [d, index] : llvm::enumerate(indices)) {
      Value size = memref::DimOp::create(b, loc, memory, d);
      Value count = d == rowDim  ? rows
                    : d > rowDim ? columns
                                 : constant(b, loc, 1);
      Value last = arith::SubIOp::create(b, loc, size, count);
      index = arith::MinSIOp::create(b, loc, index, last);
      index = arith::MaxSIOp::create(b, loc, index, constant(b, loc, 0));
    }

    OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
    SmallVector<OpFoldResult> offsets = getAsOpFoldResult(indices),
                              sizes(rowDim, one), tileSizes;
    tileSizes.push_back(getAsOpFoldResult(rows));
    if (isMatrix) {
      if (offsets.size() == rowDim + 1)
        offsets.push_back(zero);
      tileSizes.push_back(getAsOpFoldResult(columns));
    }
    llvm::append_range(sizes, tileSizes);
    SmallVector<OpFoldResult> memoryStrides(sizes.size(), one),
        tileOffsets(tileSizes.size(), zero), tileStrides(tileSizes.size(), one);
    auto existing = tensor::ExtractSliceOp::create(b, loc, tile, tileOffsets,
                                                   tileSizes, tileStrides);
    auto viewType = memref::SubViewOp::inferRankReducedResultType(
        existing.getType().getShape(), op.getDestination().getType(), offsets,
        sizes, memoryStrides);
    Value view = memref::SubViewOp::create(b, loc, viewType, memory, offsets,
                                           sizes, memoryStrides);
    if (op.getAdd()) {
      // Blocks run at the same time.
      forEachElement(b, loc, {rows, columns},
                     [&](OpBuilder &b, Location loc, ValueRange at) {
                       Value x =
                           tensor::ExtractOp::create(b, loc, existing, at);
                       memref::AtomicRMWOp::create(
                           b, loc, arith::AtomicRMWKind::addf, x, view, at);
                     });
      b.eraseOp(op);
      return success();
    }
    auto copy = bufferization::MaterializeInDestinationOp::create(
        b, loc, /*result=*/Type(), existing, view);
    copy.setWritable(true);
    b.eraseOp(op);
    return success();
  }
};

struct EmulateRead : EmulationPattern<ReadOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(ReadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value memory = single(adaptor.getSource());
    SmallVector<Value> indices = single(adaptor.getIndices());
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    Value rows =
        emitRows(b, loc, single(adaptor.getRows()), type.getDimSize(0));
    bool isMatrix = type.getRank() == 2;
    Value columns = isMatrix ? emitRows(b, loc, single(adaptor.getColumns()),
                                        type.getDimSize(1))
                             : Value();
    // A GPU reads the first element in any case if there is said to be one.
    auto least = [&](Value count) -> Value {
      if (!count || !op.getNonempty())
        return count;
      return arith::MaxSIOp::create(b, loc, count, constant(b, loc, 1));
    };
    emitRangeChecks(b, op, calls, memory, indices,
                    indices.size() - type.getRank(), least(rows),
                    least(columns));
    Value none = single(adaptor.getPadding());
    if (!none) {
      auto element = cast<FloatType>(type.getElementType());
      APFloat value = isMatrix ? APFloat::getNaN(element.getFloatSemantics())
                               : APFloat(element.getFloatSemantics());
      none = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, value));
    }
    auto readElement = [&](OpBuilder &b, Location loc, ValueRange at) {
      auto isBelow = [&](Value x, Value bound) {
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x,
                                     bound);
      };
      Value exists = isBelow(at[0], rows);
      if (isMatrix)
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
    b.replaceOpWithNewOp<tensor::GenerateOp>(op, type, ValueRange(),
                                             readElement);
    return success();
  }
};

} // namespace

void flash::tile::populateMemoryEmulation(const EmulationTypes &types,
                                          EmulationCalls &calls,
                                          RewritePatternSet &patterns) {
  patterns.add<EmulatePosition, EmulateFetch, EmulateShare, EmulateRing,
               EmulateRingAcquire, EmulateCopyAsync, EmulateRingPut,
               EmulateRingWait<RingWaitOp>, EmulateRingWait<RingPeekOp>,
               EmulateRingRelease, EmulateLoad, EmulateLoadRow, EmulateIsFinite,
               EmulateMakeFinite, EmulateRingMakeFinite, EmulateRingCheckFinite,
               EmulateRingIsFinite, EmulateRead, EmulateStore, EmulateStoreBulk,
               EmulateClaim, EmulateAddInOrder, EmulateStoreDiagonals,
               EmulateClear>(types, patterns.getContext(), calls);
}
