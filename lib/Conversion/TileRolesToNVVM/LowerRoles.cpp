//===- LowerRoles.cpp - Roles and rings as barriers and bulk copies -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RoleLowering.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Dialect/Tile/Utils/Panels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace flash {
#define GEN_PASS_DEF_LOWERTILEROLES
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;
using namespace flash::tile;

Value RoleLowering::sharedPointer(Value offset) {
  Type type = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  Value base = nvx::SharedMemoryOp::create(b, loc, type);
  return LLVM::GEPOp::create(b, loc, type, b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{toI32(offset)});
}

Value RoleLowering::uniform(Value value) {
  return NVVM::ShflOp::create(b, loc, b.getI32Type(), i32(-1), value, i32(0),
                              i32(31), NVVM::ShflKind::idx, UnitAttr());
}

void RoleLowering::meet() {
  NVVM::BarrierOp::create(
      b, loc, TypeRange(),
      arith::AddIOp::create(b, loc, warpgroup(), i32(firstMeetingBarrier)),
      i32(threadsOfWarpgroup), NVVM::BarrierReductionAttr(), Value());
}

Value RoleLowering::isFirstOf(int64_t threads) {
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  return isEqual(arith::RemUIOp::create(b, loc, thread, index(threads)), 0);
}

void RoleLowering::ifFirstOf(int64_t threads, function_ref<void()> body) {
  auto choice = scf::IfOp::create(b, loc, isFirstOf(threads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  body();
}

void RoleLowering::meetAll(int64_t warps) {
  NVVM::BarrierOp::create(b, loc, TypeRange(), i32(consumersBarrier),
                          i32(warps * threadsOfWarp),
                          NVVM::BarrierReductionAttr(), Value());
}

void RoleLowering::lowerClear(ClearOp op) {
  meetAll(op.getWarps());
  b.setInsertionPointAfter(op);
  fenceForBulkCopies();
  meetAll(op.getWarps());
}

Value RoleLowering::warpgroup() {
  return nvx::WarpgroupOp::create(b, loc, b.getI32Type());
}

Value RoleLowering::pingPongBarrier(Value warpgroup) {
  return arith::AddIOp::create(b, loc, warpgroup, i32(firstPingPongBarrier));
}

/// Each warpgroup has a named barrier, at which it waits and the one before
/// arrives without waiting: the threads of two.
void RoleLowering::lowerPingPong(Operation *op) {
  Value threads = i32(2 * threadsOfWarpgroup);
  if (isa<PingPongWaitOp>(op)) {
    NVVM::BarrierOp::create(b, loc, TypeRange(), pingPongBarrier(warpgroup()),
                            threads, NVVM::BarrierReductionAttr(), Value());
    return;
  }
  Value next = arith::AddIOp::create(b, loc, warpgroup(), i32(1));
  int64_t count = roles.getNumWarpgroups(roles.getRoleOf(op));
  next = arith::RemUIOp::create(b, loc, next, i32(count));
  NVVM::BarrierArriveOp::create(b, loc, pingPongBarrier(next), threads);
}

void RoleLowering::startAndEndPingPong(unsigned role) {
  auto ifWarpgroup = [&](int64_t number, function_ref<void()> body) {
    Value isThis = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         warpgroup(), i32(number));
    auto choice = scf::IfOp::create(b, loc, isThis);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    body();
  };
  Block &consumer = roles.getRoles()[role].front();
  b.setInsertionPointToStart(&consumer);
  ifWarpgroup(roles.getNumWarpgroups(role) - 1, [&] {
    NVVM::BarrierArriveOp::create(b, loc, pingPongBarrier(i32(0)),
                                  i32(2 * threadsOfWarpgroup));
  });
  b.setInsertionPointToEnd(&consumer);
  ifWarpgroup(0, [&] {
    NVVM::BarrierOp::create(b, loc, TypeRange(), pingPongBarrier(i32(0)),
                            i32(2 * threadsOfWarpgroup),
                            NVVM::BarrierReductionAttr(), Value());
  });
}

void RoleLowering::emitRole(unsigned role, bool isAlone) {
  OpBuilder::InsertionGuard guard(b);
  Block &body = roles.getRoles()[role].front();
  auto inside = [&](Value condition) {
    auto choice = scf::IfOp::create(b, loc, condition);
    b.setInsertionPointToStart(choice.thenBlock());
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, predicate, x, i32(y));
  };
  int64_t warps = roles.getNumWarps(role), end = roles.getEndWarp(role);
  if (!isAlone) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value warp = uniform(
        toI32(arith::DivUIOp::create(b, loc, thread, index(threadsOfWarp))));
    if (end % warpsOfWarpgroup == 0) {
      // The last warps of their warpgroup.
      warp = arith::SubIOp::create(b, loc, warp, i32(end));
      inside(compare(arith::CmpIPredicate::sge, warp, -warps));
    } else if (warps == 1) {
      inside(compare(arith::CmpIPredicate::eq, warp, end - 1));
    } else {
      warp = arith::SubIOp::create(b, loc, warp, i32(end - warps));
      inside(compare(arith::CmpIPredicate::ult, warp, warps));
    }
  }
  // One thread starts all copies. ptxas knows of one that its warp has
  // elected that it is alone, and keeps what it computes in uniform registers.
  if (areOfOneThread[role])
    inside(NVVM::ElectSyncOp::create(b, loc, b.getI1Type(), Value()));
  b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(),
                                                body.getOperations());
}

