//===- Memory.cpp - Global and shared memory of a thread ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "SharedTile.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flash;

/// The indices of a row of a packed tile that starts at `indices`.
static SmallVector<Value> getPackedIndices(ThreadBuilder &t,
                                           ArrayRef<Value> indices,
                                           size_t rowDim, int64_t packed,
                                           Value row) {
  SmallVector<Value> ofRow(indices);
  ofRow[rowDim - 1] = t.add(ofRow[rowDim - 1], t.div(row, packed));
  ofRow[rowDim] = t.add(ofRow[rowDim], t.rem(row, packed));
  return ofRow;
}

static FailureOr<Value> convertDim(memref::DimOp op,
                                   ManyValues<memref::DimOp> adaptor,
                                   ThreadBuilder &t) {
  std::optional<int64_t> index = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!index || !type)
    return failure();
  GlobalMemory memory(type, adaptor.getSource());
  return memory.getSize(t, *index);
}

static FailureOr<Value> convertLoadElement(memref::LoadOp op,
                                           ManyValues<memref::LoadOp> adaptor,
                                           ThreadBuilder &t) {
  GlobalMemory memory(op.getMemRefType(), adaptor.getMemref());
  return LLVM::LoadOp::create(
             t.b, t.loc, op.getType(),
             memory.getAddress(t, getIndices(adaptor.getIndices())))
      .getResult();
}

static FailureOr<Value> convertStoreElement(memref::StoreOp op,
                                            ManyValues<memref::StoreOp> adaptor,
                                            ThreadBuilder &t) {
  GlobalMemory memory(op.getMemRefType(), adaptor.getMemref());
  LLVM::StoreOp::create(t.b, t.loc, adaptor.getValue().front(),
                        memory.getAddress(t, getIndices(adaptor.getIndices())));
  return Value();
}

static FailureOr<Value> convertSmemView(tile::SmemViewOp op,
                                        tile::SmemViewOp::Adaptor adaptor,
                                        ThreadBuilder &t) {
  return t.advance(t.sharedMemory(), adaptor.getOffset());
}

/// Copies 16 bytes to shared memory, or zeros unless `exists`: by cp.async, or
/// by way of registers where the machine has only those.
static void copyChunk(ThreadBuilder &t, bool isAsync, Value to, Value source,
                      Value exists) {
  OpBuilder &b = t.b;
  if (isAsync) {
    Value size;
    if (exists)
      size = arith::SelectOp::create(b, t.loc, exists, t.i32(16), t.i32(0));
    NVVM::CpAsyncOp::create(b, t.loc, to, source, 16,
                            NVVM::LoadCacheModifierKind::CG, size);
    return;
  }
  auto type = VectorType::get({4}, b.getI32Type());
  auto load = [&](OpBuilder &b) -> Value {
    return LLVM::LoadOp::create(b, t.loc, type, source, /*alignment=*/16);
  };
  Value chunk;
  if (exists) {
    auto choice = scf::IfOp::create(
        b, t.loc, exists,
        [&](OpBuilder &b, Location loc) {
          scf::YieldOp::create(b, loc, load(b));
        },
        [&](OpBuilder &b, Location loc) {
          Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
          scf::YieldOp::create(b, loc, zeros);
        });
    chunk = choice.getResult(0);
  } else {
    chunk = load(b);
  }
  LLVM::StoreOp::create(b, t.loc, chunk, to, /*alignment=*/16);
}

