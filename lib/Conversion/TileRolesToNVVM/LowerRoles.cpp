//===- LowerRoles.cpp - Roles and rings as barriers and bulk copies -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinedRings.h"
#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

namespace flash {
#define GEN_PASS_DEF_LOWERTILEROLES
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// How long a thread may sleep at a barrier before it looks again, in
/// nanoseconds.
static constexpr int64_t barrierTicks = 10000000;

namespace {
/// The rows that one bulk copy takes: along the last dimension before the
/// columns, and along the one before that.
struct BoxRows {
  int64_t outer, inner;
};

/// Those of a copy of whole tiles of `type`, whose rows may be packed. What is
/// left of a tile then, less than `packed` rows, no box has.
BoxRows getBoxRows(SmemType type, std::optional<int64_t> packed) {
  if (!packed || *packed > type.getRows())
    return {1, type.getRows()};
  return {type.getRows() / *packed, *packed};
}

/// A tensor map of a kernel: memory, the tiles that are copied from it, and the
/// rows of a copy.
using MapKey = std::tuple<BlockArgument, SmemType, int64_t, int64_t>;

/// Lowers the roles of one kernel.
class RoleLowering {
public:
  RoleLowering(gpu::GPUFuncOp kernel, WarpSpecializeOp roles)
      : kernel(kernel), roles(roles), b(roles), loc(roles.getLoc()),
        ctasPerSm(getCtasPerSm(kernel)) {}

  void run(ArrayRef<gpu::LaunchFuncOp> launches);

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value isEqual(Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, index(y));
  }
  Value sharedPointer(Value offset);
  /// The number of a step among all that fill the stages of the ring one after
  /// the other: that of the step itself, or of a ring with row stages, of its
  /// rows of a warpgroup.
  Value getFillNumber(RingOp ring, Value step, Value warpgroup);
  /// Of a ring with row stages, how many warpgroups have rows.
  int64_t getNumOwners(RingOp ring);
  /// How many arrivals fill a stage and free it, each of a warp that puts rows
  /// into it, reads or checks it; or of a copy.
  int64_t getNumWriters(RingOp ring);
  int64_t getNumReaders(RingOp ring);
  int64_t getNumCheckWarps(RingOp ring);
  /// Whether the role of the claim has the thread that claims tiles: the one
  /// that copies.
  bool claimsItself(ClaimOp op);
  /// A byte of the place through which the step's number is passed on.
  Value getPlaceOfClaim(ClaimOp op, Value step, int64_t byte);
  Value getOwnFillNumber(RingOp ring, Value step);
  /// The barrier of the stage that is filled.
  enum class Of { Full, Empty, Checked };
  Value getBarrier(RingOp ring, Value fill, Of kind);
  /// Where a warp of the non-finite check leaves what it found of a step.
  Value getCheckResult(RingOp ring, Value step, Value warp);
  /// The parity of the phase of its stage's barriers, or of those of places.
  Value parity(RingOp ring, Value fill) {
    return parity(ring.getNumStages(), fill);
  }
  Value parity(int64_t numPlaces, Value fill);
  Value stageOffset(RingOp ring, Value fill);
  void waitAt(Value barrier, Value parity);
  /// The i32, which is the same for all threads of a warp. That a shuffle says
  /// so lets ptxas see that branches are taken by whole warps, inside of which
  /// it keeps addresses and descriptors in one register for a warp.
  Value uniform(Value value);

