//===- FlashVisits.td - Loops over tiles and what they load -*- tablegen -*-==//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td. A program at level 1 says which tiles it visits
// (`flash.visit`) and which rows of its operands it loads (`flash.load_rows`).
// `flash-refine-visits` finds which tiles are empty or full under the mask, and
// `convert-flash-to-scf` replaces visits by loops, and loads by slices.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_VISITS_TD
#define FLASH_VISITS_TD

def Flash_ClausesOfVisit : Flash_Clauses<[
  Flash_WordClause<"from">, Flash_WordClause<"to">, Flash_WordClause<"by">,
  Flash_WordClause<"distance">, Flash_AttributeClause<"exist">,
  Flash_Clause<"list", "`(` $list^ `,` $counts `:` type($list) `,` type($counts) `)` `[` $row `]`">,
  Flash_AttributeClause<"cut">, Flash_ValueClause<"ranks">,
  Flash_AttributeClause<"heads">, Flash_AttributeClause<"tiles">,
  Flash_AttributeClause<"contributors">, Flash_WordClause<"fill_once">,
  Flash_WordClause<"read_ahead">, Flash_WordClause<"neutral_zeros">,
  Flash_WordClause<"bounded">, Flash_AttributeClause<"multiples">,
  Flash_Clause<"init", "`(` $inits^ `:` type($inits) `)`">
], "{">;

