//===- TileDialect.cpp - The tile dialect ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/DependentLaunch.h"
#include "flash/Dialect/Tile/IR/StoreVectorWidths.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

#include "flash/Dialect/Tile/IR/TileDialect.cpp.inc"

void flash::tile::TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "flash/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

static constexpr llvm::StringLiteral loops[] = {"scf.forall"},
                                     launches[] = {"gpu.launch_func"};
static constexpr flash::DeclaredAttribute declaredAttributes[] = {
    {"tile.order", loops, "a #tile.order",
     [](Attribute value) { return isa<flash::tile::OrderAttr>(value); }},
    {flash::tile::TileDialect::PipelineAttrHelper::getNameStr(),
     {},
     "a #tile.pipeline",
     [](Attribute value) { return isa<flash::tile::PipelineAttr>(value); }},
    {flash::tile::storeVectorWidthsAttr, launches, "an array of i64",
     [](Attribute value) { return isa<DenseI64ArrayAttr>(value); }},
    {flash::tile::dependentLaunchAttr, launches, "a unit attribute",
     [](Attribute value) { return isa<UnitAttr>(value); }},
};

/// What a launch depends on is in its block. That its kernel waits is looked at
/// where both are translated: here other threads may be changing the kernel.
static LogicalResult verifyDependentLaunch(Operation *op) {
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (before->getName() == op->getName())
      return success();
  return op->emitOpError("depends on no launch, as there is none before it in "
                         "its block; leave out ")
         << flash::tile::dependentLaunchAttr;
}

LogicalResult
flash::tile::TileDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  if (failed(flash::verifyDeclaredAttribute(op, attribute, declaredAttributes)))
    return failure();
  if (attribute.getName() == flash::tile::dependentLaunchAttr)
    return verifyDependentLaunch(op);
  return success();
}

LogicalResult flash::tile::TileDialect::verifyRegionArgAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "argument", number, attribute);
}

LogicalResult flash::tile::TileDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "result", number, attribute);
}
