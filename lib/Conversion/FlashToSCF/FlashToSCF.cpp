//===- FlashToSCF.cpp - Loops and slices of programs over tiles -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dequantize.h"
#include "VisitLowering.h"
#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Flash/IR/InitSizes.h"
#include "flash/Dialect/Flash/Utils/TileSlices.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Utils/TileOrder.h"
#include "flash/Support/DescribeLocation.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTFLASHTOSCF
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Asserts that `rows` rows of `heads` heads of `tensor` exist from `first` on,
/// which ends in (..., head, row). Of a view, at an address, they exist in the
/// batch; none may be behind its end, too.
static void assertExist(OpBuilder &b, Operation *op, Value tensor,
                        AddressOpInterface address,
                        ArrayRef<OpFoldResult> first, OpFoldResult rows,
                        int64_t heads) {
  Location loc = op->getLoc();
  SmallVector<OpFoldResult> sizes = address
                                        ? address.emitSizes(b, loc)
                                        : tensor::getMixedSizes(b, loc, tensor);
  std::string name =
      op->getName().getStringRef().str() + describeLocation(loc) + ": ";
  auto assertLessOrEqual = [&](OpFoldResult lhs, OpFoldResult rhs,
                               const Twine &fault) {
    Value holds =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                              getValueOrCreateConstantIndexOp(b, loc, lhs),
                              getValueOrCreateConstantIndexOp(b, loc, rhs));
    if (!isConstantIntValue(getAsOpFoldResult(holds), 1))
      cf::AssertOp::create(b, loc, holds, b.getStringAttr(name + fault));
  };
  OpFoldResult zero = b.getIndexAttr(0);
  assertLessOrEqual(zero, rows, "the number of rows is negative");
  for (auto [dim, index] : llvm::enumerate(first)) {
    OpFoldResult count = dim + 1 == first.size()   ? rows
                         : dim + 2 == first.size() ? b.getIndexAttr(heads)
                                                   : b.getIndexAttr(1);
    OpFoldResult end = affine::makeComposedFoldedAffineApply(
                     b, loc, b.getAffineDimExpr(0) + b.getAffineDimExpr(1),
                     {index, count}),
                 size = sizes[dim];
    std::string what = "dimension " + std::to_string(dim);
    if (address && dim == 2) {
      Value batch = getValueOrCreateConstantIndexOp(b, loc, first[0]);
      size =
          arith::MaxSIOp::create(b, loc, address.emitLength(b, loc, batch),
                                 getValueOrCreateConstantIndexOp(b, loc, index))
              .getResult();
      what = "the rows of the batch";
    }
    std::optional<int64_t> known = getConstantIntValue(size);
    assertLessOrEqual(zero, index, "begins before the start of " + what);
    assertLessOrEqual(end, size,
                      "ends behind the end of " + what +
                          (known ? ", " + std::to_string(*known) : ""));
  }
}

/// Emits the tile whose rows, from `first` of the view on, lie in parts of
/// `contiguous` rows, or in one. Rows that do not exist may have no address in
/// memory.
static Value extractParts(OpBuilder &b, AddressOpInterface address,
                          ArrayRef<OpFoldResult> first, OpFoldResult rows,
                          int64_t tile, int64_t contiguous,
                          std::optional<Columns> columns) {
  Location loc = address.getLoc();
  AffineExpr row = b.getAffineDimExpr(0), last = b.getAffineDimExpr(1),
             zero = b.getAffineConstantExpr(0);
  auto notBelowZero = [&](AffineExpr expr, OpFoldResult operand) {
    return affine::makeComposedFoldedAffineMax(
        b, loc, AffineMap::get(1, 0, {expr, zero}, b.getContext()), {operand});
  };
  // In front of the loops over tiles, in which parts are then found alike.
  OpFoldResult lastOfBatch;
  {
    OpBuilder::InsertionGuard guard(b);
    if (auto batch = dyn_cast<Value>(first[0]))
      b.setInsertionPointAfterValue(batch);
    Value batch = getValueOrCreateConstantIndexOp(b, loc, first[0]);
    lastOfBatch = notBelowZero(row - 1, address.emitLength(b, loc, batch));
  }
  int64_t rowsOfPart = std::min(tile, contiguous);
  SmallVector<Value> parts;
  for (int64_t start = 0; start < tile; start += rowsOfPart) {
    SmallVector<OpFoldResult> position(first);
    position[2] = affine::makeComposedFoldedAffineMin(
        b, loc, AffineMap::get(2, 0, {row + start, last}, b.getContext()),
        {first[2], lastOfBatch});
    OpFoldResult existing = rows;
    if (getConstantIntValue(rows) == tile)
      existing = b.getIndexAttr(rowsOfPart);
    else if (rowsOfPart < tile)
      existing = notBelowZero(
          row, affine::makeComposedFoldedAffineMin(
                   b, loc,
                   AffineMap::get(
                       1, 0, {row - start, b.getAffineConstantExpr(rowsOfPart)},
                       b.getContext()),
                   {rows}));
    position = address.emitAddress(b, loc, position);
    // Whole parts start where rows that follow each other do.
    if (contiguous <= tile)
      position[2] = b.getIndexAttr(0);
    parts.push_back(extractRows(b, loc, address.getMemory(), position, existing,
                                rowsOfPart, columns));
  }
  if (parts.size() == 1)
    return parts.front();
  return tensor::ConcatOp::create(b, loc, /*dim=*/0, parts);
}

