//===- Products.cpp - Matrix products by mma.sync -------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp multiplies blocks of 16 rows by blocks of 8 columns, 32 bytes of the
// inner dimension at a time: m16n8k16 for 16-bit elements, m16n8k8 for tf32. In
// bytes the fragments of both are alike, so ldmatrix loads both.
//
// With 32-bit elements a fragment of accumulators has columns 2c and 2c + 1 in
// lane c of a quad, where the first operand wants c and c + 4. The order of the
// inner dimension is free as long as both operands agree, so such an operand
// stays as it is, and the second operand's rows are loaded in that order.
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "Dequantize.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace flash;

void flash::multiplyFragments(ThreadBuilder &t, Type element,
                              ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                              MutableArrayRef<Value> acc) {
  OpBuilder &builder = t.b;
  bool areIntegers = isa<IntegerType>(element);
  auto registers = [&](ArrayRef<Value> values) {
    SmallVector<Value> converted(values);
    if (element.isF16())
      for (Value &value : converted)
        value = LLVM::BitcastOp::create(builder, t.loc,
                                        VectorType::get({2}, element), value);
    return converted;
  };
  NVVM::MMATypes type = areIntegers        ? NVVM::MMATypes::s8
                        : element.isF16()  ? NVVM::MMATypes::f16
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::tf32;
  std::optional<NVVM::MMAIntOverflow> overflow;
  if (areIntegers)
    overflow = NVVM::MMAIntOverflow::wrapped;
  auto emit = [&](ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                  MutableArrayRef<Value> acc, ArrayRef<int64_t> shape) {
    Type resultType = LLVM::LLVMStructType::getLiteral(
        builder.getContext(),
        SmallVector<Type>(acc.size(), acc.front().getType()));
    Value result = NVVM::MmaOp::create(
        builder, t.loc, resultType, registers(lhs), registers(rhs),
        ValueRange(acc), shape, std::nullopt, overflow,
        std::array<NVVM::MMATypes, 2>{type, type},
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    for (auto [i, value] : llvm::enumerate(acc))
      value = LLVM::ExtractValueOp::create(builder, t.loc, result, i);
  };
  constexpr int64_t bitsOfRow = 128;
  int64_t inner = bitsOfRow / element.getIntOrFloatBitWidth();
  if (t.machine().products != MatrixProducts::M16N8K8)
    return emit(lhs, rhs, acc, {16, 8, int64_t(rhs.size()) * inner});
  // Two instructions of half as many rows, or of half as many elements, have
  // the first and the second half of the registers of one.
  if (areIntegers) {
    emit(lhs.take_front(), rhs, acc.take_front(2), {8, 8, inner});
    return emit(lhs.drop_front(), rhs, acc.drop_front(2), {8, 8, inner});
  }
  for (size_t part = 0; part < rhs.size(); ++part)
    emit(lhs.slice(2 * part, 2), rhs.slice(part, 1), acc, {16, 8, inner});
}

namespace {
/// A fragment of an operand for one instruction: registers of 32 bits; for f32,
/// in two parts whose sum it is.
struct Fragment {
  SmallVector<Value> high, low;
};

/// What a product is of.
struct Factors {
  Type a;
  tile::SmemType b;
  RankedTensorType result;
  bool transposeB, tf32;
  Type element;            ///< Of what is multiplied.
  Region *scale = nullptr; ///< Of rows of `b`, if that is quantized.
};

/// Emits one product.
class Product {
  /// Steps of an accurate product that the tensor core sums.
  static constexpr int64_t stepsInSum = 4;

public:
  Product(ThreadBuilder t, const Factors &factors, Value a, Value b, Value c);
  Value emit();

private:
  bool isF32() { return element.isF32(); }
  /// Whether an operand is the sum of two parts.
  bool isAccurate() { return isF32() && !factors.tf32; }
  /// Whether the two fragments of 16 columns are the even and the odd ones.
  bool isWide() { return quantized && !factors.transposeB; }
  /// Splits registers of f32 for three products, or rounds them for one. The
  /// rest is too large by `surplus` times 2^-23 of the number.
  Fragment split(SmallVector<Value> registers, int surplus);
  /// The fragment of the first operand for a block of rows and a step.
  Fragment loadA(int64_t block, int64_t step);
  /// The fragments of the second operand for two blocks of columns (or one, at
  /// the end) and a step.
  SmallVector<Fragment> loadB(int64_t block, int64_t step);
  /// The same fragments for f32, where ldmatrix does not give them.
  SmallVector<Fragment> loadBElements(int64_t block, int64_t step,
                                      int64_t count);
  /// The accumulators to which the product of a block of rows and the `i`-th of
  /// two blocks of columns is added.
  std::array<size_t, 4> getAccumulators(int64_t row, int64_t block, size_t i);
  /// Adds the products of some steps of the inner dimension to `acc`, whose
  /// values are null if nothing has been added yet and the product is accurate.
  void emitSteps(int64_t first, int64_t count, MutableArrayRef<Value> acc);
  Value loadF32(Value row, Value column);

  ThreadBuilder t;
  Factors factors;
  Value a, b, c;
  Type element;
  tile::SmemType tileA, tileB; ///< The former null if a is in registers.
  int64_t warps, rowBlocks, columnBlocks, steps;
  SmallVector<Value> registersOfA;
  std::optional<MatrixAccess> loaderA, loaderB;
  std::optional<QuantizedFactor> quantized; ///< Instead of loaderB.
};
} // namespace

Product::Product(ThreadBuilder t, const Factors &factors, Value a, Value b,
                 Value c)
    : t(t), factors(factors), a(a), b(b), c(c), element(factors.element) {
  RankedTensorType result = factors.result;
  tileA = dyn_cast<tile::SmemType>(factors.a);
  tileB = factors.b;
  warps = cast<tile::LayoutAttrInterface>(result.getEncoding()).getNumWarps();
  rowBlocks = result.getDimSize(0) / (rowsOfWarp * warps);
  columnBlocks = result.getDimSize(1) / 8;
  int64_t inner = factors.transposeB ? tileB.getColumns() : tileB.getRows();
  steps = llvm::divideCeil(inner * element.getIntOrFloatBitWidth(), 256);

  Value lane = t.lane();
  Value upper = t.div(lane, 16);
  if (tileA) {
    Value base = t.advance(a, t.mul(t.warp(), rowsOfWarp * tileA.getSwizzle()));
    loaderA.emplace(t, tileA, base, t.rem(lane, 16), upper);
  } else {
    registersOfA = t.unpack(a);
  }
  // The instruction takes the two registers of a fragment from neighbours, so
  // the matrices of the first columns are loaded first (inner bytes 0 to 15,
  // then 16 to 31), then the matrices of the next. In any other order each
  // fragment costs two moves, 7 % of the time of a kernel.
  if (factors.scale)
    quantized.emplace(t, tileB, b, *factors.scale, element, factors.transposeB);
  else if (factors.transposeB)
    loaderB.emplace(t, tileB, b, t.add(t.rem(lane, 8), t.mul(upper, 8)),
                    t.rem(t.div(lane, 8), 2));
  else if (!isF32())
    loaderB.emplace(t, tileB, b, t.rem(lane, 16), upper);
}

Fragment Product::split(SmallVector<Value> registers, int surplus) {
  OpBuilder &builder = t.b;
  Fragment fragment;
  for (Value x : registers) {
    Value bits = x, value = x;
    if (x.getType().isF32())
      bits = LLVM::BitcastOp::create(builder, t.loc, builder.getI32Type(), x);
    else
      value = LLVM::BitcastOp::create(builder, t.loc, builder.getF32Type(), x);
    // The instruction ignores the lower 13 bits of a register.
    if (factors.tf32) {
      // cvt.rna.tf32 adds half of the last bit that is left and takes a second
      // instruction to see that NaN stays NaN. A product does so by itself; its
      // factor adds half of that bit on average (E[1 / x] = 0.5 / ln 2 for the
      // mantissa x of numbers of all magnitudes), and less than all of it, so
      // that numbers of 10 bits remain what they are.
      double half = std::ldexp(0.5 / llvm::numbers::ln2, -11);
      Value larger =
          arith::MulFOp::create(builder, t.loc, value, t.f32(1.0 + half));
      fragment.high.push_back(LLVM::BitcastOp::create(
          builder, t.loc, builder.getI32Type(), larger));
      continue;
    }
    // So the upper part is the number itself.
    Value high = arith::AndIOp::create(builder, t.loc, bits, t.i32(~0x1fff));
    Value upper =
        LLVM::BitcastOp::create(builder, t.loc, builder.getF32Type(), high);
    Value rest =
        surplus
            ? math::FmaOp::create(builder, t.loc, upper,
                                  t.f32(std::ldexp(surplus, -23) - 1.0), value)
            : Value(arith::SubFOp::create(builder, t.loc, value, upper));
    fragment.high.push_back(bits);
    fragment.low.push_back(
        LLVM::BitcastOp::create(builder, t.loc, builder.getI32Type(), rest));
  }
  return fragment;
}

Fragment Product::loadA(int64_t block, int64_t step) {
  SmallVector<Value> registers;
  if (tileA) {
    registers = loaderA->load(block * rowsOfWarp * warps, 2 * step, 4,
                              /*transpose=*/false);
  } else if (isF32()) {
    // Lane order of the accumulator: row, row + 8, and the next column of each.
    size_t at = (block * steps + step) * 4;
    for (size_t i : {0, 2, 1, 3})
      registers.push_back(registersOfA[at + i]);
  } else {
    int64_t columns = cast<RankedTensorType>(factors.a).getDimSize(1) / 8;
    for (int64_t i = 0; i < 4; ++i) {
      int64_t column = 2 * step + i / 2;
      registers.push_back(
          column < columns
              ? registersOfA[(block * columns + column) * 2 + i % 2]
              : t.i32(0));
    }
  }
  if (!isF32())
    return {registers, {}};
  // All that is cut off has the sign of its product: of a rest the bits that
  // the instruction ignores, the product of two rests, what does not fit the
  // tensor core's sum. On average that is 3 * 2^-23 of a product of a query and
  // a key, and 4 * 2^-23 of one of a weight and a value, whose sums are longer.
  // Most of it is made up for here, where it costs nothing. Numbers that have
  // no rest lose less, so this leaves them with an error of the other sign,
  // which is why it is not all of it.
  return split(registers, /*surplus=*/tileA ? 2 : 3);
}

Value Product::loadF32(Value row, Value column) {
  Value offset = getElementOffset(t, tileB, row, column);
  return LLVM::LoadOp::create(t.b, t.loc, t.b.getF32Type(),
                              t.advance(b, offset));
}

SmallVector<Fragment> Product::loadBElements(int64_t block, int64_t step,
                                             int64_t count) {
  // Lane 4 g + c of the instruction holds two inner elements of column g: c and
  // c + 4, or 2 c and 2 c + 1 where the first operand is a fragment of
  // accumulators.
  Value start = tileA ? t.rem(t.lane(), 4) : t.fragmentColumn();
  Value inner = t.add(start, t.constant(8 * step));
  Value next = t.add(inner, t.constant(tileA ? 4 : 1));
  Value group = t.div(t.lane(), 4);
  SmallVector<Fragment> fragments;
  for (int64_t i = 0; i < count; ++i) {
    Value column = t.add(group, t.constant(8 * (block + i)));
    if (factors.transposeB)
      fragments.push_back(
          split({loadF32(column, inner), loadF32(column, next)}, 0));
    else
      fragments.push_back(
          split({loadF32(inner, column), loadF32(next, column)}, 0));
  }
  return fragments;
}

SmallVector<Fragment> Product::loadB(int64_t block, int64_t step) {
  if (quantized) {
    SmallVector<Fragment> fragments;
    for (const SmallVector<Value> &registers : quantized->convert(block))
      fragments.push_back({registers, {}});
    return fragments;
  }
  int64_t count = std::min<int64_t>(2, columnBlocks - block);
  // ldmatrix transposes elements of 16 bits only.
  if (isF32() && (!tileA || !factors.transposeB))
    return loadBElements(block, step, count);
  SmallVector<Value> registers;
  if (factors.transposeB)
    registers =
        loaderB->load(8 * block, 2 * step, 2 * count, /*transpose=*/false);
  else
    registers = loaderB->load(16 * step, block, 2 * count, /*transpose=*/true);
  SmallVector<Fragment> fragments;
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> own = {registers[2 * i], registers[2 * i + 1]};
    fragments.push_back(isF32() ? split(own, 0) : Fragment{own, {}});
  }
  return fragments;
}

