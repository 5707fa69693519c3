//===- BlockConverter.cpp - The body of a parallel loop as a kernel -------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"

#include "flash/Dialect/Tile/Utils/TileOrder.h"
#include "flash/Machine/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace flash;

BlockConverter::BlockConverter(scf::ForallOp forall, gpu::GPUFuncOp kernel)
    : forall(forall), kernel(kernel), b(kernel.getContext()),
      loc(forall.getLoc()),
      layouts(forall, getSchedule(forall).warps.value_or(0)) {
  b.setInsertionPointToEnd(&kernel.getBody().front());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value BlockConverter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value BlockConverter::constantF32(double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

bool BlockConverter::isOutput(Value memory) {
  auto argument = dyn_cast<BlockArgument>(memory);
  return argument && argument.getOwner() == forall.getBody();
}

/// The type as which a kernel sees a tensor: strides are known at run time
/// only, but the tensor's last dimension is contiguous.
static MemRefType getKernelType(RankedTensorType type,
                                ArrayRef<unsigned> order) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic), shape;
  for (auto [stride, dim] : llvm::zip_equal(strides, order)) {
    if (dim == order.size() - 1 && dim == order.back())
      stride = 1;
    shape.push_back(type.getDimSize(dim));
  }
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(shape, type.getElementType(), layout);
}

Value BlockConverter::capture(Value tensor, ArrayRef<unsigned> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto all = llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
  if (order.empty())
    order = all;
  for (auto [i, known] : llvm::enumerate(captures))
    if (known.value == tensor && known.order == order)
      return kernel.getArgument(i);
  captures.push_back({tensor, SmallVector<unsigned>(order)});
  return kernel.getBody().front().addArgument(getKernelType(type, order),
                                              tensor.getLoc());
}

Value BlockConverter::lookup(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  // The offsets of a slice of a slice are added up where it is converted.
  if (Operation *sum = value.getDefiningOp();
      sum && forall->isProperAncestor(sum)) {
    IRMapping operands;
    for (Value operand : sum->getOperands())
      operands.map(operand, lookup(operand));
    return b.clone(*sum, operands)->getResult(0);
  }
  // What else has not been converted is from outside.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&kernel.getBody().front());
  if (matchPattern(value, m_Constant())) {
    Operation *copy = b.clone(*value.getDefiningOp());
    mapping.map(value, copy->getResult(0));
    return copy->getResult(0);
  }
  if (auto dim = value.getDefiningOp<tensor::DimOp>();
      dim && dim.getConstantIndex()) {
    Value size = memref::DimOp::create(b, loc, capture(dim.getSource()),
                                       *dim.getConstantIndex());
    mapping.map(value, size);
    return size;
  }
  // Kernels are passed numbers but no conditions, and none that the host would
  // have to read.
  if (Operation *op = value.getDefiningOp();
      isa_and_nonnull<arith::CmpIOp, tensor::ExtractOp>(op)) {
    IRMapping operands;
    Operation *last = nullptr;
    for (Value operand : op->getOperands()) {
      if (isa<RankedTensorType>(operand.getType()))
        continue;
      Value known = lookup(operand);
      operands.map(operand, known);
      // Operands that were known before are somewhere behind the start.
      Operation *definition = known.getDefiningOp();
      if (definition && (!last || last->isBeforeInBlock(definition)))
        last = definition;
    }
    if (last)
      b.setInsertionPointAfter(last);
    if (failed(copyScalar(b, *op, operands)))
      return Value();
    mapping.map(value, operands.lookup(value));
    return operands.lookup(value);
  }
  captures.push_back({value, {}});
  Value argument =
      kernel.getBody().front().addArgument(value.getType(), value.getLoc());
  mapping.map(value, argument);
  return argument;
}

Value BlockConverter::lookup(OpFoldResult value) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return constant(*known);
  return lookup(cast<Value>(value));
}