  /// Fills stages with zeros of whose rows copies leave some: what lies there
  /// would change votes, and with them bits, from run to run.
  void clearUncopiedRows();
  void initializeBarriers();
  void acquire(RingOp ring, Value fill);
  void lowerAcquire(RingAcquireOp op);
  void lowerCopy(CopyAsyncOp op);
  /// Fills a stage, or a part of it, from the row and column that come last in
  /// `indices` on.
  void copy(RingOp ring, Value source, ArrayRef<Value> indices, Value fill,
            std::optional<int64_t> packed = std::nullopt, Value part = Value());
  void lowerPut(RingPutOp op);
  template <typename OpTy> void lowerWait(OpTy op);
  void lowerClear(ClearOp op);
  void lowerCheckFinite(RingCheckFiniteOp op);
  void lowerMakeFinite(RingMakeFiniteOp op);
  void lowerIsFinite(RingIsFiniteOp op);
  void arrive(Value barrier);
  /// Arrives once for each warp, behind what all of its threads have done. No
  /// warp waits for the others of its warpgroup.
  void arriveAsWarp(Value barrier);
  void lowerRelease(RingReleaseOp op);
  /// The number of the step's tile, which the thread that copies claims, and
  /// all others are told.
  Value emitClaim(ClaimOp op, Value step);
  void lowerPingPong(Operation *op);
  void lowerStore(StoreBulkOp op);
  /// The thread that adds waits for its turn first, while the tile is made: an
  /// answer from memory takes longer than one from shared memory.
  void awaitTurn(AddInTurnOp op);
  /// Gives each warp of the role the tiles of its own steps.
  void alternate(unsigned role);
  void lowerAddInTurn(AddInTurnOp op);
  /// Starts to store the warpgroup's rows of the columns from `firstColumn` on,
  /// panels of type `own` in shared memory from `start` on.
  void storePanels(StoreBulkOp op, SmemType own, Value start,
                   int64_t firstColumn);
  /// The threads of a warpgroup meet.
  void meet();
  /// Whether the thread is the first of so many.
  Value isFirstOf(int64_t threads);
  void ifFirstOf(int64_t threads, function_ref<void()> body);
  /// Emits `body` for the thread that speaks for its warpgroup.
  void forLeader(function_ref<void()> body) {
    ifFirstOf(threadsOfWarpgroup, body);
  }
  /// Orders what a thread has written to shared memory before bulk copies and
  /// products that start behind the next barrier.
  void fenceForBulkCopies();
  /// Waits until the leader's bulk stores have read shared memory.
  void waitForStores();
  /// Lets the first warpgroup go on at first, and has it wait in the end for
  /// the arrival that is left.
  void startAndEndPingPong(unsigned role);
  Value warpgroup();
  Value pingPongBarrier(Value warpgroup);
  /// The tensor map with which `rows` of tiles like `stage` are copied.
  Value getTensorMap(Value memory, SmemType stage, BoxRows rows);
  void addTensorMaps(gpu::LaunchFuncOp launch);
  /// Puts what a role does where only its warps, of those that come to the
  /// builder's place, carry it out; `isAlone` if no others come there.
  void emitRole(unsigned role, bool isAlone);
  /// The choices of warps between roles.
  void separateRoles();

  gpu::GPUFuncOp kernel;
  bool arrivesInBranch = false;
  WarpSpecializeOp roles;
  JoinedRings joined;
  /// Of each role, whether one thread carries it out.
  SmallVector<bool> areOfOneThread;
  /// Rings of which a role adds the tiles in turn.
  llvm::SmallDenseSet<RingOp> added;
  llvm::SmallDenseMap<RingOp, int64_t> numFullBarriers;
  /// Those of each role.
  SmallVector<ClaimOp> claims;
  OpBuilder b;
  Location loc;
  int64_t ctasPerSm;
  llvm::MapVector<MapKey, Value> maps;
  /// The releases of tiles whose stages bulk stores read.
  llvm::SmallPtrSet<Operation *, 4> afterStores;
  /// The rings and steps whose stages results are stored in.
  llvm::SmallDenseMap<Operation *, std::pair<RingOp, Value>> reusedByStores;
};
} // namespace

Value RoleLowering::sharedPointer(Value offset) {
  Type type = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  Value base = nvx::SharedMemoryOp::create(b, loc, type);
  return LLVM::GEPOp::create(b, loc, type, b.getI8Type(), base,
                             ArrayRef<LLVM::GEPArg>{toI32(offset)});
}

Value RoleLowering::getFillNumber(RingOp ring, Value step, Value warpgroup) {
  if (!ring.getRowStages())
    return step;
  Value first = arith::MulIOp::create(b, loc, step, index(getNumOwners(ring)));
  return arith::AddIOp::create(b, loc, first, warpgroup);
}

int64_t RoleLowering::getNumOwners(RingOp ring) {
  return ring.getResult().getType().getTile().getRows() / rowsOfWarpgroup;
}

int64_t RoleLowering::getNumCheckWarps(RingOp ring) {
  int64_t warps = 0;
  for (Operation *user : ring->getUsers())
    if (isa<RingCheckFiniteOp, RingMakeFiniteOp>(user))
      warps = roles.getNumWarps(roles.getRoleOf(user));
  return warps;
}

int64_t RoleLowering::getNumReaders(RingOp ring) {
  // The rows of a row stage are of one warpgroup.
  if (ring.getRowStages())
    return warpsOfWarpgroup;
  llvm::SmallSet<unsigned, 2> readers;
  for (Operation *user : ring->getUsers())
    if (isa<RingReleaseOp>(user))
      readers.insert(roles.getRoleOf(user));
  int64_t arrivals = getNumCheckWarps(ring);
  // Of warps that alternate one has the stage.
  for (unsigned role : readers)
    arrivals += roles.alternates(role) ? 1 : roles.getNumWarps(role);
  return arrivals;
}

