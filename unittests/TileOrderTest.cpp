//===- TileOrderTest.cpp - Orders of tiles, number by number --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Folds what a kernel computes, for all numbers of many sizes: every tile must
// come once. For blocks that take one tile of each wave it also looks at how
// even their work is, and how many heads they read at the same time.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/TileOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::tile;

using Order = llvm::function_ref<TileOfHead(OpBuilder &, Location,
                                            const MaskedTiles &, Value)>;

namespace {
struct Sizes {
  int64_t blocksOfWave, tilesOfHead, heads;
  bool haveEvenPairs = true;
  /// How many tiles of sums a tile adds to, if that is said.
  int64_t additions = 0;
  int64_t count() const { return tilesOfHead * heads; }
};

/// Of each number the head and the tile.
using Table = std::vector<std::pair<int64_t, int64_t>>;
} // namespace

static int numFailures = 0;

static void fail(StringRef order, const Sizes &s, const llvm::Twine &message) {
  llvm::errs() << llvm::formatv("{0}, {1} blocks, {2} heads of {3} tiles: ",
                                order, s.blocksOfWave, s.heads, s.tilesOfHead)
               << message << "\n";
  ++numFailures;
}

/// Runs the ops that the order emits for each number.
static Table tabulate(MLIRContext *context, Order order, const Sizes &s) {
  OpBuilder builder(context);
  Location loc = builder.getUnknownLoc();
  Type index = builder.getIndexType();
  Block block;
  SmallVector<Value> arguments;
  for (int i = 0; i < 4; ++i)
    arguments.push_back(block.addArgument(index, loc));
  builder.setInsertionPointToStart(&block);
  TileOfHead tile = order(builder, loc,
                          {arguments[1], arguments[2], s.blocksOfWave,
                           s.additions ? arguments[3] : Value()},
                          arguments[0]);
  DenseMap<Value, Attribute> known;
  auto set = [&](Value argument, int64_t value) {
    known[argument] = builder.getIndexAttr(value);
  };
  auto run = [&](Operation &op) {
    SmallVector<Attribute> operands = llvm::map_to_vector(
        op.getOperands(), [&](Value operand) { return known.at(operand); });
    SmallVector<OpFoldResult> results;
    if (failed(op.fold(operands, results)) || results.size() != 1)
      llvm::report_fatal_error("an op without a value, such as x / 0");
    auto value = dyn_cast<Value>(results[0]);
    known[op.getResult(0)] =
        value ? known.at(value) : cast<Attribute>(results[0]);
  };
  // What depends on sizes alone is computed once.
  int64_t sizes[] = {s.heads, s.tilesOfHead, s.additions};
  for (auto [argument, value] : llvm::zip(llvm::drop_begin(arguments), sizes))
    set(argument, value);
  SmallVector<Operation *> ofNumber;
  for (Operation &op : block) {
    if (llvm::all_of(op.getOperands(),
                     [&](Value operand) { return known.contains(operand); }))
      run(op);
    else
      ofNumber.push_back(&op);
  }
  Table table;
  for (int64_t number = 0; number < s.count(); ++number) {
    set(arguments[0], number);
    for (Operation *op : ofNumber)
      run(*op);
    auto get = [&](Value value) {
      return cast<IntegerAttr>(known.at(value)).getInt();
    };
    table.emplace_back(get(tile.head), get(tile.tile));
  }
  return table;
}

static void checkOnce(StringRef order, const Sizes &s, const Table &table) {
  DenseSet<std::pair<int64_t, int64_t>> found;
  for (auto [head, tile] : table)
    if (head < 0 || head >= s.heads || tile < 0 || tile >= s.tilesOfHead ||
        !found.insert({head, tile}).second)
      return fail(order, s,
                  llvm::formatv("tile {0} of head {1}", tile, head).str());
}

/// The order "both ways": the tiles of a head come as it says, those of the
/// first heads backwards and those of the last ones forwards, where there are
/// more heads than a wave has.
static void checkDirections(const Sizes &s, const Table &table,
                            const Table &directions) {
  DenseMap<int64_t, int64_t> before;
  int64_t forwards = 0;
  for (auto [place, direction] : llvm::zip(table, directions)) {
    auto [head, tile] = place;
    bool isBackwards = direction.second;
    forwards += !isBackwards;
    auto [last, isFirst] =
        before.insert({head, isBackwards ? s.tilesOfHead : -1});
    if (tile != last->second + (isBackwards ? -1 : 1))
      return fail(
          "both ways", s,
          llvm::formatv("tile {0} of head {1} is not next", tile, head).str());
    last->second = tile;
    if (isBackwards && forwards > 0)
      return fail("both ways", s, "a head is backwards behind one that is not");
  }
  int64_t together =
      s.additions ? std::max<int64_t>(s.additions / 2, 1) : s.tilesOfHead;
  int64_t perWave = std::max<int64_t>(s.blocksOfWave / together, 1);
  int64_t most = std::max<int64_t>(4 * s.blocksOfWave / together, 1);
  int64_t expected = std::min(most, std::max<int64_t>(s.heads - perWave, 0));
  if (forwards != expected * s.tilesOfHead)
    fail("both ways", s,
         llvm::formatv("{0} tiles are forwards", forwards).str());
}

