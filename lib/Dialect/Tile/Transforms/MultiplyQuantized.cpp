//===- MultiplyQuantized.cpp - Conversions in registers of products -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_MULTIPLYQUANTIZED
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-multiply-quantized"

using namespace mlir;
using namespace flash::tile;

/// Whether the scales are the same where the product is: nothing in between
/// writes into memory from which they may be read.
static bool haveScalesAt(Operation *product, DequantizeOp op) {
  if (op->getBlock() != product->getBlock())
    return false;
  for (Operation *other = op->getNextNode(); other != product;
       other = other->getNextNode()) {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
        getEffectsRecursively(other);
    if (!effects || llvm::any_of(*effects, [](const auto &effect) {
          return isa<MemoryEffects::Write>(effect.getEffect()) &&
                 effect.getValue() &&
                 isa<BaseMemRefType>(effect.getValue().getType());
        }))
      return false;
  }
  return true;
}

/// The product of one warp that is all that reads what the tile becomes, as its
/// second operand; null if there is none.
static MmaAsyncOp getOnlyProduct(DequantizeOp op) {
  if (!op->hasOneUse())
    return {};
  auto product = dyn_cast<MmaAsyncOp>(*op->user_begin());
  if (!product || product.getB() != op.getResult() || product.getPanel() ||
      op.getTile().getType().getRows() % MmaAsyncOp::rowMultiple != 0 ||
      !product->hasOneUse() || !isa<MmaWaitOp>(*product->user_begin()) ||
      !haveScalesAt(product, op))
    return {};
  RankedTensorType result = product.getResult().getType().getValue();
  return cast<FragmentAttr>(result.getEncoding()).getWarps() == 1
             ? product
             : MmaAsyncOp();
}

/// The wait for a product, whose result is what it computes.
static MmaWaitOp getWait(MmaAsyncOp product) {
  return cast<MmaWaitOp>(*product->user_begin());
}

static RankedTensorType getWideType(Type fragment) {
  auto type = cast<RankedTensorType>(fragment);
  auto layout = cast<FragmentAttr>(type.getEncoding());
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               WideFragmentAttr::get(type.getContext(),
                                                     layout.getWarps(),
                                                     layout.getFirstWarp()));
}

static bool isFragment(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa_and_nonnull<FragmentAttr>(type.getEncoding());
}

// A lane has a row of the first eight and one of the others, of 16.
static constexpr int64_t rowsOfHalf = 8;

/// Whether the index is known to be at most `bound`. Of a choice the upstream
/// analysis knows a bound only if it knows which value is larger.
static bool isAtMost(Value index, int64_t bound) {
  if (auto choice = index.getDefiningOp<arith::SelectOp>())
    return isAtMost(choice.getTrueValue(), bound) &&
           isAtMost(choice.getFalseValue(), bound);
  if (auto apply = index.getDefiningOp<affine::AffineApplyOp>())
    if (auto product =
            dyn_cast<AffineBinaryOpExpr>(apply.getAffineMap().getResult(0));
        product && product.getKind() == AffineExprKind::Mul &&
        apply.getNumOperands() == 1 &&
        isa<AffineDimExpr, AffineSymbolExpr>(product.getLHS()))
      if (auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
          factor && factor.getValue() > 0)
        return isAtMost(apply.getOperand(0), bound / factor.getValue());
  FailureOr<int64_t> most = ValueBoundsConstraintSet::computeConstantBound(
      presburger::BoundType::UB, index, /*stopCondition=*/nullptr,
      /*closedUB=*/true);
  return succeeded(most) && *most <= bound;
}

/// Whether the tile has no more than eight rows of its 16, as far as is known.
static bool areOfHalf(Value tile, Value rows) {
  int64_t all = isa<SmemType>(tile.getType())
                    ? cast<SmemType>(tile.getType()).getRows()
                    : cast<RankedTensorType>(tile.getType()).getDimSize(0);
  return rows && all == 2 * rowsOfHalf && isAtMost(rows, rowsOfHalf);
}