bool RoleLowering::claimsItself(ClaimOp op) {
  Region &role = roles.getRoles()[roles.getRoleOf(op)];
  return role.walk([](CopyAsyncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

Value RoleLowering::getPlaceOfClaim(ClaimOp op, Value step, int64_t byte) {
  Value place = arith::RemUIOp::create(b, loc, step, index(ClaimOp::numPlaces));
  Value offset =
      arith::MulIOp::create(b, loc, place, index(ClaimOp::bytesOfPlace));
  return sharedPointer(
      arith::AddIOp::create(b, loc, offset, index(*op.getOffset() + byte)));
}

int64_t RoleLowering::getNumWriters(RingOp ring) {
  for (Operation *user : ring->getUsers())
    if (isa<RingPutOp>(user))
      return roles.getNumWarps(roles.getRoleOf(user));
  return ring.getNumCopies() +
         llvm::count(llvm::make_second_range(joined), ring);
}

Value RoleLowering::getOwnFillNumber(RingOp ring, Value step) {
  if (!ring.getRowStages())
    return step;
  Value own = arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup());
  return getFillNumber(ring, step, own);
}

Value RoleLowering::getBarrier(RingOp ring, Value fill, Of kind) {
  if (RingOp before = joined.lookup(ring); before && kind == Of::Full)
    ring = before;
  int64_t stages = ring.getNumStages(),
          places = kind == Of::Full ? numFullBarriers.lookup(ring) : stages;
  Value place = arith::RemUIOp::create(b, loc, fill, index(places));
  // Those of a second warp are behind the empty ones.
  if (places > stages)
    place = arith::AddIOp::create(
        b, loc, place,
        arith::MulIOp::create(
            b, loc, arith::DivUIOp::create(b, loc, place, index(stages)),
            index(stages)));
  Value offset = arith::MulIOp::create(b, loc, place, index(barrierBytes));
  int64_t first =
      *ring.getBarriers() + static_cast<int64_t>(kind) * stages * barrierBytes;
  return sharedPointer(arith::AddIOp::create(b, loc, offset, index(first)));
}

Value RoleLowering::getCheckResult(RingOp ring, Value step, Value warp) {
  constexpr int64_t bytesOfStage = 2 * barrierBytes, bytesOfResult = 4;
  int64_t stages = ring.getResult().getType().getStages();
  Value stage = arith::RemUIOp::create(b, loc, step, index(stages));
  Value offset = arith::MulIOp::create(b, loc, stage, index(bytesOfStage));
  // Behind three barriers for each stage.
  offset = arith::AddIOp::create(
      b, loc, offset, index(*ring.getBarriers() + 3 * stages * barrierBytes));
  Value ofWarp = arith::MulIOp::create(b, loc, warp, index(bytesOfResult));
  return sharedPointer(arith::AddIOp::create(b, loc, offset, ofWarp));
}

Value RoleLowering::parity(int64_t numPlaces, Value fill) {
  Value phase = arith::DivUIOp::create(b, loc, fill, index(numPlaces));
  return toI32(arith::RemUIOp::create(b, loc, phase, index(2)));
}

Value RoleLowering::stageOffset(RingOp ring, Value fill) {
  Value stage =
      arith::RemUIOp::create(b, loc, fill, index(ring.getNumStages()));
  Value distance =
      arith::MulIOp::create(b, loc, stage, index(ring.getStageDistance()));
  return arith::AddIOp::create(b, loc, distance, index(*ring.getOffset()));
}

void RoleLowering::waitAt(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(b, loc, barrier, parity,
                                        i32(barrierTicks));
}

void RoleLowering::clearUncopiedRows() {
  bool clears = false;
  kernel.walk([&](RingOp ring) {
    SmemType stage = ring.getStageType();
    bool isWhole = llvm::all_of(ring->getUsers(), [&](Operation *user) {
      auto copy = dyn_cast<CopyAsyncOp>(user);
      BoxRows rows = getBoxRows(stage, copy ? copy.getPacked() : std::nullopt);
      return rows.outer * rows.inner == stage.getRows();
    });
    if (isWhole)
      return;
    for (int64_t number = 0; number < ring.getNumStages(); ++number) {
      Value view =
          SmemViewOp::create(b, loc, stage, stageOffset(ring, index(number)));
      ClearOp::create(b, loc, view, roles.getNumThreads() / threadsOfWarp);
    }
    clears = true;
  });
  if (clears)
    fenceForBulkCopies();
}

void RoleLowering::initializeBarriers() {
  clearUncopiedRows();
  Value isFirst =
      isEqual(gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x), 0);
  auto choice = scf::IfOp::create(b, loc, isFirst);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    kernel.walk([&](RingOp ring) {
      SmallVector<std::pair<Of, int64_t>> arrivals;
      if (!joined.contains(ring))
        arrivals.push_back({Of::Full, getNumWriters(ring)});
      arrivals.push_back({Of::Empty, getNumReaders(ring)});
      if (ring.getChecked() || ring.getFinite())
        arrivals.push_back({Of::Checked, getNumCheckWarps(ring)});
      for (int64_t stage = 0; stage < numFullBarriers.lookup(ring); ++stage)
        for (auto [kind, count] : arrivals)
          if (kind == Of::Full || stage < ring.getNumStages())
            NVVM::MBarrierInitOp::create(b, loc,
                                         getBarrier(ring, index(stage), kind),
                                         i32(count), Value());
    });
    int64_t told = 0;
    for (ClaimOp claim : claims)
      if (!claimsItself(claim))
        told += roles.getNumWarps(roles.getRoleOf(claim));
    for (int64_t place = 0; told > 0 && place < ClaimOp::numPlaces; ++place)
      for (auto [byte, count] : {std::pair(0l, 1l), {barrierBytes, told}})
        NVVM::MBarrierInitOp::create(
            b, loc, getPlaceOfClaim(claims.front(), index(place), byte),
            i32(count), Value());
    NVVM::FenceMbarrierInitOp::create(b, loc);
  }
  gpu::BarrierOp::create(b, loc);
}

