//===- MaskTilesTest.cpp - Tiles of masks against brute force -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For many masks, tile sizes and lengths, every tile of the symbolic answer is
// compared with a look at all of its pairs. `MaskTilesTest print MASK Q K [nq
// nk]` prints the answer for one mask instead, and `MaskTilesTest print SET...
// Q K [nq nk]` for the union of sets.
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskTiles.h"
#include "flash/Analysis/MaskNodes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <random>

using namespace mlir;
using namespace flash;

namespace {
/// Whether the answer must be closed-form ranges.
enum class Shape { Ranges, VisitedRange, Any };

struct Mask {
  const char *name;
  Shape shape;
  /// Constraints over (b, h, i, j)[nq, nk], one string per part of the union.
  std::vector<const char *> sets;
};

struct Lengths {
  int64_t nq, nk;
};

/// Whose tiles an answer is about: those of keys of a tile of queries, or the
/// pairs of tiles along a diagonal.
enum class Path { OfQueryTile, Diagonal };

/// The pairs and the tiles of one (b, h), by inspection of every pair.
struct BruteForce {
  std::vector<char> pairs;
  std::vector<char> visited, notFull;
  int64_t count = 0, queriesWithKeys = 0, mostOfQuery = 0;
};
} // namespace

static const Mask masks[] = {
    {"full", Shape::Ranges, {"0 == 0"}},
    {"nothing", Shape::Ranges, {}},
    {"contradiction", Shape::Ranges, {"i - j - 1 >= 0, j - i >= 0"}},
    {"causal top-left", Shape::Ranges, {"i - j >= 0"}},
    {"causal", Shape::Ranges, {"i + nk - nq - j >= 0"}},
    {"anti-causal", Shape::Ranges, {"j - i >= 0"}},
    {"window", Shape::Ranges, {"i - j + 20 >= 0, j - i + 20 >= 0"}},
    {"wide window", Shape::Ranges, {"i - j + 70 >= 0, j - i + 100 >= 0"}},
    {"causal window", Shape::Ranges, {"i - j >= 0, j - i + 37 >= 0"}},
    {"bottom-right window",
     Shape::Ranges,
     {"i + nk - nq - j >= 0, j - i - nk + nq + 63 >= 0"}},
    {"window off the diagonal",
     Shape::Ranges,
     {"i - j - 40 >= 0, j - i + 90 >= 0"}},
    {"prefix", Shape::Ranges, {"47 - j >= 0"}},
    {"prefix of none", Shape::Ranges, {"-1 - j >= 0"}},
    {"query prefix", Shape::Ranges, {"40 - i >= 0"}},
    {"causal prefix", Shape::Ranges, {"i + nk - nq - j >= 0, 47 - j >= 0"}},
    {"window prefix",
     Shape::Ranges,
     {"i - j >= 0, j - i + 37 >= 0, 80 - j >= 0"}},
    {"half of the keys", Shape::Ranges, {"nk - 2 * j >= 0"}},
    {"causal or prefix", Shape::Ranges, {"i - j >= 0", "30 - j >= 0"}},
    {"causal or everything", Shape::Ranges, {"i - j >= 0", "0 == 0"}},
    {"two halves", Shape::Ranges, {"i - j >= 0", "j - i - 1 >= 0"}},
    {"prefix or band",
     Shape::Any,
     {"47 - j >= 0", "i - j >= 0, j - i + 25 >= 0"}},
    {"two bands",
     Shape::Any,
     {"i - j >= 0, j - i + 10 >= 0", "i - j - 60 >= 0, j - i + 75 >= 0"}},
    {"three sets",
     Shape::Any,
     {"20 - j >= 0", "i - j >= 0, j - i + 8 >= 0", "j - 90 >= 0, i - 70 >= 0"}},
    {"steep", Shape::Ranges, {"2 * i - 3 * j >= 0"}},
    {"flat", Shape::Ranges, {"3 * j - i - 7 >= 0"}},
    {"steep band",
     Shape::Any,
     {"2 * i - 3 * j + 11 >= 0, 3 * j - 2 * i + 5 >= 0"}},
    {"thin steep band",
     Shape::Any,
     {"2 * i - 3 * j >= 0, 3 * j - 2 * i + 1 >= 0"}},
    {"wedge", Shape::Any, {"3 * i - 2 * j >= 0, 5 * j - 3 * i - 4 >= 0"}},
    {"quadrilateral",
     Shape::Any,
     {"7 * i - 5 * j + 3 >= 0, 3 * j - 2 * i - 20 >= 0, 200 - i - j >= 0"}},
    {"diagonal", Shape::Any, {"i - j == 0"}},
    {"anti-diagonal", Shape::Any, {"nq - 1 - i - j == 0"}},
    {"scaled diagonal", Shape::Any, {"2 * i - 3 * j == 0"}},
    {"one key", Shape::Any, {"j - 17 == 0"}},
    {"one row", Shape::Any, {"i - 33 == 0"}},
    {"block diagonal", Shape::Any, {"i floordiv 16 - j floordiv 16 == 0"}},
    {"block diagonal 48", Shape::Any, {"i floordiv 48 - j floordiv 48 == 0"}},
    {"block causal", Shape::Any, {"i floordiv 32 - j floordiv 32 >= 0"}},
    {"block causal 24", Shape::Any, {"i floordiv 24 - j floordiv 24 >= 0"}},
    {"block prefix", Shape::Any, {"(j floordiv 20) - 2 == 0"}},
    {"dilated", Shape::Any, {"(i - j) mod 4 == 0, i - j >= 0"}},
    {"dilated 40", Shape::Any, {"(i - j) mod 40 == 0"}},
    {"dilated keys", Shape::Any, {"j mod 3 - 1 == 0"}},
    {"strided blocks", Shape::Any, {"j mod 50 - 20 >= 0"}},
    {"banded mod", Shape::Any, {"(i + j) mod 60 - 40 >= 0, i - j >= 0"}},
    {"checkers", Shape::Any, {"(i floordiv 32 + j floordiv 32) mod 2 == 0"}},
    {"block or window",
     Shape::Any,
     {"i floordiv 40 - j floordiv 40 == 0", "i - j >= 0, j - i + 6 >= 0"}},
    {"by head", Shape::Ranges, {"i - j >= 0, 16 * h + 64 - i + j >= 0"}},
    {"by head group", Shape::Any, {"16 * (h floordiv 2) + i - j >= 0"}},
    {"by batch and head",
     Shape::Ranges,
     {"i - j + 30 * b >= 0, j - i + 9 * h >= 0"}},
    {"grouped rows", Shape::Any, {"i floordiv 4 - j >= 0"}},
    {"ceil", Shape::Any, {"(i + nk) ceildiv 3 - j >= 0"}},
    {"causal near or prefix",
     Shape::Any,
     {"i - j >= 0 & 19 - j >= 0 | j - i + 30 >= 0"}},
    {"unions in an intersection in a union",
     Shape::Any,
     {"63 - j >= 0 | i - j + 9 >= 0, j - i + 5 >= 0 & "
      "i + nk - nq - j >= 0 | 9 - j >= 0",
      "j - 90 >= 0, i - 70 >= 0"}},
    {"parts that occur twice",
     Shape::Any,
     {"i - j >= 0 | 39 - j >= 0 & i - j >= 0 | i - j + 12 >= 0 & i - j >= 0"}},
    {"empty intersection", Shape::Ranges, {"i - j - 1 >= 0 & j - i >= 0"}},
};