static LogicalResult lower(LoadRowsOp load, bool onlyKernels, bool assertRows) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  SmallVector<OpFoldResult> first = getAsOpFoldResult(load.getPosition());
  Value source = load.getSource();
  int64_t tile = load.getTile().getType().getDimSize(0),
          heads = load.getPacked().value_or(1);
  OpFoldResult rows = load.getRows() ? getAsOpFoldResult(load.getRows())
                                     : b.getIndexAttr(tile / heads);
  if (stripCasts(source).getDefiningOp<tensor::EmptyOp>())
    return load.emitOpError("reads a tensor.empty, whose elements have no "
                            "values; read a linalg.fill of it, or an argument");
  auto address = source.getDefiningOp<AddressOpInterface>();
  std::optional<int64_t> contiguous =
      address ? address.getContiguousRows() : std::nullopt;
  if (contiguous &&
      (heads > 1 || (*contiguous % tile != 0 && tile % *contiguous != 0)))
    return load.emitOpError("takes a tile of ")
           << tile << " rows of " << heads << " heads of a view in which "
           << *contiguous << " rows follow each other; the rows of a tile are "
           << "of one head and divide that number, or are a multiple of it";
  std::optional<Columns> columns;
  if (load.getColumn())
    columns = {getAsOpFoldResult(load.getColumn()),
               load.getTile().getType().getDimSize(1)};
  Value rowsOfTile;
  if (assertRows)
    assertExist(b, load, source, address, first, rows, heads);
  if (contiguous) {
    rowsOfTile =
        extractParts(b, address, first, rows, tile, *contiguous, columns);
    // On a CPU the parts are copied together.
    auto concat = rowsOfTile.getDefiningOp<tensor::ConcatOp>();
    if (concat && !onlyKernels) {
      rowsOfTile = concat.decomposeOperation(b)->front();
      concat.erase();
    }
  } else {
    if (address) {
      first = address.emitAddress(b, loc, first);
      source = address.getMemory();
    }
    rowsOfTile = heads > 1 ? packRows(b, loc, source, first, heads, rows, tile,
                                      columns, load.getToEnd())
                           : extractRows(b, loc, source, first, rows, tile,
                                         columns, load.getToEnd());
  }
  load.replaceAllUsesWith(rowsOfTile);
  load.erase();
  return success();
}

/// Bounds and sets are of where the step is, which is computed in front of the
/// loops.
static LogicalResult verifyTiles(VisitOp visit) {
  if (!visit.getTiles())
    return success();
  StepOpInterface step = visit.getStep();
  if (!step)
    return visit.emitOpError("says which tiles a mask leaves, but its region "
                             "has no single step that has the mask");
  if (!step.getQuery().getType().hasStaticShape() ||
      !step.getKey().getType().hasStaticShape() ||
      step.getQuery().getType().getRank() != 2)
    return step->emitOpError("is of whole tensors, not of tiles of 2 "
                             "dimensions and static sizes, which the visit "
                             "says the mask leaves");
  auto isOutside = [&](OpFoldResult entry) {
    auto value = dyn_cast<Value>(entry);
    return !value || !visit.getBody().isAncestor(value.getParentRegion());
  };
  bool isKnown = llvm::all_of(step.getMixedExtents(), isOutside);
  VisitKind kind = visit.getKind();
  // The index in (b, h, i, j) that the visit goes over; a diagonal has two.
  unsigned own = kind == VisitKind::Batches ? 0
                 : kind == VisitKind::Heads ? 1
                 : kind == VisitKind::Keys  ? 3
                                            : 2;
  for (auto [i, entry] : llvm::enumerate(step.getMixedPosition())) {
    Value at = i == own ? visit.getAt() : i == 3 ? visit.getKeyAt() : Value();
    if (at && entry != OpFoldResult(at))
      return step->emitOpError("is not where the visit is, which says which "
                               "tiles a mask leaves: number ")
             << i << " of its position is to be argument "
             << cast<BlockArgument>(at).getArgNumber()
             << " of the visit's region";
    isKnown &= at || isOutside(entry);
  }
  if (!isKnown)
    return step->emitOpError("is at a position, or of lengths, that only the "
                             "step knows; the tiles that a mask leaves are "
                             "known before it");
  if (visit.isOfPair())
    return success();
  int64_t tile = visit.getTile(),
          rows = (step.stepsOverQueries() ? step.getQuery() : step.getKey())
                     .getType()
                     .getDimSize(0);
  if (rows != tile)
    return step->emitOpError("is of tiles of ")
           << rows << " rows, and the visit, which says which tiles a mask "
           << "leaves, of tiles of " << tile << "; they are the same";
  for (auto [name, value] :
       {std::pair<StringRef, Value>("from", visit.getFrom()),
        {"by", visit.getBy()}}) {
    std::optional<int64_t> constant = getConstantIntValue(value);
    if (constant && *constant % tile != 0)
      return visit.emitOpError("says which tiles a mask leaves, and its ")
             << name << " is " << *constant << ", no multiple of " << tile
             << "; leave out tiles";
  }
  return success();
}

