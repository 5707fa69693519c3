//===- FlashVisits.td - Loops over tiles and what they load -*- tablegen -*-==//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td. A program at level 1 says which tiles it visits and
// which rows of its operands it loads; `flash-refine-visits` finds which of
// these tiles a mask leaves, and `convert-flash-to-scf` makes loops and slices
// of both.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_VISITS_TD
#define FLASH_VISITS_TD

def Flash_VisitOp : Flash_Op<"visit",
    [AttrSizedOperandSegments, InferTypeOpAdaptor, RecursiveMemoryEffects,
     SingleBlock]> {
  let summary = "goes over tiles, and carries a state from one to the next";
  let description = [{
    The region, a step, is computed for one tile after the other; what it yields is the state
    of the next. Which tiles these are is its kind:

    - `keys` of a tile of queries, or `queries` of a tile of keys: tiles of `tile` elements
      that start at `from`, `from + by`, ... and before `to`. `exist(%n)` of the dimension's
      elements exist, so that the last tile may lack rows.
    - `diagonal`: tiles of queries, from the one that starts at `from`, and the tiles of keys that are
      `distance` before these. `exist(%nq, %nk)` queries and keys exist.
    - `batches` or `heads`: the same tile of queries and tile of keys of one batch, or head, after the other;
      `exist(%nq, %nk)` of their rows exist.

    `keys` and `queries` may go over a `list` instead of a range: `tiles : [B or 1, H or 1, N, n]` has, for
    the batch, the head and the number in `[...]`, the numbers of the tiles to visit, and
    `counts : [B or 1, H or 1, N, 2]` how many of them are to be computed with the mask, which come
    first, and how many there are in all. The others are full: each element exists and takes part.
    In a list `from` and `by`, 0 and 1 if they are left out, count the entries. With `ranks` the list is of runs
    of tiles, see `flash.block_map`, and the step has the rank of each of its tiles; `read_ahead` has the
    rank read a tile before.

    With `cut(N)` the list is one that a caller gives, of blocks of `N` elements, a multiple of `tile`: each
    entry is `N / tile` tiles, which `from` and `by` count. Entries are in any order, and the last block may
    lack tiles: one that is behind the end has no rows, and adds nothing. The others of a list, which are full,
    are so as far as they exist. What no caller may give, counts above `n` and numbers of no block, is taken
    for the nearest that is possible, so that nothing outside of the tensors is read.

    The region's arguments are the first element of the tile (for a diagonal the first query and the first key), or
    the batch or the head; how many rows of the tile exist (for diagonals, batches and heads how many queries and how
    many keys); the rank, if there are ranks; and the state. The region has at most one step of attention
    (`StepOpInterface`), whose counts of rows are these arguments: a tile that is known to be whole is computed
    without them, and one that is known to be full without the mask. `tiles` says which are, and which are visited at
    all; without it, or without such a step, all are visited, with the mask.

    `fill_once`, of `flash.online_attention`, demands one loop that is entered wherever there is a tile, so that the
    pipeline of a kernel is filled once. With `neutral_zeros` a step without the mask need not leave out rows of the
    tile that do not exist: they are zeros in all of its operands, and zeros change none of its results. Then no loop
    of its own is for the last tile. With `bounded` the mask keeps, for queries that exist, only keys that do, and a
    step with the mask need not test which keys exist. In a visit of queries, besides, queries behind the last one see
    no key that exists and that the last one does not see: as zeros they need not be left out in steps with the mask
    either.

    Example:

    ```mlir
    %1 = flash.visit keys tile(128) from %c0 to %nk by %c128 exist(%nk) tiles(#flash.tiles<hi = [...], full_hi = [...]>)
        init(%0 : tensor<64x64xf32>) {
    ^bb0(%j: index, %rows: index, %acc: tensor<64x64xf32>):
      %kt = flash.load_rows %k[%b, %h, %j] rows(%rows) : tensor<2x4x?x64xf16> -> tensor<128x64xf16>
      ...
      %next = flash.query_grad_step ins(%q, %kt, ...) outs(%acc : tensor<64x64xf32>) at[%b, %h, %i, %j] of[%nq, %nk] keys(%rows) ...
      flash.next %next : tensor<64x64xf32>
    }
    ```
  }];
  let arguments = (ins Flash_VisitKindAttr:$kind, I64Attr:$tile,
    Optional<Index>:$from, Optional<Index>:$to, Optional<Index>:$by,
    Optional<Index>:$distance, Variadic<Index>:$exist,
    Optional<Flash_BlockTensor>:$list, Optional<Flash_BlockTensor>:$counts,
    Optional<Flash_BlockTensor>:$ranks, Variadic<Index>:$row,
    OptionalAttr<I64Attr>:$cut, Variadic<AnyType>:$inits, OptionalAttr<Flash_TilesAttr>:$tiles,
    OptionalAttr<Flash_TilesAttr>:$contributors, UnitAttr:$fill_once,
    UnitAttr:$read_ahead, UnitAttr:$neutral_zeros, UnitAttr:$bounded);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind `tile` `(` $tile `)` (`from` $from^)? (`to` $to^)? (`by` $by^)?
    (`distance` $distance^)? (`exist` `(` $exist^ `)`)?
    (`list` `(` $list^ `,` $counts `:` type($list) `,` type($counts) `)` `[` $row `]`)?
    (`cut` `(` $cut^ `)`)?
    (`ranks` `(` $ranks^ `:` type($ranks) `)`)? (`tiles` `(` $tiles^ `)`)?
    (`contributors` `(` $contributors^ `)`)? (`fill_once` $fill_once^)?
    (`read_ahead` $read_ahead^)? (`neutral_zeros` $neutral_zeros^)? (`bounded` $bounded^)?
    (`init` `(` $inits^ `:` type($inits) `)`)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many arguments of the region say how many rows of the tiles exist.
    unsigned getNumRowArgs() {
      return getKind() == VisitKind::Keys || getKind() == VisitKind::Queries ? 1 : 2;
    }
    /// Whether all that it visits is one pair of a tile of queries and a tile of keys, in other batches or heads.
    bool isOfPair() {
      return getKind() == VisitKind::Batches || getKind() == VisitKind::Heads;
    }
    unsigned getNumStartArgs() { return getKind() == VisitKind::Diagonal ? 2 : 1; }
    /// The first element of the tile, of a diagonal the first query, or the batch or the head.
    ::mlir::BlockArgument getAt() { return getBody().getArgument(0); }
    /// The first key of a diagonal's tile, or null.
    ::mlir::BlockArgument getKeyAt() {
      return getNumStartArgs() == 2 ? getBody().getArgument(1) : ::mlir::BlockArgument();
    }
    /// How many rows of the tile exist, or of its queries and its keys.
    ::llvm::ArrayRef<::mlir::BlockArgument> getRowArgs() {
      return getBody().getArguments().slice(getNumStartArgs(), getNumRowArgs());
    }
    /// The rank of a list that has ranks, or null.
    ::mlir::BlockArgument getRankArg() {
      return getRanks() ? getBody().getArgument(2) : ::mlir::BlockArgument();
    }
    ::llvm::ArrayRef<::mlir::BlockArgument> getStateArgs() {
      return getBody().getArguments().take_back(getInits().size());
    }
    ::mlir::OperandRange getYielded() {
      return getBody().front().getTerminator()->getOperands();
    }
    /// The only step of the region; null if there is none, or another one.
    StepOpInterface getStep();
  }];
}

