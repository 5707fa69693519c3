//===- Dequantize.cpp - Tiles of 8 bits as tiles that are multiplied ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Dequantize.h"

#include "Products.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

// A thread converts chunks of 16 bytes. It reads some before it writes the
// first one, since the writes may be, for all that a compiler knows, to what is
// read behind them.
static constexpr int64_t columnsOfChunk = 16, chunksAtATime = 4;

/// Two neighbours of f8E4M3FN, in a word of 16 bits, as f16 in a register, over
/// what `getUnit` says.
static Value widenE4M3(ThreadBuilder &t, Value pair) {
  OpBuilder &b = t.b;
  Type i32 = b.getI32Type();
  // LLVM has an intrinsic, of PTX 8.1 and later.
  if (t.machine().convertsE4M3)
    return LLVM::InlineAsmOp::create(
               b, t.loc, TypeRange{i32}, ValueRange{pair},
               "cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h",
               /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
        .getResult(0);
  auto keep = [&](Value x, int64_t mask) -> Value {
    return arith::AndIOp::create(b, t.loc, x, t.i32(mask));
  };
  auto shift = [&](Value x, int64_t digits) -> Value {
    return arith::ShLIOp::create(b, t.loc, x, t.i32(digits));
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, t.loc, x, y);
  };
  // Each byte in a half of a register, with its digits where f16 has them, also
  // below the least normal number.
  Value word = arith::ExtUIOp::create(b, t.loc, i32, pair);
  word = both(word, shift(word, 8));
  Value magnitude = keep(word, 0x007f007f);
  Value halves = both(shift(magnitude, 7), shift(keep(word, 0x00800080), 8));
  // A magnitude of seven ones is NaN: adding one sets the eighth digit, from
  // which ones are made for the exponent of f16 and the digits behind it.
  Value isNaN =
      keep(arith::AddIOp::create(b, t.loc, magnitude, t.i32(0x00010001)),
           0x00800080);
  return both(halves, arith::SubIOp::create(b, t.loc, shift(isNaN, 8), isNaN));
}

/// What the elements that `widenPair` gives are multiplied by. The exponents of
/// f8E4M3FN and f16 have biases of 7 and 15. They are not multiplied as f16,
/// since kernels take f16 below the least normal number for 0 where they
/// multiply.
static double getUnit(ThreadBuilder &t, Type element) {
  return isa<IntegerType>(element) || t.machine().convertsE4M3 ? 1 : 0x1p8;
}

/// Four neighbours of i8, in a word, as f32. A number whose sign bit is flipped
/// is larger by 128, and f32 from 2^23 on have the digits of an integer: two
/// instructions for each, where a conversion takes as long as several.
static std::array<Value, 4> widenIntegers(ThreadBuilder &t, Value word) {
  constexpr int64_t signs = 0x80808080, twoTo23 = 0x4b000000;
  // The byte i of the word, two zeros, and the highest byte of 2^23.
  constexpr int64_t lowestByte = 0x7440;
  OpBuilder &b = t.b;
  Value larger = t.f32(0x1p23 + 128);
  word = arith::XOrIOp::create(b, t.loc, word, t.i32(signs));
  std::array<Value, 4> result;
  for (auto [i, value] : llvm::enumerate(result)) {
    Value bits = NVVM::PermuteOp::create(b, t.loc, b.getI32Type(), word,
                                         t.i32(twoTo23), t.i32(lowestByte + i),
                                         NVVM::PermuteMode::DEFAULT);
    value = arith::SubFOp::create(
        b, t.loc, LLVM::BitcastOp::create(b, t.loc, b.getF32Type(), bits),
        larger);
  }
  return result;
}

/// Four neighbours of f8E4M3FN, in a word, as f16 in two registers, over
/// `getUnit`.
static std::array<Value, 2> widenPairs(ThreadBuilder &t, Value word) {
  OpBuilder &b = t.b;
  Value pairs = LLVM::BitcastOp::create(
      b, t.loc, VectorType::get({2}, b.getI16Type()), word);
  auto widen = [&](int64_t i) {
    return widenE4M3(t,
                     LLVM::ExtractElementOp::create(b, t.loc, pairs, t.i32(i)));
  };
  return {widen(0), widen(1)};
}

