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
  // Listed tiles of an iteration of the first loop, and list entries of an
  // iteration of the second: rows of a tile, one or several for each warp.
  static constexpr int64_t tilesOfIteration = 8;
  // Tiles that a row is counted from in a step.
  static constexpr int64_t tilesAtOnce = 128;
  // What a tile has for the number of its elements that are kept until it is
  // decided whether these are none, some or all; and what it has for some.
  static constexpr double undecided = -1.0, some = 0.5;
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
  /// How many elements a tile has; all of them are kept.
  Value countAll(ImplicitLocOpBuilder &at, Value start) {
    Value existing = getValueOrCreateConstantIndexOp(
        at, at.getLoc(), fixed.existing(at, at.getLoc(), start));
    return arith::MulIOp::create(
        at, existing,
        arith::ConstantIndexOp::create(at, packedHeads * listed.tile));
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
  /// How many elements are kept of each pair of tiles, f32, or `some` where
  /// these are neither none nor all. It is found by what is cheaper first: from
  /// ranges, from the first and the last row, and from all rows. Each is a
  /// kernel of its own, in which a block that has nothing to decide ends at
  /// once.
  Value findKept();
  /// What is known without evaluating elements, else `undecided`; null if
  /// nothing is known of any tile.
  Value classifyTiles();
  /// Which rows of a tile are evaluated.
  enum class Rows { FirstAndLast, All };
  /// Decides tiles that are not decided, which are all where `decided` is null.
  Value evaluateTiles(Value decided, Rows evaluated);
  /// Decides the tiles of one iteration, from `firstTile` on.
  Value evaluateIteration(Value decided, Rows evaluated, Value batch, Value map,
                          Value start, Value firstTile);

  /// A tile whose list is made: which one it is, what is kept of it and each of
  /// the others (`findKept`), unless the mask alone says it, and how many
  /// elements a whole one has.
  struct CountedTile : FixedTile {
    Value number, kept, all;
  };
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
  /// A condition on a listed tile, on how many of its elements are kept, and on
  /// the values of an entry.
  using Condition =
      llvm::function_ref<Value(ImplicitLocOpBuilder &at, Value listedTile,
                               Value count, ValueRange ofEntry)>;
  using NumberCondition = llvm::function_ref<Value(
      ImplicitLocOpBuilder &at, Value number, ValueRange ofEntry)>;
  /// For each entry of an iteration, with its values `ofEntries`, and each of
  /// `tilesAtOnce` numbers from `start` on: 1 if the number is below `end` and
  /// the condition holds, else 0. `start` is an index for all entries or an f32
  /// of each.
  Value markNumbers(Value start, Value end, ValueRange ofEntries,
                    NumberCondition condition);
  /// For each row of an iteration, how many numbers below `end` a condition
  /// holds for.
  Value countIf(Value end, NumberCondition condition);
  /// `markNumbers` of the listed tiles.
  Value markTiles(const CountedTile &tile, Value start, ValueRange ofEntries,
                  Condition condition);
  /// How many of the tiles that are looked for come before the entry's own.
  using CountBefore =
      llvm::function_ref<Value(ImplicitLocOpBuilder &at, ValueRange ofEntry)>;
  /// For each entry of an iteration, the first tile up to which the condition
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
  /// What an iteration writes to an output: a value for each of its entries.
  struct Written {
    int64_t output;
    Value ofEntries;
    OpFoldResult offset;
  };
  /// Which tiles are in the entries of an iteration. The first `numParts`
  /// entries of the row are tiles that are left in part.
  Value findTilesOfKinds(const CountedTile &tile, Value firstEntry,
                         Value numParts, Value isUsed);
  /// Whether a run begins with a tile.
  Value emitBeginsRun(ImplicitLocOpBuilder &at, const CountedTile &tile,
                      Value listedTile, Value count);
  /// For the runs in an iteration's entries: their first tiles, where their
  /// partial tiles end, and where they end.
  SmallVector<Value> findRuns(const CountedTile &tile, Value firstEntry,
                              Value isUsed);
  /// For the tiles in an iteration's entries: to how many tiles with lists
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
  /// The first numbers of an iteration's entries.
  Value takeEntries(Value ofEntries, OpFoldResult count);

  BlockMapOp op;
  SmallVector<OpFoldResult> sizes;
  int64_t packedHeads;
  /// The queries or keys whose tiles have a list each, and the others.
  TiledDim fixed, listed;
  OpFoldResult numListed, numFixed;
  /// The number of maps of each batch.
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
      {}, empty({tilesOfIteration, listed.tile}), map(2, {0, 1}),
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
        KernelOp::create(b, shape, ArrayRef<int64_t>{1, 1, tilesOfIteration},
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
    TiledDim blocked = {tilesOfIteration, numTiles};
    OpFoldResult existing = blocked.existing(b, b.getLoc(), at[2]);
    SmallVector<Value> greatest;
    for (bool isNegative : {false, true}) {
      Value all = generic(
          {}, empty({tilesOfIteration, dim.tile}), map(2, {0, 1}),
          [&](ImplicitLocOpBuilder &in, ValueRange) -> SmallVector<Value> {
            return {numbers(in, isNegative)};
          })[0];
      Value most = generic(
          all,
          filled({tilesOfIteration}, -std::numeric_limits<double>::infinity()),
          {map(2, {0, 1}), map(2, {0})},
          [](ImplicitLocOpBuilder &in, ValueRange args) -> SmallVector<Value> {
            return {arith::MaximumFOp::create(in, args[1], args[0])};
          })[0];
      if (blocked.isRagged())
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
  // An iteration may have tiles behind the last one.
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

Value MapTiler::classifyTiles() {
  SmallVector<OpFoldResult> shape = {sizes[0], numMaps, numFixed, numListed};
  auto kernel = KernelOp::create(
      b, shape, ArrayRef<int64_t>{1, 1, tilesOfIteration, tilesAtOnce},
      tensorOf(shape, b.getF32Type()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ArrayRef<BlockArgument> at = kernel.getPosition();
  Value length = getLength(at[0]);
  bool isKnownOfSome = true;
  Value states =
      generic({}, empty({tilesOfIteration, tilesAtOnce}), map(2, {0, 1}),
              [&](ImplicitLocOpBuilder &in, ValueRange) -> SmallVector<Value> {
                Value number = arith::AddIOp::create(
                          in, at[2], linalg::IndexOp::create(in, 0)),
                      listedTile = arith::AddIOp::create(
                          in, at[3], linalg::IndexOp::create(in, 1));
                // An iteration may have tiles behind the last ones.
                Value start = arith::MulIOp::create(
                    in, emitBelow(in, number, value(numFixed)),
                    arith::ConstantIndexOp::create(in, fixed.tile));
                TileCondition left =
                    classify(in, {at[0], at[1], start, length},
                             emitBelow(in, listedTile, value(numListed)));
                Value state = emitConstant(in, undecided);
                isKnownOfSome = static_cast<bool>(left.any);
                if (!isKnownOfSome)
                  return {state};
                if (left.all)
                  state = arith::SelectOp::create(
                      in, left.all, emitFloat(in, countAll(in, start)), state);
                return {arith::SelectOp::create(in, left.any, state,
                                                emitConstant(in, 0.0))};
              })[0];
  if (!isKnownOfSome) {
    kernel.erase();
    return {};
  }
  SmallVector<OpFoldResult> extents = {index(1), index(1)};
  for (auto [blocked, first] :
       {std::pair(TiledDim{tilesOfIteration, numFixed}, at[2]),
        std::pair(TiledDim{tilesAtOnce, numListed}, at[3])})
    extents.push_back(blocked.existing(b, b.getLoc(), first));
  states = tensor::ExtractSliceOp::create(
      b, states, SmallVector<OpFoldResult>(2, index(0)),
      ArrayRef(extents).drop_front(2), SmallVector<OpFoldResult>(2, index(1)));
  b.setInsertionPointToEnd(kernel.getStores());
  tensor::ParallelInsertSliceOp::create(
      b, states, kernel.getDestinations()[0],
      SmallVector<OpFoldResult>{at[0], at[1], at[2], at[3]}, extents,
      SmallVector<OpFoldResult>(4, index(1)));
  return kernel.getResult(0);
}

Value MapTiler::evaluateIteration(Value decided, Rows evaluated, Value batch,
                                  Value map, Value start, Value firstTile) {
  // As in a tile of packed heads, all heads of the first query come first.
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
  auto applyTo = [&](AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return value(
        affine::makeComposedFoldedAffineApply(b, b.getLoc(), expr, operands));
  };
  Value numRows =
      applyTo(d0 * packedHeads, {fixed.existing(b, b.getLoc(), start)});
  Value end = evaluated == Rows::All ? numRows : constant(2);
  auto getState = [&](ImplicitLocOpBuilder &at, Value listedTile) -> Value {
    if (!decided)
      return emitConstant(at, undecided);
    return tensor::ExtractOp::create(
        at, decided,
        ValueRange{batch, map, tileOf(start),
                   emitBelow(at, listedTile, value(numListed))});
  };
  auto isUndecided = [](ImplicitLocOpBuilder &at, Value state) -> Value {
    return arith::CmpFOp::create(at, arith::CmpFPredicate::OLT, state,
                                 emitConstant(at, 0.0));
  };
  if (decided) {
    Value isAny;
    for (int64_t tile = 0; tile < tilesOfIteration; ++tile) {
      Value number = arith::AddIOp::create(b, firstTile, constant(tile));
      Value is = isUndecided(b, getState(b, number));
      isAny = isAny ? arith::OrIOp::create(b, isAny, is).getResult() : is;
    }
    end = arith::SelectOp::create(b, isAny, end, constant(0));
  }
  auto loop = scf::ForOp::create(b, constant(0), end, constant(1),
                                 filled({tilesOfIteration}, 0.0));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = loop.getInductionVar();
    if (evaluated == Rows::FirstAndLast)
      row = arith::MulIOp::create(
          b, row, arith::SubIOp::create(b, numRows, constant(1)));
    Value head = applyTo(d0 * packedHeads + d1 % packedHeads, {map, row});
    Value inTile = applyTo(d0 + d1.floorDiv(packedHeads), {start, row});
    Value kept = keptOfRow(batch, head, inTile, firstTile);
    scf::YieldOp::create(b, addElementsOfRows(kept, loop.getRegionIterArg(0)));
  }
  return rows(
      {}, loop.getResult(0),
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value number = arith::AddIOp::create(at, firstTile,
                                             linalg::IndexOp::create(at, 0));
        Value state = getState(at, number), found = args[0];
        if (evaluated == Rows::FirstAndLast) {
          // If none or all of these are kept, the others may be.
          Value isLess =
              arith::CmpFOp::create(at, arith::CmpFPredicate::OLT, found,
                                    emitConstant(at, double(2 * listed.tile)));
          Value isPart =
              arith::AndIOp::create(at, emitIsSome(at, found), isLess);
          found = arith::SelectOp::create(at, isPart, emitConstant(at, some),
                                          emitConstant(at, undecided));
        }
        return {
            arith::SelectOp::create(at, isUndecided(at, state), found, state)};
      })[0];
}

Value MapTiler::evaluateTiles(Value decided, Rows evaluated) {
  SmallVector<OpFoldResult> shape = {sizes[0], numMaps, numFixed, numListed};
  auto kernel = KernelOp::create(
      b, ArrayRef<OpFoldResult>{sizes[0], numMaps, fixed.end, numListed},
      ArrayRef<int64_t>{1, 1, fixed.tile, tilesOfIteration},
      tensorOf(shape, b.getF32Type()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel.getStore());
  ArrayRef<BlockArgument> at = kernel.getPosition();
  Value start = at[2], firstTile = at[3];
  Value states =
      evaluateIteration(decided, evaluated, at[0], at[1], start, firstTile);
  TiledDim tiles = {tilesOfIteration, numListed};
  OpFoldResult existing = tiles.existing(b, b.getLoc(), firstTile);
  if (tiles.isRagged())
    states = tensor::ExtractSliceOp::create(
        b, states, ArrayRef<OpFoldResult>{index(0)}, existing, index(1));
  SmallVector<OpFoldResult> offsets = {at[0], at[1], tileOf(start), firstTile},
                            extents = {index(1), index(1), index(1), existing};
  b.setInsertionPointToEnd(kernel.getStores());
  tensor::ParallelInsertSliceOp::create(b, states, kernel.getDestinations()[0],
                                        offsets, extents,
                                        SmallVector<OpFoldResult>(4, index(1)));
  return kernel.getResult(0);
}

Value MapTiler::findKept() {
  Value decided = classifyTiles();
  decided = evaluateTiles(decided, Rows::FirstAndLast);
  return evaluateTiles(decided, Rows::All);
}

Value MapTiler::keptOf(const CountedTile &tile, ImplicitLocOpBuilder &at,
                       Value listedTile) {
  if (!tile.kept) {
    TileCondition left = classify(at, tile, listedTile);
    Value kept =
        arith::SelectOp::create(at, left.all, tile.all, emitConstant(at, some));
    return arith::SelectOp::create(at, left.any, kept, emitConstant(at, 0.0));
  }
  return tensor::ExtractOp::create(
      at, tile.kept, ValueRange{tile.batch, tile.map, tile.number, listedTile});
}

Value MapTiler::markNumbers(Value start, Value end, ValueRange ofEntries,
                            NumberCondition condition) {
  SmallVector<Value> inputs(ofEntries);
  bool hasEachOne = isa<RankedTensorType>(start.getType());
  if (hasEachOne)
    inputs.push_back(start);
  SmallVector<AffineMap> maps(inputs.size(), map(2, {0}));
  maps.push_back(map(2, {0, 1}));
  return generic(
      inputs, empty({tilesOfIteration, tilesAtOnce}), maps,
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value first = start;
        if (hasEachOne)
          first = emitIndex(at, args[ofEntries.size()]);
        Value number =
            arith::AddIOp::create(at, first, linalg::IndexOp::create(at, 1));
        Value exists =
            arith::CmpIOp::create(at, arith::CmpIPredicate::slt, number, end);
        Value holds = condition(at, number, args.take_front(ofEntries.size()));
        holds = arith::AndIOp::create(at, exists, holds);
        return {arith::SelectOp::create(at, holds, emitConstant(at, 1.0),
                                        emitConstant(at, 0.0))};
      })[0];
}

Value MapTiler::countIf(Value end, NumberCondition condition) {
  auto loop = scf::ForOp::create(b, constant(0), end, constant(tilesAtOnce),
                                 filled({tilesOfIteration}, 0.0));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value marks = markNumbers(loop.getInductionVar(), end, {}, condition);
  scf::YieldOp::create(b, addElementsOfRows(marks, loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

Value MapTiler::markTiles(const CountedTile &tile, Value start,
                          ValueRange ofEntries, Condition condition) {
  Value numTiles = value(numListed);
  return markNumbers(
      start, numTiles, ofEntries,
      [&](ImplicitLocOpBuilder &at, Value number, ValueRange ofEntry) {
        Value listedTile = emitBelow(at, number, numTiles);
        Value count = keptOf(tile, at, listedTile);
        return condition(at, listedTile, count, ofEntry);
      });
}

Value MapTiler::findTiles(const CountedTile &tile, ValueRange ofEntries,
                          CountBefore countBefore, Condition condition,
                          Value most, Value isUsed) {
  size_t numOfEntries = ofEntries.size();
  // First whole groups of tiles are counted: where the group starts that has an
  // entry's tile, and what is counted before it.
  Value end = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, value(numListed), constant(tilesAtOnce)),
      constant(0));
  Value none = filled({tilesOfIteration}, 0.0);
  auto groups = scf::ForOp::create(
      b, constant(0), arith::SelectOp::create(b, isUsed, end, constant(0)),
      constant(tilesAtOnce), ValueRange{none, none, none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(groups.getBody());
    Value start = groups.getInductionVar();
    Value next =
        filledRows(tilesOfIteration,
                   arith::AddIOp::create(b, start, constant(tilesAtOnce)));
    Value marks = markTiles(tile, start, ofEntries, condition);
    SmallVector<Value> known = {
        addElementsOfRows(marks, groups.getRegionIterArg(0)), next};
    llvm::append_range(known, ofEntries);
    ValueRange found = rows(
        known, groups.getRegionIterArgs().drop_front(),
        [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
          Value isBehind = arith::CmpFOp::create(
              at, arith::CmpFPredicate::OLE, args[0],
              countBefore(at, args.slice(2, numOfEntries)));
          Value before = args[2 + numOfEntries], from = args[3 + numOfEntries];
          return {arith::SelectOp::create(at, isBehind, args[0], before),
                  arith::SelectOp::create(at, isBehind, args[1], from)};
        });
    scf::YieldOp::create(b, ValueRange{known[0], found[0], found[1]});
  }
  Value before = groups.getResult(1), start = groups.getResult(2);
  // Bisection finds one of the tiles of a group, or none, in as many steps as
  // there are powers of two up to their number.
  Value mostOfGroup = arith::MinSIOp::create(b, most, constant(tilesAtOnce));
  Value halvings = constant(0);
  for (int64_t power = 1; power <= tilesAtOnce; power *= 2) {
    Value isUpTo = arith::CmpIOp::create(b, arith::CmpIPredicate::sle,
                                         constant(power), most);
    Value next = arith::AddIOp::create(b, halvings, constant(1));
    halvings = b.createOrFold<arith::SelectOp>(isUpTo, next, halvings);
  }
  halvings = arith::SelectOp::create(b, isUsed, halvings, constant(0));
  Value last =
      rows({start, filledRows(tilesOfIteration, mostOfGroup)},
           empty({tilesOfIteration}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             return {arith::AddFOp::create(at, args[0], args[1])};
           })[0];
  auto search = scf::ForOp::create(b, constant(0), halvings, constant(1),
                                   ValueRange{start, last});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(search.getBody());
  Value from = search.getRegionIterArg(0), to = search.getRegionIterArg(1);
  Value middle =
      rows({from, to}, empty({tilesOfIteration}),
           [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
             Value sum = arith::AddFOp::create(at, args[0], args[1]);
             return {math::FloorOp::create(
                 at, arith::MulFOp::create(at, sum, emitConstant(at, 0.5)))};
           })[0];
  SmallVector<Value> known = {middle};
  llvm::append_range(known, ofEntries);
  Value marks = markTiles(
      tile, start, known,
      [&](ImplicitLocOpBuilder &at, Value listedTile, Value count,
          ValueRange ofEntry) -> Value {
        Value isUpTo =
            arith::CmpFOp::create(at, arith::CmpFPredicate::OLE,
                                  emitFloat(at, listedTile), ofEntry[0]);
        Value holds = condition(at, listedTile, count, ofEntry.drop_front());
        return arith::AndIOp::create(at, isUpTo, holds);
      });
  known.insert(known.begin(), addElementsOfRows(marks, before));
  ValueRange next = rows(
      known, {from, to},
      [&](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        Value middle = args[1], from = args[args.size() - 2], to = args.back();
        Value isThere =
            arith::CmpFOp::create(at, arith::CmpFPredicate::OGT, args[0],
                                  countBefore(at, args.slice(2, numOfEntries)));
        Value behind = arith::MinimumFOp::create(
            at, to, arith::AddFOp::create(at, middle, emitConstant(at, 1.0)));
        return {arith::SelectOp::create(at, isThere, from, behind),
                arith::SelectOp::create(at, isThere, middle, to)};
      });
  scf::YieldOp::create(b, next);
  b.setInsertionPointAfter(search);
  return rows(
      {search.getResult(0), filledRows(tilesOfIteration, most)},
      empty({tilesOfIteration}),
      [](ImplicitLocOpBuilder &at, ValueRange args) -> SmallVector<Value> {
        return {arith::MinimumFOp::create(at, args[0], args[1])};
      })[0];
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
      b.createOrFold<arith::SelectOp>(isSome, numLists, constant(0)),
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
          emitFloat(b, countAll(b, position[2]))};
}

Value MapTiler::takeEntries(Value ofEntries, OpFoldResult count) {
  Type i32 = b.getI32Type();
  Value whole = rows(
      ofEntries, empty({tilesOfIteration}, i32),
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
  // The first row of the iteration counts parts or runs, the second one tiles.
  Value numTiles = value(numListed);
  Value counts = countIf(
      numTiles,
      [&](ImplicitLocOpBuilder &at, Value number, ValueRange) -> Value {
        Value listedTile = emitBelow(at, number, numTiles);
        Value count = keptOf(tile, at, listedTile);
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
      ArrayRef<int64_t>{1, 1, fixed.tile, tilesOfIteration}, outputs);
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
  // Most iterations of a long list have no entries where a mask leaves little.
  Value isUsed = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, firstEntry,
                                       readCount(hasRanks ? 0 : 1));
  TiledDim entries = {tilesOfIteration, numListed};
  OpFoldResult ofIteration = entries.existing(b, b.getLoc(), firstEntry);
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
    each.ofEntries = takeEntries(each.ofEntries, ofIteration);
  b.setInsertionPointToEnd(kernel.getStores());
  for (const Written &each : written)
    tensor::ParallelInsertSliceOp::create(
        b, each.ofEntries, kernel.getDestinations()[each.output],
        SmallVector<OpFoldResult>{at[0], at[1], tile.number, each.offset},
        SmallVector<OpFoldResult>{index(1), index(1), index(1), ofIteration},
        SmallVector<OpFoldResult>(4, index(1)));
  SmallVector<Value> results(kernel.getResults());
  results.insert(results.begin() + 1, counts);
  return results;
}

void MapTiler::run() {
  if (!op.getKeep().empty())
    emitExtremesOfReads();
  Value kept = isKnown() ? Value() : findKept();
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
