//===- BlockProgram.cpp - The body of a parallel loop as a kernel ---------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"

#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace flash;

MemRefType flash::getKernelMemRefType(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// The first step of the online softmax in the loop, or null.
static OnlineAttentionOp findStep(scf::ForallOp forall) {
  OnlineAttentionOp found;
  forall.walk([&](OnlineAttentionOp step) {
    found = step;
    return WalkResult::interrupt();
  });
  return found;
}

BlockProgram::BlockProgram(scf::ForallOp forall, gpu::GPUFuncOp kernel)
    : forall(forall), kernel(kernel), b(kernel.getContext()),
      loc(forall.getLoc()) {
  chooseTypes();
  b.setInsertionPointToEnd(&kernel.getBody().front());
}

bool BlockProgram::isTranslated(scf::ForallOp forall) {
  return forall
      .walk([](Operation *op) {
        return isa<FinalizeOp, linalg::ContractOp>(op) || getRowInput(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void BlockProgram::chooseTypes() {
  MLIRContext *context = b.getContext();
  auto finalizes = forall.getOps<FinalizeOp>();
  if (!finalizes.empty()) {
    // Where a mask leaves no key, there is no step, and nothing to schedule.
    Schedule schedule = findStep(forall) ? getSchedule(forall) : Schedule();
    int64_t queries = (*finalizes.begin()).getAcc().getType().getDimSize(0);
    types = {queries, schedule.warps.value_or(getDefaultWarps(queries)),
             context};
    // The pass of each feature looks for the kernels that want it.
    setSchedule(kernel, schedule);
    return;
  }
  // A product alone needs fewer registers than attention, so that twice as many
  // warps fit; nothing else hides the latency of memory but a second stage.
  forall.walk([&](linalg::ContractOp contract) {
    int64_t rows =
        cast<RankedTensorType>(contract.getResult(0).getType()).getDimSize(0);
    Schedule schedule;
    schedule.warps = rows % 128 == 0 ? 8 : getDefaultWarps(rows);
    schedule.stages = 2;
    types = {rows, *schedule.warps, context};
    setSchedule(kernel, schedule);
    return WalkResult::interrupt();
  });
  if (types.warps > 0)
    return;
  // Else every warp has whole rows. A loop of one iteration may have
  // been dropped; the number of rows is static then.
  int64_t rows = getConstantIntValue(forall.getMixedStep().back()).value_or(1);
  forall.walk([&](Operation *op) {
    Value input = getRowInput(op);
    tensor::ExtractSliceOp slice = input ? getSlice(input) : nullptr;
    if (!slice || slice.getSourceType().getRank() < 2)
      return;
    SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
    if (std::optional<int64_t> known =
            getConstantIntValue(sizes[sizes.size() - 2]))
      rows = std::max<int64_t>(*known, 1);
  });
  int64_t warps = std::min<int64_t>(rows, 8);
  while (rows % warps != 0)
    --warps;
  types = {rows, warps, context};
}

//===----------------------------------------------------------------------===//
// Values from outside the loop
//===----------------------------------------------------------------------===//

Value BlockProgram::capture(Value value, Type type) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  captures.push_back(value);
  Value argument = kernel.getBody().front().addArgument(type, value.getLoc());
  mapping.map(value, argument);
  return argument;
}

Value BlockProgram::captureTensor(Value tensor) {
  return capture(tensor,
                 getKernelMemRefType(cast<RankedTensorType>(tensor.getType())));
}

Value BlockProgram::lookup(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  // What is not translated yet is from outside.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  if (matchPattern(value, m_Constant())) {
    Operation *copy = b.clone(*value.getDefiningOp());
    mapping.map(value, copy->getResult(0));
    return copy->getResult(0);
  }
  if (auto dim = value.getDefiningOp<tensor::DimOp>();
      dim && dim.getConstantIndex()) {
    Value memory = captureTensor(dim.getSource());
    Value size = memref::DimOp::create(b, loc, memory, *dim.getConstantIndex());
    mapping.map(value, size);
    return size;
  }
  // Kernels are passed numbers but no conditions.
  if (auto compare = value.getDefiningOp<arith::CmpIOp>()) {
    IRMapping operands;
    Operation *last = nullptr;
    for (Value operand : compare->getOperands()) {
      Value known = lookup(operand);
      operands.map(operand, known);
      // Those known before are somewhere behind the start.
      Operation *op = known.getDefiningOp();
      if (op && (!last || last->isBeforeInBlock(op)))
        last = op;
    }
    if (last)
      b.setInsertionPointAfter(last);
    Operation *copy = b.clone(*compare, operands);
    mapping.map(value, copy->getResult(0));
    return copy->getResult(0);
  }
  return capture(value, value.getType());
}

Value BlockProgram::lookup(OpFoldResult value) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return constant(*known);
  return lookup(cast<Value>(value));
}

void BlockProgram::copyScalarOp(OpBuilder &builder, Operation &op,
                                IRMapping &map) {
  auto find = [&](Value value) {
    return map.contains(value) ? map.lookup(value) : lookup(value);
  };
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<Value> indices =
        llvm::map_to_vector(extract.getIndices(), find);
    map.map(extract.getResult(),
            memref::LoadOp::create(builder, op.getLoc(),
                                   captureTensor(extract.getTensor()), indices)
                .getResult());
    return;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    map.map(dim.getResult(),
            memref::DimOp::create(builder, op.getLoc(),
                                  captureTensor(dim.getSource()),
                                  find(dim.getIndex()))
                .getResult());
    return;
  }
  IRMapping operands = map;
  for (Value operand : op.getOperands())
    operands.map(operand, find(operand));
  Operation *copy = builder.clone(op, operands);
  map.map(op.getResults(), copy->getResults());
}

//===----------------------------------------------------------------------===//
// The state
//===----------------------------------------------------------------------===//

LogicalResult BlockProgram::findParts() {
  bool changed = true;
  auto give = [&](Value value, Part part) {
    changed |= parts.insert({value, part}).second;
  };
  auto unite = [&](std::initializer_list<Value> values) {
    for (Value value : values) {
      auto known = parts.find(value);
      if (known == parts.end())
        continue;
      Part part = known->second;
      for (Value other : values)
        give(other, part);
    }
  };
  while (changed) {
    changed = false;
    forall.walk([&](Operation *op) {
      if (auto step = dyn_cast<OnlineAttentionOp>(op)) {
        for (Value value : {step.getAcc(), step.getAccOut()})
          give(value, Part::Acc);
        for (Value value : {step.getMax(), step.getMaxOut()})
          give(value, Part::Max);
        for (Value value : {step.getSum(), step.getSumOut()})
          give(value, Part::Sum);
      } else if (auto contract = dyn_cast<linalg::ContractOp>(op)) {
        give(contract.getOutputs()[0], Part::Acc);
        give(contract.getResult(0), Part::Acc);
      } else if (auto finalize = dyn_cast<FinalizeOp>(op)) {
        give(finalize.getAcc(), Part::Acc);
        give(finalize.getMax(), Part::Max);
        give(finalize.getSum(), Part::Sum);
      } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (unsigned i = 0; i < loop.getNumResults(); ++i)
          unite({loop.getInitArgs()[i], loop.getRegionIterArgs()[i],
                 loop.getYieldedValues()[i], loop.getResult(i)});
      } else if (auto choice = dyn_cast<scf::IfOp>(op)) {
        for (unsigned i = 0; i < choice.getNumResults(); ++i)
          unite({choice.thenYield().getOperand(i),
                 choice.elseYield().getOperand(i), choice.getResult(i)});
      }
    });
  }
  return success();
}

