//===- Registers.cpp - Arithmetic on the registers of a thread ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Dialect/Tile/IR/Reductions.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;

static tile::LayoutAttrInterface getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor
             ? dyn_cast_or_null<tile::LayoutAttrInterface>(tensor.getEncoding())
             : tile::LayoutAttrInterface();
}

/// Whether a register of warp rows, whose part of the coordinates is `at`, is
/// behind the last column in some lane.
static bool mayExceed(tile::LayoutAttrInterface layout, RankedTensorType type,
                      ArrayRef<int64_t> at) {
  auto warpRows = dyn_cast<tile::WarpRowsAttr>(layout);
  return warpRows && type.getRank() == 2 &&
         at[1] + (warpRows.getLanes() - 1) * warpRows.getVector() >=
             type.getDimSize(1);
}

static bool is16Bit(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<Float16Type, BFloat16Type>(element);
}

/// The elements of a tile that the thread has. Two of 16 bits share a register.
static SmallVector<Value> getElements(ThreadBuilder &t, Value vector,
                                      Type element) {
  SmallVector<Value> registers = t.unpack(vector), elements;
  if (!is16Bit(element))
    return registers;
  for (Value pair : registers)
    llvm::append_range(elements, t.splitPair(pair, element));
  return elements;
}

static Value fromElements(ThreadBuilder &t, ArrayRef<Value> elements) {
  if (!is16Bit(elements.front().getType()))
    return t.pack(elements);
  SmallVector<Value> registers;
  for (size_t i = 0; i < elements.size(); i += 2)
    registers.push_back(LLVM::BitcastOp::create(
        t.b, t.loc, t.b.getI32Type(), t.pack({elements[i], elements[i + 1]})));
  return t.pack(registers);
}

/// Elements of 16 bits as f32, two from each register.
static Value extend(ThreadBuilder &t, Value vector, Type element) {
  SmallVector<Value> elements;
  for (Value pair : t.unpack(vector))
    llvm::append_range(elements, t.extendPair(pair, element));
  return t.pack(elements);
}

/// Elements of f32 as ones of 16 bits: each instruction rounds two into one
/// register, where the machine has such.
static Value truncate(ThreadBuilder &t, Value vector, Type element) {
  SmallVector<Value> from = t.unpack(vector), to;
  for (size_t i = 0; i < from.size(); i += 2)
    to.push_back(t.truncatePair(from[i], from[i + 1], element));
  return t.pack(to);
}

namespace {
/// arith and math on register tiles: the same op on vectors. Elements of 16
/// bits are widened for it: a sum, difference, product or quotient of them that
/// is rounded from f32 is what one operation on 16 bits gives.
struct Elementwise : ConversionPattern {
  Elementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || !getLayout(op->getResult(0).getType()))
      return failure();
    ThreadBuilder t{rewriter, op->getLoc()};
    SmallVector<Value> values(operands);
    for (auto [value, operand] : llvm::zip_equal(values, op->getOperands()))
      if (is16Bit(operand.getType()))
        value = extend(t, value, getElementTypeOrSelf(operand.getType()));
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    RankedTensorType computed =
        is16Bit(result) ? result.clone(rewriter.getF32Type()) : result;
    Value value =
        rewriter
            .create(op->getLoc(), op->getName().getIdentifier(), values,
                    getTypeConverter()->convertType(computed), op->getAttrs())
            ->getResult(0);
    if (is16Bit(result))
      value = truncate(t, value, result.getElementType());
    rewriter.replaceOp(op, value);
    return success();
  }
};
} // namespace

static FailureOr<Value> convertConstant(arith::ConstantOp op,
                                        arith::ConstantOp::Adaptor,
                                        ThreadBuilder &t) {
  auto value = dyn_cast<SplatElementsAttr>(op.getValue());
  if (!value || !getLayout(op.getType()))
    return failure();
  auto type = getRegisterType(cast<RankedTensorType>(op.getType()));
  auto element = value.getSplatValue<Attribute>();
  if (is16Bit(op.getType())) {
    APInt bits = value.getSplatValue<APFloat>().bitcastToAPInt();
    element =
        t.b.getIntegerAttr(type.getElementType(), APInt::getSplat(32, bits));
  }
  return arith::ConstantOp::create(t.b, t.loc,
                                   DenseElementsAttr::get(type, element))
      .getResult();
}

