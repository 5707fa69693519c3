//===- DelayWaits.cpp - Products run until their results are needed -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Dialect/Tile/Utils/WideGradients.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_DELAYWAITS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-delay-waits"

using namespace mlir;
using namespace flash::tile;

/// What a thread needs besides tiles: addresses, positions and what is on its
/// way between them.
constexpr int64_t registersBesidesTiles = 32;

/// A thread's registers for a tile; 0 if the type has none.
static int64_t getNumRegisters(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getValue();
  auto tile = dyn_cast<RankedTensorType>(type);
  auto layout = tile ? dyn_cast_or_null<LayoutAttrInterface>(tile.getEncoding())
                     : LayoutAttrInterface();
  return layout ? layout.getNumRegisters(tile.getShape()) *
                      llvm::divideCeil(tile.getElementTypeBitWidth(), 8) / 4
                : 0;
}

namespace {
/// Puts the operations of a block in another order: products that need no other
/// come first, then the waits for what is copied, then the others with what
/// they need, the ends of products among it; a stage is given back behind the
/// last of its readers.
class Scheduler {
public:
  explicit Scheduler(Block &block) : block(block) {}
  /// `registers` is how many a thread has, if statistics are to be loaded
  /// early.
  void run(std::optional<int64_t> registers);

private:
  /// Moves the op behind those that have been placed, after all that it needs.
  void place(Operation *op);
  /// Has statistics that are computed with a product's result loaded earlier,
  /// if a thread of that many registers has some left.
  void loadEarly(ArrayRef<MmaAsyncOp> products, int64_t registers);
  /// Schedules what products take from registers, and the puts of what is
  /// computed. Others wait for these, and for the products only this warpgroup.
  void placeOperands(ArrayRef<MmaAsyncOp> products, ArrayRef<RingPutOp> puts);
  /// Schedules the puts of what products give, each before the ends of younger
  /// products, which run meanwhile.
  void placePutsOfResults(ArrayRef<MmaAsyncOp> products,
                          ArrayRef<RingPutOp> puts);
  /// Gives back the stages that nobody reads any more.
  void placeReleases();
  bool isPlaced(Operation *op) const { return placed.contains(op); }
  /// The ops of the block that `op`, or one inside of it, takes values from.
  void forEachDefinition(Operation *op, function_ref<void(Operation *)> visit);

  Block &block;
  llvm::SmallPtrSet<Operation *, 32> placed;
  /// What must come before a release: the ops that read its tile, and the first
  /// put of a tile, if threads load from it.
  llvm::MapVector<Operation *, SmallVector<Operation *>> readers;
  /// What else must come before an op: before a choice that clears tiles the
  /// ends of products that read them; statistics before a product or its end;
  /// a choice before an operand that depends
  /// on the same condition; the acquire of a stage that threads fill before
  /// that, and this before the wait; and it before a product of the same
  /// registers, which are the product's until that ends.
  DenseMap<Operation *, SmallVector<Operation *>> earlier;
};
} // namespace

void Scheduler::forEachDefinition(Operation *op,
                                  function_ref<void(Operation *)> visit) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        if (Operation *own = block.findAncestorOpInBlock(*definition);
            own && own != op)
          visit(own);
  });
}

void Scheduler::place(Operation *op) {
  if (isPlaced(op))
    return;
  forEachDefinition(op, [&](Operation *own) { place(own); });
  for (Operation *other : earlier.lookup(op))
    place(other);
  placed.insert(op);
  op->moveBefore(block.getTerminator());
  placeReleases();
}

void Scheduler::placeReleases() {
  for (auto &[release, ops] : readers)
    if (!isPlaced(release) &&
        llvm::all_of(ops, [&](Operation *op) { return isPlaced(op); })) {
      placed.insert(release);
      release->moveBefore(block.getTerminator());
    }
}

/// Whether what the load reads may have been copied a step before: of a ring
/// with one stage the copy has just been started.
static bool isCopiedAhead(Operation *op) {
  auto load = dyn_cast<LoadOp>(op);
  RingOp ring = load ? getRing(load.getSource()) : RingOp();
  return ring && ring.getNumStages() > 1;
}