static const Lengths lengths[] = {{129, 129}, {128, 192}, {101, 173}, {173, 75},
                                  {65, 200},  {64, 1},    {1, 97},    {33, 16}};
static const int64_t tileSizes[][2] = {{16, 16}, {32, 32}, {64, 64}, {64, 16},
                                       {16, 64}, {32, 64}, {64, 32}};
static constexpr int64_t B = 2, H = 3;

static int64_t numFailures = 0;

static void check(bool ok, const Mask &mask, const llvm::Twine &message) {
  if (!ok && ++numFailures <= 20)
    llvm::errs() << mask.name << ": " << message << "\n";
}

/// The parts of a text between separators as masks, combined unless it is one.
template <typename Attr>
static MaskAttrInterface
parseParts(MLIRContext *context, StringRef text, char separator,
           llvm::function_ref<MaskAttrInterface(StringRef)> parsePart) {
  SmallVector<StringRef> texts;
  text.split(texts, separator);
  auto parts = llvm::map_to_vector(texts, parsePart);
  return parts.size() == 1 ? parts.front()
                           : MaskAttrInterface(Attr::get(context, parts));
}

/// Constraints, or unions of such with `|`, or intersections of those with `&`.
static MaskAttrInterface parseMask(MLIRContext *context, StringRef text) {
  auto parseSet = [&](StringRef set) -> MaskAttrInterface {
    return AffineMaskAttr::get(
        context, IntegerSetAttr::get(parseIntegerSet(
                     ("(b, h, i, j)[nq, nk] : (" + set + ")").str(), context)));
  };
  auto parseUnion = [&](StringRef set) {
    return parseParts<AnyOfAttr>(context, set, '|', parseSet);
  };
  return parseParts<AllOfAttr>(context, text, '&', parseUnion);
}

/// The union of masks; the mask of no key if there is none.
static MaskAttrInterface parse(MLIRContext *context,
                               ArrayRef<const char *> masks) {
  SmallVector<MaskAttrInterface> parts;
  for (StringRef mask : masks)
    parts.push_back(parseMask(context, mask));
  if (parts.empty())
    return parseMask(context, "-1 >= 0");
  return parts.size() == 1 ? parts.front()
                           : MaskAttrInterface(AnyOfAttr::get(context, parts));
}

/// Whether the mask keeps a pair.
static bool keeps(MaskAttrInterface mask, ArrayRef<int64_t> dims,
                  ArrayRef<int64_t> symbols) {
  MaskForm form = mask.getForm();
  auto keepsPart = [&](MaskAttrInterface part) {
    return keeps(part, dims, symbols);
  };
  switch (form.kind) {
  case MaskForm::Kind::Set:
    return contains(form.set, dims, symbols);
  case MaskForm::Kind::Union:
    return llvm::any_of(form.parts, keepsPart);
  case MaskForm::Kind::Intersection:
    return llvm::all_of(form.parts, keepsPart);
  }
  llvm_unreachable("not a mask");
}

static BruteForce inspectPairs(MaskAttrInterface mask, int64_t b, int64_t h,
                               Lengths n) {
  BruteForce result;
  for (int64_t i = 0; i < n.nq; ++i) {
    int64_t before = result.count;
    for (int64_t j = 0; j < n.nk; ++j) {
      result.pairs.push_back(keeps(mask, {b, h, i, j}, {n.nq, n.nk}));
      result.count += result.pairs.back();
    }
    result.queriesWithKeys += result.count != before;
    result.mostOfQuery = std::max(result.mostOfQuery, result.count - before);
  }
  return result;
}