/// Makes slices of what a kernel stores, at an address if there is one.
static void lower(StoreRowsOp store, scf::ForallOp forall,
                  AddressOpInterface address, bool assertRows) {
  OpBuilder b(forall.getTerminator());
  Location loc = store.getLoc();
  int64_t heads = store.getPacked().value_or(1);
  RankedTensorType tile = store.getTile().getType(),
                   destination = store.getDestination().getType();
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult rows = store.getRows()
                          ? getAsOpFoldResult(store.getRows())
                          : b.getIndexAttr(tile.getDimSize(0) / heads);
  Value stored = takeRows(b, loc, store.getTile(), rows, heads);
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(store.getPosition()),
                            sizes(offsets.size(), one);
  if (assertRows)
    assertExist(b, store, store.getDestination(), address, offsets, rows,
                heads);
  if (address)
    offsets = address.emitAddress(b, loc, offsets);
  sizes.back() = rows;
  if (heads > 1)
    sizes[sizes.size() - 2] = b.getIndexAttr(heads);
  if (tile.getRank() == 2) {
    offsets.push_back(store.getColumn() ? getAsOpFoldResult(store.getColumn())
                                        : b.getIndexAttr(0));
    sizes.push_back(b.getIndexAttr(tile.getDimSize(1)));
  }
  b.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(
      b, loc, stored, store.getDestination(), offsets, sizes,
      SmallVector<OpFoldResult>(destination.getRank(), one));
}

/// How many rows a block looks for gaps in: most have none, and end at once.
static constexpr int64_t rowsOfGap = 512;

/// What fills the rows of memory whose rows of no sequence are known.
static linalg::FillOp getFillWithGaps(Value memory) {
  bool isOfOnePart =
      cast<RankedTensorType>(memory.getType()).getDimSize(0) == 1;
  return isOfOnePart ? getFill(memory) : linalg::FillOp();
}

/// Emits a loop behind a kernel that fills the rows of `memory` which it did
/// not store at the address, as `fill` does with all rows. Returns the memory
/// then.
static Value fillGaps(OpBuilder &b, AddressOpInterface address,
                      linalg::FillOp fill, Value memory) {
  Location loc = fill.getLoc();
  Value value = fill.getInputs()[0];
  auto type = cast<RankedTensorType>(memory.getType());
  SmallVector<OpFoldResult> ends = getInitSizes(b, loc, fill.getResult(0));
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  ends.resize(3);
  auto forall = scf::ForallOp::create(
      b, loc, SmallVector<OpFoldResult>(3, zero), ends,
      SmallVector<OpFoldResult>{one, one, b.getIndexAttr(rowsOfGap)}, memory,
      getBlockMapping(b, 3));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forall.getTerminator());
  SmallVector<int64_t> shape = {rowsOfGap};
  llvm::append_range(shape, type.getShape().drop_front(3));
  Value tile = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  tile = linalg::FillOp::create(b, loc, value, tile).getResult(0);
  Value start = forall.getInductionVars()[2];
  Value end = affine::makeComposedAffineApply(
      b, loc, b.getAffineDimExpr(0) + rowsOfGap, {OpFoldResult(start)});
  SmallVector<std::pair<Value, Value>> parts;
  Value none;
  for (auto [gapStart, gapEnd] : address.emitGaps(b, loc)) {
    Value from = arith::MaxSIOp::create(b, loc, start, gapStart),
          to = arith::MinSIOp::create(b, loc, end, gapEnd);
    parts.push_back({from, to});
    Value isNone =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, to, from);
    none = none ? arith::AndIOp::create(b, loc, none, isNone) : isNone;
  }
  Value zeroRows = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [from, to] : parts) {
    Value rows = arith::SubIOp::create(
        b, loc, arith::MaxSIOp::create(b, loc, from, to), from);
    // A choice by what is the same for all, so that a block ends by it
    // (tile-end-empty-blocks).
    rows = arith::SelectOp::create(b, loc, none, zeroRows, rows);
    SmallVector<OpFoldResult> offsets = {forall.getInductionVars()[0],
                                         forall.getInductionVars()[1], from},
                              sizes = {one, one, rows};
    if (type.getRank() == 4) {
      offsets.push_back(zero);
      sizes.push_back(b.getIndexAttr(type.getDimSize(3)));
    }
    Value part = takeRows(b, loc, tile, OpFoldResult(rows), /*heads=*/1);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(forall.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(
        b, loc, part, forall.getRegionOutArgs()[0], offsets, sizes,
        SmallVector<OpFoldResult>(type.getRank(), one));
  }
  return forall.getResult(0);
}

