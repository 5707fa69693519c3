//===- Sm80Schedule.cpp - Tiles for mma.sync and cp.async -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScheduleModels.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
// Of a thread (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability"), and what addresses, the state of the rows and loads in
// flight need beside the tiles.
constexpr int64_t registersOfThread = 255, otherRegisters = 32;
// What a block may have on compute capability 8.0 and 9.0: 163 and 227 KiB.
// Compiled kernels should run on both.
constexpr int64_t sharedBytesOfBlock = 163 * 1024;
// Rows of a matrix instruction.
constexpr int64_t rowsOfWarp = 16;
// What a thread needs is such that the registers of a multiprocessor are enough
// for so many warps.
constexpr int64_t warpsOfMultiprocessor = 8;

/// What a block of a schedule needs.
struct Resources {
  int64_t registers;   ///< Of a thread, for the scores and the accumulator.
  int64_t sharedBytes; ///< Of a block.
};

int64_t getElementBytes(AttentionOp op) {
  return op.getQuery().getType().getElementTypeBitWidth() / 8;
}

Resources getResources(AttentionOp op, const Schedule &schedule) {
  int64_t values = *schedule.queryTile * (*schedule.keyTile + op.getValueDim());
  return {values / (32 * *schedule.warps), getSharedBytes(op, schedule)};
}

/// Tiles that need no spills for head dimensions up to a bound, best first; as
/// measured on an H200 (docs/benchmarks.md) and assembled for all head
/// dimensions (test/Ptxas).
struct Candidate {
  int64_t largestDim, queryTile, keyTile;
};
constexpr Candidate candidatesOf16Bits[] = {
    {72, 128, 64}, {128, 128, 32}, {144, 64, 32}, {256, 64, 64}};
constexpr Candidate candidatesOf32Bits[] = {{16, 128, 32}, {48, 64, 32},
                                            {56, 64, 16},  {80, 128, 32},
                                            {96, 64, 32},  {256, 64, 16}};
// A masked step needs registers for the product that leaves out masked keys.
constexpr Candidate maskedCandidatesOf32Bits[] = {
    {16, 128, 32}, {48, 64, 32}, {256, 64, 16}};
} // namespace

int64_t flash::getFillingBlocks(int64_t queryTile) {
  return multiprocessors * warpsOfMultiprocessor / getDefaultWarps(queryTile);
}

Schedule flash::chooseSm80Schedule(AttentionOp op) {
  int64_t dim = std::max(op.getHeadDim(), op.getValueDim());
  bool is32Bits = getElementBytes(op) == 4;
  ArrayRef<Candidate> candidates = candidatesOf16Bits;
  if (is32Bits && op.getMask())
    candidates = maskedCandidatesOf32Bits;
  else if (is32Bits)
    candidates = candidatesOf32Bits;
  const Candidate *fit = llvm::find_if(
      candidates, [&](const Candidate &c) { return dim <= c.largestDim; });
  Schedule schedule;
  schedule.queryTile = fit->queryTile;
  schedule.keyTile = fit->keyTile;
  // A tile need not be longer than the queries there are.
  int64_t rank = op.getQuery().getType().getRank();
  int64_t queries = op.getQuery().getType().getDimSize(rank - 2);
  if (!ShapedType::isDynamic(queries) && queries <= fit->queryTile / 2)
    schedule.queryTile =
        std::max<int64_t>(llvm::alignTo(queries, rowsOfWarp), rowsOfWarp);
  shareKeys(op, schedule);
  return schedule;
}

LogicalResult flash::completeSm80Schedule(AttentionOp op, Schedule &schedule) {
  if (schedule.hasRoles())
    return op.emitOpError("cannot be scheduled: the features ")
           << stringifyScheduleFeatures(*schedule.features)
           << " need the target sm_90a and elements of 16 bits";
  schedule.features = ScheduleFeatures::None;
  if (schedule.residentBlocks)
    return op.emitOpError("cannot be scheduled: resident_blocks is of kernels "
                          "whose warps have roles; they are of the target "
                          "sm_90a and elements of 16 bits");
  if (*schedule.queryTile % rowsOfWarp != 0)
    return op.emitOpError("cannot be scheduled: query_tile must be a multiple "
                          "of 16 on tensor cores, got ")
           << *schedule.queryTile << "; the nearest is "
           << llvm::alignTo(*schedule.queryTile, rowsOfWarp);
  int64_t keys = getElementBytes(op) == 4 ? 8 : 16;
  if (*schedule.keyTile % keys != 0)
    return op.emitOpError(
               "cannot be scheduled: key_tile must be a multiple of ")
           << keys << " on tensor cores for "
           << op.getQuery().getType().getElementType() << ", got "
           << *schedule.keyTile << "; the nearest is "
           << llvm::alignTo(*schedule.keyTile, keys);
  int64_t groups = *schedule.queryTile / rowsOfWarp;
  if (!schedule.warps)
    schedule.warps = getDefaultWarps(*schedule.queryTile);
  if (groups % *schedule.warps != 0)
    return op.emitOpError("cannot be scheduled: query_tile must be a multiple "
                          "of 16 times the warps, got ")
           << *schedule.queryTile << " and " << *schedule.warps << " warps";
  if (!schedule.stages)
    schedule.stages = 1;
  if (!schedule.units && !schedule.splits)
    schedule.splits = 1;

  Resources needed = getResources(op, schedule);
  int64_t registers = registersOfThread - otherRegisters;
  if (needed.registers > registers)
    return op.emitOpError("cannot be scheduled: scores and accumulator of ")
           << *schedule.queryTile << " queries and " << *schedule.keyTile
           << " keys need " << needed.registers << " registers of each of "
           << 32 * *schedule.warps << " threads, and there are " << registers
           << "; choose smaller tiles or more warps";
  if (needed.sharedBytes > sharedBytesOfBlock)
    return op.emitOpError("cannot be scheduled: the tiles need ")
           << needed.sharedBytes << " bytes of shared memory, and a block may "
           << "have " << sharedBytesOfBlock
           << "; choose smaller tiles or fewer stages";
  return success();
}
