//===- RoleLowering.h - Lowers the roles of one kernel ----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILEROLESTONVVM_ROLELOWERING_H
#define FLASH_LIB_CONVERSION_TILEROLESTONVVM_ROLELOWERING_H

#include "JoinedRings.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace flash::tile {

/// Maps of overlapping tiles, in which a copy can end before the tile does.
enum class MapTiles {
  None,
  /// Tile n ends where row n of the memory begins. No box may be outside of the
  /// map as a whole: the hardware reads the map's first byte for it (seen on an
  /// H100), which is before the memory, and faults if nothing is there.
  ThatEndAtRow,
  /// Tile n begins with row n.
  ThatBeginAtRow
};

/// The rows that one bulk copy takes: along the last dimension before the
/// columns, and along the one before that.
struct BoxRows {
  int64_t outer, inner;
  /// They overlap along the first of these dimensions that has several rows in
  /// the box.
  MapTiles tiles = MapTiles::None;

  /// The dimension of the tile's rows in a memory of this rank, and the rows of
  /// a tile along it.
  int64_t getRowDim(int64_t rank) const { return rank - (outer > 1 ? 3 : 2); }
  int64_t getTileRows() const { return outer > 1 ? outer : inner; }
};

/// The rows of a copy of whole tiles of `type`, whose rows may be packed. What
/// is left of a tile then, less than `packed` rows, is in no box.
BoxRows getBoxRows(SmemType type, std::optional<int64_t> packed);

/// A tensor map of a kernel: memory, the tiles that are copied from it, and the
/// rows of a copy, as a `BoxRows` has them.
using MapKey =
    std::tuple<mlir::BlockArgument, SmemType, int64_t, int64_t, MapTiles>;

/// Lowers the roles of one kernel.
class RoleLowering {
public:
  RoleLowering(mlir::gpu::GPUFuncOp kernel, WarpSpecializeOp roles)
      : kernel(kernel), roles(roles), b(roles), loc(roles.getLoc()),
        ctasPerSm(getCtasPerSm(kernel)) {}

