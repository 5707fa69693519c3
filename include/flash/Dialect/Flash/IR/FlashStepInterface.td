//===- FlashStepInterface.td - Steps on a tile of scores ---*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_STEP_INTERFACE_TD
#define FLASH_STEP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Flash_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::flash";
  let description = [{
    The body of a loop over tiles of an attention or of its gradients: it
    computes the scores of a tile of queries and a tile of keys; the
    loop goes over one of them, and the other is fixed. Which tiles a mask leaves
    (`flash-refine-visits`) and what a score is (`flash-decompose`) is the same for
    all of them.
  }];
  // The ops have these from their arguments of the same names.
  let methods = [
    InterfaceMethod<"The queries.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getQuery">,
    InterfaceMethod<"The keys.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getKey">,
    InterfaceMethod<"The scale of the scores.", "::llvm::APFloat", "getScale">,
    InterfaceMethod<"The mask, if elements may be masked.",
      "::std::optional<::flash::MaskAttrInterface>", "getMask">,
    InterfaceMethod<"Removes the mask.", "::mlir::Attribute", "removeMaskAttr">,
    InterfaceMethod<"Says that rows of the tiles of the loop that do not exist "
                    "change no result, also if none is left out.",
      "void", "setNeutralPadding", (ins "bool":$neutral)>,
    InterfaceMethod<"Whether rows of the tiles of the loop that do not exist "
                    "change no result, also if none is left out.",
      "bool", "getNeutralPadding">,
    InterfaceMethod<"What products may round their operands to.",
      "::std::optional<::flash::Precision>", "getPrecision">,
    InterfaceMethod<"The schedule, if there is one.",
      "::std::optional<::flash::ScheduleAttr>", "getSchedule">,
    InterfaceMethod<"The score region, empty if there is none.",
      "::mlir::Region &", "getScore">,
    InterfaceMethod<"The position (b, h, i, j) of the first element in the "
                    "whole problem.",
      "::llvm::SmallVector<::mlir::OpFoldResult>", "getMixedPosition">,
    InterfaceMethod<"The lengths (nq, nk) of the whole problem.",
      "::llvm::SmallVector<::mlir::OpFoldResult>", "getMixedExtents">,
    InterfaceMethod<"How many heads the rows of a tile are of.",
      "int64_t", "getPackedHeads">,
    InterfaceMethod<"Whether the loop is over tiles of queries, not of keys.",
      "bool", "stepsOverQueries">,
    InterfaceMethod<"The number of rows that exist in the tiles of the loop; "
                    "none if all do.",
      "::mlir::MutableOperandRange", "getCountMutable">,
    InterfaceMethod<"The number of rows of the other tile on which a result "
                    "depends; none if all do.",
      "::mlir::MutableOperandRange", "getFixedCountMutable">
  ];
  let extraSharedClassDeclaration = [{
    /// The number of rows that exist in the tiles of the loop, or null.
    ::mlir::Value getCount() {
      ::mlir::MutableOperandRange count = $_op.getCountMutable();
      return count.empty() ? ::mlir::Value() : count[0].get();
    }
    /// The number of rows of the other tile on which a result depends, or null.
    ::mlir::Value getFixedCount() {
      ::mlir::MutableOperandRange count = $_op.getFixedCountMutable();
      return count.empty() ? ::mlir::Value() : count[0].get();
    }
  }];
}

#endif // FLASH_STEP_INTERFACE_TD