static void inspectTiles(BruteForce &result, int64_t Q, int64_t K, Lengths n) {
  int64_t columns = (n.nk + K - 1) / K;
  result.visited.assign((n.nq + Q - 1) / Q * columns, false);
  result.notFull = result.visited;
  for (int64_t i = 0; i < n.nq; ++i)
    for (int64_t j = 0; j < n.nk; ++j)
      (result.pairs[i * n.nk + j] ? result.visited
                                  : result.notFull)[i / Q * columns + j / K] =
          true;
}

/// Calls `visit` with each tile's number among all, and with what answers about
/// `path` ask for in place of i0 and t. Returns the number of tiles.
static int64_t forEachTile(
    Path path, int64_t Q, int64_t K, Lengths n,
    llvm::function_ref<void(int64_t index, int64_t i0, int64_t t)> visit) {
  int64_t index = 0;
  for (int64_t i0 = 0; i0 < n.nq; i0 += Q)
    for (int64_t j0 = 0; j0 < n.nk; j0 += K, ++index)
      if (path == Path::Diagonal)
        visit(index, i0 - j0, i0 / Q);
      else
        visit(index, i0, j0 / K);
  return index;
}

/// A mask beyond the limits must visit every tile with a pair, and run the mask
/// wherever a visited tile misses one.
static int64_t compareSafe(const Mask &mask, const MaskTiles &tiles,
                           const BruteForce &expected, int64_t Q, int64_t K,
                           Lengths n, Path path = Path::OfQueryTile) {
  return forEachTile(path, Q, K, n, [&](int64_t index, int64_t i0, int64_t t) {
    TileRange range = tiles.getRange(0, 0, i0, n.nq, n.nk);
    bool isVisited = range.lo <= t && t < range.hi &&
                     tiles.isVisited(0, 0, i0, t, n.nq, n.nk);
    bool isFull = isVisited && tiles.isFull(0, 0, i0, t, n.nq, n.nk);
    if (tiles.fullIsRange)
      isFull |= range.fullLo <= t && t < range.fullHi;
    check(isVisited || !expected.visited[index], mask, "misses a tile");
    check(!isFull || !expected.notFull[index], mask,
          "runs a masked tile without the mask");
  });
}

/// Compares every tile of one (b, h); returns the number of tiles.
static int64_t compare(const Mask &mask, const MaskTiles &tiles,
                       const BruteForce &expected, int64_t b, int64_t h,
                       int64_t Q, int64_t K, Lengths n,
                       Path path = Path::OfQueryTile) {
  bool isDiagonal = path == Path::Diagonal;
  int64_t numTiles = isDiagonal ? (n.nq + Q - 1) / Q : (n.nk + K - 1) / K;
  return forEachTile(path, Q, K, n, [&](int64_t index, int64_t i0, int64_t t) {
    TileRange range = tiles.getRange(b, h, i0, n.nq, n.nk);
    bool visited = expected.visited[index];
    bool full = visited && !expected.notFull[index];
    auto where = [&] {
      return (" b=" + llvm::Twine(b) + " h=" + llvm::Twine(h) +
              " Q=" + llvm::Twine(Q) + " K=" + llvm::Twine(K) +
              " nq=" + llvm::Twine(n.nq) + " nk=" + llvm::Twine(n.nk) +
              (isDiagonal ? " distance=" : " i0=") + llvm::Twine(i0) +
              " t=" + llvm::Twine(t))
          .str();
    };
    check(range.lo == range.hi || (range.lo >= 0 && range.hi <= numTiles), mask,
          "range leaves the tiles");
    bool inRange = range.lo <= t && t < range.hi;
    check(tiles.isVisited(b, h, i0, t, n.nq, n.nk) == visited, mask,
          "visited" + where());
    check(tiles.visitedIsRange ? inRange == visited : inRange || !visited, mask,
          "visited range" + where());
    if (visited)
      check(tiles.isFull(b, h, i0, t, n.nq, n.nk) == full, mask,
            "full" + where());
    if (visited && tiles.fullIsRange)
      check((range.fullLo <= t && t < range.fullHi) == full, mask,
            "full range" + where());
    // Tiles of queries or keys that are not there are in no range.
    if (isDiagonal)
      check(range.lo == range.hi ||
                (range.lo * Q >= i0 && (range.hi - 1) * Q < n.nk + i0),
            mask, "range leaves the keys");
  });
}

static void printOne(MLIRContext *context, ArrayRef<const char *> args) {
  std::vector<const char *> sets;
  while (!args.empty() &&
         (StringRef(args.front()).contains('=') || args.front()[0] == '#')) {
    sets.push_back(args.front());
    args = args.drop_front();
  }
  SmallVector<int64_t> numbers;
  for (const char *arg : args)
    numbers.push_back(atoll(arg));
  std::optional<int64_t> nq, nk;
  if (numbers.size() == 4) {
    nq = numbers[2];
    nk = numbers[3];
  }
  computeMaskTiles(parse(context, sets), numbers[0], numbers[1], nq, nk)
      .print(llvm::outs());
}

/// An intersection of `n` unions of the sets on both sides of a line. All lines
/// are parallel, or no two are.
static std::string getUnions(int64_t n, bool areParallel) {
  std::string text;
  for (int64_t k = 0; k != n; ++k) {
    int64_t a = areParallel ? 1 : k + 1, b = areParallel ? -1 : k - n;
    text += llvm::formatv(
        "{0}{1} * i + {2} * j + {3} >= 0 | {4} * i + {5} * j + {6} >= 0",
        k ? " & " : "", a, b, -k, -a, -b, -2 * k);
  }
  return text;
}

