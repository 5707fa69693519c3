//===- AlternateTiles.h - Warpgroups alternate between tiles ----*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_TILE_TRANSFORMS_ALTERNATETILES_H
#define FLASH_LIB_DIALECT_TILE_TRANSFORMS_ALTERNATETILES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace flash::tile {

/// Has the warps that only multiply the second half of the columns of values
/// compute the scores and the softmax of every other tile of keys, in a kernel
/// whose columns two warpgroups divide.
///
/// An iteration of each loop over tiles gets two tiles, and a loop behind it a
/// last tile that is left over. Of the second tile the other warps compute what
/// depends on the scores, and share with the first warps what these need of it:
/// the maxima of rows, from which the next iteration goes on, the factors of
/// rows, the probabilities, and the sums of the rows. So the tiles are added up
/// in their order. The other warps start the product of the first tile's
/// probabilities before the softmax of the second tile, and wait for it
/// behind: tensor cores are busy meanwhile.
///
/// Tiles that are keys and values are fetched in pieces: the columns of values
/// of either warpgroup, and the rest of the keys. A piece is free for the next
/// tile as soon as its last product has ended.
///
/// Returns false, and leaves the kernel as it is, if it has no pair of tiles,
/// if its loops have choices, or if other operations than products read the
/// tiles.
bool alternateTiles(mlir::gpu::GPUFuncOp kernel);

} // namespace flash::tile

#endif // FLASH_LIB_DIALECT_TILE_TRANSFORMS_ALTERNATETILES_H
