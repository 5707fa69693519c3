//===- TileBlockMaps.cpp - What a mask leaves, counted and listed ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KeepOfTile.h"
#include "TileBuilder.h"
#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/IR/OnlineFormula.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/MaskConditions.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace flash {
#define GEN_PASS_DEF_TILEBLOCKMAPS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
class MapTiler : TileBuilder {
public:
  explicit MapTiler(BlockMapOp op)
      : TileBuilder(op), op(op), sizes(op.getMixedSizes()),
        packedHeads(op.getPackedHeads()),
        fixed({op.getTiles()[op.getFixedDim()], sizes[2 + op.getFixedDim()]}),
        listed(
            {op.getTiles()[1 - op.getFixedDim()], sizes[3 - op.getFixedDim()]}),
        numListed(countTiles(listed)), numFixed(countTiles(fixed)),
        numMaps(apply(b.getAffineDimExpr(0).floorDiv(packedHeads), sizes[1])),
        mask(op.getMask().value_or(
            cast<MaskAttrInterface>(FullAttr::get(op.getContext())))),
        ofMask(computeMaskTiles(
            op.getOverQueries() ? transposeMask(mask) : mask, fixed.tile,
            listed.tile, getConstantIntValue(fixed.end),
            getConstantIntValue(listed.end), packedHeads)) {}

  void run();

private:
  // Listed tiles of a unit of the first loop, and entries of the list of one of
  // the second: rows of a tile, of which warps have one or several each.
  static constexpr int64_t tilesOfUnit = 8;
  // Tiles that a row is counted from in a step.
  static constexpr int64_t tilesAtOnce = 128;
  // Masks of more sets do not classify a unit's tiles before their elements are
  // evaluated.
  static constexpr size_t mostSetsOfUnit = 4;
  // Whole numbers are exact in f32 up to here.
  static constexpr int64_t mostExact = 1 << 24;

