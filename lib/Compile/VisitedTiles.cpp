//===- VisitedTiles.cpp - Tiles that a program visits ---------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Compile/VisitedTiles.h"

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/ScoreRegion.h"
#include "flash/Compile/Program.h"
#include "flash/Compile/RunPasses.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Pipelines/Pipelines.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::compile;
using llvm::createStringError;

/// Looks at tiles of one attention.
static constexpr int64_t mostLooks = int64_t(1) << 24;

static llvm::Error addTiles(flash::AttentionOp op, ArrayRef<TensorSpec> inputs,
                            VisitedTiles &total) {
  auto query = getSizes(op.getQuery(), inputs);
  auto key = getSizes(op.getKey(), inputs);
  if (!query || !key || query->size() != 4 || key->size() != 4 ||
      !op.getSchedule() || !isa<func::FuncOp>(op->getParentOp()))
    return createStringError("the sizes of an attention in the program do not "
                             "follow from the sizes of the arguments");
  if (op.getBlockSizes())
    return createStringError("which tiles are visited is in the lists of "
                             "blocks that the program is given, not in the "
                             "sizes of its arguments");
  int64_t nq = (*query)[2], nk = (*key)[2];
  const flash::Schedule schedule = op.getSchedule()->getValue();
  int64_t queryTile = schedule.getQueriesOfTile(), keyTile = *schedule.keyTile,
          packedHeads = schedule.getPackedHeads();
  int64_t rows = llvm::divideCeil(nq, queryTile),
          columns = llvm::divideCeil(nk, keyTile);
  flash::MaskAttrInterface mask = op.getMaskOrFull();
  // Open sizes make other bounds than known ones.
  auto getStatic = [](Value value) -> std::optional<int64_t> {
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(2);
    return ShapedType::isDynamic(size) ? std::nullopt : std::optional(size);
  };
  flash::MaskTiles tiles = flash::computeMaskTiles(
      mask, queryTile, keyTile, getStatic(op.getQuery()),
      getStatic(op.getKey()), packedHeads);

  // Batches and heads that the mask does not mention are alike.
  int64_t counts[] = {(*query)[0], (*query)[1] / packedHeads}, looked[2];
  for (unsigned dim : {0, 1})
    looked[dim] = flash::dependsOn(mask, dim)
                      ? counts[dim]
                      : std::min<int64_t>(counts[dim], 1);
  bool looksAtEach = !tiles.visitedIsRange || !tiles.fullIsRange;
  double looks = double(looked[0]) * double(looked[1]) * double(rows) *
                 (looksAtEach ? double(columns) : 1.0);
  if (looks > mostLooks)
    return createStringError("to count so many tiles would take too long; "
                             "give shorter lengths, or fewer batches and "
                             "heads");

  int64_t unmasked = 0, masked = 0;
  for (int64_t b = 0; b < looked[0]; ++b) {
    for (int64_t h = 0; h < looked[1]; ++h) {
      for (int64_t i0 = 0; i0 < nq; i0 += queryTile) {
        flash::TileRange range = tiles.getRange(b, h * packedHeads, i0, nq, nk);
        int64_t lo = std::clamp<int64_t>(range.lo, 0, columns),
                hi = std::clamp<int64_t>(range.hi, lo, columns);
        if (!looksAtEach) {
          int64_t fullLo = std::clamp(range.fullLo, lo, hi),
                  fullHi = std::clamp(range.fullHi, fullLo, hi);
          unmasked += fullHi - fullLo;
          masked += (hi - lo) - (fullHi - fullLo);
          continue;
        }
        for (int64_t t = lo; t < hi; ++t) {
          if (!tiles.isVisited(b, h * packedHeads, i0, t, nq, nk))
            continue;
          ++(tiles.isFull(b, h * packedHeads, i0, t, nq, nk) ? unmasked
                                                             : masked);
        }
      }
    }
  }
  // What a region masks depends on more than sizes: each tile may be in part.
  if (flash::masksElements(op.getScore()))
    masked += std::exchange(unmasked, 0);
  int64_t alike = 1;
  for (unsigned dim : {0, 1})
    alike *= looked[dim] ? counts[dim] / looked[dim] : 0;
  total.unmasked += unmasked * alike;
  total.masked += masked * alike;
  total.skipped +=
      counts[0] * counts[1] * rows * columns - (unmasked + masked) * alike;
  total.queryTile = *schedule.queryTile;
  total.keyTile = keyTile;
  return llvm::Error::success();
}

llvm::Expected<VisitedTiles>
flash::compile::countVisitedTiles(ModuleOp program, StringRef entry,
                                  ArrayRef<TensorSpec> inputs,
                                  const CompileOptions &options) {
  OwningOpRef<ModuleOp> module = copyProgram(program, entry);
  FrontOptions front;
  setSchedule(front, options.target.getMachine().name, *module, options);
  if (llvm::Error error = runPasses(*module, [&](OpPassManager &pm) {
        pm.addPass(createSymbolDCEPass());
        buildRecognizePipeline(pm, front);
        buildSchedulePipeline(pm, front);
      }))
    return std::move(error);
  auto chosen = assumeSizes(*module, entry, inputs);
  if (!chosen)
    return chosen.takeError();
  VisitedTiles total;
  bool hasAttention = false;
  llvm::Error error = llvm::Error::success();
  (*chosen)->lookupSymbol<func::FuncOp>(entry).walk([&](flash::AttentionOp op) {
    hasAttention = true;
    if (error)
      return WalkResult::interrupt();
    error = addTiles(op, inputs, total);
    return WalkResult::advance();
  });
  if (error)
    return std::move(error);
  if (!hasAttention)
    return createStringError("the program has no attention");
  return total;
}
