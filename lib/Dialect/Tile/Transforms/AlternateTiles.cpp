//===- AlternateTiles.cpp - Two warpgroups alternate between tiles --------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlternateTiles.h"
#include "VerifyRoles.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::tile;

//===----------------------------------------------------------------------===//
// Types of other warps
//===----------------------------------------------------------------------===//

/// The type of the same register tile, or pending one, over the warps from
/// `firstWarp` on.
static Type moveTo(Type type, int64_t firstWarp) {
  if (auto pending = dyn_cast<PendingType>(type))
    return PendingType::get(
        type.getContext(),
        cast<RankedTensorType>(moveTo(pending.getValue(), firstWarp)));
  auto tensor = cast<RankedTensorType>(type);
  MLIRContext *context = type.getContext();
  Attribute layout =
      TypeSwitch<Attribute, Attribute>(tensor.getEncoding())
          .Case<FragmentAttr, RowsAttr, ColumnsAttr, LanesAttr>([&](auto of) {
            return decltype(of)::get(context, of.getWarps(), firstWarp);
          });
  return tensor.cloneWithEncoding(layout);
}

static bool isOfWarps(Type type, int64_t firstWarp) {
  LayoutAttrInterface layout = getLayout(type);
  return layout && layout.getFirstWarp() == firstWarp;
}

/// The layout of the register tile that the op gives; null if it gives none.
static LayoutAttrInterface getLayoutOfResults(Operation *op) {
  return op->getNumResults() == 1 ? getLayout(op->getResult(0).getType())
                                  : LayoutAttrInterface();
}

/// Whether the product is one of queries and keys, of any warps.
static bool isOfScoresOfAny(MmaAsyncOp product) {
  return product.getTransposeB() && !product.getC() &&
         isa<SmemType>(product.getA().getType());
}

/// Whether the op is a product of queries and keys of the first warps.
static bool isOfScores(Operation *op) {
  auto product = dyn_cast<MmaAsyncOp>(op);
  return product && isOfScoresOfAny(product) && isOfWarps(product.getType(), 0);
}

//===----------------------------------------------------------------------===//
// Loops over pairs of tiles
//===----------------------------------------------------------------------===//

namespace {
/// A loop whose iterations have two tiles, and what is of the second one.
struct Pairs {
  scf::ForOp loop;
  SmallVector<Operation *> ofFirst, ofSecond;
};
} // namespace

/// Makes a loop over pairs of tiles, and the loop itself one over the tile that
/// is left. Nothing if there is no pair.
static std::optional<Pairs> makePairs(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(),
        step = loop.getStep();
  Value distance = b.createOrFold<arith::SubIOp>(loc, upper, lower);
  distance = b.createOrFold<arith::MaxSIOp>(loc, distance, constant(0));
  Value count = b.createOrFold<arith::CeilDivUIOp>(loc, distance, step);
  Value pairs = b.createOrFold<arith::DivUIOp>(loc, count, constant(2));
  Value stepOfPair = b.createOrFold<arith::MulIOp>(loc, step, constant(2));
  Value length = b.createOrFold<arith::MulIOp>(loc, pairs, stepOfPair);
  Value middle = b.createOrFold<arith::AddIOp>(loc, lower, length);
  if (getConstantIntValue(pairs) == 0)
    return std::nullopt;
  Pairs result;
  result.loop =
      scf::ForOp::create(b, loc, lower, middle, stepOfPair, loop.getInitArgs());
  b.setInsertionPointToStart(result.loop.getBody());
  Value position = result.loop.getInductionVar();
  SmallVector<Value> carried(result.loop.getRegionIterArgs());
  for (auto *ops : {&result.ofFirst, &result.ofSecond}) {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), position);
    mapping.map(loop.getRegionIterArgs(), carried);
    for (Operation &op : loop.getBody()->without_terminator())
      ops->push_back(b.clone(op, mapping));
    for (auto [value, yielded] :
         llvm::zip_equal(carried, loop.getYieldedValues()))
      value = mapping.lookupOrDefault(yielded);
    if (ops == &result.ofFirst)
      position = arith::AddIOp::create(b, loc, position, step);
  }
  scf::YieldOp::create(b, loc, carried);
  std::optional<int64_t> end = getConstantIntValue(middle);
  if (end && end == getConstantIntValue(upper)) {
    loop.replaceAllUsesWith(result.loop.getResults());
    loop.erase();
    return result;
  }
  loop.setLowerBound(middle);
  loop.getInitArgsMutable().assign(result.loop.getResults());
  return result;
}