/// Waves as of tile-persist: every other one goes backwards.
static void checkWaves(const Sizes &s, const Table &table, double mostWork,
                       size_t mostHeads) {
  std::vector<int64_t> work(s.blocksOfWave);
  int64_t all = 0;
  DenseMap<int64_t, DenseSet<int64_t>> headsOfWave;
  for (auto [number, place] : llvm::enumerate(table)) {
    auto [head, tile] = place;
    int64_t wave = number / s.blocksOfWave, block = number % s.blocksOfWave;
    work[wave % 2 ? s.blocksOfWave - 1 - block : block] += tile + 1;
    all += tile + 1;
    headsOfWave[wave].insert(head);
  }
  double part = *llvm::max_element(work) * double(s.blocksOfWave) / all;
  if (part > mostWork)
    fail("in pairs", s, llvm::formatv("the last block has {0:F3}", part).str());
  if (headsOfWave[0].size() > mostHeads)
    fail("in pairs", s,
         llvm::formatv("{0} heads in a wave", headsOfWave[0].size()).str());
}

int main() {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect>();
  int64_t numTiles = 0;
  auto check = [&](const Sizes &s) {
    checkOnce("longest first", s, tabulate(&context, emitLongestFirst, s));
    checkOnce("halves", s, tabulate(&context, emitHalves, s));
    for (int64_t waves : {1, 2}) {
      auto interleaved = [&](OpBuilder &b, Location loc,
                             const MaskedTiles &tiles, Value number) {
        return emitInterleaved(b, loc, tiles, waves, number);
      };
      Table table = tabulate(&context, interleaved, s);
      checkOnce("interleaved", s, table);
      auto reverse = [&](OpBuilder &b, Location loc, const MaskedTiles &tiles,
                         Value number) {
        return emitReverse(b, loc, tiles, waves, number);
      };
      for (auto &[head, tile] : table)
        tile = s.tilesOfHead - 1 - tile;
      if (table != tabulate(&context, reverse, s))
        fail("reverse", s, "is not interleaved backwards");
      auto bothWays = [&](OpBuilder &b, Location loc, const MaskedTiles &tiles,
                          Value number) {
        return emitBothWays(b, loc, tiles, waves, number);
      };
      auto direction = [&](OpBuilder &b, Location loc, const MaskedTiles &tiles,
                           Value number) -> TileOfHead {
        TileOfHead at = bothWays(b, loc, tiles, number);
        return {at.head, at.isBackwards};
      };
      table = tabulate(&context, bothWays, s);
      checkOnce("both ways", s, table);
      checkDirections(s, table, tabulate(&context, direction, s));
    }
    auto inPairs = [&](OpBuilder &b, Location loc, const MaskedTiles &tiles,
                       Value number) {
      return emitSnakeOrder(b, loc, tiles, s.haveEvenPairs, number);
    };
    Table table = tabulate(&context, inPairs, s);
    checkOnce("in pairs", s, table);
    numTiles += 8 * s.count();
    return table;
  };
  // Few blocks make many waves, whole and partial, of pairs of heads that end
  // in the middle of each other.
  for (int64_t blocks : {1, 2, 3, 4, 8, 11, 12})
    for (int64_t tilesOfHead = 1; tilesOfHead <= 13; ++tilesOfHead)
      for (int64_t heads = 1; heads <= 17; ++heads)
        for (auto [haveEvenPairs, additions] :
             {std::pair(true, 0), {false, 0}, {true, 5}})
          check({blocks, tilesOfHead, heads, haveEvenPairs, additions});

  // Of an H200, what the last block has of the mean, and whose keys are read at
  // the same time: of those heads that a wave holds.
  for (auto [sizes, mostWork, mostHeads] :
       {std::tuple(Sizes{132, 4, 256}, 1.04, 33), // Short heads.
        {Sizes{132, 16, 128}, 1.02, 9},
        {Sizes{132, 32, 64}, 1.02, 5},
        {Sizes{132, 86, 16}, 1.025, 3}, // A rest that is hard to spread.
        {Sizes{132, 43, 64}, 1.02, 4},
        {Sizes{264, 21, 99}, 1.04, 13},
        {Sizes{132, 43, 64, /*haveEvenPairs=*/false}, 1.01, 64}})
    checkWaves(sizes, check(sizes), mostWork, mostHeads);
  llvm::outs() << numTiles << " tiles, " << numFailures << " failures\n";
  return numFailures != 0;
}