  OpFoldResult index(int64_t value) { return b.getIndexAttr(value); }
  Value value(OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), entry);
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  OpFoldResult apply(AffineExpr expr, OpFoldResult operand) {
    return affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr,
                                                 {operand});
  }
  OpFoldResult countTiles(const TiledDim &dim) {
    return apply(b.getAffineDimExpr(0).ceilDiv(dim.tile), dim.end);
  }
  Value tileOf(Value start) {
    return value(apply(b.getAffineDimExpr(0).floorDiv(fixed.tile), start));
  }
  Value tensorOf(ArrayRef<OpFoldResult> shape, Type element) {
    return tensor::EmptyOp::create(b, shape, element);
  }

  /// 1 for each element that is kept of one query, or key, that has lists, and
  /// the tiles from `firstTile` on, else 0.
  Value keptOfRow(Value batch, Value head, Value row, Value firstTile);
  /// How many elements a tile has, of which all are kept.
  Value countAll(Value start) {
    return arith::MulIOp::create(b, value(fixed.existing(b, b.getLoc(), start)),
                                 constant(packedHeads * listed.tile));
  }
  /// Whether the mask alone says what is left of each tile.
  bool isKnown() { return op.getKeep().empty() && !ofMask.gaveUp; }
  /// A tile that has a list: where it starts, and the number of keys if the
  /// batch has one.
  struct FixedTile {
    Value batch, map, start, length;
  };
  Value getLength(Value batch);
  /// For reads of the region that depend on the rows of a tile, and besides on
  /// the batch and the head at most, the least and the greatest number of each
  /// tile: kernels that run first.
  void emitExtremesOfReads();
  /// The range of such a read for a tile and a listed one. It is not one unless
  /// `isExact`, to which it adds that the numbers are small enough for f32.
  IndexRange getRangeOfRead(ImplicitLocOpBuilder &at, tensor::ExtractOp read,
                            const FixedTile &tile, Value listedTile,
                            Value &isExact);
  /// What is known to be left of a tile and a listed one without evaluating
  /// their elements; two nulls if nothing is.
  TileCondition classify(ImplicitLocOpBuilder &at, const FixedTile &tile,
                         Value listedTile);
  /// How many elements are kept of each of a unit's tiles, from `firstTile` on.
  Value countInUnit(Value batch, Value map, Value start, Value firstTile);
  /// How many elements are kept of each pair of tiles: f32, which is exact for
  /// the largest tiles.
  Value countKept();
  /// Adds the elements of each row to `sums`.
  Value addRows(Value tile, Value sums) {
    return generic(
        tile, sums, {map(2, {0, 1}), map(2, {0})},
        [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          return {arith::AddFOp::create(at, args[1], args[0])};
        })[0];
  }

  /// A tile whose list is made: which one it is, how many elements are kept of
  /// it and each of the others, unless the mask alone says it, and how many
  /// there are of a whole one.
  struct CountedTile : FixedTile {
    Value number, kept, all;
  };
  Value emitFloat(ImplicitLocOpBuilder &at, Value number) {
    Value narrow = arith::IndexCastOp::create(at, at.getI32Type(), number);
    return arith::SIToFPOp::create(at, at.getF32Type(), narrow);
  }
  /// The number, or the last one below `end`.
  Value emitBelow(ImplicitLocOpBuilder &at, Value number, Value end) {
    Value last =
        arith::SubIOp::create(at, end, arith::ConstantIndexOp::create(at, 1));
    return arith::MinSIOp::create(at, number, last);
  }
  Value keptOf(const CountedTile &tile, ImplicitLocOpBuilder &at,
               Value listedTile);
  Value emitIsSome(ImplicitLocOpBuilder &at, Value count) {
    return arith::CmpFOp::create(at, arith::CmpFPredicate::OGT, count,
                                 emitConstant(at, 0.0));
  }
  Value isPart(ImplicitLocOpBuilder &at, const CountedTile &tile, Value count) {
    Value isSome = emitIsSome(at, count);
    Value isLess =
        arith::CmpFOp::create(at, arith::CmpFPredicate::OLT, count, tile.all);
    return arith::AndIOp::create(at, isSome, isLess);
  }
  Value isWhole(ImplicitLocOpBuilder &at, const CountedTile &tile,
                Value count) {
    return arith::CmpFOp::create(at, arith::CmpFPredicate::OEQ, count,
                                 tile.all);
  }
  /// Of a listed tile, of how many of its elements are kept, and of the values
  /// of an entry.
  using Condition =
      llvm::function_ref<Value(ImplicitLocOpBuilder &at, Value listedTile,
                               Value count, ValueRange ofEntry)>;
  /// For each of a unit's entries, of which there are values `ofEntries`, how
  /// many numbers below `end` a condition holds for.
  using NumberCondition = llvm::function_ref<Value(
      ImplicitLocOpBuilder &at, Value number, ValueRange ofEntry)>;
  Value countIf(Value end, ValueRange ofEntries, NumberCondition condition);
  /// For each of a unit's entries, how many tiles a condition holds for.
  Value countTilesIf(const CountedTile &tile, ValueRange ofEntries,
                     Condition condition);
  /// Of an entry, how many of the tiles that are looked for come before its
  /// own.
  using CountBefore =
      llvm::function_ref<Value(ImplicitLocOpBuilder &at, ValueRange ofEntry)>;
  /// For each of a unit's entries, the first tile up to which the condition
  /// holds for more than that count; `most` if that is not before it, and any
  /// tile unless `isUsed`.
  Value findTiles(const CountedTile &tile, ValueRange ofEntries,
                  CountBefore countBefore, Condition condition, Value most,
                  Value isUsed);
  /// The number of a row's entry, from `first` on.
  Value emitEntry(ImplicitLocOpBuilder &at, Value first) {
    return emitFloat(
        at, arith::AddIOp::create(at, first, linalg::IndexOp::create(at, 0)));
  }
  /// What a unit writes to an output: a value for each of its entries.
  struct Written {
    int64_t output;
    Value ofEntries;
    OpFoldResult offset;
  };
  /// Which tiles are in a unit's entries, of which the first `numParts` of the
  /// row are parts.
  Value findTilesOfKinds(const CountedTile &tile, Value firstEntry,
                         Value numParts, Value isUsed);
  /// Whether a run begins with a tile.
  Value emitBeginsRun(ImplicitLocOpBuilder &at, const CountedTile &tile,
                      Value listedTile, Value count);
  /// The first tiles of the runs in a unit's entries, where their parts end and
  /// where they do.
  SmallVector<Value> findRuns(const CountedTile &tile, Value firstEntry,
                              Value isUsed);
  /// Of the tiles that are a unit's entries, to how many tiles with lists
  /// behind `tile` they are left.
  Value countRanks(const CountedTile &tile, Value firstEntry);
  CountedTile getCountedTile(ValueRange position, Value kept);
  /// Emits how many entries of each list are parts, or its runs, and how many
  /// tiles are left; `kept` is null where the mask alone says what is left of
  /// tiles.
  Value countEntries(Value kept);
  /// Emits the lists of these lengths, and the ranks if there are any.
  SmallVector<Value> list(Value kept, Value counts);
  /// The shape of numbers of each tile that has a list.
  SmallVector<OpFoldResult> getShapeOfLists(OpFoldResult columns) {
    return {sizes[0], numMaps, numFixed, columns};
  }
  /// The first numbers of a unit's entries.
  Value takeEntries(Value ofEntries, OpFoldResult count);

  BlockMapOp op;
  SmallVector<OpFoldResult> sizes;
  int64_t packedHeads;
  /// The queries or keys of which each tile has a list, and the others.
  TiledDim fixed, listed;
  OpFoldResult numListed, numFixed;
  /// Of each batch.
  OpFoldResult numMaps;
  MaskAttrInterface mask;
  /// What the mask says of tiles, whatever the region does.
  MaskTiles ofMask;
  /// f32 [batches or 1, heads or 1, tiles]: the greatest of the numbers that a
  /// read returns, and of their negatives.
  struct Extremes {
    bool ofBatches, ofHeads, ofListed;
    Value most, mostNegative;
  };
  llvm::DenseMap<Operation *, Extremes> extremes;
};
} // namespace

