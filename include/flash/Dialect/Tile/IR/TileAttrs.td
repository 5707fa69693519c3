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
  let parameters = (ins "int64_t":$warps);
  let assemblyFormat = "`<` $warps `>`";
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
  let summary = "the layout of whole rows, each in one warp";
  let description = [{
    `tensor<MxNxT, #tile.warp_rows<W, V>>`: every row belongs to one of `W` warps,
    whose lanes hold `V` neighbouring elements each, over and over. This is for
    what only reads and writes rows: 16 bytes of neighbouring lanes are
    neighbours in memory. Element `(i, j)` is held by

    ```
    warp     = i mod W
    lane     = (j / V) mod 32
    register = (i / W) * (N / 32) + (j / (32 V)) * V + j mod V
    ```

    `M` is a multiple of `W`, `N` of `32 V`. With `V = 1` and `N = 32` there is
    one value in each lane, as in `#tile.lanes`. In `tensor<MxT, #tile.warp_rows<W, 1>>`
    all lanes of a warp hold the values of its rows, as in `#tile.rows`.
  }];
  let parameters = (ins "int64_t":$warps, "int64_t":$vector);
  let assemblyFormat = "`<` $warps `,` $vector `>`";
  let genVerifyDecl = 1;
}

def Tile_ReductionEnum : I32EnumAttr<"Reduction", "how values are combined", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::flash::tile";
  let genSpecializedAttr = 0;
}
def Tile_ReductionAttr
    : EnumAttr<Tile_Dialect, Tile_ReductionEnum, "reduction">;

def Tile_OrderKind : I32EnumAttr<"OrderKind", "in which order tiles are taken", [
    I32EnumAttrCase<"Linear", 0, "linear">,
    I32EnumAttrCase<"LongestFirst", 1, "longest_first">,
    I32EnumAttrCase<"Snake", 2, "snake">, I32EnumAttrCase<"Pairs", 3, "pairs">,
    I32EnumAttrCase<"Table", 4, "table">]> {
  let cppNamespace = "::flash::tile";
  let genSpecializedAttr = 0;
}

def Tile_OrderAttr : AttrDef<Tile_Dialect, "Order"> {
  let mnemonic = "order";
  let summary = "the order in which CTAs take the tiles of a grid";
  let description = [{
    A grid has tiles in some dimensions. Along the last of them tiles may take
    longer and longer (queries under a causal mask); the others together are
    the heads. A wave is as many CTAs as run at the same time.

    - `linear`: row by row, the last dimension the fastest.
    - `longest_first`: for CTAs that take one tile each, whenever there is room
      for them. Of as many heads as fill two waves, the longest tiles first.
    - `snake`: for persistent CTAs, which take one tile of each wave, every
      other wave backwards (`tile-persist`). The longest tiles of all heads
      first.
    - `pairs`: as `snake`, where a tile and its counterpart from the other end
      of a head are as long as any two such tiles. What a CTA gets in two waves,
      a tile of one head and one of the next, is as long as what any other gets;
      so heads follow each other, and the keys that all CTAs read at the same
      time are those of few heads. Only the last waves go by length.
    - `table`: a table has the tile's number, as `linear` counts, for each CTA:
      for work whose lengths only the data tell. It must have every tile once.

    On a loop over tiles, `scf.forall`, the order is the discardable attribute
    `tile.order`; a table is then an argument of the function, by its number:

    ```mlir
    func.func @f(%q: tensor<...>, %table: tensor<?xi32>) {
      scf.forall (%b, %h, %i) in (...) shared_outs(...) {
        ...
      } {tile.order = #tile.order<table(1)>}
    ```
  }];
  let parameters = (ins EnumParameter<Tile_OrderKind>:$kind,
                        OptionalParameter<"std::optional<int64_t>">:$argument);
  let assemblyFormat = "`<` $kind (`(` $argument^ `)`)? `>`";
  let builders = [AttrBuilder<(ins "OrderKind":$kind), [{
    return $_get($_ctxt, kind, std::nullopt);
  }]>];
}

#endif // FLASH_TILE_ATTRS_TD
