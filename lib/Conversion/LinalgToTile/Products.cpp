//===- Products.cpp - Sums over the inner dimension of two tiles ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "flash/Support/ElementType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
/// An operation on two matrices that reduces one dimension, in terms of its
/// loops.
struct Contraction {
  unsigned row, column, inner;
  OpOperand *a = nullptr, *b = nullptr, *init = nullptr;
  /// Whether the inner dimension of `a` is its first, and of `b` its second.
  bool transposedA = false, transposedB = false;
  /// A fourth loop goes over parts of the columns of `b`, which have rows of
  /// their own in the result: what is computed besides has three dimensions.
  std::optional<unsigned> part = {};
};
} // namespace

/// Three loops, including one reduction, over two matrices, or four where
/// columns have parts; or nothing.
static std::optional<Contraction> match(linalg::LinalgOp op) {
  if ((op.getNumLoops() != 3 && op.getNumLoops() != 4) ||
      op.getNumReductionLoops() != 1 || op.getNumDpsInputs() != 2 ||
      op.getNumDpsInits() != 1)
    return std::nullopt;
  Contraction found;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
      found.inner = loop;
  for (OpOperand &operand : op->getOpOperands())
    if (!op.getMatchingIndexingMap(&operand).isProjectedPermutation())
      return std::nullopt;
  found.init = op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(found.init);
  unsigned dims = map.getNumResults();
  if (op.getNumLoops() != dims + 1)
    return std::nullopt;
  if (dims == 3)
    found.part = map.getDimPosition(0);
  found.row = map.getDimPosition(dims - 2);
  found.column = map.getDimPosition(dims - 1);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (found.part && map.getNumResults() == 3 &&
        map ==
            AffineMap::get(4, 0,
                           {getAffineDimExpr(found.inner, map.getContext()),
                            getAffineDimExpr(*found.part, map.getContext()),
                            getAffineDimExpr(found.column, map.getContext())},
                           map.getContext())) {
      found.b = input;
      continue;
    }
    if (map.getNumResults() != 2)
      return std::nullopt;
    unsigned first = map.getDimPosition(0), second = map.getDimPosition(1);
    auto has = [&](unsigned loop) { return first == loop || second == loop; };
    if (!has(found.inner))
      return std::nullopt;
    if (has(found.row)) {
      found.a = input;
      found.transposedA = first == found.inner;
    } else {
      found.b = input;
      found.transposedB = second == found.inner;
    }
  }
  if (!found.a || !found.b)
    return std::nullopt;
  return found;
}

/// Whether the tile is filled with zeros.
static bool isZero(Value tile) {
  if (auto expanded = tile.getDefiningOp<tensor::ExpandShapeOp>())
    tile = expanded.getSrc();
  auto fill = tile.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

FailureOr<Value> BlockConverter::share(Value registers, Operation *user) {
  auto type = cast<RankedTensorType>(registers.getType());
  Type element = type.getElementType();
  if (!isa<FloatType>(element) ||
      type.getDimSize(1) % (element.isF32() ? 8 : 16) != 0)
    return refuse(user, "a tile that goes from registers through shared memory "
                        "has elements of f16 or bf16 and a multiple of 16 "
                        "columns, or of f32 and a multiple of 8, not ")
           << type;
  auto shape = tile::SmemType::get(type.getDimSize(0), type.getDimSize(1),
                                   type.getElementType());
  Value &known = shared[registers];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    // Where it is made: not in each iteration of the loops that read it.
    if (registers.getParentBlock() != b.getInsertionBlock())
      b.setInsertionPointAfterValue(registers);
    known = tile::ShareOp::create(b, user->getLoc(), shape, registers);
  }
  return known;
}

FailureOr<Value> BlockConverter::transpose(Value registers, Operation *user) {
  auto type = cast<RankedTensorType>(registers.getType());
  auto shape = llvm::to_vector(llvm::reverse(type.getShape()));
  RankedTensorType transposed = layouts.getType(shape, type.getElementType());
  if (!transposed)
    return refuseShape(RankedTensorType::get(shape, type.getElementType()),
                       user);
  FailureOr<Value> shared = share(registers, user);
  if (failed(shared))
    return failure();
  return tile::LoadOp::create(b, user->getLoc(), transposed, *shared,
                              /*transpose=*/true)
      .getResult();
}