Value MapTiler::keptOfRow(Value batch, Value head, Value row, Value firstTile) {
  Value numQueries = value(sizes[2]), numKeys = value(sizes[3]);
  Value end = op.getOverQueries() ? numQueries : numKeys;
  Value length;
  if (op.getLengths())
    length = tensor::ExtractOp::create(b, op.getLengths(), batch);
  return generic(
      {}, empty({tilesOfUnit, listed.tile}), map(2, {0, 1}),
      [&](ImplicitLocOpBuilder &at, ValueRange) -> SmallVector<Value> {
        Location loc = at.getLoc();
        Value tile = arith::AddIOp::create(at, firstTile,
                                           linalg::IndexOp::create(at, 0));
        Value start = arith::MulIOp::create(
            at, tile, arith::ConstantIndexOp::create(at, listed.tile));
        Value other =
            arith::AddIOp::create(at, start, linalg::IndexOp::create(at, 1));
        Value query = row, key = other;
        if (op.getOverQueries())
          std::swap(query, key);
        ScorePosition position = {batch, head, query, key, numQueries, numKeys};
        Value kept = emitMaskPredicate(at, loc, mask, position);
        kept = emitLengthPredicate(at, loc, kept, length, key);
        Value exists =
            arith::CmpIOp::create(at, arith::CmpIPredicate::slt, other, end);
        kept =
            kept ? arith::AndIOp::create(at, kept, exists).getResult() : exists;
        // Behind the last one a captured tensor must not be read.
        Value last = arith::SubIOp::create(
            at, end, arith::ConstantIndexOp::create(at, 1));
        (op.getOverQueries() ? position.query : position.key) =
            arith::MinSIOp::create(at, other, last);
        if (Value keep = emitKeep(at, op.getKeep(), position, kept))
          kept = arith::AndIOp::create(at, kept, keep);
        return {arith::SelectOp::create(at, kept, emitConstant(at, 1.0),
                                        emitConstant(at, 0.0))};
      })[0];
}

Value MapTiler::getLength(Value batch) {
  if (!op.getLengths())
    return {};
  return arith::IndexCastOp::create(
      b, b.getIndexType(),
      tensor::ExtractOp::create(b, op.getLengths(), batch));
}

void MapTiler::emitExtremesOfReads() {
  Block &keep = op.getKeep().front();
  Value batch = keep.getArgument(0), head = keep.getArgument(1),
        query = keep.getArgument(2), key = keep.getArgument(3);
  for (auto read : keep.getOps<tensor::ExtractOp>()) {
    bool ofQueries = llvm::is_contained(read.getIndices(), query),
         ofKeys = llvm::is_contained(read.getIndices(), key);
    bool ofBatches = llvm::is_contained(read.getIndices(), batch),
         ofHeads = llvm::is_contained(read.getIndices(), head),
         ofListed = ofQueries == op.getOverQueries();
    // A tile of packed heads has elements of several.
    if (!read.getType().isInteger(32) || ofQueries == ofKeys ||
        (ofHeads && packedHeads > 1) ||
        !llvm::all_of(read.getIndices(), [&](Value index) {
          return llvm::is_contained({batch, head, query, key}, index) ||
                 matchPattern(index, m_Constant());
        }))
      continue;
    const TiledDim &dim = ofListed ? listed : fixed;
    OpFoldResult numTiles = countTiles(dim);
    SmallVector<OpFoldResult> shape = {ofBatches ? sizes[0] : index(1),
                                       ofHeads ? sizes[1] : index(1), numTiles};
    auto kernel =
        KernelOp::create(b, shape, ArrayRef<int64_t>{1, 1, tilesOfUnit},
                         ValueRange{tensorOf(shape, b.getF32Type()),
                                    tensorOf(shape, b.getF32Type())});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(kernel.getStore());
    ArrayRef<BlockArgument> at = kernel.getPosition();
    auto numbers = [&](ImplicitLocOpBuilder &in, bool isNegative) -> Value {
      Value tile =
          arith::AddIOp::create(in, at[2], linalg::IndexOp::create(in, 0));
      Value row = arith::AddIOp::create(
          in,
          arith::MulIOp::create(in, tile,
                                arith::ConstantIndexOp::create(in, dim.tile)),
          linalg::IndexOp::create(in, 1));
      IRMapping mapping;
      mapping.map(batch, at[0]);
      mapping.map(head, at[1]);
      mapping.map(ofQueries ? query : key, emitBelow(in, row, value(dim.end)));
      for (Value index : read.getIndices())
        if (Operation *constant = index.getDefiningOp())
          in.clone(*constant, mapping);
      Value number = cast<tensor::ExtractOp>(in.clone(*read, mapping));
      number = arith::SIToFPOp::create(in, in.getF32Type(), number);
      return isNegative ? arith::NegFOp::create(in, number).getResult()
                        : number;
    };
    TiledDim units = {tilesOfUnit, numTiles};
    OpFoldResult existing = units.existing(b, b.getLoc(), at[2]);
    SmallVector<Value> greatest;
    for (bool isNegative : {false, true}) {
      Value all = generic(
          {}, empty({tilesOfUnit, dim.tile}), map(2, {0, 1}),
          [&](ImplicitLocOpBuilder &in, ValueRange) -> SmallVector<Value> {
            return {numbers(in, isNegative)};
          })[0];
      Value most = generic(
          all, filled({tilesOfUnit}, -std::numeric_limits<double>::infinity()),
          {map(2, {0, 1}), map(2, {0})},
          [](ImplicitLocOpBuilder &in, ValueRange args) -> SmallVector<Value> {
            return {arith::MaximumFOp::create(in, args[1], args[0])};
          })[0];
      if (units.isRagged())
        most = tensor::ExtractSliceOp::create(
            b, most, ArrayRef<OpFoldResult>{index(0)}, existing, index(1));
      greatest.push_back(most);
    }
    b.setInsertionPointToEnd(kernel.getStores());
    for (auto [most, destination] :
         llvm::zip_equal(greatest, kernel.getDestinations()))
      tensor::ParallelInsertSliceOp::create(
          b, most, destination, SmallVector<OpFoldResult>{at[0], at[1], at[2]},
          SmallVector<OpFoldResult>{index(1), index(1), existing},
          SmallVector<OpFoldResult>(3, index(1)));
    extremes[read] = {ofBatches, ofHeads, ofListed, kernel.getResult(0),
                      kernel.getResult(1)};
  }
}