/// Each thread copies chunks of 16 bytes: neighbouring threads the chunks of a
/// panel's row, groups of threads the rows.
static FailureOr<Value> convertCopy(tile::CopyOp op,
                                    ManyValues<tile::CopyOp> adaptor,
                                    ThreadBuilder &t) {
  OpBuilder &b = t.b;
  FailureOr<int64_t> threads = getNumThreads(op);
  if (failed(threads))
    return failure();
  bool isAsync = t.machine().copies >= TileCopies::Async;
  tile::SmemType type = op.getDestination().getType();
  GlobalMemory memory(op.getSource().getType(), adaptor.getSource());
  Value shared = adaptor.getDestination().front();
  Value limit = op.getRows() ? adaptor.getRows().front() : Value();

  int64_t tileRows = op.getTileRows().value_or(type.getRows());
  int64_t chunksInPanel = type.getSwizzle() / 16;
  int64_t rowBytes = type.getColumns() * type.getElementBytes();
  int64_t rowsAtOnce = *threads / chunksInPanel;
  Value row = t.div(t.thread(), chunksInPanel);
  Value chunk = t.rem(t.thread(), chunksInPanel);

  SmallVector<Value> indices = getIndices(adaptor.getIndices());
  size_t rowDim = memory.type.getRank() - 2;
  Value column = t.mul(chunk, 16 / type.getElementBytes());
  if (!op.getPacked())
    indices[rowDim] = t.add(indices[rowDim], row);
  if (indices.size() == rowDim + 1)
    indices.push_back(column);
  else
    indices.back() = t.add(indices.back(), column);
  // The address of each row, or of the first and how far apart they are.
  Value from, rowStride;
  if (!op.getPacked()) {
    from = memory.getAddress(t, indices);
    // The host has made sure that the rows of a tile span less than 2^31
    // bytes.
    rowStride = arith::TruncIOp::create(b, t.loc, b.getI32Type(),
                                        memory.getByteStride(t, rowDim));
  }

  for (int64_t panel = 0; panel < type.getNumPanels(); ++panel) {
    // Chunks that hold data, and those up to a multiple of 32 bytes, which
    // are zero.
    int64_t bytes =
        std::min(type.getSwizzle(), rowBytes - panel * type.getSwizzle());
    int64_t data = bytes / 16, filled = llvm::alignTo(bytes, 32) / 16;
    for (int64_t first = 0; first < tileRows; first += rowsAtOnce) {
      Value here = t.add(row, t.constant(first));
      Value execute, exists;
      auto both = [&](Value &condition, Value x, int64_t bound,
                      Value dynamicBound) {
        Value holds = arith::CmpIOp::create(
            b, t.loc, arith::CmpIPredicate::slt, x,
            dynamicBound ? dynamicBound : t.constant(bound));
        condition =
            condition
                ? arith::AndIOp::create(b, t.loc, condition, holds).getResult()
                : holds;
      };
      if (filled < chunksInPanel)
        both(execute, chunk, filled, Value());
      if (first + rowsAtOnce > tileRows)
        both(execute, here, tileRows, Value());
      if (data < filled)
        both(exists, chunk, data, Value());
      if (limit)
        both(exists, here, 0, limit);

      OpBuilder::InsertionGuard guard(b);
      if (execute) {
        auto choice = scf::IfOp::create(b, t.loc, execute);
        b.setInsertionPointToStart(choice.thenBlock());
      }
      Value inTile =
          op.getFirstRow() ? t.add(here, adaptor.getFirstRow().front()) : here;
      Value offset = getSwizzledOffset(t, type, inTile, chunk);
      Value to =
          t.advance(t.advance(shared, offset), panel * type.getPanelBytes());
      Value source;
      if (op.getPacked()) {
        source = memory.getAddress(
            t, getPackedIndices(t, indices, rowDim, *op.getPacked(), here));
      } else {
        Value distance =
            arith::MulIOp::create(b, t.loc, rowStride, t.i32(first));
        source = LLVM::GEPOp::create(b, t.loc, from.getType(), b.getI8Type(),
                                     from, ArrayRef<LLVM::GEPArg>{distance});
      }
      source = t.advance(source, panel * type.getSwizzle());
      copyChunk(t, isAsync, to, source, exists);
    }
  }
  return Value();
}

/// Every thread reads the columns of its fragment from the same row.
static FailureOr<Value> convertLoadRow(tile::LoadRowOp op,
                                       tile::LoadRowOp::Adaptor adaptor,
                                       ThreadBuilder &t) {
  tile::SmemType type = op.getSource().getType();
  RankedTensorType result = op.getResult().getType();
  int64_t bytes = type.getElementBytes(), perChunk = 16 / bytes;
  int64_t chunksInPanel = type.getSwizzle() / 16;
  Value source =
      advanceToPanel(t, type, adaptor.getSource(), adaptor.getPanel());
  SmallVector<Value> columns;
  for (int64_t block = 0; block < result.getDimSize(1) / 8; ++block) {
    Value column = t.add(t.fragmentColumn(), t.constant(8 * block));
    Value chunk = t.div(column, perChunk);
    Value offset = getSwizzledOffset(t, type, adaptor.getRow(),
                                     t.rem(chunk, chunksInPanel));
    offset = t.add(offset, t.mul(t.rem(column, perChunk), bytes));
    offset =
        t.add(offset, t.mul(t.div(chunk, chunksInPanel), type.getPanelBytes()));
    Value address = t.advance(source, offset);
    if (bytes == 2) {
      Value pair = LLVM::LoadOp::create(t.b, t.loc, t.b.getI32Type(), address);
      llvm::append_range(columns, t.extendPair(pair, type.getElementType()));
    } else {
      Value pair = LLVM::LoadOp::create(t.b, t.loc,
                                        VectorType::get({2}, t.b.getF32Type()),
                                        address, /*alignment=*/8);
      llvm::append_range(columns, t.unpack(pair));
    }
  }
  int64_t warps = cast<tile::FragmentAttr>(result.getEncoding()).getWarps();
  SmallVector<Value> registers;
  for (int64_t rows = 0; rows < result.getDimSize(0);
       rows += rowsOfWarp * warps)
    for (size_t i = 0; i < columns.size(); i += 2)
      registers.append(
          {columns[i], columns[i + 1], columns[i], columns[i + 1]});
  return t.pack(registers);
}