void RoleLowering::acquire(RingOp ring, Value fill) {
  // The stages are free at first: as if a phase before had ended.
  Value before = arith::XOrIOp::create(b, loc, parity(ring, fill), i32(1));
  waitAt(getBarrier(ring, fill, Of::Empty), before);
}

void RoleLowering::lowerAcquire(RingAcquireOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  // The rows of one warpgroup need not wait for the stage of another's.
  if (!ring.getRowStages())
    acquire(ring, op.getStep());
}

Value RoleLowering::getTensorMap(Value source, SmemType stage, BoxRows rows) {
  auto memory = cast<BlockArgument>(source);
  Value &map = maps[{memory, stage, rows.outer, rows.inner}];
  if (map)
    return map;
  SmallVector<int64_t> shape = {rows.inner, stage.getPanelColumns()};
  if (rows.outer > 1)
    shape.insert(shape.begin(), rows.outer);
  auto box = MemRefType::get(
      shape, stage.getElementType(), MemRefLayoutAttrInterface(),
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup));
  auto swizzle =
      stage.getSwizzle() == 128  ? nvgpu::TensorMapSwizzleKind::SWIZZLE_128B
      : stage.getSwizzle() == 64 ? nvgpu::TensorMapSwizzleKind::SWIZZLE_64B
                                 : nvgpu::TensorMapSwizzleKind::SWIZZLE_32B;
  auto type = nvgpu::TensorMapDescriptorType::get(
      b.getContext(), box, swizzle, nvgpu::TensorMapL2PromoKind::L2PROMO_256B,
      nvgpu::TensorMapOOBKind::OOB_ZERO,
      nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE);
  Block &entry = kernel.getBody().front();
  Value argument = entry.addArgument(type, memory.getLoc());
  kernel.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&entry);
  map = UnrealizedConversionCastOp::create(
            b, loc, LLVM::LLVMPointerType::get(b.getContext()), argument)
            .getResult(0);
  return map;
}

void RoleLowering::lowerCopy(CopyAsyncOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  SmallVector<Value> indices(op.getIndices());
  if (static_cast<int64_t>(indices.size()) < op.getSource().getType().getRank())
    indices.push_back(index(0));
  if (!ring.getRowStages())
    return copy(ring, op.getSource(), indices, op.getStep(), op.getPacked(),
                op.getPart());
  for (int64_t warpgroup = 0; warpgroup < getNumOwners(ring); ++warpgroup) {
    Value fill = getFillNumber(ring, op.getStep(), index(warpgroup));
    acquire(ring, fill);
    SmallVector<Value> own = indices;
    Value &row = *std::prev(own.end(), 2);
    row =
        arith::AddIOp::create(b, loc, row, index(warpgroup * rowsOfWarpgroup));
    copy(ring, op.getSource(), own, fill);
  }
}

void RoleLowering::copy(RingOp ring, Value source, ArrayRef<Value> indices,
                        Value fill, std::optional<int64_t> packed, Value part) {
  SmemType stage = ring.getStageType(), filled = stage;
  if (part)
    filled =
        SmemType::get(b.getContext(), ring.getRowsOfCopy(), stage.getColumns(),
                      stage.getElementType(), stage.getSwizzle());
  auto getStart = [&] {
    Value start = stageOffset(ring, fill);
    if (!part)
      return start;
    Value rows =
        arith::MulIOp::create(b, loc, part, index(filled.getPanelBytes()));
    return arith::AddIOp::create(b, loc, start, rows).getResult();
  };
  BoxRows rows = getBoxRows(filled, packed);
  Value map = getTensorMap(source, filled, rows);
  Value full = getBarrier(ring, fill, Of::Full);
  // Parts of a box outside of the memory count as copied.
  int64_t bytes =
      filled.getNumBytes() / filled.getRows() * rows.outer * rows.inner;
  NVVM::MBarrierArriveExpectTxOp::create(b, loc, TypeRange(), full, i32(bytes),
                                         NVVM::MemScopeKind::CTA,
                                         /*relaxed=*/false, Value());
  SmallVector<Value> coordinates = {Value()};
  for (Value position : llvm::reverse(indices.drop_back()))
    coordinates.push_back(toI32(position));
  Type cluster = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  for (int64_t panel = 0; panel < stage.getNumPanels(); ++panel) {
    coordinates.front() = toI32(arith::AddIOp::create(
        b, loc, indices.back(), index(panel * stage.getPanelColumns())));
    Value offset = arith::AddIOp::create(b, loc, getStart(),
                                         index(panel * stage.getPanelBytes()));
    Value to =
        LLVM::AddrSpaceCastOp::create(b, loc, cluster, sharedPointer(offset));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, loc, to, map, coordinates, full, /*im2colOffsets=*/ValueRange(),
        /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
        NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false, /*group=*/nullptr,
        /*predicate=*/Value());
  }
}

