//===- RaiseAttention.cpp - Recognise attention written in linalg ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Analysis/ScoreAnalysis.h"
#include "flash/Dialect/Flash/IR/Flash.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Support/HeadDim.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/FormatVariadic.h"

namespace flash {
#define GEN_PASS_DEF_RAISEATTENTION
#include "flash/Dialect/Flash/Transforms/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
/// The heads, which are also the batch where there is but one batch dimension.
constexpr unsigned headVar = 1;
/// The head dimension, after the variables (b, h, i, j, e).
constexpr unsigned headDimVar = 5;

/// A tensor and the variable that runs along each of its dimensions.
struct NamedTensor {
  Value value;
  SmallVector<unsigned> vars;

  RankedTensorType getType() const {
    return cast<RankedTensorType>(value.getType());
  }
  int64_t sizeOf(unsigned var) const {
    return getType().getDimSize(llvm::find(vars, var) - vars.begin());
  }
  /// Whether `order` has the same variables as this tensor.
  bool isOver(ArrayRef<unsigned> order) const {
    return std::is_permutation(vars.begin(), vars.end(), order.begin(),
                               order.end());
  }
};

struct Match {
  NamedTensor query, key, value, output;
  /// The variables among b and h that are used, in this order.
  SmallVector<unsigned> batch;
  double scale = 1;
  MaskFormula kept = MaskFormula::always();

  SmallVector<unsigned> batchAnd(unsigned row, unsigned column) const {
    SmallVector<unsigned> vars(batch);
    vars.append({row, column});
    return vars;
  }
};

/// `operand` of `op` named by the variables of the loops of `op`.
NamedTensor nameOperand(linalg::LinalgOp op, OpOperand &operand,
                        ArrayRef<unsigned> loopVars) {
  NamedTensor tensor{operand.get(), {}};
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
    tensor.vars.push_back(loopVars[cast<AffineDimExpr>(expr).getPosition()]);
  return tensor;
}

/// Names the loops of `op`, which multiplies its operand number `probabilities`
/// with the values. Fills in `match.batch`.
std::optional<SmallVector<unsigned>>
nameLoops(linalg::LinalgOp op, unsigned probabilities, Match &match) {
  auto loopsOf = [&](OpOperand *operand) {
    SmallVector<unsigned> loops;
    for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults())
      loops.push_back(cast<AffineDimExpr>(expr).getPosition());
    return loops;
  };
  SmallVector<unsigned> inProbabilities =
      loopsOf(op.getDpsInputOperand(probabilities));
  SmallVector<unsigned> inValues =
      loopsOf(op.getDpsInputOperand(1 - probabilities));
  SmallVector<unsigned> inOutput = loopsOf(op.getDpsInitOperand(0));

  SmallVector<unsigned> batchLoops, rowLoops, columnLoops;
  for (unsigned loop : inOutput) {
    bool probability = llvm::is_contained(inProbabilities, loop);
    bool value = llvm::is_contained(inValues, loop);
    if (!probability && !value)
      return std::nullopt;
    (probability && value ? batchLoops
     : probability        ? rowLoops
                          : columnLoops)
        .push_back(loop);
  }
  if (batchLoops.size() > 2 || rowLoops.size() != 1 || columnLoops.size() != 1)
    return std::nullopt;
  // One loop is left, the reduction.
  SmallVector<unsigned> vars(op.getNumLoops(), keyVar);
  vars[rowLoops[0]] = queryVar;
  vars[columnLoops[0]] = columnVar;
  for (auto [position, loop] : llvm::enumerate(batchLoops)) {
    // A single batch dimension is taken to be heads.
    vars[loop] = 2 - batchLoops.size() + position;
    match.batch.push_back(vars[loop]);
  }
  return vars;
}

/// Names the operands of the product that `scores` are elements of.
bool nameScoreOperands(const Element &scores, Match &match) {
  linalg::LinalgOp op = scores.product;
  SmallVector<unsigned> loopVars(op.getNumLoops(), headDimVar);
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  for (auto [loop, expr] : llvm::zip_equal(map.getResults(), scores.at)) {
    auto var = dyn_cast<AffineDimExpr>(expr);
    if (!var)
      return false;
    loopVars[cast<AffineDimExpr>(loop).getPosition()] = var.getPosition();
  }
  match.query = nameOperand(op, *op.getDpsInputOperand(0), loopVars);
  match.key = nameOperand(op, *op.getDpsInputOperand(1), loopVars);
  if (llvm::is_contained(match.query.vars, keyVar))
    std::swap(match.query, match.key);
  return match.query.isOver(match.batchAnd(queryVar, headDimVar)) &&
         match.key.isOver(match.batchAnd(keyVar, headDimVar));
}

