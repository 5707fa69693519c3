//===- Generics.cpp - Operations on each element, and reductions ----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "flash/Dialect/Tile/IR/Reductions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

LogicalResult BlockConverter::convertFill(linalg::FillOp fill) {
  // A fill without a layout, such as zeros that a product starts from, needs no
  // value.
  if (RankedTensorType type = layouts.getType(fill.getResult(0)))
    mapping.map(fill.getResult(0),
                emitSplat(b, fill.getLoc(), lookup(fill.getInputs()[0]), type));
  return success();
}

/// What a vector is of that has the elements of the loop `dim` of an operation
/// that goes through matrices by the loops `rows` and `columns`.
static VectorOf getVectorOf(unsigned dim, unsigned columns) {
  return dim == columns ? VectorOf::Columns : VectorOf::Rows;
}

FailureOr<Value> BlockConverter::getOperand(linalg::LinalgOp op,
                                            OpOperand &operand, unsigned rows,
                                            unsigned columns) {
  Value tile = operand.get();
  if (!isa<RankedTensorType>(tile.getType()))
    return lookup(tile);
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation() || map.getNumResults() == 0)
    return refuse(op, "an operand needs an element for each element, each row "
                      "or each column of the tile");
  // In warp rows, memory's values for columns are read as a matrix, and values
  // of 16 bits for rows as f32: no layout holds them.
  bool isOfColumns = map.getDimPosition(0) == columns;
  auto type = cast<RankedTensorType>(tile.getType());
  if (layouts.isWarpRows() && map.getNumResults() == 1 &&
      (isOfColumns || !type.getElementType().isF32()) &&
      isMemoryTile(tile, forall)) {
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    SmallVector<int64_t> shape = {ranges[rows]};
    if (isOfColumns)
      shape.push_back(ranges[columns]);
    RankedTensorType matrix = layouts.getType(shape, b.getF32Type());
    return matrix ? read(tile, matrix, op, /*transposed=*/false)
                  : FailureOr<Value>(refuseShape(type, op));
  }
  bool transposed =
      map.getNumResults() == 2 && map.getDimPosition(0) == columns;
  return getRegisters(tile, ::getVectorOf(map.getDimPosition(0), columns),
                      transposed, op);
}

LogicalResult BlockConverter::setArguments(BodyEmitter &body,
                                           linalg::LinalgOp op,
                                           ArrayRef<OpOperand *> operands,
                                           unsigned rows, unsigned columns) {
  for (OpOperand *operand : operands) {
    if (!op.payloadUsesValueFromOperand(operand))
      continue;
    FailureOr<Value> value = getOperand(op, *operand, rows, columns);
    if (failed(value))
      return failure();
    body.setArgument(operand->getOperandNumber(), *value);
  }
  return success();
}

BodyEmitter BlockConverter::createBody(linalg::LinalgOp op,
                                       ArrayRef<int64_t> shape, VectorOf of) {
  return BodyEmitter(
      b, op, layouts, shape, of, [&](Value value) { return lookup(value); },
      [&](OpBuilder &builder, Operation &inner, IRMapping &map) {
        return copyScalar(builder, inner, map);
      });
}

LogicalResult BlockConverter::convertElementwise(linalg::LinalgOp op) {
  if (op.getNumLoops() < 1 || op.getNumLoops() > 2)
    return refuse(op, "tiles are matrices and vectors, which take one loop or "
                      "two");
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    OpOperand *init = op.getDpsInitOperand(i);
    if (!op.getMatchingIndexingMap(init).isIdentity())
      return refuse(op, "it writes with its dimensions in another order");
    FailureOr<RankedTensorType> type = getType(result, op);
    if (failed(type))
      return failure();
    bool isVector = type->getRank() == 1;
    VectorOf of = isa<tile::ColumnsAttr>(type->getEncoding())
                      ? VectorOf::Columns
                      : VectorOf::Rows;
    // A vector of columns goes along the second loop that there is not.
    unsigned rows = isVector && of == VectorOf::Columns ? 1 : 0;
    unsigned columns = 1 - rows;
    BodyEmitter body = createBody(op, type->getShape(), of);
    SmallVector<OpOperand *> operands;
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(&operand);
    if (failed(setArguments(body, op, operands, rows, columns)))
      return failure();
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      body.setIndex(loop, loop);
    FailureOr<Value> value =
        body.emit(op.getBlock()->getTerminator()->getOperand(i));
    if (failed(value))
      return failure();
    mapping.map(result, *value);
  }
  return success();
}

namespace {
/// How a reduction combines the values so far with one more.
struct Combiner {
  tile::Reduction kind;
  Operation *op;
  Value element; ///< Of the body, what it adds.
};
} // namespace

/// The combiner of one of the reduction's results, or nothing.
static std::optional<Combiner> getCombiner(linalg::LinalgOp op,
                                           unsigned number) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(number);
  BlockArgument sum = op.getRegionOutputArgs()[number];
  Operation *combiner = yielded.getDefiningOp();
  std::optional<tile::Reduction> kind =
      combiner ? tile::getReduction(combiner) : std::nullopt;
  // Nothing else sees how far a reduction is.
  if (!kind || !combiner->hasOneUse() || !sum.hasOneUse() ||
      *sum.getUsers().begin() != combiner)
    return std::nullopt;
  unsigned own = sum.use_begin()->getOperandNumber();
  return Combiner{*kind, combiner, combiner->getOperand(1 - own)};
}

