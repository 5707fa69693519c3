//===- AddressOps.cpp - Views of rows in memory ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"

#include "flash/Dialect/Flash/IR/InitSizes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

AddressOpInterface AddressOpInterface::ofRows(Value rows) {
  if (auto dequantize = rows.getDefiningOp<DequantizeOp>())
    rows = dequantize.getSource();
  return rows.getDefiningOp<AddressOpInterface>();
}

AddressOpInterface AddressOpInterface::ofStored(Value result) {
  if (!result.hasOneUse())
    return {};
  // A kernel may store some rows, and the one behind it the others.
  Operation *user = *result.user_begin();
  if (auto kernel = dyn_cast<KernelOp>(user))
    for (auto [out, next] :
         llvm::zip_equal(kernel.getOuts(), kernel.getResults()))
      if (out == result)
        return ofStored(next);
  auto address = dyn_cast<AddressOpInterface>(user);
  return address && address.getView() == result ? address
                                                : AddressOpInterface();
}

//===----------------------------------------------------------------------===//
// Rows packed by offsets
//===----------------------------------------------------------------------===//

Value PackedRows::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value PackedRows::apply(AffineExpr expr, ArrayRef<Value> operands) {
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(b, loc, expr,
                                            getAsOpFoldResult(operands)));
}

Value PackedRows::emitSize(int64_t dim) {
  if (!sizes.empty())
    return sizes[dim == 0 ? 0 : 1];
  return getValueOrCreateConstantIndexOp(b, loc,
                                         getInitSizes(b, loc, memory)[dim]);
}

Value PackedRows::emitRows() {
  Value rows = emitSize(2);
  return hasParts() ? arith::MulIOp::create(b, loc, emitSize(0), rows) : rows;
}

Value PackedRows::emitRowsOfPart() {
  return arith::MaxSIOp::create(b, loc, emitSize(2), constant(1));
}

bool PackedRows::hasParts() {
  return cast<RankedTensorType>(memory.getType()).getDimSize(0) != 1;
}

Value PackedRows::emitPart(Value start) {
  // Sequences without rows may start behind the last row.
  Value last = arith::SubIOp::create(b, loc, emitSize(0), constant(1));
  return arith::MinSIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, start, emitRowsOfPart()), last);
}

Value PackedRows::emitBatches() {
  Value batches = getValueOrCreateConstantIndexOp(b, loc, emitSizes().front());
  if (!count)
    return batches;
  Value existing = tensor::ExtractOp::create(b, loc, count, constant(0));
  existing = arith::IndexCastOp::create(b, loc, b.getIndexType(), existing);
  return arith::MinSIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, existing, constant(0)), batches);
}

Value PackedRows::emitOffset(Value at, Value least) {
  Value offset = tensor::ExtractOp::create(b, loc, offsets, at);
  offset = arith::IndexCastOp::create(b, loc, b.getIndexType(), offset);
  return arith::MinSIOp::create(
      b, loc, arith::MaxSIOp::create(b, loc, offset, least), emitRows());
}

Value PackedRows::emitStart(Value batch) {
  return emitOffset(batch, constant(0));
}

SmallVector<OpFoldResult>
PackedRows::emitAddress(ArrayRef<OpFoldResult> position) {
  Value start = emitStart(getValueOrCreateConstantIndexOp(b, loc, position[0])),
        row = getValueOrCreateConstantIndexOp(b, loc, position[2]);
  if (!hasParts())
    return {b.getIndexAttr(0), position[1],
            arith::AddIOp::create(b, loc, start, row).getResult()};
  Value part = emitPart(start);
  Value before = arith::MulIOp::create(b, loc, part, emitRowsOfPart());
  Value inPart = arith::AddIOp::create(
      b, loc, arith::SubIOp::create(b, loc, start, before), row);
  return {part, position[1], inPart};
}

