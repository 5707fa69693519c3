//===- PairLoads.cpp - One load of two neighbours in memory ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IndexSum.h"
#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace flash {
#define GEN_PASS_DEF_FLASHGPUPAIRLOADS
#include "flash/Target/Nvptx/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Loads of one tensor between which the other of a pair is looked for.
static constexpr size_t mostCandidates = 8;
/// Behind one branch a thread loads no more than it has registers for, and for
/// less the branch is not worth it.
static constexpr size_t mostPairs = 32, leastPairs = 4;

namespace {
/// An index that is bounded from above.
struct Bounded {
  Value index, bound;
};

/// A load of an element, at an offset in bytes from a pointer.
struct ElementLoad {
  LLVM::LoadOp op;
  LLVM::GEPOp address;

  Value getOffset() { return address.getDynamicIndices().front(); }
  int64_t getBytes() { return op.getType().getIntOrFloatBitWidth() / 8; }
};

/// Two loads. The second is of the next element unless one of `bounded` reaches
/// its bound.
struct Pair {
  ElementLoad first, second;
  SmallVector<Bounded> bounded;
};
} // namespace

static std::optional<ElementLoad> getElementLoad(LLVM::LoadOp op) {
  auto address = op.getAddr().getDefiningOp<LLVM::GEPOp>();
  unsigned bits =
      op.getType().isIntOrFloat() ? op.getType().getIntOrFloatBitWidth() : 0;
  if (!address || op.getVolatile_() ||
      op.getOrdering() != LLVM::AtomicOrdering::not_atomic ||
      address.getType() !=
          LLVM::LLVMPointerType::get(
              op.getContext(),
              static_cast<unsigned>(NVVM::NVVMMemorySpace::Global)) ||
      !address.getElemType().isInteger(8) ||
      address.getDynamicIndices().size() != 1 ||
      address.getRawConstantIndices().size() != 1 ||
      !address.getDynamicIndices().front().getType().isInteger(64) ||
      (bits != 8 && bits != 16))
    return std::nullopt;
  return ElementLoad{op, address};
}

/// By how much `second` is greater than `first`, where nothing that is bounded
/// reaches its bound; nothing if that is no constant.
static std::optional<int64_t> getDifference(Value first, Value second,
                                            SmallVectorImpl<Bounded> &bounded) {
  IndexSum sum;
  sum.add(second, /*isSubtracted=*/false);
  sum.add(first, /*isSubtracted=*/true);
  SmallVector<Value> left[2];
  for (auto [term, isSubtracted] : sum.terms) {
    SmallVector<Value> &others = left[!isSubtracted];
    if (auto *same = llvm::find(others, term); same != others.end())
      others.erase(same);
    else
      left[isSubtracted].push_back(term);
  }
  if (left[0].size() != left[1].size() || left[0].size() > 1)
    return std::nullopt;
  if (left[0].empty())
    return sum.constant;
  Operation *of = left[1].front().getDefiningOp(),
            *ofSecond = left[0].front().getDefiningOp();
  if (!of || !ofSecond || of->getName() != ofSecond->getName() ||
      of->getResultTypes() != ofSecond->getResultTypes())
    return std::nullopt;
  std::optional<int64_t> difference;
  if (isa<arith::IndexCastOp>(of)) {
    difference =
        getDifference(of->getOperand(0), ofSecond->getOperand(0), bounded);
  } else if (isa<arith::MulIOp, arith::MinSIOp>(of)) {
    Value factor = of->getOperand(1);
    if (factor != ofSecond->getOperand(1))
      return std::nullopt;
    difference =
        getDifference(of->getOperand(0), ofSecond->getOperand(0), bounded);
    if (isa<arith::MinSIOp>(of)) {
      bounded.push_back({of->getOperand(0), factor});
      // Only of the next one is it enough that the first is below the bound.
      if (difference != 1)
        return std::nullopt;
    } else if (difference) {
      std::optional<int64_t> number = getConstantIntValue(factor);
      if (!number || !IndexSum::isSmall(*number))
        return std::nullopt;
      *difference *= *number;
    }
  }
  if (!difference)
    return std::nullopt;
  return *difference + sum.constant;
}

/// What an address is computed with from `place` on, in the same block.
static SetVector<Operation *> getSlice(LLVM::GEPOp address, Operation *place) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == place->getBlock() && !op->isBeforeInBlock(place);
  };
  SetVector<Operation *> slice;
  (void)getBackwardSlice(address.getOperation(), &slice, options);
  return slice;
}

