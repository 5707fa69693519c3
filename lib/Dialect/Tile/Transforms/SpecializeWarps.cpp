//===- SpecializeWarps.cpp - Some warps compute, others copy --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleSlice.h"
#include "VerifyRoles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

namespace flash::tile {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// How many copies fill a stage where a second warp copies, too.
static constexpr int64_t leastCopiesForTwo = 4;

/// The first of the warps that hold the register tiles of a layout; nothing
/// without one.
static std::optional<int64_t> getFirstWarp(LayoutAttrInterface layout) {
  return layout ? std::optional(layout.getFirstWarp()) : std::nullopt;
}

/// Whether the op fills stages, or takes them to be filled, by copies.
static bool isCopy(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return ringOp &&
         (ringOp.hasRingEffect(RingEffect::Acquire) ||
          ringOp.hasRingEffect(RingEffect::Fill)) &&
         !ringOp.getRing().getDefiningOp<RingOp>().isFilledFromRegisters();
}

/// Whether the op takes tiles of rings as an `OpTy`, waits for such a tile or
/// gives it back.
template <typename OpTy> static bool isOnTilesOf(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  if (!ringOp || (!ringOp.hasRingEffect(RingEffect::Wait) &&
                  !ringOp.hasRingEffect(RingEffect::Release)))
    return isa<OpTy>(op);
  return llvm::any_of(ringOp.getRing().getUsers(), [](Operation *user) {
    auto wait = dyn_cast<RingWaitOp>(user);
    return wait && llvm::any_of(wait->getUsers(), llvm::IsaPred<OpTy>);
  });
}

/// What belongs to the role that adds tiles in order, and to the one that adds
/// up diagonals.
/// Consumers wait for tiles of the latter, too.
static constexpr auto isAddition = isOnTilesOf<AddInOrderOp>;
static constexpr auto isOfDiagonals = isOnTilesOf<StoreDiagonalsOp>;

/// The ops of the kernel that a role must carry out: those on tiles and rings,
/// loops, and what depends on them. Every thread carries out the others.
static SmallVector<Operation *> getOpsOfRoles(Block &body) {
  llvm::SetVector<Operation *> ops;
  for (Operation &op : body.without_terminator()) {
    bool isOfRole = (op.getNumRegions() > 0 && !computesScalars(&op)) ||
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
/// The rings that are to be checked or made finite, and the waits for tiles
/// whose check is read, with the condition under which that is so; null if it
/// always is.
struct CheckedRings {
  llvm::SetVector<RingOp> rings;
  llvm::SmallDenseMap<Operation *, Value> waits;
};
} // namespace

/// The warps over which the kernel's products are spread, 0 if there are none,
/// or failure if they are no products of warpgroups. `others` becomes the first
/// one of the warps that have products of their own.
static FailureOr<int64_t> getWarps(gpu::GPUFuncOp kernel, int64_t &others) {
  int64_t warps = 0;
  WalkResult walk = kernel.walk([&](MmaAsyncOp product) {
    RankedTensorType type = product.getResult().getType().getValue();
    auto layout = cast<FragmentAttr>(type.getEncoding());
    warps = layout.getWarps();
    others = std::max(others, layout.getFirstWarp());
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
/// are: consumers read the results of checks.
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
    auto choice = dyn_cast<scf::IfOp>(check->getParentOp());
    Value condition = choice && check->getBlock() == choice.thenBlock()
                          ? choice.getCondition()
                          : Value();
    Value &known = checked.waits.try_emplace(wait, condition).first->second;
    if (known != condition)
      known = {};
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

/// Whether tiles are added in order; failure where a role of its own cannot.
static FailureOr<bool> findAdditions(gpu::GPUFuncOp kernel) {
  bool found = false;
  WalkResult walk = kernel.walk([&](AddInOrderOp add) -> WalkResult {
    found = true;
    auto wait = add.getTile().getDefiningOp<RingWaitOp>();
    if (wait && wait->hasOneUse())
      return WalkResult::advance();
    return add.emitOpError(
        "adds a tile that is in no ring, or that others read; "
        "the role that adds it has it alone");
  });
  if (walk.wasInterrupted())
    return failure();
  return found;
}

/// Whether diagonals are added up; failure where a role of its own cannot.
static FailureOr<bool> findDiagonals(gpu::GPUFuncOp kernel) {
  bool found = false;
  WalkResult walk = kernel.walk([&](StoreDiagonalsOp diagonals) -> WalkResult {
    found = true;
    if (diagonals.getTile().getDefiningOp<RingWaitOp>())
      return WalkResult::advance();
    return diagonals.emitOpError("is of a tile in no ring, which only rings "
                                 "show to other warps");
  });
  if (walk.wasInterrupted())
    return failure();
  return found;
}

/// Has consumers give the tile back behind the last op that reads it.
static void releaseEarly(RingWaitOp wait) {
  RingReleaseOp release = wait.getRelease();
  if (!release)
    return;
  Operation *last = wait;
  auto pass = [&](Operation *op) {
    op = wait->getBlock()->findAncestorOpInBlock(*op);
    if (last->isBeforeInBlock(op))
      last = op;
  };
  for (Operation *user : wait->getUsers()) {
    pass(user);
    if (isa<MmaAsyncOp>(user))
      llvm::for_each(user->getUsers(), pass);
  }
  release->moveAfter(last);
}

/// Whether a role goes through a list in memory.
static bool readsList(Region &role) {
  return role
      .walk([](memref::LoadOp load) {
        auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
        return loop && !computesScalars(loop) &&
                       llvm::is_contained(load.getIndices(),
                                          loop.getInductionVar())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The rings whose tiles are copied in parts, each from an address of its own.
static SmallVector<RingOp> findRingsOfParts(gpu::GPUFuncOp kernel) {
  llvm::SetVector<RingOp> rings;
  kernel.walk([&](CopyAsyncOp copy) {
    if (copy.getPart())
      rings.insert(copy.getRing().getDefiningOp<RingOp>());
  });
  return rings.takeVector();
}

/// Whether the op is of a role that computes on tiles of the warps from
/// `firstWarp` on: it has such tiles, or waits for tiles that it reads and
/// gives them back.
static bool computesOnTilesOf(int64_t firstWarp, Operation *op) {
  if (isa<scf::ForOp, scf::IfOp>(op) || isCopy(op))
    return false;
  if (std::optional<int64_t> first = getFirstWarp(getLayoutOfTiles(op)))
    return first == firstWarp;
  auto ringOp = dyn_cast<RingOpInterface>(op);
  if (!ringOp)
    return false;
  bool isOfWriters = ringOp.hasRingEffect(RingEffect::Acquire);
  return llvm::any_of(ringOp.getRing().getUsers(), [&](Operation *user) {
    if (isOfWriters)
      return isa<RingPutOp>(user) &&
             getFirstWarp(getLayoutOfTiles(user)) == firstWarp;
    auto wait = dyn_cast<RingWaitOp>(user);
    return wait && llvm::any_of(wait->getUsers(), [&](Operation *reader) {
             return getFirstWarp(getLayoutOfTiles(reader)) == firstWarp;
           });
  });
}

/// What the role that checks tiles, or makes them finite, does for the waits of
/// consumers for tiles of its rings.
static RoleSlice getCheckSlice(OpBuilder b, const CheckedRings &checked) {
  auto isOwn = [&](Operation *op) {
    auto wait = dyn_cast<RingWaitOp>(op);
    return wait &&
           checked.rings.contains(wait.getRing().getDefiningOp<RingOp>());
  };
  auto emit = [&](OpBuilder &b, Operation &op, const IRMapping &mapping) {
    auto wait = cast<RingWaitOp>(op);
    Value ring = mapping.lookupOrDefault(wait.getRing()),
          step = mapping.lookupOrDefault(wait.getStep());
    auto check = [&](bool isRead) {
      RingCheckFiniteOp::create(b, wait.getLoc(), ring, step,
                                /*unchecked=*/!isRead);
    };
    if (wait.getRing().getDefiningOp<RingOp>().getFinite()) {
      RingMakeFiniteOp::create(b, wait.getLoc(), ring, step);
      return;
    }
    auto reader = checked.waits.find(wait);
    // What the role does not compute, it need not know.
    Value condition = reader != checked.waits.end() && reader->second
                          ? mapping.lookupOrNull(reader->second)
                          : Value();
    if (!condition)
      return check(reader != checked.waits.end());
    auto choice = scf::IfOp::create(b, wait.getLoc(), condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool isRead : {true, false}) {
      b.setInsertionPointToStart(isRead ? choice.thenBlock()
                                        : choice.elseBlock());
      check(isRead);
    }
  };
  return RoleSlice(b, isOwn, /*firstWarp=*/std::nullopt, emit);
}

static LogicalResult emitFault(RoleSlice::Fault fault) {
  if (!fault.operand)
    return fault.op->emitOpError("has copies inside, which only loops and "
                                 "branches can");
  InFlightDiagnostic error =
      fault.op->emitOpError("cannot be left to producer warps: it depends "
                            "on what other warps compute");
  error.attachNote(fault.operand.getLoc()) << "computed here";
  return error;
}

static LogicalResult specialize(gpu::GPUFuncOp kernel) {
  int64_t firstOfOthers = 0;
  FailureOr<int64_t> warps = getWarps(kernel, firstOfOthers);
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
  FailureOr<bool> diagonals = findDiagonals(kernel);
  if (failed(diagonals))
    return failure();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops = getOpsOfRoles(body);
  OpBuilder b(body.getTerminator());
  // All warps that compute.
  int64_t consumers = firstOfOthers + *warps;
  RoleRegisters ofRoles =
      getRoleRegisters(getMachineOfKernels(kernel),
                       consumers / warpsOfWarpgroup, getCtasPerSm(kernel));
  // In the warpgroup behind the consumers the first warp is the producer, the
  // next one copies into every other ring where a tile takes so many copies
  // that one thread would be late with them, the next ones add tiles in order
  // or add up diagonals if there are such, and the last ones have the
  // non-finite check.
  SmallVector<RingOp> ofParts = findRingsOfParts(kernel);
  llvm::SmallPtrSet<Operation *, 2> ofSecond;
  for (size_t i = 1; i < ofParts.size(); i += 2)
    if (ofParts[i].getNumCopies() >= leastCopiesForTwo)
      ofSecond.insert(ofParts[i]);
  bool checks = !checked->rings.empty();
  SmallVector<StringRef> names = {"consumer"};
  SmallVector<int64_t> firstWarps = {0}, counts = {*warps},
                       registers = {ofRoles.consumer};
  bool divides = firstOfOthers > 0;
  if (divides) {
    names.push_back("second_consumer");
    firstWarps.push_back(firstOfOthers);
    counts.push_back(*warps);
    registers.push_back(ofRoles.consumer);
  }
  // The last ones that compute need the fewest registers.
  unsigned lastConsumer = names.size() - 1, producer = names.size();
  int64_t left = warpsOfWarpgroup;
  auto addRole = [&](StringRef name, int64_t count) {
    names.push_back(name);
    firstWarps.push_back(consumers + warpsOfWarpgroup - left);
    counts.push_back(count);
    registers.push_back(ofRoles.producer);
    left -= count;
  };
  addRole("producer", 1);
  if (!ofSecond.empty())
    addRole("second_producer", 1);
  if (*adds) {
    bool defers =
        flash::getSchedule(kernel).has(flash::ScheduleFeatures::DeferProducts);
    addRole("adder", defers || *diagonals ? 1 : mostAlternatingWarps);
  }
  if (*diagonals)
    addRole("diagonals",
            std::min(checks ? left - 1 : left, mostAlternatingWarps));
  if (checks) {
    int64_t count = std::min(getCheckWarps(getCtasPerSm(kernel)), left);
    left = count;
    addRole("nonfinite_check", count);
  }
  auto roles = WarpSpecializeOp::create(b, kernel.getLoc(), names, firstWarps,
                                        counts, registers);
  auto getBlock = [&](unsigned role) {
    return &roles.getRoles()[role].front();
  };
  Block &consumer = *getBlock(0);
  auto slice = [&](RoleSlice slice) -> LogicalResult {
    for (Operation *op : ops)
      if (failed(slice.clone(*op)))
        return emitFault(slice.getFault());
    return success();
  };
  unsigned role = producer;
  auto nextBlock = [&] { return OpBuilder::atBlockEnd(getBlock(role++)); };
  auto isOfSecond = [&](Operation *op) {
    return isCopy(op) &&
           ofSecond.contains(
               cast<RingOpInterface>(op).getRing().getDefiningOp());
  };
  auto isOfFirst = [&](Operation *op) { return isCopy(op) && !isOfSecond(op); };
  if (failed(slice(RoleSlice(nextBlock(), isOfFirst))) ||
      (!ofSecond.empty() && failed(slice(RoleSlice(nextBlock(), isOfSecond)))))
    return failure();
  // The second of two consumers needs little beside its sums, and the
  // producer, of positions of masked tiles, what it has beside one warpgroup
  // (ptxas spilled with 40).
  constexpr int64_t registersBesideTwo = 56;
  if (divides)
    roles.leaveRegisters(lastConsumer, producer, registersBesideTwo);
  // The producer reads the list of a block map.
  if (readsList(roles.getRoles()[producer]))
    roles.leaveRegisters(lastConsumer, producer, registersOfListReader);
  if (!ofParts.empty())
    roles.leaveRegisters(lastConsumer, producer, registersOfParts);
  if (ClaimOp claim = findClaim(kernel); claim && !claim.getShared().empty())
    roles.leaveRegisters(lastConsumer, producer, registersOfSharedScalars);
  // Warpgroups that both compute scores need as many.
  if (divides && flash::getSchedule(kernel).alternatesTiles()) {
    int64_t ofBoth = llvm::alignDown(
        (roles.getNumRegisters(0) + roles.getNumRegisters(lastConsumer)) / 2,
        registerGranularity);
    roles.setNumRegisters(0, ofBoth);
    roles.setNumRegisters(lastConsumer, ofBoth);
  }
  if (*adds && failed(slice(RoleSlice(nextBlock(), isAddition))))
    return failure();
  if (*diagonals) {
    roles.leaveRegisters(lastConsumer, role, registersOfDiagonals);
    if (failed(slice(RoleSlice(nextBlock(), isOfDiagonals))))
      return failure();
  }
  if (checks && failed(slice(getCheckSlice(nextBlock(), *checked))))
    return failure();
  kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(
      {static_cast<int32_t>(roles.getNumThreads()), 1, 1}));
  if (divides) {
    for (unsigned computing : {0U, lastConsumer}) {
      int64_t first = firstWarps[computing];
      auto isOwn = [first](Operation *op) {
        return computesOnTilesOf(first, op);
      };
      if (failed(slice(RoleSlice(OpBuilder::atBlockEnd(getBlock(computing)),
                                 isOwn, first))))
        return failure();
    }
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    return success();
  }
  for (Operation *op : ops)
    op->moveBefore(&consumer, consumer.end());
  SmallVector<Operation *> ofOthers;
  consumer.walk([&](Operation *op) {
    if (isCopy(op) || isAddition(op) || isa<StoreDiagonalsOp>(op))
      ofOthers.push_back(op);
  });
  SmallVector<RingWaitOp> withDiagonals;
  for (Operation *op : ofOthers)
    if (auto store = dyn_cast<StoreDiagonalsOp>(op))
      withDiagonals.push_back(store.getTile().getDefiningOp<RingWaitOp>());
  // A tile is used behind the wait that gives it.
  for (Operation *op : llvm::reverse(ofOthers))
    op->erase();
  llvm::for_each(withDiagonals, releaseEarly);
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
