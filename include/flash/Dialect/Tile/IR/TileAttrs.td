//===- TileAttrs.td - Layouts of register tiles ------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_ATTRS_TD
#define FLASH_TILE_ATTRS_TD

include "flash/Dialect/Tile/IR/TileDialect.td"
include "flash/Dialect/Tile/IR/TileLayoutInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"

class Tile_Layout<string cppName, string attrMnemonic>
    : AttrDef<Tile_Dialect, cppName,
        [DeclareAttrInterfaceMethods<Tile_LayoutAttrInterface>,
         DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = attrMnemonic;
  let parameters = (ins "int64_t":$warps,
                        DefaultValuedParameter<"int64_t", "0">:$first_warp);
  let assemblyFormat = "`<` $warps (`from` $first_warp^)? `>`";
  let builders = [AttrBuilder<(ins "int64_t":$warps), [{
    return $_get($_ctxt, warps, 0);
  }]>];
  let genVerifyDecl = 1;
}

def Tile_FragmentAttr : Tile_Layout<"Fragment", "fragment"> {
  let summary = "the layout of a matrix that a tensor core writes";
  let description = [{
    `tensor<MxNxf32, #tile.fragment<W>>` is spread over `W` warps as the result
    of `mma.sync` m16n8 is, repeated along both dimensions; the result of
    `wgmma` m64 is the same with `W = 4`, and rounded to 16 bits it is the
    first operand of the next product, without any data movement (PTX ISA,
    "Matrix Fragments for mma.m16n8k16" and "Register Fragments and Shared
    Memory Matrix Layouts" of wgmma). Element `(i, j)` is held by

    ```
    warp     = (i / 16) mod W
    lane     = 4 * (i mod 8) + (j mod 8) / 2
    register = ((i / (16 W)) * (N / 8) + j / 8) * 4 + 2 * ((i / 8) mod 2) + j mod 2
    ```

    so four neighbouring lanes share a row. `M` is a multiple of `16 W`, `N` of
    8.

    `#tile.fragment<4 from 4>` is the same over other warps of the block, from the one that is given on, whose role has
    them (`tile.warp_specialize`); so are the other layouts that follow from a fragment.
    Tiles of different warps are not operands of one operation: a tile goes from warps to others through shared memory
    (`tile.share`, `tile.load`).
  }];
}

def Tile_WideFragmentAttr : Tile_Layout<"WideFragment", "wide_fragment"> {
  let summary = "the layout of a matrix of whose rows each thread has four neighbours";
  let description = [{
    `tensor<MxNxf32, #tile.wide_fragment<W>>` is `#tile.fragment<W>` with the columns of every 16 in another order, as a
    product gives them that reads the rows of a tile of 8 bits (`tile.mma_quantized`): where instructions load pairs of
    bytes, the even columns are of one `mma.sync` and the odd ones of the next. Element `(i, j)` is held by

    ```
    warp     = (i / 16) mod W
    lane     = 4 * (i mod 8) + (j mod 16) / 4
    register = ((i / (16 W)) * (N / 8) + j / 16 * 2 + j / 2 mod 2) * 4 + 2 * ((i / 8) mod 2) + j mod 2
    ```

    `M` is a multiple of `16 W`, `N` of 16. Values of rows are in `#tile.rows<W>`, as for fragments.
  }];
}

def Tile_RowsAttr : Tile_Layout<"Rows", "rows"> {
  let summary = "the layout of one value for each row of a fragment";
  let description = [{
    `tensor<MxT, #tile.rows<W>>`: every thread holds the values of the rows in
    which it has elements of a `#tile.fragment<W>`, so each value is held by
    four lanes. Register `2 * (i / (16 W)) + (i / 8) mod 2` is row `i`.
  }];
}

def Tile_ColumnsAttr : Tile_Layout<"Columns", "columns"> {
  let summary = "the layout of one value for each column of a fragment";
  let description = [{
    `tensor<NxT, #tile.columns<W>>`: every thread holds the values of the columns
    in which it has elements of a `#tile.fragment<W>`, so each value is held by
    eight lanes of each warp. Register `2 * (j / 8) + j mod 2` is column `j`.
  }];
}

def Tile_LanesAttr : Tile_Layout<"Lanes", "lanes"> {
  let summary = "the layout of four values for each row, one in each lane";
  let description = [{
    `tensor<Mx4xT, #tile.lanes<W>>`: column `c` of row `i` is held by the lane
    that holds the elements `(i, j)` with `(j mod 8) / 2 = c` of a
    `#tile.fragment<W>`. The values are partial results of a reduction along
    the row; combining them takes shuffles, which `tile.reduce` has.
  }];
}

def Tile_WarpRowsAttr : AttrDef<Tile_Dialect, "WarpRows",
    [DeclareAttrInterfaceMethods<Tile_LayoutAttrInterface>,
     DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "warp_rows";
  let summary = "the layout of whole rows, each in neighbouring lanes";
  let description = [{
    `tensor<MxNxT, #tile.warp_rows<W, V, L>>` is spread over `W` warps: every row
    belongs to `L` neighbouring lanes, all 32 of a warp if `L` is not written, a
    part of them, or all of several warps. They hold `V` neighbouring elements
    each, over and over. This is for what only reads and writes rows: 16 bytes of
    neighbouring lanes are neighbours in memory. As many rows as fit,
    `P = 32 W / L`, are next to each other. Element `(i, j)` is held by

    ```
    thread   = L (i mod P) + (j / V) mod L
    register = (i / P) * ceil(N / (L V)) * V + (j / (L V)) * V + j mod V
    ```

    `L` is a power of two up to 32, or a multiple of 32; `P` is a whole number, and
    `M` a multiple of it. Where `N` is no multiple of `L V`, registers that would be
    columns from `N` on hold anything. With `V = 1` and `N = L` there is one value
    in each lane, as in `#tile.lanes`. In `tensor<MxT, #tile.warp_rows<W, 1, L>>` all
    lanes of a row hold its value, as in `#tile.rows`.
  }];
  let parameters = (ins "int64_t":$warps, "int64_t":$vector,
                        DefaultValuedParameter<"int64_t", "32">:$lanes);
  let assemblyFormat = "`<` $warps `,` $vector (`,` $lanes^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// How many rows are next to each other.
    int64_t getNumRowsAtOnce() const { return 32 * getWarps() / getLanes(); }
  }];
}

