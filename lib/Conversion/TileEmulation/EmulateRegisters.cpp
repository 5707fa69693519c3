//===- EmulateRegisters.cpp - Register tiles as plain tensors -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#include "flash/Dialect/Tile/IR/Reductions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash::tile;

using BodyBuilder =
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// A linalg.generic with one output, which starts as `init`.
static Value createGeneric(OpBuilder &b, Location loc, ValueRange inputs,
                           Value init, ArrayRef<AffineMap> maps,
                           ArrayRef<utils::IteratorType> iterators,
                           BodyBuilder body) {
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange elements) {
               linalg::YieldOp::create(b, loc, body(b, loc, elements));
             })
      .getResult(0);
}

static Value createEmpty(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(),
                                 type.getElementType());
}

static Value fill(OpBuilder &b, Location loc, RankedTensorType type,
                  Value scalar) {
  return linalg::FillOp::create(b, loc, scalar, createEmpty(b, loc, type))
      .getResult(0);
}

/// The type of a matrix whose columns are split into (block, lane, element):
/// the columns of a lane are those that it holds. The last block may be short.
static RankedTensorType splitColumns(RankedTensorType type) {
  int64_t lanes = 4, elements = 2;
  if (auto warpRows = dyn_cast<WarpRowsAttr>(type.getEncoding())) {
    lanes = warpRows.getLanes();
    elements = warpRows.getVector();
  }
  int64_t blocks = llvm::divideCeil(type.getDimSize(1), lanes * elements);
  return RankedTensorType::get({type.getDimSize(0), blocks, lanes, elements},
                               type.getElementType());
}

/// The value that changes nothing.
static Value emitNeutral(OpBuilder &b, Location loc, Reduction reduction) {
  return arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(getNeutralElement(reduction)));
}

/// The f32 nearest to `value` with 10 bits of mantissa, ties away from zero, as
/// `cvt.rna.tf32.f32` has it.
static Value roundToTf32(OpBuilder &b, Location loc, Value value) {
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t bits) -> Value {
    return arith::ConstantIntOp::create(b, loc, bits, 32);
  };
  Value bits = arith::BitcastOp::create(b, loc, i32, value);
  bits = arith::AddIOp::create(b, loc, bits, constant(0x1000));
  bits = arith::AndIOp::create(b, loc, bits, constant(~int64_t(0x1FFF)));
  Value rounded = arith::BitcastOp::create(b, loc, value.getType(), bits);
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(b, loc, isNaN, value, rounded);
}

/// A factor of a product.
static Value convertFactor(OpBuilder &b, Location loc, Value value, bool tf32) {
  if (!value.getType().isF32())
    return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  return tf32 ? roundToTf32(b, loc, value) : value;
}

namespace {

struct EmulateConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = dyn_cast_or_null<RankedTensorType>(
        getTypeConverter()->convertType(op.getType()));
    auto values = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!type || !values)
      return b.notifyMatchFailure(op, "is no dense constant");
    if (!values.isSplat()) {
      b.replaceOpWithNewOp<arith::ConstantOp>(op, values.reshape(type));
      return success();
    }
    // Rather than a global of that size.
    Value scalar = arith::ConstantOp::create(b, op.getLoc(),
                                             values.getSplatValue<TypedAttr>());
    b.replaceOp(op, fill(b, op.getLoc(), type, scalar));
    return success();
  }
};

/// Arithmetic that applies to each element.
struct EmulateElementwise : ConversionPattern {
  EmulateElementwise(const EmulationTypes &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}
  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &b) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op))
      return failure();
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertTypes(op->getResultTypes(), types)))
      return failure();
    b.replaceOp(op, b.create(op->getLoc(), op->getName().getIdentifier(),
                             operands, types, op->getAttrs()));
    return success();
  }
};

