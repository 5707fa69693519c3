//===- WideGradients.cpp - Loops that sum up wide gradients ---------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/WideGradients.h"

#include "flash/Schedule/Warpgroups.h"

using namespace mlir;

bool flash::tile::sumsUpWideGradients(scf::ForOp loop) {
  int64_t columns = 0;
  for (Type type : loop.getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type);
        tile && tile.getRank() == 2)
      columns += tile.getDimSize(1);
  return areGradientsWide(columns);
}
