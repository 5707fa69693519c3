//===- GradModel.cpp - Tiles of gradients ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/Models.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;

// Of a vector in the CPU, and the rows of a matrix instruction.
static constexpr int64_t rowMultiple = 16;

Schedule flash::chooseGradSchedule(const Problem &problem,
                                   const TargetInfo &target) {
  // The gradients of a tile of keys and of values are in registers together:
  // up to D = Dv = 128 they need no spills (test/Ptxas), in f32 up to 64; wider
  // ones do.
  bool is32Bits = problem.getElementBits() == 32;
  bool isWide = problem.headDim + problem.valueDim > (is32Bits ? 128 : 256);
  int64_t largestQueryTile = target.isGpu ? 32 : 64;
  int64_t largestKeyTile = target.isGpu && isWide ? 32 : 64;
  auto fit = [](std::optional<int64_t> length, int64_t largest) {
    if (!length || *length >= largest)
      return largest;
    return std::max<int64_t>(llvm::alignTo(*length, rowMultiple), rowMultiple);
  };
  Schedule schedule;
  schedule.queryTile = fit(problem.queries, largestQueryTile);
  schedule.keyTile = fit(problem.keys, largestKeyTile);
  return schedule;
}

std::string flash::findGradFault(const TargetInfo &target,
                                 const Schedule &schedule) {
  if (std::string fault = schedule.findFault(); !fault.empty())
    return fault;
  Schedule tiles;
  tiles.queryTile = schedule.queryTile;
  tiles.keyTile = schedule.keyTile;
  if (!(schedule == tiles))
    return llvm::formatv("the programs of gradients have query_tile and "
                         "key_tile alone, got '{0}'",
                         schedule.str());
  for (auto [name, tile] : {std::pair("query_tile", *schedule.queryTile),
                            {"key_tile", *schedule.keyTile}})
    if (target.isGpu && tile % rowMultiple != 0)
      return llvm::formatv("{0} must be a multiple of 16 on tensor cores, got "
                           "{1}; the nearest is {2}",
                           name, tile, llvm::alignTo(tile, rowMultiple));
  return "";
}
