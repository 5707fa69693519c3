//===- TileTypes.td - Shared memory, rings, pending values -*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_TYPES_TD
#define FLASH_TILE_TYPES_TD

include "flash/Dialect/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Tile_Type<string cppName, string typeMnemonic>
    : TypeDef<Tile_Dialect, cppName> {
  let mnemonic = typeMnemonic;
}

def Tile_SmemType : Tile_Type<"Smem", "smem"> {
  let summary = "a tile in shared memory";
  let description = [{
    `!tile.smem<128x64xf16, swizzle = 128>`: 128 rows of 64 elements. The rows
    are cut into panels of `swizzle` bytes (16, 32, 64 or 128), which lie one after
    the other; in a panel, row `r` starts at byte `r * swizzle`, and the bits 4
    and up of an address are combined by exclusive or with the bits 7 and up,
    so that eight rows of a column of 16-byte chunks fall into different banks
    (the swizzle modes of the tensor memory accelerator, PTX ISA, "Swizzling
    Modes"). With 16 there is nothing to combine: eight rows of a panel lie side
    by side. Columns up to the next multiple of 32 bytes exist and are zero.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns,
                        "::mlir::Type":$elementType, "int64_t":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A tile with the narrowest swizzle that holds a row, or 128 bytes.
    static SmemType get(int64_t rows, int64_t columns, ::mlir::Type elementType);
    int64_t getElementBytes() const;
    /// Elements in a row of a panel.
    int64_t getPanelColumns() const { return getSwizzle() / getElementBytes(); }
    int64_t getNumPanels() const;
    int64_t getPanelBytes() const { return getRows() * getSwizzle(); }
    int64_t getNumBytes() const { return getPanelBytes() * getNumPanels(); }
    /// Where tiles start, in bytes: after so many the pattern of the swizzle
    /// repeats.
    int64_t getAlignment() const { return 8 * getSwizzle(); }
    /// The bytes from a tile's start to where the next can start.
    int64_t getAlignedBytes() const;
    /// The byte at which an element lies.
    int64_t getByteOffset(int64_t row, int64_t column) const;
  }];
}

def Tile_RingType : Tile_Type<"Ring", "ring"> {
  let summary = "a queue of shared-memory tiles";
  let description = "`!tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>`";
  let parameters = (ins "int64_t":$stages, Tile_SmemType:$tile);
  let assemblyFormat = "`<` $stages `,` $tile `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes from one stage to the next.
    int64_t getStageDistance() const;
  }];
}

def Tile_PendingType : Tile_Type<"Pending", "pending"> {
  let summary = "a tile that is still being computed";
  let parameters = (ins "::mlir::RankedTensorType":$value);
  let assemblyFormat = "`<` $value `>`";
}

#endif // FLASH_TILE_TYPES_TD
