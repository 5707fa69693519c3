//===- FlashAttentionInterface.td - What attentions share --*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ATTENTION_INTERFACE_TD
#define FLASH_ATTENTION_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Flash_AttentionOpInterface : OpInterface<"AttentionOpInterface"> {
  let cppNamespace = "::flash";
  let description = [{
    An attention on whole tensors, or its gradients: which query takes part with
    which key, and with which score. What only needs this (size checks, guards
    of reads, counts of work) takes this interface and knows both.
  }];
  // The ops have these from their arguments of the same names.
  let methods = [
    InterfaceMethod<"The queries.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getQuery">,
    InterfaceMethod<"The keys.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getKey">,
    InterfaceMethod<"The values.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getValue">,
    InterfaceMethod<"The number of keys that take part in each batch, or null.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getLengths">,
    InterfaceMethod<"The number of queries of each batch, a sequence, or null.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getQueryLengths">,
    InterfaceMethod<"The number of keys of each batch, a sequence, or null.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getKeyLengths">,
    InterfaceMethod<"The extra logit of each query head, or null.",
      "::mlir::TypedValue<::mlir::RankedTensorType>", "getSink">,
    InterfaceMethod<"What the first of three dimensions is.",
      "::std::optional<::flash::Leading>", "getLeading">,
    InterfaceMethod<"The scale, if it is written.",
      "::std::optional<::llvm::APFloat>", "getScale">,
    InterfaceMethod<"The mask, if one is written.",
      "::std::optional<::flash::MaskAttrInterface>", "getMask">,
    InterfaceMethod<"What products may round their operands to.",
      "::std::optional<::flash::Precision>", "getPrecision">,
    InterfaceMethod<"The queries and keys of a block of the lists that a "
                    "caller gives; nothing where there are none.",
      "::std::optional<::llvm::ArrayRef<int64_t>>", "getBlockSizes">,
    InterfaceMethod<"What the lengths are multiples of.",
      "::std::optional<::llvm::ArrayRef<int64_t>>", "getMultiples">,
    InterfaceMethod<"The schedule, if there is one.",
      "::std::optional<::flash::ScheduleAttr>", "getSchedule">,
    InterfaceMethod<"Removes the schedule.",
      "::mlir::Attribute", "removeScheduleAttr">,
    InterfaceMethod<"The score region, empty if there is none.",
      "::mlir::Region &", "getScore">
  ];
  let extraSharedClassDeclaration = [{
    /// The scale, or its default 1 / sqrt(D).
    double getScaleOrDefault() {
      return ::flash::detail::getScaleOrDefault($_op);
    }
    /// The mask, or the full mask where none is written.
    ::flash::MaskAttrInterface getMaskOrFull() {
      return ::flash::detail::getMaskOrFull($_op);
    }
    /// Whether the operands have a batch dimension (always the first).
    bool hasBatch() {
      return $_op.getQuery().getType().getRank() == 4 ||
             $_op.getLeading() == ::flash::Leading::Batch;
    }
    /// Whether the operands have a head dimension (always before the last two).
    bool hasHeads() {
      return $_op.getQuery().getType().getRank() == 4 ||
             $_op.getLeading() != ::flash::Leading::Batch;
    }
    /// How many query heads read the same key head, if the types say.
    ::std::optional<int64_t> getGroup() {
      return ::flash::detail::getGroup($_op);
    }
    /// How many queries or keys each sequence has, where a position of the score
    /// region goes over these; null if batches are as long as their dimension.
    ::mlir::Value getLengthsOf(::mlir::BlockArgument position) {
      unsigned number = position.getArgNumber();
      return number == 3   ? ::mlir::Value($_op.getQueryLengths())
             : number == 4 ? ::mlir::Value($_op.getKeyLengths())
                           : ::mlir::Value();
    }
    /// The reads of the score region at the element's own position. A tile
    /// makes them for elements that a mask leaves out, too, but not for those
    /// that a sequence does not have.
    ::llvm::SmallVector<::flash::PositionRead> getPositionReads() {
      return ::flash::detail::getPositionReads($_op);
    }
    /// Emits an error unless the rank is 4, as flash-expand-rank makes it.
    ::llvm::LogicalResult requireRank4() {
      return ::flash::detail::requireRank4($_op);
    }
    int64_t getHeadDim() {
      return $_op.getQuery().getType().getShape().back();
    }
    int64_t getValueDim() {
      return $_op.getValue().getType().getShape().back();
    }
  }];
}

#endif // FLASH_ATTENTION_INTERFACE_TD