Value PackedRows::emitLength(Value batch) {
  Value start = emitStart(batch),
        next = arith::AddIOp::create(b, loc, batch, constant(1));
  Value end = emitOffset(next, start);
  if (hasParts()) {
    Value behind = arith::AddIOp::create(b, loc, emitPart(start), constant(1));
    end = arith::MinSIOp::create(
        b, loc, end, arith::MulIOp::create(b, loc, behind, emitRowsOfPart()));
  }
  return arith::SubIOp::create(b, loc, end, start);
}

SmallVector<std::pair<Value, Value>> PackedRows::emitGaps() {
  Value first = emitStart(constant(0)), end = emitOffset(emitBatches(), first);
  return {{constant(0), first}, {end, emitRows()}};
}

SmallVector<OpFoldResult> PackedRows::emitSizes() {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, memory);
  sizes[0] = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) - 1,
      {tensor::getMixedSize(b, loc, offsets, 0)});
  return sizes;
}

/// Where a sequence begins if the last tile of each one before it may lack all
/// rows but one: tiles of `rows` rows that are counted from there are enough
/// for all sequences, and no more where these have one row each.
static AffineExpr getBegin(OpBuilder &b, int64_t rows) {
  return b.getAffineDimExpr(0) + b.getAffineDimExpr(1) * (rows - 1);
}

Value PackedRows::emitTileCount(int64_t rows) {
  Value batches = emitBatches(), none = constant(0);
  Value count = apply(getBegin(b, rows).floorDiv(rows), {emitRows(), batches});
  // Without rows there may be no memory from which a tile could be loaded.
  Value least = arith::MinSIOp::create(b, loc, batches, emitRows());
  Value areSome =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, least, none);
  return arith::SelectOp::create(b, loc, areSome, count, none);
}

Value PackedRows::emitFirstTile(Value batch, int64_t rows) {
  // Offsets that decrease are no reason to count below the first one.
  Value first = emitStart(constant(0));
  Value before = arith::SubIOp::create(b, loc, emitOffset(batch, first), first);
  // A quotient of what is not negative is a shift, and a value that others are
  // computed of once.
  return arith::DivUIOp::create(
      b, loc, apply(getBegin(b, rows), {before, batch}), constant(rows));
}

Value PackedRows::emitGuess(Value number, int64_t rows) {
  auto toFloat = [&](Value index) -> Value {
    Value integer = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), integer);
  };
  auto toFloatConstant = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  // A quotient of floats costs less than one of integers that are not constant.
  // Half a row is more than what roundings lose.
  Value batches = emitBatches();
  Value ofRow = arith::DivFOp::create(
      b, loc, toFloat(batches),
      toFloat(apply(getBegin(b, rows), {emitRows(), batches})));
  Value row = arith::MulFOp::create(b, loc, toFloat(number),
                                    toFloatConstant(double(rows)));
  row = arith::AddFOp::create(b, loc, row, toFloatConstant(rows - 0.5));
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      arith::FPToSIOp::create(b, loc, b.getI32Type(),
                              arith::MulFOp::create(b, loc, row, ofRow)));
}