struct EmulateMmaAsync : EmulationPattern<MmaAsyncOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(MmaAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Type f32 = b.getF32Type();
    auto convert = [&](OpBuilder &b, Location loc, Value element) {
      return convertFactor(b, loc, element, op.getTf32());
    };
    Value none = arith::ConstantIntOp::create(b, loc, 0, 64);
    Value leaseOfA = none, leaseOfB = adaptor.getB()[1];
    Value a = adaptor.getA()[0];
    if (isa<SmemType>(op.getA().getType())) {
      leaseOfA = adaptor.getA()[1];
      calls.checkLease(b, op, leaseOfA);
      a = readTile(b, loc, a, op.getTransposeA(), f32, convert);
    } else {
      auto type = cast<RankedTensorType>(a.getType());
      AffineMap map = b.getMultiDimIdentityMap(2);
      a = createGeneric(
          b, loc, a, createEmpty(b, loc, type.clone(f32)), {map, map},
          {utils::IteratorType::parallel, utils::IteratorType::parallel},
          [&](OpBuilder &b, Location loc, ValueRange elements) {
            return convert(b, loc, elements[0]);
          });
    }
    calls.checkLease(b, op, leaseOfB);
    Value factor =
        readTile(b, loc, adaptor.getB()[0], op.getTransposeB(), f32, convert);

    Value sum;
    if (op.getC()) {
      sum = adaptor.getC()[0];
    } else {
      RankedTensorType type = op.getResult().getType().getValue();
      Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
      sum = fill(b, loc, RankedTensorType::get(type.getShape(), f32), zero);
    }
    AffineExpr row, column, inner;
    bindDims(b.getContext(), row, column, inner);
    SmallVector<AffineMap> maps = AffineMap::inferFromExprList(
        ArrayRef<SmallVector<AffineExpr, 4>>{
            {row, inner}, {inner, column}, {row, column}},
        b.getContext());
    Value result = createGeneric(
        b, loc, {a, factor}, sum, maps,
        {utils::IteratorType::parallel, utils::IteratorType::parallel,
         utils::IteratorType::reduction},
        [](OpBuilder &b, Location loc, ValueRange elements) -> Value {
          Value product =
              arith::MulFOp::create(b, loc, elements[0], elements[1]);
          return arith::AddFOp::create(b, loc, elements[2], product);
        });
    b.replaceOpWithMultiple(op, {{result, leaseOfA, leaseOfB}});
    return success();
  }
};

/// The product was computed when it was started. A GPU may read its operands
/// until now, so they must still be there.
struct EmulateMmaWait : EmulationPattern<MmaWaitOp> {
  using EmulationPattern::EmulationPattern;
  LogicalResult matchAndRewrite(MmaWaitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    ValueRange pending = adaptor.getPending();
    for (Value lease : pending.drop_front())
      calls.checkLease(b, op, lease);
    b.replaceOp(op, pending[0]);
    return success();
  }
};

struct EmulateBroadcast : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(BroadcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    Value source = adaptor.getSource();
    if (!isa<RankedTensorType>(source.getType())) {
      b.replaceOp(op, fill(b, loc, type, source));
      return success();
    }
    bool isOfColumns = isa<ColumnsAttr>(
        cast<RankedTensorType>(op.getSource().getType()).getEncoding());
    AffineMap vector = AffineMap::get(2, 0, b.getAffineDimExpr(isOfColumns));
    b.replaceOp(op,
                createGeneric(b, loc, source, createEmpty(b, loc, type),
                              {vector, b.getMultiDimIdentityMap(2)},
                              {utils::IteratorType::parallel,
                               utils::IteratorType::parallel},
                              [](OpBuilder &, Location, ValueRange elements) {
                                return elements[0];
                              }));
    return success();
  }
};

