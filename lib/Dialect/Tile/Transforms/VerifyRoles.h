//===- VerifyRoles.h - Rules of warps with roles ----------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_VERIFYROLES_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_VERIFYROLES_H

#include "flash/Dialect/Tile/IR/Tile.h"

namespace flash::tile {

/// The role that carries the op out, or null where warps have none.
mlir::Region *getRole(mlir::Operation *op);

/// Whether an op, with what is inside, computes scalars alone, of scalars and
/// of what it reads in memory, as every role can do for itself.
bool computesScalars(mlir::Operation *op);

/// The layout of a register tile, be it pending, and the one of the register
/// tiles that an op takes or gives; null if there are none.
LayoutAttrInterface getLayout(mlir::Type type);
LayoutAttrInterface getLayoutOfTiles(mlir::Operation *op);

/// Checks that each role does only what its warps can do together.
mlir::LogicalResult verifyRoles(WarpSpecializeOp roles);

/// Checks that each ring is filled in the steps in which every role that reads
/// it gives stages back: by the loops and choices around these, so that none
/// waits for a step that another never does.
mlir::LogicalResult verifyCounts(WarpSpecializeOp roles);

/// Checks that waits and arrivals of the ping-pong alternate.
mlir::LogicalResult verifyPingPong(PingPongWaitOp wait);
mlir::LogicalResult verifyPingPong(PingPongArriveOp arrive);

/// Checks that nothing that several warps do together depends on a vote that
/// each has of its own.
mlir::LogicalResult verifyVote(AnyOp any);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_VERIFYROLES_H