static bool canMoveBefore(LLVM::GEPOp address, Operation *place) {
  return llvm::all_of(getSlice(address, place),
                      [](Operation *op) { return isPure(op); });
}

/// The pairs of a block that are loaded behind one branch, where the first one
/// is.
using Group = SmallVector<Pair>;

static SmallVector<Group> findGroups(Block &block) {
  SmallVector<Group> groups;
  SmallVector<ElementLoad> candidates;
  Group group;
  auto finish = [&] {
    if (group.size() >= leastPairs)
      groups.push_back(std::move(group));
    group = {};
    candidates.clear();
  };
  for (Operation &op : block) {
    auto load = dyn_cast<LLVM::LoadOp>(op);
    if (!load) {
      // What writes may write this tensor.
      if (!isMemoryEffectFree(&op))
        finish();
      continue;
    }
    std::optional<ElementLoad> second = getElementLoad(load);
    if (!second)
      continue;
    Pair pair = {{}, *second, {}};
    auto *first = llvm::find_if(candidates, [&](ElementLoad &first) {
      pair.bounded.clear();
      return first.address.getBase() == second->address.getBase() &&
             first.op.getType() == load.getType() &&
             getDifference(first.getOffset(), second->getOffset(),
                           pair.bounded) == second->getBytes();
    });
    if (first == candidates.end()) {
      if (candidates.size() == mostCandidates)
        candidates.erase(candidates.begin());
      candidates.push_back(*second);
      continue;
    }
    pair.first = *first;
    candidates.erase(first);
    Operation *place = group.empty() ? pair.first.op : group.front().first.op;
    if (pair.first.op->isBeforeInBlock(place) ||
        !canMoveBefore(pair.first.address, place) ||
        !canMoveBefore(pair.second.address, place))
      continue;
    group.push_back(std::move(pair));
    // What begins before the end of a group is in none after it: the branch of
    // that one would be between its loads.
    if (group.size() == mostPairs)
      finish();
  }
  finish();
  return groups;
}

/// The offset where nothing reaches its bound. The offsets of neighbours are
/// sums that differ by constants.
static Value emitUnbounded(OpBuilder &b, Value offset,
                           ArrayRef<Bounded> bounded, IRMapping &known) {
  if (Value found = known.lookupOrNull(offset))
    return found;
  known.map(offset, offset);
  Operation *op = offset.getDefiningOp();
  if (auto least = dyn_cast_or_null<arith::MinSIOp>(op)) {
    if (llvm::any_of(bounded, [&](Bounded each) {
          return each.index == least.getLhs() && each.bound == least.getRhs();
        }))
      known.map(offset, least.getLhs());
  } else if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp,
                             arith::IndexCastOp>(op)) {
    IRMapping operands;
    bool isSame = true;
    for (Value operand : op->getOperands()) {
      Value unbounded = emitUnbounded(b, operand, bounded, known);
      operands.map(operand, unbounded);
      isSame &= unbounded == operand;
    }
    if (!isSame)
      known.map(offset, b.clone(*op, operands)->getResult(0));
  }
  return known.lookup(offset);
}

/// Whether all pairs, whose offsets are given, are aligned, and nothing reaches
/// its bound.
static Value emitArePairs(OpBuilder &b, Location loc, Group &group,
                          ArrayRef<Value> offsets) {
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, loc, i32, value);
  };
  auto both = [&](Value x, Value y) -> Value {
    return x ? arith::AndIOp::create(b, loc, x, y).getResult() : y;
  };
  Value arePairs;
  SmallVector<Bounded> greatest;
  for (auto [pair, offset] : llvm::zip_equal(group, offsets)) {
    // Low bits are enough, and rows have them in common.
    Value base =
        LLVM::PtrToIntOp::create(b, loc, i32, pair.first.address.getBase());
    Value low = arith::AndIOp::create(
        b, loc,
        arith::AddIOp::create(b, loc, base,
                              arith::TruncIOp::create(b, loc, i32, offset)),
        constant(2 * pair.first.getBytes() - 1));
    arePairs =
        both(arePairs, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                             low, constant(0)));
    for (Bounded bounded : pair.bounded) {
      std::optional<int64_t> more;
      auto *same = llvm::find_if(greatest, [&](Bounded other) {
        SmallVector<Bounded> inner;
        more = getDifference(other.index, bounded.index, inner);
        return other.bound == bounded.bound && more && inner.empty();
      });
      if (same == greatest.end())
        greatest.push_back(bounded);
      else if (*more > 0)
        same->index = bounded.index;
    }
  }
  for (auto [index, bound] : greatest)
    arePairs =
        both(arePairs, arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             index, bound));
  return arePairs;
}