std::array<size_t, 4> Product::getAccumulators(int64_t row, int64_t block,
                                               size_t i) {
  size_t first = (row * columnBlocks + block) * 4;
  // Of four neighbours of a wide fragment, in a pair of each block.
  if (isWide())
    return {first + i, first + 4 + i, first + 2 + i, first + 6 + i};
  first += 4 * i;
  return {first, first + 1, first + 2, first + 3};
}

Value Product::emit() {
  SmallVector<Value> acc;
  if (c)
    acc = t.unpack(c);
  else
    acc.assign(rowBlocks * columnBlocks * 4,
               isAccurate() ? Value() : t.f32(0.0));
  // Tensor cores cut off what does not fit their sum, which adds up over many
  // steps; so the accurate product lets them sum a few steps only and adds
  // these sums outside.
  int64_t group = isAccurate() ? stepsInSum : 1;
  for (int64_t step = 0; step < steps; step += group)
    emitSteps(step, std::min(group, steps - step), acc);
  return t.pack(acc);
}

void Product::emitSteps(int64_t first, int64_t count,
                        MutableArrayRef<Value> acc) {
  SmallVector<SmallVector<Fragment>> lhs(count), rhs(count);
  if (quantized)
    quantized->load(first);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t row = 0; row < rowBlocks; ++row)
      lhs[i].push_back(loadA(row, first + i));
  for (int64_t column = 0; column < columnBlocks; column += 2) {
    for (int64_t i = 0; i < count; ++i)
      rhs[i] = loadB(column, first + i);
    for (size_t next = 0; next < rhs[0].size(); ++next)
      for (int64_t row = 0; row < rowBlocks; ++row) {
        std::array<size_t, 4> at = getAccumulators(row, column, next);
        if (!isAccurate()) {
          auto part = llvm::map_to_vector(at, [&](size_t i) { return acc[i]; });
          multiplyFragments(t, element, lhs[0][row].high, rhs[0][next].high,
                            part);
          for (auto [i, value] : llvm::zip_equal(at, part))
            acc[i] = value;
          continue;
        }
        // The small products first, so that fewer of their bits are lost.
        SmallVector<Value> sum(4, t.f32(0.0));
        for (int64_t i = 0; i < count; ++i) {
          multiplyFragments(t, element, lhs[i][row].low, rhs[i][next].high,
                            sum);
          multiplyFragments(t, element, lhs[i][row].high, rhs[i][next].low,
                            sum);
        }
        for (int64_t i = 0; i < count; ++i)
          multiplyFragments(t, element, lhs[i][row].high, rhs[i][next].high,
                            sum);
        for (auto [i, x] : llvm::zip_equal(at, sum))
          acc[i] = acc[i]
                       ? arith::AddFOp::create(t.b, t.loc, acc[i], x,
                                               arith::FastMathFlags::contract)
                       : x;
      }
  }
}