/// Erases a fill whose gaps are filled: all that is left of it are its sizes.
static void eraseFilled(RewriterBase &b, Value memory, linalg::FillOp fill) {
  for (Operation *op = memory.getDefiningOp(); op;) {
    op->getResult(0).replaceUsesWithIf(
        fill.getOutputs()[0],
        [](OpOperand &use) { return isa<tensor::DimOp>(use.getOwner()); });
    auto cast = dyn_cast<tensor::CastOp>(op);
    Operation *source = cast ? cast.getSource().getDefiningOp() : nullptr;
    if (isOpTriviallyDead(op))
      b.eraseOp(op);
    op = source;
  }
}

/// Makes a slice of a view a slice of the memory where its rows lie.
static void moveToAddress(OpBuilder &b, tensor::ParallelInsertSliceOp insert,
                          AddressOpInterface address) {
  SmallVector<OpFoldResult> offsets = insert.getMixedOffsets();
  llvm::copy(
      address.emitAddress(b, insert.getLoc(), ArrayRef(offsets).take_front(3)),
      offsets.begin());
  SmallVector<int64_t> known;
  SmallVector<Value> open;
  dispatchIndexOpFoldResults(offsets, open, known);
  insert.getOffsetsMutable().assign(open);
  insert.setStaticOffsets(known);
}

namespace {
/// A loop over the rows of a view, with the number of the batch's first tile.
struct RowLoop {
  scf::ForallOp forall;
  Value firstTile;
  /// Where the loop takes the tiles of a batch in an order of its own: the
  /// `tile.position` of an iteration's head and tile in the batch.
  tile::PositionOp position = {};
};
} // namespace

/// What a kernel adds to sums in order; null if it adds nothing.
static ParallelAddOp getAddition(KernelOp kernel) {
  auto additions = kernel.getStore().getBody().getOps<ParallelAddOp>();
  return additions.empty() ? ParallelAddOp() : *additions.begin();
}

/// Emits how many tiles of sums a tile of a batch adds to, of all heads that it
/// goes through; null if it visits no rows.
static Value emitAdditions(OpBuilder &b, Location loc, KernelOp kernel,
                           OpFoldResult heads, Value batch) {
  VisitOp adding;
  kernel.walk([&](ContributeOp contribution) {
    adding = contribution->getParentOfType<VisitOp>();
  });
  if (!adding || adding.getBody().getOps<LoadRowsOp>().empty())
    return {};
  auto sums = cast<BlockArgument>(getAddition(kernel).getSums());
  OpFoldResult headsOfSums = tensor::getMixedSize(
      b, loc, kernel.getOuts()[sums.getArgNumber() - kernel.getEnds().size()],
      1);
  Value source = (*adding.getBody().getOps<LoadRowsOp>().begin()).getSource();
  AddressOpInterface address = AddressOpInterface::ofRows(source);
  OpFoldResult rows = address ? OpFoldResult(address.emitLength(b, loc, batch))
                              : tensor::getMixedSize(b, loc, source, 2);
  AffineExpr d0 = b.getAffineDimExpr(0), s0 = b.getAffineSymbolExpr(0),
             s1 = b.getAffineSymbolExpr(1);
  int64_t step = adding.getTile();
  return affine::makeComposedAffineApply(
      b, loc, AffineMap::get(1, 2, d0.ceilDiv(step) * s0.floorDiv(s1)),
      {rows, headsOfSums, heads});
}

/// Whether the batches of a kernel over rows have an order each: additions wait
/// less, and rows stay in the cache, where fewer heads are begun together the
/// longer the batch is.
static bool ordersBatches(KernelOp kernel) {
  return kernel.getRows() && getAddition(kernel) &&
         kernel.getSteps().drop_back().back() == 1 && kernel.getOrder() &&
         tile::PositionOp::interleavesHeads(kernel.getOrder()->getKind());
}