/// Four neighbours of 8 bits, in a word, as f32, divided by `getUnit`.
static std::array<Value, 4> widenWord(ThreadBuilder &t, Value word,
                                      Type element) {
  if (isa<IntegerType>(element))
    return widenIntegers(t, word);
  auto [first, second] = widenPairs(t, word);
  auto [w, x] = t.extendPair(first, t.b.getF16Type());
  auto [y, z] = t.extendPair(second, t.b.getF16Type());
  return {w, x, y, z};
}

namespace {
/// The chunks of a tile that a thread converts.
class Chunks {
public:
  Chunks(tile::SmemType tile, int64_t threads)
      : inRow(tile.getColumns() / columnsOfChunk),
        count(tile.getRows() * inRow), threads(threads) {}

  int64_t getNumSteps() const { return llvm::divideCeil(count, threads); }
  /// Whether all threads have a chunk in the step.
  bool isWhole(int64_t step) const { return (step + 1) * threads <= count; }
  /// The number of the thread's chunk, and its row and its first column.
  Value getNumber(ThreadBuilder &t, int64_t step) const {
    return t.add(t.thread(), t.constant(step * threads));
  }
  std::pair<Value, Value> getPosition(ThreadBuilder &t, int64_t step) const;

private:
  int64_t inRow, count, threads;
};
} // namespace

std::pair<Value, Value> Chunks::getPosition(ThreadBuilder &t,
                                            int64_t step) const {
  constexpr int64_t chunks = 4, rowsOfGroup = 8;
  if (inRow % chunks != 0) {
    Value number = getNumber(t, step);
    return {t.div(number, inRow), t.mul(t.rem(number, inRow), columnsOfChunk)};
  }
  // Eight lanes read or write 128 bytes at a time, which are to be in all
  // banks. They have four chunks of two rows: with rows that differ in their
  // lowest digit the swizzle puts even chunks of one and odd ones of the other
  // there, where they write every other chunk; and with rows that differ in the
  // third digit different halves of 128 bytes, where they read neighbours.
  constexpr int64_t otherRow = 5;
  Value lane = t.lane(), isOther = t.rem(t.div(lane, chunks), 2);
  Value row = t.xorWith(t.div(lane, 2 * chunks), t.mul(isOther, otherRow));
  // With a single warp all but the lane's part is a constant.
  int64_t warps = threads / threadsOfWarp;
  Value group = t.constant(step * warps);
  if (warps > 1)
    group = t.add(group, t.warp());
  Value chunk =
      t.add(t.mul(t.rem(group, inRow / chunks), chunks), t.rem(lane, chunks));
  row = t.add(t.mul(t.div(group, inRow / chunks), rowsOfGroup), row);
  return {row, t.mul(chunk, columnsOfChunk)};
}

/// The scale of a row, which the region computes, times `getUnit`.
static Value emitScale(ThreadBuilder &t, Region &scaleOfRow, Type element,
                       Value row) {
  Block &body = scaleOfRow.front();
  IRMapping mapping;
  mapping.map(body.getArgument(0), row);
  for (Operation &inner : body.without_terminator())
    t.b.clone(inner, mapping);
  Value scale = mapping.lookupOrDefault(
      cast<tile::YieldOp>(body.getTerminator()).getResult());
  double unit = getUnit(t, element);
  return unit == 1 ? scale
                   : arith::MulFOp::create(t.b, t.loc, scale, t.f32(unit))
                         .getResult();
}

/// The 16 elements of a chunk, in two chunks of 16 bits.
static std::array<Value, 2> convertChunk(ThreadBuilder &t, Value chunk,
                                         Value scale, Type from, Type to) {
  OpBuilder &b = t.b;
  SmallVector<Value> words;
  for (Value word : t.unpack(chunk)) {
    std::array<Value, 4> elements = widenWord(t, word, from);
    for (Value &element : elements)
      element = arith::MulFOp::create(b, t.loc, element, scale);
    for (int64_t i : {0, 2})
      words.push_back(t.truncatePair(elements[i], elements[i + 1], to));
  }
  ArrayRef<Value> all(words);
  return {t.pack(all.take_front(4)), t.pack(all.drop_front(4))};
}