/// Whether the machine multiplies such elements.
static LogicalResult verifyMachine(Operation *op, Type type, ThreadBuilder &t) {
  std::string element;
  llvm::raw_string_ostream(element) << type;
  std::string fault = t.machine().findProductFault(element);
  return fault.empty() ? success() : LogicalResult(op->emitOpError() << fault);
}

static FailureOr<Value> convertMmaAsync(tile::MmaAsyncOp op,
                                        tile::MmaAsyncOp::Adaptor adaptor,
                                        ThreadBuilder &t) {
  if (op.getTransposeA())
    return op.emitOpError("has its first operand transposed, which only "
                          "products of warpgroups can");
  Type type = op.getB().getType().getElementType();
  if (isa<Float8E4M3FNType>(type))
    return op.emitOpError("multiplies elements of ")
           << type << ", which products of warpgroups alone do";
  if (failed(verifyMachine(op, type, t)))
    return failure();
  Value b = advanceToPanel(t, op.getB().getType(), adaptor.getB(),
                           adaptor.getPanel());
  Factors factors{op.getA().getType(),
                  op.getB().getType(),
                  op.getResult().getType().getValue(),
                  op.getTransposeB(),
                  op.getTf32(),
                  type};
  return Product(t, factors, adaptor.getA(), b, adaptor.getC()).emit();
}