def Flash_VisitOp : Flash_Op<"visit",
    [AttrSizedOperandSegments, InferTypeOpAdaptor, RecursiveMemoryEffects,
     SingleBlock]> {
  let summary = "goes over tiles, and carries a state from one to the next";
  let description = [{
    The region is computed for one tile after the other. It yields the state with which it is computed for the
    next tile. The kind of the visit says which tiles it has:

    - `keys` and `queries` are tiles of keys for one tile of queries, or the reverse. They have `tile` elements, and
      start at `from`, `from + by`, ..., before `to`. `exist(%n)` is the number of keys, or of queries, so that the
      last tile may lack rows.
    - `diagonal` pairs tiles of queries, beginning with the tile that starts at `from`, with the tiles of keys that
      start `distance` elements earlier. `exist(%nq, %nk)` are the numbers of queries and of keys.
    - `batches` and `heads` are one batch, or head, after the other, with the same tile of queries and the same tile
      of keys. In these tiles `exist(%nq, %nk)` queries and keys exist.

    `keys` and `queries` may go over a `list(%list, %counts)` instead of a range. The row of the list is given in
    `[...]` by batch, head and number. In this row, `%list : [B or 1, H or 1, N, n]` has the numbers of the tiles to
    visit, and `%counts : [B or 1, H or 1, N, 2]` has two numbers: how many tiles, from the first on, are partial and
    need the mask, and how many tiles are listed in all. In the other tiles, which are full, each element exists and
    takes part. `from` and `by` count entries of the list, and are 0 and 1 by default. With `ranks` the list has runs
    of tiles (`flash.block_map`), and the rank of its tile is an argument of the region. With `read_ahead` each rank
    is read one tile earlier. With `heads(%h)`, too, the region is computed `%h` times for each tile of such a list,
    for the heads 0 to `%h - 1`, whose lists are the same.

    With `cut(N)` the list is given by a caller, and its entries are blocks of `N` elements. `N` is a multiple of
    `tile`: an entry stands for `N / tile` tiles, and `from` and `by` count these. Entries are in any order. In the
    last block, tiles after the end have no rows, and add nothing. In a full block, only elements that exist take
    part. Counts above `n`, and numbers that no block has, are replaced by the nearest valid number, so that nothing
    outside of the tensors is read.

    The region has these arguments: the first element of the tile (for a diagonal the first query and the first key),
    or the batch or the head; the number of rows of the tile that exist (for diagonals, batches and heads the number
    of queries and the number of keys); the rank, if there are ranks; the head, if there are `heads`; and the state.
    The region has at most one step of attention (`StepOpInterface`), and the step's counts of rows are these
    arguments. A tile that is known to be whole is computed without counts, and a tile that is known to be full
    without the mask. The attribute `tiles` says which tiles are full, and which are visited. Without it, or without
    such a step, all tiles are visited with the mask.

    `fill_once`, for `flash.online_attention`, orders the loops so that the first loop has an iteration if there is
    any tile. Then the pipeline of a kernel is filled only once. The first loop has the last tiles of a range, or the
    partial tiles of a list, and computes at least one tile with the mask, which may be full. With `neutral_zeros`,
    rows that do not exist are zeros in all operands of the step, and zeros do not change its results. So a step
    without the mask needs no count of rows, and the last tile needs no loop of its own. With `bounded`, the mask lets
    a query that exists see only keys that exist, and a step with the mask does not test which keys exist. In a visit
    of queries, `bounded` also says that each existing key which a query after the last one would see is seen by the
    last one. So with zeros as such queries, steps with the mask need no count of queries either. With
    `multiples([m, n])`, the number of queries in the step's `of` is a multiple of `m`, and the number of keys of `n`.

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
    Optional<Flash_BlockTensor>:$ranks, Optional<Index>:$heads,
    Variadic<Index>:$row, OptionalAttr<I64Attr>:$cut, Variadic<AnyType>:$inits,
    OptionalAttr<Flash_TilesAttr>:$tiles, OptionalAttr<Flash_TilesAttr>:$contributors,
    UnitAttr:$fill_once, UnitAttr:$read_ahead, UnitAttr:$neutral_zeros, UnitAttr:$bounded,
    OptionalAttr<DenseI64ArrayAttr>:$multiples);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = !strconcat("$kind `tile` `(` $tile `)`", Flash_ClausesOfVisit.format,
    "attr-dict-with-keyword", Flash_ClausesOfVisit.end, "$body");
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of arguments of the region that are numbers of existing rows.
    unsigned getNumRowArgs() {
      return getKind() == VisitKind::Keys || getKind() == VisitKind::Queries ? 1 : 2;
    }
    /// Whether each iteration has the same pair of a tile of queries and a tile of keys, in another batch or head.
    bool isOfPair() {
      return getKind() == VisitKind::Batches || getKind() == VisitKind::Heads;
    }
    unsigned getNumStartArgs() { return getKind() == VisitKind::Diagonal ? 2 : 1; }
    /// The first element of the tile (for a diagonal the first query), or the batch or the head.
    ::mlir::BlockArgument getAt() { return getBody().getArgument(0); }
    /// The first key of a diagonal's tile, or null.
    ::mlir::BlockArgument getKeyAt() {
      return getNumStartArgs() == 2 ? getBody().getArgument(1) : ::mlir::BlockArgument();
    }
    /// The number of existing rows of the tile, or the numbers of its existing queries and keys.
    ::llvm::ArrayRef<::mlir::BlockArgument> getRowArgs() {
      return getBody().getArguments().slice(getNumStartArgs(), getNumRowArgs());
    }
    /// The rank of a list that has ranks, or null.
    ::mlir::BlockArgument getRankArg() {
      return getRanks() ? getBody().getArgument(2) : ::mlir::BlockArgument();
    }
    /// The head of a visit of several heads, or null.
    ::mlir::BlockArgument getHeadArg() {
      return getHeads() ? getBody().getArgument(3) : ::mlir::BlockArgument();
    }
    ::llvm::ArrayRef<::mlir::BlockArgument> getStateArgs() {
      return getBody().getArguments().take_back(getInits().size());
    }
    ::mlir::OperandRange getYielded() {
      return getBody().front().getTerminator()->getOperands();
    }
    /// The only step of the region; null if it has no step or several.
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
    Loads the rows of `source : [B, H, N, D]`, or `[B, H, N]`, from the position (batch, head, row) on, as a tile
    `[M, D]` or `[M]`. Only the first `rows` rows exist, and the other rows of the tile are zeros; without `rows` all
    exist. `to_end` says that the rows which do not exist lie after the last row of the tensor, and that the tensor is
    not a view in memory. With `packed(P)` the rows belong to P heads: row r of the tile is row `n + r floordiv P` of
    head `h + r mod P`, and `rows` is the number for each head. A tile with fewer columns than the source has the
    columns from `column` on, and all of them exist.

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