FailureOr<Value> BlockConverter::getSharedTile(Value tile, Operation *user) {
  if (auto quantized = tile.getDefiningOp<DequantizeTileOp>())
    return dequantize(quantized);
  if (isMemoryTile(tile, forall) || tile.getDefiningOp<ZeroNonfiniteOp>()) {
    FailureOr<Value> copied = fetch(tile, user);
    if (failed(copied) || *copied)
      return copied;
  }
  FailureOr<RankedTensorType> type = getType(tile, user);
  if (failed(type))
    return failure();
  FailureOr<Value> registers = getRegisters(tile, *type, user);
  if (failed(registers))
    return failure();
  return share(*registers, user);
}

/// The slice of columns of a tile of the loop that `tile` is, from a panel of
/// that tile in shared memory on; null if it is none.
static tensor::ExtractSliceOp getColumnsOfTile(Value tile, scf::ForallOp loop) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.hasUnitStride() ||
      !loop->isAncestor(slice.getSource().getParentBlock()->getParentOp()))
    return {};
  RankedTensorType source = slice.getSourceType(), type = slice.getType();
  if (source.getRank() != 2 || !source.hasStaticShape() ||
      type.getRank() != 2 || !type.hasStaticShape() ||
      type.getDimSize(0) != source.getDimSize(0))
    return {};
  auto shared = tile::SmemType::get(source.getDimSize(0), source.getDimSize(1),
                                    source.getElementType());
  return isMultipleOf(slice.getMixedOffsets()[1], shared.getPanelColumns())
             ? slice
             : tensor::ExtractSliceOp();
}

FailureOr<BlockConverter::SharedColumns>
BlockConverter::getSharedColumns(Value tile, Operation *user) {
  tensor::ExtractSliceOp slice = getColumnsOfTile(tile, forall);
  // What is read for nothing else need not be read as a whole.
  if (slice && isMemoryTile(slice.getSource(), forall) &&
      !fetched.contains(slice.getSource()))
    slice = {};
  FailureOr<Value> whole =
      getSharedTile(slice ? slice.getSource() : tile, user);
  if (failed(whole))
    return failure();
  SharedColumns columns = {*whole, {}};
  if (!slice || isZeroInteger(slice.getMixedOffsets()[1]))
    return columns;
  // In front of the loops over tiles, which need not carry it.
  Value first = lookup(slice.getMixedOffsets()[1]);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(first);
  int64_t ofPanel = cast<tile::SmemType>(whole->getType()).getPanelColumns();
  columns.panel =
      arith::DivUIOp::create(b, user->getLoc(), first, constant(ofPanel));
  return columns;
}

FailureOr<Value> BlockConverter::getFirstFactor(Value tile, bool transposed,
                                                Operation *user) {
  if (auto quantized = tile.getDefiningOp<DequantizeTileOp>();
      quantized && !transposed)
    return dequantize(quantized);
  if (isMemoryTile(tile, forall) && !transposed) {
    FailureOr<Value> copied = fetch(tile, user);
    if (failed(copied) || *copied)
      return copied;
  }
  return getRegisters(tile, VectorOf::Rows, transposed, user);
}