void RoleLowering::lowerPut(RingPutOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  Value view = SmemViewOp::create(b, loc, ring.getStageType(),
                                  stageOffset(ring, op.getStep()));
  bool alternates = PutOp::canAlternate(
      cast<RankedTensorType>(op.getX().getType()), ring.getStageType());
  PutOp::create(b, loc, op.getX(), view, b.getI64IntegerAttr(0),
                /*by_pairs=*/UnitAttr(),
                alternates ? b.getUnitAttr() : UnitAttr());
  // Products read it, or bulk copies of a thread that has the fence.
  if (!added.contains(ring))
    fenceForBulkCopies();
  arriveAsWarp(getBarrier(ring, op.getStep(), Of::Full));
}

template <typename OpTy> void RoleLowering::lowerWait(OpTy op) {
  auto ring = op.getRing().template getDefiningOp<RingOp>();
  Value fill = getOwnFillNumber(ring, op.getStep());
  // The ring that it is joined with has been waited for.
  if (!joined.contains(ring))
    waitAt(getBarrier(ring, fill, ring.getFinite() ? Of::Checked : Of::Full),
           parity(numFullBarriers.lookup(ring), fill));
  op.replaceAllUsesWith(
      SmemViewOp::create(b, loc, ring.getStageType(), stageOffset(ring, fill))
          .getResult());
}

void RoleLowering::lowerRelease(RingReleaseOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  if (afterStores.contains(op))
    waitForStores();
  Value fill = getOwnFillNumber(ring, op.getStep());
  Value empty = getBarrier(ring, fill, Of::Empty);
  if (areOfOneThread[roles.getRoleOf(op)])
    arrive(empty);
  else
    arriveAsWarp(empty);
}

Value RoleLowering::emitClaim(ClaimOp op, Value step) {
  Value full = getPlaceOfClaim(op, step, 0),
        empty = getPlaceOfClaim(op, step, barrierBytes),
        place = getPlaceOfClaim(op, step, 2 * barrierBytes);
  Value phase = parity(ClaimOp::numPlaces, step);
  Value number;
  // The thread that copies comes here as soon as the last copies of a tile have
  // stages, and so before the others.
  if (claimsItself(op)) {
    waitAt(empty, arith::XOrIOp::create(b, loc, phase, i32(1)));
    number = CountUpOp::create(b, loc, b.getI32Type(), op.getCounts(),
                               op.getIndices());
    LLVM::StoreOp::create(b, loc, number, place);
    arrive(full);
  } else {
    waitAt(full, phase);
    number = LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
    if (areOfOneThread[roles.getRoleOf(op)]) {
      arrive(empty);
    } else {
      number = uniform(number);
      arriveAsWarp(empty);
    }
  }
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

void RoleLowering::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, Value(),
                                 NVVM::MemScopeKind::CTA, /*relaxed=*/false);
}

/// Without a branch: where one ends together with a choice of the program,
/// ptxas takes all of that for divergent, and what is the same for a warp, such
/// as the descriptors of products, goes through vector registers. But kernels
/// that check several rings and add nothing in turn have no register for the
/// predicate: with it, ptxas spills gradients of keys at D = 128.
void RoleLowering::arriveAsWarp(Value barrier) {
  NVVM::SyncWarpOp::create(b, loc, i32(-1));
  if (arrivesInBranch)
    ifFirstOf(threadsOfWarp, [&] { arrive(barrier); });
  else
    NVVM::InlinePtxOp::create(b, loc, TypeRange(), /*readOnlyArgs=*/barrier,
                              /*readWriteArgs=*/ValueRange(),
                              "mbarrier.arrive.shared::cta.b64 _, [$0];",
                              isFirstOf(threadsOfWarp));
}

