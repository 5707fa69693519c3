//===- WarpgroupProducts.cpp - Matrix products by wgmma -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Four warps multiply 64 rows by all columns of the second operand. Operands in
// shared memory are given by matrix descriptors: an address and the distances
// between the blocks of eight rows of a swizzle's pattern that the operand
// consists of (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory
// Layout"). With one row of fragments in each warp the registers of a fragment
// are those of the instruction.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Dialect/Tile/IR/Warpgroups.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
/// Rows after which the pattern of a swizzle repeats, and the inner dimension
/// of one instruction, in bytes and in 16-bit elements.
constexpr int64_t rowsOfPattern = 8, stepBytes = 32, stepElements = 16;

/// Descriptors of the parts of a tile that the instructions of a product take.
class Descriptors {
public:
  /// `isInner` is whether the dimension that the product sums over is the one
  /// whose elements are neighbours in memory.
  Descriptors(ThreadBuilder t, tile::SmemType type, Value base, bool isInner)
      : t(t), type(type), isInner(isInner) {
    // Address and distances are in units of 16 bytes.
    int64_t pattern = rowsOfPattern * type.getSwizzle();
    // From one panel to the next; of no meaning where a panel is never left.
    int64_t leading = isInner ? 16 : type.getPanelBytes();
    int64_t mode = type.getSwizzle() == 128  ? 1
                   : type.getSwizzle() == 64 ? 2
                                             : 3;
    uint64_t constant = static_cast<uint64_t>(mode) << 62 |
                        static_cast<uint64_t>(pattern / 16) << 32 |
                        static_cast<uint64_t>(leading / 16) << 16;
    Value address =
        LLVM::PtrToIntOp::create(t.b, t.loc, t.b.getI32Type(), base);
    address = LLVM::ZExtOp::create(t.b, t.loc, t.b.getI64Type(), address);
    address = LLVM::LShrOp::create(t.b, t.loc, address, i64(4));
    address = LLVM::AndOp::create(t.b, t.loc, address, i64(0x3fff));
    descriptor = LLVM::OrOp::create(t.b, t.loc, address, i64(constant));
  }

  /// Of the part of a step of the inner dimension.
  Value get(int64_t step) {
    int64_t offset;
    if (isInner) {
      int64_t stepsInPanel = type.getSwizzle() / stepBytes;
      offset = step % stepsInPanel * stepBytes +
               step / stepsInPanel * type.getPanelBytes();
    } else {
      offset = step * stepElements * type.getSwizzle();
    }
    return LLVM::AddOp::create(t.b, t.loc, descriptor, i64(offset / 16));
  }

private:
  Value i64(uint64_t value) {
    return LLVM::ConstantOp::create(t.b, t.loc, t.b.getI64Type(),
                                    t.b.getI64IntegerAttr(value));
  }
  ThreadBuilder t;
  tile::SmemType type;
  bool isInner;
  Value descriptor;
};

struct WarpgroupMmaAsync : OpConversionPattern<tile::MmaAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MmaAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getWarpgroup())
      return rewriter.notifyMatchFailure(op, "each warp works alone");
    ThreadBuilder t{rewriter, op.getLoc()};
    tile::SmemType typeB = op.getB().getType();
    int64_t inner = op.getTransposeB() ? typeB.getColumns() : typeB.getRows();
    int64_t steps = llvm::divideCeil(inner, stepElements);

    Value registers;
    SmallVector<Value> descriptorsA, descriptorsB;
    if (auto typeA = dyn_cast<tile::SmemType>(op.getA().getType())) {
      Value base = adaptor.getA();
      if (typeA.getRows() != tile::rowsOfWarpgroup) {
        Value warpgroup = t.div(t.thread(), tile::threadsOfWarpgroup);
        base = t.advance(
            base, t.mul(warpgroup, tile::rowsOfWarpgroup * typeA.getSwizzle()));
      }
      Descriptors a(t, typeA, base, /*isInner=*/true);
      for (int64_t step = 0; step < steps; ++step)
        descriptorsA.push_back(a.get(step));
    } else {
      registers = adaptor.getA();
      SmallVector<Value> padded = t.unpack(registers);
      if (static_cast<int64_t>(padded.size()) < 4 * steps) {
        padded.resize(4 * steps, t.i32(0));
        registers = t.pack(padded);
      }
    }
    Descriptors b(t, typeB, adaptor.getB(), /*isInner=*/op.getTransposeB());
    for (int64_t step = 0; step < steps; ++step)
      descriptorsB.push_back(b.get(step));

    NVVM::WgmmaFenceAlignedOp::create(rewriter, t.loc);
    Value result = nvx::WarpgroupMmaOp::create(
        rewriter, t.loc, getTypeConverter()->convertType(op.getType()),
        typeB.getElementType(), registers, descriptorsA, descriptorsB,
        adaptor.getC(), /*transpose_b=*/!op.getTransposeB());
    NVVM::WgmmaGroupSyncAlignedOp::create(rewriter, t.loc);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct WarpgroupMmaWait : OpConversionPattern<tile::MmaWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MmaWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto product = op.getPending().getDefiningOp<tile::MmaAsyncOp>();
    if (!product || !product.getWarpgroup())
      return rewriter.notifyMatchFailure(op, "each warp works alone");
    rewriter.replaceOpWithNewOp<nvx::WarpgroupWaitOp>(
        op, adaptor.getPending().getType(), op.getYounger().size(),
        adaptor.getPending());
    return success();
  }
};
} // namespace

void flash::populateWarpgroupProductPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  patterns.add<WarpgroupMmaAsync, WarpgroupMmaWait>(
      converter, patterns.getContext(), /*benefit=*/2);
}