/// Whether `type` is one of an operand or a result of flash.attention.
bool isAttentionType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.getEncoding() &&
         isa<Float16Type, BFloat16Type, Float32Type>(tensor.getElementType());
}

/// Whether an attention can stand in for `root` and for `tensors`: they have
/// types that it computes, and nothing but their own ops reads `tensors`.
bool canBeReplaced(Operation *root, ArrayRef<Value> tensors) {
  SmallPtrSet<Operation *, 16> readers = {root};
  for (Value tensor : tensors)
    readers.insert(tensor.getDefiningOp());
  return llvm::all_of(tensors, [&](Value tensor) {
    return isAttentionType(tensor.getType()) &&
           tensor.getParentBlock() == root->getBlock() &&
           llvm::all_of(tensor.getUsers(), [&](Operation *user) {
             return readers.contains(user);
           });
  });
}

/// Matches `op` as the product of probabilities, its operand of that number,
/// and values.
std::optional<Match> matchAttention(linalg::LinalgOp op,
                                    unsigned probabilities) {
  Match match;
  std::optional<SmallVector<unsigned>> loopVars =
      nameLoops(op, probabilities, match);
  if (!loopVars)
    return std::nullopt;
  NamedTensor weights =
      nameOperand(op, *op.getDpsInputOperand(probabilities), *loopVars);
  SmallVector<AffineExpr> at;
  for (unsigned var : weights.vars)
    at.push_back(getAffineDimExpr(var, op.getContext()));

  ScoreAnalysis analysis(op.getContext());
  std::optional<Element> element = analysis.evaluate(weights.value, at);
  if (!element || element->kind != Element::Probability ||
      !analysis.accumulatesFromZero(op) ||
      !canBeReplaced(op, analysis.getScoreTensors()) ||
      !nameScoreOperands(*element, match))
    return std::nullopt;
  match.value =
      nameOperand(op, *op.getDpsInputOperand(1 - probabilities), *loopVars);
  // The probabilities times themselves would have to be kept.
  if (llvm::is_contained(analysis.getScoreTensors(), match.value.value))
    return std::nullopt;
  match.output = nameOperand(op, *op.getDpsInitOperand(0), *loopVars);
  match.output.value = op->getResult(0);
  for (const NamedTensor &tensor :
       {match.query, match.key, match.value, match.output})
    if (!isAttentionType(tensor.value.getType()))
      return std::nullopt;
  match.scale = element->scale;
  match.kept = element->kept;
  return match;
}

