//===- Overlap.cpp - The softmax of a tile during the product before it ---===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopEntry.h"

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace flash::tile {
#define GEN_PASS_DEF_OVERLAP
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// A loop of two products, the second of which needs what is computed from the
/// first, and which alone changes one of the values that the loop carries.
struct TwoProducts {
  scf::ForOp loop;
  MmaAsyncOp first;
  /// The second product and what belongs to it.
  RingWaitOp wait;
  MmaAsyncOp second;
  MmaWaitOp result;
  RingReleaseOp release;
  /// Which of the loop's values is the second product's.
  unsigned accumulator;

  bool isSecond(Operation *op) const {
    return op == wait || op == second || op == result || op == release;
  }
};

/// Clones the parts of a loop's body to their new places.
class Rotation {
public:
  Rotation(TwoProducts parts, OpBuilder &b);

  /// What an iteration leaves to the next: the loop's values, but for the
  /// accumulator, and what its own second product needs.
  using Carried = SmallVector<Value>;

  /// Emits the first iteration, without its second product.
  Carried emitFirst();
  /// Emits the loop from `start` on, each iteration of which has the second
  /// product of the one before.
  Carried emitOthers(Value start, const Carried &carried);
  /// Emits the second product of the last iteration; returns the loop's values.
  SmallVector<Value> emitLast(const Carried &carried);

private:
  /// The values of one iteration.
  struct Iteration {
    IRMapping mapping;
    MmaAsyncOp second;
  };
  /// What the second product needs of its own iteration: computed in it, or
  /// carried by the loop.
  SmallVector<Value> getNeeds();
  /// Whether the op must, or should, come behind the second product of the
  /// iteration before.
  bool comesLast(Operation *op);
  void cloneSecondStart(Iteration &it);
  Value cloneSecondEnd(Iteration &it);
  void cloneFirst(Iteration &it, bool upToProduct);
  void cloneLast(Iteration &it);
  Carried getCarried(Iteration &it);

  TwoProducts parts;
  OpBuilder &b;
  Location loc;
  llvm::SmallPtrSet<Operation *, 8> last;
  SmallVector<Value> needs;
};
} // namespace

static std::optional<TwoProducts> match(scf::ForOp loop) {
  SmallVector<MmaAsyncOp> products(loop.getOps<MmaAsyncOp>());
  if (products.size() != 2)
    return std::nullopt;
  TwoProducts parts = {loop, products[0], {}, products[1], {}, {}, 0};
  parts.wait = parts.second.getB().getDefiningOp<RingWaitOp>();
  if (!parts.wait || !parts.second.getC() || !parts.second->hasOneUse() ||
      !parts.first->hasOneUse())
    return std::nullopt;
  parts.result = dyn_cast<MmaWaitOp>(*parts.second->user_begin());
  for (auto release : loop.getOps<RingReleaseOp>())
    if (release.getRing() == parts.wait.getRing())
      parts.release = release;
  if (!parts.result || !parts.release || !parts.result->hasOneUse() ||
      *parts.result->user_begin() != loop.getBody()->getTerminator())
    return std::nullopt;
  parts.accumulator = parts.result->use_begin()->getOperandNumber();
  return parts;
}

SmallVector<Value> Rotation::getNeeds() {
  llvm::SetVector<Value> needs;
  for (Operation *op : {parts.wait.getOperation(), parts.second.getOperation(),
                        parts.release.getOperation()})
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!parts.isSecond(definition) &&
          !parts.loop.isDefinedOutsideOfLoop(operand))
        needs.insert(operand);
    }
  return needs.takeVector();
}