/// The elements of a fragment in the order in which a product of 8 bits takes
/// them from registers, four of a row in each (PTX ISA, "Register Fragments for
/// wgmma.mma_async.m64nNk32"): the pairs that the thread has of two times eight
/// columns. tile.mma_async says where the second operand has these columns.
static Value truncateToE4M3(ThreadBuilder &t, Value vector) {
  SmallVector<Value> elements = t.unpack(vector), registers;
  for (size_t at = 0; at < elements.size(); at += 8)
    for (size_t row : {0, 2}) {
      ArrayRef<Value> left = ArrayRef(elements).slice(at + row, 2),
                      right = ArrayRef(elements).slice(at + 4 + row, 2);
      // The first operand goes to the upper half.
      registers.push_back(LLVM::InlineAsmOp::create(
                              t.b, t.loc, TypeRange{t.b.getI32Type()},
                              ValueRange{left[0], left[1], right[0], right[1]},
                              "{\n.reg .b16 left, right;\n"
                              "cvt.rn.satfinite.e4m3x2.f32 left, $2, $1;\n"
                              "cvt.rn.satfinite.e4m3x2.f32 right, $4, $3;\n"
                              "mov.b32 $0, {left, right};\n}",
                              "=r,f,f,f,f", /*has_side_effects=*/false,
                              /*is_align_stack=*/false,
                              LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                              ArrayAttr())
                              .getResult(0));
    }
  return t.pack(registers);
}

static FailureOr<Value> convertTruncate(arith::TruncFOp op,
                                        arith::TruncFOp::Adaptor adaptor,
                                        ThreadBuilder &t) {
  auto fragment = dyn_cast_or_null<tile::FragmentAttr>(getLayout(op.getType()));
  if (fragment && isa<Float8E4M3FNType>(getElementTypeOrSelf(op.getType())))
    return truncateToE4M3(t, adaptor.getIn());
  if (!getLayout(op.getType()) || !is16Bit(op.getType()))
    return failure();
  return truncate(t, adaptor.getIn(), getElementTypeOrSelf(op.getType()));
}

static FailureOr<Value> convertExtend(arith::ExtFOp op,
                                      arith::ExtFOp::Adaptor adaptor,
                                      ThreadBuilder &t) {
  Type source = op.getIn().getType();
  if (!getLayout(source) || !is16Bit(source))
    return failure();
  return extend(t, adaptor.getIn(), getElementTypeOrSelf(source));
}

/// ln x as ln 2 times the hardware's base-2 logarithm, for each register.
static FailureOr<Value> convertLogarithm(math::LogOp op,
                                         math::LogOp::Adaptor adaptor,
                                         ThreadBuilder &t) {
  if (!getLayout(op.getType()) || is16Bit(op.getType()))
    return failure();
  SmallVector<Value> registers = t.unpack(adaptor.getOperand());
  for (Value &x : registers) {
    x = nvx::Log2Op::create(t.b, t.loc, x);
    x = arith::MulFOp::create(t.b, t.loc, x, t.f32(llvm::numbers::ln2));
  }
  return t.pack(registers);
}

