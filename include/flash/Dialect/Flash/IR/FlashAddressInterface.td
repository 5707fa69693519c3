//===- FlashAddressInterface.td - Where rows lie in memory -*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ADDRESS_INTERFACE_TD
#define FLASH_ADDRESS_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Flash_AddressOpInterface : OpInterface<"AddressOpInterface"> {
  let cppNamespace = "::flash";
  let description = [{
    Says where the rows of a view `[B, H, N, D]`, or `[B, H, N]`, lie in a tensor in memory. Attention
    and its gradients see the view alone; a kernel loads tiles of it (`flash.load_rows`) and
    stores tiles (`flash.store_rows`), which `convert-flash-to-scf` makes slices of the tensor in memory. See
    docs/adding-an-address.md.
  }];
  let methods = [
    InterfaceMethod<"The tensor in memory, of the rank of the view.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getMemory">,
    InterfaceMethod<"The view: a result, or the operand that is stored.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getView">,
    InterfaceMethod<[{
      How many rows of a batch follow each other in memory, from each multiple of this number on; nothing if all
      of them do. Kernels do not go over rows that lie in such parts, and store none: these addresses need no
      tiles and no gaps.
    }], "std::optional<int64_t>", "getContiguousRows", (ins), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      Emits where the row (batch, head, row) of the view lies in memory; the rows behind it that exist follow it
      there, as far as they are contiguous. Where rows lie in parts it exists, or is the first one of its batch.
    }], "::llvm::SmallVector<::mlir::OpFoldResult>", "emitAddress",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::llvm::ArrayRef<::mlir::OpFoldResult>":$position)>,
    InterfaceMethod<"Emits how many rows of a batch exist.",
      "::mlir::Value", "emitLength",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$batch)>,
    InterfaceMethod<[{
      Emits the ranges of rows in memory, each with its first row and the row behind its last one, that are no
      rows of a batch. A kernel that stores the view does not write them.
    }], "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>", "emitGaps",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc), [{}], [{
      llvm_unreachable("rows lie in parts");
    }]>,
    InterfaceMethod<"Emits the sizes of the view.",
      "::llvm::SmallVector<::mlir::OpFoldResult>", "emitSizes",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc)>,
    InterfaceMethod<"Whether `lengths` has how many rows of each batch exist.",
      "bool", "hasLengths", (ins "::mlir::Value":$lengths)>,
    InterfaceMethod<[{
      Emits a bound on the number of tiles of `rows` rows that all batches have together. Each tile with a row
      that exists has a number below it, and the tiles of a batch follow each other, so that what a kernel keeps
      of tiles needs memory for the bound alone.
    }], "::mlir::Value", "emitTileCount",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "int64_t":$rows), [{}], [{
      llvm_unreachable("rows lie in parts");
    }]>,
    InterfaceMethod<"Whether it is in memory how many batches, the first ones, have rows.",
      "bool", "hasCount", (ins), [{}], [{
      return false;
    }]>,
    InterfaceMethod<"Emits, of that number, a bound on the number of tiles as `emitTileCount` does.",
      "::mlir::Value", "emitExistingTiles",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "int64_t":$rows), [{}], [{
      llvm_unreachable("no count is in memory");
    }]>,
    InterfaceMethod<"Emits the number of a batch's first tile.",
      "::mlir::Value", "emitFirstTile",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$batch, "int64_t":$rows), [{}], [{
      llvm_unreachable("rows lie in parts");
    }]>,
    InterfaceMethod<[{
      Emits the batch of the tile with this number. The numbers behind a batch's last tile and before the next
      batch's first one are of no tile; the batch is the one before.
    }], "::mlir::Value", "emitBatchOfTile",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$number, "int64_t":$rows), [{}], [{
      llvm_unreachable("rows lie in parts");
    }]>
  ];
  let extraClassDeclaration = [{
    /// The address of the rows that attention, or a kernel, takes; null if they lie in
    /// memory as their dimensions say. Rows that are dequantized lie where their source does.
    static AddressOpInterface ofRows(::mlir::Value rows);
    /// The address at which `result` is stored, if it is used nowhere else.
    static AddressOpInterface ofStored(::mlir::Value result);
    /// Whether the address is where its view is stored, not where it is read.
    bool isStore() { return getView().getDefiningOp() != getOperation(); }
  }];
}

#endif // FLASH_ADDRESS_INTERFACE_TD