/// The threads that share the chunks of a tile, and the number among them of
/// this one: all threads of the block, or of its last warps, as many as are
/// given.
static FailureOr<std::pair<int64_t, Value>>
getShare(ThreadBuilder &t, Operation *op, std::optional<int64_t> warps) {
  FailureOr<int64_t> threads = getNumThreads(op);
  if (failed(threads))
    return failure();
  if (!warps)
    return std::pair(*threads, t.thread());
  int64_t shared = *warps * threadsOfWarp;
  return std::pair(shared, t.add(t.thread(), t.constant(shared - *threads)));
}

/// The elements of a tile that have a register of 32 bits.
static VectorType getWordType(tile::SmemType type) {
  return VectorType::get({type.getElementBytes() == 2 ? 2 : 1},
                         type.getElementType());
}

/// Each thread looks at the chunks that it would copy.
static FailureOr<Value> convertIsFinite(tile::IsFiniteOp op,
                                        tile::IsFiniteOp::Adaptor adaptor,
                                        ThreadBuilder &t) {
  OpBuilder &b = t.b;
  auto share = getShare(t, op, op.getWarps());
  if (failed(share))
    return failure();
  auto [threads, thread] = *share;
  tile::SmemType type = op.getSource().getType();
  // Zero times a number is zero, unless that is NaN or infinite. Bulk copies
  // fill whole panels, so that all of their chunks can be read.
  VectorType wordType = getWordType(type);
  Value zero = arith::ConstantOp::create(b, t.loc, b.getZeroAttr(wordType));
  bool isLinear = op.getWarps().has_value();
  int64_t chunksInPanel = type.getSwizzle() / 16;
  int64_t chunksInRow = type.getColumns() * type.getElementBytes() / 16;
  int64_t chunks =
      isLinear ? type.getNumBytes() / 16 : type.getRows() * chunksInRow;
  // A few at a time, since registers are scarce, above all where a warp has
  // given most of its own away.
  int64_t chunksAtATime = op.getWarps() ? 2 : 4;
  size_t numSums = op.getWarps() ? 2 : 4;
  auto chunkType = VectorType::get({4}, b.getI32Type());
  auto loadChunk = [&](Value number) -> Value {
    Value offset = t.mul(number, 16);
    if (!isLinear) {
      Value row = t.div(number, chunksInRow),
            chunk = t.rem(number, chunksInRow);
      offset = getSwizzledOffset(t, type, row, t.rem(chunk, chunksInPanel));
      offset = t.add(offset,
                     t.mul(t.div(chunk, chunksInPanel), type.getPanelBytes()));
    }
    return LLVM::LoadOp::create(b, t.loc, chunkType,
                                t.advance(adaptor.getSource(), offset),
                                /*alignment=*/16);
  };
  auto loop = scf::ForOp::create(b, t.loc, t.constant(0), t.constant(chunks),
                                 t.constant(chunksAtATime * threads),
                                 SmallVector<Value>(numSums, zero));
  SmallVector<Value> sums(loop.getResults());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> words, next(loop.getRegionIterArgs());
    for (int64_t i = 0; i < chunksAtATime; ++i) {
      Value number =
          t.add(t.add(thread, loop.getInductionVar()), t.constant(i * threads));
      bool mayPassEnd = chunks % (chunksAtATime * threads) != 0;
      Value chunk;
      if (mayPassEnd && isLinear) {
        // Addresses differ by constants then, which warps that have given
        // their registers away do not keep.
        Value exists = arith::CmpIOp::create(
            b, t.loc, arith::CmpIPredicate::ult, number, t.constant(chunks));
        chunk = t.emitChoice(
            exists, chunkType, [&] { return loadChunk(number); },
            [&]() -> Value {
              return arith::ConstantOp::create(b, t.loc,
                                               b.getZeroAttr(chunkType));
            });
      } else {
        // Past the end the last chunk is looked at again.
        if (mayPassEnd)
          number =
              arith::MinUIOp::create(b, t.loc, number, t.constant(chunks - 1));
        chunk = loadChunk(number);
      }
      llvm::append_range(words, t.unpack(chunk));
    }
    for (auto [i, word] : llvm::enumerate(words)) {
      Value elements = LLVM::BitcastOp::create(b, t.loc, wordType, word);
      Value &sum = next[i % numSums];
      sum = math::FmaOp::create(b, t.loc, elements, zero, sum);
    }
    scf::YieldOp::create(b, t.loc, next);
  }
  // The sums are zeros, of either sign, or NaN.
  Value bits;
  for (Value sum : sums) {
    Value word = LLVM::BitcastOp::create(b, t.loc, b.getI32Type(), sum);
    bits = bits ? arith::OrIOp::create(b, t.loc, bits, word).getResult() : word;
  }
  int64_t allButSigns = type.getElementType().isF32() ? 0x7fffffff : 0x7fff7fff;
  bits = arith::AndIOp::create(b, t.loc, bits, t.i32(allButSigns));
  Value special =
      arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::ne, bits, t.i32(0));
  if (op.getWarps()) {
    Value any = NVVM::VoteSyncOp::create(b, t.loc, b.getI1Type(), t.i32(-1),
                                         special, NVVM::VoteSyncKind::any);
    return arith::XOrIOp::create(
               t.b, t.loc, any,
               arith::ConstantIntOp::create(b, t.loc, b.getI1Type(), 1))
        .getResult();
  }
  Value flag = arith::ExtUIOp::create(b, t.loc, b.getI32Type(), special);
  auto any = NVVM::BarrierOp::create(
      b, t.loc, TypeRange{b.getI32Type()}, /*barrierId=*/Value(),
      /*numberOfThreads=*/Value(),
      NVVM::BarrierReductionAttr::get(b.getContext(),
                                      NVVM::BarrierReduction::OR),
      flag);
  return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                               any.getResult(0), t.i32(0))
      .getResult();
}

