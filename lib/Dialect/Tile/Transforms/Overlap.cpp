//===- Overlap.cpp - The softmax of a tile during the product before it ---===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"
#include "Products.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
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

/// A loop of products, some of which can run during the next iteration.
struct Products {
  scf::ForOp loop;
  /// Those that need nothing of other products, nor of what is put into a ring.
  SmallVector<MmaAsyncOp, 1> leading;
  SmallVector<DeferredProduct, 1> deferred;

  DeferredProduct *getOwner(Operation *op) {
    auto *owner = llvm::find_if(
        deferred, [&](DeferredProduct &part) { return part.owns(op); });
    return owner == deferred.end() ? nullptr : owner;
  }
  bool isAccumulator(unsigned i) {
    return llvm::any_of(
        deferred, [&](DeferredProduct &part) { return part.accumulator == i; });
  }
};

/// Clones the parts of a loop's body to their new places.
class Rotation {
public:
  Rotation(Products parts, OpBuilder &b);

  /// What an iteration leaves to the next: the loop's values, but for the
  /// accumulators, and what its own deferred products need.
  using Carried = SmallVector<Value>;

  /// Emits the first iteration, without its deferred products.
  Carried emitFirst();
  /// Emits the loop from `start` on, each iteration of which has the deferred
  /// products of the one before.
  Carried emitOthers(Value start, const Carried &carried);
  /// Emits the deferred products of the last iteration; returns the loop's
  /// values.
  SmallVector<Value> emitLast(const Carried &carried);

private:
  /// Whether the op must, or should, come behind the deferred products of the
  /// iteration before.
  bool comesLast(Operation *op);
  /// The tile of the iteration's own deferred products, for what looks at it
  /// before these.
  void peek(RingWaitOp wait, IRMapping &it);
  void cloneDeferredStart(IRMapping &it);
  /// Gives the values of the accumulators.
  SmallVector<Value> cloneDeferredEnd(IRMapping &it);
  /// Clones what the iteration does up to its leading products, and what else
  /// comes before the end of the deferred ones.
  void cloneLeading(IRMapping &it);
  void cloneMiddle(IRMapping &it);
  void cloneLast(IRMapping &it);
  Carried getCarried(IRMapping &it);

  Products parts;
  OpBuilder &b;
  Location loc;
  llvm::SmallPtrSet<Operation *, 8> last, first;
  SmallVector<Value> needs;
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
    // Of a tile of several such products the first would release it.
    bool isShared =
        part && llvm::any_of(parts.deferred, [&](DeferredProduct &other) {
          return other.wait == part->wait || other.release == part->release;
        });
    if (part && !isShared)
      parts.deferred.push_back(*part);
  }
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