LogicalResult BlockConverter::copyScalar(OpBuilder &builder, Operation &op,
                                         IRMapping &map) {
  auto find = [&](Value value) {
    return map.contains(value) ? map.lookup(value) : lookup(value);
  };
  auto isInside = [&](Value tensor) {
    return forall->isAncestor(tensor.getParentBlock()->getParentOp());
  };
  // Elements of memory are read anywhere.
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    if (isInside(extract.getTensor()))
      return refuse(&op, "it takes one element of a tile, which a block's "
                         "threads hold each for themselves");
    SmallVector<Value> indices =
        llvm::map_to_vector(extract.getIndices(), find);
    map.map(extract.getResult(),
            memref::LoadOp::create(builder, op.getLoc(),
                                   capture(extract.getTensor()), indices)
                .getResult());
    return success();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    if (isInside(dim.getSource()) && !isOutput(dim.getSource()))
      return refuse(&op, "it reads the size of a tile; use the size that the "
                         "slice of the tile has as an operand");
    map.map(dim.getResult(), memref::DimOp::create(builder, op.getLoc(),
                                                   capture(dim.getSource()),
                                                   find(dim.getIndex()))
                                 .getResult());
    return success();
  }
  IRMapping operands = map;
  for (Value operand : op.getOperands())
    operands.map(operand, find(operand));
  Operation *copy = builder.clone(op, operands);
  map.map(op.getResults(), copy->getResults());
  return success();
}

InFlightDiagnostic BlockConverter::refuseShape(RankedTensorType type,
                                               Operation *user) {
  if (layouts.isWarpRows())
    return refuse(user, "")
           << type << " is no tile of whole rows, which has "
           << "rows in multiples of " << layouts.getNumRowsAtOnce()
           << ", or a value of f32 or i1 for each";
  return refuse(user, "") << type << " is no tile of " << getNumWarps()
                          << " warps, which has rows in multiples of "
                          << rowsOfWarp * getNumWarps()
                          << " and columns in multiples of 8";
}

FailureOr<RankedTensorType> BlockConverter::getType(Value tile,
                                                    Operation *user) {
  if (RankedTensorType type = layouts.getType(tile))
    return type;
  return refuseShape(cast<RankedTensorType>(tile.getType()), user);
}

FailureOr<Value> BlockConverter::getRegisters(Value tile, RankedTensorType type,
                                              Operation *user) {
  if (Value known = mapping.lookupOrNull(tile)) {
    if (known.getType() == type)
      return known;
    if (auto fill = tile.getDefiningOp<linalg::FillOp>())
      return emitSplat(b, user->getLoc(), lookup(fill.getInputs()[0]), type);
    return refuse(user, "it takes a value for each row as one for each column, "
                        "or the other way round");
  }
  if (isMemoryTile(tile, forall))
    return load(tile, type, user);
  if (tile.getDefiningOp<tensor::EmptyOp>())
    return refuse(user, "it reads elements that nothing has written; fill the "
                        "tile first");
  return refuse(user, "it reads a tile that is not in registers");
}

