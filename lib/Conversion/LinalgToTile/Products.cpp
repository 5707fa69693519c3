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
};
} // namespace

/// Three loops, including one reduction, over two matrices; or nothing.
static std::optional<Contraction> match(linalg::LinalgOp op) {
  if (op.getNumLoops() != 3 || op.getNumReductionLoops() != 1 ||
      op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return std::nullopt;
  Contraction found;
  for (unsigned loop = 0; loop < 3; ++loop)
    if (op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction)
      found.inner = loop;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() != 2 || !map.isProjectedPermutation())
      return std::nullopt;
  }
  found.init = op.getDpsInitOperand(0);
  AffineMap map = op.getMatchingIndexingMap(found.init);
  found.row = map.getDimPosition(0);
  found.column = map.getDimPosition(1);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
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
  auto fill = tile.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs()[0], m_AnyZeroFloat());
}

FailureOr<Value> BlockConverter::share(Value registers, Operation *user) {
  auto type = cast<RankedTensorType>(registers.getType());
  if (!isa<FloatType>(type.getElementType()) || type.getDimSize(1) % 16 != 0)
    return refuse(user, "a tile that goes from registers through shared memory "
                        "has elements of f16, bf16 or f32 and a multiple of 16 "
                        "columns, not ")
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

/// What is left of a tile of memory without columns of zeros behind it that its
/// last panel in shared memory has anyway, from which warpgroups read it
/// transposed; the tile itself if there are none.
static Value dropColumnsOfPanel(Value tile, scf::ForallOp loop) {
  auto pad = tile.getDefiningOp<tensor::PadOp>();
  if (!pad || !pad.hasZeroLowPad() || !pad.getConstantPaddingValue() ||
      !matchPattern(pad.getConstantPaddingValue(), m_AnyZeroFloat()))
    return tile;
  Value source = pad.getSource();
  RankedTensorType type = pad.getSourceType(), padded = pad.getResultType();
  auto finite = source.getDefiningOp<ZeroNonfiniteOp>();
  if (type.getRank() != 2 || !type.hasStaticShape() ||
      type.getDimSize(0) != padded.getDimSize(0) ||
      !isMemoryTile(finite ? finite.getTile() : source, loop))
    return tile;
  auto shared = tile::SmemType::get(type.getDimSize(0), type.getDimSize(1),
                                    type.getElementType());
  return padded.getDimSize(1) <=
                 static_cast<int64_t>(llvm::alignTo(type.getDimSize(1),
                                                    shared.getPanelColumns()))
             ? source
             : tile;
}

LogicalResult BlockConverter::convertProduct(linalg::LinalgOp op) {
  std::optional<Contraction> product = match(op);
  if (!product)
    return refuse(op, "a product is of two matrices, without a batch");
  FailureOr<RankedTensorType> type = getType(op->getResult(0), op);
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
      transposesA
          ? getSharedTile(dropColumnsOfPanel(product->a->get(), forall), op)
          : getFirstFactor(product->a->get(), product->transposedA, op);
  if (failed(first))
    return failure();
  // A product over columns is over all that a tile in shared memory has.
  Value factor = product->b->get();
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
      /*warpgroup=*/false);
  mapping.map(
      op->getResult(0),
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
