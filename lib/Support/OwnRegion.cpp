//===- OwnRegion.cpp - Regions in the text of operations ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/OwnRegion.h"

using namespace mlir;

static LogicalResult verifyOwn(ValueRange values, Region &region) {
  for (Value value : values)
    for (Operation *user : value.getUsers())
      if (!region.findAncestorOpInRegion(*user))
        return emitError(user->getLoc(),
                         "uses a value of a region that it is not in")
                   .attachNote(value.getLoc())
               << "the value";
  return success();
}

ParseResult flash::parseOwnRegion(OpAsmParser &parser, Region &region) {
  auto verify = [&](Block *block) -> WalkResult {
    if (failed(verifyOwn(block->getArguments(), region)))
      return WalkResult::interrupt();
    for (Operation &op : *block)
      if (failed(verifyOwn(op.getResults(), region)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  };
  if (succeeded(parser.parseRegion(region)) &&
      !region.walk(verify).wasInterrupted())
    return success();
  for (Block &block : region)
    block.dropAllDefinedValueUses();
  return failure();
}

void flash::printOwnRegion(OpAsmPrinter &printer, Operation *, Region &region) {
  printer.printRegion(region);
}
