//===- FlashAttrs.td - Masks --------------------------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ATTRS_TD
#define FLASH_ATTRS_TD

include "flash/Dialect/Flash/IR/FlashDialect.td"
include "flash/Dialect/Flash/IR/FlashMaskInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Flash_Attr<string cppName, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Flash_Dialect, cppName, traits> {
  let mnemonic = attrMnemonic;
}

class Flash_Mask<string cppName, string attrMnemonic>
    : Flash_Attr<cppName, attrMnemonic,
        [DeclareAttrInterfaceMethods<Flash_MaskAttrInterface>]>;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

def Flash_AlignmentEnum : I32EnumAttr<"Alignment",
    "the corner in which a causal mask's diagonal starts", [
      I32EnumAttrCase<"BottomRight", 0, "bottom_right">,
      I32EnumAttrCase<"TopLeft", 1, "top_left">]> {
  let cppNamespace = "::flash";
}

def Flash_FullAttr : Flash_Mask<"Full", "full"> {
  let summary = "every key takes part";
  let description = "`#flash.full` is what an absent mask means.";
}

def Flash_CausalAttr : Flash_Mask<"Causal", "causal"> {
  let summary = "keys up to the diagonal take part";
  let description = [{
    `#flash.causal` keeps `j <= i + nk - nq` (the last query faces the last
    key, as in FlashAttention); `#flash.causal<top_left>` keeps `j <= i` (the
    first query faces the first key, as in PyTorch).
  }];
  let parameters = (ins
    DefaultValuedParameter<"Alignment", "Alignment::BottomRight">:$alignment);
  let assemblyFormat = "(`<` $alignment^ `>`)?";
}

def Flash_WindowAttr : Flash_Mask<"Window", "window"> {
  let summary = "keys near the diagonal take part";
  let description = [{
    `#flash.window<left = l, right = r>` keeps
    `i + nk - nq - l <= j <= i + nk - nq + r`. A side that is left out is
    unbounded. Both are counts of keys and not negative.
  }];
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$left,
                        OptionalParameter<"std::optional<int64_t>">:$right);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Flash_PrefixAttr : Flash_Mask<"Prefix", "prefix"> {
  let summary = "the first keys take part";
  let description = "`#flash.prefix<n>` keeps `j < n`.";
  let parameters = (ins "int64_t":$length);
  let assemblyFormat = "`<` $length `>`";
  let genVerifyDecl = 1;
}

def Flash_AffineMaskAttr : Flash_Mask<"AffineMask", "affine"> {
  let summary = "keys inside an affine set take part";
  let description = [{
    `#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (...)>>` keeps the elements
    of the set; `floordiv`, `mod` and equalities are allowed. For example block
    diagonal attention over documents of 128 tokens:

    ```mlir
    #flash.affine<affine_set<(b, h, i, j)[nq, nk]
        : (i floordiv 128 - j floordiv 128 == 0)>>
    ```
  }];
  let parameters = (ins "::mlir::IntegerSetAttr":$set);
  let assemblyFormat = "`<` $set `>`";
  let genVerifyDecl = 1;
}

def Flash_AnyOfAttr : Flash_Mask<"AnyOf", "any_of"> {
  let summary = "the union of masks";
  let parameters = (ins ArrayRefParameter<"MaskAttrInterface">:$masks);
  let assemblyFormat = "`<` custom<MaskList>($masks) `>`";
  let genVerifyDecl = 1;
}

def Flash_AllOfAttr : Flash_Mask<"AllOf", "all_of"> {
  let summary = "the intersection of masks";
  let parameters = (ins ArrayRefParameter<"MaskAttrInterface">:$masks);
  let assemblyFormat = "`<` custom<MaskList>($masks) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Visits of tiles
//===----------------------------------------------------------------------===//

def Flash_VisitKindAttr : I32EnumAttr<"VisitKind",
    "which tiles a loop visits", [
      I32EnumAttrCase<"Keys", 0, "keys">,
      I32EnumAttrCase<"Queries", 1, "queries">,
      I32EnumAttrCase<"Diagonal", 2, "diagonal">,
      I32EnumAttrCase<"Batches", 3, "batches">,
      I32EnumAttrCase<"Heads", 4, "heads">]> {
  let cppNamespace = "::flash";
}

def Flash_TileBoundAttr : Flash_Attr<"TileBound", "bound"> {
  let summary = "a bound on the tiles that a loop visits";
  let description = [{
    `#flash.bound<map if set>` counts where the point `(b, h, i0)[nq, nk]` lies in the set,
    `#flash.bound<map>` everywhere; see `MaskTiles.h`.
  }];
  let parameters = (ins "::mlir::AffineMapAttr":$map,
                        OptionalParameter<"::mlir::IntegerSetAttr">:$guard);
  let assemblyFormat = "`<` $map (`if` $guard^)? `>`";
}

def Flash_TilesAttr : Flash_Attr<"Tiles", "tiles"> {
  let summary = "which tiles a mask leaves to a loop over tiles";
  let description = [{
    What the analysis of a mask says of the tiles that a `flash.visit` goes over, as a function of the tile that stays
    and of the lengths. It visits the tiles of `[lo, hi)` and no others; with `visited` it visits only those for which
    one of these sets holds. The visited tiles of `[full_lo, full_hi)` are full, that is, no element of them is
    masked; with `not_full` a tile for which one of these sets holds is not full. Bounds are arrays of `#flash.bound`,
    which `MaskTiles.h` says how to combine; a bound that is left out is no restriction, or for `hi` no tile at all.

    ```mlir
    #flash.tiles<hi = [#flash.bound<affine_map<(b, h, i)[nq, nk] -> (i floordiv 128 + 1, nk ceildiv 128)>>],
                 full_hi = [...]>
    ```
  }];
  let parameters = (ins OptionalParameter<"::mlir::ArrayAttr">:$lo,
                        OptionalParameter<"::mlir::ArrayAttr">:$hi,
                        OptionalParameter<"::mlir::ArrayAttr">:$full_lo,
                        OptionalParameter<"::mlir::ArrayAttr">:$full_hi,
                        OptionalParameter<"::mlir::ArrayAttr">:$visited,
                        OptionalParameter<"::mlir::ArrayAttr">:$not_full);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether visited and full tiles are ranges, so that no tile is tested.
    bool areRanges() const { return !getVisited() && !getNotFull(); }
  }];
}