/// A loop takes the tile of one `number` of all heads before the next number.
/// Emits the head and the tile of the batch that the kernel's order has instead
/// among the iterations of this batch.
static tile::PositionOp emitPositionInBatch(OpBuilder &b, KernelOp kernel,
                                            OpFoldResult heads, Value numTiles,
                                            Value number, Value head,
                                            Value batch, Value firstTile) {
  Location loc = kernel.getLoc();
  auto rows = kernel.getRows().getDefiningOp<AddressOpInterface>();
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1),
             d2 = b.getAffineDimExpr(2), s0 = b.getAffineSymbolExpr(0);
  // Behind the last batch are tiles of no batch, which count as its own.
  Value last = affine::makeComposedAffineApply(b, loc, d0 - 1,
                                               {rows.emitSizes(b, loc)[0]});
  Value next = arith::MinSIOp::create(
      b, loc, last, affine::makeComposedAffineApply(b, loc, d0 + 1, {batch}));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, batch, last);
  Value end = arith::SelectOp::create(
      b, loc, isLast, numTiles,
      rows.emitFirstTile(b, loc, next, kernel.getSteps().back()));
  Value ofBatch = arith::SubIOp::create(b, loc, end, firstTile);
  Value inBatch = affine::makeComposedAffineApply(
      b, loc, AffineMap::get(3, 1, (d0 - d1) * s0 + d2),
      {number, firstTile, head, heads});
  return tile::PositionOp::create(
      b, loc, inBatch,
      ValueRange{getValueOrCreateConstantIndexOp(b, loc, heads), ofBatch},
      tile::OrderAttr::get(b.getContext(), kernel.getOrder()->getKind()),
      emitAdditions(b, loc, kernel, heads, batch));
}

/// Whether the rows of memory that nothing stores are undefined, or what a
/// kernel has stored: then one on a GPU may go on with it.
static bool isOfKernels(Value memory) {
  Operation *op = stripCasts(memory).getDefiningOp();
  return op &&
         isa<tensor::EmptyOp, KernelOp, scf::ForallOp, AddressOpInterface>(op);
}

/// The iterations are in linear order, of all `rows` of each head, and
/// `existing` tiles of a head exist. Emits the head and the number of the tile
/// that an iteration takes in the kernel's order of the tiles that exist.
static Value emitExistingPosition(OpBuilder &b, KernelOp kernel,
                                  TileOrder order, Value numHeads,
                                  OpFoldResult rows, Value existing,
                                  Value number, Value &head) {
  Location loc = kernel.getLoc();
  int64_t headsOfTile = kernel.getSteps()[1], tile = kernel.getSteps()[2];
  AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1),
             s0 = b.getAffineSymbolExpr(0);
  Value inGrid = affine::makeComposedAffineApply(
      b, loc,
      AffineMap::get(2, 1, d0.floorDiv(headsOfTile) * s0.floorDiv(tile) + d1),
      {OpFoldResult(head), OpFoldResult(number), rows});
  auto position = tile::PositionOp::create(
      b, loc, inGrid, ValueRange{numHeads, existing},
      tile::OrderAttr::get(b.getContext(), order), /*additions=*/Value());
  head = affine::makeComposedAffineApply(b, loc, d0 * headsOfTile,
                                         {OpFoldResult(position.getResult(0))});
  return position.getResult(1);
}

