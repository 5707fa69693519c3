//===- Registers.cpp - Arithmetic on the registers of a thread ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

static tile::LayoutAttrInterface getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor
             ? dyn_cast_or_null<tile::LayoutAttrInterface>(tensor.getEncoding())
             : tile::LayoutAttrInterface();
}

namespace {
/// arith and math on register tiles: the same op on vectors.
struct Elementwise : ConversionPattern {
  Elementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || !getLayout(op->getResult(0).getType()))
      return failure();
    Type type = getTypeConverter()->convertType(op->getResult(0).getType());
    Operation *copy =
        rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                        type, op->getAttrs());
    rewriter.replaceOp(op, copy);
    return success();
  }
};

struct Constant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto value = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!value || !getLayout(op.getType()))
      return failure();
    auto type = getTypeConverter()->convertType<VectorType>(op.getType());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(
        op, DenseElementsAttr::get(type, value.getSplatValue<Attribute>()));
    return success();
  }
};

/// To 16 bits: each instruction rounds two elements into one register.
struct Truncate : OpConversionPattern<arith::TruncFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::TruncFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto result = dyn_cast<RankedTensorType>(op.getType());
    if (!result || !getLayout(result) || result.getElementTypeBitWidth() != 16)
      return failure();
    ThreadBuilder t{rewriter, op.getLoc()};
    Type element = result.getElementType();
    Type pair = VectorType::get({2}, element);
    SmallVector<Value> from = t.unpack(adaptor.getIn()), to;
    for (size_t i = 0; i < from.size(); i += 2) {
      // The first operand goes to the upper half.
      Value high = from[i + 1], low = from[i], rounded;
      auto mode = NVVM::FPRoundingMode::RN;
      if (element.isF16())
        rounded = NVVM::ConvertF32x2ToF16x2Op::create(
            rewriter, t.loc, pair, high, low, /*random_bits=*/Value(), mode);
      else
        rounded = NVVM::ConvertF32x2ToBF16x2Op::create(
            rewriter, t.loc, pair, high, low, /*random_bits=*/Value(), mode);
      to.push_back(LLVM::BitcastOp::create(rewriter, t.loc,
                                           rewriter.getI32Type(), rounded));
    }
    rewriter.replaceOp(op, t.pack(to));
    return success();
  }
};

/// From 16 bits: two elements from each register.
struct Extend : OpConversionPattern<arith::ExtFOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ExtFOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto source = dyn_cast<RankedTensorType>(op.getIn().getType());
    if (!source || !getLayout(source) || source.getElementTypeBitWidth() != 16)
      return failure();
    ThreadBuilder t{rewriter, op.getLoc()};
    SmallVector<Value> elements;
    for (Value pair : t.unpack(adaptor.getIn()))
      llvm::append_range(elements, t.extendPair(pair, source.getElementType()));
    rewriter.replaceOp(op, t.pack(elements));
    return success();
  }
};

/// ln x as ln 2 times the hardware's base-2 logarithm, for each register.
struct Logarithm : OpConversionPattern<math::LogOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(math::LogOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!getLayout(op.getType()))
      return failure();
    ThreadBuilder t{rewriter, op.getLoc()};
    SmallVector<Value> registers = t.unpack(adaptor.getOperand());
    for (Value &x : registers) {
      x = nvx::Log2Op::create(rewriter, t.loc, x);
      x = arith::MulFOp::create(rewriter, t.loc, x, t.f32(llvm::numbers::ln2));
    }
    rewriter.replaceOp(op, t.pack(registers));
    return success();
  }
};

struct Broadcast : OpConversionPattern<tile::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    RankedTensorType result = op.getResult().getType();
    auto type = getTypeConverter()->convertType<VectorType>(result);
    if (!isa<VectorType>(adaptor.getSource().getType())) {
      rewriter.replaceOpWithNewOp<vector::BroadcastOp>(op, type,
                                                       adaptor.getSource());
      return success();
    }
    SmallVector<Value> rows = t.unpack(adaptor.getSource()), registers;
    if (auto source = cast<RankedTensorType>(op.getSource().getType());
        isa<tile::ColumnsAttr>(source.getEncoding())) {
      // Of two rows, the same pairs.
      for (int64_t row = 0; row < result.getDimSize(0);
           row += 16 * getLayout(result).getNumWarps())
        for (size_t at = 0; at < rows.size(); at += 2)
          registers.append({rows[at], rows[at + 1], rows[at], rows[at + 1]});
    } else if (isa<tile::FragmentAttr>(result.getEncoding())) {
      int64_t blocks = result.getDimSize(1) / 8;
      for (size_t row = 0; row < rows.size(); row += 2)
        for (int64_t block = 0; block < blocks; ++block)
          registers.append(
              {rows[row], rows[row], rows[row + 1], rows[row + 1]});
    } else {
      // A value for each row or lane, next to which are all that it goes to.
      size_t copies = type.getNumElements() / rows.size();
      for (Value row : rows)
        registers.append(copies, row);
    }
    rewriter.replaceOp(op, t.pack(registers));
    return success();
  }
};

Value combine(ThreadBuilder &t, tile::Reduction kind, Value x, Value y) {
  if (kind == tile::Reduction::Add)
    return arith::AddFOp::create(t.b, t.loc, x, y);
  return arith::MaxNumFOp::create(t.b, t.loc, x, y);
}