IndexRange MapTiler::getRangeOfRead(ImplicitLocOpBuilder &at,
                                    tensor::ExtractOp read,
                                    const FixedTile &tile, Value listedTile,
                                    Value &isExact) {
  auto found = extremes.find(read);
  if (found == extremes.end())
    return {};
  const Extremes &of = found->second;
  Value zero = arith::ConstantIndexOp::create(at, 0);
  // A unit may have tiles behind the last one.
  Value number =
      of.ofListed
          ? emitBelow(at, listedTile, value(numListed))
          : arith::DivUIOp::create(
                at, tile.start, arith::ConstantIndexOp::create(at, fixed.tile));
  Value position[] = {of.ofBatches ? tile.batch : zero,
                      of.ofHeads ? tile.map : zero, number};
  Value most = tensor::ExtractOp::create(at, of.most, position),
        mostNegative = tensor::ExtractOp::create(at, of.mostNegative, position);
  Value isSmall =
      arith::CmpFOp::create(at, arith::CmpFPredicate::OLT,
                            arith::MaximumFOp::create(at, most, mostNegative),
                            emitConstant(at, double(mostExact)));
  isExact = isExact ? arith::AndIOp::create(at, isExact, isSmall).getResult()
                    : isSmall;
  auto toIndex = [&](Value number) -> Value {
    return arith::IndexCastOp::create(
        at, at.getIndexType(),
        arith::FPToSIOp::create(at, at.getI32Type(), number));
  };
  return {toIndex(arith::NegFOp::create(at, mostNegative)), toIndex(most)};
}

TileCondition MapTiler::classify(ImplicitLocOpBuilder &at,
                                 const FixedTile &tile, Value listedTile) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, value);
  };
  auto holds = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(at, predicate, lhs, rhs);
  };
  // Where the tiles start, and where they end if they are whole and if not.
  Value listedStart =
            arith::MulIOp::create(at, listedTile, constant(listed.tile)),
        wholeEnd =
            arith::AddIOp::create(at, listedStart, constant(listed.tile)),
        listedEnd = arith::MinSIOp::create(at, wholeEnd, value(listed.end));
  Value fixedEnd = arith::AddIOp::create(at, tile.start, constant(fixed.tile));
  if (fixed.isRagged())
    fixedEnd = arith::MinSIOp::create(at, fixedEnd, value(fixed.end));
  Value head = tile.map;
  if (packedHeads > 1)
    head = arith::MulIOp::create(at, head, constant(packedHeads));
  auto upTo = [&](Value start, Value end) -> IndexRange {
    return {start, arith::SubIOp::create(at, end, constant(1))};
  };
  IndexRange queries = upTo(tile.start, fixedEnd),
             keys = upTo(listedStart, listedEnd), heads = {head, head};
  Value endKey = wholeEnd;
  if (op.getOverQueries()) {
    std::swap(queries, keys);
    endKey = fixedEnd;
  }
  if (packedHeads > 1)
    heads.most = arith::AddIOp::create(at, head, constant(packedHeads - 1));
  Value isExact;
  TileCondition left = emitKeepOfTile(
      at, op.getKeep(), {tile.batch, tile.batch}, heads, queries, keys,
      [&](tensor::ExtractOp read) {
        return getRangeOfRead(at, read, tile, listedTile, isExact);
      });
  auto orElse = [&](Value known, bool otherwise) -> Value {
    return known && isExact
               ? arith::SelectOp::create(
                     at, isExact, known,
                     arith::ConstantIntOp::create(at, otherwise, 1))
               : known;
  };
  left = {orElse(left.all, false), orElse(left.any, true)};

  if (op.getMask()) {
    const Value point[] = {tile.batch, head, tile.start, listedTile},
                sizes[] = {value(fixed.end), value(listed.end)};
    Value isVisited =
        emitIsInAny(at, at.getLoc(), ofMask.visited, point, sizes);
    Value isNotFull =
        emitIsInAny(at, at.getLoc(), ofMask.notFull, point, sizes);
    Value isFull = arith::XOrIOp::create(
        at, isNotFull, arith::ConstantIntOp::create(at, 1, 1));
    left = emitAnd(at, left, {isFull, isVisited});
  }
  Value isWhole = holds(arith::CmpIPredicate::sle, wholeEnd, value(listed.end));
  left = emitAnd(at, left, {isWhole, Value()});
  if (tile.length)
    left = emitAnd(at, left,
                   {holds(arith::CmpIPredicate::sle, endKey, tile.length),
                    holds(arith::CmpIPredicate::slt, keys.least, tile.length)});
  return left;
}