bool Rotation::comesLast(Operation *op) {
  // The operands of a product in flight must stay where they are, so the next
  // are rounded to their registers behind it. Exponentials, which the assembler
  // puts behind the wait for it anyway, stand beside the rounding: work for
  // while the next of them is computed.
  Operation *rounding = parts.second.getA().getDefiningOp();
  if (op == rounding)
    return true;
  if (auto truncation = dyn_cast_if_present<arith::TruncFOp>(rounding))
    if (auto exponential = truncation.getIn().getDefiningOp<math::Exp2Op>())
      if (op == exponential ||
          (op == exponential.getOperand().getDefiningOp() &&
           isa<math::FmaOp, arith::SubFOp>(op)))
        return true;
  bool found = false;
  op->walk([&](Operation *inner) {
    // In a ring of one slot the tile comes only when that product has ended.
    if (auto question = dyn_cast<RingIsFiniteOp>(inner))
      found |= question.getRing() == parts.wait.getRing();
    for (Value operand : inner->getOperands())
      found |= operand == parts.loop.getRegionIterArg(parts.accumulator) ||
               operand == parts.wait.getTile() ||
               last.contains(operand.getDefiningOp());
  });
  return found;
}

/// Clones what the iteration does up to its first product, or what follows.
void Rotation::cloneFirst(Iteration &it, bool upToProduct) {
  bool isBehind = false;
  for (Operation &op : parts.loop.getBody()->without_terminator()) {
    if (!parts.isSecond(&op) && !last.contains(&op) &&
        isBehind != upToProduct) {
      Operation *copy = b.clone(op, it.mapping);
      if (auto wait = dyn_cast<MmaWaitOp>(copy); wait && it.second)
        wait.getYoungerMutable().assign(it.second.getResult());
    }
    isBehind |= &op == parts.first;
  }
}

void Rotation::cloneLast(Iteration &it) {
  for (Operation &op : parts.loop.getBody()->without_terminator()) {
    // What looks at the tile of the second product comes before that.
    if (&op == parts.wait && !parts.wait->hasOneUse())
      it.mapping.map(
          parts.wait.getTile(),
          RingPeekOp::create(b, loc, parts.wait.getTile().getType(),
                             it.mapping.lookupOrDefault(parts.wait.getRing()),
                             it.mapping.lookupOrDefault(parts.wait.getStep()))
              .getTile());
    if (last.contains(&op))
      b.clone(op, it.mapping);
  }
}

void Rotation::cloneSecondStart(Iteration &it) {
  b.clone(*parts.wait, it.mapping);
  it.second = cast<MmaAsyncOp>(b.clone(*parts.second, it.mapping));
}

Value Rotation::cloneSecondEnd(Iteration &it) {
  Operation *result = b.clone(*parts.result, it.mapping);
  b.clone(*parts.release, it.mapping);
  return result->getResult(0);
}

Rotation::Carried Rotation::getCarried(Iteration &it) {
  Carried carried;
  for (auto [i, value] : llvm::enumerate(parts.loop.getYieldedValues()))
    if (i != parts.accumulator)
      carried.push_back(it.mapping.lookupOrDefault(value));
  for (Value need : needs)
    carried.push_back(it.mapping.lookup(need));
  return carried;
}

Rotation::Rotation(TwoProducts parts, OpBuilder &b)
    : parts(parts), b(b), loc(parts.loop.getLoc()) {
  for (Operation &op : parts.loop.getBody()->without_terminator())
    if (!parts.isSecond(&op) && comesLast(&op))
      last.insert(&op);
  needs = getNeeds();
}

Rotation::Carried Rotation::emitFirst() {
  Iteration it;
  it.mapping.map(parts.loop.getInductionVar(), parts.loop.getLowerBound());
  it.mapping.map(parts.loop.getRegionIterArgs(), parts.loop.getInitArgs());
  cloneFirst(it, /*upToProduct=*/true);
  cloneFirst(it, /*upToProduct=*/false);
  cloneLast(it);
  return getCarried(it);
}