//===----------------------------------------------------------------------===//
// The second tile
//===----------------------------------------------------------------------===//

namespace {
/// Gives what depends on the scores of the second tile to the other warps.
class SecondTile {
public:
  SecondTile(Pairs &pairs, int64_t others)
      : body(*pairs.loop.getBody()), ofFirst(pairs.ofFirst),
        ofSecond(pairs.ofSecond), others(others) {}

  LogicalResult move();
  /// Puts the operations of the other warps into another order: the scores of
  /// the second tile before the product of the first tile's probabilities,
  /// which ends behind the softmax.
  void reorder();

private:
  bool isMoved(Value value) const { return moved.contains(value); }
  /// Whether the type has the columns of a half of the sums of values.
  bool isOfSums(Type type) const;
  /// Whether the op, of the second tile, is for the other warps: the product
  /// for scores, and what is computed with moved tiles. Sums of values stay
  /// where they are, and so do sums of rows, which the first warps carry.
  bool moves(Operation *op) const;
  /// The value as the warps from `firstWarp` on have it, for `user`.
  FailureOr<Value> handOver(Value value, int64_t firstWarp, Operation *user);
  Value share(Value value);
  /// Gives an op that moves what the first warps have of its operands.
  LogicalResult moveOperands(Operation *op);
  /// Gives an op that stays what has moved of its operands.
  LogicalResult stayWithOperands(Operation *op);
  /// Adds what the other warps have folded to the sums of the first ones.
  LogicalResult addFolded(FoldOp fold);
  /// The end of the product for scores.
  MmaWaitOp getScores();
  /// The last product of the second tile that is started.
  Operation *getLastProduct();

  Block &body;
  SmallVector<Operation *> &ofFirst, &ofSecond;
  /// The first of the other warps.
  int64_t others;
  llvm::SmallDenseSet<Value> moved;
  llvm::SmallDenseMap<Value, Value> shared;
  llvm::SmallDenseMap<std::pair<Value, int64_t>, Value> copies;
  /// Folds of moved tiles into what the first warps carry.
  SmallVector<FoldOp> folds;
  /// How many columns each half of the sums has.
  SmallVector<int64_t> columns;
};
} // namespace

bool SecondTile::isOfSums(Type type) const {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getValue();
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 &&
         isa<FragmentAttr>(tensor.getEncoding()) &&
         llvm::is_contained(columns, tensor.getDimSize(1));
}

bool SecondTile::moves(Operation *op) const {
  if (isOfScores(op))
    return true;
  if (op->getNumResults() != 1 || !isOfWarps(op->getResult(0).getType(), 0) ||
      isOfSums(op->getResult(0).getType()) ||
      llvm::none_of(op->getOperands(),
                    [&](Value value) { return isMoved(value); }))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return isMoved(value) || !tensor || !isa<LanesAttr>(tensor.getEncoding()) ||
           matchPattern(value, m_Constant());
  });
}

Value SecondTile::share(Value value) {
  Value &known = shared[value];
  if (known)
    return known;
  for (Operation *user : value.getUsers())
    if (auto share = dyn_cast<ShareOp>(user))
      return known = share;
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  return known = ShareOp::create(b, value.getLoc(), value);
}

