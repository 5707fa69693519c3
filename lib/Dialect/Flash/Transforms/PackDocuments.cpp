//===- PackDocuments.cpp - Documents that lie behind each other -----------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/MaskNodes.h"
#include "flash/Analysis/ScoreDependence.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Flash/Utils/ScoreBody.h"
#include "flash/Machine/TargetAttr.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace flash {
#define GEN_PASS_DEF_PACKDOCUMENTS
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// Elements of all rows for each document that there may be. With shorter ones
/// tiles of documents would be mostly empty.
static constexpr int64_t rowsOfDocument = 128;

/// For fewer elements the choice was not measured.
static constexpr int64_t fewestElements = 8192;

/// Whether what a mask keeps depends on the head and the distance from key to
/// query alone, where there are as many keys as queries.
static bool isOfDistance(MaskAttrInterface mask) {
  enum { batch, head, query, key };
  MLIRContext *context = mask.getContext();
  AffineExpr dims[] = {
      getAffineDimExpr(batch, context), getAffineDimExpr(head, context),
      getAffineDimExpr(query, context),
      getAffineDimExpr(query, context) - getAffineDimExpr(key, context)};
  AffineExpr length = getAffineSymbolExpr(0, context);
  for (const MaskNode &node : getMaskNodes(mask)) {
    if (node.kind != MaskForm::Kind::Set)
      continue;
    for (AffineExpr constraint : node.set.getConstraints()) {
      AffineExpr ofDistance = simplifyAffineExpr(
          constraint.replaceDimsAndSymbols(dims, {length, length}), 4, 1);
      if (ofDistance.isFunctionOfDim(batch) ||
          ofDistance.isFunctionOfDim(query) || ofDistance.isFunctionOfSymbol(0))
        return false;
    }
  }
  return true;
}

/// The read of an id, at the batch if ids are of batches, and at `position`;
/// null if the value is something else.
static tensor::ExtractOp getRead(Value id, Block &region, Value position) {
  if (auto cast = id.getDefiningOp<arith::IndexCastOp>())
    id = cast.getIn();
  auto read = id.getDefiningOp<tensor::ExtractOp>();
  if (!read || !read.getType().isSignlessInteger())
    return {};
  SmallVector<Value> expected = {region.getArgument(1), position};
  bool isOfRow =
      llvm::equal(read.getIndices(), expected) ||
      llvm::equal(read.getIndices(), ArrayRef(expected).drop_front());
  return isOfRow ? read : tensor::ExtractOp();
}

/// The tensor of ids if the region keeps the keys with the query's id and no
/// others, and its scores are the same in the document as in the row.
static TypedValue<RankedTensorType> getIds(Region &score) {
  if (score.empty())
    return {};
  Block &region = score.front();
  auto yield = cast<YieldOp>(region.getTerminator());
  auto equal = yield.getKeep() ? yield.getKeep().getDefiningOp<arith::CmpIOp>()
                               : arith::CmpIOp();
  if (!equal || equal.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  Value query = region.getArgument(3), key = region.getArgument(4);
  tensor::ExtractOp ofQuery, ofKey;
  for (auto [x, y] : {std::pair(equal.getLhs(), equal.getRhs()),
                      std::pair(equal.getRhs(), equal.getLhs())})
    if (!ofQuery || !ofKey) {
      ofQuery = getRead(x, region, query);
      ofKey = getRead(y, region, key);
    }
  if (!ofQuery || !ofKey || ofQuery.getTensor() != ofKey.getTensor() ||
      ofQuery.getIndices().size() != ofKey.getIndices().size())
    return {};
  ScoreDependence ofScore = ScoreDependences(score).get(yield.getResult());
  if (ofScore.onBatch || ofScore.onQuery || ofScore.onKey ||
      ofScore.queries != 0 || ofScore.keys != 0)
    return {};
  auto ids = cast<TypedValue<RankedTensorType>>(ofQuery.getTensor());
  return ids.getType().getElementType().isInteger(1)
             ? TypedValue<RankedTensorType>()
             : ids;
}

/// Whether rows lie in memory as their dimensions say.
static bool liesInMemory(Value rows) {
  return !AddressOpInterface::ofRows(rows) &&
         !rows.getDefiningOp<DequantizeOp>();
}

namespace {
/// Makes the choice for one attention, or for its gradients.
class DocumentPacker {
public:
  DocumentPacker(AttentionOpInterface op, TypedValue<RankedTensorType> ids)
      : b(op.getLoc(), op), op(op), ids(ids) {}

  void run();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value dim(Value tensor, int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        b, b.getLoc(), tensor::getMixedSize(b, b.getLoc(), tensor, dim));
  }
  Value areEqual(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, x, y);
  }
  /// Whether sizes are such that the ids can be read; if not, the attention
  /// says why.
  Value emitFits();
  DocumentOffsetsOp emitOffsets();
  /// The results in packed rows.
  SmallVector<Value> pack(DocumentOffsetsOp offsets);

  ImplicitLocOpBuilder b;
  AttentionOpInterface op;
  TypedValue<RankedTensorType> ids;
};
} // namespace