/// Each thread sees to the chunks at which it looks as one of as many warps, or
/// of as many that copy.
static FailureOr<Value> convertMakeFinite(tile::MakeFiniteOp op,
                                          tile::MakeFiniteOp::Adaptor adaptor,
                                          ThreadBuilder &t) {
  OpBuilder &b = t.b;
  auto share = getShare(t, op, op.getWarps());
  if (failed(share) || !op.getWarps())
    return failure();
  auto [threads, thread] = *share;
  if (op.getCopy())
    thread = t.thread();
  tile::SmemType type = op.getTile().getType();
  VectorType wordType = getWordType(type);
  auto chunkType = VectorType::get({4}, b.getI32Type());
  Value zero = arith::ConstantOp::create(b, t.loc, b.getZeroAttr(wordType));
  auto loop =
      scf::ForOp::create(b, t.loc, thread, t.constant(type.getNumBytes() / 16),
                         t.constant(threads));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value offset = t.mul(loop.getInductionVar(), 16);
    Value address = t.advance(adaptor.getTile(), offset);
    Value chunk = LLVM::LoadOp::create(b, t.loc, chunkType, address,
                                       /*alignment=*/16);
    if (op.getCopy())
      address = t.advance(adaptor.getCopy(), offset);
    SmallVector<Value> words;
    for (Value word : t.unpack(chunk)) {
      Value x = LLVM::BitcastOp::create(b, t.loc, wordType, word);
      // Zero times NaN or an infinite number is no number.
      Value product = math::FmaOp::create(b, t.loc, x, zero, zero);
      Value isFinite = arith::CmpFOp::create(
          b, t.loc, arith::CmpFPredicate::ORD, product, product);
      Value finite = arith::SelectOp::create(b, t.loc, isFinite, x, zero);
      words.push_back(
          LLVM::BitcastOp::create(b, t.loc, b.getI32Type(), finite));
    }
    LLVM::StoreOp::create(b, t.loc, t.pack(words), address,
                          /*alignment=*/16);
  }
  return Value();
}

