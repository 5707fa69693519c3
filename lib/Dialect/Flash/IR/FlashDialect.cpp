//===- FlashDialect.cpp - The flash dialect -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Machine/TargetAttr.h"
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

static constexpr llvm::StringLiteral scheduled[] = {"scf.forall", "gpu.func"},
                                     products[] = {"linalg.contract"},
                                     modules[] = {"builtin.module"},
                                     pads[] = {"tensor.pad"};
static constexpr flash::DeclaredAttribute declaredAttributes[] = {
    {"flash.schedule", scheduled, "a #flash.schedule",
     [](Attribute value) { return isa<flash::ScheduleAttr>(value); }},
    {"flash.precision", products, "a #flash.precision",
     [](Attribute value) { return isa<flash::ProductPrecisionAttr>(value); }},
    {"flash.to_end", pads, "a unit attribute",
     [](Attribute value) { return isa<UnitAttr>(value); }},
    {"flash.target", modules, "a #flash.target",
     [](Attribute value) { return isa<flash::TargetAttr>(value); }},
};

LogicalResult
flash::FlashDialect::verifyOperationAttribute(Operation *op,
                                              NamedAttribute attribute) {
  if (failed(flash::verifyDeclaredAttribute(op, attribute, declaredAttributes)))
    return failure();
  if (auto schedule = dyn_cast<ScheduleAttr>(attribute.getValue()))
    if (std::string fault =
            schedule.getValue().findForeignKey(ScheduleOwner::Kernel);
        !fault.empty())
      return op->emitOpError() << fault;
  if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op); kernel && !kernel.isKernel())
    return op->emitOpError() << "has " << attribute.getName()
                             << ", which a kernel has, a gpu.func with the "
                                "attribute kernel";
  auto contract = dyn_cast<linalg::ContractOp>(op);
  auto precision = dyn_cast<ProductPrecisionAttr>(attribute.getValue());
  bool isFP8 = precision && precision.getValue() == Precision::FP8;
  if (contract && !llvm::all_of(contract.getInputs(), [&](Value input) {
        Type element = getElementTypeOrSelf(input);
        return isFP8 ? isa<Float8E4M3FNType>(element) : element.isF32();
      }))
    return op->emitOpError() << attribute.getName() << (isFP8 ? " of fp8" : "")
                             << " belongs to a linalg.contract of "
                             << (isFP8 ? "f8E4M3FN" : "f32");
  return success();
}

LogicalResult flash::FlashDialect::verifyRegionArgAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "argument", number, attribute);
}

LogicalResult flash::FlashDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "result", number, attribute);
}