/// Statistics of the first product come before it starts: while products read
/// shared memory, loads wait for them. Statistics of other products come before
/// the ends of these, behind what is computed from the first: ptxas moves ends
/// of products up, but over no load, so that this computation runs beside them.
void Scheduler::loadEarly(ArrayRef<MmaAsyncOp> products, int64_t registers) {
  int64_t needed = registersBesidesTiles;
  for (BlockArgument carried : block.getArguments())
    needed += getNumRegisters(carried.getType());
  llvm::SmallPtrSet<Value, 4> results;
  for (MmaAsyncOp product : products) {
    needed += getNumRegisters(product.getResult().getType());
    results.insert(product.getResult());
  }
  llvm::SmallSetVector<Operation *, 4> found;
  for (MmaAsyncOp product : products) {
    llvm::SmallPtrSet<Value, 4> result = {product.getResult()};
    SmallVector<Operation *> loads;
    for (Operation &op : block) {
      if (!dependsOn(&op, block, result))
        continue;
      // Through what is computed from loads alone.
      SmallVector<Operation *> inputs = {&op};
      while (!inputs.empty())
        forEachDefinition(inputs.pop_back_val(), [&](Operation *own) {
          if (dependsOn(own, block, results))
            return;
          if (isCopiedAhead(own) && found.insert(own))
            loads.push_back(own);
          inputs.push_back(own);
        });
    }
    if (product != products.front()) {
      for (Operation *end : product->getUsers())
        llvm::append_range(earlier[end], loads);
      continue;
    }
    for (Operation *load : loads)
      needed += getNumRegisters(load->getResult(0).getType());
    if (needed > registers)
      return;
    llvm::append_range(earlier[product], loads);
  }
}

void Scheduler::placeOperands(ArrayRef<MmaAsyncOp> products,
                              ArrayRef<RingPutOp> puts) {
  for (MmaAsyncOp product : products)
    if (Operation *registers = product.getA().getDefiningOp();
        registers && registers->getBlock() == &block && !isPlaced(product) &&
        !readsPut(product))
      place(registers);
  for (RingPutOp put : puts)
    if (!put.getX().getDefiningOp<MmaWaitOp>())
      place(put);
}

void Scheduler::placePutsOfResults(ArrayRef<MmaAsyncOp> products,
                                   ArrayRef<RingPutOp> puts) {
  SmallVector<Operation *> endsOfOlder;
  for (MmaAsyncOp product : products) {
    for (RingPutOp put : puts) {
      auto end = put.getX().getDefiningOp<MmaWaitOp>();
      if (!end || end.getPending() != product.getResult())
        continue;
      for (Operation *older : endsOfOlder)
        place(older);
      place(put);
    }
    llvm::append_range(endsOfOlder, product->getUsers());
  }
}

void Scheduler::run(std::optional<int64_t> registers) {
  SmallVector<Operation *> ops;
  SmallVector<MmaAsyncOp> products(block.getOps<MmaAsyncOp>()), leading;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  llvm::SmallPtrSet<Value, 4> results;
  for (MmaAsyncOp product : products)
    results.insert(product.getResult());
  for (MmaAsyncOp product : products)
    if (!dependsOn(product, block, results) && !readsPut(product))
      leading.push_back(product);
  // With one there is nothing else to start before its end.
  if (leading.size() < 2)
    return;
  SmallVector<RingPutOp> puts(block.getOps<RingPutOp>());
  for (auto wait : block.getOps<RingWaitOp>()) {
    RingReleaseOp release = wait.getRelease();
    if (!release)
      continue;
    SmallVector<Operation *> &own = readers[release];
    for (Operation *user : wait->getUsers()) {
      own.push_back(block.findAncestorOpInBlock(*user));
      // To give back what threads load waits for it. A put has taken it.
      if (isa<LoadOp>(user) && !puts.empty())
        own.push_back(puts.front());
      // A product reads it until it has been waited for.
      if (isa<MmaAsyncOp>(user))
        for (Operation *end : user->getUsers())
          own.push_back(block.findAncestorOpInBlock(*end));
    }
    for (auto question : block.getOps<RingIsFiniteOp>())
      if (question.getRing() == wait.getRing())
        own.push_back(question);
  }
  for (Operation *op : ops)
    op->walk([&](ClearOp clear) {
      for (Operation *user : clear.getTile().getUsers())
        if (isa<MmaAsyncOp>(user) && user->getBlock() == &block &&
            user->isBeforeInBlock(op))
          llvm::append_range(earlier[op], user->getUsers());
    });
  // Zeros or what the choice takes: not both in registers meanwhile.
  for (auto zeros : block.getOps<arith::SelectOp>())
    for (auto choice : block.getOps<scf::IfOp>())
      if (choice.getCondition() == zeros.getCondition())
        earlier[zeros].push_back(choice);
  for (RingPutOp put : puts) {
    for (Operation *user : put.getRing().getUsers())
      if (user->getBlock() == &block) {
        if (isa<RingAcquireOp>(user))
          earlier[put].push_back(user);
        else if (isa<RingWaitOp>(user))
          earlier[user].push_back(put);
      }
    for (Operation *user : put.getX().getUsers())
      if (isa<MmaAsyncOp>(user) && user->getBlock() == &block)
        earlier[user].push_back(put);
  }
  if (registers)
    loadEarly(leading, *registers);
  for (MmaAsyncOp product : leading)
    place(product);
  // The copies of a step are on their way together, and barriers are looked at
  // while the products run.
  for (auto wait : llvm::make_early_inc_range(block.getOps<RingWaitOp>()))
    if (!wait.getRing().getDefiningOp<RingOp>().isFilledFromRegisters())
      place(wait);
  // What choices take is computed before the first of them: the way that is
  // hardly ever gone needs many registers.
  for (auto choice : llvm::make_early_inc_range(block.getOps<scf::IfOp>()))
    forEachDefinition(choice, [&](Operation *own) { place(own); });
  placeOperands(products, puts);
  for (MmaAsyncOp product : products)
    place(product);
  placePutsOfResults(products, puts);
  for (Operation *op : ops)
    place(op);
  nameYounger(block);
}