/// Says for how many blocks of a multiprocessor ptxas is to leave registers,
/// where it would choose another number (docs/lab/2026-12-01-numbers-by-
/// tensor-cores.md). A block with two stages multiplies while it copies, so
/// that registers for more of its own work are worth more than other blocks.
static void setBlocks(tile::MmaQuantizedOp op, ThreadBuilder &t) {
  constexpr int64_t blocksOfStages = 8, blocksOfNarrow = 16,
                    mostNarrowColumns = 64;
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  tile::SmemType tile = op.getB().getType();
  bool isNarrow = isa<IntegerType>(tile.getElementType()) &&
                  tile.getColumns() <= mostNarrowColumns,
       hasStages = getSchedule(kernel).stages.value_or(1) > 1;
  if (!op.getTransposeB() && (isNarrow || hasStages))
    kernel->setAttr(
        NVVM::NVVMDialect::getMinctasmAttrName(),
        t.b.getI32IntegerAttr(hasStages ? blocksOfStages : blocksOfNarrow));
}

static FailureOr<Value>
convertMmaQuantized(tile::MmaQuantizedOp op,
                    tile::MmaQuantizedOp::Adaptor adaptor, ThreadBuilder &t) {
  if (failed(verifyMachine(op, op.getFactorType(), t)))
    return failure();
  setBlocks(op, t);
  Factors factors{
      op.getA().getType(), op.getB().getType(), op.getResult().getType(),
      op.getTransposeB(),
      /*tf32=*/false,      op.getFactorType(),  &op.getScale()};
  return Product(t, factors, adaptor.getA(), adaptor.getB(), adaptor.getC())
      .emit();
}