/// Combines neighbours until one value is left.
Value combineAll(ThreadBuilder &t, tile::Reduction kind,
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

struct Fold : OpConversionPattern<tile::FoldOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::FoldOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    SmallVector<Value> x = t.unpack(adaptor.getX()),
                       result = t.unpack(adaptor.getInit());
    if (isa<tile::WarpRowsAttr>(op.getX().getType().getEncoding())) {
      size_t inRow = x.size() / result.size();
      for (auto [row, value] : llvm::enumerate(result)) {
        SmallVector<Value> parts(ArrayRef<Value>(x).slice(row * inRow, inRow));
        value = combine(t, op.getReduction(), value,
                        combineAll(t, op.getReduction(), parts));
      }
      rewriter.replaceOp(op, t.pack(result));
      return success();
    }
    // An instruction that needs the result of the one before waits for it, and
    // ptxas keeps most of their order. So two rows take turns, and each
    // has several sums on the way: four in a narrow tile, else one for each 64
    // columns. Threads with more rows have no registers for that.
    int64_t columns = op.getX().getType().getDimSize(1), blocks = columns / 8;
    size_t rowsInTurns = result.size() <= 2 ? result.size() : 1;
    int64_t partsOfRow = result.size() > 2 ? 1
                         : columns <= 64   ? 4
                                           : columns / 64;
    for (size_t first = 0; first < result.size(); first += rowsInTurns) {
      SmallVector<SmallVector<Value>> parts(rowsInTurns);
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
    rewriter.replaceOp(op, t.pack(result));
    return success();
  }
};

struct Reduce : OpConversionPattern<tile::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    SmallVector<Value> registers = t.unpack(adaptor.getX());
    Value allLanes = t.i32(-1), clamp = t.i32(31);
    int64_t lanes = op.getX().getType().getDimSize(1);
    for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
      for (Value &value : registers) {
        Value other = NVVM::ShflOp::create(
            rewriter, t.loc, value.getType(), allLanes, value, t.i32(distance),
            clamp, NVVM::ShflKind::bfly, UnitAttr());
        value = combine(t, op.getReduction(), value, other);
      }
    rewriter.replaceOp(op, t.pack(registers));
    return success();
  }
};

/// The lane that has the column chooses among its registers, and the other
/// three of its row get the value from it.
struct Column : OpConversionPattern<tile::ColumnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ColumnOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    auto type = cast<RankedTensorType>(op.getX().getType());
    int64_t blocks = type.getDimSize(1) / 8;
    Value block = t.div(adaptor.getColumn(), 8);
    Value inBlock = t.rem(adaptor.getColumn(), 8);
    auto isEqual = [&](Value x, int64_t y) -> Value {
      return arith::CmpIOp::create(rewriter, t.loc, arith::CmpIPredicate::eq, x,
                                   t.constant(y));
    };
    auto select = [&](Value condition, Value x, Value y) -> Value {
      return arith::SelectOp::create(rewriter, t.loc, condition, x, y);
    };
    Value isSecond = isEqual(t.rem(inBlock, 2), 1);
    Value owner = t.add(t.mul(t.div(t.lane(), 4), 4), t.div(inBlock, 2));
    owner = arith::IndexCastOp::create(rewriter, t.loc, rewriter.getI32Type(),
                                       owner);
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
        rows.push_back(NVVM::ShflOp::create(
            rewriter, t.loc, rewriter.getF32Type(), t.i32(-1),
            select(isSecond, pair[1], pair[0]), owner, t.i32(31),
            NVVM::ShflKind::idx, UnitAttr()));
      }
    rewriter.replaceOp(op, t.pack(rows));
    return success();
  }
};

struct Any : OpConversionPattern<tile::AnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::AnyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    Value any;
    for (Value x : t.unpack(adaptor.getX()))
      any = any ? arith::OrIOp::create(rewriter, t.loc, any, x).getResult() : x;
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(
        op, rewriter.getI1Type(), t.i32(-1), any, NVVM::VoteSyncKind::any);
    return success();
  }
};

struct Map : OpConversionPattern<tile::MapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MapOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    RankedTensorType type = op.getResult().getType();
    tile::LayoutAttrInterface layout = getLayout(type);
    SmallVector<Value> ofThread;
    if (!isa<tile::ColumnsAttr>(layout))
      ofThread.push_back(t.fragmentRow());
    if (!isa<tile::RowsAttr>(layout))
      ofThread.push_back(t.fragmentColumn());
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
      IRMapping mapping;
      mapping.map(body.getArguments(), arguments);
      for (Operation &inner : body.without_terminator())
        rewriter.clone(inner, mapping);
      registers.push_back(mapping.lookupOrDefault(
          cast<tile::YieldOp>(body.getTerminator()).getResult()));
    }
    rewriter.replaceOp(op, t.pack(registers));
    return success();
  }
};
} // namespace

void flash::populateRegisterPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<Elementwise>(converter, context);
  patterns.add<Any, Column, Constant, Truncate, Extend, Logarithm, Broadcast,
               Fold, Reduce, Map>(converter, context, /*benefit=*/2);
}