struct EmulateFold : OpConversionPattern<FoldOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(FoldOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    RankedTensorType parts = splitColumns(op.getX().getType());
    auto type = cast<RankedTensorType>(adaptor.getX().getType());
    auto whole = RankedTensorType::get(
        {type.getDimSize(0), parts.getNumElements() / type.getDimSize(0)},
        type.getElementType());
    Value x = adaptor.getX();
    if (type != whole)
      x = tensor::PadOp::create(
          b, op.getLoc(), whole, x,
          SmallVector<OpFoldResult>(2, b.getIndexAttr(0)),
          SmallVector<OpFoldResult>{
              b.getIndexAttr(0),
              b.getIndexAttr(whole.getDimSize(1) - type.getDimSize(1))},
          emitNeutral(b, op.getLoc(), op.getReduction()));
    x = tensor::ExpandShapeOp::create(
        b, op.getLoc(), parts, x,
        SmallVector<ReassociationIndices>{{0}, {1, 2, 3}});
    AffineExpr row, block, lane, element;
    bindDims(b.getContext(), row, block, lane, element);
    SmallVector<AffineMap> maps = AffineMap::inferFromExprList(
        ArrayRef<SmallVector<AffineExpr, 4>>{{row, block, lane, element},
                                             {row, lane}},
        b.getContext());
    auto parallel = utils::IteratorType::parallel,
         reduction = utils::IteratorType::reduction;
    b.replaceOp(
        op, createGeneric(b, op.getLoc(), x, adaptor.getInit(), maps,
                          {parallel, reduction, parallel, reduction},
                          [&](OpBuilder &b, Location loc, ValueRange elements) {
                            return combine(b, loc, op.getReduction(),
                                           elements[1], elements[0]);
                          }));
    return success();
  }
};

struct EmulateColumn : OpConversionPattern<ColumnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ColumnOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto x = cast<RankedTensorType>(adaptor.getX().getType());
    OpFoldResult one = b.getIndexAttr(1);
    Value column = tensor::ExtractSliceOp::create(
        b, op.getLoc(),
        RankedTensorType::get({x.getDimSize(0)}, x.getElementType()),
        adaptor.getX(),
        ArrayRef<OpFoldResult>{b.getIndexAttr(0), adaptor.getColumn()},
        ArrayRef<OpFoldResult>{b.getIndexAttr(x.getDimSize(0)), one},
        ArrayRef<OpFoldResult>{one, one});
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    if (column.getType() != type)
      column = arith::ExtFOp::create(b, op.getLoc(), type, column);
    b.replaceOp(op, column);
    return success();
  }
};

/// First neighbouring lanes, then the pairs, and so on.
struct EmulateReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReduceOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    int64_t numLanes = op.getX().getType().getDimSize(1);
    if (numLanes > 4) {
      Value none = emitNeutral(b, op.getLoc(), op.getReduction());
      b.replaceOp(
          op,
          createGeneric(
              b, op.getLoc(), adaptor.getX(), fill(b, op.getLoc(), type, none),
              {b.getMultiDimIdentityMap(2),
               AffineMap::get(2, 0, b.getAffineDimExpr(0))},
              {utils::IteratorType::parallel, utils::IteratorType::reduction},
              [&](OpBuilder &b, Location loc, ValueRange elements) {
                return combine(b, loc, op.getReduction(), elements[1],
                               elements[0]);
              }));
      return success();
    }
    OpFoldResult one = b.getIndexAttr(1);
    SmallVector<Value> lanes;
    for (int64_t lane = 0; lane < numLanes; ++lane)
      lanes.push_back(tensor::ExtractSliceOp::create(
          b, op.getLoc(), type, adaptor.getX(),
          ArrayRef<OpFoldResult>{b.getIndexAttr(0), b.getIndexAttr(lane)},
          ArrayRef<OpFoldResult>{b.getIndexAttr(type.getDimSize(0)), one},
          ArrayRef<OpFoldResult>{one, one}));
    SmallVector<AffineMap> maps(numLanes + 1, b.getMultiDimIdentityMap(1));
    b.replaceOp(
        op, createGeneric(
                b, op.getLoc(), lanes, createEmpty(b, op.getLoc(), type), maps,
                utils::IteratorType::parallel,
                [&](OpBuilder &b, Location loc, ValueRange elements) {
                  SmallVector<Value> values(elements.drop_back());
                  for (; values.size() > 1; values.resize(values.size() / 2))
                    for (size_t i = 0; i < values.size() / 2; ++i)
                      values[i] = combine(b, loc, op.getReduction(),
                                          values[2 * i], values[2 * i + 1]);
                  return values[0];
                }));
    return success();
  }
};