/// Masks that are hard to analyse take little time, and visit no fewer tiles
/// than they should.
static void testLimits(MLIRContext *context) {
  std::string parallel = getUnions(12, /*areParallel=*/true),
              crossing = getUnions(30, /*areParallel=*/false),
              causalCrossing = crossing + " & i - j >= 0", bands;
  for (int64_t k = 0; k != 100; ++k)
    bands += llvm::formatv("{0}i - j - {1} >= 0, j - i + {2} >= 0",
                           k ? " | " : "", 3 * k, 3 * k + 1);
  // Keys at most two rows and columns away from the query in a grid.
  std::string grid, openGrid;
  for (int64_t width : {16, 14})
    (width == 16 ? grid : openGrid) =
        llvm::formatv("i floordiv {0} - j floordiv {0} + 2 >= 0, "
                      "j floordiv {0} - i floordiv {0} + 2 >= 0, "
                      "i mod {0} - j mod {0} + 2 >= 0, "
                      "j mod {0} - i mod {0} + 2 >= 0",
                      width);

  enum class Answer { Exact, Bounds, None };
  struct {
    Mask mask;
    Answer least;
  } const hard[] = {
      {{"huge coefficients",
        Shape::Any,
        {"2147483647 * i - 2147483629 * j >= 0"}},
       Answer::None},
      {{"coprime cone",
        Shape::Any,
        {"1000003 * i - 999983 * j >= 0, 999979 * j - 1000033 * i + 7 >= 0"}},
       Answer::None},
      {{"nested divisions",
        Shape::Any,
        {"((i * 7 + j * 5) floordiv 31 + (i * 3 - j) floordiv 17) floordiv 13 "
         "- "
         "(j * 11 + i) mod 29 >= 0"}},
       Answer::None},
      {{"causal nested divisions",
        Shape::Any,
        {"((i * 7 + j * 5) floordiv 31 + (i * 3 - j) floordiv 17) floordiv 13 "
         "- "
         "(j * 11 + i) mod 29 >= 0, i - j >= 0"}},
       Answer::Bounds},
      {{"intersection of parallel unions", Shape::Any, {parallel.c_str()}},
       Answer::Exact},
      {{"intersection of crossing unions", Shape::Any, {crossing.c_str()}},
       Answer::None},
      {{"causal crossing unions", Shape::Any, {causalCrossing.c_str()}},
       Answer::Bounds},
      {{"many bands", Shape::Any, {bands.c_str()}}, Answer::Bounds},
      {{"grid", Shape::Any, {grid.c_str()}}, Answer::Bounds},
      {{"grid of 14", Shape::Any, {openGrid.c_str()}}, Answer::Bounds},
  };
  for (const auto &[mask, least] : hard) {
    auto start = std::chrono::steady_clock::now();
    MaskAttrInterface parsed = parse(context, mask.sets);
    MaskTiles tiles = computeMaskTiles(parsed, 32, 32);
    double ms = std::chrono::duration<double, std::milli>(
                    std::chrono::steady_clock::now() - start)
                    .count();
    llvm::outs() << llvm::formatv("{0,-32} {1,8:F2} ms {2}\n", mask.name, ms,
                                  tiles.exact    ? "exact"
                                  : tiles.gaveUp ? "every tile"
                                                 : "bounds");
    check(ms < 2000, mask, "took too long");
    check(least != Answer::Exact || tiles.exact, mask, "not exact");
    check(least == Answer::None || !tiles.gaveUp, mask, "gave up");
    Lengths n{65, 97};
    BruteForce expected = inspectPairs(parsed, 0, 0, n);
    inspectTiles(expected, 32, 32, n);
    auto compareAny = [&, &mask = mask](const MaskTiles &tiles, Path path) {
      if (tiles.exact)
        compare(mask, tiles, expected, 0, 0, 32, 32, n, path);
      else
        compareSafe(mask, tiles, expected, 32, 32, n, path);
    };
    compareAny(tiles, Path::OfQueryTile);
    compareAny(computeDiagonalTiles(parsed, 32), Path::Diagonal);
  }
}