Value PackedRows::emitBatchOfTile(Value number, int64_t rows) {
  // The last batch whose first tile is not behind the tile. Each warp of each
  // block may compute this before it can do anything else, so the reads that
  // wait for each other count: where batches are equally long, the first guess
  // is right.
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  // In rows instead of tiles, nothing is divided.
  Value first = emitStart(constant(0));
  // Where no sequence has rows, the first one has none.
  Value batches = emitBatches();
  if (count)
    batches = arith::MaxSIOp::create(b, loc, batches, constant(1));
  Value next = apply((d0 + 1) * rows + d1, {number, first});
  auto isBefore = [&](Value batch) -> Value {
    Value at = apply(getBegin(b, rows), {emitOffset(batch, first), batch});
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, next);
  };
  auto takeIfBefore = [&](Value batch, Value last) -> Value {
    return arith::SelectOp::create(b, loc, isBefore(batch), batch, last);
  };
  Value end = apply(d0 - 1, batches);
  Value guess = arith::MinSIOp::create(b, loc, emitGuess(number, rows), end);
  Value isBehind = isBefore(apply(d0 + 1, guess)),
        isLast =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, guess, end);
  Value isRight =
      arith::SelectOp::create(b, loc, isBehind, isLast, isBefore(guess));
  Value searches =
      arith::SelectOp::create(b, loc, isRight, constant(0), constant(1));
  auto search =
      scf::ForOp::create(b, loc, constant(0), searches, constant(1), guess);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(search.getBody());
  // Otherwise it is found by bisection in a stretch of batches, and the stretch
  // by a loop, which has iterations only if there are many batches.
  constexpr int64_t stretch = 64;
  Value step = constant(stretch);
  auto loop = scf::ForOp::create(b, loc, step, batches, step, constant(0));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value last =
        takeIfBefore(loop.getInductionVar(), loop.getRegionIterArgs()[0]);
    scf::YieldOp::create(b, loc, last);
  }
  Value last = loop.getResult(0);
  for (int64_t half = stretch / 2; half > 0; half /= 2) {
    Value batch = arith::MinSIOp::create(b, loc, apply(d0 + half, last), end);
    last = takeIfBefore(batch, last);
  }
  scf::YieldOp::create(b, loc, last);
  return search.getResult(0);
}

/// Checks constant offsets by the rules that flash-run has for inputs.
static LogicalResult verifyConstants(Operation *op, Value offsets,
                                     int64_t rows) {
  DenseIntElementsAttr values;
  if (!matchPattern(offsets, m_Constant(&values)))
    return success();
  APInt before(values.getElementType().getIntOrFloatBitWidth(), 0);
  for (auto [number, offset] : llvm::enumerate(values.getValues<APInt>())) {
    if (offset.slt(before) ||
        (!ShapedType::isDynamic(rows) && offset.getSExtValue() > rows)) {
      InFlightDiagnostic error = op->emitOpError("has offsets that do not "
                                                 "decrease and are from 0 to ");
      return (ShapedType::isDynamic(rows) ? error << "the number of rows"
                                          : error << rows)
             << ", got " << offset.getSExtValue() << " as number " << number;
    }
    before = offset;
  }
  return success();
}

static LogicalResult verifyCount(Operation *op,
                                 TypedValue<RankedTensorType> count) {
  if (count.getType().getDimSize(0) == 1)
    return success();
  return op->emitOpError("has a count of one element, got ") << count.getType();
}

static LogicalResult verifyPacked(Operation *op, RankedTensorType memory,
                                  RankedTensorType view,
                                  TypedValue<RankedTensorType> offsetsValue,
                                  TypedValue<RankedTensorType> count,
                                  size_t numSizes) {
  if (count && failed(verifyCount(op, count)))
    return failure();
  if (numSizes != 0 && numSizes != 2)
    return op->emitOpError("of[...] are the two sizes M and T of memory, got ")
           << numSizes;
  RankedTensorType offsets = offsetsValue.getType();
  int64_t rank = memory.getRank();
  if (rank != 3 && rank != 4)
    return op->emitOpError("rows that lie behind each other are [M, H, T, D] "
                           "or [M, H, T], got ")
           << memory;
  if (!offsets.isDynamicDim(0) && offsets.getDimSize(0) < 1)
    return op->emitOpError("offsets have one element more than there are "
                           "sequences, got ")
           << offsets;
  SmallVector<int64_t> shape(memory.getShape());
  shape[0] = offsets.isDynamicDim(0) ? ShapedType::kDynamic
                                     : offsets.getDimSize(0) - 1;
  auto expected = RankedTensorType::get(shape, memory.getElementType());
  if (view != expected)
    return op->emitOpError("the view of ")
           << memory << " by " << offsets << " is " << expected << ", got "
           << view;
  int64_t rows = memory.isDynamicDim(0) || memory.isDynamicDim(2)
                     ? ShapedType::kDynamic
                     : memory.getDimSize(0) * memory.getDimSize(2);
  return verifyConstants(op, offsetsValue, rows);
}