Type BlockProgram::getStateType(Value value) {
  auto part = parts.find(value);
  if (part == parts.end())
    return value.getType();
  switch (part->second) {
  case Part::Acc:
    return types.fragment(
        cast<RankedTensorType>(value.getType()).getShape().back());
  case Part::Max:
    return types.rows();
  case Part::Sum:
    return types.lanes();
  }
  llvm_unreachable("all parts are handled");
}

FailureOr<Value> BlockProgram::getState(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  auto part = parts.find(value);
  if (part == parts.end())
    return lookup(value);
  return initialState(value, part->second);
}

FailureOr<Value> BlockProgram::initialState(Value value, Part part) {
  auto type = cast<RankedTensorType>(getStateType(value));
  auto refuse = [&]() -> FailureOr<Value> {
    return emitError(
        value.getLoc(),
        "this initial state of an online softmax has no "
        "translation to a block program: only fills and values for "
        "each head have");
  };
  // Several branches may start from it.
  OpBuilder::InsertionGuard guard(b);
  Block *entry = &kernel.getBody().front();
  if (Operation *outer =
          entry->findAncestorOpInBlock(*b.getInsertionBlock()->getParentOp()))
    b.setInsertionPoint(outer);
  Value scalar;
  if (auto fill = value.getDefiningOp<linalg::FillOp>()) {
    scalar = lookup(fill.getInputs()[0]);
  } else {
    // One value for each head, such as a sink.
    tensor::ExtractSliceOp slice = getSlice(value);
    auto generic = slice ? slice.getSource().getDefiningOp<linalg::GenericOp>()
                         : linalg::GenericOp();
    if (!generic || generic.getNumDpsInputs() != 1)
      return refuse();
    AffineMap map =
        generic.getMatchingIndexingMap(generic.getDpsInputOperand(0));
    SmallVector<Value> position =
        llvm::map_to_vector(slice.getMixedOffsets(),
                            [&](OpFoldResult entry) { return lookup(entry); });
    if (map.isFunctionOfDim(map.getNumDims() - 1) ||
        map.getNumDims() != position.size() || !map.isProjectedPermutation())
      return refuse();
    SmallVector<Value> indices;
    for (AffineExpr expr : map.getResults())
      indices.push_back(position[cast<AffineDimExpr>(expr).getPosition()]);
    Block &body = *generic.getBody();
    IRMapping inner;
    inner.map(body.getArgument(0),
              memref::LoadOp::create(
                  b, loc, captureTensor(generic.getDpsInputs()[0]), indices)
                  .getResult());
    for (Operation &op : body.without_terminator())
      copyScalarOp(b, op, inner);
    scalar = inner.lookup(body.getTerminator()->getOperand(0));
  }
  if (part == Part::Sum) {
    // Four lanes hold a quarter each.
    Value quarter = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.25));
    scalar = arith::MulFOp::create(b, loc, scalar, quarter);
  }
  Value state = tile::BroadcastOp::create(b, loc, type, scalar);
  mapping.map(value, state);
  return state;
}