void RoleLowering::lowerCheckFinite(RingCheckFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  waitAt(getBarrier(ring, op.getStep(), Of::Full), parity(ring, op.getStep()));
  Value isFinite;
  if (!op.getUnchecked()) {
    Value tile =
        SmemViewOp::create(b, loc, ring.getResult().getType().getTile(),
                           stageOffset(ring, op.getStep()));
    isFinite = IsFiniteOp::create(b, loc, b.getI1Type(), tile,
                                  b.getI64IntegerAttr(getNumCheckWarps(ring)));
  }
  // The first lane has what all have found.
  auto choice = scf::IfOp::create(b, loc, isFirstOf(threadsOfWarp));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  if (isFinite) {
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value warp = arith::DivUIOp::create(b, loc, thread, index(threadsOfWarp));
    int64_t first = roles.getFirstWarp(roles.getRoleOf(op));
    warp = arith::SubIOp::create(b, loc, warp, index(first));
    LLVM::StoreOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, b.getI32Type(), isFinite),
        getCheckResult(ring, op.getStep(), warp));
  }
  arrive(getBarrier(ring, op.getStep(), Of::Checked));
  arrive(getBarrier(ring, op.getStep(), Of::Empty));
}

void RoleLowering::lowerMakeFinite(RingMakeFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  Value step = op.getStep();
  waitAt(getBarrier(ring, step, Of::Full), parity(ring, step));
  Value tile =
      SmemViewOp::create(b, loc, ring.getStageType(), stageOffset(ring, step));
  IntegerAttr warps = b.getI64IntegerAttr(getNumCheckWarps(ring));
  // Hardly ever is there anything to do, and reading is fast.
  Value isFinite = IsFiniteOp::create(b, loc, b.getI1Type(), tile, warps);
  auto choice = scf::IfOp::create(b, loc, isFinite, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.elseBlock());
    MakeFiniteOp::create(b, loc, tile, warps);
    // Products read it.
    fenceForBulkCopies();
  }
  arriveAsWarp(getBarrier(ring, step, Of::Checked));
  arriveAsWarp(getBarrier(ring, step, Of::Empty));
}

void RoleLowering::lowerIsFinite(RingIsFiniteOp op) {
  auto ring = op.getRing().getDefiningOp<RingOp>();
  waitAt(getBarrier(ring, op.getStep(), Of::Checked),
         parity(ring, op.getStep()));
  Value all;
  for (int64_t warp = 0; warp < getNumCheckWarps(ring); ++warp) {
    Value result =
        LLVM::LoadOp::create(b, loc, b.getI32Type(),
                             getCheckResult(ring, op.getStep(), index(warp)));
    all = all ? arith::AndIOp::create(b, loc, all, result).getResult() : result;
  }
  op.replaceAllUsesWith(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                              uniform(all), i32(0))
                            .getResult());
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

void RoleLowering::fenceForBulkCopies() {
  NVVM::FenceProxyOp::create(
      b, loc, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

void RoleLowering::waitForStores() {
  forLeader([&] {
    NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                         /*read=*/b.getUnitAttr());
  });
}

void RoleLowering::lowerClear(ClearOp op) {
  Value threads = i32(op.getWarps() * 32);
  auto meetAll = [&] {
    NVVM::BarrierOp::create(b, loc, TypeRange(), i32(consumersBarrier), threads,
                            NVVM::BarrierReductionAttr(), Value());
  };
  meetAll();
  b.setInsertionPointAfter(op);
  fenceForBulkCopies();
  meetAll();
}

void RoleLowering::storePanels(StoreBulkOp op, SmemType own, Value start,
                               int64_t firstColumn) {
  Value map = getTensorMap(op.getDestination(), own, {1, own.getRows()});
  Value firstRow = arith::MulIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup()),
      index(rowsOfWarpgroup));
  SmallVector<Value> coordinates = {Value()};
  for (auto [i, position] : llvm::enumerate(llvm::reverse(op.getIndices())))
    coordinates.push_back(toI32(
        i == 0 ? arith::AddIOp::create(b, loc, position, firstRow).getResult()
               : position));
  int64_t columns = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  int64_t panelBytes = op.getStageType().getPanelBytes();
  for (int64_t panel = 0; panel < own.getNumPanels(); ++panel) {
    int64_t column = firstColumn + panel * own.getPanelColumns();
    if (column >= columns)
      break;
    coordinates.front() = i32(column);
    Value from = sharedPointer(
        arith::AddIOp::create(b, loc, start, index(panel * panelBytes)));
    if (op.getAdd())
      NVVM::CpAsyncBulkTensorReduceOp::create(
          b, loc, map, from, NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE,
          coordinates, /*l2CacheHint=*/Value());
    else
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          b, loc, map, from, coordinates, /*l2CacheHint=*/Value(),
          NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b, loc);
}