static FailureOr<Value> convertBroadcast(tile::BroadcastOp op,
                                         tile::BroadcastOp::Adaptor adaptor,
                                         ThreadBuilder &t) {
  RankedTensorType result = op.getResult().getType();
  auto type = getRegisterType(result);
  if (Value scalar = adaptor.getSource(); !isa<VectorType>(scalar.getType())) {
    if (is16Bit(scalar.getType()))
      scalar = t.unpack(fromElements(t, {scalar, scalar})).front();
    return vector::BroadcastOp::create(t.b, t.loc, type, scalar).getResult();
  }
  SmallVector<Value> rows = getElements(t, adaptor.getSource(),
                                        result.getElementType()),
                     registers;
  if (auto source = cast<RankedTensorType>(op.getSource().getType());
      isa<tile::ColumnsAttr>(source.getEncoding())) {
    // Both rows of a thread have the same pairs.
    for (int64_t row = 0; row < result.getDimSize(0);
         row += rowsOfWarp * getLayout(result).getNumWarps())
      for (size_t at = 0; at < rows.size(); at += 2)
        registers.append({rows[at], rows[at + 1], rows[at], rows[at + 1]});
  } else if (isa<tile::FragmentAttr, tile::WideFragmentAttr>(
                 result.getEncoding())) {
    int64_t blocks = result.getDimSize(1) / 8;
    for (size_t row = 0; row < rows.size(); row += 2)
      for (int64_t block = 0; block < blocks; ++block)
        registers.append({rows[row], rows[row], rows[row + 1], rows[row + 1]});
  } else {
    // A value for each row, next to which are all that it goes to.
    size_t copies =
        getLayout(result).getNumRegisters(result.getShape()) / rows.size();
    for (Value row : rows)
      registers.append(copies, row);
  }
  return fromElements(t, registers);
}

static Value combine(ThreadBuilder &t, tile::Reduction kind, Value x, Value y) {
  return tile::combine(t.b, t.loc, kind, x, y);
}

/// Combines neighbours until one value is left.
static Value combineAll(ThreadBuilder &t, tile::Reduction kind,
                        SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> half;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      half.push_back(combine(t, kind, values[i], values[i + 1]));
    if (values.size() % 2 == 1)
      half.push_back(values.back());
    values = std::move(half);
  }
  return values.front();
}

/// Registers behind the columns of warp rows hold anything: they become the
/// reduction's neutral element.
static void neutralize(ThreadBuilder &t, tile::FoldOp op,
                       MutableArrayRef<Value> x) {
  RankedTensorType type = op.getX().getType();
  auto warpRows = cast<tile::WarpRowsAttr>(type.getEncoding());
  Value none = t.f32(tile::getNeutralElement(op.getReduction()));
  Value ofThread = t.getPosition(warpRows, /*rank=*/2)[1];
  for (auto [i, value] : llvm::enumerate(x)) {
    SmallVector<int64_t, 2> at = warpRows.getRegisterPart(type.getShape(), i);
    if (!mayExceed(warpRows, type, at))
      continue;
    Value exists = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt,
                                         t.add(ofThread, t.constant(at[1])),
                                         t.constant(type.getDimSize(1)));
    value = arith::SelectOp::create(t.b, t.loc, exists, value, none);
  }
}

static FailureOr<Value>
convertFold(tile::FoldOp op, tile::FoldOp::Adaptor adaptor, ThreadBuilder &t) {
  SmallVector<Value> x = t.unpack(adaptor.getX()),
                     result = t.unpack(adaptor.getInit());
  if (isa<tile::WarpRowsAttr>(op.getX().getType().getEncoding())) {
    neutralize(t, op, x);
    size_t inRow = x.size() / result.size();
    for (auto [row, value] : llvm::enumerate(result)) {
      SmallVector<Value> parts(ArrayRef<Value>(x).slice(row * inRow, inRow));
      value = combine(t, op.getReduction(), value,
                      combineAll(t, op.getReduction(), parts));
    }
    return t.pack(result);
  }
  // An instruction that needs the result of the one before waits for it, and
  // ptxas keeps most of their order. So two rows are interleaved, and each
  // has several sums on the way: four in a narrow tile, else one for each 64
  // columns. Threads with more rows have no registers for that.
  int64_t columns = op.getX().getType().getDimSize(1), blocks = columns / 8;
  size_t interleavedRows = result.size() <= 2 ? result.size() : 1;
  int64_t partsOfRow = result.size() > 2 ? 1 : columns <= 64 ? 4 : columns / 64;
  for (size_t first = 0; first < result.size(); first += interleavedRows) {
    SmallVector<SmallVector<Value>> parts(interleavedRows);
    for (int64_t block = 0; block < blocks; ++block)
      for (auto [i, ofRow] : llvm::enumerate(parts)) {
        size_t row = first + i;
        size_t at = (row / 2 * blocks + block) * 4 + row % 2 * 2;
        Value pair = combine(t, op.getReduction(), x[at], x[at + 1]);
        if (block < partsOfRow)
          ofRow.push_back(pair);
        else
          ofRow[block % partsOfRow] =
              combine(t, op.getReduction(), ofRow[block % partsOfRow], pair);
      }
    for (auto [i, ofRow] : llvm::enumerate(parts))
      result[first + i] = combine(t, op.getReduction(), result[first + i],
                                  combineAll(t, op.getReduction(), ofRow));
  }
  return t.pack(result);
}