FailureOr<Value> SecondTile::handOver(Value value, int64_t firstWarp,
                                      Operation *user) {
  if (!getLayout(value.getType()) || isOfWarps(value.getType(), firstWarp))
    return value;
  auto [at, isNew] = copies.try_emplace({value, firstWarp});
  if (!isNew)
    return at->second;
  OpBuilder b(user);
  Location loc = value.getLoc();
  Type type = moveTo(value.getType(), firstWarp);
  Operation *definition = value.getDefiningOp();
  Value copy;
  if (auto constant = dyn_cast_if_present<arith::ConstantOp>(definition)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return failure();
    copy = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(cast<ShapedType>(type),
                               splat.getSplatValue<Attribute>()));
  } else if (auto tensor = cast<RankedTensorType>(value.getType());
             isa<RowsAttr>(tensor.getEncoding()) &&
             tensor.getElementType().isF32()) {
    copy = LoadOp::create(b, loc, type, share(value), /*transpose=*/false);
  } else if (definition && definition->getNumRegions() == 0 &&
             isPure(definition) && definition->getNumResults() == 1) {
    // Other tiles are computed again.
    SmallVector<Value> operands;
    for (Value operand : definition->getOperands()) {
      FailureOr<Value> ofWarps = handOver(operand, firstWarp, user);
      if (failed(ofWarps))
        return failure();
      operands.push_back(*ofWarps);
    }
    copy = b.create(loc, definition->getName().getIdentifier(), operands, type,
                    definition->getAttrs())
               ->getResult(0);
  } else {
    return failure();
  }
  copies[{value, firstWarp}] = copy;
  return copy;
}

LogicalResult SecondTile::moveOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    FailureOr<Value> ofOthers = handOver(operand.get(), others, op);
    if (failed(ofOthers))
      return failure();
    operand.set(*ofOthers);
  }
  return success();
}

LogicalResult SecondTile::stayWithOperands(Operation *op) {
  if (auto fold = dyn_cast<FoldOp>(op); fold && isMoved(fold.getX())) {
    folds.push_back(fold);
    return success();
  }
  LayoutAttrInterface layout = getLayoutOfResults(op);
  if (layout && layout.getFirstWarp() == others)
    return success();
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isMoved(operand.get()))
      continue;
    auto product = dyn_cast<MmaAsyncOp>(op);
    if (product && isOfWarps(product.getType(), 0)) {
      operand.set(share(operand.get()));
      continue;
    }
    FailureOr<Value> own = handOver(operand.get(), 0, op);
    if (failed(own))
      return failure();
    operand.set(*own);
  }
  return success();
}

LogicalResult SecondTile::addFolded(FoldOp fold) {
  if (fold.getReduction() != Reduction::Add)
    return failure();
  OpBuilder b(fold);
  Location loc = fold.getLoc();
  auto lanes = cast<RankedTensorType>(fold.getType());
  auto lanesOfOthers = cast<RankedTensorType>(moveTo(lanes, others));
  auto rowsOfOthers = RankedTensorType::get(
      lanes.getDimSize(0), lanes.getElementType(),
      RowsAttr::get(fold.getContext(), getLayout(lanes).getNumWarps(), others));
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(lanesOfOthers));
  Value folded =
      FoldOp::create(b, loc, lanesOfOthers, Reduction::Add, fold.getX(), zero);
  // Nobody waits for the sums: they come behind the start of the product.
  b.setInsertionPointAfter(getLastProduct());
  Value ofRows = ReduceOp::create(b, loc, rowsOfOthers, Reduction::Add, folded);
  b.setInsertionPoint(body.getTerminator());
  FailureOr<Value> own = handOver(ofRows, 0, body.getTerminator());
  if (failed(own))
    return failure();
  // Four lanes share a row.
  auto rows = cast<RankedTensorType>(own->getType());
  Value quarter = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(rows, b.getF32FloatAttr(0.25)));
  Value part = arith::MulFOp::create(b, loc, *own, quarter);
  Value sum = arith::AddFOp::create(b, loc, fold.getInit(),
                                    BroadcastOp::create(b, loc, lanes, part));
  fold.replaceAllUsesWith(sum);
  fold.erase();
  return success();
}