//===----------------------------------------------------------------------===//
// The meaning of the leading dimension of rank-3 operands
//===----------------------------------------------------------------------===//

def Flash_LeadingAttr : I32EnumAttr<"Leading",
    "what the leading dimension of rank-3 operands is", [
      I32EnumAttrCase<"Heads", 0, "heads">,
      I32EnumAttrCase<"Batch", 1, "batch">]> {
  let cppNamespace = "::flash";
}

//===----------------------------------------------------------------------===//
// The precision of products
//===----------------------------------------------------------------------===//

def Flash_PrecisionAttr : I32EnumAttr<"Precision",
    "what the operands of products may be rounded to", [
      I32EnumAttrCase<"TF32", 0, "tf32">,
      I32EnumAttrCase<"FP8", 1, "fp8">]> {
  let cppNamespace = "::flash";
}

def Flash_ProductPrecisionAttr : Flash_Attr<"ProductPrecision", "precision"> {
  let summary = "what the operands of a product may be rounded to";
  let description = [{
    `flash.precision = #flash.precision<tf32>`, a discardable attribute of a
    `linalg.contract` of f32, says of this product what `precision(tf32)` says of
    both products of an attention:

    ```mlir
    linalg.contract indexing_maps = [...] {flash.precision = #flash.precision<tf32>} ins(...)
    ```

    `#flash.precision<fp8>` is of a `linalg.contract` of weights `[M, N]` and values `[D, N]` of f8E4M3FN, whose values
    are interleaved as `flash.interleave` gives them: column `16 c + 8 i + 2 t + e` of the weights, for i and e of 0 and
    1 and t from 0 to 3, is multiplied by column `16 c + 4 t + 2 i + e` of the values.
  }];
  let parameters = (ins EnumParameter<Flash_PrecisionAttr>:$value);
  let assemblyFormat = "`<` $value `>`";
}

def Flash_OrderAttr : Flash_Attr<"Order", "order"> {
  let summary = "the order in which CTAs take the tiles of a kernel";
  let description = [{
    A grid has tiles in some dimensions. Along the last of them tiles may take
    longer and longer (queries under a causal mask); the others together are
    the heads. A wave is as many CTAs as run at the same time.

    - `linear`: row by row, the last dimension the fastest.
    - `backwards`: as `linear`, from the last tile to the first: what a program before
      wrote last is then read first, out of the cache.
    - `interleaved`: of as many heads as have a wave of tiles (two if persistent CTAs claim tiles of known length), one
      if it has more, first the first tile of each, then the second. For tiles that add to what the
      tile before adds to (`flash.parallel_add`), which then begins early enough
      that they need not wait; more heads would not stay in the cache.
    - `reverse`: as `interleaved`, with the last dimension backwards: where a window
      lets each tile of keys begin with the queries that it is the first to have.
    - `both_ways`: as `reverse`, but the last heads, of four waves of tiles, come forwards if
      there is at least a wave of others: for a causal mask, where the last tiles to be begun are
      then the shortest.
    - `longest_first`: for CTAs that take one tile each, whenever there is room
      for them. The longest tiles of as many heads as fill two waves come first.
    - `snake`: for persistent CTAs, which take one tile of each wave, every
      other wave backwards (`tile-persist`). The longest tiles of all heads
      first.
    - `pairs`: as `snake`, where a tile and its counterpart from the other end
      of a head are as long as any two such tiles. What a CTA gets in two waves,
      a tile of one head and one of the next, is as long as what any other gets;
      so heads follow each other, and the keys that all CTAs read at the same
      time belong to few heads. Only the last waves go by length.
    - `heads_fastest`: as `linear`, with the last two dimensions exchanged: the
      tiles of one number of all heads follow each other. For persistent CTAs where such
      tiles take as long, whatever others do: what the CTAs of a wave get is then
      alike.
    - `halves`: one head follows the other; of each, the last tile, then the last one of the first half, then the last but
      one, and so on backwards through both halves. For batches of sequences, some with prompts, which multiply,
      and others with tokens, which read memory: engines put one kind in front of the other, and CTAs
      have both at the same time, with the longest tiles of a prompt first. If a wave of CTAs has room for two heads or more, all tiles of as
      many heads run at the same time, and come backwards.

    Where tiles add to sums, orders that interleave heads (`interleaved`, `reverse`, `both_ways`) take as many heads together
    as let a tile begin two additions behind the one before of its head: closer it would wait, and further apart the cache
    would have forgotten the queries that both read. These are fewer heads where a tile of keys goes through the queries
    of several, and more where there are few queries.

    In a `flash.kernel` over packed rows that adds to sums, each sequence has such an order for itself, and sequences follow
    each other: how many heads are taken together depends on how long the sequence is.

    A `flash.kernel` without one has `linear`. The CPU ignores it.
  }];
  let parameters = (ins "::flash::TileOrder":$kind);
  let assemblyFormat = "`<` $kind `>`";
}

#endif // FLASH_ATTRS_TD