/// What the deferred products need of their own iteration: computed in it, or
/// carried by the loop.
static SmallVector<Value> getNeeds(Products &parts) {
  llvm::SetVector<Value> needs;
  for (DeferredProduct &part : parts.deferred)
    for (Operation *op : {part.wait.getOperation(), part.product.getOperation(),
                          part.release.getOperation()})
      for (Value operand : op->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        if (!(definition && parts.getOwner(definition)) &&
            !parts.loop.isDefinedOutsideOfLoop(operand))
          needs.insert(operand);
      }
  return needs.takeVector();
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

bool Rotation::comesLast(Operation *op) {
  // The operands of a product in flight must stay where they are, so the next
  // are rounded to their registers behind it. Exponentials, which ptxas
  // puts behind the wait for it anyway, stand beside the rounding: work for
  // while the next of them is computed.
  for (DeferredProduct &part : parts.deferred)
    if (isOfRounding(op, part.product))
      return true;
  bool found = false;
  // A tile is awaited behind what puts it there.
  if (auto wait = dyn_cast<RingWaitOp>(op))
    for (Operation *user : wait.getRing().getUsers())
      found |= isa<RingPutOp>(user) && last.contains(user);
  // A tile is given back behind all that read it.
  if (isa<RingReleaseOp>(op))
    for (auto wait : parts.loop.getOps<RingWaitOp>())
      found |= wait.getRelease() == op &&
               llvm::any_of(wait->getUsers(), [&](Operation *user) {
                 return last.contains(user);
               });
  op->walk([&](Operation *inner) {
    for (DeferredProduct &part : parts.deferred) {
      // In a ring of one stage the tile comes only when that product has ended.
      auto ringOp = dyn_cast<RingOpInterface>(inner);
      found |= ringOp && ringOp.hasRingEffect(RingEffect::Ask) &&
               ringOp.getRing() == part.wait.getRing();
      for (Value operand : inner->getOperands())
        found |= operand == parts.loop.getRegionIterArg(part.accumulator) ||
                 operand == part.wait.getTile() ||
                 last.contains(operand.getDefiningOp());
    }
  });
  return found;
}

void Rotation::peek(RingWaitOp wait, IRMapping &it) {
  if (it.contains(wait.getTile()))
    return;
  it.map(wait.getTile(), RingPeekOp::create(b, loc, wait.getTile().getType(),
                                            it.lookupOrDefault(wait.getRing()),
                                            it.lookupOrDefault(wait.getStep()))
                             .getTile());
}

void Rotation::cloneLeading(IRMapping &it) {
  for (Operation &op : parts.loop.getBody()->without_terminator())
    if (first.contains(&op)) {
      if (isa<MmaAsyncOp>(op))
        for (DeferredProduct &part : parts.deferred)
          if (llvm::is_contained(op.getOperands(), part.wait.getTile()))
            peek(part.wait, it);
      b.clone(op, it);
    }
}

void Rotation::cloneMiddle(IRMapping &it) {
  for (Operation &op : parts.loop.getBody()->without_terminator())
    if (!parts.getOwner(&op) && !last.contains(&op) && !first.contains(&op))
      b.clone(op, it);
}

void Rotation::cloneLast(IRMapping &it) {
  for (Operation &op : parts.loop.getBody()->without_terminator()) {
    // What looks at the tile of a deferred product comes before that.
    DeferredProduct *part = parts.getOwner(&op);
    if (part && &op == part->wait && !op.hasOneUse())
      peek(part->wait, it);
    if (last.contains(&op))
      b.clone(op, it);
  }
}

void Rotation::cloneDeferredStart(IRMapping &it) {
  for (DeferredProduct &part : parts.deferred) {
    b.clone(*part.wait, it);
    b.clone(*part.product, it);
  }
}

SmallVector<Value> Rotation::cloneDeferredEnd(IRMapping &it) {
  SmallVector<Value> values;
  for (DeferredProduct &part : parts.deferred) {
    values.push_back(b.clone(*part.result, it)->getResult(0));
    b.clone(*part.release, it);
  }
  return values;
}

Rotation::Carried Rotation::getCarried(IRMapping &it) {
  Carried carried;
  for (auto [i, value] : llvm::enumerate(parts.loop.getYieldedValues()))
    if (!parts.isAccumulator(i))
      carried.push_back(it.lookupOrDefault(value));
  for (Value need : needs)
    carried.push_back(it.lookup(need));
  return carried;
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

Rotation::Rotation(Products products, OpBuilder &b)
    : parts(std::move(products)), b(b), loc(parts.loop.getLoc()) {
  for (MmaAsyncOp product : parts.leading)
    addSlice(product, parts.loop, first);
  for (DeferredProduct &part : parts.deferred)
    first.erase(part.wait);
  for (Operation &op : parts.loop.getBody()->without_terminator())
    if (!parts.getOwner(&op) && !first.contains(&op) && comesLast(&op))
      last.insert(&op);
  for (Operation &op : parts.loop.getBody()->without_terminator()) {
    if (!parts.getOwner(&op) && !last.contains(&op))
      first.insert(&op);
    if (&op == parts.leading.front())
      break;
  }
  needs = getNeeds(parts);
}

Rotation::Carried Rotation::emitFirst() {
  IRMapping it;
  it.map(parts.loop.getInductionVar(), parts.loop.getLowerBound());
  it.map(parts.loop.getRegionIterArgs(), parts.loop.getInitArgs());
  cloneLeading(it);
  cloneMiddle(it);
  cloneLast(it);
  return getCarried(it);
}

Rotation::Carried Rotation::emitOthers(Value start, const Carried &carried) {
  scf::ForOp loop = parts.loop;
  auto rotated = scf::ForOp::create(b, loc, start, loop.getUpperBound(),
                                    loop.getStep(), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rotated.getBody());
  IRMapping before, it;
  before.map(needs, rotated.getRegionIterArgs().take_back(needs.size()));
  it.map(loop.getInductionVar(), rotated.getInductionVar());
  for (size_t i = 0, n = 0; i < loop.getNumResults(); ++i)
    if (!parts.isAccumulator(i))
      it.map(loop.getRegionIterArg(i), rotated.getRegionIterArg(n++));
  cloneLeading(it);
  cloneDeferredStart(before);
  cloneMiddle(it);
  for (auto [part, value] :
       llvm::zip_equal(parts.deferred, cloneDeferredEnd(before)))
    it.map(loop.getRegionIterArg(part.accumulator), value);
  cloneLast(it);
  scf::YieldOp::create(b, loc, getCarried(it));
  nameYounger(*rotated.getBody());
  return Carried(rotated.getResults());
}

SmallVector<Value> Rotation::emitLast(const Carried &carried) {
  IRMapping it;
  it.map(needs, ArrayRef(carried).take_back(needs.size()));
  cloneDeferredStart(it);
  SmallVector<Value> accumulators = cloneDeferredEnd(it), results;
  for (size_t i = 0, n = 0; i < parts.loop.getNumResults(); ++i) {
    const auto *part =
        llvm::find_if(parts.deferred, [&](DeferredProduct &part) {
          return part.accumulator == i;
        });
    results.push_back(part == parts.deferred.end()
                          ? carried[n++]
                          : accumulators[part - parts.deferred.begin()]);
  }
  return results;
}

/// The release, behind the loops and the choice that guards them, of what
/// nothing but the first products of the chain reads; null if there is none.
static RingReleaseOp getReleaseOfFirstOperand(MutableArrayRef<Products> chain,
                                              scf::IfOp guard) {
  Products &parts = chain.back();
  auto wait = parts.leading.front().getA().getDefiningOp<RingWaitOp>();
  Operation *around = guard ? guard.getOperation() : parts.loop.getOperation();
  if (!wait || wait->getBlock() != around->getBlock() ||
      !llvm::all_of(wait->getUsers(), [&](Operation *user) {
        return llvm::any_of(chain, [&](Products &parts) {
          return llvm::is_contained(parts.leading, user);
        });
      }))
    return nullptr;
  return wait.getRelease();
}

/// Makes a choice that reaches the loops of the chain where the first is
/// entered. It is the only one then: nothing says that others are not entered
/// where it is not.
static scf::IfOp emitGuard(MutableArrayRef<Products> chain) {
  assert(chain.size() == 1 && "of several loops the first is always entered");
  scf::ForOp loop = chain.front().loop;
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  auto guard =
      scf::IfOp::create(b, loc, loop.getResultTypes(), emitIsEntered(b, loop),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  loop.replaceAllUsesWith(guard.getResults());
  OpBuilder otherwise = guard.getElseBodyBuilder();
  scf::YieldOp::create(otherwise, loc, loop.getInitArgs());
  loop->moveBefore(guard.thenBlock(), guard.thenBlock()->end());
  OpBuilder then = guard.getThenBodyBuilder();
  scf::YieldOp::create(then, loc, loop.getResults());
  return guard;
}

/// Rotates loops of which each goes on where the one before has stopped. What
/// the first products read is given back before the last of the others: its
/// next tile may come.
static void rotate(MutableArrayRef<Products> chain) {
  scf::ForOp first = chain.front().loop, last = chain.back().loop;
  scf::IfOp guard = getEntryGuard(first);
  if (!isAlwaysEntered(first))
    guard = emitGuard(chain);
  // No register has the result while the queries are awaited, unless others ask
  // for it, too.
  if (guard && guard.getCondition().hasOneUse())
    guard.getCondition().getDefiningOp()->moveBefore(guard);
  RingReleaseOp release = getReleaseOfFirstOperand(chain, guard);
  OpBuilder b(last);
  Location loc = first.getLoc();
  Rotation::Carried carried;
  for (Products &parts : chain) {
    Rotation rotation(parts, b);
    scf::ForOp loop = parts.loop;
    Value start = loop.getLowerBound();
    if (loop == first) {
      carried = rotation.emitFirst();
      // Of one iteration this is the end, and the loop behind it goes.
      start = arith::AddIOp::create(b, loc, start, loop.getStep(),
                                    arith::IntegerOverflowFlags::nsw);
    }
    carried = rotation.emitOthers(start, carried);
    if (loop == last) {
      if (release)
        b.clone(*release);
      last.replaceAllUsesWith(rotation.emitLast(carried));
    }
  }
  Block *block = last->getBlock();
  for (Products &parts : llvm::reverse(chain))
    parts.loop.erase();
  nameYounger(*block);
  if (!release)
    return;
  if (guard) {
    b.setInsertionPointToStart(guard.elseBlock());
    b.clone(*release);
  }
  release.erase();
}

/// Whether two loops leave to their next iterations the same values.
static bool haveSameShape(Products &a, Products &b) {
  auto getTypes = [](Products &parts) {
    return llvm::to_vector(ValueRange(getNeeds(parts)).getTypes());
  };
  return llvm::equal(a.deferred, b.deferred,
                     [](DeferredProduct &x, DeferredProduct &y) {
                       return x.accumulator == y.accumulator;
                     }) &&
         getTypes(a) == getTypes(b);
}

/// The loops behind `first`, which is always entered, that go on with all its
/// values one after the other.
static SmallVector<Products> getChain(Products first) {
  SmallVector<Products> chain = {first};
  if (!isAlwaysEntered(first.loop))
    return chain;
  for (Operation *op = first.loop->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      continue;
    std::optional<Products> next = match(loop);
    scf::ForOp before = chain.back().loop;
    if (!next || !haveSameShape(first, *next) ||
        !llvm::equal(loop.getInitArgs(), before.getResults()) ||
        !llvm::all_of(before.getResults(),
                      [](Value result) { return result.hasOneUse(); }))
      break;
    chain.push_back(*next);
  }
  return chain;
}

namespace {
struct Overlap : flash::tile::impl::OverlapBase<Overlap> {
  void runOnOperation() override {
    if (!flash::getSchedule(getOperation())
             .has(flash::ScheduleFeatures::Overlap))
      return;
    SmallVector<SmallVector<Products>> chains;
    llvm::SmallPtrSet<Operation *, 4> found;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      std::optional<Products> parts = match(loop);
      LLVM_DEBUG(if (!parts) llvm::dbgs()
                 << loop.getLoc() << ": no products to put off\n");
      if (!parts || found.contains(loop))
        return;
      chains.push_back(getChain(*parts));
      for (Products &other : chains.back())
        found.insert(other.loop);
    });
    for (SmallVector<Products> &chain : chains) {
      LLVM_DEBUG(llvm::dbgs()
                 << chain.front().loop.getLoc() << ": " << chain.size()
                 << " loops put off " << chain.front().deferred.size()
                 << " products\n");
      rotate(chain);
    }
  }
};
} // namespace