void RoleLowering::separateRoles() {
  OpBuilder::InsertionGuard guard(b);
  int64_t most = 0;
  for (int64_t registers : roles.getRegisters())
    most = std::max(most, registers);
  int64_t atStart = getStartRegisters(getMachineOfKernels(kernel),
                                      roles.getNumWarpgroups() - 1, ctasPerSm);
  // Groups of roles that share a warpgroup.
  for (unsigned role = 0; role < roles.getNumRoles();) {
    int64_t endOfGroup =
        llvm::alignTo(roles.getEndWarp(role), warpsOfWarpgroup);
    unsigned next = role + 1;
    while (next < roles.getNumRoles() && roles.getFirstWarp(next) < endOfGroup)
      ++next;
    bool isFirst = role == 0, isLast = next == roles.getNumRoles();
    Block *rest = nullptr;
    if (!isLast) {
      Value isOfGroup =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, warpgroup(),
                                i32(endOfGroup / warpsOfWarpgroup));
      auto choice =
          scf::IfOp::create(b, loc, isOfGroup, /*withElseRegion=*/true);
      rest = choice.elseBlock();
      b.setInsertionPoint(choice.thenBlock()->getTerminator());
    }
    int64_t registers = roles.getNumRegisters(role);
    bool gets = registers == most || registers > atStart;
    if (!isFirst || !isLast)
      NVVM::SetMaxRegisterOp::create(
          b, loc, registers,
          gets ? NVVM::SetMaxRegisterAction::increase
               : NVVM::SetMaxRegisterAction::decrease);
    bool isAlone =
        next == role + 1 && roles.getNumWarps(role) % warpsOfWarpgroup == 0;
    for (; role < next; ++role)
      emitRole(role, isAlone);
    if (rest)
      b.setInsertionPoint(rest->getTerminator());
  }
}

void RoleLowering::lower(Operation *op) {
  b.setInsertionPoint(op);
  loc = op->getLoc();
  TypeSwitch<Operation *>(op)
      .Case([&](RingAcquireOp op) { lowerAcquire(op); })
      .Case([&](CopyAsyncOp op) { lowerCopy(op); })
      .Case([&](RingPutOp op) { lowerPut(op); })
      .Case<RingWaitOp, RingPeekOp>([&](RingOpInterface op) { lowerWait(op); })
      .Case([&](RingReleaseOp op) { lowerRelease(op); })
      .Case([&](RingCheckFiniteOp op) { lowerCheckFinite(op); })
      .Case([&](RingMakeFiniteOp op) { lowerMakeFinite(op); })
      .Case([&](RingIsFiniteOp op) { lowerIsFinite(op); })
      .Case([&](RingCopyFiniteOp op) { lowerCopyFinite(op); })
      .Case([&](StoreBulkOp op) { lowerStore(op); })
      .Case([&](AddInOrderOp op) { lowerAddInOrder(op); })
      .Case([&](ClearOp op) { lowerClear(op); })
      .Default([&](Operation *op) { lowerPingPong(op); });
  // Threads write the zeros.
  if (!isa<ClearOp>(op))
    op->erase();
}