FailureOr<Value> BlockConverter::convertReduction(linalg::LinalgOp op,
                                                  unsigned number) {
  OpOperand *start = op.getDpsInitOperand(number);
  AffineMap map = op.getMatchingIndexingMap(start);
  std::optional<Combiner> combiner;
  if (op.getNumLoops() == 2 && op.getNumReductionLoops() == 1 &&
      map.getNumResults() == 1)
    combiner = getCombiner(op, number);
  if (!combiner)
    return refuse(op, "a reduction is of the rows or the columns of a matrix, "
                      "by arith.addf, mulf, maxnumf, minnumf, maximumf or "
                      "minimumf, each result by itself");
  FailureOr<RankedTensorType> type = getType(op->getResult(number), op);
  if (failed(type))
    return failure();
  if (!type->getElementType().isF32())
    return refuse(op, "a reduction combines elements of f32");
  // The matrices say which loop goes along rows.
  unsigned kept = map.getDimPosition(0), reduced = 1 - kept;
  bool isOfRows = tile::isOfRows(*type);
  unsigned rows = isOfRows ? kept : reduced,
           columns = isOfRows ? reduced : kept;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<int64_t> shape = {ranges[rows], ranges[columns]};
  RankedTensorType matrix = layouts.getType(shape, b.getF32Type());
  if (!matrix)
    return refuseShape(RankedTensorType::get(shape, b.getF32Type()), op);
  BodyEmitter body = createBody(op, shape, VectorOf::Rows);
  if (failed(setArguments(body, op, op.getDpsInputOperands(), rows, columns)))
    return failure();
  body.setIndex(rows, 0u);
  body.setIndex(columns, 1u);
  FailureOr<Value> elements = body.emit(combiner->element);
  if (failed(elements))
    return failure();

  Location loc = op.getLoc();
  double neutral = tile::getNeutralElement(combiner->kind);
  Value result;
  if (isOfRows) {
    RankedTensorType lanes = tile::getLanesType(*type);
    Value none = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(lanes, b.getF32FloatAttr(neutral)));
    Value folded =
        tile::FoldOp::create(b, loc, lanes, combiner->kind, *elements, none);
    result = tile::ReduceOp::create(b, loc, *type, combiner->kind, folded);
  } else {
    result =
        tile::ReduceRowsOp::create(b, loc, *type, combiner->kind, *elements);
  }
  // Start from what the reduction starts from.
  APFloat known(0.0f);
  auto fill = start->get().getDefiningOp<linalg::FillOp>();
  bool isNeutral = fill &&
                   matchPattern(fill.getInputs()[0], m_ConstantFloat(&known)) &&
                   known.convertToDouble() == neutral;
  if (isNeutral)
    return result;
  FailureOr<Value> first = getRegisters(start->get(), *type, op);
  if (failed(first))
    return failure();
  return b
      .create(loc, combiner->op->getName().getIdentifier(), {*first, result},
              *type, combiner->op->getAttrs())
      ->getResult(0);
}

LogicalResult BlockConverter::convertReduction(linalg::LinalgOp op) {
  for (OpResult result : op->getResults()) {
    FailureOr<Value> reduced = convertReduction(op, result.getResultNumber());
    if (failed(reduced))
      return failure();
    mapping.map(result, *reduced);
  }
  return success();
}

LogicalResult BlockConverter::convertTensorArithmetic(Operation &op) {
  FailureOr<RankedTensorType> type = getType(op.getResult(0), &op);
  if (failed(type))
    return failure();
  if (!isTileArithmetic(&op))
    return refuse(&op, "arithmetic on tiles is of f16, bf16, f32 and i1");
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    if (!isa<RankedTensorType>(operand.getType())) {
      operands.push_back(lookup(operand));
      continue;
    }
    FailureOr<Value> registers = getRegisters(
        operand, type->clone(getElementTypeOrSelf(operand.getType())), &op);
    if (failed(registers))
      return failure();
    operands.push_back(*registers);
  }
  mapping.map(op.getResult(0),
              b.create(op.getLoc(), op.getName().getIdentifier(), operands,
                       *type, op.getAttrs())
                  ->getResult(0));
  return success();
}

LogicalResult BlockConverter::convertLinalg(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics())
    return refuse(op, "it works on memory");
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation()))
    return convertFill(fill);
  for (Value result : op->getResults())
    if (cast<RankedTensorType>(result.getType()).getRank() == 0)
      return refuse(op, "it gives one element; tiles have rows");
  if (op.getNumReductionLoops() == 0)
    return convertElementwise(op);
  if (op.getNumLoops() >= 3 &&
      (isa<linalg::ContractionOpInterface>(op.getOperation()) ||
       linalg::isaContractionOpInterface(op)))
    return convertProduct(op);
  if (op.getNumLoops() == 3)
    return convertSumOfTerms(op);
  return convertReduction(op);
}