LogicalResult SecondTile::move() {
  for (Operation *op : ofSecond)
    if (auto product = dyn_cast<MmaAsyncOp>(op); product && product.getC())
      columns.push_back(product.getType().getValue().getDimSize(1));
  for (Operation *op : ofSecond) {
    if (!moves(op))
      continue;
    Value result = op->getResult(0);
    // Scores and sums would not differ.
    if (isOfSums(result.getType()))
      return failure();
    result.setType(moveTo(result.getType(), others));
    moved.insert(result);
  }
  for (Operation *op : SmallVector<Operation *>(ofSecond)) {
    // What they share, the other warps have.
    if (auto load = dyn_cast<LoadOp>(op))
      if (auto share = load.getSource().getDefiningOp<ShareOp>();
          share && isMoved(share.getX())) {
        load.replaceAllUsesWith(share.getX());
        llvm::erase(ofSecond, op);
        op->erase();
        continue;
      }
    if (isa<ShareOp>(op))
      continue;
    if (auto product = dyn_cast<MmaAsyncOp>(op);
        product && isOfWarps(product.getType(), others) && !isMoved(product))
      if (auto share = product.getA().getDefiningOp<ShareOp>();
          share && isMoved(share.getX())) {
        product.getAMutable().assign(share.getX());
        continue;
      }
    bool isOwn = op->getNumResults() == 1 && isMoved(op->getResult(0));
    if (failed(isOwn ? moveOperands(op) : stayWithOperands(op)))
      return failure();
  }
  for (FoldOp fold : folds) {
    llvm::erase(ofSecond, fold.getOperation());
    if (failed(addFolded(fold)))
      return failure();
  }
  if (failed(stayWithOperands(body.getTerminator())))
    return failure();
  // What the next iteration needs is shared behind the start of the products,
  // for which the first warps wait.
  Operation *behind = getLastProduct();
  for (Value carried : body.getTerminator()->getOperands())
    if (auto load = carried.getDefiningOp<LoadOp>())
      if (auto share = load.getSource().getDefiningOp<ShareOp>();
          share && share->hasOneUse() && isMoved(share.getX()))
        share->moveAfter(behind);
  return success();
}

Operation *SecondTile::getLastProduct() {
  Operation *last = &body.front();
  for (Operation *op : ofSecond)
    if (isa<MmaAsyncOp>(op) && last->isBeforeInBlock(op))
      last = op;
  return last;
}

MmaWaitOp SecondTile::getScores() {
  for (Operation *op : ofSecond)
    if (auto wait = dyn_cast<MmaWaitOp>(op); wait && isMoved(wait))
      return wait;
  return {};
}

void SecondTile::reorder() {
  MmaWaitOp scores = getScores();
  SmallVector<MmaWaitOp> waits;
  for (Operation *op : ofFirst) {
    LayoutAttrInterface layout = getLayoutOfResults(op);
    if (!layout || layout.getFirstWarp() != others)
      continue;
    if (auto wait = dyn_cast<MmaWaitOp>(op)) {
      waits.push_back(wait);
      continue;
    }
    op->moveBefore(scores);
    if (auto product = dyn_cast<MmaAsyncOp>(op))
      scores.getYoungerMutable().append(product.getResult());
  }
  // The products end before other probabilities have the memory of those that
  // they read, and behind what comes first for the first warps, the factors of
  // rows.
  auto end = llvm::find_if(body, [&](Operation &op) {
    auto share = dyn_cast<ShareOp>(op);
    return share && isMoved(share.getX());
  });
  for (MmaWaitOp wait : waits)
    wait->moveAfter(&*end);
  // The sums are scaled behind that.
  for (Operation *op : ofSecond)
    if (auto product = dyn_cast<MmaAsyncOp>(op);
        product && product.getC() && isOfWarps(product.getType(), others))
      if (Operation *scale = product.getC().getDefiningOp();
          scale && scale->getBlock() == &body && !isa<MmaWaitOp>(scale))
        scale->moveBefore(product);
}

//===----------------------------------------------------------------------===//
// Pieces of columns
//===----------------------------------------------------------------------===//

