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
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace flash;
using namespace flash::tile;

Value flash::tile::createGeneric(ImplicitLocOpBuilder &b, ValueRange inputs,
                                 Value init, ArrayRef<AffineMap> maps,
                                 BodyBuilder body) {
  SmallVector<utils::IteratorType> iterators(maps.back().getNumDims(),
                                             utils::IteratorType::reduction);
  for (AffineExpr loop : maps.back().getResults())
    iterators[cast<AffineDimExpr>(loop).getPosition()] =
        utils::IteratorType::parallel;
  SmallVector<Type> types;
  if (isa<RankedTensorType>(init.getType()))
    types.push_back(init.getType());
  auto generic = linalg::GenericOp::create(
      b, types, inputs, init, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange elements) {
        ImplicitLocOpBuilder b(loc, nested);
        linalg::YieldOp::create(b, body(b, elements));
      });
  return types.empty() ? Value() : generic.getResult(0);
}

static Value createEmpty(ImplicitLocOpBuilder &b, RankedTensorType type) {
  return tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
}

static Value fill(ImplicitLocOpBuilder &b, RankedTensorType type,
                  Value scalar) {
  return linalg::FillOp::create(b, scalar, createEmpty(b, type)).getResult(0);
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
static Value emitNeutral(ImplicitLocOpBuilder &b, Reduction reduction) {
  return arith::ConstantOp::create(
      b, b.getF32FloatAttr(getNeutralElement(reduction)));
}

/// Adds the elements of `x` to the elements of `init` that the second map has
/// for them, or combines them in another way.
static Value reduce(ImplicitLocOpBuilder &b, Reduction reduction, Value x,
                    Value init, ArrayRef<AffineMap> maps) {
  return createGeneric(
      b, x, init, maps, [&](ImplicitLocOpBuilder &b, ValueRange elements) {
        return combine(b, b.getLoc(), reduction, elements[1], elements[0]);
      });
}

/// The f32 nearest to `value` with 10 bits of mantissa, ties away from zero, as
/// `cvt.rna.tf32.f32` has it.
static Value roundToTf32(ImplicitLocOpBuilder &b, Value value) {
  auto constant = [&](int64_t bits) -> Value {
    return arith::ConstantIntOp::create(b, bits, 32);
  };
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), value);
  bits = arith::AddIOp::create(b, bits, constant(0x1000));
  bits = arith::AndIOp::create(b, bits, constant(~int64_t(0x1FFF)));
  Value rounded = arith::BitcastOp::create(b, value.getType(), bits);
  Value isNaN =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(b, isNaN, value, rounded);
}

/// A factor of a product.
static Value convertFactor(ImplicitLocOpBuilder &b, Value value, bool tf32) {
  if (!value.getType().isF32())
    return arith::ExtFOp::create(b, b.getF32Type(), value);
  return tf32 ? roundToTf32(b, value) : value;
}

/// A column of a matrix, as a vector.
static Value extractColumn(ImplicitLocOpBuilder &b, Value x,
                           OpFoldResult column) {
  auto type = cast<RankedTensorType>(x.getType());
  OpFoldResult one = b.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      b, RankedTensorType::get({type.getDimSize(0)}, type.getElementType()), x,
      ArrayRef<OpFoldResult>{b.getIndexAttr(0), column},
      ArrayRef<OpFoldResult>{b.getIndexAttr(type.getDimSize(0)), one},
      ArrayRef<OpFoldResult>{one, one});
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
    ImplicitLocOpBuilder nested(op.getLoc(), b);
    Value scalar =
        arith::ConstantOp::create(nested, values.getSplatValue<TypedAttr>());
    b.replaceOp(op, fill(nested, type, scalar));
    return success();
  }
};

/// Arithmetic that applies to each element.
struct EmulateElementwise : ConversionPattern {
  EmulateElementwise(const EmulationTypes &types, EmulationCalls &calls,
                     MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context),
        calls(calls) {}
  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &b) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op))
      return failure();
    SmallVector<Type> types;
    if (failed(getTypeConverter()->convertTypes(op->getResultTypes(), types)))
      return failure();
    // Among all computations on a score this takes longest.
    auto type = dyn_cast<RankedTensorType>(types.front());
    if (isa<math::Exp2Op>(op) && type && type.getRank() == 2)
      EmulationBuilder(b, op, calls).note();
    b.replaceOp(op, b.create(op->getLoc(), op->getName().getIdentifier(),
                             operands, types, op->getAttrs()));
    return success();
  }
  EmulationCalls &calls;
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
    ImplicitLocOpBuilder nested(loc, b);
    auto generic = linalg::GenericOp::create(
        b, loc, type, inputs, createEmpty(nested, type), maps, iterators);
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

} // namespace