//===----------------------------------------------------------------------===//
// Tiles of global memory
//===----------------------------------------------------------------------===//

/// A tensor before its type became more or less static.
static Value stripCasts(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

tensor::ExtractSliceOp BlockProgram::getSlice(Value tile) {
  if (auto pad = tile.getDefiningOp<tensor::PadOp>())
    tile = pad.getSource();
  return stripCasts(tile).getDefiningOp<tensor::ExtractSliceOp>();
}

Value BlockProgram::rematerialize(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !op || !loop->isProperAncestor(op))
    return lookup(value);
  for (Value operand : op->getOperands())
    rematerialize(operand, loop);
  copyScalarOp(b, *op, mapping);
  return mapping.lookup(value);
}

FailureOr<Value> BlockProgram::fetch(Value tile) {
  if (Value known = tiles.lookup(tile))
    return known;
  tensor::ExtractSliceOp slice = getSlice(tile);
  if (!slice || slice.getSourceType().getRank() != 4)
    return emitError(tile.getLoc(), "this tile has no translation to a block "
                                    "program: it is no slice of an operand");
  auto loop = slice->getParentOfType<scf::ForOp>();
  auto get = [&](OpFoldResult entry) -> Value {
    if (std::optional<int64_t> known = getConstantIntValue(entry))
      return constant(*known);
    return loop ? rematerialize(cast<Value>(entry), loop)
                : lookup(cast<Value>(entry));
  };
  SmallVector<Value> indices =
      llvm::map_to_vector(slice.getMixedOffsets(), get);
  auto type = cast<RankedTensorType>(tile.getType());
  if (slice.getSourceType().getDimSize(3) == type.getDimSize(1))
    indices.pop_back();
  OpFoldResult existing = slice.getMixedSizes()[2];
  Value rows;
  if (!getConstantIntValue(existing) ||
      *getConstantIntValue(existing) != type.getDimSize(0))
    rows = get(existing);
  return tile::FetchOp::create(b, loc,
                               tile::SmemType::get(type.getDimSize(0),
                                                   type.getDimSize(1),
                                                   type.getElementType()),
                               captureTensor(slice.getSource()), indices, rows)
      .getResult();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void BlockProgram::emitPosition() {
  SmallVector<OpFoldResult> lower = forall.getMixedLowerBound(),
                            upper = forall.getMixedUpperBound(),
                            step = forall.getMixedStep();
  size_t rank = lower.size();
  SmallVector<Value> trips;
  for (size_t d = 0; d < rank; ++d) {
    Value extent =
        b.createOrFold<arith::SubIOp>(loc, lookup(upper[d]), lookup(lower[d]));
    trips.push_back(
        b.createOrFold<arith::CeilDivSIOp>(loc, extent, lookup(step[d])));
  }
  auto order =
      tile::TileDialect::OrderAttrHelper(b.getContext()).getAttr(forall);
  if (!order)
    order = tile::OrderAttr::get(b.getContext(), tile::OrderKind::Linear);
  Value table;
  if (std::optional<int64_t> argument = order.getArgument()) {
    auto function = forall->getParentOfType<FunctionOpInterface>();
    table = captureTensor(function.getArgument(*argument));
    order = tile::OrderAttr::get(b.getContext(), order.getKind());
  }
  Value number = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  auto position = tile::PositionOp::create(b, loc, number, trips, order, table);
  for (size_t d = 0; d < rank; ++d) {
    Value offset = b.createOrFold<arith::MulIOp>(loc, position.getResult(d),
                                                 lookup(step[d]));
    mapping.map(forall.getInductionVars()[d],
                b.createOrFold<arith::AddIOp>(loc, lookup(lower[d]), offset));
  }
}

LogicalResult BlockProgram::translateStep(OnlineAttentionOp step) {
  OnlineState state;
  for (auto [from, to] : {std::pair(step.getAcc(), &state.acc),
                          {step.getMax(), &state.max},
                          {step.getSum(), &state.sum}}) {
    FailureOr<Value> value = getState(from);
    if (failed(value))
      return failure();
    *to = *value;
  }
  FailureOr<Value> query = fetch(step.getQuery()), key, value;
  StepInputs inputs;
  inputs.query = failed(query) ? Value() : *query;
  auto fetchKey = [&] { return *(key = fetch(step.getKey())); };
  auto fetchValue = [&] { return *(value = fetch(step.getValue())); };
  auto find = [&](Value program) { return lookup(program); };
  auto copyScoreOp = [&](OpBuilder &builder, Operation &op, IRMapping &map) {
    copyScalarOp(builder, op, map);
  };
  inputs.fetchKey = fetchKey;
  inputs.fetchValue = fetchValue;
  inputs.lookup = find;
  inputs.copyScoreOp = copyScoreOp;
  auto isOperandSlice = [&](Value tile) {
    tensor::ExtractSliceOp slice = getSlice(tile);
    return slice && slice.getSourceType().getRank() == 4;
  };
  if (failed(query) || !isOperandSlice(step.getKey()) ||
      !isOperandSlice(step.getValue()))
    return step.emitOpError("reads a tile that is no slice of an operand");
  OnlineState next = emitOnlineStep(b, step, types, state, inputs);
  mapping.map(step.getAccOut(), next.acc);
  mapping.map(step.getMaxOut(), next.max);
  mapping.map(step.getSumOut(), next.sum);
  return success();
}

LogicalResult BlockProgram::translateFor(scf::ForOp loop) {
  if (loop.getNumResults() == 0)
    return loop.emitOpError("has no translation to a block program: it carries "
                            "no state");
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs()) {
    FailureOr<Value> value = getState(init);
    if (failed(value))
      return failure();
    inits.push_back(*value);
  }
  auto copy = scf::ForOp::create(b, loop.getLoc(), lookup(loop.getLowerBound()),
                                 lookup(loop.getUpperBound()),
                                 lookup(loop.getStep()), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  mapping.map(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  mapping.map(loop.getResults(), copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  // Where steps are chosen between, all of them read the same tiles, which are
  // fetched before the choice.
  SmallVector<OnlineAttentionOp> nested;
  loop.walk([&](OnlineAttentionOp step) {
    if (step->getParentOp() != loop)
      nested.push_back(step);
  });
  // The step that may lack keys says how many there are.
  auto *ragged = llvm::find_if(
      nested, [](OnlineAttentionOp step) { return !!step.getKeys(); });
  if (ragged == nested.end())
    ragged = nested.begin();
  for (OnlineAttentionOp step : nested)
    for (auto [tile, whole] :
         {std::pair(step.getKey(), (*ragged).getKey()),
          std::pair(step.getValue(), (*ragged).getValue())}) {
      FailureOr<Value> fetched = fetch(whole);
      if (failed(fetched))
        return failure();
      tiles[whole] = tiles[tile] = *fetched;
    }
  if (failed(translate(*loop.getBody())))
    return failure();
  return success();
}

LogicalResult BlockProgram::translateIf(scf::IfOp choice) {
  if (choice.getNumResults() == 0)
    return choice.emitOpError("has no translation to a block program: it gives "
                              "no state");
  SmallVector<Type> resultTypes = llvm::map_to_vector(
      choice.getResults(), [&](Value value) { return getStateType(value); });
  auto copy = scf::IfOp::create(b, choice.getLoc(), resultTypes,
                                lookup(choice.getCondition()),
                                /*addThenBlock=*/true, /*addElseBlock=*/true);
  mapping.map(choice.getResults(), copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions())) {
    b.setInsertionPointToEnd(&to.front());
    if (failed(translate(from.front())))
      return failure();
  }
  return success();
}

LogicalResult BlockProgram::translateStores(scf::InParallelOp stores) {
  for (auto store : stores.getOps<tensor::ParallelInsertSliceOp>()) {
    Value tile = stripCasts(store.getSource());
    if (getRowInput(tile.getDefiningOp()))
      continue; // Stored already.
    if (auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>())
      tile = slice.getSource();
    Value registers = mapping.lookupOrNull(tile);
    if (!registers)
      return store.emitOpError("stores no tile that is in registers");
    auto destination = captureTensor(store.getDest());
    auto type = cast<RankedTensorType>(tile.getType());
    bool isMatrix = type.getRank() == 2;
    SmallVector<Value> indices =
        llvm::map_to_vector(store.getMixedOffsets(),
                            [&](OpFoldResult entry) { return lookup(entry); });
    OpFoldResult existing =
        store.getMixedSizes()[indices.size() - type.getRank()];
    if (isMatrix && store.getDestType().getShape().back() == type.getDimSize(1))
      indices.pop_back();
    Value rows;
    if (getConstantIntValue(existing) != types.queries)
      rows = lookup(existing);
    tile::StoreOp::create(b, loc, registers, destination, indices, rows,
                          /*columns=*/Value());
  }
  return success();
}

LogicalResult BlockProgram::translate(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return translateFor(loop);
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return translateIf(choice);
  if (auto step = dyn_cast<OnlineAttentionOp>(op))
    return translateStep(step);
  if (auto stores = dyn_cast<scf::InParallelOp>(op))
    return translateStores(stores);
  if (auto contract = dyn_cast<linalg::ContractOp>(op))
    return translateContract(contract);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return translateMap(generic);
  if (auto combine = dyn_cast<CombineOp>(op))
    return translateCombine(combine);
  if (getRowInput(&op))
    return translateSoftmax(op);
  if (auto finalize = dyn_cast<FinalizeOp>(op)) {
    OnlineState state;
    for (auto [from, to] : {std::pair(finalize.getAcc(), &state.acc),
                            {finalize.getMax(), &state.max},
                            {finalize.getSum(), &state.sum}}) {
      FailureOr<Value> value = getState(from);
      if (failed(value))
        return failure();
      *to = *value;
    }
    auto [output, lse] = emitFinalize(
        b, op.getLoc(), types, state,
        finalize.getOutput().getType().getElementType(), !!finalize.getLse());
    mapping.map(finalize.getOutput(), output);
    if (lse)
      mapping.map(finalize.getLse(), lse);
    return success();
  }
  if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    SmallVector<Value> values;
    for (Value operand : yield.getOperands()) {
      FailureOr<Value> value = getState(operand);
      if (failed(value))
        return failure();
      values.push_back(*value);
    }
    scf::YieldOp::create(b, op.getLoc(), values);
    return success();
  }
  // Read where they are used.
  if (isa<tensor::ExtractSliceOp, tensor::PadOp, tensor::EmptyOp,
          tensor::CastOp, linalg::FillOp>(op))
    return success();
  bool isScalar = llvm::none_of(
      op.getResultTypes(), [](Type type) { return isa<ShapedType>(type); });
  if (isScalar && op.getNumRegions() == 0 && isMemoryEffectFree(&op)) {
    copyScalarOp(b, op, mapping);
    return success();
  }
  if (OpTrait::hasElementwiseMappableTraits(&op) && op.getNumResults() == 1)
    return translateElementwise(op);
  return op.emitOpError("has no translation to a block program");
}

LogicalResult BlockProgram::translate(Block &block) {
  for (Operation &op : block)
    if (failed(translate(op)))
      return failure();
  return success();
}

LogicalResult BlockProgram::run() {
  if (failed(checkContracts()) || failed(findParts()))
    return failure();
  emitPosition();
  // The query tile is the same for all steps.
  OnlineAttentionOp step = findStep(forall);
  b.setInsertionPointToEnd(&kernel.getBody().front());
  for (Operation &op : forall.getBody()->getOperations()) {
    if (failed(translate(op)))
      return failure();
    if (step && op.getNumResults() == 1 && op.getResult(0) == step.getQuery()) {
      FailureOr<Value> query = fetch(step.getQuery());
      if (failed(query))
        return failure();
      tiles[step.getQuery()] = *query;
    }
  }
  gpu::ReturnOp::create(b, loc);
  Block &entry = kernel.getBody().front();
  kernel.setFunctionType(
      b.getFunctionType(entry.getArgumentTypes(), TypeRange{}));
  return success();
}
