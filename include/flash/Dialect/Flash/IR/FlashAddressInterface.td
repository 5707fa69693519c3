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
      Emits where the row (batch, head, row) of the view lies in memory; the rows behind it
      that exist follow it there.
    }], "::llvm::SmallVector<::mlir::OpFoldResult>", "emitAddress",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::llvm::ArrayRef<::mlir::OpFoldResult>":$position)>,
    InterfaceMethod<"Emits how many rows of a batch exist.",
      "::mlir::Value", "emitLength",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$batch)>,
    InterfaceMethod<"Emits the sizes of the view.",
      "::llvm::SmallVector<::mlir::OpFoldResult>", "emitSizes",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc)>
  ];
}

#endif // FLASH_ADDRESS_INTERFACE_TD