/// The tile's columns in parts, one below the other.
static Value stackColumns(EmulationBuilder &b, Value tile, int64_t parts) {
  auto type = cast<RankedTensorType>(tile.getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1) / parts;
  Value stack = createEmpty(
      b, RankedTensorType::get({parts * rows, columns}, type.getElementType()));
  auto indices = [&](ArrayRef<int64_t> values) {
    return getAsIndexOpFoldResult(b.getContext(), values);
  };
  SmallVector<OpFoldResult> sizes = indices({rows, columns}),
                            ones = indices({1, 1});
  for (int64_t part = 0; part < parts; ++part) {
    Value own = tensor::ExtractSliceOp::create(
        b, tile, indices({0, part * columns}), sizes, ones);
    stack = tensor::InsertSliceOp::create(
        b, own, stack, indices({part * rows, 0}), sizes, ones);
  }
  return stack;
}

/// The first operand of a product, in f32, and the lease of its tile, if it is
/// one of shared memory.
static std::pair<Value, Value> readFirst(EmulationBuilder &b, Type type,
                                         ValueRange operand, bool transpose,
                                         ConvertElement convert) {
  Type f32 = b.getF32Type();
  if (isa<SmemType>(type)) {
    b.checkLease(operand[1]);
    return {readTile(b, operand[0], transpose, f32, convert), operand[1]};
  }
  AffineMap map = b.getMultiDimIdentityMap(2);
  auto tensor = cast<RankedTensorType>(operand[0].getType());
  Value a = createGeneric(
      b, operand[0], createEmpty(b, tensor.clone(f32)), {map, map},
      [&](ImplicitLocOpBuilder &b, ValueRange x) { return convert(b, x[0]); });
  return {a, arith::ConstantIntOp::create(b, 0, 64)};
}

/// The sums of the products of two matrices of f32, added to what there is: a
/// matrix of `shape`.
static Value multiply(EmulationBuilder &b, Value a, Value factor, ValueRange c,
                      ArrayRef<int64_t> shape) {
  Type f32 = b.getF32Type();
  Value sum;
  if (!c.empty()) {
    sum = c[0];
  } else {
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    sum = fill(b, RankedTensorType::get(shape, f32), zero);
  }
  AffineExpr row, column, inner;
  bindDims(b.getContext(), row, column, inner);
  SmallVector<AffineMap> maps = AffineMap::inferFromExprList(
      ArrayRef<SmallVector<AffineExpr, 4>>{
          {row, inner}, {inner, column}, {row, column}},
      b.getContext());
  return createGeneric(
      b, {a, factor}, sum, maps,
      [](ImplicitLocOpBuilder &b, ValueRange elements) -> Value {
        Value product = arith::MulFOp::create(b, elements[0], elements[1]);
        return arith::AddFOp::create(b, elements[2], product);
      });
}

static SmallVector<Value> emulateMmaAsync(MmaAsyncOp op,
                                          ManyValues<MmaAsyncOp> operands,
                                          EmulationBuilder &b) {
  Type f32 = b.getF32Type();
  auto convert = [&](ImplicitLocOpBuilder &b, Value element) {
    return convertFactor(b, element, op.getTf32());
  };
  RankedTensorType type = op.getResult().getType().getValue();
  int64_t parts = op.getNumParts(), columnsOfParts = parts * type.getDimSize(1);
  auto [a, leaseOfA] = readFirst(b, op.getA().getType(), operands.getA(),
                                 op.getTransposeA(), convert);
  Value leaseOfB = operands.getB()[1];
  b.checkLease(leaseOfB);
  b.note(leaseOfB);
  Value columns = operands.getB()[0];
  if (!op.getTransposeB())
    columns = takeColumns(b, columns, op.getB().getType(), operands.getPanel(),
                          columnsOfParts);
  bool isInterleaved = !isa<SmemType>(op.getA().getType()) &&
                       op.getB().getType().getElementBytes() == 1;
  Value factor = isInterleaved
                     ? readInterleaved(b, columns, f32, convert)
                     : readTile(b, columns, op.getTransposeB(), f32, convert);
  Value result = multiply(b, a, factor, operands.getC(),
                          {type.getDimSize(0) / parts, columnsOfParts});
  if (parts > 1)
    result = stackColumns(b, result, parts);
  return {result, leaseOfA, leaseOfB};
}

