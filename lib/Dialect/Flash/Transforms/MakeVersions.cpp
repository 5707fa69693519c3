//===- MakeVersions.cpp - A program that chooses by its sizes -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallSizes.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Pass/PassManager.h"

namespace flash {
#define GEN_PASS_DEF_MAKEVERSIONS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;

// Each is a run of flash-specialize: so many take some seconds.
static constexpr size_t mostClasses = 65536;

namespace {
/// A version, and the sets of sizes that take it: boxes, with a set of sizes
/// for each axis.
struct Version {
  func::FuncOp func;
  std::vector<SmallVector<SizeSet>> boxes;
};

/// Makes the versions of one function.
class VersionMaker {
public:
  /// `specialize` gives a copy of the function for calls with these sizes of
  /// its first arguments; null after an error.
  using Specialize = function_ref<func::FuncOp(ArrayRef<std::string> sizes)>;

  VersionMaker(func::FuncOp func, CallAxes axes, Specialize specialize)
      : func(func), axes(std::move(axes)), specialize(specialize) {}
  ~VersionMaker() {
    for (Version &version : versions)
      version.func.erase();
  }
  LogicalResult add(const Call &call);
  /// Makes the function choose between the versions.
  void compose();

private:
  LogicalResult addClass(ArrayRef<SizeSet> box, ArrayRef<int64_t> sizes);
  Value emitIsOne(OpBuilder &b, SizeSet sizes, Value size);
  Value emitCondition(OpBuilder &b, const Version &version);
  Value getSize(const CallAxis &axis);

