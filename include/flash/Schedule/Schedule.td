//===- Schedule.td - The schedule as an attribute ----------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attribute belongs to the flash dialect, but the other attributes of that
// dialect are in another file: programs on tiles have schedules, too, and they
// do not depend on the operations of the flash dialect.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_TD
#define FLASH_SCHEDULE_TD

include "flash/Dialect/Flash/IR/FlashDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Flash_ScheduleFeatures : I32BitEnumAttr<"ScheduleFeatures",
    "what the warps of a block do at the same time", [
      I32BitEnumAttrCaseNone<"None", "none">,
      I32BitEnumAttrCaseBit<"SpecializeWarps", 0, "specialize_warps">,
      I32BitEnumAttrCaseBit<"Overlap", 1, "overlap">,
      I32BitEnumAttrCaseBit<"PingPong", 2, "ping_pong">,
      I32BitEnumAttrCaseBit<"LazyRescale", 3, "lazy_rescale">,
      I32BitEnumAttrCaseBit<"Persistent", 4, "persistent">,
      I32BitEnumAttrCaseBit<"BulkStore", 5, "bulk_store">,
      I32BitEnumAttrCaseBit<"DeferProducts", 6, "defer_products">,
      I32BitEnumAttrCaseBit<"SumDiagonals", 7, "sum_diagonals">,
      I32BitEnumAttrCaseBit<"ClaimTiles", 8, "claim_tiles">,
      I32BitEnumAttrCaseBit<"SkipRows", 9, "skip_rows">,
      I32BitEnumAttrCaseBit<"DivideColumns", 10, "divide_columns">]> {
  let cppNamespace = "::flash";
  let genSpecializedAttr = 0;
  let printBitEnumPrimaryGroups = 0;
}

// The orders in which CTAs process tiles. The documentation of `#flash.order`
// describes them.
def Flash_TileOrder : I32EnumAttr<"TileOrder", "an order of tiles", [
    I32EnumAttrCase<"Linear", 0, "linear">,
    I32EnumAttrCase<"LongestFirst", 1, "longest_first">,
    I32EnumAttrCase<"Snake", 2, "snake">, I32EnumAttrCase<"Pairs", 3, "pairs">,
    I32EnumAttrCase<"HeadsFastest", 4, "heads_fastest">,
    I32EnumAttrCase<"Reverse", 5, "reverse">,
    I32EnumAttrCase<"Interleaved", 6, "interleaved">,
    I32EnumAttrCase<"BothWays", 7, "both_ways">,
    I32EnumAttrCase<"Backwards", 8, "backwards">,
    I32EnumAttrCase<"Halves", 9, "halves">]> {
  let cppNamespace = "::flash";
  let genSpecializedAttr = 0;
}

