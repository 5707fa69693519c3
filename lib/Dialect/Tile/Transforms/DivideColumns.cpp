//===- DivideColumns.cpp - Wide accumulators of two warpgroups ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AlternateTiles.h"

#include "flash/Conversion/FunctionPattern.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Schedule/ValueColumns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/DialectConversion.h"

namespace flash::tile {
#define GEN_PASS_DEF_DIVIDECOLUMNS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// The columns of a panel of elements of 16 bits, which warpgroups multiply. So
/// many columns are whole panels of wider elements, too.
static constexpr int64_t panelColumns = 64;

namespace {
/// A half of a wide tile, and the tile's column at which it begins.
struct Half {
  RankedTensorType type;
  int64_t column;
};
} // namespace

/// The halves of a fragment that is too wide for one warpgroup: the second half
/// belongs to other warps. Nothing for any other type.
static std::optional<std::array<Half, 2>> getHalves(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto layout = tensor ? dyn_cast_or_null<FragmentAttr>(tensor.getEncoding())
                       : FragmentAttr();
  if (!layout || tensor.getDimSize(1) <= mostValueColumns)
    return std::nullopt;
  int64_t rows = tensor.getDimSize(0), columns = tensor.getDimSize(1),
          first = getFirstColumns(columns, panelColumns);
  auto others = FragmentAttr::get(type.getContext(), layout.getWarps(),
                                  layout.getFirstWarp() + layout.getWarps());
  Type element = tensor.getElementType();
  return std::array{
      Half{RankedTensorType::get({rows, first}, element, layout), 0},
      Half{RankedTensorType::get({rows, columns - first}, element, others),
           first}};
}

static RankedTensorType getTensor(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    return pending.getValue();
  return dyn_cast<RankedTensorType>(type);
}

static bool isWide(Type type) {
  RankedTensorType tensor = getTensor(type);
  return tensor && getHalves(tensor);
}

namespace {
class HalvesConverter : public TypeConverter {
public:
  HalvesConverter() {
    addConversion([](Type type) { return type; });
    addConversion([](RankedTensorType type, SmallVectorImpl<Type> &results) {
      auto halves = getHalves(type);
      if (!halves)
        return std::optional<LogicalResult>();
      for (Half half : *halves)
        results.push_back(half.type);
      return std::optional(success());
    });
    addConversion([](PendingType type, SmallVectorImpl<Type> &results) {
      auto halves = getHalves(type.getValue());
      if (!halves)
        return std::optional<LogicalResult>();
      for (Half half : *halves)
        results.push_back(PendingType::get(type.getContext(), half.type));
      return std::optional(success());
    });
  }
};

using Halves = SmallVector<Value>;

/// Emits two operations for one on wide tiles: each computes a half, and the
/// warps of that half hold its operands.
class Divider {
public:
  /// What the first warps hold, in shared memory.
  Value share(OpBuilder &b, Value tile);
  /// What the first warps hold, as the `other` warps hold it.
  Value handOver(OpBuilder &b, Value tile, FragmentAttr other);

  Halves operator()(OpBuilder &b, BroadcastOp op);
  Halves operator()(OpBuilder &b, arith::ConstantOp op);
  Halves operator()(OpBuilder &b, MmaAsyncOp op, ManyValues<MmaAsyncOp> from);
  Halves operator()(OpBuilder &b, MmaWaitOp op, ManyValues<MmaWaitOp> from);
  Halves operator()(OpBuilder &b, LoadRowOp op);
  Halves operator()(OpBuilder &b, MapOp op, ManyValues<MapOp> from);
  Halves operator()(OpBuilder &b, StoreOp op, ManyValues<StoreOp> from);

private:
  /// The panel of a tile at which a half begins: `panel` if it is the first.
  static Value advance(OpBuilder &b, Location loc, SmemType tile, Value panel,
                       int64_t column);