/// Over all rows, which are many warps'. What depends on the vote must be
/// right for every warp that says yes, so it is if all of them do.
struct EmulateAny : OpConversionPattern<AnyOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(AnyOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value none = arith::ConstantIntOp::create(b, loc, 0, 1);
    Value init = fill(b, loc, RankedTensorType::get({}, b.getI1Type()), none);
    SmallVector<utils::IteratorType> iterators(2,
                                               utils::IteratorType::reduction);
    Value any = createGeneric(
        b, loc, adaptor.getX(), init,
        {b.getMultiDimIdentityMap(2), AffineMap::get(2, 0, b.getContext())},
        iterators, [](OpBuilder &b, Location loc, ValueRange args) -> Value {
          return arith::OrIOp::create(b, loc, args[0], args[1]);
        });
    b.replaceOpWithNewOp<tensor::ExtractOp>(op, any, ValueRange{});
    return success();
  }
};

/// Ping-pong decides which warpgroup's products come first, and not what they
/// give: there is nothing to carry out where all warpgroups are one program.
template <typename Op> struct EmulatePingPong : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor,
                                ConversionPatternRewriter &b) const override {
    b.eraseOp(op);
    return success();
  }
};

struct EmulateMap : OpConversionPattern<MapOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(MapOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    ValueRange inputs = adaptor.getInputs();
    SmallVector<AffineMap> maps(inputs.size() + 1,
                                b.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> iterators(type.getRank(),
                                               utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        b, loc, type, inputs, createEmpty(b, loc, type), maps, iterators);
    b.replaceOp(op, generic.getResult(0));

    SmallVector<Type> types(inputs.size() + 1, type.getElementType());
    Block *block = b.createBlock(&generic.getRegion(), {}, types,
                                 SmallVector<Location>(types.size(), loc));
    SmallVector<Value> arguments(block->getArguments().drop_back());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      arguments.push_back(linalg::IndexOp::create(b, loc, dim));
    Block &body = op.getBody().front();
    auto yield = cast<YieldOp>(body.getTerminator());
    b.inlineBlockBefore(&body, block, block->end(), arguments);
    b.setInsertionPoint(yield);
    b.replaceOpWithNewOp<linalg::YieldOp>(yield, yield.getResult());
    return success();
  }
};

/// Row by row, where a GPU has those of a thread, of lanes and of warps.
struct EmulateReduceRows : OpConversionPattern<ReduceRowsOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReduceRowsOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = getTypeConverter()->convertType<RankedTensorType>(op.getType());
    Value none = emitNeutral(b, op.getLoc(), op.getReduction());
    AffineMap column = AffineMap::get(2, 0, b.getAffineDimExpr(1));
    b.replaceOp(
        op,
        createGeneric(
            b, op.getLoc(), adaptor.getX(), fill(b, op.getLoc(), type, none),
            {b.getMultiDimIdentityMap(2), column},
            {utils::IteratorType::reduction, utils::IteratorType::parallel},
            [&](OpBuilder &b, Location loc, ValueRange elements) {
              return combine(b, loc, op.getReduction(), elements[1],
                             elements[0]);
            }));
    return success();
  }
};

} // namespace

void flash::tile::populateRegisterEmulation(const EmulationTypes &types,
                                            EmulationCalls &calls,
                                            RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<EmulateColumn, EmulateConstant, EmulateElementwise,
               EmulateBroadcast, EmulateFold, EmulateReduce, EmulateAny,
               EmulateMap, EmulateReduceRows, EmulatePingPong<PingPongWaitOp>,
               EmulatePingPong<PingPongArriveOp>>(types, context);
  patterns.add<EmulateMmaAsync, EmulateMmaWait>(types, context, calls);
}
