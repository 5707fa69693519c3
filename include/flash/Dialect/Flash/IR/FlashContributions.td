//===- FlashContributions.td - Sums that iterations add to -*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td. What the iterations of a parallel loop add to the
// same elements is added in a fixed order, so that the result is the same in each
// run. Sums of diagonals are here, too; each iteration stores its own.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_CONTRIBUTIONS_TD
#define FLASH_CONTRIBUTIONS_TD

/// Sums of tiles: f32 [batches, heads, tiles, M, N].
def Flash_SumsOfTiles : Flash_TensorOf<[F32]>;
/// An i32 for each tile: [batches, heads, tiles].
def Flash_CountsOfTiles : Flash_TensorOf<[I32]>;

def Flash_ContributeOp : Flash_Op<"contribute",
    [Pure, AttrSizedOperandSegments, Flash_SingleOperandGroups,
     AllTypesMatch<["contributions", "result"]>]> {
  let summary = "inserts a tile into what an iteration adds to sums of tiles";
  let description = [{
    `contributions : [B, H, T, M, N]` is what an iteration of a parallel loop, the body of an
    `scf.forall`, adds to sums of tiles (`flash.parallel_add`): nothing at first, which
    is an empty tensor, and then the tiles `[M, N]` that were put there, each for the
    batch, the head and the number of a tile, at most once.

    The contributions of several iterations to a tile are added in the order in which the loop
    takes its iterations. `among(%lo to %hi)` says which iterations add to it: the numbers `lo` to
    `hi - 1` along the last dimension of the loop, and each of them does, so that an
    iteration knows how many come before it. Only they may have the tile's batch and head.
    Where they are no range, `behind(%n)` says that `n` of them come before: iterations of greater
    numbers where the loop takes the tiles of a head backwards (`#flash.order<reverse>`), and any
    where the iterations have an order of their own within `#flash.order<heads_fastest>`.

    Example:

    ```mlir
    %1 = flash.contribute %t to %0[%b, %h, %i] among(%lo to %hi)
        : tensor<128x64xf32> to tensor<2x4x?x128x64xf32>
    ```
  }];
  let arguments = (ins Flash_F32Tile:$tile, Flash_SumsOfTiles:$contributions,
    Variadic<Index>:$position, Optional<Index>:$first, Optional<Index>:$end,
    Optional<Index>:$behind);
  let results = (outs Flash_SumsOfTiles:$result);
  let assemblyFormat = [{
    $tile `to` $contributions `[` $position `]`
    (`among` `(` $first^ `to` $end `)`)? (`behind` `(` $behind^ `)`)? attr-dict `:` type($tile) `to` type($contributions)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned numRequiredOperands = 2;
  }];
}

def Flash_ParallelAddOp : Flash_Op<"parallel_add",
    [AllTypesMatch<["contributions", "sums"]>,
     DeclareOpInterfaceMethods<ParallelCombiningOpInterface,
       ["getUpdatedDestinations", "getIteratingParent"]>]> {
  let summary = "adds what an iteration contributes to sums that others add to, too";
  let description = [{
    In the terminator of an `scf.forall`, beside `tensor.parallel_insert_slice`. The sum of a tile is
    the sum of the tiles which `flash.contribute` put there, the first of them alone and
    then each of the others added to it in the order in which iterations are taken: linear
    or another order without loops of waiting (`#flash.order<linear>`, `reverse`, `both_ways`, `longest_first` or
    `heads_fastest`). What `sums` held before is not part of it; a tile that no iteration adds
    to is undefined. `counts`, zeros before the loop, says how many iterations added to each
    tile; it may have more elements along its last dimension. Persistent blocks need one more,
    the last of all, to count the iterations that they have claimed; the others stay as they are.

    Example:

    ```mlir
    scf.forall.in_parallel {
      flash.parallel_add %p to %sums counting %n
          : tensor<2x4x8x128x64xf32>, tensor<2x4x8xi32>
    }
    ```
  }];
  let arguments = (ins Flash_SumsOfTiles:$contributions,
    Flash_SumsOfTiles:$sums, Flash_CountsOfTiles:$counts);
  let assemblyFormat = [{
    $contributions `to` $sums `counting` $counts attr-dict
    `:` type($sums) `,` type($counts)
  }];
  let hasVerifier = 1;
}

def Flash_InsertDiagonalsOp : Flash_Op<"insert_diagonals",
    [Pure, AllTypesMatch<["sums", "result"]>]> {
  let summary = "inserts the sums of a tile's diagonals into a row of a tensor";
  let description = [{
    Element `R + c - r` of the row of R + C elements that the indices name becomes the sum, in
    f32, of the elements at rows `r` and columns `c` of a tile `[R, C]`; element 0, of no
    diagonal, becomes 0. With keys as rows and queries as columns these are the sums of all
    pairs at the same distance.

    Example:

    ```mlir
    %1 = flash.insert_diagonals %dx into %0[%h, %i] : tensor<128x64xf16> into tensor<4x?x192xf32>
    ```
  }];
  let arguments = (ins Flash_FloatTile:$tile, Flash_F32Tensor:$sums,
    Variadic<Index>:$indices);
  let results = (outs Flash_F32Tensor:$result);
  let assemblyFormat = [{
    $tile `into` $sums `[` $indices `]` attr-dict `:` type($tile) `into` type($sums)
  }];
  let hasVerifier = 1;
}

#endif // FLASH_CONTRIBUTIONS_TD