/// Each thread clears the chunks of 16 bytes whose numbers are its own.
static FailureOr<Value> convertClear(tile::ClearOp op,
                                     tile::ClearOp::Adaptor adaptor,
                                     ThreadBuilder &t) {
  OpBuilder &b = t.b;
  auto chunkType = VectorType::get({4}, b.getI32Type());
  Value zero = arith::ConstantOp::create(b, t.loc, b.getZeroAttr(chunkType));
  int64_t chunks = op.getTile().getType().getNumBytes() / 16;
  int64_t threads = op.getWarps() * 32;
  for (int64_t first = 0; first < chunks; first += threads) {
    Value number = t.add(t.thread(), t.constant(first));
    if (first + threads > chunks)
      number = arith::MinUIOp::create(b, t.loc, number, t.constant(chunks - 1));
    LLVM::StoreOp::create(b, t.loc, zero,
                          t.advance(adaptor.getTile(), t.mul(number, 16)),
                          /*alignment=*/16);
  }
  return Value();
}

static Value isBelow(ThreadBuilder &t, Value x, Value bound) {
  return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt, x, bound);
}
/// Starts a branch where the condition holds.
static void startIf(ThreadBuilder &t, Value condition) {
  auto choice = scf::IfOp::create(t.b, t.loc, condition);
  t.b.setInsertionPointToStart(choice.thenBlock());
}

/// The indices of row `row` of the tile.
static SmallVector<Value> getRow(ThreadBuilder &t, tile::StoreOp op,
                                 ArrayRef<Value> indices, size_t rowDim,
                                 Value row) {
  if (op.getPacked())
    return getPackedIndices(t, indices, rowDim, *op.getPacked(), row);
  SmallVector<Value> ofRow(indices);
  ofRow[rowDim] = t.add(ofRow[rowDim], row);
  return ofRow;
}

/// Among the threads that hold a value the first stores it: for a row the first
/// of four lanes, for a column the first of eight in the first warp.
static void storeVector(ThreadBuilder &t, tile::StoreOp op,
                        GlobalMemory &memory, ArrayRef<Value> registers,
                        ArrayRef<Value> indices, Value limit) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  auto layout = cast<tile::LayoutAttrInterface>(type.getEncoding());
  bool isOfColumns = isa<tile::ColumnsAttr>(layout);
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  SmallVector<Value> elements;
  for (Value own : registers)
    if (bytes == 2)
      llvm::append_range(elements, t.splitPair(own, type.getElementType()));
    else
      elements.push_back(own);
  for (auto [i, element] : llvm::enumerate(elements)) {
    int64_t part = layout.getRegisterPart(type.getShape(), i).front();
    Value at = t.add(isOfColumns ? t.fragmentColumn() : t.fragmentRow(layout),
                     t.constant(part));
    OpBuilder::InsertionGuard guard(t.b);
    Value execute = limit ? isBelow(t, at, limit) : Value();
    Value isFirst =
        isOfColumns
            ? isBelow(t, t.thread(), t.constant(4))
            : arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                                    t.rem(t.lane(), 4), t.constant(0));
    if (execute)
      isFirst = arith::AndIOp::create(t.b, t.loc, execute, isFirst);
    startIf(t, isFirst);
    LLVM::StoreOp::create(
        t.b, t.loc, element,
        memory.getAddress(t, getRow(t, op, indices, indices.size() - 1, at)),
        /*alignment=*/bytes);
  }
}