/// Whether the op loads an element of what the kernel only reads, as lists of
/// tiles.
static bool readsConstant(Operation &op) {
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && llvm::all_of(load.getMemRef().getUsers(), [](Operation *user) {
           return isa<memref::LoadOp>(user);
         });
}

/// Whether nothing but values and the stages of rings orders the operations of
/// the block, which waits for stages, gives them back and computes. Of its
/// choices none has a product inside.
static bool canBeReordered(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto release = dyn_cast<RingReleaseOp>(op)) {
      if (llvm::none_of(block.getOps<RingWaitOp>(), [&](RingWaitOp wait) {
            return wait.getRelease() == release;
          }))
        return false;
    } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
      WalkResult walk = choice.walk([&](Operation *inner) {
        bool isAllowed =
            isa<scf::IfOp, scf::ForOp, ClearOp, LoadRowOp, MapOp>(inner) ||
            inner->getParentOfType<MapOp>() || isMemoryEffectFree(inner);
        return isAllowed ? WalkResult::advance() : WalkResult::interrupt();
      });
      if (walk.wasInterrupted())
        return false;
    } else if (isa<RingAcquireOp, RingPutOp>(op)) {
      // One stage for each iteration, which threads fill.
      auto ring = cast<RingOpInterface>(op).getRing();
      if (llvm::count_if(ring.getUsers(), [&](Operation *user) {
            return user->getBlock() == &block && isa<RingPutOp>(user);
          }) != 1)
        return false;
    } else if (!isa<RingWaitOp, RingIsFiniteOp, MmaAsyncOp, MmaWaitOp, LoadOp,
                    MapOp>(op) &&
               !readsConstant(op) &&
               (op.getNumRegions() > 0 || !isMemoryEffectFree(&op))) {
      return false;
    }
  }
  return true;
}

namespace {
struct DelayWaits : flash::tile::impl::DelayWaitsBase<DelayWaits> {
  void runOnOperation() override {
    getOperation().walk([&](WarpSpecializeOp roles) {
      // A warp that adds in order alone takes as long as a step: what shortens
      // the others' makes all of it slower then.
      bool addsAlone = false;
      for (unsigned role = 0; role < roles.getNumRoles(); ++role)
        addsAlone |= roles.addsInOrder(role) && roles.getNumWarps(role) == 1;
      roles.walk([&](scf::ForOp loop) {
        std::optional<int64_t> registers;
        if (!addsAlone)
          registers = roles.getNumRegisters(roles.getRoleOf(loop));
        bool canBe =
            !sumsUpWideGradients(loop) && canBeReordered(*loop.getBody());
        LLVM_DEBUG(llvm::dbgs()
                   << loop.getLoc() << ": "
                   << (canBe ? "may be reordered" : "keeps its order")
                   << (registers ? "" : ", loads stay") << "\n");
        if (canBe)
          Scheduler(*loop.getBody()).run(registers);
      });
    });
  }
};
} // namespace