/// Whether `lengths` are of sequences that start at `offsets`.
static bool areLengthsOf(Value lengths, Value offsets) {
  auto unpack = lengths ? lengths.getDefiningOp<UnpackOp>() : UnpackOp();
  return unpack && lengths == unpack.getLengths() &&
         offsets == unpack.getOffsets();
}

bool UnpackOp::hasLengths(Value lengths) {
  return areLengthsOf(lengths, getOffsets());
}

bool PackOp::hasLengths(Value lengths) {
  return areLengthsOf(lengths, getOffsets());
}

LogicalResult UnpackOp::verify() {
  RankedTensorType view = getView().getType();
  if (failed(verifyPacked(*this, getMemory().getType(), view, getOffsets(),
                          getCount(), getSizes().size())))
    return failure();
  if (getLengths().getType().getDimSize(0) != view.getDimSize(0))
    return emitOpError("has a length for each sequence of ")
           << view << ", got " << getLengths().getType();
  return success();
}

LogicalResult PackOp::verify() {
  if (failed(verifyPacked(*this, getMemory().getType(), getView().getType(),
                          getOffsets(), getCount(), getSizes().size())))
    return failure();
  // Kernels store results where they are packed, as many rows as they have.
  auto op = getView().getDefiningOp<AttentionOpInterface>();
  if (!op)
    return success();
  auto grad = dyn_cast<AttentionGradOp>(*op);
  bool areKeys = grad && (getView() == grad.getKeyGrad() ||
                          getView() == grad.getValueGrad());
  if (!hasLengths(areKeys ? op.getKeyLengths() : op.getQueryLengths()))
    return emitOpError("packs a result of ")
           << op->getName() << ", which needs "
           << (areKeys ? "key_lengths" : "query_lengths")
           << " that are the lengths of the same offsets";
  return success();
}

LogicalResult DocumentOffsetsOp::verify() {
  return verifyCount(*this, getCount());
}

//===----------------------------------------------------------------------===//
// Rows in pages
//===----------------------------------------------------------------------===//

/// An element of a tensor of integers, as an index.
static Value extractIndex(OpBuilder &b, Location loc, Value tensor,
                          ValueRange at) {
  Value element = tensor::ExtractOp::create(b, loc, tensor, at);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), element);
}

SmallVector<OpFoldResult>
UnpageOp::emitAddress(OpBuilder &b, Location loc,
                      ArrayRef<OpFoldResult> position) {
  AffineExpr row = b.getAffineDimExpr(0);
  auto ofRow = [&](AffineExpr expr) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, {position[2]});
  };
  Value batch = getValueOrCreateConstantIndexOp(b, loc, position[0]),
        column = getValueOrCreateConstantIndexOp(
            b, loc, ofRow(row.floorDiv(getPageRows())));
  Value page = extractIndex(b, loc, getTable(), {batch, column});
  Value last = getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, row - 1, {tensor::getMixedSize(b, loc, getMemory(), 0)}));
  page = arith::MinSIOp::create(b, loc, page, last);
  page = arith::MaxSIOp::create(b, loc, page,
                                arith::ConstantIndexOp::create(b, loc, 0));
  return {page, position[1], ofRow(row % getPageRows())};
}

Value UnpageOp::emitLength(OpBuilder &b, Location loc, Value batch) {
  Value length = extractIndex(b, loc, getLengths(), batch);
  length = arith::MaxSIOp::create(b, loc, length,
                                  arith::ConstantIndexOp::create(b, loc, 0));
  return arith::MinSIOp::create(
      b, loc, length,
      getValueOrCreateConstantIndexOp(b, loc, emitSizes(b, loc)[2]));
}