static FailureOr<Value>
convertPutDequantized(tile::PutDequantizedOp op,
                      tile::PutDequantizedOp::Adaptor adaptor,
                      ThreadBuilder &t) {
  OpBuilder &b = t.b;
  FailureOr<int64_t> threads = getNumThreads(op);
  if (failed(threads))
    return failure();
  tile::SmemType from = op.getTile().getType(),
                 to = op.getDestination().getType();
  Chunks chunks(from, *threads);
  auto vector = VectorType::get({4}, b.getI32Type());
  auto getScale = [&](Value row) {
    return emitScale(t, op.getScale(), from.getElementType(), row);
  };
  auto load = [&](Value row, Value column) -> Value {
    return LLVM::LoadOp::create(
        b, t.loc, vector,
        t.advance(adaptor.getTile(), getElementOffset(t, from, row, column)),
        /*alignment=*/16);
  };
  auto store = [&](Value row, Value column, Value chunk, Value scale) {
    auto converted = convertChunk(t, chunk, scale, from.getElementType(),
                                  to.getElementType());
    Value offset = getElementOffset(t, to, row, column);
    for (Value half : converted) {
      LLVM::StoreOp::create(b, t.loc, half,
                            t.advance(adaptor.getDestination(), offset),
                            /*alignment=*/16);
      // The chunk behind one of an even number.
      offset = t.xorWith(offset, t.constant(16));
    }
  };
  int64_t steps = chunks.getNumSteps();
  SmallVector<std::pair<Value, Value>> positions;
  SmallVector<Value> scales;
  for (int64_t step = 0; step < steps; ++step) {
    positions.push_back(chunks.getPosition(t, step));
    // All of them are on their way at the same time.
    if (chunks.isWhole(step))
      scales.push_back(getScale(positions.back().first));
  }
  int64_t whole = scales.size();
  for (int64_t first = 0; first < whole; first += chunksAtATime) {
    int64_t end = std::min(first + chunksAtATime, whole);
    SmallVector<Value> loaded;
    for (int64_t step = first; step < end; ++step)
      loaded.push_back(load(positions[step].first, positions[step].second));
    for (int64_t step = first; step < end; ++step)
      store(positions[step].first, positions[step].second, loaded[step - first],
            scales[step]);
  }
  if (whole == steps)
    return Value();
  Value exists = arith::CmpIOp::create(
      b, t.loc, arith::CmpIPredicate::ult, chunks.getNumber(t, steps - 1),
      t.constant(from.getRows() * from.getColumns() / columnsOfChunk));
  OpBuilder::InsertionGuard guard(b);
  auto choice = scf::IfOp::create(b, t.loc, exists);
  b.setInsertionPointToStart(choice.thenBlock());
  auto [row, column] = positions.back();
  store(row, column, load(row, column), getScale(row));
  return Value();
}

//===----------------------------------------------------------------------===//
// In the registers of products
//===----------------------------------------------------------------------===//

// What a step contracts, and the columns of a block.
static constexpr int64_t rowsOfStep = 16, columnsOfBlock = 8;

/// A register of a matrix whose column has a 1 in a single row, which is
/// `distance` behind the first one of the register.
static Value emitOne(ThreadBuilder &t, Value distance, Type element) {
  int64_t bits = element.getIntOrFloatBitWidth();
  int64_t one = isa<IntegerType>(element) ? 1 : 0x3c00;
  Value result = t.i32(0);
  for (int64_t row = 0; row < 32 / bits; ++row) {
    Value isThere = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                                          distance, t.constant(row));
    result = arith::SelectOp::create(t.b, t.loc, isThere,
                                     t.i32(one << (row * bits)), result);
  }
  return result;
}