namespace {
/// Some of the columns of a tile.
struct Piece {
  int64_t start, end;
  bool operator==(const Piece &other) const {
    return start == other.start && end == other.end;
  }
};
using Pieces = SmallVector<Piece>;
} // namespace

/// The panels with the columns that a product takes from its second operand;
/// nothing if it takes all of them, or if they are not known.
static std::optional<Piece> getColumns(MmaAsyncOp product) {
  SmemType tile = product.getB().getType();
  std::optional<int64_t> panel =
      product.getPanel() ? getConstantIntValue(product.getPanel()) : 0;
  if (product.getTransposeB() || !panel)
    return std::nullopt;
  int64_t start = *panel * tile.getPanelColumns();
  int64_t end =
      llvm::alignTo(start + product.getType().getValue().getDimSize(1),
                    tile.getPanelColumns());
  return Piece{start, std::min(end, tile.getColumns())};
}

/// The pieces of a tile of keys that products take: columns that are no values
/// come first. Nothing if others read the tile.
static Pieces getPieces(FetchOp fetch) {
  int64_t columns = fetch.getResult().getType().getColumns();
  Pieces pieces;
  for (Operation *user : fetch->getUsers()) {
    auto product = dyn_cast<MmaAsyncOp>(user);
    if (!product || product.getB() != fetch.getResult())
      return {};
    if (isOfScoresOfAny(product))
      continue;
    std::optional<Piece> piece = getColumns(product);
    if (!piece)
      return {};
    if (!llvm::is_contained(pieces, *piece))
      pieces.push_back(*piece);
  }
  llvm::sort(pieces, [](Piece a, Piece b) { return a.start < b.start; });
  int64_t end = 0;
  for (Piece piece : pieces) {
    if (piece.start != end)
      return {};
    end = piece.end;
  }
  if (pieces.empty() || end > columns)
    return {};
  if (end < columns)
    pieces.insert(pieces.begin(), {end, columns});
  return pieces;
}

/// Fetches of some of the columns.
static SmallVector<Value> fetchPieces(FetchOp fetch, const Pieces &pieces) {
  OpBuilder b(fetch);
  Location loc = fetch.getLoc();
  SmemType tile = fetch.getResult().getType();
  auto rank = static_cast<size_t>(fetch.getSource().getType().getRank());
  SmallVector<Value> results;
  for (Piece piece : pieces) {
    Value start = arith::ConstantIndexOp::create(b, loc, piece.start);
    SmallVector<Value> indices;
    for (int64_t part = 0; part < fetch.getNumParts(); ++part) {
      llvm::append_range(indices, fetch.getIndicesOfPart(part));
      if (fetch.getIndicesOfPart(part).size() < rank)
        indices.push_back(start);
      else
        indices.back() = arith::AddIOp::create(b, loc, indices.back(), start);
    }
    auto copy = cast<FetchOp>(b.clone(*fetch));
    copy.getIndicesMutable().assign(indices);
    copy.getResult().setType(SmemType::get(
        tile.getRows(), piece.end - piece.start, tile.getElementType()));
    results.push_back(copy.getResult());
  }
  return results;
}