static SmallVector<Value>
emulateMmaQuantized(MmaQuantizedOp op, ManyValues<MmaQuantizedOp> operands,
                    EmulationBuilder &b) {
  auto convert = [](ImplicitLocOpBuilder &b, Value element) {
    return convertFactor(b, element, /*tf32=*/false);
  };
  Value a = readFirst(b, op.getA().getType(), operands.getA(),
                      /*transpose=*/false, convert)
                .first;
  b.checkLease(operands.getB()[1]);
  b.note(operands.getB()[1]);
  SmemType tile = op.getB().getType();
  Value memory = memref::AllocOp::create(
      b,
      MemRefType::get({tile.getRows(), tile.getColumns()}, op.getFactorType()));
  dequantize(b, op.getScale(), operands.getB()[0], memory);
  Value factor =
      readTile(b, memory, op.getTransposeB(), b.getF32Type(), convert);
  return {
      multiply(b, a, factor, operands.getC(),
               cast<RankedTensorType>(op.getResult().getType()).getShape())};
}

/// The product was computed when it was started. A GPU may read its operands
/// until now, so they must still be there.
static SmallVector<Value>
emulateMmaWait(MmaWaitOp, ManyValues<MmaWaitOp> operands, EmulationBuilder &b) {
  ValueRange pending = operands.getPending();
  for (Value lease : pending.drop_front())
    b.checkLease(lease);
  b.note(pending.back());
  return {pending[0]};
}

static SmallVector<Value> emulateBroadcast(BroadcastOp op,
                                           BroadcastOp::Adaptor operands,
                                           EmulationBuilder &b) {
  RankedTensorType type = getEmulatedType(op.getType());
  Value source = operands.getSource();
  if (!isa<RankedTensorType>(source.getType()))
    return {fill(b, type, source)};
  bool isOfColumns = isa<ColumnsAttr>(
      cast<RankedTensorType>(op.getSource().getType()).getEncoding());
  AffineMap vector = AffineMap::get(2, 0, b.getAffineDimExpr(isOfColumns));
  return {createGeneric(
      b, source, createEmpty(b, type), {vector, b.getMultiDimIdentityMap(2)},
      [](ImplicitLocOpBuilder &, ValueRange elements) { return elements[0]; })};
}

static SmallVector<Value> emulateFold(FoldOp op, FoldOp::Adaptor operands,
                                      EmulationBuilder &b) {
  b.note();
  RankedTensorType parts = splitColumns(op.getX().getType());
  Value x = operands.getX();
  auto type = cast<RankedTensorType>(x.getType());
  auto whole = RankedTensorType::get(
      {type.getDimSize(0), parts.getNumElements() / type.getDimSize(0)},
      type.getElementType());
  if (type != whole) {
    OpFoldResult none = b.getIndexAttr(0),
                 behind =
                     b.getIndexAttr(whole.getDimSize(1) - type.getDimSize(1));
    x = tensor::PadOp::create(b, whole, x,
                              SmallVector<OpFoldResult>{none, none},
                              SmallVector<OpFoldResult>{none, behind},
                              emitNeutral(b, op.getReduction()));
  }
  x = tensor::ExpandShapeOp::create(
      b, parts, x, SmallVector<ReassociationIndices>{{0}, {1, 2, 3}});
  AffineExpr row, block, lane, element;
  bindDims(b.getContext(), row, block, lane, element);
  SmallVector<AffineMap> maps = AffineMap::inferFromExprList(
      ArrayRef<SmallVector<AffineExpr, 4>>{{row, block, lane, element},
                                           {row, lane}},
      b.getContext());
  return {reduce(b, op.getReduction(), x, operands.getInit(), maps)};
}

