//===- VerifyRoles.cpp - Rules of warps with roles ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"

#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

Region *flash::tile::getRole(Operation *op) {
  while (op && !isa<WarpSpecializeOp>(op->getParentOp()))
    op = isa<gpu::GPUFuncOp>(op->getParentOp()) ? nullptr : op->getParentOp();
  return op ? op->getParentRegion() : nullptr;
}

bool flash::tile::computesScalars(Operation *op) {
  auto effects = getEffectsRecursively(op);
  auto isScalar = [](Type type) {
    return type.isIntOrIndexOrFloat() || isa<MemRefType>(type);
  };
  return effects &&
         llvm::all_of(*effects,
                      [](const MemoryEffects::EffectInstance &effect) {
                        return isa<MemoryEffects::Read>(effect.getEffect());
                      }) &&
         !op->walk([&](Operation *inner) {
              return llvm::all_of(inner->getResultTypes(), isScalar) &&
                             llvm::all_of(inner->getOperandTypes(), isScalar)
                         ? WalkResult::advance()
                         : WalkResult::interrupt();
            }).wasInterrupted();
}

/// Whether the op takes a stage for a copy, or starts one.
static bool isCopy(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  if (!ringOp || (!ringOp.hasRingEffect(RingEffect::Acquire) &&
                  !ringOp.hasRingEffect(RingEffect::Fill)))
    return false;
  auto ring = ringOp.getRing().getDefiningOp<RingOp>();
  return !ring || !ring.isFilledFromRegisters();
}

static bool isCheck(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return ringOp && ringOp.hasRingEffect(RingEffect::CheckFinite);
}

/// Whether the op waits for a tile or gives it back.
static bool waitsOrReleases(Operation *op) {
  auto ringOp = dyn_cast<RingOpInterface>(op);
  return ringOp && (ringOp.hasRingEffect(RingEffect::Wait) ||
                    ringOp.hasRingEffect(RingEffect::Release));
}

/// Whether all warps that hold register tiles meet at the op.
static bool isMeeting(Operation *op) {
  auto reduce = dyn_cast<ReduceRowsOp>(op);
  return isa<ClearOp>(op) || (reduce && reduce.getNumScratchBytes() > 0);
}

LayoutAttrInterface flash::tile::getLayout(Type type) {
  if (auto pending = dyn_cast<PendingType>(type))
    type = pending.getValue();
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttrInterface>(tensor.getEncoding())
                : LayoutAttrInterface();
}

LayoutAttrInterface flash::tile::getLayoutOfTiles(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (LayoutAttrInterface layout = getLayout(type))
        return layout;
  return {};
}

