//===- FlashKernels.td - Kernels and what they store -------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td. A program at level 1 is one `flash.kernel` after the
// other. What a kernel loads and which tiles it visits stands in
// FlashVisits.td; `convert-flash-to-scf` makes loops and slices of all of it.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_KERNELS_TD
#define FLASH_KERNELS_TD

def Flash_ClausesOfKernel : Flash_Clauses<[
  Flash_ValueClause<"rows">, Flash_ValueClause<"outs">,
  Flash_AttributeClause<"schedule">, Flash_AttributeClause<"order">
], "{">;

def Flash_KernelOp : Flash_Op<"kernel",
    [AttrSizedOperandSegments, InferTypeOpAdaptor, RecursiveMemoryEffects,
     SingleBlock]> {
  let summary = "one kernel: what each CTA computes, and how many there are";
  let description = [{
    The region is computed for each position of a grid. Along each dimension the positions start at
    0, are `by` apart and lie before its end in `over`; no position waits for what another one
    writes, and none reads it. The region's arguments are the position, and then `outs` as
    destinations of `flash.store`, which ends the region; nothing reads them, or a slice of them, before the
    position has stored there. The results are `outs` after all stores.

    With `rows`, a view `[B, H, N, ...]` of rows in memory (`AddressOpInterface`), the grid ends in (batch, head, row),
    and has the positions alone whose tile of rows, as many as they are apart, has rows that exist, and maybe a few
    more.

    `schedule` has the keys of this kernel, and of no other: warps, stages and features. `order` says in which order
    CTAs take the positions (`#flash.order`), `linear` if it is not written.

    Example:

    ```mlir
    %0 = flash.kernel over(%c2, %c8, %nq) by [1, 1, 128] outs(%e : tensor<2x8x?x64xf16>) schedule(<warps = 8>) {
    ^bb0(%b: index, %h: index, %i: index, %out: tensor<2x8x?x64xf16>):
      %qt = flash.load_rows %q[%b, %h, %i] rows(%n) : tensor<2x8x?x64xf16> -> tensor<128x64xf16>
      ...
      flash.store {
        flash.store_rows %tile into %out[%b, %h, %i] rows(%n) : tensor<128x64xf16> into tensor<2x8x?x64xf16>
      }
    }
    ```
  }];
  let arguments = (ins Variadic<Index>:$ends, DenseI64ArrayAttr:$steps,
    Optional<AnyRankedTensor>:$rows, Variadic<AnyRankedTensor>:$outs, OptionalAttr<Flash_ScheduleAttr>:$schedule,
    OptionalAttr<Flash_OrderAttr>:$order);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = !strconcat("`over` `(` $ends `)` `by` $steps", Flash_ClausesOfKernel.format,
    "attr-dict-with-keyword", Flash_ClausesOfKernel.end, "$body");
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [
    /// A kernel whose region stores nothing yet.
    OpBuilder<(ins "::llvm::ArrayRef<::mlir::OpFoldResult>":$ends,
      "::llvm::ArrayRef<int64_t>":$steps, "::mlir::ValueRange":$outs,
      CArg<"const ::flash::Schedule &", "::flash::Schedule()">:$schedule,
      CArg<"::mlir::Value", "{}">:$rows)>
  ];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::BlockArgument> getPosition() {
      return getBody().getArguments().take_front(getEnds().size());
    }
    /// The destinations of stores.
    ::llvm::ArrayRef<::mlir::BlockArgument> getDestinations() {
      return getBody().getArguments().take_back(getOuts().size());
    }
    StoreOp getStore();
    /// The block of the stores.
    ::mlir::Block *getStores();
    /// The kernel that `destination` is an argument of.
    static KernelOp of(::mlir::Value destination);
  }];
}

def Flash_StoreOp : Flash_Op<"store",
    [Terminator, HasParent<"KernelOp">, SingleBlock, NoTerminator,
     RecursiveMemoryEffects, InParallelOpInterface]> {
  let summary = "ends a kernel's region with what a position leaves";
  let description = [{
    The region has `flash.store_rows`, `tensor.parallel_insert_slice` and `flash.parallel_add`
    alone. Where two positions of a kernel store the same element, except by `flash.parallel_add`, they store the
    same value.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Of InParallelOpInterface.
    ::mlir::OpResult getParentResult(int64_t index);
    ::llvm::iterator_range<::mlir::Block::iterator> getYieldingOps();
  }];
}

def Flash_StoreRowsOp : Flash_Op<"store_rows",
    [AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<ParallelCombiningOpInterface,
       ["getUpdatedDestinations", "getIteratingParent"]>]> {
  let summary = "stores a tile of rows";
  let description = [{
    The rows of `tile : [M, D]` or `[M]` become the rows of `destination`, `[..., N, D]` or `[..., N]`,
    from `position` on, which has an index for each dimension but D. The first `rows`
    of the tile are stored, all unless it is given. With `packed(P)` the tile has rows of P heads, as
    in `flash.load_rows`, and `rows` counts each head's. A tile with fewer columns than the destination
    becomes those from `column` on.

    Example:

    ```mlir
    flash.store_rows %tile into %out[%b, %h, %i] rows(%n) : tensor<128x64xf16> into tensor<2x8x?x64xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tile, AnyRankedTensor:$destination,
    Variadic<Index>:$position, Optional<Index>:$rows, Optional<Index>:$column,
    OptionalAttr<I64Attr>:$packed);
  let assemblyFormat = [{
    $tile `into` $destination `[` $position `]` (`rows` `(` $rows^ `)`)? (`column` `(` $column^ `)`)?
    (`packed` `(` $packed^ `)`)? attr-dict `:` type($tile) `into` type($destination)
  }];
  let hasVerifier = 1;
}

#endif // FLASH_KERNELS_TD
