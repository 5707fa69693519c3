//===- TileRingInterface.td - What operations do to rings --*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_RING_INTERFACE_TD
#define FLASH_TILE_RING_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Tile_RingOpInterface : OpInterface<"RingOpInterface"> {
  let cppNamespace = "::flash::tile";
  let description = [{
    An operation on the stage of one step of a ring. Passes that schedule, check
    or split programs look at its effect, not at its name:

    | effect        | the stage                                                      |
    |---------------|----------------------------------------------------------------|
    | `Acquire`     | is waited for until it is free, and taken to be filled         |
    | `Fill`        | is filled, or a part of it, by a copy or from registers        |
    | `Wait`        | is waited for until it is full, and may be read until released |
    | `Peek`        | is waited for and may be read; others release it               |
    | `Release`     | is given back                                                  |
    | `CheckFinite` | is waited for, checked for NaN and infinities or made free of  |
    |               | them, and given back                                           |
    | `Ask`         | is waited for until it is checked                              |
  }];
  let methods = [
    InterfaceMethod<"The ring.", "::mlir::Value", "getRing">,
    InterfaceMethod<"The step, an index; its stage is the step modulo the stages.",
      "::mlir::Value", "getStep">,
    InterfaceMethod<"What the operation does to the stage.",
      "::flash::tile::RingEffect", "getRingEffect">,
  ];
  let extraSharedClassDeclaration = [{
    bool hasRingEffect(::flash::tile::RingEffect effect) {
      return $_op.getRingEffect() == effect;
    }
    /// Whether the operation is one by which a reader gives the stage back.
    bool givesBack() {
      return hasRingEffect(::flash::tile::RingEffect::Release) ||
             hasRingEffect(::flash::tile::RingEffect::CheckFinite);
    }
  }];
}

#endif // FLASH_TILE_RING_INTERFACE_TD
