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
// Layout"). With one row of fragments in each warp the instruction takes the
// registers of a fragment as they are.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "SharedTile.h"

#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash;

namespace {
/// Rows after which the pattern of a swizzle repeats, and the inner dimension
/// of one instruction, in bytes.
constexpr int64_t rowsOfPattern = 8, stepBytes = 32;

/// What a swizzle moves as a whole; a tile whose panels have no more has none.
constexpr int64_t chunkBytes = 16;

/// Steps of a product up to which the number of the warpgroup is the same value
/// for all threads of a warp (nvx.warpgroup).
constexpr int64_t mostStepsOfUniform = 8;

/// A tile as an operand of the instructions of a product.
class Operand {
public:
  /// `isInner` is whether the dimension that the product sums over is the one
  /// whose elements are neighbours in memory.
  Operand(tile::SmemType type, bool isInner) : type(type), isInner(isInner) {}

  /// The matrix descriptor of the tile that begins at `base`.
  Value getDescriptor(ThreadBuilder t, Value base) const {
    // Address and distances are in units of 16 bytes.
    int64_t pattern = rowsOfPattern * type.getSwizzle();
    // From one panel to the next; of no meaning where a panel is never left, as
    // by the inner dimension of a swizzle.
    bool isSwizzled = type.getSwizzle() > chunkBytes;
    int64_t leading = isInner && isSwizzled ? chunkBytes : type.getPanelBytes();
    // Along rows the two are exchanged where there is no swizzle.
    if (!isInner && !isSwizzled)
      std::swap(pattern, leading);
    int64_t mode = type.getSwizzle() == 128  ? 1
                   : type.getSwizzle() == 64 ? 2
                   : isSwizzled              ? 3
                                             : 0;
    uint64_t constant = static_cast<uint64_t>(mode) << 62 |
                        static_cast<uint64_t>(pattern / 16) << 32 |
                        static_cast<uint64_t>(leading / 16) << 16;
    auto i64 = [&](uint64_t value) -> Value {
      return LLVM::ConstantOp::create(t.b, t.loc, t.b.getI64Type(),
                                      t.b.getI64IntegerAttr(value));
    };
    Value address =
        LLVM::PtrToIntOp::create(t.b, t.loc, t.b.getI32Type(), base);
    address = LLVM::ZExtOp::create(t.b, t.loc, t.b.getI64Type(), address);
    address = LLVM::LShrOp::create(t.b, t.loc, address, i64(4));
    address = LLVM::AndOp::create(t.b, t.loc, address, i64(0x3fff));
    return LLVM::OrOp::create(t.b, t.loc, address, i64(constant));
  }

  /// What to add to it for the steps of the inner dimension.
  SmallVector<int64_t> getOffsets(int64_t steps) const {
    SmallVector<int64_t> offsets;
    for (int64_t step = 0; step < steps; ++step)
      offsets.push_back((isInner ? step * stepBytes % type.getSwizzle() +
                                       step * stepBytes / type.getSwizzle() *
                                           type.getPanelBytes()
                                 : step * (stepBytes / type.getElementBytes()) *
                                       type.getSwizzle()) /
                        16);
    return offsets;
  }

private:
  tile::SmemType type;
  bool isInner;
};
} // namespace

/// Whether what is added to the product is added to its sum: tensor cores sum
/// products of 8 bits less accurately than f32, which would add up over steps.
static bool isAddedBehind(tile::MmaAsyncOp op) {
  return op.getC() && op.getB().getType().getElementBytes() == 1;
}