/// The tile with a number in all elements of the rows from the eighth on.
static Value replaceOtherHalf(OpBuilder &b, Location loc, Value tile,
                              double number) {
  auto type = cast<RankedTensorType>(tile.getType());
  auto map = MapOp::create(b, loc, type, tile);
  SmallVector<Type> types(1 + type.getRank(), b.getIndexType());
  types.front() = type.getElementType();
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&map.getBody(), {}, types,
                              SmallVector<Location>(types.size(), loc));
  Value isOfHalf = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ult, body->getArgument(1),
      arith::ConstantIndexOp::create(b, loc, rowsOfHalf));
  Value other = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(type.getElementType(), number));
  YieldOp::create(
      b, loc,
      arith::SelectOp::create(b, loc, isOfHalf, body->getArgument(0), other));
  return map.getResult();
}

namespace {
/// The fragments that become wide ones together.
class WideTiles {
public:
  /// `products` are those that may give wide ones.
  explicit WideTiles(const llvm::SetVector<MmaAsyncOp> &products)
      : products(products) {}

  /// Finds all that have the layout of the value; whether they may change it.
  bool collect(Value value);
  void changeTypes();
  bool contains(Value value) const { return tiles.contains(value); }

private:
  /// What an operand has may be made in any layout where it is a constant or a
  /// value for each row.
  void join(OpOperand &operand);
  bool joinDefinition(Value value);
  bool joinUse(OpOperand &use);
  void joinAll(Operation *elementwise);
  void joinCarried(scf::ForOp loop, unsigned number);
  void joinResult(scf::IfOp choice, unsigned number);

  const llvm::SetVector<MmaAsyncOp> &products;
  llvm::SetVector<Value> tiles;
  llvm::SetVector<OpOperand *> made;
  bool areOfHalf = true; ///< Whether no more than eight rows are stored.
};
} // namespace

void WideTiles::join(OpOperand &operand) {
  if (isa_and_nonnull<arith::ConstantOp, BroadcastOp>(
          operand.get().getDefiningOp()))
    made.insert(&operand);
  else
    tiles.insert(operand.get());
}

void WideTiles::joinAll(Operation *elementwise) {
  for (OpOperand &operand : elementwise->getOpOperands())
    if (isFragment(operand.get()))
      join(operand);
  tiles.insert(elementwise->getResult(0));
}

void WideTiles::joinCarried(scf::ForOp loop, unsigned number) {
  join(loop.getInitArgsMutable()[number]);
  join((*loop.getYieldedValuesMutable())[number]);
  tiles.insert(loop.getRegionIterArg(number));
  tiles.insert(loop.getResult(number));
}

void WideTiles::joinResult(scf::IfOp choice, unsigned number) {
  for (scf::YieldOp yield : {choice.thenYield(), choice.elseYield()})
    join(yield->getOpOperand(number));
  tiles.insert(choice.getResult(number));
}

static bool isElementwise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

bool WideTiles::joinDefinition(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop)
      joinCarried(loop, argument.getArgNumber() - loop.getNumInductionVars());
    return loop != nullptr;
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  return TypeSwitch<Operation *, bool>(value.getDefiningOp())
      .Case([&](scf::ForOp loop) {
        joinCarried(loop, number);
        return true;
      })
      .Case([&](scf::IfOp choice) {
        joinResult(choice, number);
        return true;
      })
      .Case([&](MmaWaitOp wait) {
        auto product = wait.getPending().getDefiningOp<MmaAsyncOp>();
        if (!product || !products.contains(product))
          return false;
        if (product.getC())
          join(product.getCMutable()[0]);
        return true;
      })
      .Default([&](Operation *op) {
        if (isElementwise(op))
          joinAll(op);
        return isElementwise(op);
      });
}