static LogicalResult lower(KernelOp kernel, bool onlyKernels, bool assertRows,
                           SmallVectorImpl<RowLoop> &loops) {
  IRRewriter b(kernel.getContext());
  Location loc = kernel.getLoc();
  b.setInsertionPoint(kernel);
  SmallVector<OpFoldResult> ends = getAsOpFoldResult(kernel.getEnds());
  int64_t tile = kernel.getSteps().back();
  AddressOpInterface rows;
  Value numTiles;
  if (Value view = kernel.getRows()) {
    rows = view.getDefiningOp<AddressOpInterface>();
    ends[ends.size() - 3] = b.getIndexAttr(1);
    numTiles = rows.emitTileCount(b, loc, tile);
    ends.back() = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineDimExpr(0) * tile, {numTiles});
  }
  bool inBatches = onlyKernels && ordersBatches(kernel);
  // How many tiles exist may be in memory. Then the order is an order of these,
  // and blocks end with them, but for blocks that take waves of tiles, whose
  // number the host computes.
  TileOrder order =
      kernel.getOrder() ? kernel.getOrder()->getKind() : TileOrder::Linear;
  bool isByTile = inBatches || order == TileOrder::HeadsFastest;
  Schedule ofKernel =
      kernel.getSchedule() ? kernel.getSchedule()->getValue() : Schedule();
  bool takesWaves = ofKernel.has(ScheduleFeatures::Persistent) &&
                    !ofKernel.has(ScheduleFeatures::ClaimTiles);
  bool hasEnd = onlyKernels && rows && ends.size() == 3 && rows.hasCount() &&
                (getAddition(kernel) ? isByTile : !takesWaves);
  // What has an address is stored where it lies in memory.
  SmallVector<Value> outs(kernel.getOuts());
  SmallVector<AddressOpInterface> addresses;
  for (auto [out, result] : llvm::zip_equal(outs, kernel.getResults())) {
    AddressOpInterface address = AddressOpInterface::ofStored(result);
    addresses.push_back(address);
    if (!address)
      continue;
    SmallVector<Value> operands(address->getOperands());
    llvm::erase(operands, address.getView());
    if (failed(moveValueDefinitions(b, operands, kernel)))
      return address->emitOpError("stores into what is known behind the kernel "
                                  "alone that computes it");
    out = address.getMemory();
    if (linalg::FillOp fill = getFillWithGaps(out)) {
      Value empty = tensor::EmptyOp::create(
          b, loc, getInitSizes(b, loc, fill.getResult(0)),
          getElementTypeOrSelf(out));
      out = b.createOrFold<tensor::CastOp>(loc, out.getType(), empty);
    }
    if (onlyKernels && !isOfKernels(out))
      return address->emitOpError(
          "packs into a tensor that has values, and on a GPU rows of no "
          "sequence would not keep them; pack into a tensor.empty or, "
          "[1, H, T, ...], a linalg.fill, or use --target=cpu");
  }
  auto forall = scf::ForallOp::create(
      b, loc, SmallVector<OpFoldResult>(ends.size(), b.getIndexAttr(0)), ends,
      getAsIndexOpFoldResult(b.getContext(), kernel.getSteps()), outs,
      getBlockMapping(b, ends.size()));
  forall->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  if (std::optional<ScheduleAttr> schedule = kernel.getSchedule())
    setSchedule(forall, schedule->getValue());
  TileOrder ofIterations = inBatches             ? TileOrder::HeadsFastest
                           : hasEnd && !isByTile ? TileOrder::Linear
                                                 : order;
  if (kernel.getOrder())
    tile::TileDialect::OrderAttrHelper(b.getContext())
        .setAttr(forall, tile::OrderAttr::get(b.getContext(), ofIterations));
  StoreOp store = kernel.getStore();
  Block *body = forall.getBody();
  SmallVector<Value> arguments(body->getArguments());
  if (rows) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(body);
    Value &batch = arguments[ends.size() - 3],
          &row = arguments[ends.size() - 1];
    AffineExpr d0 = b.getAffineDimExpr(0), d1 = b.getAffineDimExpr(1);
    Value number = arith::DivUIOp::create(
        b, loc, row, arith::ConstantIndexOp::create(b, loc, tile));
    if (hasEnd) {
      numTiles = rows.emitExistingTiles(b, loc, tile);
      Value numHeads = getValueOrCreateConstantIndexOp(
          b, loc,
          affine::makeComposedFoldedAffineApply(
              b, loc, d0.ceilDiv(kernel.getSteps()[1]), {ends[1]}));
      tile::EndGridOp::create(
          b, loc, arith::MulIOp::create(b, loc, numHeads, numTiles));
      if (!isByTile)
        number = emitExistingPosition(b, kernel, order, numHeads, ends[2],
                                      numTiles, number, arguments[1]);
    }
    batch = rows.emitBatchOfTile(b, loc, number, tile);
    Value firstTile = rows.emitFirstTile(b, loc, batch, tile);
    RowLoop loop = {forall, firstTile};
    if (inBatches) {
      Value &head = arguments[ends.size() - 2];
      loop.position =
          emitPositionInBatch(b, kernel, ends[ends.size() - 2], numTiles,
                              number, head, batch, firstTile);
      head = loop.position.getResult(0);
      row = affine::makeComposedAffineApply(
          b, loc, d0 * tile, {OpFoldResult(loop.position.getResult(1))});
    } else {
      row = affine::makeComposedAffineApply(b, loc, (d0 - d1) * tile,
                                            {OpFoldResult(number), firstTile});
    }
    loops.push_back(loop);
  }
  for (auto [from, to] :
       llvm::zip_equal(kernel.getBody().getArguments(), arguments))
    from.replaceAllUsesWith(to);
  body->getOperations().splice(forall.getTerminator()->getIterator(),
                               kernel.getBody().front().getOperations(),
                               kernel.getBody().front().begin(),
                               store->getIterator());
  for (Operation &op : llvm::make_early_inc_range(store.getBody().front())) {
    auto combining = cast<ParallelCombiningOpInterface>(op);
    auto destination =
        cast<BlockArgument>(combining.getUpdatedDestinations()[0].get());
    AddressOpInterface address =
        addresses[destination.getArgNumber() - ends.size()];
    if (auto rows = dyn_cast<StoreRowsOp>(op)) {
      lower(rows, forall, address, assertRows);
      continue;
    }
    if (address) {
      auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op);
      if (!insert)
        return address->emitOpError("is of what a kernel stores otherwise than "
                                    "by rows");
      b.setInsertionPoint(forall.getTerminator());
      moveToAddress(b, insert, address);
    }
    op.moveBefore(forall.getTerminator().getBody(),
                  forall.getTerminator().getBody()->end());
  }
  for (auto [result, address, whole] :
       llvm::zip_equal(kernel.getResults(), addresses, forall.getResults())) {
    if (!address) {
      result.replaceAllUsesWith(whole);
      continue;
    }
    Value memory = address.getMemory();
    linalg::FillOp fill = getFillWithGaps(memory);
    b.setInsertionPoint(kernel);
    Value stored = fill ? fillGaps(b, address, fill, whole) : whole;
    if (address.getView() == result) {
      address->getResult(0).replaceAllUsesWith(stored);
      address.erase();
    } else {
      // The kernel behind stores into the same rows.
      result.replaceAllUsesWith(kernel.getOuts()[result.getResultNumber()]);
      address->replaceUsesOfWith(memory, stored);
    }
    if (fill)
      eraseFilled(b, memory, fill);
  }
  kernel.erase();
  return success();
}