SmallVector<OpFoldResult> UnpageOp::emitSizes(OpBuilder &b, Location loc) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, getMemory());
  sizes[0] = tensor::getMixedSize(b, loc, getTable(), 0);
  sizes[2] = affine::makeComposedFoldedAffineApply(
      b, loc, b.getAffineDimExpr(0) * getPageRows(),
      {tensor::getMixedSize(b, loc, getTable(), 1)});
  return sizes;
}

LogicalResult UnpageOp::verify() {
  RankedTensorType memory = getMemory().getType(), table = getTable().getType();
  if ((memory.getRank() != 3 && memory.getRank() != 4) ||
      memory.isDynamicDim(2) || memory.getDimSize(2) < 1)
    return emitOpError("pages are [P, H, page, D] or [P, H, page], of a number "
                       "of rows that is static and at least 1, got ")
           << memory;
  SmallVector<int64_t> shape(memory.getShape());
  shape[0] = table.getDimSize(0);
  shape[2] = table.isDynamicDim(1) ? ShapedType::kDynamic
                                   : table.getDimSize(1) * getPageRows();
  auto expected = RankedTensorType::get(shape, memory.getElementType());
  if (getView().getType() != expected)
    return emitOpError("the view of ")
           << memory << " by " << table << " is " << expected << ", got "
           << getView().getType();
  if (getLengths().getType().getDimSize(0) != table.getDimSize(0))
    return emitOpError("has a length for each sequence of ")
           << table << ", got " << getLengths().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Elements of 8 bits
//===----------------------------------------------------------------------===//

LogicalResult DequantizeOp::verify() {
  RankedTensorType source = getSource().getType(), scale = getScale().getType(),
                   result = getResult().getType();
  if (source.getRank() != 4)
    return emitOpError("dequantizes [B, H, N, D], got ") << source;
  RankedTensorType expected = source.clone(result.getElementType());
  if (result != expected)
    return emitOpError("of ")
           << source << " gives " << expected << ", got " << result;
  auto areSame = [](auto pair) {
    auto [x, y] = pair;
    return ShapedType::isDynamic(x) || ShapedType::isDynamic(y) || x == y;
  };
  ArrayRef<int64_t> rows = source.getShape();
  bool isOfTensor = scale.getRank() == 1 && scale.getDimSize(0) == 1,
       isOfRows =
           (scale.getRank() == 2 || scale.getRank() == 3) &&
           llvm::all_of(llvm::zip_first(scale.getShape(), rows), areSame);
  if (isOfTensor || isOfRows)
    return success();
  return emitOpError("has one scale [1], or one for each batch and head [B, H] "
                     "or for each row [B, H, N] of ")
         << source << ", got " << scale;
}

LogicalResult DequantizeTileOp::verify() {
  RankedTensorType tile = getTile().getType(), result = getResult().getType();
  if (!tile.hasStaticShape() || tile.getShape() != result.getShape())
    return emitOpError("gives as many elements as a tile of static size has, "
                       "got ")
           << tile << " and " << result;
  Block &block = getScale().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (block.getNumArguments() == 1 &&
      block.getArgument(0).getType().isIndex() && yield &&
      yield.getResult().getType().isF32() && !yield.getKeep())
    return success();
  return emitOpError("has a region that takes a row, an index, and yields its "
                     "scale, of f32");
}

LogicalResult InterleaveOp::verify() {
  constexpr int64_t multiple = 16;
  RankedTensorType tile = getTile().getType(), result = getResult().getType();
  if (!tile.hasStaticShape() || tile.getDimSize(0) % multiple != 0)
    return emitOpError("interleaves a multiple of ")
           << multiple << " rows of static size, got " << tile;
  auto expected = tile.clone({tile.getDimSize(1), tile.getDimSize(0)});
  if (result != expected)
    return emitOpError("of ")
           << tile << " gives " << expected << ", got " << result;
  return success();
}