/// Combines each register with the registers of lanes whose numbers differ in
/// the bits from `least` to below `end`.
static void combineLanes(ThreadBuilder &t, tile::Reduction kind,
                         MutableArrayRef<Value> registers, int64_t least,
                         int64_t end) {
  Value allLanes = t.i32(-1), clamp = t.i32(31);
  for (int64_t distance = end / 2; distance >= least; distance /= 2)
    for (Value &value : registers) {
      Value other = NVVM::ShflOp::create(t.b, t.loc, value.getType(), allLanes,
                                         value, t.i32(distance), clamp,
                                         NVVM::ShflKind::bfly, UnitAttr());
      value = combine(t, kind, value, other);
    }
}

/// Where the scratch of a reduction over warps starts.
template <typename Op>
static FailureOr<Value> getScratch(ThreadBuilder &t, Op op) {
  if (!op.getOffset())
    return op.emitOpError("has no shared memory; run tile-allocate-smem first");
  return t.advance(t.sharedMemory(), static_cast<int64_t>(*op.getOffset()));
}

/// Lets the lanes that `writes` says store to scratch, for all of the `warps`
/// to read behind it.
static void publish(ThreadBuilder &t, int64_t barrier, int64_t warps,
                    Value writes, function_ref<void()> store) {
  auto meet = [&] {
    NVVM::BarrierOp::create(t.b, t.loc, TypeRange(), t.i32(barrier),
                            t.i32(warps * threadsOfWarp),
                            NVVM::BarrierReductionAttr(), Value());
  };
  // What was there before has been read.
  meet();
  {
    OpBuilder::InsertionGuard guard(t.b);
    auto choice = scf::IfOp::create(t.b, t.loc, writes);
    t.b.setInsertionPointToStart(choice.thenBlock());
    store();
  }
  meet();
}

/// Combines the values of warps that share rows, which leave theirs in shared
/// memory.
static LogicalResult combineWarps(ThreadBuilder &t, tile::ReduceOp op,
                                  MutableArrayRef<Value> registers) {
  FailureOr<Value> scratch = getScratch(t, op);
  if (failed(scratch))
    return failure();
  OpBuilder &b = t.b;
  auto type = cast<RankedTensorType>(op.getResult().getType());
  auto warpRows = cast<tile::WarpRowsAttr>(type.getEncoding());
  int64_t warpsOfRow = warpRows.getLanes() / 32;
  // The values of a row are neighbours, one of each warp.
  Value row =
      t.advance(*scratch, t.mul(t.div(t.warp(), warpsOfRow), 4 * warpsOfRow));
  int64_t distance = warpRows.getNumRowsAtOnce() * 4 * warpsOfRow;
  Value isFirst = arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::eq,
                                        t.lane(), t.constant(0));
  // By the first barrier: a block that uses few leaves room for others.
  publish(t, /*barrier=*/0, warpRows.getWarps(), isFirst, [&] {
    Value own = t.advance(row, t.mul(t.rem(t.warp(), warpsOfRow), 4));
    for (auto [i, value] : llvm::enumerate(registers))
      LLVM::StoreOp::create(b, t.loc, value,
                            t.advance(own, static_cast<int64_t>(i) * distance));
  });
  auto rowType = VectorType::get({warpsOfRow}, b.getF32Type());
  for (auto [i, value] : llvm::enumerate(registers)) {
    Value loaded = LLVM::LoadOp::create(
        b, t.loc, rowType, t.advance(row, static_cast<int64_t>(i) * distance),
        /*alignment=*/std::min<int64_t>(4 * (warpsOfRow & -warpsOfRow), 16));
    value = combineAll(t, op.getReduction(), t.unpack(loaded));
  }
  return success();
}

