//===- DeclaredAttributes.td - No attribute is ignored -----*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DECLARED_ATTRIBUTES_TD
#define FLASH_DECLARED_ATTRIBUTES_TD

include "mlir/IR/OpBase.td"

def DeclaredAttributesOnly : NativeOpTrait<"DeclaredAttributesOnly"> {
  let cppNamespace = "::flash";
}

#endif // FLASH_DECLARED_ATTRIBUTES_TD
