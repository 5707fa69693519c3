//===- Overlap.cpp - The softmax of a tile during the product before it ---===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_OVERLAP
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-overlap"

using namespace mlir;
using namespace flash::tile;

namespace {
/// A product that alone changes one of the values that its loop carries, and
/// needs what is computed from other products, with what belongs to it.
struct DeferredProduct {
  RingWaitOp wait;
  MmaAsyncOp product;
  MmaWaitOp result;
  RingReleaseOp release;
  /// Which of the loop's values is the product's.
  unsigned accumulator;

  bool owns(Operation *op) {
    return op == wait || op == product || op == result || op == release;
  }
};

/// A loop with products that can run during the next iteration.
struct Products {
  scf::ForOp loop;
  /// Products that need nothing of other products, nor of what is put into a
  /// ring.
  SmallVector<MmaAsyncOp, 1> leading;
  SmallVector<DeferredProduct, 1> deferred;

  bool isDeferred(Operation *op) {
    return llvm::any_of(deferred,
                        [&](DeferredProduct &part) { return part.owns(op); });
  }
};

} // namespace

static std::optional<DeferredProduct> matchDeferred(scf::ForOp loop,
                                                    MmaAsyncOp product) {
  DeferredProduct part = {
      product.getB().getDefiningOp<RingWaitOp>(), product, {}, {}, 0};
  if (!part.wait || part.wait->getBlock() != loop.getBody() ||
      !product.getC() || !product->hasOneUse())
    return std::nullopt;
  if (isa<SmemType>(product.getA().getType()) &&
      !loop.isDefinedOutsideOfLoop(product.getA()))
    return std::nullopt;
  part.result = dyn_cast<MmaWaitOp>(*product->user_begin());
  for (auto release : loop.getOps<RingReleaseOp>())
    if (release.getRing() == part.wait.getRing())
      part.release = release;
  if (!part.result || !part.release || !part.result->hasOneUse() ||
      *part.result->user_begin() != loop.getBody()->getTerminator())
    return std::nullopt;
  part.accumulator = part.result->use_begin()->getOperandNumber();
  return part;
}

static std::optional<Products> match(scf::ForOp loop) {
  Products parts = {loop, {}, {}};
  SmallVector<MmaAsyncOp> products(loop.getOps<MmaAsyncOp>());
  llvm::SmallPtrSet<Value, 4> results;
  for (MmaAsyncOp product : products)
    results.insert(product.getResult());
  for (MmaAsyncOp product : products) {
    if (readsPut(product))
      continue;
    if (!dependsOn(product, *loop.getBody(), results)) {
      parts.leading.push_back(product);
      continue;
    }
    std::optional<DeferredProduct> part = matchDeferred(loop, product);
    // If a tile had several such products the first would release it.
    bool isShared =
        part && llvm::any_of(parts.deferred, [&](DeferredProduct &other) {
          return other.wait == part->wait || other.release == part->release;
        });
    if (part && !isShared)
      parts.deferred.push_back(*part);
  }
  // A ring of one stage has no next tile for a leading product while this one
  // is in use.
  llvm::erase_if(parts.deferred, [&](DeferredProduct &part) {
    return part.wait.getRing().getType().getStages() == 1 &&
           llvm::any_of(parts.leading, [&](MmaAsyncOp product) {
             return llvm::is_contained(product->getOperands(),
                                       part.wait.getTile());
           });
  });
  llvm::SmallPtrSet<Value, 4> accumulators;
  for (DeferredProduct &part : parts.deferred)
    accumulators.insert(loop.getRegionIterArg(part.accumulator));
  bool canLead = llvm::all_of(parts.leading, [&](MmaAsyncOp product) {
    return product->hasOneUse() &&
           !dependsOn(product, *loop.getBody(), accumulators);
  });
  if (parts.leading.empty() || parts.deferred.empty() || !canLead)
    return std::nullopt;
  return parts;
}

/// The op that rounds the first operand of the product, and the exponential
/// before it with what it is of: see comesLast.
static bool isOfRounding(Operation *op, MmaAsyncOp product) {
  Operation *rounding = product.getA().getDefiningOp();
  if (op == rounding)
    return true;
  if (auto truncation = dyn_cast_if_present<arith::TruncFOp>(rounding))
    if (auto exponential = truncation.getIn().getDefiningOp<math::Exp2Op>())
      return op == exponential ||
             (op == exponential.getOperand().getDefiningOp() &&
              isa<math::FmaOp, arith::SubFOp>(op));
  return false;
}

/// Whether the op must, or should, come behind the deferred products of the
/// iteration before though it needs nothing of them.
static bool comesLast(Operation *op, Products &parts) {
  return llvm::any_of(parts.deferred, [&](DeferredProduct &part) {
    // In a ring of one stage the tile comes only when that product has ended.
    bool readsCheck = op->walk([&](RingOpInterface inner) {
                          return inner.hasRingEffect(RingEffect::Ask) &&
                                         inner.getRing() == part.wait.getRing()
                                     ? WalkResult::interrupt()
                                     : WalkResult::advance();
                        }).wasInterrupted();
    // The operands of a product in flight must stay where they are, so the next
    // are rounded to their registers behind it. Exponentials, which ptxas
    // puts behind the wait for it anyway, stand beside the rounding: work for
    // while the next of them is computed.
    return readsCheck || isOfRounding(op, part.product);
  });
}