/// The keys of a query that are known, also where only some queries are looked
/// at.
static void testKeysOfQuery(MLIRContext *context) {
  struct {
    Mask mask;
    Lengths n;
    int64_t mean, most;
  } const cases[] = {
      {{"full", Shape::Any, {"0 == 0"}}, {1000, 300}, 300, 300},
      {{"empty", Shape::Any, {}}, {1000, 300}, 0, 0},
      {{"contradiction", Shape::Any, {"i - j - 1 >= 0, j - i >= 0"}},
       {1000, 300},
       0,
       0},
      {{"no queries", Shape::Any, {"0 == 0"}}, {0, 300}, 0, 0},
      {{"no keys", Shape::Any, {"0 == 0"}}, {1000, 0}, 0, 0},
      {{"causal", Shape::Any, {"i + nk - nq - j >= 0"}},
       {1024, 1024},
       513,
       1017},
      {{"long causal", Shape::Any, {"i + nk - nq - j >= 0"}},
       {1 << 20, 1 << 20},
       (1 << 19) + 1,
       (1 << 20) - (1 << 13) + 1},
      {{"few causal queries", Shape::Any, {"i + nk - nq - j >= 0"}},
       {128, 8192},
       8192 - 63,
       8192},
      {{"causal queries without keys", Shape::Any, {"i + nk - nq - j >= 0"}},
       {8192, 2048},
       1025,
       1985},
      {{"window", Shape::Any, {"i - j >= 0, j - i + 99 >= 0"}},
       {10000, 10000},
       99,
       100},
      {{"documents", Shape::Any, {"i floordiv 512 - j floordiv 512 == 0"}},
       {4096, 4096},
       512,
       512},
      {{"causal documents",
        Shape::Any,
        {"i floordiv 512 - j floordiv 512 == 0, i - j >= 0"}},
       {4096, 4096},
       257,
       481},
      {{"first batch and head", Shape::Any, {"j - 40 * b - 7 * h >= 0"}},
       {100, 50},
       50,
       50},
  };
  for (const auto &[mask, n, mean, most] : cases) {
    KeysOfQuery found =
        estimateKeysOfQuery(parse(context, mask.sets), n.nq, n.nk);
    check(found.mean == mean && found.most == most, mask,
          "a query has " + llvm::Twine(found.mean) + " keys, " +
              llvm::Twine(found.most) + " at most, not " + llvm::Twine(mean) +
              ", " + llvm::Twine(most));
  }
}

/// Whether the ranges of tiles of keys and those of tiles of queries, of the
/// transposed mask, have the same pairs of tiles.
static bool haveSamePairs(const MaskTiles &keys, const MaskTiles &queries,
                          int64_t Q, int64_t K, Lengths n) {
  for (int64_t i = 0; i < n.nq; i += Q)
    for (int64_t j = 0; j < n.nk; j += K) {
      TileRange ofKeys = keys.getRange(0, 0, i, n.nq, n.nk),
                ofQueries = queries.getRange(0, 0, j, n.nk, n.nq);
      bool isKeyVisited = ofKeys.lo <= j / K && j / K < ofKeys.hi,
           isQueryVisited = ofQueries.lo <= i / Q && i / Q < ofQueries.hi;
      if (isKeyVisited != isQueryVisited)
        return false;
    }
  return true;
}

/// Random masks on small tiles, where the corner cases are. Returns the number
/// of tiles compared.
static int64_t testRandom(MLIRContext *context, unsigned numMasks) {
  std::minstd_rand generator(1);
  auto pick = [&](int64_t lo, int64_t hi) {
    return lo + int64_t(generator() % uint64_t(hi - lo + 1));
  };
  int64_t numTiles = 0, numExact = 0, numExactAlong = 0, numRanges = 0;
  double worst = 0;
  for (unsigned round = 0; round != numMasks; ++round) {
    SmallVector<std::string> texts;
    for (int64_t set = pick(1, 2); set > 0; --set) {
      std::string &text = texts.emplace_back();
      for (int64_t left = pick(1, 4); left > 0; --left) {
        text += llvm::formatv("{0} * i + {1} * j + {2}", pick(-4, 4),
                              pick(-4, 4), pick(-20, 20));
        switch (pick(0, 5)) {
        case 0:
          text +=
              llvm::formatv(" + {0} * (({1} * i + {2} * j) floordiv {3})",
                            pick(-4, 4), pick(-3, 3), pick(-3, 3), pick(2, 7));
          break;
        case 1:
          text += llvm::formatv(" + {0} * ((i + {1} * j) mod {2})", pick(-4, 4),
                                pick(-3, 3), pick(2, 7));
          break;
        case 2:
          text += " + nk - nq";
          break;
        }
        text += pick(0, 7) ? " >= 0" : " == 0";
        const char *separators[] = {", ", ", ", " | ", " & "};
        if (left != 1)
          text += separators[pick(0, 3)];
      }
    }
    std::string name = llvm::join(texts, " | ");
    Mask mask{name.c_str(), Shape::Any, {}};
    for (const std::string &text : texts)
      mask.sets.push_back(text.c_str());
    MaskAttrInterface parsed = parse(context, mask.sets);
    int64_t Q = pick(2, 8), K = pick(2, 8);
    Lengths n{pick(1, 40), pick(1, 40)};
    BruteForce expected = inspectPairs(parsed, 0, 0, n);
    inspectTiles(expected, Q, K, n);
    BruteForce square = expected;
    inspectTiles(square, Q, Q, n);
    check(expected.count == countUnmasked(parsed, {1, 1, n.nq, n.nk}), mask,
          "count");
    for (bool isDynamic : {false, true}) {
      std::optional<int64_t> nq, nk;
      if (!isDynamic) {
        nq = n.nq;
        nk = n.nk;
      }
      auto start = std::chrono::steady_clock::now();
      MaskTiles tiles = computeMaskTiles(parsed, Q, K, nq, nk);
      worst = std::max(worst, std::chrono::duration<double, std::milli>(
                                  std::chrono::steady_clock::now() - start)
                                  .count());
      numExact += tiles.exact;
      numTiles += tiles.exact ? compare(mask, tiles, expected, 0, 0, Q, K, n)
                              : compareSafe(mask, tiles, expected, Q, K, n);
      MaskTiles along = computeDiagonalTiles(parsed, Q, nq, nk);
      numExactAlong += along.exact;
      numTiles +=
          along.exact
              ? compare(mask, along, square, 0, 0, Q, Q, n, Path::Diagonal)
              : compareSafe(mask, along, square, Q, Q, n, Path::Diagonal);
      if (!leavesRanges(parsed, Q, K, nq, nk))
        continue;
      ++numRanges;
      MaskTiles ofQueries =
          computeMaskTiles(transposeMask(parsed), K, Q, nk, nq);
      check(haveSamePairs(tiles, ofQueries, Q, K, n), mask,
            "tiles of queries have other tiles of keys than these have");
    }
  }
  llvm::outs() << llvm::formatv(
      "random: {0} of {1} answers exact, {2} ranges both ways, {3} exact along "
      "diagonals, worst {4:F2} ms\n",
      numExact, 2 * numMasks, numRanges, numExactAlong, worst);
  return numTiles;
}