Value MapTiler::countInUnit(Value batch, Value map, Value start,
                            Value firstTile) {
  // As in a tile of packed heads, those of the first query come first.
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  auto applyTo = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return value(
        affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr, operands));
  };
  Value numRows =
      applyTo(d0 * packedHeads, {fixed.existing(b, b.getLoc(), start)});
  // Elements are evaluated only if some tile of the unit is not classified as
  // empty or whole.
  Value length = getLength(batch);
  bool classifies =
      ofMask.visited.size() + ofMask.notFull.size() <= mostSetsOfUnit;
  Value anyPartial;
  for (int64_t tile = 0; classifies && tile < tilesOfUnit; ++tile) {
    Value number = arith::AddIOp::create(b, firstTile, constant(tile));
    TileCondition left = classify(b, {batch, map, start, length}, number);
    classifies = static_cast<bool>(left.any);
    if (!classifies)
      break;
    Value isPartialTile = arith::AndIOp::create(
        b, left.any,
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number,
                              value(numListed)));
    if (left.all) {
      Value isPart = arith::XOrIOp::create(
          b, left.all, arith::ConstantIntOp::create(b, 1, 1));
      isPartialTile = arith::AndIOp::create(b, isPartialTile, isPart);
    }
    anyPartial =
        anyPartial
            ? arith::OrIOp::create(b, anyPartial, isPartialTile).getResult()
            : isPartialTile;
  }
  if (classifies)
    numRows = arith::SelectOp::create(b, anyPartial, numRows, constant(0));
  auto loop = scf::ForOp::create(b, constant(0), numRows, constant(1),
                                 filled({tilesOfUnit}, 0.0));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    Value head = applyTo(d0 * packedHeads + d1 % packedHeads, {map, row});
    Value inTile = applyTo(d0 + d1.floorDiv(packedHeads), {start, row});
    Value kept = keptOfRow(batch, head, inTile, firstTile);
    scf::YieldOp::create(b, addRows(kept, loop.getRegionIterArg(0)));
  }
  if (!classifies)
    return loop.getResult(0);
  Value all = emitFloat(b, countAll(start));
  return rows(
      {}, loop.getResult(0),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value number = arith::AddIOp::create(at, firstTile,
                                             linalg::IndexOp::create(at, 0));
        TileCondition left = classify(at, {batch, map, start, length}, number);
        Value kept = args[0];
        if (left.all)
          kept = arith::SelectOp::create(at, left.all, all, kept);
        return {
            arith::SelectOp::create(at, left.any, kept, emitConstant(at, 0.0))};
      })[0];
}

