//===- FlashDialect.cpp - The flash dialect -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Schedule/Target.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "flash/Dialect/Flash/IR/FlashDialect.cpp.inc"

#define GET_ATTRDEF_LIST
#include "flash/Dialect/Flash/IR/FlashAttrs.h.inc"

/// How deep a mask is, as far as two levels.
static unsigned getDepth(flash::MaskAttrInterface mask, unsigned most = 2) {
  unsigned depth = 0;
  if (most > 0)
    for (flash::MaskAttrInterface part : mask.getForm().parts)
      depth = std::max(depth, 1 + getDepth(part, most - 1));
  return depth;
}

namespace {
/// Deep masks are printed by name: they may share parts, and their text would
/// have a shared part once for each path to it.
struct MaskAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto mask = dyn_cast<flash::MaskAttrInterface>(attr);
    if (!mask || llvm::all_of(mask.getForm().parts,
                              [](auto part) { return getDepth(part) < 2; }))
      return AliasResult::NoAlias;
    os << "mask";
    return AliasResult::OverridableAlias;
  }
};
} // namespace

void flash::FlashDialect::initialize() {
  registerAttributes();
  addInterfaces<MaskAliases>();
  addOperations<
#define GET_OP_LIST
#include "flash/Dialect/Flash/IR/FlashOps.cpp.inc"
      >();
}

static LogicalResult verifySchedule(Operation *op, NamedAttribute attribute) {
  if (!isa<flash::ScheduleAttr>(attribute.getValue()))
    return op->emitOpError()
           << attribute.getName() << " must be a #flash.schedule, got "
           << attribute.getValue();
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!isa<scf::ForallOp>(op) && !(kernel && kernel.isKernel()))
    return op->emitOpError() << "cannot have " << attribute.getName()
                             << "; an scf.forall over tiles and a kernel, a "
                                "gpu.func with the attribute kernel, can";
  return success();
}

static LogicalResult verifyMultiprocessors(Operation *op,
                                           NamedAttribute attribute) {
  auto count = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!count || !count.getType().isInteger(64) || count.getInt() < 1 ||
      count.getInt() > flash::mostMultiprocessors)
    return op->emitOpError()
           << attribute.getName() << " must be an i64 from 1 to "
           << flash::mostMultiprocessors << ", got " << attribute.getValue();
  if (!isa<ModuleOp>(op))
    return op->emitOpError()
           << "cannot have " << attribute.getName() << "; a module can";
  return success();
}

LogicalResult
flash::FlashDialect::verifyOperationAttribute(Operation *op,
                                              NamedAttribute attribute) {
  if (attribute.getName() == getScheduleAttrHelper().getName())
    return verifySchedule(op, attribute);
  if (attribute.getName() == getMultiprocessorsAttrHelper().getName())
    return verifyMultiprocessors(op, attribute);
  return success();
}
