//===- SpecializeWarps.cpp - Some warps compute, others copy --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace flash::tile {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

/// Whether values of the type belong to the threads of a role only.
static bool isTile(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return isa_and_nonnull<LayoutAttrInterface>(tensor.getEncoding());
  return isa<SmemType, PendingType>(type);
}

/// Whether the op fills stages, or takes them to be filled, by copies.
static bool isCopy(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return ringOp &&
         (ringOp.hasRingEffect(RingEffect::Acquire) ||
          ringOp.hasRingEffect(RingEffect::Fill)) &&
         !ringOp.getRing().getDefiningOp<RingOp>().isFilledFromRegisters();
}

/// Whether the ring's tiles are added in turn.
static bool isAddedInTurn(Value ring) {
  return llvm::any_of(ring.getUsers(), [](Operation *user) {
    auto wait = dyn_cast<RingWaitOp>(user);
    return wait && llvm::any_of(wait->getUsers(), llvm::IsaPred<AddInTurnOp>);
  });
}

/// Whether the op adds a tile in turn, waits for such a tile or gives it back.
static bool isAddition(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return isa<AddInTurnOp>(op) || (ringOp &&
                                  (ringOp.hasRingEffect(RingEffect::Wait) ||
                                   ringOp.hasRingEffect(RingEffect::Release)) &&
                                  isAddedInTurn(ringOp.getRing()));
}

/// The ops of the kernel that a role must carry out: those on tiles and rings,
/// loops, and what depends on them. Every thread carries out the others.
static SmallVector<Operation *> getOpsOfRoles(Block &body) {
  llvm::SetVector<Operation *> ops;
  for (Operation &op : body.without_terminator()) {
    bool isOfRole = op.getNumRegions() > 0 ||
                    llvm::any_of(op.getResultTypes(), isTile) ||
                    llvm::any_of(op.getOperands(), [&](Value operand) {
                      return isTile(operand.getType()) ||
                             isa<RingType>(operand.getType()) ||
                             ops.contains(operand.getDefiningOp());
                    });
    if (isOfRole)
      ops.insert(&op);
  }
  return ops.takeVector();
}

namespace {
/// The rings that are to be checked or made finite, and the waits for those of
/// their tiles that somebody asks about.
struct CheckedRings {
  llvm::SetVector<RingOp> rings;
  llvm::SmallPtrSet<Operation *, 4> waits;
};

/// Clones what a role beside the consumers does, of which `isOwnTask` tells:
/// copies or additions, or with `checked` what is done to each tile of its
/// rings; the loops and branches around them without the tiles that these
/// carry, and scalars.
class RoleSlice {
public:
  RoleSlice(OpBuilder b, bool (*isOwnTask)(Operation *))
      : b(b), isOwnTask(isOwnTask), checked(nullptr) {}
  RoleSlice(OpBuilder b, const CheckedRings *checked)
      : b(b), isOwnTask(nullptr), checked(checked) {}

  LogicalResult clone(Operation &op);

private:
  bool isOwn(Operation *op);
  bool containsOwn(Operation &op);
  void cloneOwn(Operation &op);
  LogicalResult cloneBody(Block &from, Block &to, ArrayRef<unsigned> kept);
  LogicalResult cloneLoop(scf::ForOp loop);
  LogicalResult cloneChoice(scf::IfOp choice);
  /// The values among `values` that are no tiles.
  static SmallVector<unsigned> getScalars(TypeRange types);
  /// Emits an error if the role does not have one of the operands.
  LogicalResult checkOperands(Operation &op, ValueRange operands);

  OpBuilder b;
  bool (*isOwnTask)(Operation *);
  const CheckedRings *checked;
  IRMapping mapping;
  /// Results of ops that only consumers carry out.
  llvm::DenseSet<Value> missing;
};
} // namespace

bool RoleSlice::isOwn(Operation *op) {
  if (!checked)
    return isOwnTask(op);
  auto wait = dyn_cast<RingWaitOp>(op);
  return wait &&
         checked->rings.contains(wait.getRing().getDefiningOp<RingOp>());
}