Value MapTiler::countKept() {
  SmallVector<OpFoldResult> shape = {sizes[0], numMaps, numFixed, numListed};
  auto kernel = KernelOp::create(
      b, ArrayRef<OpFoldResult>{sizes[0], numMaps, fixed.end, numListed},
      ArrayRef<int64_t>{1, 1, fixed.tile, tilesOfUnit},
      tensorOf(shape, b.getF32Type()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ArrayRef<BlockArgument> at = kernel.getPosition();
  Value start = at[2], firstTile = at[3];
  Value counts = countInUnit(at[0], at[1], start, firstTile);
  TiledDim tiles = {tilesOfUnit, numListed};
  OpFoldResult existing = tiles.existing(b, b.getLoc(), firstTile);
  if (tiles.isRagged())
    counts = tensor::ExtractSliceOp::create(
        b, counts, ArrayRef<OpFoldResult>{index(0)}, existing, index(1));
  SmallVector<OpFoldResult> offsets = {at[0], at[1], tileOf(start), firstTile},
                            extents = {index(1), index(1), index(1), existing};
  b.setInsertionPointToEnd(kernel.getStores());
  tensor::ParallelInsertSliceOp::create(b, counts, kernel.getDestinations()[0],
                                        offsets, extents,
                                        SmallVector<OpFoldResult>(4, index(1)));
  return kernel.getResult(0);
}

Value MapTiler::keptOf(const CountedTile &tile, ImplicitLocOpBuilder &at,
                       Value listedTile) {
  if (!tile.kept) {
    TileCondition left = classify(at, tile, listedTile);
    // Of what is left in part some number between none and all.
    Value kept =
        arith::SelectOp::create(at, left.all, tile.all, emitConstant(at, 0.5));
    return arith::SelectOp::create(at, left.any, kept, emitConstant(at, 0.0));
  }
  return tensor::ExtractOp::create(
      at, tile.kept, ValueRange{tile.batch, tile.map, tile.number, listedTile});
}

Value MapTiler::countIf(Value end, ValueRange ofEntries,
                        NumberCondition condition) {
  auto loop = scf::ForOp::create(b, constant(0), end, constant(tilesAtOnce),
                                 filled({tilesOfUnit}, 0.0));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<AffineMap> maps(ofEntries.size(), map(2, {0}));
  maps.push_back(map(2, {0, 1}));
  Value ones = generic(
      ofEntries, empty({tilesOfUnit, tilesAtOnce}), maps,
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value number = arith::AddIOp::create(at, loop.getInductionVar(),
                                             linalg::IndexOp::create(at, 1));
        Value exists =
            arith::CmpIOp::create(at, arith::CmpIPredicate::slt, number, end);
        Value holds = condition(at, number, args.drop_back());
        holds = arith::AndIOp::create(at, exists, holds);
        return {arith::SelectOp::create(at, holds, emitConstant(at, 1.0),
                                        emitConstant(at, 0.0))};
      })[0];
  scf::YieldOp::create(b, addRows(ones, loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

Value MapTiler::countTilesIf(const CountedTile &tile, ValueRange ofEntries,
                             Condition condition) {
  Value numTiles = value(numListed);
  return countIf(
      numTiles, ofEntries,
      [&](ImplicitLocOpBuilder &at, Value number, ValueRange ofEntry) {
        Value listedTile = emitBelow(at, number, numTiles);
        Value count = keptOf(tile, at, listedTile);
        return condition(at, listedTile, count, ofEntry);
      });
}

Value MapTiler::findTiles(const CountedTile &tile, ValueRange ofEntries,
                          CountBefore countBefore, Condition condition,
                          Value most, Value isUsed) {
  // Of n tiles one is found in as many halvings as there are powers of two
  // below n.
  Value halvings = constant(0);
  for (int64_t power = 1; power < mostExact; power *= 2) {
    Value isBelow = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                          constant(power), most);
    Value next = arith::AddIOp::create(b, halvings, constant(1));
    halvings = b.createOrFold<arith::SelectOp>(isBelow, next, halvings);
  }
  halvings = arith::SelectOp::create(b, isUsed, halvings, constant(0));
  Value last =
      rows({}, empty({tilesOfUnit}),
           [&](ImplicitLocOpBuilder &at, ValueRange) -> SmallVector<Value> {
             return {emitFloat(at, most)};
           })[0];
  auto search =
      scf::ForOp::create(b, constant(0), halvings, constant(1),
                         ValueRange{filled({tilesOfUnit}, 0.0), last});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(search.getBody());
  Value from = search.getRegionIterArg(0), to = search.getRegionIterArg(1);
  Value middle =
      rows({from, to}, empty({tilesOfUnit}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             Value sum = arith::AddFOp::create(at, args[0], args[1]);
             return {math::FloorOp::create(
                 at, arith::MulFOp::create(at, sum, emitConstant(at, 0.5)))};
           })[0];
  SmallVector<Value> known = {middle};
  llvm::append_range(known, ofEntries);
  Value upTo = countTilesIf(
      tile, known,
      [&](ImplicitLocOpBuilder &at, Value listedTile, Value count,
          ValueRange ofEntry) -> Value {
        Value isUpTo =
            arith::CmpFOp::create(at, arith::CmpFPredicate::OLE,
                                  emitFloat(at, listedTile), ofEntry[0]);
        Value holds = condition(at, listedTile, count, ofEntry.drop_front());
        return arith::AndIOp::create(at, isUpTo, holds);
      });
  known.insert(known.begin(), upTo);
  ValueRange next = rows(
      known, {from, to},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value middle = args[1], from = args[args.size() - 2], to = args.back();
        Value isThere = arith::CmpFOp::create(
            at, arith::CmpFPredicate::OGT, args[0],
            countBefore(at, args.slice(2, ofEntries.size())));
        Value behind = arith::MinimumFOp::create(
            at, to, arith::AddFOp::create(at, middle, emitConstant(at, 1.0)));
        return {arith::SelectOp::create(at, isThere, from, behind),
                arith::SelectOp::create(at, isThere, middle, to)};
      });
  scf::YieldOp::create(b, next);
  return search.getResult(0);
}

Value MapTiler::findTilesOfKinds(const CountedTile &tile, Value firstEntry,
                                 Value numParts, Value isUsed) {
  auto emitIsOfParts = [&](ImplicitLocOpBuilder &at) -> Value {
    return arith::CmpFOp::create(at, arith::CmpFPredicate::OLT,
                                 emitEntry(at, firstEntry), numParts);
  };
  auto countBefore = [&](ImplicitLocOpBuilder &at, ValueRange) -> Value {
    Value entry = emitEntry(at, firstEntry);
    return arith::SelectOp::create(at, emitIsOfParts(at), entry,
                                   arith::SubFOp::create(at, entry, numParts));
  };
  auto isOfKind = [&](ImplicitLocOpBuilder &at, Value, Value count,
                      ValueRange) -> Value {
    return arith::SelectOp::create(at, emitIsOfParts(at),
                                   isPart(at, tile, count),
                                   isWhole(at, tile, count));
  };
  Value last = arith::SubIOp::create(b, value(numListed), constant(1));
  return findTiles(tile, {}, countBefore, isOfKind, last, isUsed);
}

Value MapTiler::emitBeginsRun(ImplicitLocOpBuilder &at, const CountedTile &tile,
                              Value listedTile, Value count) {
  Value zero = arith::ConstantIndexOp::create(at, 0);
  Value before = arith::MaxSIOp::create(
      at,
      arith::SubIOp::create(at, listedTile,
                            arith::ConstantIndexOp::create(at, 1)),
      zero);
  Value isFirst =
      arith::CmpIOp::create(at, arith::CmpIPredicate::eq, listedTile, zero);
  Value countBefore = arith::SelectOp::create(
      at, isFirst, emitConstant(at, 0.0), keptOf(tile, at, before));
  // A part behind what is no part, or a whole tile behind nothing.
  auto follows = [&](Value is, Value isBefore) -> Value {
    Value isNot = arith::XOrIOp::create(at, isBefore,
                                        arith::ConstantIntOp::create(at, 1, 1));
    return arith::AndIOp::create(at, is, isNot);
  };
  return arith::OrIOp::create(
      at, follows(isPart(at, tile, count), isPart(at, tile, countBefore)),
      follows(isWhole(at, tile, count), emitIsSome(at, countBefore)));
}

SmallVector<Value> MapTiler::findRuns(const CountedTile &tile, Value firstEntry,
                                      Value isUsed) {
  Value end = value(numListed);
  Value first = findTiles(
      tile, {},
      [&](ImplicitLocOpBuilder &at, ValueRange) {
        return emitEntry(at, firstEntry);
      },
      [&](ImplicitLocOpBuilder &at, Value listedTile, Value count, ValueRange) {
        return emitBeginsRun(at, tile, listedTile, count);
      },
      end, isUsed);
  // The first tile from `from` on that is not of the kind.
  auto findEnd = [&](Value from, auto isOfKind) {
    return findTiles(
        tile, from,
        [&](ImplicitLocOpBuilder &at, ValueRange) {
          return emitConstant(at, 0.0);
        },
        [&](ImplicitLocOpBuilder &at, Value listedTile, Value count,
            ValueRange ofEntry) -> Value {
          Value isBehind =
              arith::CmpFOp::create(at, arith::CmpFPredicate::OGE,
                                    emitFloat(at, listedTile), ofEntry[0]);
          Value isOther = arith::XOrIOp::create(
              at, isOfKind(at, count), arith::ConstantIntOp::create(at, 1, 1));
          return arith::AndIOp::create(at, isBehind, isOther);
        },
        end, isUsed);
  };
  Value endOfParts = findEnd(first, [&](ImplicitLocOpBuilder &at, Value count) {
    return isPart(at, tile, count);
  });
  Value endOfRun =
      findEnd(endOfParts, [&](ImplicitLocOpBuilder &at, Value count) {
        return isWhole(at, tile, count);
      });
  return {first, endOfParts, endOfRun};
}

Value MapTiler::countRanks(const CountedTile &tile, Value firstEntry) {
  Value numTiles = value(numListed), numLists = value(numFixed);
  // Nothing is left to anyone where there are no tiles.
  Value isSome = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt,
                                               numTiles, constant(0));
  return countIf(
      b.createOrFold<arith::SelectOp>(isSome, numLists, constant(0)), {},
      [&](ImplicitLocOpBuilder &at, Value number, ValueRange) -> Value {
        Value isBehind = arith::CmpIOp::create(at, arith::CmpIPredicate::sgt,
                                               number, tile.number);
        CountedTile other = tile;
        other.number = emitBelow(at, number, numLists);
        other.start = arith::MulIOp::create(
            at, other.number, arith::ConstantIndexOp::create(at, fixed.tile));
        Value listedTile = arith::AddIOp::create(
            at, firstEntry, linalg::IndexOp::create(at, 0));
        Value count = keptOf(other, at, emitBelow(at, listedTile, numTiles));
        return arith::AndIOp::create(at, isBehind, emitIsSome(at, count));
      });
}

MapTiler::CountedTile MapTiler::getCountedTile(ValueRange position,
                                               Value kept) {
  return {{position[0], position[1], position[2], getLength(position[0])},
          tileOf(position[2]),
          kept,
          emitFloat(b, countAll(position[2]))};
}

Value MapTiler::takeEntries(Value ofEntries, OpFoldResult count) {
  Type i32 = b.getI32Type();
  Value whole = rows(
      ofEntries, empty({tilesOfUnit}, i32),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::FPToSIOp::create(at, i32, args[0])};
      })[0];
  return tensor::ExtractSliceOp::create(
      b, whole, ArrayRef<OpFoldResult>{index(0)}, count, index(1));
}

