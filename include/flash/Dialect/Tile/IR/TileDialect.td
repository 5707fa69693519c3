//===- TileDialect.td - The tile dialect -------------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_DIALECT_TD
#define FLASH_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::flash::tile";
  let summary = "The program of one thread block, on tiles";
  let description = [{
    Level 2 of the attention compiler. A value is a tile of the whole block (or
    of the warps that share a role): in registers, a tensor whose encoding says
    which thread holds which element, so that `arith` and `math` apply to it as
    they are; in shared memory, a `!tile.smem`.

    **Rings.** Asynchronous copies, or threads from their registers, fill the
    stages of a `!tile.ring`, a queue of shared-memory tiles. In a ring of `n` stages, stage
    `t mod n` holds the tile of step `t`; it passes through four states:

    ```
    ring.acquire [t]   waits until step t - n has been released
    copy_async   [t]   starts to fill the stage, or a part of it
    (ring.put    [t]   fills it with a register tile)
    ring.wait    [t]   waits until the copy is complete, and gives the tile
    ring.release [t]   says that nobody reads the tile any more
    ```

    How waiting is done (mbarriers, or groups of copies and block barriers) is
    decided in one lowering.

    **Pending values.** A product that may still be running is a
    `!tile.pending`; only `tile.mma_wait` makes it a tensor.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  // The first on `scf.forall`, the other on operations of loops.
  let discardableAttrs = (ins "::flash::tile::OrderAttr":$order,
                              "::flash::tile::PipelineAttr":$pipeline);
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // FLASH_TILE_DIALECT_TD