/// What in the sizes of `match` flash.attention does not take, if anything.
std::optional<std::string> findUnsupportedSize(const Match &match) {
  for (auto [name, size] :
       {std::pair("head dimension", match.query.sizeOf(headDimVar)),
        std::pair("head dimension", match.key.sizeOf(headDimVar)),
        std::pair("value head dimension", match.value.sizeOf(columnVar))}) {
    if (ShapedType::isDynamic(size))
      return std::string(name) + " must be static";
    if (!isHeadDim(size))
      return llvm::formatv("{0} must be a multiple of {1} from {1} to {2}, got "
                           "{3}",
                           name, headDimMultiple, largestHeadDim, size)
          .str();
  }
  for (unsigned var : match.batch)
    if (match.query.sizeOf(var) == 0 || match.key.sizeOf(var) == 0)
      return std::string("needs at least one head");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// The operand of `op` if all that `op` does is to apply `CastOp` to it.
template <typename CastOp> Value getCastSource(Operation *op) {
  if (auto cast = dyn_cast_or_null<CastOp>(op))
    return cast.getIn();
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumDpsInputs() != 1 ||
      linalgOp.getNumDpsInits() != 1 || !linalgOp.hasPureTensorSemantics() ||
      !llvm::all_of(linalgOp.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return {};
  Block *body = linalgOp.getBlock();
  auto cast = body->getTerminator()->getOperand(0).getDefiningOp<CastOp>();
  if (!cast || cast.getIn() != body->getArgument(0))
    return {};
  return linalgOp.getDpsInputs()[0];
}

/// Drops widening casts and transposes in front of `tensor`.
NamedTensor skipCastsAndTransposes(NamedTensor tensor) {
  while (Operation *op = tensor.value.getDefiningOp()) {
    if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      SmallVector<unsigned> vars(tensor.vars.size());
      for (auto [var, dim] :
           llvm::zip_equal(tensor.vars, transpose.getPermutation()))
        vars[dim] = var;
      tensor = {transpose.getInput(), vars};
      continue;
    }
    Value source = getCastSource<arith::ExtFOp>(op);
    if (!source || !isAttentionType(source.getType()))
      break;
    tensor.value = source;
  }
  return tensor;
}

/// A key or value whose heads are each repeated for a group of query heads.
struct GroupedTensor {
  NamedTensor tensor;
  int64_t groupSize;
};

/// What `tensor` repeats, if it is the collapse of a broadcast that inserted a
/// dimension after the heads.
std::optional<GroupedTensor> skipRepeatedHeads(const NamedTensor &tensor) {
  auto collapse = tensor.value.getDefiningOp<tensor::CollapseShapeOp>();
  if (!collapse)
    return std::nullopt;
  auto broadcast = collapse.getSrc().getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast || broadcast.getDimensions().size() != 1)
    return std::nullopt;
  int64_t groupDim = broadcast.getDimensions()[0];
  auto headPosition = llvm::find(tensor.vars, headVar) - tensor.vars.begin();
  ReassociationIndices headGroup = {groupDim - 1, groupDim};
  for (auto [position, group] :
       llvm::enumerate(collapse.getReassociationIndices()))
    if (static_cast<int64_t>(position) == headPosition ? group != headGroup
                                                       : group.size() != 1)
      return std::nullopt;
  int64_t groupSize = collapse.getSrcType().getDimSize(groupDim);
  if (ShapedType::isDynamic(groupSize))
    return std::nullopt;
  return GroupedTensor{{broadcast.getInput(), tensor.vars}, groupSize};
}

/// The smallest of f16, bf16 and f32 that holds both types exactly.
Type getWiderType(Type lhs, Type rhs) {
  return lhs == rhs ? lhs : Float32Type::get(lhs.getContext());
}

struct Rewriter {
  OpBuilder &b;
  Location loc;

  /// `tensor` with its dimensions in the order of the variables `order`.
  Value transpose(const NamedTensor &tensor, ArrayRef<unsigned> order) {
    if (ArrayRef(tensor.vars) == order)
      return tensor.value;
    SmallVector<int64_t> permutation;
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, tensor.value);
    SmallVector<OpFoldResult> permuted;
    for (unsigned var : order) {
      permutation.push_back(llvm::find(tensor.vars, var) - tensor.vars.begin());
      permuted.push_back(sizes[permutation.back()]);
    }
    Value init = tensor::EmptyOp::create(b, loc, permuted,
                                         tensor.getType().getElementType());
    return linalg::TransposeOp::create(b, loc, tensor.value, init, permutation)
        ->getResult(0);
  }

  /// `tensor` as an operand of an attention on elements of type `elementType`.
  Value operand(const NamedTensor &tensor, ArrayRef<unsigned> order,
                Type elementType) {
    Value value = transpose(tensor, order);
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() != elementType)
      value = arith::ExtFOp::create(b, loc, type.clone(elementType), value);
    if (type.getRank() > 2)
      return value;
    auto expanded = RankedTensorType::get(
        {1, type.getDimSize(0), type.getDimSize(1)}, elementType);
    return tensor::ExpandShapeOp::create(
        b, loc, expanded, value,
        SmallVector<ReassociationIndices>{{0, 1}, {2}});
  }

  /// The result of an attention as a tensor of `type` over `vars`.
  Value result(Value output, const Match &match, RankedTensorType type) {
    NamedTensor tensor{output, match.batchAnd(queryVar, columnVar)};
    if (match.batch.empty())
      tensor.value = tensor::CollapseShapeOp::create(
          b, loc, output, SmallVector<ReassociationIndices>{{0, 1}, {2}});
    Value value = transpose(tensor, match.output.vars);
    // The operands may say less about the shape than the result did.
    if (value.getType() != type)
      value = tensor::CastOp::create(b, loc, type, value);
    return value;
  }
};

