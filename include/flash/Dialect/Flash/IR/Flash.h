//===- Flash.h - The flash dialect ------------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_FLASH_IR_FLASH_H
#define FLASH_DIALECT_FLASH_IR_FLASH_H

#include "flash/Dialect/Flash/IR/PackedRows.h"
#include "flash/Machine/TargetAttr.h"
#include "flash/Schedule/Schedule.h"
#include "flash/Support/DeclaredAttributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/ParallelCombiningOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

#include "flash/Dialect/Flash/IR/FlashEnums.h.inc"

namespace flash {
class MaskAttrInterface;

/// The structure of a mask: an affine set of pairs, or the union or the
/// intersection of other masks. Masks may share parts, so the number of paths
/// can be exponential in the number of parts. `getMaskNodes` lists each part
/// once.
struct MaskForm {
  enum class Kind { Set, Union, Intersection };

  MaskForm(mlir::IntegerSet set) : kind(Kind::Set), set(set) {}
  MaskForm(Kind kind, llvm::ArrayRef<MaskAttrInterface> parts)
      : kind(kind), parts(parts) {}

  Kind kind;
  /// The set of a `Kind::Set`, over the dimensions `(b, h, i, j)` with the
  /// symbols `[nq, nk]`; null for other kinds.
  mlir::IntegerSet set;
  /// The parts of a union or an intersection, at least one; empty for
  /// `Kind::Set`.
  llvm::ArrayRef<MaskAttrInterface> parts;
};
} // namespace flash

#include "flash/Dialect/Flash/IR/FlashMaskInterface.h.inc"

#define GET_ATTRDEF_CLASSES
#include "flash/Dialect/Flash/IR/FlashAttrs.h.inc"

// The dialect declares a discardable attribute whose type is one of these
// attributes.
#include "flash/Dialect/Flash/IR/FlashDialect.h.inc"

namespace flash {
// PartialReductionOpInterface names these without their namespace.
using mlir::Location;
using mlir::MergeResult;
using mlir::ReductionTilingStrategy;
using mlir::SmallVector;
using mlir::TilingResult;
using mlir::Value;
using mlir::ValueRange;

/// A read of a captured tensor in a score region, where one index is the batch,
/// head, query or key of the element.
struct PositionRead {
  mlir::Operation *extract; ///< A tensor.extract.
  int64_t dim;              ///< The dimension that is read by this index.
  llvm::StringRef name;     ///< "batch", "head", "query" or "key".
  /// The operand whose dimension `extentDim` is the number of batches, heads,
  /// queries or keys; null if that number is 1.
  mlir::Value extentOf;
  int64_t extentDim;
};

class AttentionOpInterface;

// Implementations of methods of AttentionOpInterface.
namespace detail {
double getScaleOrDefault(AttentionOpInterface op);
MaskAttrInterface getMaskOrFull(AttentionOpInterface op);
std::optional<int64_t> getGroup(AttentionOpInterface op);
llvm::SmallVector<PositionRead> getPositionReads(AttentionOpInterface op);
llvm::LogicalResult requireRank4(AttentionOpInterface op);
} // namespace detail

/// Each of the first `numRequiredOperands` operand groups holds one operand.
template <typename ConcreteOp>
class SingleOperandGroups
    : public mlir::OpTrait::TraitBase<ConcreteOp, SingleOperandGroups> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    llvm::ArrayRef<int32_t> sizes =
        mlir::cast<ConcreteOp>(op).getProperties().operandSegmentSizes;
    for (auto [group, size] :
         llvm::enumerate(sizes.take_front(ConcreteOp::numRequiredOperands)))
      if (size != 1)
        return op->emitOpError() << "operand group #" << group
                                 << " must have one operand, got " << size;
    return mlir::success();
  }
};

/// Each of the first `numRequiredResults` result groups holds one result.
template <typename ConcreteOp>
class SingleResultGroups
    : public mlir::OpTrait::TraitBase<ConcreteOp, SingleResultGroups> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    llvm::ArrayRef<int32_t> sizes =
        mlir::cast<ConcreteOp>(op).getProperties().resultSegmentSizes;
    for (auto [group, size] :
         llvm::enumerate(sizes.take_front(ConcreteOp::numRequiredResults)))
      if (size != 1)
        return op->emitOpError() << "result group #" << group
                                 << " must have one result, got " << size;
    return mlir::success();
  }
};
} // namespace flash

#include "flash/Dialect/Flash/IR/FlashAddressInterface.h.inc"
#include "flash/Dialect/Flash/IR/FlashAttentionInterface.h.inc"
#include "flash/Dialect/Flash/IR/FlashStepInterface.h.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Flash/IR/FlashOps.h.inc"

#endif // FLASH_DIALECT_FLASH_IR_FLASH_H