def Flash_NextOp : Flash_Op<"next", [Pure, Terminator, HasParent<"VisitOp">]> {
  let summary = "ends the step of a visit with the state of the next one";
  let arguments = (ins Variadic<AnyType>:$state);
  let assemblyFormat = "($state^ `:` type($state))? attr-dict";
}

def Flash_LoadRowsOp : Flash_Op<"load_rows", [Pure, AttrSizedOperandSegments]> {
  let summary = "loads a tile of rows of a tensor";
  let description = [{
    The rows of `source : [B, H, N, D]`, or `[B, H, N]`, from the position (batch, head, row) on, as a tile
    `[M, D]` or `[M]`. The first `rows` of these exist, all unless it is given; the others are zeros. With
    `to_end` the others lie behind the last row of the tensor, which is no view in memory. With `packed(P)` the rows belong to P
    heads: row r is of head `h + r mod P` and of row `n + r floordiv P`, and `rows` counts each head's. A tile with
    fewer columns than the source has the columns from `column` on, and all of them exist.

    Example:

    ```mlir
    %kt = flash.load_rows %k[%b, %h, %j] rows(%n) : tensor<2x4x?x64xf16> -> tensor<128x64xf16>
    ```
  }];
  let arguments = (ins Flash_RowsTensor:$source, Variadic<Index>:$position,
    Optional<Index>:$rows, Optional<Index>:$column, OptionalAttr<I64Attr>:$packed, UnitAttr:$to_end);
  let results = (outs Flash_RowsTensor:$tile);
  let assemblyFormat = [{
    $source `[` $position `]` (`rows` `(` $rows^ `)`)? (`column` `(` $column^ `)`)? (`packed` `(` $packed^ `)`)?
    (`to_end` $to_end^)? attr-dict `:` type($source) `->` type($tile)
  }];
  let hasVerifier = 1;
}

#endif // FLASH_VISITS_TD
