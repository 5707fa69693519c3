//===- GradKernels.cpp - Schedules of kernels of gradients ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/GradKernels.h"

#include "flash/Schedule/SharedTile.h"

using namespace flash;

/// The rows and columns of tiles of scores; more would not stay in registers
/// beside their sums.
static constexpr int64_t mostRowsOfTile = 64;

/// The most rows of a tile where warps have roles: tiles are copied in bulk,
/// and a larger one takes fewer bytes for each score.
static constexpr int64_t rowsOfTileWithRoles = 128;

/// What statistics and barriers have of shared memory beside such tiles, and
/// the stages that hide how long copies take: three gain nothing, and spill (as
/// assembled, test/Ptxas).
static constexpr int64_t bytesBesideTiles = 3 * 1024, mostStages = 2;

int64_t flash::getRowsOfDeltas(const Schedule &ofGradients, int64_t valueDim) {
  // With 32 rows of up to 256 bytes enough loads are on their way; more of them
  // take the registers of other warps.
  constexpr int64_t mostColumns = 128;
  return ofGradients.hasRoles() && valueDim <= mostColumns ? 32 : 16;
}

std::optional<TileOrder>
flash::getOrderBesideGradients(const Schedule &ofGradients) {
  return ofGradients.hasRoles() ? std::optional(TileOrder::Backwards)
                                : std::nullopt;
}

int64_t flash::getWarpsOfRows(const Schedule &schedule, int64_t rows) {
  return schedule.hasRoles() ? rows / rowsOfWarp : getDefaultWarps(rows);
}

CapturedGradModel::CapturedGradModel(const Schedule &ofGradients,
                                     const Machine &machine, int64_t headDim,
                                     int64_t valueDim, int64_t elementBytes)
    : ofGradients(ofGradients),
      bytesOfPair(
          getSharedTileBytes(rowsOfTileWithRoles, headDim, elementBytes) +
          getSharedTileBytes(rowsOfTileWithRoles, valueDim, elementBytes)),
      room(machine.sharedBytesPerBlock - bytesBesideTiles) {}

bool CapturedGradModel::canHaveRoles() const {
  return ofGradients.hasRoles() && 2 * bytesOfPair <= room;
}

int64_t CapturedGradModel::getTile(bool withRoles) const {
  if (withRoles)
    return rowsOfTileWithRoles;
  int64_t rows = std::max(*ofGradients.queryTile, *ofGradients.keyTile);
  // Where only small steps fit beside a tile into shared memory, tiles are as
  // small.
  if (!ofGradients.hasRoles())
    rows = std::min({rows, ofGradients.queryStep.value_or(rows),
                     ofGradients.keyStep.value_or(rows)});
  // Both pairs of tiles of a step have to fit, too.
  int64_t fitting =
      room * rowsOfTileWithRoles / (2 * bytesOfPair) / rowsOfWarp * rowsOfWarp;
  return std::min({mostRowsOfTile, rows, std::max(fitting, rowsOfWarp)});
}

Schedule CapturedGradModel::getSchedule(bool withRoles, int64_t inStep,
                                        int64_t once) const {
  Schedule result;
  if (withRoles) {
    result.features = ScheduleFeatures::SpecializeWarps;
    // Where half of the tiles stay, copies are not what a step waits for.
    if (once > 0)
      *result.features |= ScheduleFeatures::PingPong;
    result.stages = std::min(
        (room - once * bytesOfPair) / (inStep * bytesOfPair), mostStages);
  }
  result.warps = getWarpsOfRows(result, getTile(withRoles));
  return result;
}