/// What passes from a branch to what is behind both: the two elements as one
/// integer. Here of pairs at these offsets.
static SmallVector<Value> emitPairs(OpBuilder &b, Location loc, Group &group,
                                    ArrayRef<Value> offsets) {
  SmallVector<Value> values;
  for (auto [pair, offset] : llvm::zip_equal(group, offsets)) {
    LLVM::GEPOp first = pair.first.address;
    int64_t bytes = 2 * pair.first.getBytes();
    Value address =
        LLVM::GEPOp::create(b, loc, first.getType(), first.getElemType(),
                            first.getBase(), ArrayRef<LLVM::GEPArg>{offset});
    values.push_back(LLVM::LoadOp::create(b, loc, b.getIntegerType(8 * bytes),
                                          address, bytes));
  }
  return values;
}

/// Does what `emitPairs` does, for elements wherever they are.
static SmallVector<Value> emitElements(OpBuilder &b, Location loc,
                                       Group &group) {
  SmallVector<Value> values;
  for (Pair &pair : group) {
    int64_t bits = 8 * pair.first.getBytes();
    Type joined = b.getIntegerType(2 * bits);
    auto load = [&](ElementLoad &element) {
      Value value = LLVM::LoadOp::create(b, loc, b.getIntegerType(bits),
                                         element.address, element.getBytes());
      return arith::ExtUIOp::create(b, loc, joined, value);
    };
    Value first = load(pair.first), second = load(pair.second);
    second = arith::ShLIOp::create(
        b, loc, second, arith::ConstantIntOp::create(b, loc, joined, bits));
    values.push_back(arith::OrIOp::create(b, loc, first, second));
  }
  return values;
}

static void loadBehindBranch(Group &group) {
  Operation *place = group.front().first.op;
  Location loc = place->getLoc();
  for (Pair &pair : group)
    for (LLVM::GEPOp address : {pair.first.address, pair.second.address})
      for (Operation *op : getSlice(address, place))
        op->moveBefore(place);
  OpBuilder b(place);
  SmallVector<Value> offsets;
  for (Pair &pair : group) {
    IRMapping known;
    offsets.push_back(
        emitUnbounded(b, pair.first.getOffset(), pair.bounded, known));
  }
  Value arePairs = emitArePairs(b, loc, group, offsets);
  Block *before = place->getBlock(), *behind = before->splitBlock(place);
  Block *pairs = b.createBlock(behind);
  SmallVector<Value> values = emitPairs(b, loc, group, offsets);
  for (Value value : values)
    behind->addArgument(value.getType(), loc);
  cf::BranchOp::create(b, loc, behind, values);
  Block *elements = b.createBlock(behind);
  cf::BranchOp::create(b, loc, behind, emitElements(b, loc, group));
  b.setInsertionPointToEnd(before);
  cf::CondBranchOp::create(b, loc, arePairs, pairs, elements);

  b.setInsertionPointToStart(behind);
  for (auto [pair, both] : llvm::zip_equal(group, behind->getArguments())) {
    int64_t bits = 8 * pair.first.getBytes();
    Value second = arith::ShRUIOp::create(
        b, loc, both,
        arith::ConstantIntOp::create(b, loc, both.getType(), bits));
    for (auto [load, value] :
         {std::pair(pair.first.op, Value(both)), {pair.second.op, second}}) {
      value = arith::TruncIOp::create(b, loc, b.getIntegerType(bits), value);
      load.replaceAllUsesWith(
          b.createOrFold<arith::BitcastOp>(loc, load.getType(), value));
    }
  }
  for (Pair &pair : group) {
    pair.first.op.erase();
    pair.second.op.erase();
  }
}

namespace {
struct PairLoads : flash::impl::FlashGpuPairLoadsBase<PairLoads> {
  void runOnOperation() override {
    SmallVector<Group> groups;
    getOperation()->walk([&](FunctionOpInterface function) {
      for (Block &block : function.getFunctionBody())
        llvm::append_range(groups, findGroups(block));
    });
    // The last of a block first: what is behind a branch is in another block.
    for (Group &group : llvm::reverse(groups))
      loadBehindBranch(group);
  }
};
} // namespace