// As arith has them: of a number and NaN, `max` and `min` give the number,
// `maximum` and `minimum` NaN.
def Tile_ReductionEnum : I32EnumAttr<"Reduction", "how values are combined", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">,
    I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Mul", 3, "mul">,
    I32EnumAttrCase<"Maximum", 4, "maximum">,
    I32EnumAttrCase<"Minimum", 5, "minimum">]> {
  let cppNamespace = "::flash::tile";
  let genSpecializedAttr = 0;
}
def Tile_ReductionAttr
    : EnumAttr<Tile_Dialect, Tile_ReductionEnum, "reduction">;

def Tile_OrderAttr : AttrDef<Tile_Dialect, "Order"> {
  let mnemonic = "order";
  let summary = "the order in which CTAs take the tiles of a grid";
  let description = [{
    The orders of `#flash.order`. On a loop over tiles, `scf.forall`, the order is the
    discardable attribute `tile.order`, which `convert-flash-to-scf` makes of a kernel's.
  }];
  let parameters = (ins "::flash::TileOrder":$kind);
  let assemblyFormat = "`<` $kind `>`";
}

def Tile_PipelineAttr : AttrDef<Tile_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "when an operation of a loop runs";
  let description = [{
    The discardable attribute `tile.pipeline` of an operation in the body of an `scf.for`. What is of
    `stage` 1 runs an iteration later than what is of stage 0. Within an iteration of the pipelined
    loop `cluster` 0 comes first; of one cluster stage 1 does, and else operations keep their order. What needs something of a
    later cluster runs behind that. An operation without the attribute runs as soon as what it needs
    has been computed.

    Passes that decide what overlaps set it, `tile-pipeline` verifies and expands it, and
    until then it changes nothing.

    ```mlir
    %op = tile.mma_async %p, %vt add %acc {tile.pipeline = #tile.pipeline<stage = 1, cluster = 1>} : ...
    ```

    On a `tile.ring.release` behind the loop, stage 0 says that it comes before the last
    operations of stage 1.
  }];
  let parameters = (ins "int64_t":$stage, "int64_t":$cluster);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// When the operation runs; null if it does not say.
    static PipelineAttr of(::mlir::Operation *op);
    static void set(::mlir::Operation *op, int64_t stage, int64_t cluster);
  }];
}

#endif // FLASH_TILE_ATTRS_TD