static FailureOr<Value> convertReduce(tile::ReduceOp op,
                                      tile::ReduceOp::Adaptor adaptor,
                                      ThreadBuilder &t) {
  SmallVector<Value> registers = t.unpack(adaptor.getX());
  combineLanes(
      t, op.getReduction(), registers, /*least=*/1,
      /*end=*/std::min<int64_t>(op.getX().getType().getDimSize(1), 32));
  if (op.getNumScratchBytes() > 0 && failed(combineWarps(t, op, registers)))
    return failure();
  return t.pack(registers);
}

static LogicalResult combineWarps(ThreadBuilder &t, tile::ReduceRowsOp op,
                                  int64_t warps,
                                  MutableArrayRef<Value> columns) {
  FailureOr<Value> scratch = getScratch(t, op);
  if (failed(scratch))
    return failure();
  OpBuilder &b = t.b;
  int64_t bytesOfWarp = op.getNumScratchBytes() / warps;
  Value start = t.advance(*scratch, t.mul(t.fragmentColumn(), 4));
  Value isFirst = arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::ult,
                                        t.lane(), t.constant(4));
  publish(t, consumersBarrier, warps, isFirst, [&] {
    Value own = t.advance(start, t.mul(t.warp(), bytesOfWarp));
    for (size_t i = 0; i < columns.size(); i += 2)
      LLVM::StoreOp::create(b, t.loc, t.pack({columns[i], columns[i + 1]}),
                            t.advance(own, static_cast<int64_t>(16 * i)),
                            /*alignment=*/8);
  });
  auto pair = VectorType::get({2}, b.getF32Type());
  for (size_t i = 0; i < columns.size(); i += 2) {
    SmallVector<Value> first, second;
    for (int64_t warp = 0; warp < warps; ++warp) {
      int64_t offset = warp * bytesOfWarp + 16 * i;
      SmallVector<Value> loaded = t.unpack(LLVM::LoadOp::create(
          b, t.loc, pair, t.advance(start, offset), /*alignment=*/8));
      first.push_back(loaded[0]);
      second.push_back(loaded[1]);
    }
    columns[i] = combineAll(t, op.getReduction(), first);
    columns[i + 1] = combineAll(t, op.getReduction(), second);
  }
  return success();
}

/// Adds the rows of a thread, then of the eight lanes that have its columns,
/// then of the other warps, which leave their sums in shared memory.
static FailureOr<Value> convertReduceRows(tile::ReduceRowsOp op,
                                          tile::ReduceRowsOp::Adaptor adaptor,
                                          ThreadBuilder &t) {
  auto result = cast<RankedTensorType>(op.getResult().getType());
  size_t blocks = result.getDimSize(0) / 8;
  SmallVector<Value> x = t.unpack(adaptor.getX()), columns;
  for (size_t block = 0; block < blocks; ++block)
    for (size_t column = 0; column < 2; ++column) {
      SmallVector<Value> rows;
      for (size_t at = 4 * block + column; at < x.size(); at += 4 * blocks)
        rows.append({x[at], x[at + 2]});
      columns.push_back(combineAll(t, op.getReduction(), rows));
    }
  combineLanes(t, op.getReduction(), columns, /*least=*/4, /*end=*/32);
  if (op.getNumScratchBytes() > 0 &&
      failed(combineWarps(t, op, getLayout(result).getNumWarps(), columns)))
    return failure();
  return t.pack(columns);
}