Rotation::Carried Rotation::emitOthers(Value start, const Carried &carried) {
  scf::ForOp loop = parts.loop;
  auto rotated = scf::ForOp::create(b, loc, start, loop.getUpperBound(),
                                    loop.getStep(), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(rotated.getBody());
  Iteration before, it;
  before.mapping.map(needs,
                     rotated.getRegionIterArgs().take_back(needs.size()));
  it.mapping.map(loop.getInductionVar(), rotated.getInductionVar());
  for (size_t i = 0, n = 0; i < loop.getNumResults(); ++i)
    if (i != parts.accumulator)
      it.mapping.map(loop.getRegionIterArg(i), rotated.getRegionIterArg(n++));
  cloneFirst(it, /*upToProduct=*/true);
  cloneSecondStart(before);
  it.second = before.second;
  cloneFirst(it, /*upToProduct=*/false);
  it.mapping.map(loop.getRegionIterArg(parts.accumulator),
                 cloneSecondEnd(before));
  cloneLast(it);
  scf::YieldOp::create(b, loc, getCarried(it));
  return Carried(rotated.getResults());
}

SmallVector<Value> Rotation::emitLast(const Carried &carried) {
  Iteration it;
  it.mapping.map(needs, ArrayRef(carried).take_back(needs.size()));
  cloneSecondStart(it);
  SmallVector<Value> results(ArrayRef(carried).drop_back(needs.size()));
  results.insert(results.begin() + parts.accumulator, cloneSecondEnd(it));
  return results;
}

/// The release, behind the loops and the choice that guards them, of what
/// nothing but the first products of the chain reads; null if there is none.
static RingReleaseOp getReleaseOfFirstOperand(ArrayRef<TwoProducts> chain,
                                              scf::IfOp guard) {
  TwoProducts parts = chain.back();
  auto wait = parts.first.getA().getDefiningOp<RingWaitOp>();
  Operation *around = guard ? guard.getOperation() : parts.loop.getOperation();
  if (!wait || wait->getBlock() != around->getBlock() ||
      !llvm::all_of(wait->getUsers(), [&](Operation *user) {
        return llvm::any_of(chain, [&](const TwoProducts &parts) {
          return parts.first == user;
        });
      }))
    return nullptr;
  return wait.getRelease();
}

/// Makes a choice that reaches the loops of the chain where the first is
/// entered. It is the only one then: nothing says that others are not entered
/// where it is not.
static scf::IfOp emitGuard(ArrayRef<TwoProducts> chain) {
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
static void rotate(ArrayRef<TwoProducts> chain) {
  scf::ForOp first = chain.front().loop, last = chain.back().loop;
  scf::IfOp guard = getEntryGuard(first);
  if (!isAlwaysEntered(first))
    guard = emitGuard(chain);
  // No register has the answer while the queries are awaited, unless others ask
  // for it, too.
  if (guard && guard.getCondition().hasOneUse())
    guard.getCondition().getDefiningOp()->moveBefore(guard);
  RingReleaseOp release = getReleaseOfFirstOperand(chain, guard);
  OpBuilder b(last);
  Location loc = first.getLoc();
  Rotation::Carried carried;
  for (const TwoProducts &parts : chain) {
    Rotation rotation(parts, b);
    scf::ForOp loop = parts.loop;
    Value start = loop.getLowerBound();
    if (loop == first) {
      carried = rotation.emitFirst();
      start = arith::AddIOp::create(b, loc, start, loop.getStep());
    }
    carried = rotation.emitOthers(start, carried);
    if (loop == last) {
      if (release)
        b.clone(*release);
      last.replaceAllUsesWith(rotation.emitLast(carried));
    }
  }
  for (const TwoProducts &parts : llvm::reverse(chain))
    scf::ForOp(parts.loop).erase();
  if (!release)
    return;
  if (guard) {
    b.setInsertionPointToStart(guard.elseBlock());
    b.clone(*release);
  }
  release.erase();
}

/// The loops behind `first`, which is always entered, that go on with all its
/// values one after the other.
static SmallVector<TwoProducts> getChain(TwoProducts first) {
  SmallVector<TwoProducts> chain = {first};
  if (!isAlwaysEntered(first.loop))
    return chain;
  for (Operation *op = first.loop->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      continue;
    std::optional<TwoProducts> next = match(loop);
    scf::ForOp before = chain.back().loop;
    if (!next || next->accumulator != first.accumulator ||
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
    SmallVector<SmallVector<TwoProducts>> chains;
    llvm::SmallPtrSet<Operation *, 4> found;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      std::optional<TwoProducts> parts = match(loop);
      if (!parts || found.contains(loop))
        return;
      chains.push_back(getChain(*parts));
      for (const TwoProducts &other : chains.back())
        found.insert(other.loop);
    });
    for (ArrayRef<TwoProducts> chain : chains)
      rotate(chain);
  }
};
} // namespace
