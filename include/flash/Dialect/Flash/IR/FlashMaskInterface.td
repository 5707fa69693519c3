//===- FlashMaskInterface.td - What every mask provides ----*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_MASK_INTERFACE_TD
#define FLASH_MASK_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Flash_MaskAttrInterface : AttrInterface<"MaskAttrInterface"> {
  let cppNamespace = "::flash";
  let description = [{
    A mask says which (query `i`, key `j`) pairs of (batch `b`, head `h`) take
    part in the softmax. It provides exactly one thing: its form, an affine set
    of those pairs or the union or intersection of other masks. The element
    predicate, the classification of tiles into empty, partial and full, and the
    count of unmasked elements are all derived from it, so they cannot disagree.
  }];
  let methods = [
    InterfaceMethod<"What the mask is.", "::flash::MaskForm", "getForm">
  ];
}

#endif // FLASH_MASK_INTERFACE_TD
