//===- JoinedRings.h - Rings that are full together -------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_CONVERSION_TILEROLESTONVVM_JOINEDRINGS_H
#define FLASH_LIB_CONVERSION_TILEROLESTONVVM_JOINEDRINGS_H

#include "flash/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/DenseMap.h"

namespace flash::tile {

/// The rings whose stages need no barrier that says whether they are full, each
/// with the ring whose barriers say so for both: it is filled right before in
/// the same steps, and waited for before by all that wait for the other. These
/// are rings that threads load from, as statistics of rows; a product could
/// start before its second operand is there.
using JoinedRings = llvm::SmallDenseMap<mlir::Operation *, RingOp>;
JoinedRings findJoinedRings(WarpSpecializeOp roles);

} // namespace flash::tile

#endif // FLASH_LIB_CONVERSION_TILEROLESTONVVM_JOINEDRINGS_H
