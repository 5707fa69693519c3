//===- TileOrder.cpp - Which tile of queries a block works on -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/Utils/TileOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

namespace {
/// Unsigned arithmetic on indices. What is known becomes a constant.
struct IndexBuilder {
  OpBuilder &b;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  template <typename Op, typename... Operands>
  Value fold(Operands... operands) {
    return b.createOrFold<Op>(loc, operands...);
  }
  Value add(Value x, Value y) { return fold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return fold<arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return fold<arith::MulIOp>(x, y); }
  Value div(Value x, Value y) { return fold<arith::DivUIOp>(x, y); }
  Value rem(Value x, Value y) { return fold<arith::RemUIOp>(x, y); }
  Value min(Value x, Value y) { return fold<arith::MinUIOp>(x, y); }
  Value max(Value x, Value y) { return fold<arith::MaxUIOp>(x, y); }
  Value both(Value x, Value y) { return fold<arith::AndIOp>(x, y); }
  Value product(ValueRange factors) {
    if (factors.empty())
      return constant(1);
    Value result = factors.front();
    for (Value factor : factors.drop_front())
      result = mul(result, factor);
    return result;
  }
  Value isEqual(Value x, Value y) {
    return fold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
  }
  Value isLess(Value x, Value y) {
    // Folding knows no unsigned comparison with zero.
    if (isZeroInteger(y))
      return arith::ConstantIntOp::create(b, loc, 0, 1);
    return fold<arith::CmpIOp>(arith::CmpIPredicate::ult, x, y);
  }
  Value isAtMost(Value x, Value y) {
    return fold<arith::CmpIOp>(arith::CmpIPredicate::ule, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return fold<arith::SelectOp>(condition, x, y);
  }
};
} // namespace

/// An order that takes the first tiles of `group` heads, or of those that are
/// left, then their second tiles, and so on.
static TileOfHead emitGroups(IndexBuilder &b, Value heads, Value perHead,
                             Value group, Value number) {
  Value inGroup = b.mul(group, perHead);
  Value groupNumber = b.div(number, inGroup), inside = b.rem(number, inGroup);
  Value first = b.mul(groupNumber, group);
  Value together = b.min(group, b.sub(heads, first));
  Value tile = b.div(inside, together), head = b.rem(inside, together);
  return {b.add(first, head), tile};
}

/// How many heads have so many waves of tiles, at least one. While a tile makes
/// its additions, as many others of its head are begun as half of them.
static Value emitHeadsOfWaves(IndexBuilder &b, const MaskedTiles &tiles,
                              Value perHead, int64_t waves) {
  Value together = perHead;
  if (tiles.additions)
    together = b.max(b.div(tiles.additions, b.constant(additionsBetweenTiles)),
                     b.constant(1));
  return b.max(b.div(b.constant(waves * tiles.blocksOfWave), together),
               b.constant(1));
}

TileOfHead flash::tile::emitInterleaved(OpBuilder &builder, Location loc,
                                        const MaskedTiles &tiles, int64_t waves,
                                        Value number) {
  IndexBuilder b{builder, loc};
  Value one = b.constant(1);
  Value perHead = b.max(tiles.tilesOfHead, one);
  Value heads = b.max(tiles.heads, one);
  Value group = b.min(emitHeadsOfWaves(b, tiles, perHead, waves), heads);
  return emitGroups(b, heads, perHead, group, number);
}

TileOfHead flash::tile::emitReverse(OpBuilder &builder, Location loc,
                                    const MaskedTiles &tiles, int64_t waves,
                                    Value number) {
  IndexBuilder b{builder, loc};
  TileOfHead at = emitInterleaved(builder, loc, tiles, waves, number);
  Value last = b.sub(b.max(tiles.tilesOfHead, b.constant(1)), b.constant(1));
  return {at.head, b.sub(last, at.tile)};
}

TileOfHead flash::tile::emitBothWays(OpBuilder &builder, Location loc,
                                     const MaskedTiles &tiles, int64_t waves,
                                     Value number) {
  // Forwards, the less queries a tile has the later it has to begin. With two
  // interleaved waves of tiles it does; with four, which measured best, no wait
  // is passed on. With fewer tiles than a wave all begin at the same time.
  constexpr int64_t wavesForwards = 4, wavesBackwards = 1;
  IndexBuilder b{builder, loc};
  Value zero = b.constant(0), one = b.constant(1);
  Value perHead = b.max(tiles.tilesOfHead, one);
  Value heads = b.max(tiles.heads, one);
  Value least = emitHeadsOfWaves(b, tiles, perHead, wavesBackwards);
  Value most = emitHeadsOfWaves(b, tiles, perHead, wavesForwards);
  Value forwards = b.min(most, b.sub(heads, b.min(least, heads)));
  Value backwards = b.sub(heads, forwards);
  Value isBackwards = b.isLess(number, b.mul(backwards, perHead));
  auto choose = [&](Value ofBackwards, Value ofForwards) {
    return b.select(isBackwards, ofBackwards, ofForwards);
  };
  Value first = choose(zero, backwards);
  Value some = b.max(forwards, one);
  Value group = b.min(emitHeadsOfWaves(b, tiles, perHead, waves), backwards);
  TileOfHead at =
      emitGroups(b, choose(backwards, some), perHead, choose(group, some),
                 b.sub(number, b.mul(first, perHead)));
  Value mirrored = b.sub(b.sub(perHead, one), at.tile);
  return {b.add(first, at.head), choose(mirrored, at.tile), isBackwards};
}

TileOfHead flash::tile::emitLongestFirst(OpBuilder &builder, Location loc,
                                         const MaskedTiles &tiles,
                                         Value number) {
  // Two waves of very few blocks are less than eight tiles.
  uint64_t largestPower =
      std::min<uint64_t>(8, llvm::bit_floor<uint64_t>(2 * tiles.blocksOfWave));
  IndexBuilder b{builder, loc};
  Value one = b.constant(1);
  Value twoWaves = b.constant(2 * tiles.blocksOfWave);
  Value perHead = b.max(tiles.tilesOfHead, one);
  Value heads = b.max(tiles.heads, one);

  // Where two waves are whole heads, one head follows the other, and all
  // blocks read the same keys at the same time.
  Value powerOfTwo = b.both(perHead, b.sub(b.constant(0), perHead));
  powerOfTwo = b.min(powerOfTwo, b.constant(largestPower));
  Value together = b.min(b.div(twoWaves, powerOfTwo), heads);
  Value areWhole = b.isEqual(b.rem(twoWaves, perHead), b.constant(0));
  Value group = b.select(areWhole, one, together);

  TileOfHead at = emitGroups(b, heads, perHead, group, number);
  return {at.head, b.sub(b.sub(perHead, one), at.tile)};
}

TileOfHead flash::tile::emitHalves(OpBuilder &builder, Location loc,
                                   const MaskedTiles &tiles, Value number) {
  IndexBuilder b{builder, loc};
  Value zero = b.constant(0), one = b.constant(1), two = b.constant(2);
  Value perHead = b.max(tiles.tilesOfHead, one);
  Value heads = b.max(tiles.heads, one);

  // Tiles of heads that are whole in a wave run at the same time anyway.
  Value inWave = b.div(b.constant(tiles.blocksOfWave), perHead);
  Value areWhole = b.isLess(one, inWave);
  Value group = b.select(areWhole, b.min(inWave, heads), one);
  TileOfHead at = emitGroups(b, heads, perHead, group, number);

  Value last = b.sub(perHead, one), half = b.div(perHead, two);
  Value isOfSecond = b.isEqual(b.rem(at.tile, two), zero);
  Value end = b.select(isOfSecond, last, b.sub(half, one));
  Value distance = b.select(areWhole, at.tile, b.div(at.tile, two));
  return {at.head, b.sub(b.select(areWhole, last, end), distance)};
}

/// How many times two waves are in pairs. The rest goes by length: m waves,
/// where p (less than two) do not fill the last two. Tiles of length p / m to 0
/// are in these p, so the block that gets the longest of them has more than all
/// have on average by p (2 - p) / 2m. Of w waves, whose tiles have a length of
/// 1/2 on average, that is a part of p (2 - p) / mw. If it is too large for m =
/// 2 + p, two waves more go by length.
static Value emitPairsOfWaves(IndexBuilder &b, const MaskedTiles &tiles,
                              Value perHead) {
  constexpr int64_t partsOfWork = 50;
  Value one = b.constant(1), two = b.constant(2);
  Value twoWaves = b.constant(2 * tiles.blocksOfWave);
  Value all = b.mul(tiles.heads, perHead);
  Value over = b.rem(all, twoWaves);
  Value ahead = b.mul(over, b.sub(twoWaves, over));
  Value isUneven = b.isLess(b.mul(b.add(twoWaves, over), all),
                            b.mul(ahead, b.constant(partsOfWork)));
  Value byLength = b.select(isUneven, two, one);
  // A last head without a partner has no pairs.
  Value pairs = b.mul(b.div(tiles.heads, two), perHead);
  Value waves = b.div(pairs, b.constant(tiles.blocksOfWave));
  return b.sub(b.max(waves, byLength), byLength);
}

TileOfHead flash::tile::emitSnakeOrder(OpBuilder &builder, Location loc,
                                       const MaskedTiles &tiles,
                                       bool haveEvenPairs, Value number) {
  constexpr int64_t mostTilesOfShortHead = 8;
  IndexBuilder b{builder, loc};
  Value zero = b.constant(0), one = b.constant(1), two = b.constant(2);
  Value wave = b.constant(tiles.blocksOfWave);
  Value twoWaves = b.constant(2 * tiles.blocksOfWave);
  Value perHead = b.max(tiles.tilesOfHead, one);
  Value lastTile = b.sub(perHead, one);

  Value waves = haveEvenPairs ? emitPairsOfWaves(b, tiles, perHead) : zero;
  Value inPairs = b.mul(waves, twoWaves);
  Value isPaired = b.isLess(number, inPairs);

  // Pair by pair: the number of the pair is that of the block, and the block's
  // second wave goes backwards.
  Value inWave = b.rem(number, wave), waveNumber = b.div(number, wave);
  Value isSecond = b.isEqual(b.rem(waveNumber, two), one);
  Value mirrored = b.sub(b.constant(tiles.blocksOfWave - 1), inWave);
  Value block = b.select(isSecond, mirrored, inWave);
  Value pair = b.add(b.mul(b.div(waveNumber, two), wave), block);

  // By length: a level has the tiles of as many heads as are left. Of the first
  // two, `done` pairs may be: their first and their last levels, respectively.
  Value pairs = b.mul(waves, wave);
  Value firstHead = b.mul(b.div(pairs, perHead), two);
  Value heads = b.sub(tiles.heads, firstHead);
  Value done = b.rem(pairs, perHead), left = b.sub(perHead, done);
  Value lower = b.min(done, left), upper = b.max(done, left);
  Value outerWidth = b.max(b.sub(heads, one), one);
  Value innerWidth = b.select(b.isAtMost(done, left), heads, b.sub(heads, two));
  Value position = b.sub(number, inPairs);
  Value inLower = b.mul(lower, outerWidth);
  Value inInner = b.mul(b.sub(upper, lower), innerWidth);
  Value behindLower = b.sub(position, inLower);
  Value isLower = b.isLess(position, inLower);
  Value isInner = b.isLess(behindLower, inInner);
  auto choose = [&](Value ofLower, Value ofInner, Value ofUpper) {
    return b.select(isLower, ofLower, b.select(isInner, ofInner, ofUpper));
  };
  Value behind = choose(position, behindLower, b.sub(behindLower, inInner));
  Value width = choose(outerWidth, b.max(innerWidth, one), outerWidth);

  // Short heads, if two waves hold a whole number of them, go one after the
  // other to the end. To go through more of them together costs more than it
  // balances.
  Value areWhole = b.isEqual(b.rem(twoWaves, perHead), zero);
  Value isShort =
      b.both(areWhole, b.isAtMost(perHead, b.constant(mostTilesOfShortHead)));
  // A launch can pass on a bound, but no condition.
  Value isByHead = isShort;
  if (!getConstantIntValue(isShort))
    isByHead =
        b.isLess(number, b.select(isShort, b.mul(tiles.heads, perHead), zero));

  // One division for all three.
  Value dividend = b.select(isByHead, number, b.select(isPaired, pair, behind));
  Value divisor =
      b.select(isByHead, perHead, b.select(isPaired, perHead, width));
  Value quotient = b.div(dividend, divisor);
  Value remainder = b.rem(dividend, divisor);

  // Level 0 is that of the last tiles.
  auto tileOf = [&](Value level) { return b.sub(lastTile, level); };
  Value pairHead = b.add(b.mul(quotient, two), b.select(isSecond, one, zero));
  Value pairTile = b.select(isSecond, remainder, tileOf(remainder));

  Value level = b.add(choose(zero, lower, upper), quotient);
  // The first levels lack the first head, the last ones the second.
  Value lacksFirst = b.isLess(level, done);
  Value index = b.add(remainder, b.select(lacksFirst, one, zero));
  Value lacksSecond = b.both(b.isAtMost(left, level), b.isLess(zero, index));
  index = b.add(index, b.select(lacksSecond, one, zero));

  Value head = b.select(isPaired, pairHead, b.add(firstHead, index));
  Value tile = b.select(isPaired, pairTile, tileOf(level));
  return {b.select(isByHead, quotient, head),
          b.select(isByHead, tileOf(remainder), tile)};
}

Direction flash::tile::getDirection(TileOrder order) {
  switch (order) {
  case TileOrder::Linear:
  case TileOrder::HeadsFastest:
  case TileOrder::Interleaved:
    return Direction::Forwards;
  case TileOrder::LongestFirst:
  case TileOrder::Reverse:
  case TileOrder::Backwards:
    return Direction::Backwards;
  case TileOrder::BothWays:
    return Direction::OfHead;
  case TileOrder::Snake:
  case TileOrder::Pairs:
  case TileOrder::Halves:
    return Direction::None;
  }
  llvm_unreachable("unknown order");
}

Value flash::tile::emitRank(OpBuilder &builder, Location loc,
                            PositionOp position, function_ref<Value()> first,
                            function_ref<Value()> end) {
  IndexBuilder b{builder, loc};
  Value tile = position.getResult(position.getSizes().size() - 1);
  auto forwards = [&] { return b.sub(tile, first()); };
  auto backwards = [&] { return b.sub(b.sub(end(), tile), b.constant(1)); };
  switch (getDirection(position.getOrder().getKind())) {
  case Direction::Forwards:
    return forwards();
  case Direction::Backwards:
    return backwards();
  case Direction::OfHead: {
    Value ofForwards = forwards(), ofBackwards = backwards();
    return b.select(position.getResults().back(), ofBackwards, ofForwards);
  }
  case Direction::None:
    break;
  }
  llvm_unreachable("the order has no direction");
}

SmallVector<Value> flash::tile::emitPosition(OpBuilder &builder, PositionOp op,
                                             int64_t blocksOfWave,
                                             int64_t interleavedWaves) {
  Location loc = op.getLoc();
  IndexBuilder b{builder, loc};
  ValueRange sizes = op.getSizes();
  size_t outer = sizes.size();
  SmallVector<Value> position(outer);
  Value rest = op.getNumber(), isBackwards;
  TileOrder kind = op.getOrder().getKind();
  if (kind == TileOrder::HeadsFastest && outer > 1) {
    Value numHeads = sizes[outer - 2], numTiles = sizes[outer - 1];
    position[outer - 2] = b.rem(rest, numHeads);
    rest = b.div(rest, numHeads);
    position[outer - 1] = outer > 2 ? b.rem(rest, numTiles) : rest;
    rest = outer > 2 ? b.div(rest, numTiles) : rest;
    outer -= 2;
  } else if (kind == TileOrder::Backwards) {
    rest = b.sub(b.sub(b.product(sizes), b.constant(1)), rest);
  } else if (kind != TileOrder::Linear && kind != TileOrder::HeadsFastest) {
    --outer;
    MaskedTiles tiles{b.product(sizes.take_front(outer)), sizes.back(),
                      blocksOfWave, op.getAdditions()};
    TileOfHead at =
        kind == TileOrder::LongestFirst
            ? emitLongestFirst(builder, loc, tiles, rest)
        : kind == TileOrder::Halves ? emitHalves(builder, loc, tiles, rest)
        : kind == TileOrder::Interleaved
            ? emitInterleaved(builder, loc, tiles, interleavedWaves, rest)
        : kind == TileOrder::Reverse
            ? emitReverse(builder, loc, tiles, interleavedWaves, rest)
        : kind == TileOrder::BothWays
            ? emitBothWays(builder, loc, tiles, interleavedWaves, rest)
            : emitSnakeOrder(builder, loc, tiles,
                             /*haveEvenPairs=*/kind == TileOrder::Pairs, rest);
    position.back() = at.tile;
    rest = at.head;
    isBackwards = at.isBackwards;
  }
  // What is left is the number of the outermost dimension that has several.
  size_t first = 0;
  while (first + 1 < outer && isOneInteger(sizes[first]))
    position[first++] = b.constant(0);
  for (size_t d = outer; d-- > first;) {
    Value number = rest;
    if (d > first)
      rest = b.div(number, sizes[d]);
    position[d] = d > first ? b.rem(number, sizes[d]) : number;
  }
  if (isBackwards)
    position.push_back(isBackwards);
  return position;
}