FailureOr<Value> BlockConverter::getRegisters(Value tile, VectorOf of,
                                              bool transposed,
                                              Operation *user) {
  auto tensor = cast<RankedTensorType>(tile.getType());
  SmallVector<int64_t> shape(tensor.getShape());
  bool isMemory = isMemoryTile(tile, forall);
  if (transposed && isMemory)
    std::swap(shape[0], shape[1]);
  RankedTensorType type = layouts.getType(shape, tensor.getElementType(), of);
  if (!type)
    return refuseShape(tensor, user);
  if (isMemory)
    return load(tile, type, user, transposed);
  FailureOr<Value> registers = getRegisters(tile, type, user);
  if (failed(registers) || !transposed)
    return registers;
  return transpose(*registers, user);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

tile::OrderAttr BlockConverter::getBlockOrder() {
  auto order =
      tile::TileDialect::OrderAttrHelper(b.getContext()).getAttr(forall);
  return order ? order
               : tile::OrderAttr::get(b.getContext(), TileOrder::Linear);
}

Value BlockConverter::countAdditions(ValueRange trips) {
  auto additions = forall.getTerminator().getBody()->getOps<ParallelAddOp>();
  if (additions.empty() ||
      !tile::PositionOp::interleavesHeads(getBlockOrder().getKind()))
    return {};
  Value sums = capture((*additions.begin()).getSums());
  auto dim = [&](int64_t d) {
    return b.createOrFold<memref::DimOp>(loc, sums, d);
  };
  // A tile of keys goes through the queries of all heads that read them. A
  // launch without heads may compute this, too.
  Value heads = dim(1);
  if (trips.size() > 1) {
    Value some = b.createOrFold<arith::MaxUIOp>(loc, trips[trips.size() - 2],
                                                constant(1));
    heads = b.createOrFold<arith::DivUIOp>(loc, heads, some);
  }
  // Few tiles of a head all begin in one wave, in which no addition is between.
  Value most = b.createOrFold<arith::MulIOp>(
      loc, trips.back(), constant(tile::additionsBetweenTiles));
  Value ofHead = b.createOrFold<arith::MinUIOp>(loc, dim(2), most);
  // How long lists are that blocks claim, only the data say. Documents are
  // shorter than the row in which they lie.
  constexpr int64_t listsOfRow = 8;
  if (getSchedule(forall).has(ScheduleFeatures::ClaimTiles))
    ofHead =
        b.createOrFold<arith::CeilDivUIOp>(loc, ofHead, constant(listsOfRow));
  return b.createOrFold<arith::MulIOp>(loc, heads, ofHead);
}

void BlockConverter::emitPosition() {
  SmallVector<OpFoldResult> lower = forall.getMixedLowerBound(),
                            upper = forall.getMixedUpperBound(),
                            step = forall.getMixedStep();
  SmallVector<Value> trips;
  for (size_t d = 0; d < lower.size(); ++d) {
    Value extent =
        b.createOrFold<arith::SubIOp>(loc, lookup(upper[d]), lookup(lower[d]));
    trips.push_back(
        b.createOrFold<arith::CeilDivSIOp>(loc, extent, lookup(step[d])));
  }
  Value number = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  blockPosition = tile::PositionOp::create(
      b, loc, number, trips, getBlockOrder(), countAdditions(trips));
  for (size_t d = 0; d < lower.size(); ++d) {
    Value offset = b.createOrFold<arith::MulIOp>(
        loc, blockPosition.getResult(d), lookup(step[d]));
    mapping.map(forall.getInductionVars()[d],
                b.createOrFold<arith::AddIOp>(loc, lookup(lower[d]), offset));
  }
}

LogicalResult BlockConverter::convertLoop(scf::ForOp loop) {
  SmallVector<Value> inits, carriedHere, results;
  for (auto [init, carried, result] : llvm::zip_equal(
           loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    if (Value slice = getWrittenSlice(init, forall)) {
      Value yielded = loop.getTiedLoopYieldedValue(carried)->get();
      if (getWrittenSlice(yielded, forall) != slice)
        return refuse(loop, "it carries a part of an output, and yields "
                            "something else");
      continue;
    }
    if (getAddition(result))
      continue;
    carriedHere.push_back(carried);
    results.push_back(result);
    if (!isa<RankedTensorType>(init.getType())) {
      inits.push_back(lookup(init));
      continue;
    }
    FailureOr<RankedTensorType> type = getType(carried, loop);
    if (failed(type))
      return failure();
    FailureOr<Value> value = getRegisters(init, *type, loop);
    if (failed(value))
      return failure();
    inits.push_back(*value);
  }
  auto copy = scf::ForOp::create(b, loop.getLoc(), lookup(loop.getLowerBound()),
                                 lookup(loop.getUpperBound()),
                                 lookup(loop.getStep()), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  mapping.map(loop.getInductionVar(), copy.getInductionVar());
  mapping.map(carriedHere, copy.getRegionIterArgs());
  mapping.map(results, copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  // A loop that carries nothing has a terminator already.
  if (inits.empty())
    copy.getBody()->getTerminator()->erase();
  b.setInsertionPointToEnd(copy.getBody());
  return convert(*loop.getBody());
}

LogicalResult BlockConverter::convertChoice(scf::IfOp choice) {
  SmallVector<Type> types;
  SmallVector<Value> results;
  for (Value result : choice.getResults()) {
    if (getAddition(result))
      continue;
    results.push_back(result);
    for (scf::YieldOp yield : {choice.thenYield(), choice.elseYield()})
      if (getWrittenSlice(
              yield.getOperand(cast<OpResult>(result).getResultNumber()),
              forall))
        return refuse(choice,
                      "it gives a part of an output; give the tile that "
                      "is to be inserted");
    if (!isa<RankedTensorType>(result.getType())) {
      types.push_back(result.getType());
      continue;
    }
    FailureOr<RankedTensorType> type = getType(result, choice);
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  auto copy = scf::IfOp::create(b, choice.getLoc(), types,
                                lookup(choice.getCondition()),
                                /*addThenBlock=*/true,
                                /*addElseBlock=*/!!choice.elseBlock());
  mapping.map(results, copy.getResults());
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] :
       llvm::zip_equal(choice->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    if (!to.front().empty())
      to.front().clear();
    b.setInsertionPointToEnd(&to.front());
    if (failed(convert(from.front())))
      return failure();
  }
  // Each warp has a vote of its own, so they could not meet there.
  if (!choice.getCondition().getDefiningOp<AnyOp>())
    return success();
  WalkResult walk = copy.walk([&](Operation *inner) {
    auto reduce = dyn_cast<tile::ReduceRowsOp>(inner);
    if (!isa<tile::FetchOp, tile::ShareOp, tile::DequantizeOp, tile::MmaAsyncOp,
             tile::IsFiniteOp>(inner) &&
        !(reduce && reduce.getNumScratchBytes() > 0))
      return WalkResult::advance();
    refuse(inner, "it takes all warps of a block, where a flash.any of the "
                  "warp decides");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult BlockConverter::convertAny(AnyOp op) {
  Type condition = b.getI1Type();
  int64_t rows = op.getConditions().getType().getDimSize(0);
  RankedTensorType type = layouts.getType(rows, condition);
  if (!type)
    return refuseShape(op.getConditions().getType(), op);
  FailureOr<Value> registers = getRegisters(op.getConditions(), type, op);
  if (failed(registers))
    return failure();
  // The lanes of a row have the same.
  Value ofLanes = tile::BroadcastOp::create(
      b, op.getLoc(), tile::getLanesType(type), *registers);
  mapping.map(
      op.getResult(),
      tile::AnyOp::create(b, op.getLoc(), condition, ofLanes).getResult());
  return success();
}

LogicalResult BlockConverter::convertYield(scf::YieldOp yield) {
  SmallVector<Value> values;
  Operation *parent = b.getInsertionBlock()->getParentOp();
  auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
  for (auto [i, operand] : llvm::enumerate(yield.getOperands())) {
    if ((loop && getWrittenSlice(loop.getInitArgs()[i], forall)) ||
        getAddition(yield->getParentOp()->getResult(i)))
      continue;
    if (!isa<RankedTensorType>(operand.getType())) {
      values.push_back(lookup(operand));
      continue;
    }
    Type type = parent->getResult(values.size()).getType();
    FailureOr<Value> value =
        getRegisters(operand, cast<RankedTensorType>(type), yield);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  scf::YieldOp::create(b, yield.getLoc(), values);
  return success();
}

LogicalResult BlockConverter::convert(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return convertLoop(loop);
  if (auto choice = dyn_cast<scf::IfOp>(op))
    return convertChoice(choice);
  if (auto yield = dyn_cast<scf::YieldOp>(op))
    return convertYield(yield);
  if (auto stores = dyn_cast<scf::InParallelOp>(op)) {
    for (Operation &inner : *stores.getBody()) {
      if (auto insertion = dyn_cast<tensor::ParallelInsertSliceOp>(inner)) {
        if (failed(convertInsertion(insertion)))
          return failure();
      } else if (auto addition = dyn_cast<ParallelAddOp>(inner)) {
        if (failed(verifyAddition(addition)))
          return failure();
      } else {
        return refuse(&inner, "a block writes by tensor.parallel_insert_slice "
                              "and flash.parallel_add");
      }
    }
    return success();
  }
  if (auto contribution = dyn_cast<ContributeOp>(op))
    return convertContribution(contribution);
  if (auto insertion = dyn_cast<tensor::InsertSliceOp>(op))
    return convertInsertion(insertion);
  if (auto insertion = dyn_cast<tensor::InsertOp>(op))
    return convertInsertion(insertion);
  if (auto insertion = dyn_cast<InsertDiagonalsOp>(op))
    return convertInsertion(insertion);
  if (auto generic = dyn_cast<linalg::LinalgOp>(op); generic && !isRowView(&op))
    return convertLinalg(generic);
  if (auto look = dyn_cast<IsFiniteOp>(op))
    return convertIsFinite(look);
  if (auto zeros = dyn_cast<ZeroNonfiniteOp>(op))
    return convertZeroNonfinite(zeros);
  if (auto any = dyn_cast<AnyOp>(op))
    return convertAny(any);
  if (auto end = dyn_cast<tile::EndGridOp>(op)) {
    tile::EndGridOp::create(b, op.getLoc(), lookup(end.getCount()));
    return success();
  }
  // Tiles of memory are made where they are used.
  if (isa<tensor::ExtractSliceOp, tensor::PadOp, tensor::CastOp,
          tensor::ConcatOp, DequantizeTileOp, InterleaveOp>(op) ||
      isRowView(&op)) {
    insertionPoints[&op] = {b.getInsertionBlock(),
                            b.getInsertionBlock()->empty()
                                ? nullptr
                                : &b.getInsertionBlock()->back()};
    return success();
  }
  if (isa<tensor::EmptyOp>(op))
    return success();
  if (auto splat = dyn_cast<arith::ConstantOp>(op);
      splat && isa<RankedTensorType>(splat.getType())) {
    auto value = dyn_cast<SplatElementsAttr>(splat.getValue());
    if (!value)
      return refuse(&op, "a constant tile has the same value everywhere");
    FailureOr<RankedTensorType> type = getType(splat.getResult(), &op);
    if (failed(type))
      return failure();
    mapping.map(
        splat.getResult(),
        arith::ConstantOp::create(
            b, op.getLoc(),
            DenseElementsAttr::get(*type, value.getSplatValue<Attribute>()))
            .getResult());
    return success();
  }
  bool hasTiles = llvm::any_of(op.getResultTypes(), llvm::IsaPred<ShapedType>);
  if (!hasTiles && op.getNumRegions() == 0 && isMemoryEffectFree(&op))
    return copyScalar(b, op, mapping);
  if (OpTrait::hasElementwiseMappableTraits(&op) && op.getNumResults() == 1)
    return convertTensorArithmetic(op);
  return refuse(&op, "blocks have loops, conditions, linalg, slices, paddings "
                     "and arithmetic on tiles, and arithmetic on scalars");
}

LogicalResult BlockConverter::convert(Block &block) {
  for (Operation &op : block)
    if (failed(convert(op)))
      return failure();
  return success();
}

LogicalResult BlockConverter::run() {
  emitPosition();
  if (failed(convert(*forall.getBody())))
    return failure();
  gpu::ReturnOp::create(b, loc);
  // Where a mask leaves nothing to compute there is nothing to schedule.
  if (kernel.walk([](tile::MmaAsyncOp) { return WalkResult::interrupt(); })
          .wasInterrupted())
    setSchedule(kernel, getSchedule(forall));
  Block &entry = kernel.getBody().front();
  kernel.setFunctionType(
      b.getFunctionType(entry.getArgumentTypes(), TypeRange{}));
  return success();
}