def Flash_ScheduleAttr : AttrDef<Flash_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how an attention is cut into tiles, and what its blocks do";
  let description = [{
    `#flash.schedule<query_tile = 64, key_tile = 128>`: `query_tile` queries
    of one (batch, head) pair form an iteration of a parallel loop, which visits the
    keys `key_tile` at a time. Both are positive multiples of 8, at most 1024.

    The gradients are two programs: one of tiles of `query_tile` queries, which
    visits the keys `key_step` at a time, and one of tiles of `key_tile` keys,
    which visits the queries `query_step` at a time. Steps that are not written
    are as long as the tiles. With `key_programs = 2` the gradients of keys and
    the gradients of values are computed by a program each, where registers do not hold
    both. `products = 5` makes one program of the two, over tiles of keys, which adds to the
    gradients of queries, too, in a fixed order (`flash.parallel_add`): scores are computed once, and there are five
    products instead of seven (eight with `key_programs = 2`). On GPUs it is for warps with roles, for a `query_step` or a head dimension that is as long as `key_tile`,
    and for masks that leave each tile one range of tiles; on the CPU for all. `products = 7` stands for both programs, however many products they have. Only a
    `flash.attention_grad` has these keys.

    `packed_heads = P` (1 to 1024) packs P of the query heads that read the same
    keys into each tile (packed GQA): it has the rows of `query_tile` floordiv P
    queries, and row r belongs to query r floordiv P and head r mod P; what is left of
    `query_tile` is padding. P divides the number of query heads of a key head,
    which the types then say. So one query, or few, fill a tile, and the keys are
    read once for all heads of the tile.

    `value_columns = W` (8 to 576, a multiple of 8) cuts the columns of the values into blocks of W, the same for all
    queries: an iteration computes the scores of its queries, and sums up one block. So wide heads fit into registers.
    Blocks begin equally far apart, a multiple of 8 columns, and the last one ends with the columns; where they
    overlap both store the same. Without it a block has all columns up to 256, and above 256 blocks are as few as can be.

    On a GPU the iteration is a thread block (CTA): `warps` (1 to 32) share the
    queries, 16 at a time each. `stages` (1 to 16) tiles of keys, and of values,
    are in shared memory (2 or more under `overlap` if values are columns of the keys), and `query_stages` (1 or 2) of queries
    where a block has several. For gradients, the programs over tiles of keys have `key_program_stages` (1 to 16) of queries, as many as
    `stages` if it is not written. `ctas_per_sm` (1 to 4) of blocks whose warps have roles share a
    multiprocessor, its registers and its shared memory; without it, one has all.

    `features = specialize_warps|overlap` lists what else is done, by the pass
    that does it: `tile-specialize-warps`, `tile-overlap`, `tile-ping-pong`,
    `tile-persist` (`persistent`), `tile-bulk-stores`, `tile-defer-products` and, of the online
    softmax, to rescale the accumulator only when a maximum has grown by much
    (`lazy_rescale`). With `persistent|claim_tiles` a block takes the next tile that no block has, where it
    takes one of each wave without `claim_tiles`: for tiles whose lengths depend on the data alone. With `skip_rows` warpgroups that have no
    rows of a tile leave out its products.
    `features = none` is none of them,
    `features = -overlap|-ping_pong` for what is proposed without these two. With
    `divide_columns` two warpgroups of a block share 64 queries, whose scores one of them computes for both, and have half of the columns
    of the values each (`tile-divide-columns`): blocks then have up to 512 columns. With `divide_columns|ping_pong` each of them computes the scores of
    every other tile of keys, if values are columns of the keys; `stages` is even then. With `sum_diagonals` the program of
    five products also adds up the gradients of scores by their distance, which gives the gradients of captured
    tensors that are read by distance and added to the score; these have no program of their own then.
    Features that do nothing in a program are errors. `lazy_rescale`, `skip_rows` and `divide_columns` are of attentions;
    `sum_diagonals` and `defer_products` are of gradients with `products = 5`, and `overlap` of gradients with `key_programs = 2`, whose
    program of the gradients of values it changes.

    `block_map = 1` has the device list the tiles that a mask leaves (`flash-make-block-maps`) where only the
    running program knows them, or where they are no range and a loop would test each tile; with 0 it
    visits all tiles, or tests each. It says nothing of masks that leave each tile of queries one range.

    With few queries there are few CTAs, too few to fill a GPU. Split-KV
    (Flash-Decoding) then cuts the key tiles of a query tile into splits, each of
    a CTA of its own, with a second kernel that combines their results:
    `num_splits = 4` (1 to 256) makes four. `split_ctas = 264` (1 to 65536) leaves
    the number to the sizes: as many as give at most 264 CTAs in all, each with
    at least two key tiles, and one if there are fewer than eight key tiles. If the sizes are known at
    run time only, so is the number; where it is 1 there is no second kernel. The
    CPU ignores both.

    `split_keys = 1024` (8 to 1048576, a multiple of `key_tile`, which must be
    written, too) makes a split of each 1024 keys, however many there are, where
    the others give a split every n-th tile. Where lengths say how many keys a batch has, splits behind them are neither
    written nor read. Tiles are added up in their order
    and splits in theirs, so that the bits of a row depend on its keys and on
    the schedule's `key_tile`, `split_keys` and `features` alone, and not on the
    other rows, heads and batches, on how long a padded batch is, or on what types
    say of sizes. `lazy_rescale`, which decides for several rows together, is left out unless
    `features` says it.

    Every key may be left out. On a `flash.attention`, `flash-select-schedule`
    fills in what is missing: from a measured schedule of the device, where
    there is one, else from a model.

    Whose keys these are, another key being an error that lists them:

    | schedule of | keys |
    |---|---|
    | an attention | all but `query_step`, `key_step`, `products`, `key_programs` and `key_program_stages` |
    | its gradients | `query_tile`, `key_tile`, `query_step`, `key_step`, `products`, `key_programs`, `stages`, `key_program_stages`, `ctas_per_sm`, `features`, `block_map` |
    | one kernel | `warps`, `stages`, `query_stages`, `ctas_per_sm`, `features` |

    A kernel's schedule stands on `flash.kernel`, and below level 1 beside the operations, under the name
    `flash.schedule`: on the `scf.forall` that `convert-flash-to-scf` makes of the kernel, and on the `gpu.func`
    of `convert-linalg-to-tile`, whose passes read it. Other operations cannot have it.
  }];
  let parameters = (ins "::flash::Schedule":$value);
  // The dialect, which registers it, is elsewhere.
  let genStorageClass = 0;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // FLASH_SCHEDULE_TD