/// Whether a query that exists has a key behind the last one, up to a distance.
static bool hasKeyBehindLast(MaskAttrInterface mask, Lengths n) {
  constexpr int64_t distance = 70;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < n.nq; ++i)
        for (int64_t j = n.nk; j < n.nk + distance; ++j)
          if (keeps(mask, {b, h, i, j}, {n.nq, n.nk}))
            return true;
  return false;
}

/// Whether a query behind the last one, up to a distance, sees a key that the
/// last one does not see.
static bool seesLessAtEnd(MaskAttrInterface mask, Lengths n) {
  constexpr int64_t distance = 70;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = n.nq; n.nq > 0 && i < n.nq + distance; ++i)
        for (int64_t j = 0; j < n.nk; ++j)
          if (keeps(mask, {b, h, i, j}, {n.nq, n.nk}) &&
              !keeps(mask, {b, h, n.nq - 1, j}, {n.nq, n.nk}))
            return true;
  return false;
}

/// Masks that leave out what does not exist, for all lengths and for some.
static void testExistingKeys(MLIRContext *context) {
  auto isBounded = [&](std::vector<const char *> sets,
                       std::optional<int64_t> nq = std::nullopt,
                       std::optional<int64_t> nk = std::nullopt) {
    return keepsOnlyExistingKeys(parse(context, sets), nq, nk);
  };
  Mask mask = {"existing keys", Shape::Any, {}};
  const char *bottomRight = "i + nk - nq - j >= 0", *topLeft = "i - j >= 0";
  check(isBounded({bottomRight}) && !isBounded({topLeft}), mask, "causal");
  check(isBounded({topLeft}, 64, 64) && isBounded({topLeft}, 64, 65) &&
            !isBounded({topLeft}, 65, 64),
        mask, "causal of known lengths");
  check(isBounded({"i + nk - nq - j >= 0, j - i - nk + nq + 8 >= 0"}), mask,
        "window");
  check(isBounded({bottomRight, "nk - 5 - j >= 0"}) &&
            !isBounded({bottomRight, "5 - j >= 0"}) &&
            isBounded({bottomRight, "5 - j >= 0"}, 8, 6),
        mask, "union");
  check(!isBounded({"i + nk - nq + 1 - j >= 0"}), mask, "one key too many");
  auto seesMost = [&](std::vector<const char *> sets,
                      std::optional<int64_t> nq = std::nullopt,
                      std::optional<int64_t> nk = std::nullopt) {
    return seesMostAtEnd(parse(context, sets), nq, nk);
  };
  check(seesMost({bottomRight}) && !seesMost({topLeft}), mask, "end of causal");
  check(seesMost({topLeft}, 65, 64) && !seesMost({topLeft}, 63, 64), mask,
        "end of causal of known lengths");
  check(seesMost({"i + nk - nq - j >= 0, j - i - nk + nq + 8 >= 0"}) &&
            seesMost({bottomRight, "5 - j >= 0"}) &&
            !seesMost({bottomRight, "i - 5 == 0"}),
        mask, "end of windows and unions");
  int64_t numBounded = 0, numMost = 0;
  for (const Mask &each : masks) {
    MaskAttrInterface parsed = parse(context, each.sets);
    bool always = keepsOnlyExistingKeys(parsed, std::nullopt, std::nullopt);
    for (Lengths n : lengths) {
      if (n.nq > 128)
        continue;
      bool known = keepsOnlyExistingKeys(parsed, n.nq, n.nk);
      numBounded += known;
      check(!always || known, each, "bounded for all lengths but these");
      check(!known || !hasKeyBehindLast(parsed, n), each,
            "keeps a key behind the last one");
      bool isMost = seesMostAtEnd(parsed, n.nq, n.nk);
      numMost += isMost;
      check(!isMost || !seesLessAtEnd(parsed, n), each,
            "a query behind the last one sees a key that it does not see");
    }
  }
  check(numBounded != 0 && numMost != 0, mask, "none is bounded");
}

/// What the parts of a mask tell: on what it depends, also where a part has
/// many paths to it, and the mask of the transposed scores.
static void testNodes(MLIRContext *context) {
  Mask mask = {"shared parts", Shape::Any, {"i - j >= 0", "b + j - 8 >= 0"}};
  MaskAttrInterface shared = parse(context, mask.sets),
                    transposed = transposeMask(shared);
  check(dependsOn(shared, 0) && !dependsOn(shared, 1), mask, "dimensions");
  check(transposed == parse(context, {"j - i >= 0", "b + i - 8 >= 0"}) &&
            transposeMask(transposed) == shared,
        mask, "transposed");
  constexpr size_t depth = 40;
  for (size_t i = 0; i < depth; ++i) {
    MaskAttrInterface other =
        parseMask(context, ("h - " + Twine(i) + " >= 0").str());
    shared = AnyOfAttr::get(context, {AllOfAttr::get(context, {shared, other}),
                                      AllOfAttr::get(context, {other, shared}),
                                      parseMask(context, "i - 9 >= 0")});
  }
  check(dependsOn(shared, 1), mask, "dimensions of many parts");
  check(getMaskNodes(shared).size() <= 6 * depth, mask,
        "a part for each path to it");
}

