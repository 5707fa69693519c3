//===- Overlap.cpp - The softmax of a tile during the product before it ---===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// Clones the parts of the loop's body to their new places.
class Rotation {
public:
  explicit Rotation(TwoProducts parts)
      : parts(parts), b(parts.loop), loc(parts.loop.getLoc()) {}
  void run();

private:
  /// The values of one iteration.
  struct Iteration {
    IRMapping mapping;
    MmaAsyncOp first, second;
  };
  /// What the second product needs of its own iteration: computed in it, or
  /// carried by the loop.
  SmallVector<Value> getNeeds();
  /// Whether the op must come behind the second product of the iteration
  /// before.
  bool comesLast(Operation *op);
  void cloneSecondStart(Iteration &it);
  Value cloneSecondEnd(Iteration &it);
  void cloneFirst(Iteration &it, bool upToProduct);
  void cloneLast(Iteration &it);
  SmallVector<Value> getYields(Iteration &it);

  TwoProducts parts;
  OpBuilder b;
  Location loc;
  llvm::SmallPtrSet<Operation *, 8> last;
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
  // are rounded to their registers behind it.
  if (op == parts.second.getA().getDefiningOp())
    return true;
  bool found = false;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      found |= operand == parts.loop.getRegionIterArg(parts.accumulator) ||
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
      if (&op == parts.first)
        it.first = cast<MmaAsyncOp>(copy);
      if (auto wait = dyn_cast<MmaWaitOp>(copy); wait && it.second)
        wait.getYoungerMutable().assign(it.second.getResult());
    }
    isBehind |= &op == parts.first;
  }
}

void Rotation::cloneLast(Iteration &it) {
  for (Operation &op : parts.loop.getBody()->without_terminator())
    if (last.contains(&op))
      b.clone(op, it.mapping);
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

SmallVector<Value> Rotation::getYields(Iteration &it) {
  SmallVector<Value> yields;
  for (Value value : parts.loop.getYieldedValues())
    yields.push_back(it.mapping.lookupOrDefault(value));
  return yields;
}

void Rotation::run() {
  scf::ForOp loop = parts.loop;
  for (Operation &op : loop.getBody()->without_terminator())
    if (!parts.isSecond(&op) && comesLast(&op))
      last.insert(&op);
  SmallVector<Value> needs = getNeeds();

  Value isEntered =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                            loop.getLowerBound(), loop.getUpperBound());
  auto choice = scf::IfOp::create(b, loc, loop.getResultTypes(), isEntered,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(b, loc, loop.getInitArgs());
  b.setInsertionPointToStart(choice.thenBlock());

  // The first iteration, without its second product.
  Iteration head;
  head.mapping.map(loop.getInductionVar(), loop.getLowerBound());
  head.mapping.map(loop.getRegionIterArgs(), loop.getInitArgs());
  cloneFirst(head, /*upToProduct=*/true);
  cloneFirst(head, /*upToProduct=*/false);
  cloneLast(head);

  // In the others the second product is that of the iteration before.
  SmallVector<Value> inits;
  for (auto [i, value] : llvm::enumerate(getYields(head)))
    if (i != parts.accumulator)
      inits.push_back(value);
  for (Value need : needs)
    inits.push_back(head.mapping.lookup(need));
  Value second =
      arith::AddIOp::create(b, loc, loop.getLowerBound(), loop.getStep());
  auto rotated = scf::ForOp::create(b, loc, second, loop.getUpperBound(),
                                    loop.getStep(), inits);
  size_t kept = loop.getNumResults() - 1;
  auto mapCarried = [&](IRMapping &mapping, ValueRange carried) {
    for (size_t i = 0, n = 0; i < loop.getNumResults(); ++i)
      if (i != parts.accumulator)
        mapping.map(loop.getRegionIterArg(i), carried[n++]);
  };
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rotated.getBody());
    Iteration before, it;
    before.mapping.map(needs, rotated.getRegionIterArgs().drop_front(kept));
    it.mapping.map(loop.getInductionVar(), rotated.getInductionVar());
    mapCarried(it.mapping, rotated.getRegionIterArgs());
    cloneFirst(it, /*upToProduct=*/true);
    cloneSecondStart(before);
    it.second = before.second;
    cloneFirst(it, /*upToProduct=*/false);
    it.mapping.map(loop.getRegionIterArg(parts.accumulator),
                   cloneSecondEnd(before));
    cloneLast(it);
    SmallVector<Value> yields;
    for (auto [i, value] : llvm::enumerate(getYields(it)))
      if (i != parts.accumulator)
        yields.push_back(value);
    for (Value need : needs)
      yields.push_back(it.mapping.lookup(need));
    scf::YieldOp::create(b, loc, yields);
  }

  // The second product of the last iteration.
  Iteration tail;
  tail.mapping.map(needs, rotated.getResults().drop_front(kept));
  cloneSecondStart(tail);
  SmallVector<Value> results(rotated.getResults().take_front(kept));
  results.insert(results.begin() + parts.accumulator, cloneSecondEnd(tail));
  scf::YieldOp::create(b, loc, results);
  loop.replaceAllUsesWith(choice.getResults());
  loop.erase();
}

namespace {
struct Overlap : flash::tile::impl::OverlapBase<Overlap> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr("tile.overlap"))
      return;
    SmallVector<TwoProducts> found;
    getOperation().walk([&](scf::ForOp loop) {
      if (std::optional<TwoProducts> parts = match(loop))
        found.push_back(*parts);
    });
    for (TwoProducts &parts : found)
      Rotation(parts).run();
  }
};
} // namespace