static FailureOr<Value> convertStore(tile::StoreOp op,
                                     ManyValues<tile::StoreOp> adaptor,
                                     ThreadBuilder &t) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  auto layout = cast<tile::LayoutAttrInterface>(type.getEncoding());
  // See convertStoreWarpRows.
  if (isa<tile::WarpRowsAttr>(layout))
    return failure();
  OpBuilder &b = t.b;
  GlobalMemory memory(op.getDestination().getType(), adaptor.getDestination());
  SmallVector<Value> registers = t.unpack(adaptor.getX().front());
  SmallVector<Value> indices = getIndices(adaptor.getIndices());
  Value limit = op.getRows() ? adaptor.getRows().front() : Value();
  if (type.getRank() == 1) {
    storeVector(t, op, memory, registers, indices, limit);
    return Value();
  }
  size_t rowDim = memory.type.getRank() - 2;
  Value firstColumn = t.fragmentColumn(layout);
  if (indices.size() == rowDim + 2)
    indices.back() = t.add(indices.back(), firstColumn);
  else
    indices.push_back(firstColumn);

  int64_t bytes = type.getElementTypeBitWidth() / 8;
  int64_t rows = type.getDimSize(0) / (8 * layout.getNumWarps());
  int64_t blocks = type.getDimSize(1) / 8;
  for (int64_t index = 0; index < rows; ++index) {
    // Row `index` of the thread, as in the layout `rows`.
    int64_t part =
        index / 2 * rowsOfWarp * layout.getNumWarps() + index % 2 * 8;
    Value row = t.add(t.fragmentRow(layout), t.constant(part));
    OpBuilder::InsertionGuard guard(b);
    if (limit)
      startIf(t, isBelow(t, row, limit));
    Value to = memory.getAddress(t, getRow(t, op, indices, rowDim, row));
    for (int64_t block = 0; block < blocks; ++block) {
      Value value;
      int64_t at = index / 2 * blocks + block;
      int64_t column = layout.getRegisterPart(type.getShape(), 4 * at)[1];
      if (bytes == 2)
        value = registers[2 * at + index % 2];
      else
        value = t.pack({registers[4 * at + index % 2 * 2],
                        registers[4 * at + index % 2 * 2 + 1]});
      if (!op.getAdd() && !op.getColumns()) {
        LLVM::StoreOp::create(b, t.loc, value, t.advance(to, column * bytes),
                              /*alignment=*/2 * bytes);
        continue;
      }
      SmallVector<Value> elements;
      if (bytes == 2)
        llvm::append_range(elements, t.splitPair(value, type.getElementType()));
      else
        elements = t.unpack(value);
      for (auto [i, element] : llvm::enumerate(elements)) {
        OpBuilder::InsertionGuard guard(b);
        if (op.getColumns())
          startIf(t, isBelow(t, t.add(firstColumn, t.constant(column + i)),
                             adaptor.getColumns().front()));
        Value address = memory.advance(t, to, column + i);
        if (op.getAdd())
          LLVM::AtomicRMWOp::create(b, t.loc, LLVM::AtomicBinOp::fadd, address,
                                    element, LLVM::AtomicOrdering::monotonic,
                                    /*syncscope=*/"device");
        else
          LLVM::StoreOp::create(b, t.loc, element, address,
                                /*alignment=*/bytes);
      }
    }
  }
  return Value();
}

/// Each thread stores the two neighbours of each of its rows.
static void putPairs(ThreadBuilder &t, tile::PutOp op,
                     ArrayRef<Value> registers, Value shared, Value warp) {
  // The distance of the blocks that odd and even rows of f32 alternate between.
  constexpr int64_t distance = 2;
  auto type = cast<RankedTensorType>(op.getX().getType());
  tile::SmemType stage = op.getDestination().getType();
  int64_t warps =
      cast<tile::LayoutAttrInterface>(type.getEncoding()).getNumWarps();
  int64_t bytes = stage.getElementBytes();
  // Eight columns are one chunk of 16 bytes, or two.
  int64_t chunksOfBlock = bytes / 2, chunksInPanel = stage.getSwizzle() / 16;
  Value pair = t.mul(t.rem(t.lane(), 4), 2 * bytes);
  Value chunkOfLane = t.div(pair, 16), inChunk = t.rem(pair, 16);
  Value rowInBlock = t.div(t.lane(), 4);
  Value rowOfLane = t.add(t.mul(warp, 16), rowInBlock);
  int64_t blocks = type.getDimSize(1) / 8, first = op.getColumn() / 8;
  int64_t count = std::min(blocks - first, stage.getColumns() / 8);
  Value isOdd;
  if (op.getAlternate())
    isOdd = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::ne,
                                  t.rem(rowInBlock, 2), t.constant(0));
  auto choose = [&](Value odd, Value even) -> Value {
    return arith::SelectOp::create(t.b, t.loc, isOdd, odd, even);
  };
  for (int64_t index = 0; index < type.getDimSize(0) / (8 * warps); ++index) {
    Value row = t.add(
        rowOfLane, t.constant(index / 2 * rowsOfWarp * warps + index % 2 * 8));
    auto getPair = [&](int64_t block) {
      int64_t at = index / 2 * blocks + first + block;
      return bytes == 2 ? registers[2 * at + index % 2]
                        : t.pack({registers[4 * at + index % 2 * 2],
                                  registers[4 * at + index % 2 * 2 + 1]});
    };
    auto store = [&](int64_t block, Value chunkOfLane, Value value) {
      int64_t chunk = block * chunksOfBlock;
      Value offset = getSwizzledOffset(
          t, stage, row, t.add(chunkOfLane, t.constant(chunk % chunksInPanel)));
      Value to = t.advance(t.advance(shared, t.add(offset, inChunk)),
                           chunk / chunksInPanel * stage.getPanelBytes());
      LLVM::StoreOp::create(t.b, t.loc, value, to, /*alignment=*/2 * bytes);
    };
    // Of a last panel that is not full some blocks have none to alternate with.
    int64_t alternating =
        op.getAlternate() ? llvm::alignDown(count, 2 * distance) : 0;
    for (int64_t block = alternating; block < count; ++block)
      store(block, chunkOfLane, getPair(block));
    Value zero = t.constant(0), further = t.constant(distance * chunksOfBlock);
    for (int64_t block = 0; block < alternating; ++block) {
      if (block % (2 * distance) >= distance)
        continue;
      Value here = getPair(block), there = getPair(block + distance);
      store(block, t.add(chunkOfLane, choose(further, zero)),
            choose(there, here));
      store(block, t.add(chunkOfLane, choose(zero, further)),
            choose(here, there));
    }
  }
}