/// mma.sync has finished when the thread goes on.
static FailureOr<Value> convertMmaWait(tile::MmaWaitOp op,
                                       tile::MmaWaitOp::Adaptor adaptor,
                                       ThreadBuilder &t) {
  return adaptor.getPending();
}

/// Matrices of 16-bit elements of the result from a row and column on: the
/// upper and the lower one of a block of columns, then both of the next block.
/// Each lies in the source with its columns as rows.
static SmallVector<Value> loadTransposed(ThreadBuilder &t, tile::SmemType type,
                                         Value source, Value warp, int64_t row,
                                         int64_t column, int64_t count) {
  Value lane = t.lane();
  Value sourceRow = t.add(t.rem(lane, 8), t.mul(t.div(lane, 16), 8));
  Value sourceColumn =
      t.add(t.mul(warp, 16), t.mul(t.rem(t.div(lane, 8), 2), 8));
  Value offset = getElementOffset(t, type, t.add(sourceRow, t.constant(column)),
                                  t.add(sourceColumn, t.constant(row)));
  return loadMatrices(t, t.advance(source, offset), count,
                      /*transpose=*/true);
}

/// Two neighbours of f32, the first in an even column.
static SmallVector<Value> loadPair(ThreadBuilder &t, tile::SmemType type,
                                   Value source, Value row, Value column) {
  Value address = t.advance(source, getElementOffset(t, type, row, column));
  return t.unpack(LLVM::LoadOp::create(t.b, t.loc,
                                       VectorType::get({2}, t.b.getF32Type()),
                                       address, /*alignment=*/8));
}

