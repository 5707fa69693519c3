//===- TileDialect.cpp - The tile dialect --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/StoreGranules.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "mlir/IR/DialectImplementation.h"

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

static bool isUnit(Attribute value) { return isa<UnitAttr>(value); }
static bool isI64(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getType().isSignlessInteger(64);
}
static bool isI64Array(Attribute value) {
  return isa<DenseI64ArrayAttr>(value);
}

/// What passes are told of a kernel, which is an llvm.func at last, and of its
/// launches.
static constexpr llvm::StringLiteral kernels[] = {"gpu.func", "llvm.func"},
                                     launches[] = {"gpu.launch_func"};
static constexpr flash::DeclaredAttribute declaredAttributes[] = {
    {"tile.stages", kernels, "an i64", isI64},
    {"tile.outer_stages", kernels, "an i64", isI64},
    {"tile.specialize_warps", kernels, "a unit attribute", isUnit},
    {"tile.overlap", kernels, "a unit attribute", isUnit},
    {"tile.ping_pong", kernels, "a unit attribute", isUnit},
    {"tile.persistent", kernels, "a unit attribute", isUnit},
    {"tile.bulk_store", kernels, "a unit attribute", isUnit},
    {flash::tile::residentBlocksName, kernels, "an i64", isI64},
    {flash::tile::storeGranulesAttr, launches, "an array of i64", isI64Array},
};

LogicalResult
flash::tile::TileDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  return flash::verifyDeclaredAttribute(op, attribute, declaredAttributes);
}

LogicalResult flash::tile::TileDialect::verifyRegionArgAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "argument", number, attribute);
}

LogicalResult flash::tile::TileDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "result", number, attribute);
}