/// Has tiles of keys, and those that they are multiplied with, fetched in
/// pieces; fails where that is not possible with all of them.
static LogicalResult fetchInPieces(gpu::GPUFuncOp kernel) {
  llvm::SetVector<FetchOp> fetches;
  SmallVector<MmaAsyncOp> products;
  Pieces pieces;
  WalkResult walk = kernel.walk([&](MmaAsyncOp product) -> WalkResult {
    if (!isOfScoresOfAny(product))
      return WalkResult::advance();
    auto queries = product.getA().getDefiningOp<FetchOp>(),
         keys = product.getB().getDefiningOp<FetchOp>();
    Pieces own = keys ? getPieces(keys) : Pieces();
    if (!queries || own.size() < 2 || (!pieces.empty() && own != pieces))
      return WalkResult::interrupt();
    pieces = own;
    fetches.insert(queries);
    fetches.insert(keys);
    products.push_back(product);
    return WalkResult::advance();
  });
  bool isOfOthers = llvm::any_of(fetches, [&](FetchOp fetch) {
    return llvm::any_of(fetch->getUsers(),
                        [](Operation *user) { return !isa<MmaAsyncOp>(user); });
  });
  if (walk.wasInterrupted() || isOfOthers)
    return failure();
  llvm::SmallDenseMap<Value, SmallVector<Value>> tiles;
  for (FetchOp fetch : fetches)
    tiles[fetch.getResult()] = fetchPieces(fetch, pieces);
  kernel.walk([&](MmaAsyncOp product) {
    std::optional<Piece> columns = getColumns(product);
    auto of = tiles.find(product.getB());
    if (!columns || of == tiles.end())
      return;
    product.getBMutable().assign(
        of->second[llvm::find(pieces, *columns) - pieces.begin()]);
    product.getPanelMutable().clear();
  });
  for (MmaAsyncOp product : products) {
    OpBuilder b(product);
    SmallVector<Value> a = tiles[product.getA()], keys = tiles[product.getB()];
    Value sum;
    MmaAsyncOp last;
    // What is free behind the product comes last: the others are read later,
    // too, and nothing waits for their products.
    if (pieces.front().start != 0)
      for (SmallVector<Value> *ofTile : {&a, &keys})
        std::rotate(ofTile->begin(), ofTile->begin() + 1, ofTile->end());
    for (auto [ofA, ofB] : llvm::zip_equal(a, keys)) {
      if (last)
        sum = MmaWaitOp::create(b, product.getLoc(),
                                product.getType().getValue(), last);
      last = MmaAsyncOp::create(
          b, product.getLoc(), product.getType(), ofA, ofB, /*panel=*/Value(),
          sum, product.getTransposeA(), product.getTransposeB(),
          product.getTf32(), product.getWarpgroup());
    }
    product.replaceAllUsesWith(last.getResult());
    product.erase();
  }
  for (FetchOp fetch : fetches)
    fetch.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The loops over tiles, if each has one product for scores, and all of its
/// operations are carried out in each iteration.
static SmallVector<scf::ForOp> getLoops(gpu::GPUFuncOp kernel) {
  llvm::SetVector<scf::ForOp> loops;
  WalkResult walk = kernel.walk([&](MmaAsyncOp product) {
    auto loop = dyn_cast<scf::ForOp>(product->getParentOp());
    if (!loop || (isOfScores(product) && loops.contains(loop)))
      return WalkResult::interrupt();
    loops.insert(loop);
    return WalkResult::advance();
  });
  bool areSimple = llvm::all_of(loops, [](scf::ForOp loop) {
    return llvm::any_of(*loop.getBody(),
                        [](Operation &op) { return isOfScores(&op); }) &&
           llvm::all_of(*loop.getBody(), [](Operation &op) {
             return op.getNumRegions() == 0 || isa<MapOp>(op);
           });
  });
  if (walk.wasInterrupted() || !areSimple)
    return {};
  return llvm::to_vector(loops);
}

static LogicalResult alternate(gpu::GPUFuncOp kernel) {
  SmallVector<scf::ForOp> loops = getLoops(kernel);
  int64_t others = 0;
  kernel.walk([&](MmaAsyncOp product) {
    others = std::max(others, getLayout(product.getType()).getFirstWarp());
  });
  bool hasPairs = false;
  for (scf::ForOp loop : loops) {
    std::optional<Pairs> pairs = makePairs(loop);
    if (!pairs)
      continue;
    hasPairs = true;
    SecondTile second(*pairs, others);
    if (failed(second.move()))
      return failure();
    second.reorder();
  }
  return hasPairs ? fetchInPieces(kernel) : failure();
}

bool flash::tile::alternateTiles(gpu::GPUFuncOp kernel) {
  OwningOpRef<gpu::GPUFuncOp> before = kernel.clone();
  if (succeeded(alternate(kernel)))
    return true;
  kernel.getBody().takeBody(before->getBody());
  return false;
}