/// The four elements of f32 that a thread has of eight columns and 16 rows of
/// its warp.
static SmallVector<Value> loadF32(ThreadBuilder &t, tile::LoadOp op,
                                  Value source, int64_t row, int64_t column) {
  OpBuilder &b = t.b;
  tile::SmemType type = op.getSource().getType();
  SmallVector<Value> elements;
  for (int64_t half = 0; half < 2; ++half) {
    Value ownRow = t.add(t.fragmentRow(op.getResult().getType().getEncoding()),
                         t.constant(row + 8 * half));
    Value ownColumn = t.add(t.fragmentColumn(), t.constant(column));
    if (!op.getTranspose()) {
      llvm::append_range(elements,
                         loadPair(t, type, source, ownRow, ownColumn));
      continue;
    }
    for (int64_t i = 0; i < 2; ++i)
      elements.push_back(LLVM::LoadOp::create(
          b, t.loc, b.getF32Type(),
          t.advance(source,
                    getElementOffset(t, type, t.add(ownColumn, t.constant(i)),
                                     ownRow))));
  }
  return elements;
}

static FailureOr<Value>
convertLoad(tile::LoadOp op, tile::LoadOp::Adaptor adaptor, ThreadBuilder &t) {
  tile::SmemType type = op.getSource().getType();
  RankedTensorType result = op.getResult().getType();
  if (isa<tile::ColumnsAttr>(result.getEncoding())) {
    SmallVector<Value> registers;
    for (int64_t row = 0; row < type.getRows(); ++row)
      llvm::append_range(registers,
                         loadPair(t, type, adaptor.getSource(), t.constant(row),
                                  t.fragmentColumn()));
    return t.pack(registers);
  }
  if (auto rows = dyn_cast<tile::RowsAttr>(result.getEncoding())) {
    SmallVector<Value> registers;
    for (int64_t i = 0; i < rows.getNumRegisters(result.getShape()); ++i)
      registers.push_back(LLVM::LoadOp::create(
          t.b, t.loc, t.b.getF32Type(),
          getRowAddress(t, type, adaptor.getSource(), result, i)));
    return t.pack(registers);
  }
  int64_t warps = cast<tile::FragmentAttr>(result.getEncoding()).getWarps();
  bool areMatrices = type.getElementBytes() == 2;
  Value warp = t.warpOf(result.getEncoding());
  std::optional<MatrixAccess> loader;
  if (areMatrices && !op.getTranspose())
    loader.emplace(t, type,
                   t.advance(adaptor.getSource(),
                             t.mul(warp, rowsOfWarp * type.getSwizzle())),
                   t.rem(t.lane(), 16), t.div(t.lane(), 16));
  SmallVector<Value> registers;
  int64_t columns = result.getDimSize(1) / 8;
  for (int64_t row = 0; row < result.getDimSize(0); row += rowsOfWarp * warps)
    for (int64_t column = 0; column < columns; column += 2) {
      int64_t count = std::min<int64_t>(2, columns - column);
      if (loader)
        llvm::append_range(registers, loader->load(row, column, 2 * count,
                                                   /*transpose=*/false));
      else if (areMatrices)
        llvm::append_range(registers,
                           loadTransposed(t, type, adaptor.getSource(), warp,
                                          row, 8 * column, 2 * count));
      else
        for (int64_t i = 0; i < count; ++i)
          llvm::append_range(registers, loadF32(t, op, adaptor.getSource(), row,
                                                8 * (column + i)));
    }
  return t.pack(registers);
}

void flash::populateProductPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/1, convertMmaAsync,
                 convertMmaQuantized, convertMmaWait, convertLoad);
}