bool WideTiles::joinUse(OpOperand &use) {
  return TypeSwitch<Operation *, bool>(use.getOwner())
      .Case([&](scf::ForOp loop) {
        joinCarried(loop,
                    use.getOperandNumber() - loop.getNumControlOperands());
        return true;
      })
      .Case([&](scf::YieldOp yield) {
        Operation *parent = yield->getParentOp();
        if (auto loop = dyn_cast<scf::ForOp>(parent))
          joinCarried(loop, use.getOperandNumber());
        else if (auto choice = dyn_cast<scf::IfOp>(parent))
          joinResult(choice, use.getOperandNumber());
        else
          return false;
        return true;
      })
      .Case([&](MmaAsyncOp product) {
        if (product.getC() != use.get() || product.getA() == use.get() ||
            !products.contains(product))
          return false;
        tiles.insert(getWait(product).getResult());
        return true;
      })
      .Case([&](StoreOp store) {
        areOfHalf &= ::areOfHalf(store.getX(), store.getRows());
        return true;
      })
      .Default([&](Operation *op) {
        if (isElementwise(op))
          joinAll(op);
        return isElementwise(op);
      });
}

bool WideTiles::collect(Value value) {
  tiles.insert(value);
  for (size_t i = 0; i < tiles.size(); ++i) {
    Value tile = tiles[i];
    if (!joinDefinition(tile) ||
        !llvm::all_of(tile.getUses(),
                      [&](OpOperand &use) { return joinUse(use); })) {
      LLVM_DEBUG(llvm::dbgs() << value.getLoc() << ": has a use of a fragment, "
                              << tile << "\n");
      return false;
    }
  }
  return true;
}

void WideTiles::changeTypes() {
  for (Value tile : tiles)
    tile.setType(getWideType(tile.getType()));
  for (OpOperand *operand : made) {
    Operation *source = operand->get().getDefiningOp();
    OpBuilder b(source);
    RankedTensorType type = getWideType(operand->get().getType());
    if (auto constant = dyn_cast<arith::ConstantOp>(source)) {
      auto value = cast<SplatElementsAttr>(constant.getValue());
      operand->set(arith::ConstantOp::create(
          b, source->getLoc(),
          DenseElementsAttr::get(type, value.getSplatValue<Attribute>())));
      continue;
    }
    Value value = cast<BroadcastOp>(source).getSource();
    // With a factor of one there is nothing to compute.
    if (areOfHalf && isa<RankedTensorType>(value.getType()))
      value = replaceOtherHalf(b, source->getLoc(), value, 1);
    operand->set(BroadcastOp::create(b, source->getLoc(), type, value));
  }
}

/// The product converts the tile itself. Rows that its first operand has not
/// are zeros, which the compiler sees if their registers are.
static void fuse(MmaAsyncOp product) {
  auto dequantize = product.getB().getDefiningOp<DequantizeOp>();
  MmaWaitOp wait = getWait(product);
  OpBuilder b(product);
  auto fused = MmaQuantizedOp::create(
      b, product.getLoc(), wait.getResult().getType(), product.getA(),
      dequantize.getTile(), product.getC(), product.getTransposeB());
  fused.getScale().takeBody(dequantize.getScale());
  Value result = fused.getResult();
  if (auto first = product.getA().getDefiningOp<FetchOp>();
      first && first.getNumParts() == 1 &&
      areOfHalf(first.getResult(), first.getRowsOfPart(0)))
    result = replaceOtherHalf(b, product.getLoc(), result, 0);
  wait.getResult().replaceAllUsesWith(result);
  wait.erase();
  product.erase();
  dequantize.erase();
}

namespace {
struct MultiplyQuantized
    : flash::tile::impl::MultiplyQuantizedBase<MultiplyQuantized> {
  void runOnOperation() override {
    llvm::SetVector<MmaAsyncOp> ofColumns, ofRows;
    getOperation().walk([&](DequantizeOp op) {
      if (MmaAsyncOp product = getOnlyProduct(op))
        (product.getTransposeB() ? ofColumns : ofRows).insert(product);
    });
    llvm::for_each(ofColumns, fuse);
    while (!ofRows.empty()) {
      WideTiles wide(ofRows);
      if (!wide.collect(getWait(ofRows.front()).getResult())) {
        ofRows.remove(ofRows.front());
        continue;
      }
      wide.changeTypes();
      ofRows.remove_if([&](MmaAsyncOp product) {
        bool isWide = wide.contains(getWait(product).getResult());
        if (isWide)
          fuse(product);
        return isWide;
      });
    }
  }
};
} // namespace
