//===- Memory.cpp - Global and shared memory of a thread ------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "SharedTile.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace flash;

namespace {
struct Dim : OpConversionPattern<memref::DimOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::DimOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> index = op.getConstantIndex();
    auto type = dyn_cast<MemRefType>(op.getSource().getType());
    if (!index || !type)
      return rewriter.notifyMatchFailure(op, "the dimension is not constant");
    ThreadBuilder t{rewriter, op.getLoc()};
    GlobalMemory memory(type, adaptor.getSource());
    rewriter.replaceOp(op, memory.getSize(t, *index));
    return success();
  }
};

struct LoadElement : OpConversionPattern<memref::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    GlobalMemory memory(op.getMemRefType(), adaptor.getMemref());
    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index.front());
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, op.getType(),
                                              memory.getAddress(t, indices));
    return success();
  }
};

struct SmemView : OpConversionPattern<tile::SmemViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SmemViewOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    Type pointer = getTypeConverter()->convertType(op.getType());
    Value base = nvx::SharedMemoryOp::create(rewriter, t.loc, pointer);
    rewriter.replaceOp(op, t.advance(base, adaptor.getOffset()));
    return success();
  }
};

/// Each thread copies chunks of 16 bytes by cp.async: neighbouring threads the
/// chunks of a panel's row, groups of threads the rows.
struct Copy : OpConversionPattern<tile::CopyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder t{rewriter, op.getLoc()};
    OpBuilder &b = rewriter;
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
    if (!block)
      return op.emitOpError("needs a kernel of known block size");
    int64_t threads = block->front();
    tile::SmemType type = op.getDestination().getType();
    GlobalMemory memory(op.getSource().getType(), adaptor.getSource());
    Value shared = adaptor.getDestination().front();
    Value limit = op.getRows() ? adaptor.getRows().front() : Value();

    int64_t chunksInPanel = type.getSwizzle() / 16;
    int64_t rowBytes = type.getColumns() * type.getElementBytes();
    int64_t rowsAtOnce = threads / chunksInPanel;
    Value row = t.div(t.thread(), chunksInPanel);
    Value chunk = t.rem(t.thread(), chunksInPanel);

    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index.front());
    size_t rowDim = memory.type.getRank() - 2;
    Value column = t.mul(chunk, 16 / type.getElementBytes());
    indices[rowDim] = t.add(indices[rowDim], row);
    if (indices.size() == rowDim + 1)
      indices.push_back(column);
    else
      indices.back() = t.add(indices.back(), column);
    Value from = memory.getAddress(t, indices);
    // The host has made sure that the rows of a tile span less than 2^31 bytes.
    Value rowStride = arith::TruncIOp::create(
        b, t.loc, b.getI32Type(), memory.getByteStride(t, rowDim));

    for (int64_t panel = 0; panel < type.getNumPanels(); ++panel) {
      // Chunks that hold data, and those up to a multiple of 32 bytes, which
      // are zero.
      int64_t bytes =
          std::min(type.getSwizzle(), rowBytes - panel * type.getSwizzle());
      int64_t data = bytes / 16, filled = llvm::alignTo(bytes, 32) / 16;
      for (int64_t first = 0; first < type.getRows(); first += rowsAtOnce) {
        Value here = t.add(row, t.constant(first));
        Value execute, exists;
        auto both = [&](Value &condition, Value x, int64_t bound,
                        Value dynamicBound) {
          Value holds = arith::CmpIOp::create(
              b, t.loc, arith::CmpIPredicate::slt, x,
              dynamicBound ? dynamicBound : t.constant(bound));
          condition = condition
                          ? arith::AndIOp::create(b, t.loc, condition, holds)
                                .getResult()
                          : holds;
        };
        if (filled < chunksInPanel)
          both(execute, chunk, filled, Value());
        if (first + rowsAtOnce > type.getRows())
          both(execute, here, type.getRows(), Value());
        if (data < filled)
          both(exists, chunk, data, Value());
        if (limit)
          both(exists, here, 0, limit);

        OpBuilder::InsertionGuard guard(b);
        if (execute) {
          auto choice = scf::IfOp::create(b, t.loc, execute);
          b.setInsertionPointToStart(choice.thenBlock());
        }
        Value offset = getSwizzledOffset(t, type, here, chunk);
        Value to =
            t.advance(t.advance(shared, offset), panel * type.getPanelBytes());
        Value distance =
            arith::MulIOp::create(b, t.loc, rowStride, t.i32(first));
        Value source =
            LLVM::GEPOp::create(b, t.loc, from.getType(), b.getI8Type(), from,
                                ArrayRef<LLVM::GEPArg>{distance});
        source = t.advance(source, panel * type.getSwizzle());
        Value size;
        if (exists)
          size = arith::SelectOp::create(b, t.loc, exists, t.i32(16), t.i32(0));
        NVVM::CpAsyncOp::create(b, t.loc, to, source, 16,
                                NVVM::LoadCacheModifierKind::CG, size);
      }
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct Store : OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getX().getType());
    auto layout = cast<tile::LayoutAttrInterface>(type.getEncoding());
    if (isa<tile::StripsAttr>(layout))
      return rewriter.notifyMatchFailure(op, "strips have their own pattern");
    ThreadBuilder t{rewriter, op.getLoc()};
    OpBuilder &b = rewriter;
    GlobalMemory memory(op.getDestination().getType(),
                        adaptor.getDestination());
    bool isMatrix = type.getRank() == 2;
    SmallVector<Value> registers = t.unpack(adaptor.getX().front());
    SmallVector<Value> indices;
    for (ValueRange index : adaptor.getIndices())
      indices.push_back(index.front());
    size_t rowDim = memory.type.getRank() - (isMatrix ? 2 : 1);
    Value start = indices[rowDim];
    if (indices.size() == rowDim + 2)
      indices.back() = t.add(indices.back(), t.fragmentColumn());
    else if (isMatrix)
      indices.push_back(t.fragmentColumn());

    int64_t bytes = type.getElementTypeBitWidth() / 8;
    int64_t rows = type.getDimSize(0) / (8 * layout.getNumWarps());
    int64_t blocks = isMatrix ? type.getDimSize(1) / 8 : 1;
    for (int64_t index = 0; index < rows; ++index) {
      // Row `index` of the thread, as in the layout `rows`.
      int64_t part = index / 2 * 16 * layout.getNumWarps() + index % 2 * 8;
      Value row = t.add(t.fragmentRow(), t.constant(part));
      OpBuilder::InsertionGuard guard(b);
      Value execute;
      if (op.getRows())
        execute = arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::slt,
                                        row, adaptor.getRows().front());
      if (!isMatrix) {
        // Four lanes hold the value.
        Value first = arith::CmpIOp::create(b, t.loc, arith::CmpIPredicate::eq,
                                            t.rem(t.lane(), 4), t.constant(0));
        execute =
            execute
                ? arith::AndIOp::create(b, t.loc, execute, first).getResult()
                : first;
      }
      if (execute) {
        auto choice = scf::IfOp::create(b, t.loc, execute);
        b.setInsertionPointToStart(choice.thenBlock());
      }
      indices[rowDim] = t.add(start, row);
      Value to = memory.getAddress(t, indices);
      for (int64_t block = 0; block < blocks; ++block) {
        Value value;
        int64_t at = index / 2 * blocks + block;
        if (!isMatrix)
          value = registers[index];
        else if (bytes == 2)
          value = registers[2 * at + index % 2];
        else
          value = t.pack({registers[4 * at + index % 2 * 2],
                          registers[4 * at + index % 2 * 2 + 1]});
        LLVM::StoreOp::create(b, t.loc, value, t.advance(to, 8 * block * bytes),
                              /*alignment=*/isMatrix ? 2 * bytes : bytes);
      }
    }
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void flash::populateMemoryPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<Dim, LoadElement, SmemView, Copy, Store>(converter,
                                                        patterns.getContext());
}