  func::FuncOp func;
  CallAxes axes;
  Specialize specialize;
  std::vector<Version> versions;
  size_t numClasses = 0;
  DenseMap<const CallAxis *, Value> sizeOfAxis;
};
} // namespace

//===----------------------------------------------------------------------===//
// Classes of sizes
//===----------------------------------------------------------------------===//

LogicalResult VersionMaker::add(const Call &call) {
  FailureOr<SmallVector<SizeRange>> ranges = axes.match(call);
  if (failed(ranges))
    return failure();
  // The classes of each axis, each with one of their sizes.
  std::vector<SmallVector<std::pair<SizeSet, int64_t>>> classes(ranges->size());
  size_t count = 1;
  for (auto [axis, range, list] :
       llvm::zip_equal(axes.get(), *ranges, classes)) {
    // Numbers of heads have to divide each other, so that none stands for
    // another one.
    if (axis.isExact && range.last - range.first < int64_t(mostClasses))
      for (int64_t size = range.first; size <= range.last; ++size)
        list.push_back({{size, size, SizeSet::allDivisors}, size});
    else if (!axis.isExact)
      forEachSizeClass(range.first, range.last,
                       [&list = list](SizeSet sizes, int64_t size) {
                         list.push_back({sizes, size});
                       });
    count = list.empty() ? mostClasses + 1 : count * list.size();
    if (count + numClasses > mostClasses)
      return func.emitOpError("cannot have versions for the call '")
             << call.text << "': there are more than " << mostClasses
             << " classes of sizes; name smaller ranges";
  }
  numClasses += count;
  for (size_t number = 0; number < count; ++number) {
    SmallVector<SizeSet> box;
    SmallVector<int64_t> typical;
    size_t rest = number;
    for (const auto &list : classes) {
      const auto &[sizes, size] = list[rest % list.size()];
      rest /= list.size();
      box.push_back(sizes);
      typical.push_back(size);
    }
    if (failed(axes.verifySizes(call, typical)) ||
        failed(addClass(box, typical)))
      return failure();
  }
  return success();
}

LogicalResult VersionMaker::addClass(ArrayRef<SizeSet> box,
                                     ArrayRef<int64_t> sizes) {
  func::FuncOp made = specialize(axes.describe(sizes));
  if (!made)
    return failure();
  auto found = llvm::find_if(versions, [&](Version &version) {
    return OperationEquivalence::isEquivalentTo(
        version.func, made, OperationEquivalence::IgnoreLocations);
  });
  if (found == versions.end()) {
    versions.push_back({made, {}});
    found = std::prev(versions.end());
  } else {
    made.erase();
  }
  found->boxes.emplace_back(box);
  return success();
}

/// Makes one of two sets, if that is one: with other divisors, or of sizes that
/// follow.
static bool unite(SizeSet &a, const SizeSet &b) {
  if (a.first == b.first && a.last == b.last) {
    a.divisors |= b.divisors;
    return true;
  }
  if (a.divisors != b.divisors || a.absent != b.absent ||
      a.last + 1 < b.first || b.last + 1 < a.first)
    return false;
  a.first = std::min(a.first, b.first);
  a.last = std::max(a.last, b.last);
  return true;
}

static void mergeBoxes(std::vector<SmallVector<SizeSet>> &boxes) {
  auto tie = [](const SizeSet &sizes) {
    return std::tie(sizes.first, sizes.last, sizes.divisors, sizes.absent);
  };
  size_t before;
  do {
    before = boxes.size();
    for (size_t axis = 0; axis < boxes.front().size(); ++axis) {
      // Boxes that differ in this axis only become neighbours.
      llvm::sort(boxes, [&](const auto &a, const auto &b) {
        for (size_t i = 0; i < a.size(); ++i)
          if (i != axis && !(a[i] == b[i]))
            return tie(a[i]) < tie(b[i]);
        return tie(a[axis]) < tie(b[axis]);
      });
      std::vector<SmallVector<SizeSet>> merged;
      for (SmallVector<SizeSet> &box : boxes) {
        bool isAlike = !merged.empty();
        for (size_t i = 0; isAlike && i < box.size(); ++i)
          isAlike = i == axis || box[i] == merged.back()[i];
        if (!isAlike || !unite(merged.back()[axis], box[axis]))
          merged.push_back(std::move(box));
      }
      boxes = std::move(merged);
    }
  } while (boxes.size() < before);
}

/// Joins boxes, since each becomes a condition.
static void simplify(std::vector<SmallVector<SizeSet>> &boxes) {
  // First what other divisors are in the same range.
  mergeBoxes(boxes);
  for (SmallVector<SizeSet> &box : boxes)
    for (SizeSet &sizes : box)
      sizes.decideAbsent();
  mergeBoxes(boxes);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

Value VersionMaker::getSize(const CallAxis &axis) {
  Value &size = sizeOfAxis[&axis];
  if (!size) {
    auto [argument, dim] = axis.members.front();
    OpBuilder b(func.getContext());
    b.setInsertionPointToStart(&func.getBody().front());
    size = tensor::DimOp::create(b, func.getLoc(), func.getArgument(argument),
                                 dim);
  }
  return size;
}

/// Whether a size is in the set.
Value VersionMaker::emitIsOne(OpBuilder &b, SizeSet sizes, Value size) {
  Location loc = func.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto compare = [&](CmpIPredicate predicate, Value value, int64_t with) {
    return arith::CmpIOp::create(b, loc, predicate, value, constant(with));
  };
  if (sizes.first == sizes.last)
    return compare(CmpIPredicate::eq, size, sizes.first);
  Value inRange = arith::AndIOp::create(
      b, loc, compare(CmpIPredicate::uge, size, sizes.first),
      compare(CmpIPredicate::ule, size, sizes.last));
  if (sizes.divisors == SizeSet::allDivisors)
    return inRange;
  auto isDivisible = [&](CmpIPredicate predicate, int64_t divisor) {
    return compare(predicate,
                   arith::RemUIOp::create(b, loc, size, constant(divisor)), 0);
  };
  // Runs of divisors: 64 and 128 stand for what 64 divides and 256 does not.
  Value any;
  size_t count = std::size(classDivisors);
  auto has = [&](size_t i) { return i < count && (sizes.divisors >> i & 1); };
  for (size_t i = 0; i < count; ++i) {
    if (!has(i) || has(i + 1))
      continue;
    size_t first = i;
    while (first > 0 && has(first - 1))
      --first;
    Value run;
    if (classDivisors[i] != 1)
      run = isDivisible(CmpIPredicate::eq, classDivisors[i]);
    if (first > 0) {
      Value notAbove = isDivisible(CmpIPredicate::ne, classDivisors[first - 1]);
      run = run ? arith::AndIOp::create(b, loc, run, notAbove) : notAbove;
    }
    any = any ? arith::OrIOp::create(b, loc, any, run) : run;
  }
  return arith::AndIOp::create(b, loc, inRange, any);
}

Value VersionMaker::emitCondition(OpBuilder &b, const Version &version) {
  Location loc = func.getLoc();
  Value any;
  for (ArrayRef<SizeSet> box : version.boxes) {
    Value all;
    for (auto [axis, sizes] : llvm::zip_equal(axes.get(), box)) {
      if (axis.known)
        continue;
      Value isOne = emitIsOne(b, sizes, getSize(axis));
      all = all ? arith::AndIOp::create(b, loc, all, isOne) : isOne;
    }
    // Types say all.
    if (!all)
      return arith::ConstantIntOp::create(b, loc, 1, 1);
    any = any ? arith::OrIOp::create(b, loc, any, all) : all;
  }
  return any;
}

void VersionMaker::compose() {
  Block &body = func.getBody().front();
  Operation *exit = body.getTerminator();
  SmallVector<Operation *> open;
  for (Operation &op : body.without_terminator())
    open.push_back(&op);
  Location loc = func.getLoc();
  OpBuilder b(exit);
  SmallVector<Value> results;
  for (Version &version : versions) {
    simplify(version.boxes);
    auto choice = scf::IfOp::create(b, loc, func.getResultTypes(),
                                    emitCondition(b, version),
                                    /*withElseRegion=*/true);
    if (results.empty())
      results.assign(choice->result_begin(), choice->result_end());
    else
      scf::YieldOp::create(b, loc, choice.getResults());
    b.setInsertionPointToStart(choice.thenBlock());
    IRMapping mapping;
    for (auto [argument, refined] :
         llvm::zip_equal(func.getArguments(), version.func.getArguments())) {
      Value known = argument;
      if (argument.getType() != refined.getType())
        known = tensor::CastOp::create(b, argument.getLoc(), refined.getType(),
                                       argument);
      mapping.map(refined, known);
    }
    Block &made = version.func.getBody().front();
    for (Operation &op : made.without_terminator())
      b.clone(op, mapping);
    scf::YieldOp::create(
        b, loc,
        llvm::map_to_vector(
            made.getTerminator()->getOperands(),
            [&](Value value) { return mapping.lookupOrDefault(value); }));
    b.setInsertionPointToStart(choice.elseBlock());
  }
  auto rest = scf::YieldOp::create(b, loc, exit->getOperands());
  for (Operation *op : open)
    op->moveBefore(rest);
  exit->setOperands(results);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct MakeVersions : flash::impl::MakeVersionsBase<MakeVersions> {
  using Base::Base;

  /// Runs flash-specialize on a copy of the module.
  func::FuncOp specialize(func::FuncOp func, ArrayRef<std::string> sizes) {
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    getOperation().push_back(*copy);
    for (auto other : copy->getOps<func::FuncOp>())
      if (other.getSymName() != func.getSymName())
        other.setPrivate();
    SpecializeOptions options;
    options.sizes.assign(sizes.begin(), sizes.end());
    options.schedule = schedule;
    options.device = device;
    options.tuningFile = tuningFile;
    OpPassManager pm(ModuleOp::getOperationName());
    pm.addPass(createSpecialize(options));
    LogicalResult result = runPipeline(pm, *copy);
    auto made = copy->lookupSymbol<func::FuncOp>(func.getSymName());
    made->remove();
    copy->getOperation()->remove();
    if (succeeded(result))
      return made;
    made.erase();
    return nullptr;
  }

  void runOnOperation() override {
    FailureOr<SmallVector<Call>> parsed = parseCalls(getOperation(), calls);
    if (failed(parsed))
      return signalPassFailure();
    auto funcs = llvm::make_filter_range(
        getOperation().getOps<func::FuncOp>(), [](func::FuncOp func) {
          return func.isPublic() && !func.isExternal();
        });
    for (func::FuncOp func : llvm::to_vector(funcs)) {
      FailureOr<CallAxes> axes = CallAxes::of(func);
      if (failed(axes))
        return signalPassFailure();
      auto makeVersion = [&](ArrayRef<std::string> sizes) {
        return specialize(func, sizes);
      };
      VersionMaker maker(func, std::move(*axes), makeVersion);
      for (const Call &call : *parsed)
        if (failed(maker.add(call)))
          return signalPassFailure();
      maker.compose();
    }
  }
};
} // namespace