/// The first of the four lanes that hold the values of a row stores them.
static void putRows(ThreadBuilder &t, tile::PutOp op, ArrayRef<Value> registers,
                    Value shared) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  OpBuilder::InsertionGuard guard(t.b);
  startIf(t, arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::eq,
                                   t.rem(t.lane(), 4), t.constant(0)));
  for (auto [i, value] : llvm::enumerate(registers))
    LLVM::StoreOp::create(
        t.b, t.loc, value,
        getRowAddress(t, op.getDestination().getType(), shared, type, i),
        /*alignment=*/4);
}

static FailureOr<Value> convertPut(tile::PutOp op, tile::PutOp::Adaptor adaptor,
                                   ThreadBuilder &t) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  tile::SmemType stage = op.getDestination().getType();
  SmallVector<Value> registers = t.unpack(adaptor.getX());
  if (type.getRank() == 1) {
    putRows(t, op, registers, adaptor.getDestination());
    return Value();
  }
  int64_t warps =
      cast<tile::LayoutAttrInterface>(type.getEncoding()).getNumWarps();
  // Matrices are in the order of the registers of two blocks of eight columns:
  // upper and lower rows of one, then of the other.
  Value warp = stage.getRows() == type.getDimSize(0)
                   ? t.warpOf(type.getEncoding())
                   : t.rem(t.warp(), warpsOfWarpgroup);
  if (op.getByPairs() || type.getElementType().isF32()) {
    putPairs(t, op, registers, adaptor.getDestination(), warp);
    return Value();
  }
  MatrixAccess matrices(t, stage, adaptor.getDestination(),
                        t.add(t.mul(warp, 16), t.rem(t.lane(), 16)),
                        t.div(t.lane(), 16));
  int64_t blocks = type.getDimSize(1) / 8, first = op.getColumn() / 8;
  int64_t count = std::min(blocks - first, stage.getColumns() / 8);
  for (int64_t row = 0; row < type.getDimSize(0); row += rowsOfWarp * warps)
    for (int64_t block = 0; block < count; block += 2) {
      int64_t at = row / (rowsOfWarp * warps) * blocks + first + block;
      matrices.store(row, block, ArrayRef<Value>(registers).slice(2 * at, 4));
    }
  return Value();
}

/// Where the count is that the op names.
template <typename Op, typename Adaptor>
static Value getCountAddress(ThreadBuilder &t, Op op, Adaptor adaptor) {
  GlobalMemory counts(op.getCounts().getType(), adaptor.getCounts());
  return counts.getAddress(t, getIndices(adaptor.getIndices()));
}

/// Looks at the count until it is the rank. What others have written before
/// they set it, by bulk copies or otherwise, is then there for the bulk copies
/// that the thread starts.
static FailureOr<Value> convertAwaitRank(tile::AwaitRankOp op,
                                         ManyValues<tile::AwaitRankOp> adaptor,
                                         ThreadBuilder &t) {
  Value count = getCountAddress(t, op, adaptor);
  Value rank = arith::IndexCastOp::create(t.b, t.loc, t.b.getI32Type(),
                                          adaptor.getRank().front());
  NVVM::InlinePtxOp::create(t.b, t.loc, TypeRange(),
                            /*readOnlyArgs=*/ValueRange{count, rank},
                            /*readWriteArgs=*/ValueRange(),
                            "{\n"
                            ".reg .pred isNext;\n"
                            ".reg .b32 count;\n"
                            "look:\n"
                            "ld.acquire.gpu.global.b32 count, [$0];\n"
                            "setp.eq.b32 isNext, count, $1;\n"
                            "@!isNext bra look;\n"
                            "fence.proxy.async.global;\n"
                            "}",
                            /*predicate=*/Value());
  return Value();
}