void RoleLowering::run(ArrayRef<gpu::LaunchFuncOp> launches) {
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    areOfOneThread.push_back(roles.isOfOneThread(role));
  roles.walk([&](ClaimOp claim) { claims.push_back(claim); });
  joined = findJoinedRings(roles);
  kernel.walk(
      [&](RingOp ring) { numFullBarriers[ring] = ring.getNumFullBarriers(); });
  bool alternates = getSchedule(kernel).alternatesTiles();
  kernel.walk([&](RingOp ring) {
    if (arrivesByPanels(ring) && !joined.contains(ring))
      ofPanels.insert(ring);
    // Other kernels were not timed without the fence.
    bool areLoaded =
        alternates && llvm::all_of(ring->getUsers(), [](Operation *user) {
          return !isa<RingWaitOp, RingPeekOp>(user) ||
                 (!user->use_empty() &&
                  llvm::all_of(user->getUsers(), llvm::IsaPred<LoadOp>));
        });
    if (areLoaded)
      withoutFence.insert(ring);
  });
  roles.walk([&](RingWaitOp wait) {
    if (roles.addsInOrder(roles.getRoleOf(wait)))
      withoutFence.insert(wait.getRing().getDefiningOp<RingOp>());
  });
  initializeBarriers();
  for (ClaimOp claim : claims)
    lowerClaim(claim);
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    if (roles.alternates(role) && roles.getNumWarps(role) > 1)
      alternate(role);
  SmallVector<Operation *> ops;
  roles.walk([&](Operation *op) {
    if (isa<RingOpInterface, PingPongWaitOp, PingPongArriveOp, ClearOp,
            StoreBulkOp, AddInOrderOp>(op))
      ops.push_back(op);
  });
  roles.walk([&](RingWaitOp wait) {
    RingReleaseOp release = wait.getRelease();
    for (Operation *user : wait->getUsers()) {
      if (isa<StoreBulkOp>(user))
        reusedByStores[user] = {wait.getRing().getDefiningOp<RingOp>(),
                                wait.getStep()};
      if (release && isa<StoreBulkOp>(user))
        afterStores.insert(release);
    }
  });
  std::optional<unsigned> storing, ofPingPong;
  llvm::SmallDenseSet<Value> checked;
  bool addsInOrder = false;
  for (Operation *op : ops) {
    if (auto check = dyn_cast<RingCheckFiniteOp>(op))
      checked.insert(check.getRing());
    if (auto add = dyn_cast<AddInOrderOp>(op)) {
      addsInOrder = true;
      awaitRank(add);
    }
    if (isa<StoreBulkOp>(op))
      storing = roles.getRoleOf(op);
    if (isa<PingPongWaitOp>(op))
      ofPingPong = roles.getRoleOf(op);
  }
  arrivesInBranch = checked.size() > 1 && !addsInOrder;
  for (Operation *op : ops)
    lower(op);
  loc = roles.getLoc();
  if (ofPingPong)
    startAndEndPingPong(*ofPingPong);
  // A block's shared memory lasts until its threads end.
  if (storing) {
    b.setInsertionPointToEnd(&roles.getRoles()[*storing].front());
    waitForStores();
  }
  b.setInsertionPoint(roles);
  separateRoles();

  kernel->setAttr("nvvm.minctasm", b.getI32IntegerAttr(ctasPerSm));
  for (gpu::LaunchFuncOp launch : launches)
    addTensorMaps(launch);
  roles.erase();
  SmallVector<RingOp> rings(kernel.getBody().front().getOps<RingOp>());
  for (RingOp ring : rings)
    ring.erase();
}

namespace {
struct LowerTileRoles : flash::impl::LowerTileRolesBase<LowerTileRoles> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    llvm::MapVector<Operation *, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (Operation *kernel =
              symbols.lookupNearestSymbolFrom(launch, launch.getKernelAttr()))
        launches[kernel].push_back(launch);
    });
    SmallVector<WarpSpecializeOp> all;
    getOperation().walk([&](WarpSpecializeOp roles) { all.push_back(roles); });
    for (WarpSpecializeOp roles : all) {
      auto kernel = roles->getParentOfType<gpu::GPUFuncOp>();
      if (!kernel) {
        roles.emitOpError("is outside of any kernel; it must be in a gpu.func");
        return signalPassFailure();
      }
      WalkResult walk = kernel.walk([](RingOp ring) {
        if (ring.getOffset() && ring.getBarriers())
          return WalkResult::advance();
        ring.emitOpError("has no offset; run tile-allocate-smem first");
        return WalkResult::interrupt();
      });
      // What is added goes from where the ring's slot lies.
      WalkResult adds = roles.walk([](AddInOrderOp add) {
        if (isa_and_present<RingWaitOp, SmemViewOp>(
                add.getTile().getDefiningOp()))
          return WalkResult::advance();
        add.emitOpError("must add a tile that tile.ring.wait or "
                        "tile.smem_view gives to a role");
        return WalkResult::interrupt();
      });
      if (walk.wasInterrupted() || adds.wasInterrupted())
        return signalPassFailure();
      RoleLowering(kernel, roles).run(launches[kernel]);
    }
  }
};
} // namespace