static SmallVector<Value> emulateColumn(ColumnOp op, ColumnOp::Adaptor operands,
                                        EmulationBuilder &b) {
  Value column = extractColumn(b, operands.getX(), operands.getColumn());
  RankedTensorType type = getEmulatedType(op.getType());
  if (column.getType() != type)
    column = arith::ExtFOp::create(b, type, column);
  return {column};
}

/// First neighbouring lanes, then the pairs, and so on.
static SmallVector<Value> emulateReduce(ReduceOp op, ReduceOp::Adaptor operands,
                                        EmulationBuilder &b) {
  RankedTensorType type = getEmulatedType(op.getType());
  int64_t numLanes = op.getX().getType().getDimSize(1);
  if (numLanes > 4) {
    Value none = emitNeutral(b, op.getReduction());
    return {reduce(b, op.getReduction(), operands.getX(), fill(b, type, none),
                   {b.getMultiDimIdentityMap(2),
                    AffineMap::get(2, 0, b.getAffineDimExpr(0))})};
  }
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < numLanes; ++lane)
    lanes.push_back(extractColumn(b, operands.getX(), b.getIndexAttr(lane)));
  SmallVector<AffineMap> maps(numLanes + 1, b.getMultiDimIdentityMap(1));
  return {createGeneric(b, lanes, createEmpty(b, type), maps,
                        [&](ImplicitLocOpBuilder &b, ValueRange elements) {
                          SmallVector<Value> values(elements.drop_back());
                          for (; values.size() > 1;
                               values.resize(values.size() / 2))
                            for (size_t i = 0; i < values.size() / 2; ++i)
                              values[i] =
                                  combine(b, b.getLoc(), op.getReduction(),
                                          values[2 * i], values[2 * i + 1]);
                          return values[0];
                        })};
}

/// Row by row, where a GPU has the rows of a thread, of lanes and of warps.
static SmallVector<Value> emulateReduceRows(ReduceRowsOp op,
                                            ReduceRowsOp::Adaptor operands,
                                            EmulationBuilder &b) {
  RankedTensorType type = getEmulatedType(op.getType());
  Value none = emitNeutral(b, op.getReduction());
  return {reduce(b, op.getReduction(), operands.getX(), fill(b, type, none),
                 {b.getMultiDimIdentityMap(2),
                  AffineMap::get(2, 0, b.getAffineDimExpr(1))})};
}

/// Over all rows, which are many warps'. What depends on the vote must be
/// right for every warp that says yes, so it is if all of them do.
static SmallVector<Value> emulateAny(AnyOp, AnyOp::Adaptor operands,
                                     EmulationBuilder &b) {
  Value none = arith::ConstantIntOp::create(b, 0, 1);
  Value init = fill(b, RankedTensorType::get({}, b.getI1Type()), none);
  Value any = createGeneric(
      b, operands.getX(), init,
      {b.getMultiDimIdentityMap(2), AffineMap::get(2, 0, b.getContext())},
      [](ImplicitLocOpBuilder &b, ValueRange args) -> Value {
        return arith::OrIOp::create(b, args[0], args[1]);
      });
  return {tensor::ExtractOp::create(b, any, ValueRange{})};
}

/// All warpgroups are one program, and the first one has the first row.
static SmallVector<Value> emulateHasRows(HasRowsOp, HasRowsOp::Adaptor operands,
                                         EmulationBuilder &b) {
  return {arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                operands.getRows(),
                                arith::ConstantIndexOp::create(b, 0))};
}

/// Ping-pong decides which warpgroup's products come first, and not what they
/// give: there is nothing to carry out where all warpgroups are one program.
template <typename Op>
static SmallVector<Value> emulatePingPong(Op, typename Op::Adaptor,
                                          EmulationBuilder &b) {
  b.note();
  return {};
}

void flash::tile::populateRegisterEmulation(const EmulationTypes &types,
                                            EmulationCalls &calls,
                                            RewritePatternSet &patterns) {
  patterns.add<EmulateConstant, EmulateMap>(types, patterns.getContext());
  patterns.add<EmulateElementwise>(types, calls, patterns.getContext());
  addEmulations(patterns, types, calls, emulateMmaAsync, emulateMmaQuantized,
                emulateMmaWait, emulateBroadcast, emulateFold, emulateColumn,
                emulateReduce, emulateReduceRows, emulateAny, emulateHasRows,
                emulatePingPong<PingPongWaitOp>,
                emulatePingPong<PingPongArriveOp>);
}