  llvm::DenseMap<Value, Value> shared;
};
} // namespace

Value Divider::share(OpBuilder &b, Value tile) {
  Value &known = shared[tile];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(tile);
  return known = ShareOp::create(b, tile.getLoc(), tile);
}

Value Divider::handOver(OpBuilder &b, Value tile, FragmentAttr other) {
  auto type = cast<RankedTensorType>(tile.getType());
  auto rows =
      RowsAttr::get(b.getContext(), other.getWarps(), other.getFirstWarp());
  // A column of what they have anyway.
  if (auto column = tile.getDefiningOp<ColumnOp>())
    return ColumnOp::create(b, column.getLoc(), type.cloneWithEncoding(rows),
                            handOver(b, column.getX(), other),
                            column.getColumn());
  Attribute layout = type.getRank() == 1 ? Attribute(rows) : other;
  return LoadOp::create(b, tile.getLoc(), type.cloneWithEncoding(layout),
                        share(b, tile), /*transpose=*/false);
}

Value Divider::advance(OpBuilder &b, Location loc, SmemType tile, Value panel,
                       int64_t column) {
  if (column == 0)
    return panel;
  Value distance =
      arith::ConstantIndexOp::create(b, loc, column / tile.getPanelColumns());
  return panel ? arith::AddIOp::create(b, loc, panel, distance).getResult()
               : distance;
}

Halves Divider::operator()(OpBuilder &b, BroadcastOp op) {
  auto [first, second] = *getHalves(op.getType());
  Value source = op.getSource();
  Value ofOthers =
      isa<RankedTensorType>(source.getType())
          ? handOver(b, source, cast<FragmentAttr>(second.type.getEncoding()))
          : source;
  return {BroadcastOp::create(b, op.getLoc(), first.type, source),
          BroadcastOp::create(b, op.getLoc(), second.type, ofOthers)};
}

Halves Divider::operator()(OpBuilder &b, arith::ConstantOp op) {
  auto value = cast<SplatElementsAttr>(op.getValue());
  Halves results;
  auto halves = *getHalves(op.getType());
  for (Half half : halves)
    results.push_back(arith::ConstantOp::create(
        b, op.getLoc(),
        DenseElementsAttr::get(half.type, value.getSplatValue<Attribute>())));
  return results;
}

Halves Divider::operator()(OpBuilder &b, MmaAsyncOp op,
                           ManyValues<MmaAsyncOp> from) {
  Halves results;
  for (auto [i, half] :
       llvm::enumerate(*getHalves(op.getResult().getType().getValue()))) {
    Value a = op.getA();
    if (i == 1 && isa<RankedTensorType>(a.getType()))
      a = share(b, a);
    results.push_back(MmaAsyncOp::create(
        b, op.getLoc(), PendingType::get(b.getContext(), half.type), a,
        op.getB(),
        advance(b, op.getLoc(), op.getB().getType(), op.getPanel(),
                half.column),
        op.getC() ? from.getC()[i] : Value(), op.getTransposeA(),
        op.getTransposeB(), op.getTf32(), op.getWarpgroup()));
  }
  return results;
}

Halves Divider::operator()(OpBuilder &b, MmaWaitOp op,
                           ManyValues<MmaWaitOp> from) {
  Halves results;
  for (auto [half, pending] :
       llvm::zip_equal(*getHalves(op.getResult().getType()), from.getPending()))
    results.push_back(MmaWaitOp::create(b, op.getLoc(), half.type, pending));
  return results;
}

Halves Divider::operator()(OpBuilder &b, LoadRowOp op) {
  Halves results;
  auto halves = *getHalves(op.getResult().getType());
  for (Half half : halves)
    results.push_back(LoadRowOp::create(
        b, op.getLoc(), half.type, op.getSource(), op.getRow(),
        advance(b, op.getLoc(), op.getSource().getType(), op.getPanel(),
                half.column)));
  return results;
}

Halves Divider::operator()(OpBuilder &b, MapOp op, ManyValues<MapOp> from) {
  Halves results;
  for (auto [i, half] : llvm::enumerate(*getHalves(op.getResult().getType()))) {
    SmallVector<Value> inputs;
    for (ValueRange input : from.getInputs())
      inputs.push_back(input[i]);
    auto map = MapOp::create(b, op.getLoc(), half.type, inputs);
    OpBuilder::InsertionGuard guard(b);
    IRMapping mapping;
    op.getBody().cloneInto(&map.getBody(), mapping);
    // The body's columns count from the start of the whole tile.
    Block &body = map.getBody().front();
    b.setInsertionPointToStart(&body);
    Value inHalf = body.getArguments().back();
    auto inTile = arith::AddIOp::create(
        b, op.getLoc(), inHalf,
        arith::ConstantIndexOp::create(b, op.getLoc(), half.column));
    inHalf.replaceAllUsesExcept(inTile, inTile);
    results.push_back(map);
  }
  return results;
}

Halves Divider::operator()(OpBuilder &b, StoreOp op, ManyValues<StoreOp> from) {
  SmallVector<Value> indices(op.getIndices());
  if (static_cast<int64_t>(indices.size()) <
      op.getDestination().getType().getRank())
    indices.push_back(arith::ConstantIndexOp::create(b, op.getLoc(), 0));
  Value start = indices.back();
  auto halves = *getHalves(op.getX().getType());
  for (auto [half, x] : llvm::zip_equal(halves, from.getX())) {
    Value column = arith::ConstantIndexOp::create(b, op.getLoc(), half.column);
    indices.back() = b.createOrFold<arith::AddIOp>(op.getLoc(), start, column);
    // Columns that exist are counted from the first one of a tile.
    Value columns = op.getColumns();
    if (columns)
      columns = b.createOrFold<arith::SubIOp>(op.getLoc(), columns, column);
    StoreOp::create(b, op.getLoc(), op.getAdd(), x, op.getDestination(),
                    indices, op.getRows(), op.getToEnd(), columns,
                    op.getPackedAttr());
  }
  return {};
}

namespace {
/// arith and math on the elements of wide tiles.
struct DivideElementwise : ConversionPattern {
  DivideElementwise(const TypeConverter &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || !isWide(op->getResult(0).getType()))
      return failure();
    Halves results;
    for (auto [i, half] :
         llvm::enumerate(*getHalves(op->getResult(0).getType()))) {
      SmallVector<Value> ofHalf;
      for (ValueRange operand : operands)
        ofHalf.push_back(operand[operand.size() == 1 ? 0 : i]);
      results.push_back(rewriter
                            .create(op->getLoc(), op->getName().getIdentifier(),
                                    ofHalf, half.type, op->getAttrs())
                            ->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

struct DivideColumns : flash::tile::impl::DivideColumnsBase<DivideColumns> {
  template <typename Op>
  void add(RewritePatternSet &patterns, const TypeConverter &types,
           Divider &divide) {
    patterns.add<FunctionPattern<Op, ManyValues<Op>>>(
        types, &getContext(), /*benefit=*/2,
        [&divide](Op op, ManyValues<Op> from,
                  ConversionPatternRewriter &b) -> FailureOr<Halves> {
          if constexpr (std::is_invocable_v<Divider &, OpBuilder &, Op,
                                            ManyValues<Op>>)
            return divide(b, op, from);
          else
            return divide(b, op);
        });
  }

  /// Says what is wide and cannot be divided.
  LogicalResult check() {
    WalkResult walk = getOperation().walk([](Operation *op) -> WalkResult {
      auto findWide = [](TypeRange types) -> RankedTensorType {
        for (Type type : types)
          if (isWide(type))
            return getTensor(type);
        return {};
      };
      RankedTensorType wide = findWide(op->getResultTypes());
      wide = wide ? wide : findWide(op->getOperandTypes());
      if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op))
        wide = findWide(kernel.getArgumentTypes());
      if (!wide)
        return WalkResult::advance();
      if (wide.getDimSize(1) > mostDividedColumns)
        return op->emitOpError("has a tile of ")
               << wide.getDimSize(1) << " columns, and two warpgroups have "
               << mostDividedColumns << " at most";
      auto constant = dyn_cast<arith::ConstantOp>(op);
      auto broadcast = dyn_cast<BroadcastOp>(op);
      auto source =
          broadcast
              ? dyn_cast<RankedTensorType>(broadcast.getSource().getType())
              : RankedTensorType();
      auto wait = dyn_cast<MmaWaitOp>(op);
      auto product = dyn_cast<MmaAsyncOp>(op);
      if (isa<scf::ForOp, scf::IfOp, scf::YieldOp, LoadRowOp, MapOp, StoreOp>(
              op) ||
          (product && !product.getTransposeB() && !product.getTransposeA() &&
           !isWide(product.getA().getType())) ||
          (wait && wait.getYounger().empty()) ||
          (broadcast && (!source || isOfRows(source))) ||
          (constant && isa<SplatElementsAttr>(constant.getValue())) ||
          (!constant && OpTrait::hasElementwiseMappableTraits(op) &&
           op->getNumResults() == 1))
        return WalkResult::advance();
      return op->emitOpError("has a tile of ")
             << wide.getDimSize(1) << " columns, and the op cannot be divided "
             << "between two warpgroups with half of the columns each; leave "
                "divide_columns out of the schedule's features";
    });
    return failure(walk.wasInterrupted());
  }

  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    if (!schedule.has(flash::ScheduleFeatures::DivideColumns))
      return;
    if (failed(check()))
      return signalPassFailure();
    HalvesConverter types;
    Divider divide;
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns,
                                                         target);
    patterns.add<DivideElementwise>(types, &getContext());
    add<BroadcastOp>(patterns, types, divide);
    add<arith::ConstantOp>(patterns, types, divide);
    add<MmaAsyncOp>(patterns, types, divide);
    add<MmaWaitOp>(patterns, types, divide);
    add<LoadRowOp>(patterns, types, divide);
    add<MapOp>(patterns, types, divide);
    add<StoreOp>(patterns, types, divide);
    target.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return types.isLegal(op); });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
    getOperation().walk(shareFirst);
    if (!schedule.has(flash::ScheduleFeatures::PingPong) ||
        alternateTiles(getOperation()))
      return;
    getOperation().emitWarning()
        << "warpgroups do not alternate between tiles (ping_pong): there is no "
           "pair of tiles, loops have choices, or other operations than "
           "products read the tiles; one warpgroup computes all scores";
    schedule.features = *schedule.features & ~flash::ScheduleFeatures::PingPong;
    setSchedule(getOperation(), schedule);
  }

  /// Moves what scales the sums of a product to just before the product, and
  /// so behind the share of its first operand, for which other warps wait.
  static void shareFirst(MmaAsyncOp product) {
    if (llvm::none_of(product.getA().getUsers(), llvm::IsaPred<ShareOp>))
      return;
    Operation *before = product;
    for (Value sums = product.getC(); sums;) {
      Operation *scale = sums.getDefiningOp();
      if (!scale || scale->getBlock() != product->getBlock() ||
          !isMemoryEffectFree(scale) || !scale->hasOneUse())
        return;
      scale->moveBefore(before);
      before = scale;
      sums = Value();
      for (Value operand : scale->getOperands())
        if (operand.getDefiningOp<BroadcastOp>())
          sums = operand;
    }
  }
};
} // namespace