static void testEvenPairs(MLIRContext *context) {
  struct {
    Mask mask;
    Lengths n;
    bool isEven;
  } const cases[] = {
      {{"full", Shape::Any, {"0 == 0"}}, {1000, 300}, true},
      {{"empty", Shape::Any, {}}, {1000, 300}, true},
      {{"no queries", Shape::Any, {"0 == 0"}}, {0, 300}, true},
      {{"causal", Shape::Any, {"i + nk - nq - j >= 0"}}, {8191, 8191}, true},
      {{"few causal queries", Shape::Any, {"i + nk - nq - j >= 0"}},
       {128, 8192},
       true},
      {{"causal queries without keys", Shape::Any, {"i + nk - nq - j >= 0"}},
       {8192, 2048},
       false},
      {{"prefix", Shape::Any, {"i - j >= 0", "1023 - j >= 0"}},
       {8192, 8192},
       true},
      {{"window", Shape::Any, {"i - j >= 0, j - i + 1023 >= 0"}},
       {8192, 8192},
       false},
      {{"narrow window", Shape::Any, {"i - j >= 0, j - i + 100 >= 0"}},
       {8192, 8192},
       true},
      {{"causal documents",
        Shape::Any,
        {"i floordiv 1024 - j floordiv 1024 == 0, i - j >= 0"}},
       {8192, 8192},
       true},
      {{"all keys for one half", Shape::Any, {"i - 500 >= 0, 700 - i >= 0"}},
       {1000, 1000},
       false},
  };
  for (const auto &[mask, n, isEven] : cases)
    check(haveEvenPairs(parse(context, mask.sets), n.nq, n.nk) == isEven, mask,
          "pairs");
}

/// Tiles of several heads hold the pairs of all of them.
static int64_t testHeads(MLIRContext *context) {
  const Lengths lengths[] = {{1, 200}, {9, 130}, {40, 70}};
  const std::pair<int64_t, int64_t> tileSizes[] = {{1, 32}, {5, 16}, {16, 32}};
  int64_t numTiles = 0;
  for (const Mask &mask : masks) {
    if (!StringRef(mask.name).starts_with("by "))
      continue;
    MaskAttrInterface parsed = parse(context, mask.sets);
    for (int64_t heads : {2, 3, 7})
      for (auto [Q, K] : tileSizes)
        for (Lengths n : lengths)
          for (bool isKnown : {false, true}) {
            auto ifKnown = [&, isKnown = isKnown](int64_t length) {
              return isKnown ? std::optional(length) : std::nullopt;
            };
            MaskTiles tiles = computeMaskTiles(parsed, Q, K, ifKnown(n.nq),
                                               ifKnown(n.nk), heads);
            check(tiles.exact, mask, "of several heads not exact");
            for (int64_t h : {int64_t(0), heads}) {
              BruteForce all = inspectPairs(parsed, 1, h, n);
              inspectTiles(all, Q, K, n);
              for (int64_t other = h + 1; other < h + heads; ++other) {
                BruteForce one = inspectPairs(parsed, 1, other, n);
                inspectTiles(one, Q, K, n);
                for (size_t i = 0; i < all.visited.size(); ++i) {
                  all.visited[i] |= one.visited[i];
                  all.notFull[i] |= one.notFull[i];
                }
              }
              numTiles += compare(mask, tiles, all, 1, h, Q, K, n);
            }
          }
  }
  return numTiles;
}

/// All visited tiles are as far apart as is said, and not less where `isTight`.
static void checkDistances(const Mask &mask, const MaskTiles &tiles,
                           const BruteForce &expected, int64_t tile, Lengths n,
                           bool isTight) {
  auto [lo, hi] = tiles.getDistances(n.nq, n.nk);
  int64_t least = n.nq, most = -n.nk;
  auto visit = [&](int64_t index, int64_t distance, int64_t) {
    if (!expected.visited[index])
      return;
    least = std::min(least, distance / tile);
    most = std::max(most, distance / tile);
  };
  forEachTile(Path::Diagonal, tile, tile, n, visit);
  if (most < least)
    return;
  check(least >= lo && most < hi, mask, "distances");
  // The last tiles may be too short to have what longer ones would.
  check(!isTight || (least <= lo + 1 && most >= hi - 2), mask,
        "distances of tiles that are not visited");
}