void RoleLowering::lowerStore(StoreBulkOp op) {
  SmemType stage = op.getStageType();
  // A warpgroup stores its rows by itself.
  SmemType own =
      SmemType::get(b.getContext(), rowsOfWarpgroup, stage.getColumns(),
                    stage.getElementType(), stage.getSwizzle());
  auto [ring, step] = reusedByStores.lookup(op);
  if (op.getReused() && ring.getRowStages()) {
    // All warps have ended the products that read the tile.
    meet();
    // Computed again: to keep it across the loops would take a register.
    Value offset = stageOffset(ring, getOwnFillNumber(ring, step));
    PutOp::create(b, loc, op.getX(), SmemViewOp::create(b, loc, stage, offset),
                  b.getI64IntegerAttr(0), /*by_pairs=*/UnitAttr(),
                  /*alternate=*/UnitAttr());
    fenceForBulkCopies();
    meet();
    forLeader([&] { storePanels(op, own, offset, /*firstColumn=*/0); });
    return;
  }
  int64_t offset = op.getReused() ? *ring.getOffset() : *op.getOffset();
  Value view = SmemViewOp::create(b, loc, stage, index(offset));
  Value firstRow = arith::MulIOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, b.getIndexType(), warpgroup()),
      index(rowsOfWarpgroup));
  Value start = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(b, loc, firstRow, index(stage.getSwizzle())),
      index(offset));
  int64_t columns = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
  for (int64_t first = 0; first < columns; first += stage.getColumns()) {
    if (!op.getReused())
      waitForStores();
    meet();
    PutOp::create(b, loc, op.getX(), view, b.getI64IntegerAttr(first),
                  /*by_pairs=*/UnitAttr(), /*alternate=*/UnitAttr());
    fenceForBulkCopies();
    meet();
    forLeader([&] { storePanels(op, own, start, first); });
  }
}

void RoleLowering::alternate(unsigned role) {
  int64_t warps = roles.getNumWarps(role);
  SmallVector<RingWaitOp> waits;
  roles.getRoles()[role].walk([&](RingWaitOp wait) { waits.push_back(wait); });
  for (RingWaitOp wait : waits) {
    loc = wait.getLoc();
    // All that is done with the stage, where the addition has its operands.
    SmallVector<Operation *> ops = {wait};
    llvm::append_range(ops, wait->getUsers());
    ops.push_back(wait.getRelease());
    b.setInsertionPoint(ops[1]);
    Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    Value warp = arith::SubIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, thread, index(threadsOfWarp)),
        index(roles.getFirstWarp(role)));
    Value turn = arith::RemUIOp::create(b, loc, wait.getStep(), index(warps));
    auto choice = scf::IfOp::create(
        b, loc,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, turn, warp));
    for (Operation *op : ops)
      op->moveBefore(choice.thenBlock()->getTerminator());
  }
}

void RoleLowering::awaitTurn(AddInTurnOp op) {
  Operation *place = op.getTile().getDefiningOp<RingWaitOp>();
  auto isThere = [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    return !definition || definition->getBlock() != op->getBlock() ||
           definition->isBeforeInBlock(place);
  };
  SmallVector<Value> operands(op.getCountIndices());
  operands.push_back(op.getTurn());
  if (!place || place->getBlock() != op->getBlock() ||
      !llvm::all_of(operands, isThere))
    place = op;
  b.setInsertionPoint(place);
  AwaitTurnOp::create(b, op.getLoc(), op.getTurn(), op.getCounts(),
                      op.getCountIndices());
}

void RoleLowering::lowerAddInTurn(AddInTurnOp op) {
  SmemType tile = op.getTile().getType();
  auto view = op.getTile().getDefiningOp<SmemViewOp>();
  Value map = getTensorMap(op.getSums(), tile, {1, tile.getRows()});
  SmallVector<Value> coordinates = {Value()};
  for (Value position : llvm::reverse(op.getIndices()))
    coordinates.push_back(toI32(position));
  auto forPanels = [&](function_ref<void(Value from)> body) {
    for (int64_t panel = 0; panel < tile.getNumPanels(); ++panel) {
      coordinates.front() = i32(panel * tile.getPanelColumns());
      body(sharedPointer(arith::AddIOp::create(
          b, loc, view.getOffset(), index(panel * tile.getPanelBytes()))));
    }
  };
  // Behind the wait for all that have put the tile. Their warps would otherwise
  // wait for the fence of the turn that ends.
  fenceForBulkCopies();
  auto choice = scf::IfOp::create(b, loc, isEqual(op.getTurn(), 0),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    forPanels([&](Value from) {
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          b, loc, map, from, coordinates, /*l2CacheHint=*/Value(),
          NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
    });
    b.setInsertionPointToStart(choice.elseBlock());
    forPanels([&](Value from) {
      NVVM::CpAsyncBulkTensorReduceOp::create(
          b, loc, map, from, NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE,
          coordinates, /*l2CacheHint=*/Value());
    });
  }
  NVVM::CpAsyncBulkCommitGroupOp::create(b, loc);
  // The stage is given back when it has been read. The next turn begins when
  // all is written.
  if (auto release = dyn_cast_if_present<RingReleaseOp>(op->getNextNode())) {
    NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                         /*read=*/b.getUnitAttr());
    b.setInsertionPointAfter(release);
  }
  NVVM::CpAsyncBulkWaitGroupOp::create(b, loc, b.getI32IntegerAttr(0),
                                       /*read=*/UnitAttr());
  EndTurnOp::create(b, loc, op.getTurn(), op.getCounts(), op.getCountIndices());
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