LogicalResult BlockConverter::convertProduct(linalg::LinalgOp op) {
  std::optional<Contraction> product = match(op);
  if (!product)
    return refuse(op, "a product is of two matrices, without a batch");
  Value result = op->getResult(0), factor = product->b->get();
  if (product->part) {
    auto stack = op->hasOneUse()
                     ? dyn_cast<tensor::CollapseShapeOp>(*op->user_begin())
                     : tensor::CollapseShapeOp();
    auto parts = factor.getDefiningOp<tensor::ExpandShapeOp>();
    if (!stack || !parts || !isPartsOfColumns(parts) ||
        !isZero(product->init->get()) || !product->transposedA)
      return refuse(op, "a product with parts of columns, multiples of 16 "
                        "bytes, gives them one below the other, of a first "
                        "operand that is transposed, and adds nothing");
    result = stack.getResult();
    factor = parts.getSrc();
  }
  FailureOr<RankedTensorType> type = getType(result, op);
  if (failed(type))
    return failure();
  auto getElement = [](OpOperand *operand) {
    return getElementTypeOrSelf(operand->get().getType());
  };
  Type element = getElement(product->a);
  const ElementType *known = ElementType::find(element);
  if (!type->getElementType().isF32() || element != getElement(product->b) ||
      !known || !known->isFactor())
    return refuse(op, "a product is of two matrices of f16, bf16 or f32, and "
                      "sums in f32");
  ProductPrecisionAttr precision = b.getContext()
                                       ->getLoadedDialect<FlashDialect>()
                                       ->getPrecisionAttrHelper()
                                       .getAttr(op);
  if (isa<Float8E4M3FNType>(element)) {
    bool isInterleaved = precision && precision.getValue() == Precision::FP8;
    if (product->transposedA || !product->transposedB ||
        isInterleaved == isMemoryTile(product->a->get(), forall) ||
        !getSchedule(forall).has(ScheduleFeatures::SpecializeWarps))
      return refuse(op,
                    "a product of f8E4M3FN is computed by warps with roles, "
                    "over columns of both matrices, which "
                    "#flash.precision<fp8> interleaves where the first is "
                    "in registers, and there alone");
  }
  Value sum;
  if (!isZero(product->init->get())) {
    FailureOr<Value> init = getRegisters(product->init->get(), *type, op);
    if (failed(init))
      return failure();
    sum = *init;
  }
  // Warpgroups read 16-bit tiles transposed from shared memory.
  bool transposesA = product->transposedA && !element.isF32() &&
                     getSchedule(forall).has(ScheduleFeatures::SpecializeWarps);
  // Rows behind a tile in shared memory belong to another one.
  for (auto [operand, isAlongRows] : {std::pair(product->a, transposesA),
                                      {product->b, !product->transposedB}}) {
    auto type = cast<RankedTensorType>(operand->get().getType());
    if (isAlongRows && !element.isF32() &&
        type.getDimSize(0) % tile::MmaAsyncOp::rowMultiple != 0)
      return refuse(op, "a product of f16 or bf16 is over a multiple of ")
             << tile::MmaAsyncOp::rowMultiple << " rows, not the "
             << type.getDimSize(0) << " of " << type;
  }
  FailureOr<Value> first =
      transposesA ? getSharedTile(product->a->get(), op)
                  : getFirstFactor(product->a->get(), product->transposedA, op);
  if (failed(first))
    return failure();
  // A product over columns is over all that a tile in shared memory has.
  FailureOr<SharedColumns> second;
  if (!product->transposedB)
    second = getSharedColumns(factor, op);
  else if (FailureOr<Value> tile = getSharedTile(factor, op); succeeded(tile))
    second = SharedColumns{*tile, {}};
  if (failed(second))
    return failure();
  Value pending = tile::MmaAsyncOp::create(
      b, op.getLoc(), tile::PendingType::get(b.getContext(), *type), *first,
      second->tile, second->panel, sum, transposesA, product->transposedB,
      /*tf32=*/precision && precision.getValue() == Precision::TF32,
      /*warpgroup=*/false, /*divide_columns=*/product->part.has_value());
  mapping.map(
      result,
      tile::MmaWaitOp::create(b, op.getLoc(), *type, pending).getResult());
  return success();
}

LogicalResult BlockConverter::convertSumOfTerms(linalg::LinalgOp op) {
  std::optional<Contraction> sum = match(op);
  if (!sum || sum->transposedB)
    return refuse(op, "a sum is over the columns of one matrix and the rows of "
                      "another");
  FailureOr<RankedTensorType> type = getType(op->getResult(0), op);
  if (failed(type))
    return failure();
  FailureOr<Value> init = getRegisters(sum->init->get(), *type, op),
                   first = getRegisters(sum->a->get(), VectorOf::Rows,
                                        sum->transposedA, op);
  if (failed(init) || failed(first))
    return failure();
  FailureOr<SharedColumns> second = getSharedColumns(sum->b->get(), op);
  if (failed(second))
    return failure();

  Type f32 = b.getF32Type();
  int64_t terms = cast<RankedTensorType>(first->getType()).getDimSize(1);
  auto loop = scf::ForOp::create(b, op.getLoc(), constant(0), constant(terms),
                                 constant(1), *init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  Value column = tile::ColumnOp::create(
      b, op.getLoc(), layouts.getType(type->getDimSize(0), f32, VectorOf::Rows),
      *first, at);
  Value row = tile::LoadRowOp::create(b, op.getLoc(), type->clone(f32),
                                      second->tile, at, second->panel);
  BodyEmitter body = createBody(op, type->getShape(), VectorOf::Rows);
  for (auto [operand, value] : {std::pair(sum->a, column), {sum->b, row}})
    body.setArgument(operand->getOperandNumber(), value);
  body.setArgument(sum->init->getOperandNumber(), loop.getRegionIterArgs()[0]);
  body.setIndex(sum->inner, at);
  body.setIndex(sum->row, 0u);
  body.setIndex(sum->column, 1u);
  FailureOr<Value> next =
      body.emit(op.getBlock()->getTerminator()->getOperand(0));
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, op.getLoc(), *next);
  mapping.map(op->getResult(0), loop.getResult(0));
  return success();
}
