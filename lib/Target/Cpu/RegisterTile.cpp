//===- RegisterTile.cpp - A linalg operation as register tiles ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegisterTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace flash {

/// Terms that are added up one after the other. Equal ones (probabilities of
/// equal scores) are all rounded the same way, so that a sum of n may be off by
/// n / 2 units in the last place.
static constexpr int64_t termsOfSum = 16;

RegisterTiler::RegisterTiler(RewriterBase &rewriter, linalg::LinalgOp op,
                             VectorRegisters registers)
    : b(rewriter), op(op), loc(op.getLoc()), registers(registers) {}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

LogicalResult RegisterTiler::analyze() {
  if (!op.hasPureBufferSemantics())
    return failure();
  maps = op.getIndexingMapsArray();
  sizes = op.getStaticLoopRanges();
  for (AffineMap map : maps)
    for (AffineExpr expr : map.getResults())
      if (!isa<AffineDimExpr, AffineConstantExpr>(expr))
        return failure();
  if (failed(chooseDimensions()) || failed(analyzeBody()))
    return failure();
  chooseTile();
  return success();
}

bool RegisterTiler::dependsOn(AffineMap map, int64_t dim) const {
  return map.isFunctionOfDim(dim);
}

/// The lane dimension addresses consecutive elements of the operand.
bool RegisterTiler::isContiguousInLane(OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  auto type = cast<MemRefType>(operand.get().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (map.getNumResults() == 0 ||
      failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return false;
  // Elements narrower than a byte are not packed in a buffer, but are in a
  // vector, so that vector.load would read something else.
  Type element = type.getElementType();
  if (element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 != 0)
    return false;
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    if (expr.isFunctionOfDim(lane) != (i + 1 == map.getNumResults()))
      return false;
  return true;
}

LogicalResult RegisterTiler::chooseDimensions() {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  AffineMap outMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  // Prefer the last output dimension; one of size 1 gives no parallel lanes,
  // and a constant index none at all.
  std::optional<unsigned> choice;
  for (AffineExpr expr : llvm::reverse(outMap.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      if (!choice || (sizes[*choice] == 1 && sizes[dim.getPosition()] != 1))
        choice = dim.getPosition();
  if (!choice)
    return failure();
  lane = *choice;

  SmallVector<unsigned> parallel;
  for (auto [dim, iterator] : llvm::enumerate(iterators)) {
    if (iterator == utils::IteratorType::reduction)
      reductions.push_back(dim);
    else if (iterator != utils::IteratorType::parallel)
      return failure();
    else if (dim != lane)
      parallel.push_back(dim);
  }
  // Every parallel dimension must address every output, or a tile would store
  // one element twice.
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!dependsOn(map, lane) || llvm::any_of(parallel, [&](unsigned dim) {
          return !dependsOn(map, dim);
        }))
      return failure();
  }

  // A row shares the vectors that do not depend on it. That pays only inside
  // a reduction: elsewhere each vector is loaded once anyhow.
  if (!reductions.empty())
    for (unsigned dim : llvm::reverse(parallel)) {
      bool shares = false;
      for (OpOperand *input : op.getDpsInputOperands()) {
        AffineMap map = op.getMatchingIndexingMap(input);
        shares |= isa<MemRefType>(input->get().getType()) &&
                  dependsOn(map, lane) && !dependsOn(map, dim);
      }
      if (shares && sizes[dim] != 1) {
        row = dim;
        break;
      }
    }
  for (unsigned dim : parallel)
    if (dim != row)
      outer.push_back(dim);
  return success();
}

LogicalResult RegisterTiler::analyzeBody() {
  Block *body = op.getBlock();
  for (BlockArgument arg : body->getArguments()) {
    OpOperand *operand = op.getMatchingOpOperand(arg);
    AffineMap map = op.getMatchingIndexingMap(operand);
    unsigned bits = 0;
    if (isa<MemRefType>(operand->get().getType())) {
      bits |= dependsOn(map, lane) ? OnLane : 0;
      bits |= row && dependsOn(map, *row) ? OnRow : 0;
    }
    // A reduction carries its outputs as vectors.
    if (op.isDpsInit(operand))
      bits |= OnLane | (row ? OnRow : 0);
    varies[arg] = bits;
  }
  for (Operation &bodyOp : body->without_terminator()) {
    if (bodyOp.getNumRegions() != 0 || bodyOp.getNumResults() != 1)
      return failure();
    unsigned bits = 0;
    for (Value operand : bodyOp.getOperands())
      bits |= varies.lookup(operand);
    if (auto indexOp = dyn_cast<linalg::IndexOp>(bodyOp)) {
      bits |= indexOp.getDim() == lane ? OnLane : 0;
      bits |= row && indexOp.getDim() == *row ? OnRow : 0;
    }
    varies[bodyOp.getResult(0)] = bits;
    bool isLoad = isa<memref::LoadOp>(bodyOp);
    if (!isLoad && !isMemoryEffectFree(&bodyOp))
      return failure();
    if ((bits & OnLane) && !isLoad && !isa<linalg::IndexOp>(bodyOp) &&
        !OpTrait::hasElementwiseMappableTraits(&bodyOp))
      return failure();
    if ((bits & OnLane) && !bodyOp.getResult(0).getType().isIntOrIndexOrFloat())
      return failure();
  }
  return success();
}

/// The widest element that the body computes lanes of. Indices do not count:
/// they feed masks, which are rare.
int64_t RegisterTiler::laneBits() {
  int64_t bits = 8;
  auto consider = [&](Value value) {
    if ((varies.lookup(value) & OnLane) && value.getType().isIntOrFloat())
      bits = std::max<int64_t>(bits, value.getType().getIntOrFloatBitWidth());
  };
  for (BlockArgument arg : op.getBlock()->getArguments())
    consider(arg);
  for (Operation &bodyOp : op.getBlock()->without_terminator())
    consider(bodyOp.getResult(0));
  return bits;
}

/// Cuts [begin, end) into vectors, widest first.
SmallVector<LaneChunk> RegisterTiler::chunksOf(int64_t begin,
                                               int64_t end) const {
  SmallVector<LaneChunk> chunks;
  for (int64_t size = width; size >= 1; size /= 2)
    for (; end - begin >= size; begin += size) // begin + size may overflow.
      chunks.push_back({begin, size});
  return chunks;
}

/// Minimises the cycles of one reduction step over the whole output: a tile of
/// r rows and c vectors costs r*c multiply-adds and r+c loads, one of each per
/// cycle, and at least the latency of one multiply-add.
void RegisterTiler::chooseTile() {
  // Beyond some size only the remainders differ, and products would overflow.
  constexpr int64_t latency = 4, overhead = 1, manyRows = 1024,
                    largest = 1 << 20;
  width = std::max<int64_t>(1, registers.bits / laneBits());
  int64_t lanes = sizes[lane];
  int64_t chunks = ShapedType::isDynamic(lanes)
                       ? 64
                       : std::min(lanes / width, largest) +
                             llvm::popcount<uint64_t>(lanes % width);
  int64_t rowCount = 1;
  if (row)
    rowCount = ShapedType::isDynamic(sizes[*row])
                   ? manyRows
                   : std::min(sizes[*row], largest);
  if (reductions.empty()) {
    // An element of a row needs some four registers.
    tileChunks = std::min<int64_t>(
        {chunks, 4, std::max<int64_t>(1, registers.count / 4)});
    return;
  }
  auto cycles = [&](int64_t r, int64_t c) {
    return r == 0 || c == 0 ? 0 : std::max({r * c, r + c, latency}) + overhead;
  };
  int64_t best = INT64_MAX;
  for (int64_t c = 1; c <= std::min<int64_t>(chunks, 6); ++c) {
    for (int64_t r = 1; r <= std::min<int64_t>(rowCount, 16); ++r) {
      if (r * c + c + 1 > registers.count)
        break;
      int64_t cost = 0;
      for (auto [rows, times] :
           {std::pair(r, rowCount / r), std::pair(rowCount % r, int64_t(1))})
        cost +=
            times * (chunks / c * cycles(rows, c) + cycles(rows, chunks % c));
      if (cost < best) {
        best = cost;
        tileRows = r;
        tileChunks = c;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value RegisterTiler::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

void RegisterTiler::emit() {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  for (const Range &range : op.createLoopRanges(b, loc))
    sizeValues.push_back(getValueOrCreateConstantIndexOp(b, loc, range.size));
  position.assign(sizes.size(), constant(0));
  emitOuter(outer);
}

void RegisterTiler::emitLoop(Value begin, Value end, int64_t step,
                             llvm::function_ref<void(Value)> body) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::ForOp::create(b, loc, begin, end, constant(step));
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void RegisterTiler::emitOuter(ArrayRef<unsigned> dims) {
  if (dims.empty())
    return emitLaneBlocks();
  emitLoop(constant(0), sizeValues[dims[0]], 1, [&](Value iv) {
    position[dims[0]] = iv;
    emitOuter(dims.drop_front());
  });
}

void RegisterTiler::emitLaneBlocks() {
  int64_t step = tileChunks * width;
  if (ShapedType::isDynamic(sizes[lane])) {
    // Full tiles, then single vectors, then single lanes.
    Value begin = constant(0);
    SmallVector<int64_t> widths = {step, width, 1};
    widths.erase(llvm::unique(widths), widths.end());
    for (int64_t size : widths) {
      Value blocks =
          arith::DivUIOp::create(b, loc, sizeValues[lane], constant(size));
      Value end = arith::MulIOp::create(b, loc, blocks, constant(size));
      emitLoop(begin, end, size, [&](Value iv) {
        position[lane] = iv;
        emitRowBlocks(chunksOf(0, size));
      });
      begin = end;
    }
    return;
  }
  int64_t blocks = sizes[lane] / step;
  int64_t begin = 0;
  if (blocks > 1) {
    emitLoop(constant(0), constant(blocks * step), step, [&](Value iv) {
      position[lane] = iv;
      emitRowBlocks(chunksOf(0, step));
    });
    begin = blocks * step;
  }
  position[lane] = constant(0);
  SmallVector<LaneChunk> rest = chunksOf(begin, sizes[lane]);
  for (ArrayRef<LaneChunk> left = rest; !left.empty();
       left = left.drop_front(std::min<size_t>(left.size(), tileChunks)))
    emitRowBlocks(left.take_front(tileChunks));
}

void RegisterTiler::emitRowBlocks(ArrayRef<LaneChunk> chunks) {
  if (!row)
    return emitTile(1, chunks);
  auto emitRows = [&](Value begin, Value end, int64_t rows) {
    emitLoop(begin, end, rows, [&](Value iv) {
      position[*row] = iv;
      emitTile(rows, chunks);
    });
  };
  int64_t size = sizes[*row];
  if (ShapedType::isDynamic(size)) {
    Value blocks =
        arith::DivUIOp::create(b, loc, sizeValues[*row], constant(tileRows));
    Value middle = arith::MulIOp::create(b, loc, blocks, constant(tileRows));
    emitRows(constant(0), middle, tileRows);
    if (tileRows > 1)
      emitRows(middle, sizeValues[*row], 1);
    return;
  }
  int64_t whole = size / tileRows * tileRows;
  if (whole > 0)
    emitRows(constant(0), constant(whole), tileRows);
  if (whole < size) {
    position[*row] = constant(whole);
    emitTile(size - whole, chunks);
  }
}

void RegisterTiler::emitTile(int64_t rows, ArrayRef<LaneChunk> chunks) {
  Block *body = op.getBlock();
  auto yielded = body->getTerminator()->getOperands();
  auto inits = op.getDpsInitsMutable();
  Cache outside;

  auto compute = [&](Cache &cache) {
    SmallVector<Value> results;
    for (Value value : yielded)
      for (int64_t r = 0; r < rows; ++r)
        for (LaneChunk chunk : chunks)
          results.push_back(
              broadcast(cache, evaluate(cache, value, r, chunk), chunk.width));
    return results;
  };

  SmallVector<Value> results;
  if (reductions.empty()) {
    results = compute(outside);
  } else {
    for (OpOperand &init : inits) {
      Value start = initialValues.lookup(&init);
      // A sum is added to what was there as a whole: that is one addition with
      // its error, whatever the number of terms.
      if (!start && isSum(init))
        start = arith::ConstantOp::create(
            b, loc, b.getZeroAttr(getElementTypeOrSelf(init.get())));
      for (int64_t r = 0; r < rows; ++r)
        for (LaneChunk chunk : chunks)
          results.push_back(start ? broadcast(outside, start, chunk.width)
                                  : load(outside, init, r, chunk));
    }
    SmallVector<scf::ForOp> loops;
    OpBuilder::InsertionGuard guard(b);
    auto isLong = [&](OpOperand &init) { return isLongSum(init); };
    auto enterLoop = [&](Value begin, Value end, int64_t step) {
      auto loop =
          scf::ForOp::create(b, loc, begin, end, constant(step), results);
      b.setInsertionPointToStart(loop.getBody());
      results.assign(loop.getRegionIterArgs().begin(),
                     loop.getRegionIterArgs().end());
      loops.push_back(loop);
      return loop.getInductionVar();
    };
    // By result, the sum before a block; null where there are no blocks.
    SmallVector<Value> sums;
    for (unsigned dim : reductions) {
      Value begin = constant(0), end = sizeValues[dim];
      if (llvm::any_of(inits, isLong)) {
        begin = enterLoop(begin, end, termsOfSum);
        end = arith::MinUIOp::create(
            b, loc, end,
            arith::AddIOp::create(b, loc, begin, constant(termsOfSum)));
        for (auto [number, result] : llvm::enumerate(results)) {
          bool starts = isLong(inits[number / (rows * chunks.size())]);
          sums.push_back(starts ? result : Value());
          if (starts)
            result = arith::ConstantOp::create(b, loc,
                                               b.getZeroAttr(result.getType()));
        }
      }
      position[dim] = enterLoop(begin, end, 1);
    }
    Cache inside;
    unsigned next = 0;
    for (OpOperand &init : inits)
      for (int64_t r = 0; r < rows; ++r)
        for (LaneChunk chunk : chunks)
          inside
              .values[{op.getMatchingBlockArgument(&init).getAsOpaquePointer(),
                       row ? r : 0, chunk.offset}] = results[next++];
    results = compute(inside);
    for (scf::ForOp loop : llvm::reverse(loops)) {
      b.setInsertionPointToEnd(loop.getBody());
      if (loop == loops.front())
        for (auto [sum, result] : llvm::zip(sums, results))
          if (sum)
            result = arith::AddFOp::create(b, loc, sum, result);
      scf::YieldOp::create(b, loc, results);
      results.assign(loop.getResults().begin(), loop.getResults().end());
    }
  }

  unsigned next = 0;
  for (OpOperand &init : inits) {
    bool isAdded =
        !reductions.empty() && !initialValues.count(&init) && isSum(init);
    for (int64_t r = 0; r < rows; ++r)
      for (LaneChunk chunk : chunks) {
        Value result = results[next++];
        if (isAdded)
          result = arith::AddFOp::create(
              b, loc,
              broadcast(outside, load(outside, init, r, chunk), chunk.width),
              result);
        store(outside, init, result, r, chunk);
      }
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value RegisterTiler::index(Cache &cache, unsigned dim, int64_t offset) {
  if (offset == 0)
    return position[dim];
  Value &cached = cache.indices[{dim, offset}];
  if (!cached)
    cached = arith::AddIOp::create(b, loc, position[dim], constant(offset));
  return cached;
}

/// The indices of the operand's element at a row and lane of the tile.
SmallVector<Value> RegisterTiler::address(Cache &cache, OpOperand &operand,
                                          int64_t r, int64_t l) {
  SmallVector<Value> indices;
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    if (auto fixed = dyn_cast<AffineConstantExpr>(expr)) {
      indices.push_back(constant(fixed.getValue()));
      continue;
    }
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    indices.push_back(index(cache, dim, dim == lane ? l : dim == row ? r : 0));
  }
  return indices;
}

/// A scalar if the operand does not vary along the lanes, else a vector.
Value RegisterTiler::load(Cache &cache, OpOperand &operand, int64_t r,
                          LaneChunk chunk) {
  Value buffer = operand.get();
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type)
    return buffer;
  if (!dependsOn(op.getMatchingIndexingMap(&operand), lane))
    return memref::LoadOp::create(b, loc, buffer,
                                  address(cache, operand, r, 0));
  auto vector = VectorType::get({chunk.width}, type.getElementType());
  if (isContiguousInLane(operand))
    return vector::LoadOp::create(b, loc, vector, buffer,
                                  address(cache, operand, r, chunk.offset));
  SmallVector<Value> lanes;
  for (int64_t l = 0; l < chunk.width; ++l)
    lanes.push_back(memref::LoadOp::create(
        b, loc, buffer, address(cache, operand, r, chunk.offset + l)));
  return vector::FromElementsOp::create(b, loc, vector, lanes);
}

void RegisterTiler::store(Cache &cache, OpOperand &operand, Value vector,
                          int64_t r, LaneChunk chunk) {
  if (isContiguousInLane(operand)) {
    vector::StoreOp::create(b, loc, vector, operand.get(),
                            address(cache, operand, r, chunk.offset));
    return;
  }
  for (int64_t l = 0; l < chunk.width; ++l) {
    Value element = vector::ExtractOp::create(b, loc, vector, l);
    memref::StoreOp::create(b, loc, element, operand.get(),
                            address(cache, operand, r, chunk.offset + l));
  }
}

Value RegisterTiler::broadcast(Cache &cache, Value value, int64_t lanes) {
  if (isa<VectorType>(value.getType()))
    return value;
  Value &cached = cache.broadcasts[{value.getAsOpaquePointer(), lanes}];
  if (!cached)
    cached = vector::BroadcastOp::create(
        b, loc, VectorType::get({lanes}, value.getType()), value);
  return cached;
}

Value RegisterTiler::evaluate(Cache &cache, Value value, int64_t r,
                              LaneChunk chunk) {
  if (value.getParentBlock() != op.getBlock())
    return value;
  unsigned bits = varies.lookup(value);
  std::tuple<void *, int64_t, int64_t> key = {
      value.getAsOpaquePointer(), bits & OnRow ? r : 0,
      bits & OnLane ? chunk.offset : -1};
  if (auto it = cache.values.find(key); it != cache.values.end())
    return it->second;
  Value result;
  if (auto arg = dyn_cast<BlockArgument>(value))
    result = load(cache, *op.getMatchingOpOperand(arg), r, chunk);
  else
    result = evaluateOp(cache, value.getDefiningOp(), r, chunk);
  return cache.values[key] = result;
}

/// Whether `value` is the element of an output that a reduction accumulates.
bool RegisterTiler::isAccumulated(Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && arg.getOwner() == op.getBlock() &&
         op.isDpsInit(op.getMatchingOpOperand(arg));
}

/// Whether a reduction only ever adds to this output.
bool RegisterTiler::isSum(OpOperand &init) {
  BlockArgument arg = op.getMatchingBlockArgument(&init);
  auto add =
      op.getMatchingYieldValue(&init)->get().getDefiningOp<arith::AddFOp>();
  return add && arg.hasOneUse() && *arg.getUsers().begin() == add;
}

/// Whether elements are added up in blocks. Products are not, whose sums fill
/// the registers: a second set of them would be spilled.
bool RegisterTiler::isLongSum(OpOperand &init) {
  if (reductions.size() != 1 || !isSum(init))
    return false;
  int64_t terms = sizes[reductions[0]];
  Operation *add = op.getMatchingYieldValue(&init)->get().getDefiningOp();
  return (ShapedType::isDynamic(terms) || terms > termsOfSum) &&
         llvm::all_of(add->getOperands(), llvm::IsaPred<BlockArgument>);
}

/// The greater of an element and an accumulated maximum. That is never NaN if
/// it starts from a number, so that one instruction does what `maxnumf` wants.
Value RegisterTiler::compareWithNumber(Cache &cache, Operation *bodyOp,
                                       int64_t r, LaneChunk chunk) {
  auto max = dyn_cast<arith::MaxNumFOp>(bodyOp);
  if (!max)
    return {};
  for (auto [old, added] : {std::pair(max.getLhs(), max.getRhs()),
                            std::pair(max.getRhs(), max.getLhs())}) {
    if (!isAccumulated(old))
      continue;
    OpOperand &init = *op.getMatchingOpOperand(cast<BlockArgument>(old));
    FloatAttr start;
    if (op.getMatchingYieldValue(&init)->get() != max.getResult() ||
        !initialValues.count(&init) ||
        !matchPattern(initialValues[&init], m_Constant(&start)) ||
        start.getValue().isNaN())
      continue;
    auto vector = [&](Value value) {
      return broadcast(cache, evaluate(cache, value, r, chunk), chunk.width);
    };
    Value lhs = vector(added), rhs = vector(old);
    Value isGreater =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, lhs, rhs);
    return arith::SelectOp::create(b, loc, isGreater, lhs, rhs);
  }
  return {};
}

/// An accumulated product is one fused multiply-add.
Value RegisterTiler::fuseMultiplyAdd(Cache &cache, Operation *bodyOp, int64_t r,
                                     LaneChunk chunk) {
  auto add = dyn_cast<arith::AddFOp>(bodyOp);
  if (!add || reductions.empty())
    return {};
  for (auto [sum, product] : {std::pair(add.getLhs(), add.getRhs()),
                              std::pair(add.getRhs(), add.getLhs())}) {
    auto multiply = product.getDefiningOp<arith::MulFOp>();
    if (!multiply || !multiply->hasOneUse() || !isAccumulated(sum))
      continue;
    auto vector = [&](Value value) {
      return broadcast(cache, evaluate(cache, value, r, chunk), chunk.width);
    };
    Value lhs = vector(multiply.getLhs()), rhs = vector(multiply.getRhs());
    return vector::FMAOp::create(b, loc, lhs, rhs, vector(sum));
  }
  return {};
}

Value RegisterTiler::evaluateOp(Cache &cache, Operation *bodyOp, int64_t r,
                                LaneChunk chunk) {
  Value result = bodyOp->getResult(0);
  bool onLane = varies.lookup(result) & OnLane;
  if (auto indexOp = dyn_cast<linalg::IndexOp>(bodyOp)) {
    unsigned dim = indexOp.getDim();
    if (!onLane)
      return index(cache, dim, dim == row ? r : 0);
    auto type = VectorType::get({chunk.width}, b.getIndexType());
    Value base = vector::BroadcastOp::create(b, loc, type,
                                             index(cache, dim, chunk.offset));
    auto lanes = llvm::to_vector(llvm::seq(chunk.width));
    Value step = arith::ConstantOp::create(
        b, loc, DenseIntElementsAttr::get(type, ArrayRef<int64_t>(lanes)));
    return arith::AddIOp::create(b, loc, base, step);
  }
  if (Value fused = fuseMultiplyAdd(cache, bodyOp, r, chunk))
    return fused;
  if (Value compared = compareWithNumber(cache, bodyOp, r, chunk))
    return compared;

  SmallVector<Value> operands;
  for (Value operand : bodyOp->getOperands())
    operands.push_back(evaluate(cache, operand, r, chunk));
  if (onLane && isa<memref::LoadOp>(bodyOp)) {
    // A gather: one scalar load per lane.
    SmallVector<Value> lanes;
    for (int64_t l = 0; l < chunk.width; ++l) {
      SmallVector<Value> indices;
      for (Value operand : ArrayRef(operands).drop_front())
        indices.push_back(isa<VectorType>(operand.getType())
                              ? vector::ExtractOp::create(b, loc, operand, l)
                              : operand);
      lanes.push_back(memref::LoadOp::create(b, loc, operands[0], indices));
    }
    return vector::FromElementsOp::create(
        b, loc, VectorType::get({chunk.width}, result.getType()), lanes);
  }
  Type type = result.getType();
  if (onLane) {
    type = VectorType::get({chunk.width}, type);
    // A select whose condition is the same in every lane keeps it scalar.
    bool keepFirst = isa<arith::SelectOp>(bodyOp);
    for (auto [i, operand] : llvm::enumerate(operands))
      if (!(keepFirst && i == 0))
        operand = broadcast(cache, operand, chunk.width);
  }
  IRMapping mapping;
  mapping.map(bodyOp->getOperands(), operands);
  Operation *created = b.clone(*bodyOp, mapping);
  created->getResult(0).setType(type);
  return created->getResult(0);
}

} // namespace flash