/// The lane that has the column chooses among its registers, and the other
/// three of its row get the value from it.
static FailureOr<Value> convertColumn(tile::ColumnOp op,
                                      tile::ColumnOp::Adaptor adaptor,
                                      ThreadBuilder &t) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  int64_t blocks = type.getDimSize(1) / 8;
  Value block = t.div(adaptor.getColumn(), 8);
  Value inBlock = t.rem(adaptor.getColumn(), 8);
  auto isEqual = [&](Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq, x,
                                 t.constant(y));
  };
  auto select = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(t.b, t.loc, condition, x, y);
  };
  Value isSecond = isEqual(t.rem(inBlock, 2), 1);
  Value owner = t.add(t.mul(t.div(t.lane(), 4), 4), t.div(inBlock, 2));
  owner = arith::IndexCastOp::create(t.b, t.loc, t.b.getI32Type(), owner);
  SmallVector<Value> isBlock, registers = t.unpack(adaptor.getX()), rows;
  for (int64_t i = 0; i < blocks; ++i)
    isBlock.push_back(isEqual(block, i));
  size_t perRow = type.getElementType().isF32() ? 2 : 1;
  auto choose = [&](int64_t group, size_t index) {
    Value chosen;
    for (int64_t i = 0; i < blocks; ++i) {
      Value own = registers[2 * perRow * (group * blocks + i) + index];
      chosen = chosen ? select(isBlock[i], own, chosen) : own;
    }
    return chosen;
  };
  int64_t groups = registers.size() / (2 * perRow * blocks);
  for (int64_t group = 0; group < groups; ++group)
    for (size_t row = 0; row < 2; ++row) {
      std::array<Value, 2> pair;
      if (perRow == 2)
        pair = {choose(group, 2 * row), choose(group, 2 * row + 1)};
      else
        pair = t.extendPair(choose(group, row), type.getElementType());
      rows.push_back(
          NVVM::ShflOp::create(t.b, t.loc, t.b.getF32Type(), t.i32(-1),
                               select(isSecond, pair[1], pair[0]), owner,
                               t.i32(31), NVVM::ShflKind::idx, UnitAttr()));
    }
  return t.pack(rows);
}

static FailureOr<Value> convertAny(tile::AnyOp op, tile::AnyOp::Adaptor adaptor,
                                   ThreadBuilder &t) {
  Value any;
  for (Value x : t.unpack(adaptor.getX()))
    any = any ? arith::OrIOp::create(t.b, t.loc, any, x).getResult() : x;
  return NVVM::VoteSyncOp::create(t.b, t.loc, t.b.getI1Type(), t.i32(-1), any,
                                  NVVM::VoteSyncKind::any)
      .getResult();
}

static FailureOr<Value> convertMap(tile::MapOp op, tile::MapOp::Adaptor adaptor,
                                   ThreadBuilder &t) {
  RankedTensorType type = op.getResult().getType();
  tile::LayoutAttrInterface layout = getLayout(type);
  SmallVector<Value, 2> ofThread = t.getPosition(layout, type.getRank());
  Block &body = op.getBody().front();
  SmallVector<SmallVector<Value>> inputs = llvm::map_to_vector(
      adaptor.getInputs(), [&](Value input) { return t.unpack(input); });
  SmallVector<Value> registers;
  for (int64_t i = 0; i < layout.getNumRegisters(type.getShape()); ++i) {
    SmallVector<int64_t, 2> at = layout.getRegisterPart(type.getShape(), i);
    SmallVector<Value> arguments;
    for (ArrayRef<Value> input : inputs)
      arguments.push_back(input[i]);
    for (auto [thread, inTile] : llvm::zip_equal(ofThread, at))
      arguments.push_back(t.add(thread, t.constant(inTile)));
    // As the body may read memory, registers behind the columns are at the
    // last one.
    if (mayExceed(layout, type, at))
      arguments.back() = arith::MinSIOp::create(
          t.b, t.loc, arguments.back(), t.constant(type.getDimSize(1) - 1));
    IRMapping mapping;
    mapping.map(body.getArguments(), arguments);
    for (Operation &inner : body.without_terminator())
      t.b.clone(inner, mapping);
    registers.push_back(mapping.lookupOrDefault(
        cast<tile::YieldOp>(body.getTerminator()).getResult()));
  }
  return t.pack(registers);
}
void flash::populateRegisterPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<Elementwise>(converter, patterns.getContext());
  addConversions(converter, patterns, /*benefit=*/2, convertAny, convertColumn,
                 convertConstant, convertTruncate, convertExtend,
                 convertLogarithm, convertBroadcast, convertFold, convertReduce,
                 convertReduceRows, convertMap);
}
