//===- DeferProducts.cpp - Products of tiles put an iteration before ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RingSteps.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_DEFERPRODUCTS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-defer-products"

using namespace mlir;
using namespace flash::tile;

namespace {
/// What an iteration does with a tile that its threads put into a ring: a
/// product reads it, whose result is put into another ring.
struct Chain {
  RingAcquireOp acquire;
  RingPutOp put;
  RingWaitOp wait;
  MmaAsyncOp product;
  MmaWaitOp end;
  RingReleaseOp release;
  RingAcquireOp acquireResult;
  RingPutOp putResult;

  Value getStep() { return put.getStep(); }
};
} // namespace

/// The only op of the block of that kind on the ring; null if there is none, or
/// several.
template <typename OpTy> static OpTy getOnly(Block &block, Value ring) {
  OpTy found;
  for (auto op : block.getOps<OpTy>()) {
    if (op.getRing() != ring)
      continue;
    if (found)
      return {};
    found = op;
  }
  return found;
}

static std::optional<Chain> matchChain(RingPutOp put) {
  Block &block = *put->getBlock();
  Chain chain = {getOnly<RingAcquireOp>(block, put.getRing()),
                 getOnly<RingPutOp>(block, put.getRing()),
                 getOnly<RingWaitOp>(block, put.getRing()),
                 {},
                 {},
                 getOnly<RingReleaseOp>(block, put.getRing()),
                 {},
                 {}};
  if (!isa<scf::ForOp>(block.getParentOp()) || !chain.acquire || !chain.put ||
      !chain.wait || !chain.release || !chain.wait->hasOneUse())
    return std::nullopt;
  chain.product = dyn_cast<MmaAsyncOp>(*chain.wait->user_begin());
  if (!chain.product || chain.product.getC() ||
      chain.product->getBlock() != &block)
    return std::nullopt;
  for (Operation *user : chain.product->getUsers())
    if (auto end = dyn_cast<MmaWaitOp>(user);
        end && end.getPending() == chain.product.getResult())
      chain.end = end;
  if (!chain.end || !chain.end->hasOneUse())
    return std::nullopt;
  chain.putResult = dyn_cast<RingPutOp>(*chain.end->user_begin());
  if (!chain.putResult || chain.putResult->getBlock() != &block)
    return std::nullopt;
  chain.acquireResult =
      getOnly<RingAcquireOp>(block, chain.putResult.getRing());
  Value step = chain.getStep();
  if (!chain.acquireResult || chain.acquire.getStep() != step ||
      chain.wait.getStep() != step || chain.release.getStep() != step ||
      chain.acquireResult.getStep() != step ||
      chain.putResult.getStep() != step)
    return std::nullopt;
  return chain;
}

/// The products of what is put into the ring, if all can be deferred.
static SmallVector<Chain> match(RingOp ring, bool isPersistent) {
  if (!ring.isFilledFromRegisters() || ring.getNumStages() < 2)
    return {};
  SmallVector<Chain> chains;
  for (Operation *user : ring->getUsers())
    if (auto put = dyn_cast<RingPutOp>(user)) {
      std::optional<Chain> chain = matchChain(put);
      if (!chain)
        return {};
      chains.push_back(*chain);
    }
  if (chains.empty())
    return {};
  constexpr size_t opsOfChain = 4, opsOnResults = 2;
  Chain &first = chains.front();
  auto results = first.putResult.getRing().getDefiningOp<RingOp>();
  if (!first.put->getParentOfType<WarpSpecializeOp>() || !results)
    return {};
  Block *block = getBlockOfTile(first.put, isPersistent);
  StepCount steps = getStepCount(first.getStep(), block);
  if (!steps.end || !beginsAtZero(steps.start))
    return {};
  for (Chain &chain : chains) {
    if (!(getStepCount(chain.getStep(), block) == steps) ||
        chain.putResult.getRing() != results)
      return {};
    // An iteration has the product of the one before, which may be another
    // loop's, and behind the loops there is one more: all are alike.
    if (chain.product->getAttrs() != first.product->getAttrs() ||
        chain.product->getPropertiesAsAttribute() !=
            first.product->getPropertiesAsAttribute())
      return {};
    for (auto [operand, ofFirst] : llvm::zip_equal(
             chain.product->getOperands(), first.product->getOperands())) {
      bool isPut =
          operand == chain.wait.getTile() && ofFirst == first.wait.getTile();
      if (!isPut && (operand != ofFirst || operand.getParentBlock() != block))
        return {};
    }
  }
  // Another role takes all results; one may read what is put, too.
  auto ofResults = findReader(results, first.put, isPersistent),
       ofPuts = findReader(ring, first.put, isPersistent);
  if (failed(ofResults) || failed(ofPuts) || !ofResults->block ||
      ofResults->numOwn != opsOnResults * chains.size() ||
      ofPuts->numOwn != opsOfChain * chains.size())
    return {};
  return chains;
}

namespace {
struct DeferProducts : flash::tile::impl::DeferProductsBase<DeferProducts> {
  void runOnOperation() override {
    flash::Schedule schedule = flash::getSchedule(getOperation());
    if (!schedule.has(flash::ScheduleFeatures::DeferProducts))
      return;
    bool isPersistent = schedule.has(flash::ScheduleFeatures::Persistent);
    SmallVector<RingOp> rings;
    getOperation().walk([&](RingOp ring) { rings.push_back(ring); });
    for (RingOp ring : rings) {
      SmallVector<Chain> found = match(ring, isPersistent);
      LLVM_DEBUG(llvm::dbgs() << ring.getLoc() << ": products of the ring "
                              << (found.empty() ? "stay\n" : "are deferred\n"));
      for (Chain &chain : found)
        for (Operation *op : std::initializer_list<Operation *>{
                 chain.wait, chain.product, chain.end, chain.release,
                 chain.acquireResult, chain.putResult})
          PipelineAttr::set(op, /*stage=*/1, /*cluster=*/0);
    }
  }
};
} // namespace