/// A contribution names the iterations that it is among by their numbers in the
/// batch; in the loop the iterations of all batches follow each other, or have
/// an order of their own.
static void numberContributors(RowLoop loop) {
  loop.forall.walk([&](ContributeOp contribution) {
    OpBuilder b(contribution);
    if (contribution.getBehind())
      return;
    if (loop.position) {
      contribution.getBehindMutable().assign(tile::emitRank(
          b, contribution.getLoc(), loop.position,
          [&]() -> Value { return contribution.getFirst(); },
          [&]() -> Value { return contribution.getEnd(); }));
      contribution.getFirstMutable().clear();
      contribution.getEndMutable().clear();
      return;
    }
    for (MutableOperandRange bound :
         {contribution.getFirstMutable(), contribution.getEndMutable()})
      bound.assign(arith::AddIOp::create(b, contribution.getLoc(),
                                         loop.firstTile, bound.begin()->get()));
  });
}

//===----------------------------------------------------------------------===//
// Views that programs without kernels have in memory
//===----------------------------------------------------------------------===//

/// Emits a loop from 0 to `end` that goes on with a tensor.
static Value emitLoop(OpBuilder &b, Location loc, Value end, int64_t step,
                      Value init,
                      function_ref<Value(Value at, Value tensor)> body) {
  auto loop =
      scf::ForOp::create(b, loc, arith::ConstantIndexOp::create(b, loc, 0), end,
                         arith::ConstantIndexOp::create(b, loc, step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(
      b, loc, body(loop.getInductionVar(), loop.getRegionIterArgs()[0]));
  return loop.getResult(0);
}

/// Copies the rows of each batch from `from` to `to`, where one is the view and
/// the other is in memory: all at once, or each part of them.
static Value copyBatches(OpBuilder &b, AddressOpInterface address, Value from,
                         Value to) {
  Location loc = address.getLoc();
  Value batches = getValueOrCreateConstantIndexOp(
      b, loc, address.emitSizes(b, loc).front());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  auto type = cast<RankedTensorType>(from.getType());
  int64_t rank = type.getRank();
  bool isStore = address.isStore();
  auto copy = [&](Value batch, OpFoldResult row, Value rows,
                  Value to) -> Value {
    SmallVector<OpFoldResult> inView(rank, zero), inMemory(rank, zero),
        sizes = tensor::getMixedSizes(b, loc, from), ones(rank, one);
    inView[0] = batch;
    inView[2] = row;
    llvm::copy(address.emitAddress(b, loc, ArrayRef(inView).take_front(3)),
               inMemory.begin());
    sizes[0] = one;
    sizes[2] = rows;
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 1;
    shape[2] = ShapedType::kDynamic;
    Value copied = tensor::ExtractSliceOp::create(
        b, loc, type.clone(shape), from, isStore ? inView : inMemory, sizes,
        ones);
    return tensor::InsertSliceOp::create(
        b, loc, copied, to, isStore ? inMemory : inView, sizes, ones);
  };
  return emitLoop(b, loc, batches, 1, to, [&](Value batch, Value to) -> Value {
    Value length = address.emitLength(b, loc, batch);
    std::optional<int64_t> contiguous = address.getContiguousRows();
    if (!contiguous)
      return copy(batch, zero, length, to);
    AffineExpr row = b.getAffineDimExpr(0), end = b.getAffineDimExpr(1);
    return emitLoop(b, loc, length, *contiguous, to, [&](Value at, Value to) {
      Value rows = affine::makeComposedAffineMin(
          b, loc,
          AffineMap::get(2, 0,
                         {end - row, b.getAffineConstantExpr(*contiguous)},
                         b.getContext()),
          {OpFoldResult(at), OpFoldResult(length)});
      return copy(batch, at, rows, to);
    });
  });
}

/// How many rows of each batch exist, as a tensor of `type`.
static Value makeLengths(OpBuilder &b, AddressOpInterface address, Type type) {
  Location loc = address.getLoc();
  auto tensor = cast<RankedTensorType>(type);
  OpFoldResult batches = address.emitSizes(b, loc).front();
  Value empty =
      tensor::EmptyOp::create(b, loc, {batches}, tensor.getElementType());
  return emitLoop(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, batches), 1, empty,
      [&](Value batch, Value lengths) -> Value {
        Value length = arith::IndexCastOp::create(
            b, loc, tensor.getElementType(), address.emitLength(b, loc, batch));
        return tensor::InsertOp::create(b, loc, length, lengths, batch);
      });
}

/// Refuses what would be copied between a view and memory outside of kernels,
/// because others take `taken` as a tensor.
static LogicalResult refuseCopy(AddressOpInterface address, Value taken,
                                const Twine &why) {
  InFlightDiagnostic error = address->emitOpError(why);
  llvm::SmallSetVector<Location, 4> locations;
  for (Operation *user : taken.getUsers())
    if (user != address)
      locations.insert(user->getLoc());
  for (Location location : locations)
    error.attachNote(location) << "it is used here";
  return error;
}

/// Replaces the uses of a view other than of its rows, and makes the view where
/// it is used as a tensor, unless kernels alone run.
static LogicalResult lower(AddressOpInterface address, bool onlyKernels) {
  OpBuilder b(address);
  Location loc = address.getLoc();
  if (address.isStore()) {
    Value view = address.getView();
    if (onlyKernels)
      return refuseCopy(
          address, view,
          view.hasOneUse()
              ? "packs what no attention computes, and on a GPU its kernels "
                "alone store rows; use --target=cpu"
              : "packs what is used elsewhere, too, and on a GPU a result is "
                "stored once; let the others take flash.unpack of what was "
                "packed, or use --target=cpu");
    address->getResult(0).replaceAllUsesWith(
        copyBatches(b, address, address.getView(), address.getMemory()));
    return success();
  }
  Value view = address.getView();
  for (Operation *user : llvm::make_early_inc_range(address->getUsers())) {
    OpBuilder at(user);
    if (auto dim = dyn_cast<tensor::DimOp>(user)) {
      int64_t number = dim.getConstantIndex().value_or(0);
      SmallVector<OpFoldResult> sizes = address.emitSizes(at, loc);
      dim.replaceAllUsesWith(
          getValueOrCreateConstantIndexOp(at, loc, sizes[number]));
      dim.erase();
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(user);
               extract && address.hasLengths(extract.getTensor())) {
      Value length = address.emitLength(at, loc, extract.getIndices()[0]);
      extract.replaceAllUsesWith(
          arith::IndexCastOp::create(at, loc, extract.getType(), length)
              .getResult());
      extract.erase();
    }
  }
  for (Value result : address->getResults())
    if (onlyKernels && !result.use_empty())
      return refuseCopy(address, result,
                        "is used as a tensor, and on a GPU kernels of "
                        "attention alone read it; use --target=cpu");
  if (!view.use_empty()) {
    Value empty = tensor::EmptyOp::create(b, loc, address.emitSizes(b, loc),
                                          getElementTypeOrSelf(view));
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(getElementTypeOrSelf(view)));
    empty = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
    view.replaceAllUsesWith(
        copyBatches(b, address, address.getMemory(), empty));
  }
  for (OpResult result : address->getResults())
    if (result != view && !result.use_empty())
      result.replaceAllUsesWith(makeLengths(b, address, result.getType()));
  return success();
}