/// Adds the op, and what computes its operands in the loop.
static void addSlice(Operation *op, scf::ForOp loop,
                     llvm::SmallPtrSetImpl<Operation *> &slice) {
  if (!slice.insert(op).second)
    return;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        if (Operation *ancestor =
                loop.getBody()->findAncestorOpInBlock(*definition))
          addSlice(ancestor, loop, slice);
  });
}

/// Gives what is of stage 0 and reads the tile of a deferred product a look at
/// it: in front of the first leading product that reads it, if there is one;
/// else where a choice reads it, or all is in one branch of a choice, there, so
/// that other branches do not wait for it; else where the wait is, which is of
/// stage 1.
static void peek(DeferredProduct &part, Products &parts) {
  auto isOfNext = [&](OpOperand &use) {
    return !parts.isDeferred(use.getOwner());
  };
  Value tile = part.wait.getTile();
  Block *readers = nullptr;
  for (OpOperand &use : tile.getUses())
    if (isOfNext(use)) {
      Block *reader = use.getOwner()->getBlock();
      readers =
          readers ? DominanceInfo().findNearestCommonDominator(readers, reader)
                  : reader;
    }
  if (!readers)
    return;
  // Not in a loop inside, which would look at it in each iteration.
  while (isa<scf::ForOp>(readers->getParentOp()) &&
         readers != parts.loop.getBody())
    readers = readers->getParentOp()->getBlock();
  bool isInBranch = readers != parts.loop.getBody();
  Operation *before = isInBranch ? &readers->front() : part.wait.getOperation();
  for (MmaAsyncOp product : llvm::reverse(parts.leading))
    if (llvm::is_contained(product->getOperands(), tile))
      before = product;
  OpBuilder b(before);
  auto look = RingPeekOp::create(b, parts.loop.getLoc(), tile.getType(),
                                 part.wait.getRing(), part.wait.getStep());
  tile.replaceUsesWithIf(look, isOfNext);
  if (before == part.wait)
    PipelineAttr::set(look, /*stage=*/0, 2 * parts.deferred.size() + 1);
}

/// What multiplies the accumulator that is added behind a product (as in
/// tile.mma_async of elements of 8 bits), with what spreads the factors of
/// rows: beside the addition both are one instruction, and the loop carries the
/// factors alone.
static SmallVector<Operation *> getRescaling(DeferredProduct &part) {
  auto product = part.product.getC().getDefiningOp<arith::MulFOp>();
  if (part.product.getB().getType().getElementBytes() != 1 || !product ||
      product->getBlock() != part.product->getBlock())
    return {};
  SmallVector<Operation *> ops = {product};
  for (Value factor : product->getOperands())
    if (auto spread = factor.getDefiningOp<BroadcastOp>();
        spread && spread->getBlock() == product->getBlock() &&
        spread->hasOneUse())
      ops.push_back(spread);
  return ops;
}

/// Says of each operation of the loop in which iteration it runs, and where.
static void decide(Products &parts) {
  Block &body = *parts.loop.getBody();
  llvm::SmallPtrSet<Operation *, 8> first;
  for (MmaAsyncOp product : parts.leading)
    addSlice(product, parts.loop, first);
  // The starts of deferred products come behind the leading ones, their ends
  // behind what needs neither, and the rest behind these.
  int64_t count = parts.deferred.size(), middle = count + 1;
  for (Operation &op : body.without_terminator()) {
    // Another pass may have put it into a later stage.
    PipelineAttr own = PipelineAttr::of(&op);
    bool isFirst = first.contains(&op);
    bool isLast = !isFirst && comesLast(&op, parts);
    isFirst |= op.isBeforeInBlock(parts.leading.front());
    PipelineAttr::set(&op, own ? own.getStage() : 0,
                      isLast    ? middle + count
                      : isFirst ? 0
                                : middle);
  }
  for (auto [i, part] : llvm::enumerate(parts.deferred)) {
    for (Operation *op :
         {part.wait.getOperation(), part.product.getOperation()})
      PipelineAttr::set(op, /*stage=*/1, 1 + i);
    for (Operation *op : getRescaling(part))
      PipelineAttr::set(op, /*stage=*/1, 1 + i);
    for (Operation *op :
         {part.result.getOperation(), part.release.getOperation()})
      PipelineAttr::set(op, /*stage=*/1, middle + 1 + i);
    peek(part, parts);
  }
}

/// Has what nothing but leading products read, the queries, given back before
/// the last of the others: its next tile may come.
static void releaseEarly(Products &parts) {
  auto wait = parts.leading.front().getA().getDefiningOp<RingWaitOp>();
  if (wait && parts.loop.isDefinedOutsideOfLoop(wait) && wait.getRelease() &&
      llvm::all_of(wait->getUsers(), [&](Operation *user) {
        PipelineAttr time = PipelineAttr::of(user);
        return isa<MmaAsyncOp>(user) && time && time.getCluster() == 0;
      }))
    PipelineAttr::set(wait.getRelease(), /*stage=*/0, /*cluster=*/0);
}

namespace {
struct Overlap : flash::tile::impl::OverlapBase<Overlap> {
  void runOnOperation() override {
    if (!flash::getSchedule(getOperation())
             .has(flash::ScheduleFeatures::Overlap))
      return;
    SmallVector<Products> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      std::optional<Products> parts = match(loop);
      LLVM_DEBUG(llvm::dbgs() << loop.getLoc() << ": "
                              << (parts ? parts->deferred.size() : 0)
                              << " products are put off\n");
      if (parts)
        loops.push_back(std::move(*parts));
    });
    for (Products &parts : loops)
      decide(parts);
    for (Products &parts : loops)
      releaseEarly(parts);
  }
};
} // namespace