/// The thread has waited until its bulk copies were complete. Others add when
/// they see the count, so it is a release: without one, additions that had been
/// waited for were now and then carried out behind the additions of the next
/// rank.
static FailureOr<Value>
convertFinishRank(tile::FinishRankOp op, ManyValues<tile::FinishRankOp> adaptor,
                  ThreadBuilder &t) {
  Value count = getCountAddress(t, op, adaptor);
  Value next = t.add(adaptor.getRank().front(), t.constant(1));
  next = arith::IndexCastOp::create(t.b, t.loc, t.b.getI32Type(), next);
  NVVM::InlinePtxOp::create(t.b, t.loc, TypeRange(),
                            /*readOnlyArgs=*/ValueRange{count, next},
                            /*readWriteArgs=*/ValueRange(),
                            "{\n"
                            "fence.proxy.async.global;\n"
                            "st.release.gpu.global.b32 [$0], $1;\n"
                            "}",
                            /*predicate=*/Value());
  return Value();
}

static FailureOr<Value> convertCountUp(tile::CountUpOp op,
                                       ManyValues<tile::CountUpOp> adaptor,
                                       ThreadBuilder &t) {
  Value count = getCountAddress(t, op, adaptor);
  Value one = arith::ConstantIntOp::create(t.b, t.loc, 1, 32);
  return LLVM::AtomicRMWOp::create(t.b, t.loc, LLVM::AtomicBinOp::add, count,
                                   one, LLVM::AtomicOrdering::monotonic,
                                   "device")
      .getResult();
}

/// By a shuffle ptxas knows that all lanes of a warp go on alike.
static FailureOr<Value> convertEndBlockIf(tile::EndBlockIfOp,
                                          tile::EndBlockIfOp::Adaptor adaptor,
                                          ThreadBuilder &t) {
  Type i32 = t.b.getI32Type();
  Value ends = arith::ExtUIOp::create(t.b, t.loc, i32, adaptor.getCondition());
  ends = NVVM::ShflOp::create(t.b, t.loc, i32, t.i32(-1), ends, t.i32(0),
                              t.i32(31), NVVM::ShflKind::idx, UnitAttr());
  ends = arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::ne, ends,
                               t.i32(0));
  NVVM::InlinePtxOp::create(t.b, t.loc, TypeRange(),
                            /*readOnlyArgs=*/ValueRange(),
                            /*readWriteArgs=*/ValueRange(), "exit;",
                            /*predicate=*/ends);
  return Value();
}

/// Warpgroups follow each other along the rows of a tile, and again from its
/// next block of rows on if it has more.
static FailureOr<Value> convertHasRows(tile::HasRowsOp,
                                       tile::HasRowsOp::Adaptor adaptor,
                                       ThreadBuilder &t) {
  Value warpgroup = nvx::WarpgroupOp::create(t.b, t.loc, t.b.getI32Type());
  Value first =
      arith::MulIOp::create(t.b, t.loc, warpgroup, t.i32(rowsOfWarpgroup));
  Value rows = arith::IndexCastOp::create(t.b, t.loc, t.b.getI32Type(),
                                          adaptor.getRows());
  return arith::CmpIOp::create(t.b, t.loc, arith::CmpIPredicate::slt, first,
                               rows)
      .getResult();
}

template <typename Op, NVVM::GridDepActionKind kind>
static FailureOr<Value> convertGridDependency(Op, typename Op::Adaptor,
                                              ThreadBuilder &t) {
  NVVM::GriddepcontrolOp::create(t.b, t.loc, kind);
  return Value();
}

void flash::populateMemoryPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  addConversions(
      converter, patterns, /*benefit=*/1, convertDim, convertLoadElement,
      convertStoreElement, convertSmemView, convertCopy, convertLoadRow,
      convertIsFinite, convertMakeFinite, convertClear, convertStore,
      convertPut, convertAwaitRank, convertFinishRank, convertCountUp,
      convertEndBlockIf, convertHasRows,
      convertGridDependency<tile::AwaitDependenciesOp,
                            NVVM::GridDepActionKind::wait>,
      convertGridDependency<tile::LaunchDependentsOp,
                            NVVM::GridDepActionKind::launch_dependents>);
}
