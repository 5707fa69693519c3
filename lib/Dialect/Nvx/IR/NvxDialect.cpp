//===- NvxDialect.cpp - The nvx dialect -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

#include "flash/Dialect/Nvx/IR/NvxDialect.cpp.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Nvx/IR/NvxOps.cpp.inc"

void flash::nvx::NvxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "flash/Dialect/Nvx/IR/NvxOps.cpp.inc"
      >();
}

LogicalResult
flash::nvx::NvxDialect::verifyOperationAttribute(Operation *op,
                                                 NamedAttribute attribute) {
  return flash::verifyDeclaredAttribute(op, attribute, {});
}

LogicalResult flash::nvx::NvxDialect::verifyRegionArgAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "argument", number, attribute);
}

LogicalResult flash::nvx::NvxDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "result", number, attribute);
}

static LogicalResult verifyRegisters(Operation *op, VectorType type,
                                     int64_t expected, StringRef what) {
  if (type.getNumElements() == expected)
    return success();
  return op->emitOpError("needs ")
         << expected << " registers of " << what << ", got " << type;
}

LogicalResult flash::nvx::WarpgroupMmaOp::verify() {
  bool isE4M3 = isa<Float8E4M3FNType>(getElementType());
  if (!getElementType().isF16() && !getElementType().isBF16() && !isE4M3)
    return emitOpError("multiplies f16, bf16 or f8E4M3FN, not ")
           << getElementType();
  if (isE4M3 && (getTransposeA() || getTransposeB()))
    return emitOpError("transposes operands of 16 bits alone, not of ")
           << getElementType();
  int64_t steps = getOffsetsB().size();
  if (steps == 0)
    return emitOpError("needs an offset of b for each step");
  if (auto registers = dyn_cast<VectorType>(getA().getType())) {
    if (getOffsetsA())
      return emitOpError("has its first operand in registers, so it takes no "
                         "offsets of a");
    if (getTransposeA())
      return emitOpError("has its first operand in registers, which are not "
                         "transposed");
    if (failed(verifyRegisters(*this, registers, 4 * steps,
                               "a, four for each step")))
      return failure();
  } else if (!getOffsetsA() ||
             static_cast<int64_t>(getOffsetsA()->size()) != steps) {
    return emitOpError("needs as many offsets of a as of b, ") << steps;
  }
  auto result = cast<VectorType>(getResult().getType());
  int64_t registers = result.getNumElements();
  if (registers % 4 != 0 || registers > 128)
    return emitOpError("has 8 to 256 columns in steps of 8, two to a register; "
                       "got ")
           << registers << " registers";
  if (getC() && getC().getType() != result)
    return emitOpError("adds to registers of another type than its result: ")
           << getC().getType();
  return success();
}

LogicalResult flash::nvx::WarpgroupWaitOp::verify() {
  if (getValues().getTypes() == getResults().getTypes())
    return success();
  return emitOpError("gives its operands again, of the same types");
}