bool RoleSlice::containsOwn(Operation &op) {
  return op
      .walk([&](Operation *inner) {
        return isOwn(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void RoleSlice::cloneOwn(Operation &op) {
  if (!checked) {
    b.clone(op, mapping);
    return;
  }
  auto wait = cast<RingWaitOp>(op);
  Value ring = mapping.lookupOrDefault(wait.getRing()),
        step = mapping.lookupOrDefault(wait.getStep());
  if (wait.getRing().getDefiningOp<RingOp>().getFinite())
    RingMakeFiniteOp::create(b, wait.getLoc(), ring, step);
  else
    RingCheckFiniteOp::create(b, wait.getLoc(), ring, step,
                              /*unchecked=*/!checked->waits.contains(wait));
  missing.insert(wait.getTile());
}

SmallVector<unsigned> RoleSlice::getScalars(TypeRange types) {
  SmallVector<unsigned> scalars;
  for (auto [i, type] : llvm::enumerate(types))
    if (!isTile(type))
      scalars.push_back(i);
  return scalars;
}

LogicalResult RoleSlice::checkOperands(Operation &op, ValueRange operands) {
  for (Value operand : operands)
    if (missing.contains(operand) && !isTile(operand.getType())) {
      InFlightDiagnostic error =
          op.emitOpError("cannot be left to producer warps: it depends "
                         "on what other warps compute");
      error.attachNote(operand.getLoc()) << "computed here";
      return error;
    }
  return success();
}

LogicalResult RoleSlice::cloneBody(Block &from, Block &to,
                                   ArrayRef<unsigned> kept) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&to);
  for (Operation &op : from.without_terminator())
    if (failed(clone(op)))
      return failure();
  Operation *yield = from.getTerminator();
  auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
  SmallVector<Value> values;
  for (unsigned i : kept) {
    Value value = yield->getOperand(i);
    // A number that the role neither has nor uses, such as the step of a ring
    // of others at which the next block goes on, stays what it is.
    if (Value argument = loop ? loop.getRegionIterArg(i) : Value();
        argument && missing.contains(value) &&
        !llvm::is_contained(yield->getOperands(), argument) &&
        mapping.lookup(argument).use_empty()) {
      value = argument;
      missing.insert(loop.getResult(i));
    }
    values.push_back(value);
  }
  if (failed(checkOperands(*yield, values)))
    return failure();
  for (Value &value : values)
    value = mapping.lookupOrDefault(value);
  if (!to.mightHaveTerminator())
    scf::YieldOp::create(b, yield->getLoc(), values);
  return success();
}

LogicalResult RoleSlice::cloneLoop(scf::ForOp loop) {
  SmallVector<unsigned> kept = getScalars(loop.getResultTypes());
  SmallVector<Value> inits;
  for (unsigned i : kept)
    inits.push_back(mapping.lookupOrDefault(loop.getInitArgs()[i]));
  auto copy = scf::ForOp::create(
      b, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
      mapping.lookupOrDefault(loop.getUpperBound()),
      mapping.lookupOrDefault(loop.getStep()), inits);
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  for (auto [n, i] : llvm::enumerate(kept)) {
    mapping.map(loop.getRegionIterArg(i), copy.getRegionIterArg(n));
    mapping.map(loop.getResult(i), copy.getResult(n));
  }
  return cloneBody(*loop.getBody(), *copy.getBody(), kept);
}

LogicalResult RoleSlice::cloneChoice(scf::IfOp choice) {
  SmallVector<unsigned> kept = getScalars(choice.getResultTypes());
  SmallVector<Type> types;
  for (unsigned i : kept)
    types.push_back(choice.getResult(i).getType());
  auto copy = scf::IfOp::create(
      b, choice.getLoc(), types, mapping.lookupOrDefault(choice.getCondition()),
      /*addThenBlock=*/true, /*addElseBlock=*/!!choice.elseBlock());
  for (auto [n, i] : llvm::enumerate(kept))
    mapping.map(choice.getResult(i), copy.getResult(n));
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions()))
    if (!from.empty() && failed(cloneBody(from.front(), to.front(), kept)))
      return failure();
  return success();
}