Value DocumentPacker::emitFits() {
  Value query = op.getQuery(), key = op.getKey();
  Value fits = areEqual(dim(query, 2), dim(key, 2));
  auto add = [&](Value condition) {
    fits = arith::AndIOp::create(b, fits, condition);
  };
  add(areEqual(dim(query, 0), dim(key, 0)));
  int64_t rank = ids.getType().getRank();
  add(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, dim(ids, rank - 1),
                            dim(query, 2)));
  if (rank == 2)
    add(arith::CmpIOp::create(b, arith::CmpIPredicate::sge, dim(ids, 0),
                              dim(query, 0)));
  return fits;
}

DocumentOffsetsOp DocumentPacker::emitOffsets() {
  Value batches = dim(op.getQuery(), 0), length = dim(op.getQuery(), 2);
  Value elements = arith::MulIOp::create(b, batches, length);
  constexpr int64_t mostElements = 1 << 24;
  Value areFew = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, elements,
                                       constant(mostElements));
  Value fits = arith::AndIOp::create(b, emitFits(), areFew);
  Value count = arith::AddIOp::create(
      b, batches,
      arith::DivUIOp::create(b, elements, constant(rowsOfDocument)));
  Value read = arith::SelectOp::create(b, fits, batches, constant(0));
  Type i32 = b.getI32Type();
  return DocumentOffsetsOp::create(
      b, RankedTensorType::get({ShapedType::kDynamic}, i32),
      RankedTensorType::get({1}, i32), ids, read, length, count);
}