QuantizedFactor::QuantizedFactor(ThreadBuilder t, tile::SmemType tile,
                                 Value address, Region &scaleOfRow, Type type,
                                 bool transposed)
    : t(t), element(tile.getElementType()), type(type), transposed(transposed),
      chunks(tile.getColumns() / columnsOfChunk), rows(tile.getRows()),
      loader(t, tile, address, t.rem(t.lane(), 16), t.div(t.lane(), 16)) {
  Value group = t.div(t.lane(), 4);
  auto addScale = [&](Value first, int64_t behind) {
    scales.push_back(emitScale(this->t, scaleOfRow, element,
                               this->t.add(first, this->t.constant(behind))));
  };
  if (transposed)
    for (int64_t row = 0; row < rows; row += columnsOfBlock)
      addScale(group, row);
  else
    for (int64_t first = 0; first < rows; first += rowsOfStep)
      for (int64_t row : {0, 1, 8, 9})
        addScale(t.fragmentColumn(), first + row);
  // A word has four neighbours of a row, or two of each of two rows, in the
  // order in which they lie. Of those each of two products takes a half.
  Value first = t.mul(t.rem(t.lane(), 4), 4);
  for (int64_t half : {0, 1}) {
    Value inWords = transposed ? t.add(group, t.constant(8 * half))
                               : t.add(t.mul(group, 2), t.constant(half));
    Value distance = arith::SubIOp::create(t.b, t.loc, inWords, first);
    if (isa<IntegerType>(element))
      orders.push_back({emitOne(t, distance, element)});
    else if (transposed)
      orders.push_back(
          {emitOne(t, distance, t.b.getF16Type()),
           emitOne(t,
                   arith::SubIOp::create(t.b, t.loc, distance, t.constant(2)),
                   t.b.getF16Type())});
  }
}

void QuantizedFactor::load(int64_t step) {
  this->step = step;
  // What two steps read is loaded together.
  if (transposed && step % 2 != 0)
    return;
  words = {};
  // Two times eight rows of 16 bytes, and of the next 16 columns.
  auto loadWords = [&](int64_t row, int64_t chunk) {
    return loader.load(row, chunk, std::min<int64_t>(4, 2 * (chunks - chunk)),
                       !transposed);
  };
  if (!transposed) {
    for (int64_t chunk = 0; chunk < chunks; chunk += 2)
      llvm::append_range(words[0], loadWords(rowsOfStep * step, chunk));
    return;
  }
  for (int64_t row = 0; row < rows; row += 2 * columnsOfBlock)
    for (auto [i, word] : llvm::enumerate(loadWords(row, step)))
      words[i / 2].push_back(word);
}

SmallVector<Value> QuantizedFactor::extend(ArrayRef<Value> operand,
                                           ArrayRef<Value> order) {
  bool areIntegers = isa<IntegerType>(element);
  SmallVector<Value> result(4, areIntegers ? t.i32(0) : t.f32(0));
  multiplyFragments(t, areIntegers ? element : t.b.getF16Type(), operand, order,
                    result);
  if (areIntegers)
    for (Value &x : result)
      x = arith::SIToFPOp::create(t.b, t.loc, t.b.getF32Type(), x);
  return result;
}

Value QuantizedFactor::round(Value low, int64_t scaleOfLow, Value high,
                             int64_t scaleOfHigh) {
  low = arith::MulFOp::create(t.b, t.loc, low, scales[scaleOfLow]);
  high = arith::MulFOp::create(t.b, t.loc, high, scales[scaleOfHigh]);
  return t.truncatePair(low, high, type);
}

std::array<SmallVector<Value>, 2> QuantizedFactor::convert(int64_t block) {
  ArrayRef<Value> pair =
      ArrayRef(words[transposed ? step % 2 : 0]).slice(block, 2);
  std::array<SmallVector<Value>, 2> result;
  int64_t scale = transposed ? block : 4 * step;
  // A product would make an element NaN of each number that it multiplies NaN
  // by. In a row of keys that is the score anyway.
  if (!transposed && !isa<IntegerType>(element)) {
    for (Value word : pair) {
      std::array<Value, 4> x = widenWord(t, word, element);
      for (int64_t i : {0, 1})
        result[i].push_back(round(x[i], scale, x[i + 2], scale + 1));
      scale += 2;
    }
    return result;
  }
  SmallVector<Value> operand(pair);
  if (!isa<IntegerType>(element)) {
    auto [first, third] = widenPairs(t, pair[0]);
    auto [other, behind] = widenPairs(t, pair[1]);
    operand = {first, other, third, behind};
  }
  for (int64_t half : {0, 1}) {
    SmallVector<Value> x = extend(operand, orders[half]);
    for (int64_t i : {0, 1})
      if (transposed)
        result[i].push_back(
            round(x[2 * i], scale + i, x[2 * i + 1], scale + i));
      else
        result[half].push_back(
            round(x[2 * i], scale + 2 * i, x[2 * i + 1], scale + 2 * i + 1));
  }
  return result;
}

void flash::populateDequantizePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/1, convertPutDequantized);
}