void RoleLowering::addTensorMaps(gpu::LaunchFuncOp launch) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  for (auto &[key, map] : maps) {
    auto [memory, stage, outer, inner] = key;
    Value operand = launch.getKernelOperand(memory.getArgNumber());
    auto type = cast<MemRefType>(operand.getType());
    Value unranked = memref::CastOp::create(
        b, loc,
        UnrankedMemRefType::get(type.getElementType(), type.getMemorySpace()),
        operand);
    SmallVector<Value> box;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t size = d + 1 == type.getRank()   ? stage.getPanelColumns()
                     : d + 2 == type.getRank() ? inner
                     : d + 3 == type.getRank() ? outer
                                               : 1;
      box.push_back(arith::ConstantIndexOp::create(b, loc, size));
    }
    Type mapType = map.getDefiningOp<UnrealizedConversionCastOp>()
                       .getInputs()[0]
                       .getType();
    launch.getKernelOperandsMutable().append(
        nvgpu::TmaCreateDescriptorOp::create(b, loc, mapType, unranked, box)
            .getResult());
  }
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
  int64_t atStart = getStartRegisters(roles.getNumWarpgroups() - 1, ctasPerSm);
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

void RoleLowering::run(ArrayRef<gpu::LaunchFuncOp> launches) {
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    areOfOneThread.push_back(roles.isOfOneThread(role));
  roles.walk([&](ClaimOp claim) { claims.push_back(claim); });
  joined = findJoinedRings(roles);
  kernel.walk(
      [&](RingOp ring) { numFullBarriers[ring] = ring.getNumFullBarriers(); });
  roles.walk([&](RingWaitOp wait) {
    if (roles.addsInTurn(roles.getRoleOf(wait)))
      added.insert(wait.getRing().getDefiningOp<RingOp>());
  });
  initializeBarriers();
  for (ClaimOp claim : claims) {
    loc = claim.getLoc();
    lowerClaimLoop(b, claim,
                   [&](Value step) { return emitClaim(claim, step); });
  }
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    if (roles.alternates(role) && roles.getNumWarps(role) > 1)
      alternate(role);
  SmallVector<Operation *> ops;
  roles.walk([&](Operation *op) {
    if (isa<RingOpInterface, PingPongWaitOp, PingPongArriveOp, ClearOp,
            StoreBulkOp, AddInTurnOp>(op))
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
  bool addsInTurn = false;
  for (Operation *op : ops) {
    if (auto check = dyn_cast<RingCheckFiniteOp>(op))
      checked.insert(check.getRing());
    if (auto add = dyn_cast<AddInTurnOp>(op)) {
      addsInTurn = true;
      awaitTurn(add);
    }
    if (isa<StoreBulkOp>(op))
      storing = roles.getRoleOf(op);
    if (isa<PingPongWaitOp>(op))
      ofPingPong = roles.getRoleOf(op);
  }
  arrivesInBranch = checked.size() > 1 && !addsInTurn;
  for (Operation *op : ops) {
    b.setInsertionPoint(op);
    loc = op->getLoc();
    if (auto acquire = dyn_cast<RingAcquireOp>(op))
      lowerAcquire(acquire);
    else if (auto copy = dyn_cast<CopyAsyncOp>(op))
      lowerCopy(copy);
    else if (auto put = dyn_cast<RingPutOp>(op))
      lowerPut(put);
    else if (auto wait = dyn_cast<RingWaitOp>(op))
      lowerWait(wait);
    else if (auto peek = dyn_cast<RingPeekOp>(op))
      lowerWait(peek);
    else if (auto release = dyn_cast<RingReleaseOp>(op))
      lowerRelease(release);
    else if (auto check = dyn_cast<RingCheckFiniteOp>(op))
      lowerCheckFinite(check);
    else if (auto change = dyn_cast<RingMakeFiniteOp>(op))
      lowerMakeFinite(change);
    else if (auto question = dyn_cast<RingIsFiniteOp>(op))
      lowerIsFinite(question);
    else if (auto store = dyn_cast<StoreBulkOp>(op))
      lowerStore(store);
    else if (auto add = dyn_cast<AddInTurnOp>(op))
      lowerAddInTurn(add);
    else if (auto clear = dyn_cast<ClearOp>(op)) {
      lowerClear(clear);
      continue;
    } else
      lowerPingPong(op);
    op->erase();
  }
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
      WalkResult walk = kernel.walk([](RingOp ring) {
        if (ring.getOffset() && ring.getBarriers())
          return WalkResult::advance();
        ring.emitOpError("has no offset; run tile-allocate-smem first");
        return WalkResult::interrupt();
      });
      // What is added goes from where the ring's slot lies.
      WalkResult adds = roles.walk([](AddInTurnOp add) {
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