SmallVector<Value> DocumentPacker::pack(DocumentOffsetsOp offsets) {
  const Value parts[] = {dim(op.getQuery(), 0), dim(op.getQuery(), 2)};
  DenseMap<Value, UnpackOp> views;
  auto getView = [&](Value memory) {
    UnpackOp &view = views[memory];
    if (view)
      return view;
    auto type = cast<RankedTensorType>(memory.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = ShapedType::kDynamic;
    view = UnpackOp::create(
        b, type.clone(shape),
        RankedTensorType::get({ShapedType::kDynamic}, b.getI32Type()), memory,
        offsets.getOffsets(), offsets.getCount(), parts);
    return view;
  };
  auto packed = cast<AttentionOpInterface>(b.clone(*op));
  b.setInsertionPoint(packed);
  SmallVector<Value> rows = {op.getQuery(), op.getKey(), op.getValue()};
  if (auto grad = dyn_cast<AttentionGradOp>(*op))
    for (Value ofResult :
         {Value(grad.getOutput()), Value(grad.getLse()),
          Value(grad.getOutputGrad()), Value(grad.getLseGrad())})
      if (ofResult)
        rows.push_back(ofResult);
  for (OpOperand &operand : packed->getOpOperands())
    if (llvm::is_contained(rows, operand.get()))
      operand.set(getView(operand.get()).getView());
  Value lengths = getView(op.getQuery()).getLengths();
  auto finish = [&](auto attention) {
    attention.getQueryLengthsMutable().assign(lengths);
    attention.getKeyLengthsMutable().assign(lengths);
    attention.removeMultiplesAttr();
    auto yield = cast<YieldOp>(attention.getScore().front().getTerminator());
    yield.getKeepMutable().clear();
    eraseDeadOps(attention.getScore().front());
  };
  if (auto attention = dyn_cast<AttentionOp>(*packed))
    finish(attention);
  else
    finish(cast<AttentionGradOp>(*packed));
  b.setInsertionPointAfter(packed);
  SmallVector<Value> results;
  for (OpResult result : packed->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    // A sink's gradient is no tensor of rows.
    if (type.getRank() < 3) {
      results.push_back(result);
      continue;
    }
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = ShapedType::kDynamic;
    result.setType(type.clone(shape));
    bool isOfKeys = type.getRank() == 4 && isa<AttentionGradOp>(*op) &&
                    result.getResultNumber() > 0;
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(
        b, b.getLoc(), isOfKeys ? op.getKey() : op.getQuery());
    sizes.resize(3);
    if (type.getRank() == 4)
      sizes.push_back(b.getIndexAttr(type.getDimSize(3)));
    Value empty = tensor::EmptyOp::create(b, sizes, type.getElementType());
    empty = b.createOrFold<tensor::CastOp>(type, empty);
    results.push_back(PackOp::create(b, type, result, offsets.getOffsets(),
                                     empty, offsets.getCount(), parts));
  }
  return results;
}

void DocumentPacker::run() {
  DocumentOffsetsOp offsets = emitOffsets();
  Value element = tensor::ExtractOp::create(b, offsets.getCount(), constant(0));
  Value isPacked =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, element,
                            arith::ConstantIntOp::create(b, 0, 32));
  auto choice = scf::IfOp::create(b, op->getResultTypes(), isPacked,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  op->replaceAllUsesWith(choice.getResults());
  b.setInsertionPointToStart(choice.thenBlock());
  SmallVector<Value> packed = pack(offsets);
  b.setInsertionPointToEnd(choice.thenBlock());
  scf::YieldOp::create(b, packed);
  op->moveBefore(choice.elseBlock(), choice.elseBlock()->end());
  b.setInsertionPointToEnd(choice.elseBlock());
  scf::YieldOp::create(b, op->getResults());
}

namespace {
struct PackDocuments : flash::impl::PackDocumentsBase<PackDocuments> {
  using Base::Base;

  /// How many elements all rows of queries have together, if that is known.
  std::optional<int64_t> countElements(AttentionOpInterface op);
  TypedValue<RankedTensorType> getPackedIds(AttentionOpInterface op);

  void runOnOperation() override {
    if (!getMachine(getOperation()).isGpu())
      return;
    SmallVector<std::pair<AttentionOpInterface, TypedValue<RankedTensorType>>>
        ops;
    getOperation().walk([&](AttentionOpInterface op) {
      if (TypedValue<RankedTensorType> ids = getPackedIds(op))
        ops.emplace_back(op, ids);
    });
    for (auto [op, ids] : ops)
      DocumentPacker(op, ids).run();
  }
};
} // namespace

std::optional<int64_t> PackDocuments::countElements(AttentionOpInterface op) {
  SmallVector<int64_t> shape(op.getQuery().getType().getShape());
  auto argument = dyn_cast<BlockArgument>(op.getQuery());
  if (argument && argument.getArgNumber() < sizes.size()) {
    SmallVector<StringRef> parts;
    StringRef(sizes[argument.getArgNumber()]).split(parts, 'x');
    // flash-specialize says what is wrong with them.
    if (parts.size() != shape.size())
      return std::nullopt;
    for (auto [size, part] : llvm::zip_equal(shape, parts))
      if (int64_t known;
          ShapedType::isDynamic(size) && !part.getAsInteger(10, known))
        size = known;
  }
  if (ShapedType::isDynamic(shape[0]) || ShapedType::isDynamic(shape[2]))
    return std::nullopt;
  return shape[0] * shape[2];
}

TypedValue<RankedTensorType>
PackDocuments::getPackedIds(AttentionOpInterface op) {
  // In a branch it may have been chosen already.
  if (!isa<func::FuncOp>(op->getParentOp()) || !op.hasBatch() ||
      !op.hasHeads() || op.getSchedule() || op.getBlockSizes() ||
      op.getLengths() || op.getQueryLengths() || op.getKeyLengths() ||
      !isOfDistance(op.getMaskOrFull()) || !liesInMemory(op.getQuery()) ||
      !liesInMemory(op.getKey()) || !liesInMemory(op.getValue()))
    return {};
  auto grad = dyn_cast<AttentionGradOp>(op.getOperation());
  if (grad && !grad.getCaptured().empty())
    return {};
  for (Value operand : op->getOperands())
    if (operand.getDefiningOp<BlockMapOp>())
      return {};
  if (countElements(op).value_or(fewestElements) < fewestElements)
    return {};
  return getIds(op.getScore());
}