static FailureOr<Value>
convertWarpgroupMmaAsync(tile::MmaAsyncOp op, tile::MmaAsyncOp::Adaptor adaptor,
                         ThreadBuilder &t) {
  // Where each warp works alone.
  if (!op.getWarpgroup())
    return failure();
  tile::SmemType typeB = op.getB().getType();
  int64_t inner = op.getTransposeB() ? typeB.getColumns() : typeB.getRows();
  int64_t steps = llvm::divideCeil(inner * typeB.getElementBytes(), stepBytes);

  // One value for all threads of a warp needs a register of its own, which
  // programs with more steps do not have.
  auto getWarpgroup = [&] {
    return steps > mostStepsOfUniform ? t.div(t.thread(), threadsOfWarpgroup)
                                      : t.warpgroup();
  };
  Value a = adaptor.getA();
  DenseI64ArrayAttr offsetsA;
  if (auto typeA = dyn_cast<tile::SmemType>(op.getA().getType())) {
    // From the rows of one warpgroup, or transposed columns, to the next.
    int64_t distance =
        op.getTransposeA()
            ? rowsOfWarpgroup / typeA.getPanelColumns() * typeA.getPanelBytes()
            : rowsOfWarpgroup * typeA.getSwizzle();
    if (!op.getDivideColumns() &&
        (op.getTransposeA() || typeA.getRows() != rowsOfWarpgroup))
      a = t.advance(a, t.mul(getWarpgroup(), distance));
    Operand operand(typeA, /*isInner=*/!op.getTransposeA());
    a = operand.getDescriptor(t, a);
    offsetsA = t.b.getDenseI64ArrayAttr(operand.getOffsets(steps));
  } else {
    SmallVector<Value> padded = t.unpack(a);
    if (static_cast<int64_t>(padded.size()) < 4 * steps) {
      padded.resize(4 * steps, t.i32(0));
      a = t.pack(padded);
    }
  }
  Operand operandB(typeB, /*isInner=*/op.getTransposeB());
  Value panel = adaptor.getPanel();
  if (op.getDivideColumns())
    panel = t.mul(getWarpgroup(), op.getType().getValue().getDimSize(1) /
                                      typeB.getPanelColumns());
  Value b = operandB.getDescriptor(
      t, advanceToPanel(t, typeB, adaptor.getB(), panel));

  NVVM::WgmmaFenceAlignedOp::create(t.b, t.loc);
  Value result = nvx::WarpgroupMmaOp::create(
      t.b, t.loc, getRegisterType(op.getType().getValue()),
      typeB.getElementType(), a, offsetsA, b, operandB.getOffsets(steps),
      isAddedBehind(op) ? Value() : adaptor.getC(), op.getTransposeA(),
      /*transpose_b=*/!op.getTransposeB());
  NVVM::WgmmaGroupSyncAlignedOp::create(t.b, t.loc);
  return result;
}

/// Whether nothing needs the end of the product but another one of the same
/// warps, which adds to its result: a warpgroup's products do that in the order
/// of their start. In between there are only waits for tiles.
static bool isAddedToByProduct(tile::MmaWaitOp op) {
  if (!op->hasOneUse() || !op.getYounger().empty())
    return false;
  auto product = dyn_cast<tile::MmaAsyncOp>(*op->user_begin());
  if (!product || !product.getWarpgroup() || product.getC() != op ||
      product->getBlock() != op->getBlock() || isAddedBehind(product))
    return false;
  for (Operation *between = op->getNextNode(); between != product;
       between = between->getNextNode())
    if (!isMemoryEffectFree(between) &&
        !isa<NVVM::MBarrierTryWaitParityOp>(between))
      return false;
  return true;
}

static FailureOr<Value>
convertWarpgroupMmaWait(tile::MmaWaitOp op, tile::MmaWaitOp::Adaptor adaptor,
                        ThreadBuilder &t) {
  auto product = op.getPending().getDefiningOp<tile::MmaAsyncOp>();
  if (!product || !product.getWarpgroup())
    return failure();
  if (isAddedToByProduct(op) && !isAddedBehind(product))
    return adaptor.getPending();
  Value result =
      nvx::WarpgroupWaitOp::create(t.b, t.loc, adaptor.getPending().getType(),
                                   op.getYounger().size(), adaptor.getPending())
          .getResult(0);
  if (!isAddedBehind(product))
    return result;
  // It is no operand of the wait. Patterns are given a rewriter.
  Value c = static_cast<ConversionPatternRewriter &>(t.b).getRemappedValue(
      product.getC());
  SmallVector<Value> sums = t.unpack(c);
  for (auto [sum, x] : llvm::zip_equal(sums, t.unpack(result)))
    sum = arith::AddFOp::create(t.b, t.loc, sum, x,
                                arith::FastMathFlags::contract);
  return t.pack(sums);
}

void flash::populateWarpgroupProductPatterns(const TypeConverter &converter,
                                             RewritePatternSet &patterns) {
  addConversions(converter, patterns, /*benefit=*/2, convertWarpgroupMmaAsync,
                 convertWarpgroupMmaWait);
}