/// Square tiles along a diagonal, of each batch and head that the mask asks
/// for.
static int64_t testDiagonals(MLIRContext *context) {
  int64_t numTiles = 0;
  for (const Mask &mask : masks) {
    MaskAttrInterface parsed = parse(context, mask.sets);
    bool usesHeads = StringRef(mask.name).starts_with("by ");
    bool mustBeRange = llvm::is_contained(
        {"full", "nothing", "causal", "causal top-left", "anti-causal",
         "window", "causal window", "bottom-right window", "prefix",
         "causal prefix", "two bands", "by head"},
        StringRef(mask.name));
    double worst = 0;
    auto analyse = [&](int64_t tile, std::optional<int64_t> nq,
                       std::optional<int64_t> nk) {
      auto start = std::chrono::steady_clock::now();
      MaskTiles tiles = computeDiagonalTiles(parsed, tile, nq, nk);
      worst = std::max(worst, std::chrono::duration<double, std::milli>(
                                  std::chrono::steady_clock::now() - start)
                                  .count());
      check(tiles.exact, mask, "of a diagonal not exact");
      check(tiles.fullIsRange || !mustBeRange, mask,
            "full tiles of a diagonal are no range");
      return tiles;
    };
    bool isRange = true;
    for (int64_t tile : {16, 32, 64}) {
      MaskTiles open = analyse(tile, std::nullopt, std::nullopt);
      isRange &= open.fullIsRange;
      for (Lengths n : lengths) {
        MaskTiles known = analyse(tile, n.nq, n.nk);
        for (int64_t b = 0; b < (usesHeads ? B : 1); ++b)
          for (int64_t h = 0; h < (usesHeads ? H : 1); ++h) {
            BruteForce expected = inspectPairs(parsed, b, h, n);
            inspectTiles(expected, tile, tile, n);
            for (const MaskTiles *tiles : {&open, &known}) {
              numTiles += compare(mask, *tiles, expected, b, h, tile, tile, n,
                                  Path::Diagonal);
              checkDistances(mask, *tiles, expected, tile, n,
                             mustBeRange && !usesHeads);
            }
          }
      }
    }
    llvm::outs() << llvm::formatv(
        "diagonals of {0,-24} {1}, worst {2,6:F2} ms\n", mask.name,
        isRange ? "ranges" : "tests", worst);
  }
  return numTiles;
}

int main(int argc, char **argv) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<FlashDialect>();
  if (argc > 1 && StringRef(argv[1]) == "print") {
    printOne(&context, ArrayRef<const char *>(argv + 2, argc - 2));
    return 0;
  }
  int64_t numTiles = 0, numAnalyses = 0;
  for (const Mask &mask : masks) {
    MaskAttrInterface parsed = parse(&context, mask.sets);
    double worst = 0, total = 0;
    int64_t runs = 0;
    auto analyse = [&](int64_t Q, int64_t K, std::optional<int64_t> nq,
                       std::optional<int64_t> nk) {
      auto start = std::chrono::steady_clock::now();
      MaskTiles tiles = computeMaskTiles(parsed, Q, K, nq, nk);
      double ms = std::chrono::duration<double, std::milli>(
                      std::chrono::steady_clock::now() - start)
                      .count();
      worst = std::max(worst, ms);
      total += ms;
      ++runs;
      check(tiles.exact, mask, "not exact");
      check(mask.shape == Shape::Any || tiles.visitedIsRange, mask,
            "visited tiles are no range");
      check(mask.shape != Shape::Ranges || tiles.fullIsRange, mask,
            "full tiles are no range");
      return tiles;
    };
    std::vector<MaskTiles> dynamic;
    for (auto [Q, K] : tileSizes)
      dynamic.push_back(analyse(Q, K, std::nullopt, std::nullopt));
    bool usesHeads = StringRef(mask.name).starts_with("by ");
    for (Lengths n : lengths) {
      std::vector<MaskTiles> known;
      for (auto [Q, K] : tileSizes)
        known.push_back(analyse(Q, K, n.nq, n.nk));
      int64_t count = 0;
      BruteForce expected;
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t h = 0; h < H; ++h) {
          if (usesHeads || b + h == 0) {
            expected = inspectPairs(parsed, b, h, n);
            // Of so few queries, all are looked at.
            if (b + h == 0 && n.nq <= 64) {
              KeysOfQuery found = estimateKeysOfQuery(parsed, n.nq, n.nk);
              check(found.mean ==
                        expected.count /
                            std::max<int64_t>(expected.queriesWithKeys, 1),
                    mask, "mean keys of a query");
              check(found.most == expected.mostOfQuery, mask,
                    "most keys of a query");
              constexpr int64_t tile = 8;
              KeysOfQuery inTiles =
                  estimateKeysOfQuery(parsed, n.nq, n.nk, tile);
              inspectTiles(expected, /*Q=*/1, tile, n);
              int64_t keys = 0, tiles = (n.nk + tile - 1) / tile;
              for (size_t at = 0; at < expected.visited.size(); ++at)
                if (expected.visited[at])
                  keys += std::min(tile, n.nk - int64_t(at) % tiles * tile);
              check(inTiles.mean ==
                        keys / std::max<int64_t>(expected.queriesWithKeys, 1),
                    mask, "mean keys of a query, in whole tiles");
            }
            for (auto [index, size] : llvm::enumerate(tileSizes)) {
              auto [Q, K] = size;
              inspectTiles(expected, Q, K, n);
              numTiles +=
                  compare(mask, dynamic[index], expected, b, h, Q, K, n);
              numTiles += compare(mask, known[index], expected, b, h, Q, K, n);
            }
          }
          count += expected.count;
        }
      }
      check(count == countUnmasked(parsed, {B, H, n.nq, n.nk}), mask, "count");
    }
    numAnalyses += runs;
    llvm::outs() << llvm::formatv(
        "{0,-24} mean {1,6:F2} ms, worst {2,6:F2} ms\n", mask.name,
        total / runs, worst);
  }
  testLimits(&context);
  testKeysOfQuery(&context);
  testEvenPairs(&context);
  testNodes(&context);
  testExistingKeys(&context);
  numTiles += testHeads(&context);
  numTiles += testDiagonals(&context);
  numTiles += testRandom(&context, 400);
  llvm::outs() << numAnalyses << " analyses, " << numTiles
               << " tiles compared, " << numFailures << " failures\n";
  return numFailures != 0;
}
