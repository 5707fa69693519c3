//===- TileLayoutInterface.td - What a layout answers ------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_LAYOUT_INTERFACE_TD
#define FLASH_TILE_LAYOUT_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Tile_LayoutAttrInterface : AttrInterface<"LayoutAttrInterface"> {
  let cppNamespace = "::flash::tile";
  let description = [{
    Says where the elements of a tensor are. The coordinates of a register are
    a sum of a part that depends on the thread only and a part that depends on
    the register only, so that code for all registers shares the former.
  }];
  let methods = [
    InterfaceMethod<"The number of warps that hold the tensor.",
      "int64_t", "getNumWarps">,
    InterfaceMethod<"The first of them in the block.",
      "int64_t", "getFirstWarp", (ins), /*methodBody=*/"", /*defaultImplementation=*/"return 0;">,
    InterfaceMethod<"The number of registers of a thread for a tensor's shape.",
      "int64_t", "getNumRegisters", (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"The part of the coordinates that depends on the thread.",
      "::llvm::SmallVector<int64_t, 2>", "getThreadPart",
      (ins "int64_t":$warp, "int64_t":$lane)>,
    InterfaceMethod<"The part of the coordinates that depends on the register.",
      "::llvm::SmallVector<int64_t, 2>", "getRegisterPart",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "int64_t":$register_)>,
  ];
}

#endif // FLASH_TILE_LAYOUT_INTERFACE_TD
