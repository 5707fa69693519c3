//===- TileDialect.cpp - The tile dialect --------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/Tile.h"
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