namespace {
struct ConvertFlashToSCF
    : flash::impl::ConvertFlashToSCFBase<ConvertFlashToSCF> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult walk = getOperation().walk([&](InterleaveOp op) {
      return onlyKernels ? WalkResult::advance()
                         : WalkResult(op.emitOpError(
                               "is of kernels for a GPU; use flash.dequantize, "
                               "or a target that is a GPU"));
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    SmallVector<KernelOp> kernels;
    getOperation().walk([&](KernelOp kernel) { kernels.push_back(kernel); });
    SmallVector<RowLoop> rowLoops;
    for (KernelOp kernel : kernels)
      if (failed(lower(kernel, onlyKernels, assertRows, rowLoops)))
        return signalPassFailure();
    SmallVector<VisitOp> visits;
    getOperation().walk([&](VisitOp visit) { visits.push_back(visit); });
    for (VisitOp visit : visits) {
      if (failed(verifyTiles(visit)))
        return signalPassFailure();
      VisitLowering(visit).run();
    }
    for (RowLoop loop : rowLoops)
      numberContributors(loop);
    SmallVector<LoadRowsOp> loads;
    getOperation().walk([&](LoadRowsOp load) { loads.push_back(load); });
    for (LoadRowsOp &load : loads)
      if (auto dequantize = load.getSource().getDefiningOp<DequantizeOp>())
        load = loadQuantized(load, dequantize, onlyKernels);
    SmallVector<DequantizeOp> dequantized;
    getOperation().walk([&](DequantizeOp op) { dequantized.push_back(op); });
    for (DequantizeOp op : dequantized)
      if (failed(dequantizeTensor(op, onlyKernels)))
        return signalPassFailure();
    for (LoadRowsOp load : loads)
      if (failed(lower(load, onlyKernels, assertRows)))
        return signalPassFailure();
    SmallVector<AddressOpInterface> addresses;
    getOperation().walk(
        [&](AddressOpInterface address) { addresses.push_back(address); });
    for (AddressOpInterface address : addresses) {
      if (failed(lower(address, onlyKernels)))
        return signalPassFailure();
      address.erase();
    }
  }
};
} // namespace
