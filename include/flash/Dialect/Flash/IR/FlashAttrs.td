//===- FlashAttrs.td - Masks and schedules -----------------*- tablegen -*-===//
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
// Schedule
//===----------------------------------------------------------------------===//

def Flash_ScheduleFeatures : I32BitEnumAttr<"ScheduleFeatures",
    "what the warps of a block do at the same time", [
      I32BitEnumAttrCaseNone<"None", "none">,
      I32BitEnumAttrCaseBit<"SpecializeWarps", 0, "specialize_warps">,
      I32BitEnumAttrCaseBit<"Overlap", 1, "overlap">,
      I32BitEnumAttrCaseBit<"PingPong", 2, "ping_pong">,
      I32BitEnumAttrCaseBit<"LazyRescale", 3, "lazy_rescale">,
      I32BitEnumAttrCaseBit<"Persistent", 4, "persistent">,
      I32BitEnumAttrCaseBit<"BulkStore", 5, "bulk_store">]> {
  let cppNamespace = "::flash";
  let genSpecializedAttr = 0;
  let printBitEnumPrimaryGroups = 0;
}

def Flash_ScheduleFeaturesParameter : EnumParameter<Flash_ScheduleFeatures> {
  let defaultValue = "::flash::ScheduleFeatures::None";
}

def Flash_ScheduleAttr : Flash_Attr<"Schedule", "schedule"> {
  let summary = "how an attention is cut into tiles";
  let description = [{
    `#flash.schedule<query_tile = 64, key_tile = 128>`: `query_tile` queries of
    one (batch, head) pair form a unit of parallel work, which visits the keys
    `key_tile` at a time. Both are positive multiples of 8, at most 1024.

    On a GPU the unit is a thread block, and
    `#flash.schedule<query_tile = 128, key_tile = 64, warps = 4, stages = 1>`
    says further that `warps` (1 to 32) share the queries, 16 at a time each,
    and that `stages` (1 to 16) tiles of keys, and of values, are in shared
    memory, and `query_stages` (1 or 2) of queries where a block has several.
    `resident_blocks` (1 to 4) of blocks whose warps have roles share a
    multiprocessor, its registers and its shared memory; without it, one has all.

    `features = specialize_warps|overlap` lists what else is done, by the pass
    that does it: `tile-specialize-warps`, `tile-overlap`, `tile-ping-pong`,
    `tile-persist` (`persistent`), `tile-bulk-stores` and, of the online softmax, to rescale the accumulator only when a maximum has
    grown by much (`lazy_rescale`).

    With few queries there are few units, too few to fill a GPU. So units may
    also share the key tiles of the same queries, with a second kernel that
    combines their results: `splits = 4` (1 to 256) makes it four units for each
    query tile. `units = 264` (1 to 65536) leaves the number to the sizes: as
    many as give at most 264 units in all, each of which has at least two of at
    least eight key tiles. If the sizes are known at run time only, so is the number; where it
    is 1 there is no second kernel. The CPU ignores both.

    `flash-select-schedule` proposes a schedule; a user may write it.
  }];
  let parameters = (ins "int64_t":$query_tile, "int64_t":$key_tile,
                        OptionalParameter<"std::optional<int64_t>">:$warps,
                        OptionalParameter<"std::optional<int64_t>">:$stages,
                        OptionalParameter<"std::optional<int64_t>">:$query_stages,
                        OptionalParameter<"std::optional<int64_t>">:$resident_blocks,
                        Flash_ScheduleFeaturesParameter:$features,
                        OptionalParameter<"std::optional<int64_t>">:$splits,
                        OptionalParameter<"std::optional<int64_t>">:$units);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What is wrong with the value of a key, such as "query_tile"; empty if
    /// nothing is.
    static std::string getFault(llvm::StringRef key, int64_t value);
    /// The warps that share a tile of queries where no schedule says: as many as
    /// it has groups of 16, up to four. More would share the tiles of keys in
    /// shared memory, but each reads all of them.
    static int64_t getDefaultWarps(int64_t queryTile);
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
      I32EnumAttrCase<"TF32", 0, "tf32">]> {
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
  }];
  let parameters = (ins EnumParameter<Flash_PrecisionAttr>:$value);
  let assemblyFormat = "`<` $value `>`";
}

#endif // FLASH_ATTRS_TD
