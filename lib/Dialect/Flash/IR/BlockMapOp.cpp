//===- BlockMapOp.cpp - What a mask leaves of tiles, and whose map it is --===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpRules.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;
using namespace flash::detail;

//===----------------------------------------------------------------------===//
// Maps of attentions
//===----------------------------------------------------------------------===//

namespace {
/// Whether two regions on (..., batch, head, query, key) compute the same,
/// apart from the conditions of guards.
class SameValues {
public:
  bool areSame(Value lhs, Value rhs) {
    if (!lhs || !rhs)
      return lhs == rhs;
    lhs = skipGuard(lhs);
    rhs = skipGuard(rhs);
    auto [known, isNew] = results.try_emplace({lhs, rhs}, true);
    if (isNew) {
      bool same = compare(lhs, rhs);
      return results[{lhs, rhs}] = same;
    }
    return known->second;
  }

private:
  static Value skipGuard(Value value) {
    auto guard = value.getDefiningOp<GuardOp>();
    return guard ? guard.getValue() : value;
  }
  bool compare(Value lhs, Value rhs) {
    auto lhsArgument = dyn_cast<BlockArgument>(lhs),
         rhsArgument = dyn_cast<BlockArgument>(rhs);
    if (lhs == rhs)
      return true;
    auto fromBack = [](BlockArgument argument) {
      return argument.getOwner()->getNumArguments() - argument.getArgNumber();
    };
    if (lhsArgument || rhsArgument)
      return lhsArgument && rhsArgument &&
             isElementOp(lhsArgument.getOwner()->getParentOp()) &&
             isElementOp(rhsArgument.getOwner()->getParentOp()) &&
             fromBack(lhsArgument) == fromBack(rhsArgument);
    auto lhsResult = cast<OpResult>(lhs), rhsResult = cast<OpResult>(rhs);
    Operation *lhsOp = lhsResult.getOwner(), *rhsOp = rhsResult.getOwner();
    return lhsResult.getResultNumber() == rhsResult.getResultNumber() &&
           isSameOp(lhsOp, rhsOp) &&
           llvm::all_of(llvm::zip(lhsOp->getOperands(), rhsOp->getOperands()),
                        [&](auto pair) {
                          return areSame(std::get<0>(pair), std::get<1>(pair));
                        });
  }
  static bool isElementOp(Operation *op) {
    return isa_and_nonnull<AttentionOp, AttentionGradOp, OnlineAttentionOp,
                           BlockMapOp>(op);
  }
  static bool isSameOp(Operation *lhs, Operation *rhs) {
    return lhs->getName() == rhs->getName() &&
           lhs->getNumOperands() == rhs->getNumOperands() &&
           lhs->getResultTypes() == rhs->getResultTypes() &&
           lhs->getNumRegions() == 0 && isMemoryEffectFree(lhs) &&
           lhs->getAttrDictionary() == rhs->getAttrDictionary();
  }

  llvm::DenseMap<std::pair<Value, Value>, bool> results;
};
} // namespace

/// Checks the types of lists of blocks that a caller gives.
static LogicalResult verifyGivenBlocks(Operation *op, Value list, Value counts,
                                       RankedTensorType query,
                                       RankedTensorType key,
                                       ArrayRef<int64_t> blockSizes,
                                       BlockUser user) {
  bool overQueries = user == BlockUser::KeyGrad;
  StringRef name = overQueries ? "query_blocks" : "blocks";
  if (blockSizes.size() != 2 || blockSizes[0] < 1 || blockSizes[1] < 1)
    return op->emitOpError("blocks are of two positive numbers, of queries and "
                           "of keys, got [")
           << blockSizes << "]";
  if (!list || !counts)
    return op->emitOpError("has sizes of blocks, and needs ")
           << name << ", which list the blocks";
  if (query.getRank() != 4)
    return op->emitOpError("blocks are for operands of rank 4");
  auto listType = cast<RankedTensorType>(list.getType()),
       countsType = cast<RankedTensorType>(counts.getType());
  int64_t rows = overQueries ? key.getDimSize(2) : query.getDimSize(2),
          block = overQueries ? blockSizes[1] : blockSizes[0];
  int64_t numBlocks =
      ShapedType::isDynamic(rows) ? rows : llvm::divideCeilSigned(rows, block);
  auto check = [&](RankedTensorType type, int64_t dim, StringRef what,
                   int64_t size, bool mayBeOne) -> LogicalResult {
    if (mayBeEqual(type.getDimSize(dim), size) ||
        (mayBeOne && type.getDimSize(dim) == 1))
      return success();
    return op->emitOpError()
           << name << " are of " << type.getDimSize(dim) << " " << what
           << ", and there are " << size << (mayBeOne ? "; 1 serves all" : "");
  };
  for (RankedTensorType type : {listType, countsType})
    if (failed(check(type, 0, "batches", query.getDimSize(0), true)) ||
        failed(check(type, 1, "heads", query.getDimSize(1), true)) ||
        failed(check(type, 2,
                     overQueries ? "blocks of keys" : "blocks of queries",
                     numBlocks, false)))
      return failure();
  if (!mayBeEqual(countsType.getDimSize(3), 2))
    return op->emitOpError() << name
                             << " have two counts, of the blocks that are "
                                "listed in part and of all, got "
                             << countsType.getDimSize(3);
  for (int64_t dim : {0, 1})
    if (!mayBeEqual(listType.getDimSize(dim), countsType.getDimSize(dim)))
      return op->emitOpError()
             << name << " and their counts differ: " << listType << " and "
             << countsType;
  return success();
}