/// Checks one role: what its warps are for follows from what it does.
static LogicalResult verifyRole(WarpSpecializeOp roles, unsigned role) {
  bool copies = false, checks = false, adds = false, hasDiagonals = false;
  roles.getRoles()[role].walk([&](Operation *op) {
    copies |= isCopy(op);
    checks |= isCheck(op);
    adds |= isa<AddInOrderOp>(op);
    hasDiagonals |= isa<StoreDiagonalsOp>(op);
  });
  int64_t warps = roles.getNumWarps(role);
  auto refuse = [&](Operation *op, const Twine &message) -> WalkResult {
    op->emitOpError(message);
    return WalkResult::interrupt();
  };
  WalkResult walk = roles.getRoles()[role].walk([&](Operation *op) {
    // Tiles are claimed for all roles.
    bool isOfTile =
        isa<TileDialect>(op->getDialect()) && !isa<ClaimOp, ShareScalarsOp>(op);
    if (isa<RingDequantizeOp>(op))
      return refuse(op, "is for warps without roles");
    if (isa<FetchOp>(op) || (isCopy(op) && warps != 1))
      return refuse(op,
                    "is for a role of one warp: those that compute wait for "
                    "stages and release them");
    if (copies && isOfTile && !isCopy(op))
      return refuse(op, "is not for a role that copies: its thread acquires "
                        "stages and copies into them");
    if (isa<AddInOrderOp>(op) && warps > mostAlternatingWarps)
      return refuse(op, "is for a role of one warp or two: those that compute "
                        "would wait for other blocks");
    if (auto add = dyn_cast<AddInOrderOp>(op);
        add && !add.getTile().getDefiningOp<RingWaitOp>())
      return refuse(op, "adds a tile that is not waited for in its role");
    if (adds && warps <= mostAlternatingWarps && isOfTile &&
        !isa<AddInOrderOp>(op) && !waitsOrReleases(op))
      return refuse(op,
                    "is not for a role that adds tiles in order: its thread "
                    "waits for stages and gives them back");
    if (auto diagonals = dyn_cast<StoreDiagonalsOp>(op);
        diagonals && (warps > mostAlternatingWarps ||
                      !diagonals.getTile().getDefiningOp<RingWaitOp>()))
      return refuse(
          op, "is for a role of one warp or two, which wait for the tile");
    if (hasDiagonals && warps <= mostAlternatingWarps && isOfTile &&
        !isa<StoreDiagonalsOp>(op) && !waitsOrReleases(op))
      return refuse(op, "is not for a role that adds up diagonals: its warp "
                        "waits for tiles and gives them back");
    if (checks && isOfTile && !isCheck(op))
      return refuse(op, "is not for a non-finite check, which only looks at "
                        "tiles");
    if (isCheck(op) &&
        (warps > warpsOfWarpgroup ||
         roles.getEndWarp(role) != roles.getNumWarpgroups() * warpsOfWarpgroup))
      return refuse(op, "is for at most four warps, the last of the block");
    LayoutAttrInterface ofTiles =
        isOfTile ? getLayoutOfTiles(op) : LayoutAttrInterface();
    if (ofTiles && roles.getFirstWarp(role) != ofTiles.getFirstWarp())
      return refuse(op,
                    "has register tiles, which only the role that starts at "
                    "warp " +
                        Twine(ofTiles.getFirstWarp()) + " has");
    if (ofTiles && ofTiles.getNumWarps() != warps)
      return refuse(op, "has register tiles over " +
                            Twine(ofTiles.getNumWarps()) +
                            " warps, in a role of " + Twine(warps));
    if (isMeeting(op) && roles.getFirstWarp(role) != 0)
      return refuse(op, "is where warps meet at a barrier of the role that "
                        "starts at warp 0");
    auto ringOp = dyn_cast<RingOpInterface>(op);
    bool isOfWarpgroups =
        ringOp && !isCopy(op) && !isCheck(op) && !adds && !hasDiagonals;
    if (isOfWarpgroups && warps % warpsOfWarpgroup != 0)
      return refuse(op, "is for a role of whole warpgroups");
    if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      bool ofSomeRows = copy.getRows() && !copy.getToEnd();
      int64_t most = StoreBulkOp::getMaxRank(ofSomeRows);
      if (copy.getSource().getType().getRank() > most)
        return refuse(
            op, Twine(ofSomeRows ? "of `rows` that the memory goes on behind "
                                 : "") +
                    "is of memory with at most " + Twine(most) + " dimensions");
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// The thread that claims tiles is the first one that copies, and waits until
/// every role has read the last number.
static LogicalResult verifyClaims(WarpSpecializeOp roles) {
  SmallVector<int64_t> claims(roles.getNumRoles()), copies = claims;
  ClaimOp first;
  roles->getParentOfType<gpu::GPUFuncOp>().walk([&](Operation *op) {
    if (!isa<ClaimOp, CopyAsyncOp>(op))
      return;
    auto claim = dyn_cast<ClaimOp>(op);
    first = first ? first : claim;
    if (getRole(op))
      ++(claim ? claims : copies)[roles.getRoleOf(op)];
  });
  if (!first)
    return success();
  if (llvm::any_of(claims, [](int64_t count) { return count != 1; }))
    return first.emitOpError("must be in each role exactly once, since it ends "
                             "the loop that all roles run");
  if (llvm::any_of(copies, [](int64_t count) { return count > 0; }))
    return success();
  return first.emitOpError("needs a role that copies: the thread of the first "
                           "one claims tiles for all");
}

LogicalResult flash::tile::verifyRoles(WarpSpecializeOp roles) {
  for (unsigned role = 0; role < roles.getNumRoles(); ++role)
    if (failed(verifyRole(roles, role)))
      return failure();
  if (failed(verifyClaims(roles)))
    return failure();
  // All threads come to what is around the roles.
  auto kernel = roles->getParentOfType<gpu::GPUFuncOp>();
  WalkResult walk = kernel.walk([](RingOpInterface op) {
    if (getRole(op))
      return WalkResult::advance();
    op->emitOpError("has no role, in a kernel whose other warps have");
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  // Two roles would not know whose step is next.
  walk = kernel.walk([&](RingOp ring) {
    Operation *first = nullptr;
    for (Operation *user : ring->getUsers()) {
      auto ringOp = dyn_cast<RingOpInterface>(user);
      if (!ringOp || !ringOp.hasRingEffect(RingEffect::Acquire))
        continue;
      if (first && getRole(first) != getRole(user)) {
        ring.emitOpError("is filled by two roles");
        return WalkResult::interrupt();
      }
      first = user;
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult flash::tile::verifyPingPong(PingPongWaitOp wait) {
  for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
    if (isa<PingPongArriveOp>(op))
      return success();
    if (isa<PingPongWaitOp>(op))
      break;
    WalkResult walk = op->walk([&](Operation *inner) {
      if (!isMeeting(inner))
        return WalkResult::advance();
      inner->emitOpError("needs all warpgroups, and only one runs between a "
                         "wait and its arrive; move it behind the arrive")
              .attachNote(wait.getLoc())
          << "the wait is here";
      return WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  return wait.emitOpError("needs a tile.ping_pong.arrive after it, in the same "
                          "block");
}

LogicalResult flash::tile::verifyPingPong(PingPongArriveOp arrive) {
  for (Operation *op = arrive->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<PingPongWaitOp>(op))
      return success();
    if (isa<PingPongArriveOp>(op))
      break;
  }
  return arrive.emitOpError(
      "needs a tile.ping_pong.wait before it, in the same "
      "block");
}

/// Whether all warps of a warpgroup, or of the block, must come to the op.
static bool isOfSeveralWarps(Operation *op) {
  if (auto product = dyn_cast<MmaAsyncOp>(op))
    return product.getWarpgroup();
  // What a check found, each warp reads alone.
  if (auto ringOp = dyn_cast<RingOpInterface>(op))
    return !ringOp.hasRingEffect(RingEffect::Ask);
  return isMeeting(op) || isa<IsFiniteOp, StoreBulkOp, PingPongWaitOp,
                              PingPongArriveOp, WarpSpecializeOp>(op);
}

LogicalResult flash::tile::verifyVote(AnyOp any) {
  llvm::SetVector<Value> votes;
  votes.insert(any.getResult());
  for (size_t i = 0; i < votes.size(); ++i)
    for (Operation *user : votes[i].getUsers()) {
      WalkResult walk = user->walk([&](Operation *op) {
        if (!isOfSeveralWarps(op))
          return WalkResult::advance();
        op->emitOpError("is done by several warps together, and depends on a "
                        "vote that each has of its own")
                .attachNote(any.getLoc())
            << "the vote";
        return WalkResult::interrupt();
      });
      if (walk.wasInterrupted())
        return failure();
      for (Value result : user->getResults())
        if (!isa<TensorType, SmemType, PendingType>(result.getType()))
          votes.insert(result);
    }
  return success();
}