Value MapTiler::countEntries(Value kept) {
  auto kernel =
      KernelOp::create(b, ArrayRef<OpFoldResult>{sizes[0], numMaps, fixed.end},
                       ArrayRef<int64_t>{1, 1, fixed.tile},
                       tensorOf(getShapeOfLists(index(2)), b.getI32Type()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  CountedTile tile = getCountedTile(kernel.getPosition(), kept);
  bool hasRanks = static_cast<bool>(op.getRanks());
  // The first row of the unit counts parts or runs, the second one tiles.
  Value counts = countTilesIf(
      tile, {},
      [&](ImplicitLocOpBuilder &at, Value listedTile, Value count,
          ValueRange) -> Value {
        Value isFirst = arith::CmpIOp::create(
            at, arith::CmpIPredicate::eq, linalg::IndexOp::create(at, 0),
            arith::ConstantIndexOp::create(at, 0));
        Value first = hasRanks ? emitBeginsRun(at, tile, listedTile, count)
                               : isPart(at, tile, count);
        return arith::SelectOp::create(at, isFirst, first,
                                       emitIsSome(at, count));
      });
  counts = takeEntries(counts, index(2));
  b.setInsertionPointToEnd(kernel.getStores());
  tensor::ParallelInsertSliceOp::create(
      b, counts, kernel.getDestinations()[0],
      SmallVector<OpFoldResult>{tile.batch, tile.map, tile.number, index(0)},
      SmallVector<OpFoldResult>{index(1), index(1), index(1), index(2)},
      SmallVector<OpFoldResult>(4, index(1)));
  return kernel.getResult(0);
}

SmallVector<Value> MapTiler::list(Value kept, Value counts) {
  Type i32 = b.getI32Type();
  bool hasRanks = static_cast<bool>(op.getRanks());
  AffineExpr d0 = b.getAffineDimExpr(0);
  OpFoldResult ofLists =
      hasRanks ? apply(d0 * BlockMapOp::numbersOfRun, numListed) : numListed;
  SmallVector<Value> outputs = {tensorOf(getShapeOfLists(ofLists), i32)};
  if (hasRanks)
    outputs.push_back(tensorOf(getShapeOfLists(numListed), i32));
  auto kernel = KernelOp::create(
      b, ArrayRef<OpFoldResult>{sizes[0], numMaps, fixed.end, numListed},
      ArrayRef<int64_t>{1, 1, fixed.tile, tilesOfUnit}, outputs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ArrayRef<BlockArgument> at = kernel.getPosition();
  Value firstEntry = at[3];
  CountedTile tile = getCountedTile(at, kept);
  auto readCount = [&](int64_t which) -> Value {
    Value count = tensor::ExtractOp::create(
        b, counts,
        ValueRange{tile.batch, tile.map, tile.number, constant(which)});
    return arith::IndexCastOp::create(b, b.getIndexType(), count);
  };
  // Most units of a long list that a mask leaves little of have no entries.
  Value isUsed = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, firstEntry,
                                       readCount(hasRanks ? 0 : 1));
  TiledDim entries = {tilesOfUnit, numListed};
  OpFoldResult ofUnit = entries.existing(b, b.getLoc(), firstEntry);
  SmallVector<Written> written;
  if (hasRanks) {
    for (auto [plane, ofRuns] :
         llvm::enumerate(findRuns(tile, firstEntry, isUsed))) {
      OpFoldResult offset = affine::makeComposedFoldedAffineApply(
          b, b.getLoc(), d0 + b.getAffineDimExpr(1) * int64_t(plane),
          {OpFoldResult(firstEntry), numListed});
      written.push_back({0, ofRuns, offset});
    }
    written.push_back({1, countRanks(tile, firstEntry), firstEntry});
  } else {
    Value tiles =
        findTilesOfKinds(tile, firstEntry, emitFloat(b, readCount(0)), isUsed);
    written.push_back({0, tiles, firstEntry});
  }
  for (Written &each : written)
    each.ofEntries = takeEntries(each.ofEntries, ofUnit);
  b.setInsertionPointToEnd(kernel.getStores());
  for (const Written &each : written)
    tensor::ParallelInsertSliceOp::create(
        b, each.ofEntries, kernel.getDestinations()[each.output],
        SmallVector<OpFoldResult>{at[0], at[1], tile.number, each.offset},
        SmallVector<OpFoldResult>{index(1), index(1), index(1), ofUnit},
        SmallVector<OpFoldResult>(4, index(1)));
  SmallVector<Value> results(kernel.getResults());
  results.insert(results.begin() + 1, counts);
  return results;
}

void MapTiler::run() {
  if (!op.getKeep().empty())
    emitExtremesOfReads();
  Value kept = isKnown() ? Value() : countKept();
  op->replaceAllUsesWith(list(kept, countEntries(kept)));
  op.erase();
}

namespace {
struct TileBlockMaps : flash::impl::TileBlockMapsBase<TileBlockMaps> {
  void runOnOperation() override {
    SmallVector<BlockMapOp> maps;
    getOperation().walk([&](BlockMapOp map) { maps.push_back(map); });
    for (BlockMapOp map : maps)
      if (map.use_empty()) {
        map.erase();
      } else if (map.getGivenTiles()) {
        SmallVector<Value> given = {map.getGivenTiles(), map.getGivenCounts()};
        if (map.getRanks())
          given.push_back(map.getGivenRanks());
        map->replaceAllUsesWith(given);
        map.erase();
      } else {
        MapTiler(map).run();
      }
  }
};
} // namespace
