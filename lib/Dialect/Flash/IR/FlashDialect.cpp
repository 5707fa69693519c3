//===- FlashDialect.cpp - The flash dialect -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/IR/Flash.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
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

LogicalResult
flash::FlashDialect::verifyOperationAttribute(Operation *op,
                                              NamedAttribute attribute) {
  if (attribute.getName() != PrecisionAttrHelper::getNameStr())
    return op->emitOpError() << "has the unknown attribute '"
                             << attribute.getName().getValue() << "'";
  if (!isa<ProductPrecisionAttr>(attribute.getValue()))
    return op->emitOpError()
           << "'" << attribute.getName().getValue()
           << "' must be a #flash.precision, got " << attribute.getValue();
  auto contract = dyn_cast<linalg::ContractOp>(op);
  if (!contract || !llvm::all_of(contract.getInputs(), [](Value input) {
        return getElementTypeOrSelf(input).isF32();
      }))
    return op->emitOpError() << "'" << attribute.getName().getValue()
                             << "' belongs to a linalg.contract of f32";
  return success();
}