LogicalResult flash::detail::verifyBlocks(
    Operation *op, Value keyTiles, Value counts, RankedTensorType query,
    RankedTensorType key, std::optional<MaskAttrInterface> mask, Value lengths,
    Region &score, std::optional<ScheduleAttr> attribute,
    std::optional<ArrayRef<int64_t>> blockSizes, BlockUser user) {
  if (blockSizes)
    return verifyGivenBlocks(op, keyTiles, counts, query, key, *blockSizes,
                             user);
  if (!keyTiles && !counts)
    return success();
  auto map = keyTiles ? keyTiles.getDefiningOp<BlockMapOp>() : BlockMapOp();
  if (!map || map.getKeyTiles() != keyTiles || map.getCounts() != counts)
    return op->emitOpError("blocks are the results of one flash.block_map "
                           "of the same function, in their order; of lists "
                           "that are given, say the sizes of their blocks, "
                           "such as 'of [128, 128]'");
  auto differs = [&](const Twine &what) {
    InFlightDiagnostic error = op->emitOpError()
                               << "has blocks of another " << what;
    error.attachNote(map.getLoc()) << "the map is made here";
    return error;
  };
  if (query.getRank() != 4)
    return op->emitOpError("blocks are for operands of rank 4");
  bool overQueries = user == BlockUser::KeyGrad;
  if (map.getOverQueries() != overQueries)
    return op->emitOpError(overQueries ? "query_blocks" : "blocks")
           << " takes a map of tiles of " << (overQueries ? "queries" : "keys")
           << ", which a flash.block_map " << (overQueries ? "with" : "without")
           << " over_queries makes";
  if (map.getMaskAttr() != mask.value_or(MaskAttrInterface()))
    return differs("mask");
  if (map.getLengths() != lengths)
    return differs("number of keys: its lengths are not the attention's");
  auto getYield = [](Region &region) {
    return region.empty() ? YieldOp()
                          : cast<YieldOp>(region.front().getTerminator());
  };
  YieldOp ofScore = getYield(score), ofMap = getYield(map.getKeep());
  if (!SameValues().areSame(ofScore ? ofScore.getKeep() : Value(),
                            ofMap ? ofMap.getResult() : Value()))
    return differs("mask: what its region keeps is not what the score region "
                   "does");
  ArrayRef<int64_t> of = map.getStaticSizes();
  for (auto [name, ofMap, size, mayBeOne] :
       {std::tuple("batch size", of[0], query.getDimSize(0), true),
        {"number of heads", of[1], query.getDimSize(1), true},
        {"number of queries", of[2], query.getDimSize(2), false},
        {"number of keys", of[3], key.getDimSize(2), false}})
    if (!mayBeEqual(ofMap, size) && !(mayBeOne && ofMap == 1))
      return differs(name) << ": " << ofMap << ", not " << size;
  Schedule schedule = attribute ? attribute->getValue() : Schedule();
  if (schedule.splitKeys)
    return op->emitOpError("split_keys makes ranges of keys, and blocks are "
                           "lists of tiles; write num_splits instead, with "
                           "every n-th tile of a list in a split");
  int64_t packed = schedule.getPackedHeads();
  if (of[1] != 1 && packed != map.getPackedHeads())
    return differs("number of heads that share tiles: the schedule must say "
                   "packed_heads = ")
           << map.getPackedHeads();
  bool hasTiles = schedule.queryTile && schedule.keyTile;
  auto differInTiles = [&](StringRef ofQueries, StringRef ofKeys) {
    return differs("tile size: the schedule must say ")
           << ofQueries << " = " << map.getQueryTile() * packed << ", "
           << ofKeys << " = " << map.getKeyTile();
  };
  std::pair<int64_t, int64_t> tiles = {map.getQueryTile(), map.getKeyTile()};
  switch (user) {
  case BlockUser::Attention:
    if (!hasTiles ||
        tiles != std::pair(schedule.getQueriesOfTile(), *schedule.keyTile))
      return differInTiles("query_tile", "key_tile");
    break;
  case BlockUser::QueryGrad:
    if (!hasTiles ||
        tiles != std::pair(*schedule.queryTile, schedule.getKeyStep()))
      return differInTiles("query_tile", "key_step");
    break;
  case BlockUser::KeyGrad:
    if (!hasTiles ||
        tiles != std::pair(schedule.getQueryStep(), *schedule.keyTile))
      return differInTiles("query_step", "key_tile");
    break;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// BlockMapOp
//===----------------------------------------------------------------------===//

SmallVector<OpFoldResult> BlockMapOp::getMixedSizes() {
  Builder builder(getContext());
  return getMixedValues(getStaticSizes(), getSizes(), builder);
}

BlockMapOp::MapTypes BlockMapOp::getMapTypes(MLIRContext *context,
                                             ArrayRef<int64_t> sizes,
                                             ArrayRef<int64_t> tiles,
                                             int64_t packedHeads,
                                             bool overQueries, bool hasRanks) {
  auto countTiles = [](int64_t size, int64_t tile) {
    return ShapedType::isDynamic(size) ? size
                                       : llvm::divideCeilSigned(size, tile);
  };
  int64_t fixedTiles = countTiles(sizes[2], tiles[0]),
          listedTiles = countTiles(sizes[3], tiles[1]);
  if (overQueries)
    std::swap(fixedTiles, listedTiles);
  int64_t heads =
      ShapedType::isDynamic(sizes[1]) ? sizes[1] : sizes[1] / packedHeads;
  auto typeOf = [&](int64_t columns) {
    return RankedTensorType::get({sizes[0], heads, fixedTiles, columns},
                                 IntegerType::get(context, 32));
  };
  if (!hasRanks)
    return {typeOf(listedTiles), typeOf(2), {}};
  int64_t ofRuns = ShapedType::isDynamic(listedTiles)
                       ? listedTiles
                       : numbersOfRun * listedTiles;
  return {typeOf(ofRuns), typeOf(2), typeOf(listedTiles)};
}

LogicalResult BlockMapOp::verify() {
  ArrayRef<int64_t> sizes = getStaticSizes();
  if (sizes.size() != 4)
    return emitOpError("'of' takes the four sizes [batches, heads, queries, "
                       "keys]");
  if (static_cast<size_t>(llvm::count_if(sizes, ShapedType::isDynamic)) !=
      getSizes().size())
    return emitOpError("'of' needs one operand per dynamic size");
  for (int64_t size : sizes)
    if (!ShapedType::isDynamic(size) && size < 0)
      return emitOpError("sizes must not be negative, got ") << size;
  if (getTiles().size() != 2 || getTiles()[0] < 1 || getTiles()[1] < 1)
    return emitOpError("tiles are two positive numbers, of queries and of "
                       "keys");
  if (getPackedHeads() < 1 ||
      (getPackedHeads() > 1 &&
       (ShapedType::isDynamic(sizes[1]) || sizes[1] % getPackedHeads() != 0)))
    return emitOpError("packs ")
           << getPackedHeads() << " heads, which must divide how many have a "
           << "map, " << printSize(sizes[1]);
  if (getOverQueries() && getPacked())
    return emitOpError("lists of queries are not packed: leave out packed or "
                       "over_queries");
  if (getRanks() && !getOverQueries())
    return emitOpError("ranks are of tiles of keys: write over_queries, or "
                       "leave them out");
  MapTypes types = getMapTypes(getContext(), sizes, getTiles(),
                               getPackedHeads(), getOverQueries(),
                               /*hasRanks=*/static_cast<bool>(getRanks()));
  for (auto [name, result, expected] :
       {std::tuple("key_tiles", getKeyTiles(), types.tiles),
        {"counts", getCounts(), types.counts},
        {"ranks", getRanks(), types.ranks}})
    if (result && result.getType() != expected)
      return emitOpError() << name << " must have type " << expected << ", got "
                           << result.getType();
  if (getGivenTiles() || getGivenCounts() || getGivenRanks())
    for (auto [given, result] : {std::pair(getGivenTiles(), getKeyTiles()),
                                 {getGivenCounts(), getCounts()},
                                 {getGivenRanks(), getRanks()}})
      if (static_cast<bool>(given) != static_cast<bool>(result) ||
          (given && given.getType() != result.getType()))
        return emitOpError("a map that is given is tensors of the types of the "
                           "results");
  if (getLengths() &&
      failed(verifySameSize(*this, "number of batches and number of lengths",
                            sizes[0], getLengths().getType().getDimSize(0))))
    return failure();
  if (getKeep().empty())
    return success();
  Block &block = getKeep().front();
  SmallVector<Type> expected(4, IndexType::get(getContext()));
  if (block.getArgumentTypes() != TypeRange(expected))
    return emitOpError("the region takes (batch: index, head: index, query: "
                       "index, key: index)");
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || !yield.getResult().getType().isInteger(1) || yield.getKeep())
    return emitOpError("the region must end with flash.yield of an i1");
  return verifyElementwise(block, "the region of a block map");
}