/// Erases `op`, and all that nothing needs any more without it.
void eraseWithDeadOperands(Operation *op) {
  llvm::SetVector<Operation *> worklist;
  worklist.insert(op);
  while (!worklist.empty()) {
    Operation *dead = worklist.pop_back_val();
    if (!isOpTriviallyDead(dead))
      continue;
    dead->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp())
          if (!dead->isAncestor(source))
            worklist.insert(source);
    });
    dead->erase();
  }
}

void raise(linalg::LinalgOp root, const Match &match) {
  NamedTensor query = skipCastsAndTransposes(match.query),
              key = skipCastsAndTransposes(match.key),
              value = skipCastsAndTransposes(match.value);
  // An attention repeats the heads of key and value by itself.
  std::optional<GroupedTensor> groupedKey = skipRepeatedHeads(key),
                               groupedValue = skipRepeatedHeads(value);
  if (groupedKey && groupedValue &&
      groupedKey->groupSize == groupedValue->groupSize) {
    key = skipCastsAndTransposes(groupedKey->tensor);
    value = skipCastsAndTransposes(groupedValue->tensor);
  }
  Type elementType = query.getType().getElementType();
  for (const NamedTensor &tensor : {key, value})
    elementType = getWiderType(elementType, tensor.getType().getElementType());

  // An output that is only narrowed to the operands' type is narrowed by the
  // attention itself; any other keeps its type.
  Value output = match.output.value;
  if (output.hasOneUse()) {
    Operation *user = *output.user_begin();
    if (user->getBlock() == root->getBlock() &&
        getCastSource<arith::TruncFOp>(user) == output &&
        getElementTypeOrSelf(user->getResult(0)) == elementType)
      output = user->getResult(0);
  }
  auto outputType = cast<RankedTensorType>(output.getType());
  elementType = getWiderType(elementType, outputType.getElementType());

  OpBuilder b(output.getDefiningOp());
  Rewriter rewriter{b, root.getLoc()};
  Value q = rewriter.operand(query, match.batchAnd(queryVar, headDimVar),
                             elementType);
  Value k =
      rewriter.operand(key, match.batchAnd(keyVar, headDimVar), elementType);
  Value v =
      rewriter.operand(value, match.batchAnd(keyVar, columnVar), elementType);
  SmallVector<int64_t> shape(cast<RankedTensorType>(q.getType()).getShape());
  shape.back() = cast<RankedTensorType>(v.getType()).getShape().back();
  auto attention = AttentionOp::create(
      b, root.getLoc(), RankedTensorType::get(shape, elementType),
      /*lse=*/Type(), q, k, v, /*lengths=*/Value(),
      /*queryLengths=*/Value(), /*keyLengths=*/Value(), /*sink=*/Value(),
      /*keyTiles=*/Value(), /*tileCounts=*/Value(),
      /*leading=*/LeadingAttr(), b.getF64FloatAttr(match.scale),
      match.kept.toMask(b.getContext(), query.sizeOf(queryVar),
                        key.sizeOf(keyVar)),
      /*precision=*/PrecisionAttr(), /*blockSizes=*/DenseI64ArrayAttr(),
      /*multiples=*/DenseI64ArrayAttr(),
      /*schedule=*/ScheduleAttr());
  output.replaceAllUsesWith(
      rewriter.result(attention.getOutput(), match, outputType));
  eraseWithDeadOperands(output.getDefiningOp());
}

struct RaiseAttention : flash::impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isFloatProduct(op) && !op->getParentOfType<linalg::LinalgOp>())
        products.push_back(op);
    });
    // Erasing what is dead only touches ops before the product at hand.
    for (linalg::LinalgOp op : products) {
      std::optional<Match> match = matchAttention(op, 0);
      if (!match)
        match = matchAttention(op, 1);
      if (!match)
        continue;
      if (std::optional<std::string> reason = findUnsupportedSize(*match)) {
        op->emitRemark() << "this attention is left as it is: " << *reason;
        ++numUnsupported;
        continue;
      }
      raise(op, *match);
      ++numRaised;
    }
  }
};
} // namespace