  void run(mlir::ArrayRef<mlir::gpu::LaunchFuncOp> launches);

private:
  using Value = mlir::Value;

  Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, b.getI32Type(), value);
  }
  Value toI32(Value value) {
    return mlir::arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value isEqual(Value x, int64_t y) {
    return mlir::arith::CmpIOp::create(b, loc, mlir::arith::CmpIPredicate::eq,
                                       x, index(y));
  }
  Value sharedPointer(Value offset);
  Value warpgroup();
  /// The i32, which is the same for all threads of a warp. That a shuffle says
  /// so lets ptxas see that branches are taken by whole warps, where it keeps
  /// addresses and descriptors in one register for a warp.
  Value uniform(Value value);
  /// The threads of a warpgroup meet.
  void meet();
  /// The threads of all warps of the consumers' role, of so many, meet.
  void meetAll(int64_t warps);
  /// Whether the thread is the first of so many.
  Value isFirstOf(int64_t threads);
  void ifFirstOf(int64_t threads, llvm::function_ref<void()> body);
  /// Emits `body` for the thread that speaks for its warpgroup.
  void forLeader(llvm::function_ref<void()> body) {
    ifFirstOf(threadsOfWarpgroup, body);
  }

  // RingBarriers.cpp
  /// The number of a step among all that fill the stages of the ring one after
  /// the other: the number of the step itself, or, in a ring with row stages,
  /// the number of a warpgroup's rows of the step.
  Value getFillNumber(RingOp ring, Value step, Value warpgroup);
  Value getOwnFillNumber(RingOp ring, Value step);
  /// How many warpgroups have rows in a ring with row stages.
  int64_t getNumOwners(RingOp ring);
  /// How many arrivals fill a stage and free it, each of a warp that puts rows
  /// into it, reads or checks it; or of a copy.
  int64_t getNumWriters(RingOp ring);
  /// Whether all copies to the ring fill parts whose numbers are constants:
  /// then the copy of the first part arrives for all.
  bool arrivesOnce(RingOp ring);
  int64_t getNumReaders(RingOp ring);
  int64_t getNumCheckWarps(RingOp ring);
  /// The barrier of the stage that is filled.
  enum class Of { Full, Empty, Checked };
  Value getBarrier(RingOp ring, Value fill, Of kind);
  /// The parity of the phase of a stage's barrier, or of one of `numBarriers`
  /// that fills take one after the other.
  Value parity(RingOp ring, Value fill) {
    return parity(ring.getNumStages(), fill);
  }
  Value parity(int64_t numBarriers, Value fill);
  Value stageOffset(RingOp ring, Value fill);
  void waitAt(Value barrier, Value parity);
  void arrive(Value barrier);
  /// Arrives once for each warp, behind what all of its threads have done. No
  /// warp waits for the others of its warpgroup.
  void arriveAsWarp(Value barrier);
  /// Copies leave some rows of stages out. Such stages are filled with zeros:
  /// what lies there would change votes, and with them bits, from run to run.
  void clearUncopiedRows();
  void initializeBarriers();
  void acquire(RingOp ring, Value fill);
  void lowerAcquire(RingAcquireOp op);
  void lowerPut(RingPutOp op);
  /// Lowers a `tile.ring.wait` or a `tile.ring.peek`.
  void lowerWait(RingOpInterface op);
  /// Waits for the panels of a tile. The first product that reads it waits for
  /// each panel alone, between products of the panels.
  void waitForPanels(RingWaitOp op, RingOp ring);
  /// The barrier of a panel of the only stage.
  Value getPanelBarrier(RingOp ring, int64_t panel);
  void lowerRelease(RingReleaseOp op);

  // FiniteChecks.cpp
  /// Where a warp of the non-finite check leaves what it found of a step.
  Value getCheckResult(RingOp ring, Value step, Value warp);
  void lowerCheckFinite(RingCheckFiniteOp op);
  void lowerMakeFinite(RingMakeFiniteOp op);
  void lowerIsFinite(RingIsFiniteOp op);
  void lowerCopyFinite(RingCopyFiniteOp op);

  // BulkCopies.cpp
  /// The tensor map with which `rows` of tiles like `stage` are copied.
  Value getTensorMap(Value memory, SmemType stage, BoxRows rows);
  void addTensorMaps(mlir::gpu::LaunchFuncOp launch);
  void lowerCopy(CopyAsyncOp op);
  /// Makes indices of memory, where a tile of `most` rows along `dim` starts,
  /// the indices of a map at which a box has its first `rows`: of tiles that
  /// end at rows. Returns how many rows that are, 0 to `most`.
  Value takeFirstRows(mlir::SmallVectorImpl<Value> &indices, unsigned dim,
                      Value rows, int64_t most);
  /// The map with which some rows are read, of two, whose indices these are
  /// then. The box may have no rows.
  Value getMapOfRows(Value memory, SmemType stage, BoxRows box, Value rows,
                     mlir::SmallVectorImpl<Value> &indices);
  /// Fills a stage, or a part of it, from the row and column that come last in
  /// `indices` on: with all rows that the memory has there, or with `rows`.
  void copy(RingOp ring, Value source, mlir::ArrayRef<Value> indices,
            Value rows, Value fill,
            std::optional<int64_t> packed = std::nullopt, Value part = Value());
  /// Orders what a thread has written to shared memory before bulk copies and
  /// products that start behind the next barrier.
  void fenceForBulkCopies();
  void lowerStore(StoreBulkOp op);
  /// Starts to store the warpgroup's rows of the columns from `firstColumn` on,
  /// panels of type `own` in shared memory from `start` on.
  void storePanels(StoreBulkOp op, SmemType own, Value start,
                   int64_t firstColumn);
  /// Waits until the leader's bulk stores have read shared memory.
  void waitForStores();

  // OrderedAdds.cpp
  /// The thread that adds waits for its rank first, while the tile is made: an
  /// answer from memory takes longer than one from shared memory.
  void awaitRank(AddInOrderOp op);
  /// Gives each warp of the role the tiles of its own steps.
  void alternate(unsigned role);
  void lowerAddInOrder(AddInOrderOp op);

  // Claims.cpp
  /// Whether the role of the claim has the thread that claims tiles: the first
  /// one that copies.
  bool claimsItself(ClaimOp op);
  /// A byte of the slot through which the step's tile is passed on.
  Value getInSlot(ClaimOp op, Value step, int64_t byte);
  /// The number or the shared scalar at a byte of the step's slot.
  Value readSlot(ClaimOp op, Value step, int64_t byte);
  /// Says that a warp has read all that it reads in the step's slot.
  void releaseSlot(ClaimOp op, Value step);
  /// Reads what the claim shares anew for each op of the loop over tiles that
  /// uses it, so that it needs no register while tiles of keys are visited.
  void readSharedAtUses(ClaimOp op);
  /// Lets the thread that copies claim each step's tile and pass it on to all
  /// others.
  void lowerClaim(ClaimOp op);
  /// Claims a tile with work, or finds that there is none left: its number, and
  /// what is shared of it.
  llvm::SmallVector<mlir::Value> claimTile(ClaimOp op);
  /// Initializes the barriers of claims that threads pass on.
  void initializeClaims();

  // LowerRoles.cpp
  void lowerClear(ClearOp op);
  void lowerPingPong(mlir::Operation *op);
  /// Lets the first warpgroup go on at first, and has it wait in the end for
  /// the arrival that is left.
  void startAndEndPingPong(unsigned role);
  Value pingPongBarrier(Value warpgroup);
  /// Puts what a role does where only its warps, of all that come to the
  /// builder's insertion point, carry it out; `isAlone` if no others come
  /// there.
  void emitRole(unsigned role, bool isAlone);
  /// The choices of warps between roles.
  void separateRoles();
  void lower(mlir::Operation *op);

  mlir::gpu::GPUFuncOp kernel;
  WarpSpecializeOp roles;
  bool arrivesInBranch = false;
  JoinedRings joined;
  /// Whether one thread carries out each role.
  mlir::SmallVector<bool> areOfOneThread;
  /// The rings whose tiles no product reads that were put there: threads load
  /// them, or a thread has the fence that adds them in order.
  llvm::SmallDenseSet<RingOp> withoutFence;
  llvm::SmallDenseMap<RingOp, int64_t> numFullBarriers;
  /// Rings whose panels have barriers of their own.
  llvm::SmallDenseSet<RingOp> ofPanels;
  /// The claims of all roles.
  mlir::SmallVector<ClaimOp> claims;
  mlir::OpBuilder b;
  mlir::Location loc;
  int64_t ctasPerSm;
  llvm::MapVector<MapKey, Value> maps;
  /// Whether a step of a ring has no copy of a tile in its stage, which others
  /// read until they meet.
  llvm::SmallDenseMap<std::pair<Value, Value>, Value> holdsNoCopy;
  /// The releases of tiles whose stages bulk stores read.
  llvm::SmallPtrSet<mlir::Operation *, 4> afterStores;
  /// The rings and steps whose stages results are stored in.
  llvm::SmallDenseMap<mlir::Operation *, std::pair<RingOp, Value>>
      reusedByStores;
};

} // namespace flash::tile

#endif // FLASH_LIB_CONVERSION_TILEROLESTONVVM_ROLELOWERING_H