LogicalResult RoleSlice::clone(Operation &op) {
  bool isOfTiles = llvm::any_of(op.getResultTypes(), isTile) ||
                   llvm::any_of(op.getOperandTypes(), isTile) ||
                   isa<RingOpInterface>(op);
  bool isNeeded =
      op.getNumRegions() > 0 ? containsOwn(op) : isOwn(&op) || !isOfTiles;
  if (!isNeeded) {
    missing.insert_range(op.getResults());
    return success();
  }
  if (failed(checkOperands(op, op.getOperands())))
    return failure();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return cloneLoop(loop);
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return cloneChoice(choice);
  if (op.getNumRegions() > 0)
    return op.emitOpError("has copies inside, which only loops and branches "
                          "can");
  if (isOwn(&op))
    cloneOwn(op);
  else
    b.clone(op, mapping);
  return success();
}

/// The warps over which the kernel's products are spread, 0 if there are none,
/// or failure if they are no products of warpgroups.
static FailureOr<int64_t> getWarps(gpu::GPUFuncOp kernel) {
  int64_t warps = 0;
  WalkResult walk = kernel.walk([&](MmaAsyncOp product) {
    RankedTensorType type = product.getResult().getType().getValue();
    warps = cast<FragmentAttr>(type.getEncoding()).getWarps();
    product.setWarpgroup(true);
    // The op's rules for products of warpgroups.
    return failed(product.verify()) ? WalkResult::interrupt()
                                    : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return warps;
}

/// Leaves it to other warps to make tiles finite, and to check whether they
/// are: consumers ask them.
static FailureOr<CheckedRings> findCheckedRings(gpu::GPUFuncOp kernel) {
  CheckedRings checked;
  SmallVector<IsFiniteOp> checks;
  kernel.walk([&](IsFiniteOp check) { checks.push_back(check); });
  for (IsFiniteOp check : checks) {
    auto wait = check.getSource().getDefiningOp<RingWaitOp>();
    auto ring = wait ? wait.getRing().getDefiningOp<RingOp>() : RingOp();
    if (!ring)
      return check.emitOpError("checks a tile of no ring, which only rings "
                               "show to other warps");
    checked.rings.insert(ring);
    checked.waits.insert(wait);
    ring.setChecked(true);
    OpBuilder b(check);
    check.replaceAllUsesWith(RingIsFiniteOp::create(b, check.getLoc(),
                                                    b.getI1Type(), ring,
                                                    wait.getStep())
                                 .getResult());
    check.erase();
  }
  SmallVector<MakeFiniteOp> changes;
  kernel.walk([&](MakeFiniteOp change) { changes.push_back(change); });
  for (MakeFiniteOp change : changes) {
    auto wait = change.getTile().getDefiningOp<RingWaitOp>();
    auto ring = wait ? wait.getRing().getDefiningOp<RingOp>() : RingOp();
    if (!ring || ring.getChecked())
      return change.emitOpError("changes a tile of no ring, or one that is "
                                "checked, which other warps cannot");
    checked.rings.insert(ring);
    ring.setFinite(true);
    change.erase();
  }
  return checked;
}

/// Whether tiles are added in turn; failure where a role of its own cannot.
static FailureOr<bool> findAdditions(gpu::GPUFuncOp kernel) {
  bool found = false;
  WalkResult walk = kernel.walk([&](AddInTurnOp add) -> WalkResult {
    found = true;
    auto wait = add.getTile().getDefiningOp<RingWaitOp>();
    if (wait && wait->hasOneUse())
      return WalkResult::advance();
    return add.emitOpError(
        "adds a tile that is in no ring, or that others read; "
        "the role that waits for its turn has it alone");
  });
  if (walk.wasInterrupted())
    return failure();
  return found;
}

/// Whether a role goes through a list in memory.
static bool readsList(Region &role) {
  return role
      .walk([](memref::LoadOp load) {
        auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
        return loop && llvm::is_contained(load.getIndices(),
                                          loop.getInductionVar())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static LogicalResult specialize(gpu::GPUFuncOp kernel) {
  FailureOr<int64_t> warps = getWarps(kernel);
  if (failed(warps))
    return failure();
  // Where a mask leaves no key, there is nothing to copy and compute.
  if (*warps == 0)
    return success();
  FailureOr<CheckedRings> checked = findCheckedRings(kernel);
  if (failed(checked))
    return failure();
  FailureOr<bool> adds = findAdditions(kernel);
  if (failed(adds))
    return failure();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops = getOpsOfRoles(body);
  OpBuilder b(body.getTerminator());
  auto [producerRegisters, consumerRegisters] =
      getRoleRegisters(*warps / warpsOfWarpgroup, getCtasPerSm(kernel));
  // Of the warpgroup behind the consumers the first warp is the producer, the
  // next one adds tiles in turn if there are such, and the last ones have the
  // non-finite check.
  SmallVector<StringRef> names = {"consumer", "producer"};
  SmallVector<int64_t> firstWarps = {0, *warps}, counts = {*warps, 1},
                       registers = {consumerRegisters, producerRegisters};
  int64_t adders = 0;
  if (*adds) {
    bool defers =
        flash::getSchedule(kernel).has(flash::ScheduleFeatures::DeferProducts);
    adders = defers ? 1 : mostAddingWarps;
    names.push_back("adder");
    firstWarps.push_back(*warps + 1);
    counts.push_back(adders);
    registers.push_back(producerRegisters);
  }
  if (!checked->rings.empty()) {
    int64_t left = warpsOfWarpgroup - 1 - adders;
    int64_t count = std::min(getCheckWarps(getCtasPerSm(kernel)), left);
    names.push_back("nonfinite_check");
    firstWarps.push_back(*warps + warpsOfWarpgroup - count);
    counts.push_back(count);
    registers.push_back(producerRegisters);
  }
  auto roles = WarpSpecializeOp::create(b, kernel.getLoc(), names, firstWarps,
                                        counts, registers);
  auto getBlock = [&](unsigned role) {
    return &roles.getRoles()[role].front();
  };
  Block &consumer = *getBlock(0);
  RoleSlice copying(OpBuilder::atBlockEnd(getBlock(1)), isCopy);
  for (Operation *op : ops)
    if (failed(copying.clone(*op)))
      return failure();
  // That of a block map.
  if (readsList(roles.getRoles()[1]))
    roles.leaveRegisters(/*from=*/0, /*role=*/1, registersOfListReader);
  if (*adds) {
    RoleSlice adding(OpBuilder::atBlockEnd(getBlock(2)), isAddition);
    for (Operation *op : ops)
      if (failed(adding.clone(*op)))
        return failure();
  }
  if (!checked->rings.empty()) {
    RoleSlice checking(OpBuilder::atBlockEnd(getBlock(names.size() - 1)),
                       &*checked);
    for (Operation *op : ops)
      if (failed(checking.clone(*op)))
        return failure();
  }
  for (Operation *op : ops)
    op->moveBefore(&consumer, consumer.end());
  SmallVector<Operation *> ofOthers;
  consumer.walk([&](Operation *op) {
    if (isCopy(op) || isAddition(op))
      ofOthers.push_back(op);
  });
  // A tile is used behind the wait that gives it.
  for (Operation *op : llvm::reverse(ofOthers))
    op->erase();
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(
      {static_cast<int32_t>(roles.getNumThreads()), 1, 1}));
  return success();
}

static bool isSpecialized(gpu::GPUFuncOp kernel) {
  return flash::getSchedule(kernel).has(
      flash::ScheduleFeatures::SpecializeWarps);
}

namespace {
struct SpecializeWarps
    : flash::tile::impl::SpecializeWarpsBase<SpecializeWarps> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    WalkResult walk = getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (!isSpecialized(kernel))
        return WalkResult::advance();
      return failed(specialize(kernel)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return signalPassFailure();
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel || !isSpecialized(kernel))
        return;
      OpBuilder b(launch);
      launch.getBlockSizeXMutable().assign(arith::ConstantIndexOp::create(
          b, launch.getLoc(), kernel.getKnownBlockSize()->front()));
    });
  }
};
} // namespace
