//===- LinalgToTile.cpp - Launches of block programs ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockConverter.h"
#include "flash/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTLINALGTOTILE
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

/// The type that function arguments have after bufferization.
static MemRefType getFullyDynamicMemRefType(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// The number of iterations of the loop.
static Value emitTripCount(OpBuilder &b, Location loc, scf::ForallOp forall) {
  Value count;
  auto value = [&](OpFoldResult entry) {
    return getValueOrCreateConstantIndexOp(b, loc, entry);
  };
  for (auto [lower, upper, step] :
       llvm::zip_equal(forall.getMixedLowerBound(), forall.getMixedUpperBound(),
                       forall.getMixedStep())) {
    Value extent = arith::SubIOp::create(b, loc, value(upper), value(lower));
    Value trips = arith::CeilDivSIOp::create(b, loc, extent, value(step));
    count =
        count ? arith::MulIOp::create(b, loc, count, trips).getResult() : trips;
  }
  return count;
}

/// The memory of a loop's output that an earlier kernel has written and nothing
/// else reads, or null.
static Value getWrittenBuffer(Value output) {
  auto written = output.getDefiningOp<bufferization::ToTensorOp>();
  size_t readers = llvm::count_if(output.getUses(), [](OpOperand &use) {
    return !isa<tensor::DimOp>(use.getOwner());
  });
  if (!written || !written.getWritable() || readers > 1)
    return Value();
  return written.getBuffer().getDefiningOp<memref::AllocOp>()
             ? written.getBuffer()
             : Value();
}

/// Whether `size` is as many elements of a tile of `step` from `start` on as
/// there are below `end`.
static bool isRestOfTile(OpFoldResult size, Value start, int64_t step,
                         int64_t end) {
  if (end % step == 0 && isConstantIntValue(size, step))
    return true;
  auto min = dyn_cast_if_present<affine::AffineMinOp>(
      dyn_cast<Value>(size) ? cast<Value>(size).getDefiningOp() : nullptr);
  if (!min || min.getNumOperands() != 1 || min.getOperand(0) != start)
    return false;
  AffineMap map = min.getMap();
  MLIRContext *context = map.getContext();
  AffineExpr at = map.getNumDims() == 1 ? getAffineDimExpr(0, context)
                                        : getAffineSymbolExpr(0, context);
  return map.getNumResults() == 2 &&
         llvm::is_contained(map.getResults(),
                            getAffineConstantExpr(step, context)) &&
         llvm::is_contained(map.getResults(), -at + end);
}

/// Whether the blocks together write all of the output by `store`.
static bool writesAll(scf::ForallOp forall,
                      tensor::ParallelInsertSliceOp store) {
  RankedTensorType type = store.getDestType();
  llvm::SmallDenseSet<Value> used;
  for (auto [dim, offset, size, stride] :
       llvm::enumerate(store.getMixedOffsets(), store.getMixedSizes(),
                       store.getMixedStrides())) {
    if (type.isDynamicDim(dim) || !isConstantIntValue(stride, 1))
      return false;
    int64_t end = type.getDimSize(dim);
    if (isZeroInteger(offset) && isConstantIntValue(size, end))
      continue;
    auto start = dyn_cast<Value>(offset);
    auto *position = llvm::find(forall.getInductionVars(), start);
    if (!start || position == forall.getInductionVars().end() ||
        !used.insert(start).second)
      return false;
    unsigned loop = cast<BlockArgument>(start).getArgNumber();
    std::optional<int64_t> step =
        getConstantIntValue(forall.getMixedStep()[loop]);
    if (!isZeroInteger(forall.getMixedLowerBound()[loop]) || !step ||
        !isConstantIntValue(forall.getMixedUpperBound()[loop], end) ||
        !isRestOfTile(size, start, *step, end))
      return false;
  }
  return true;
}

/// Refuses an output that holds anything before the loop, unless its blocks
/// write all of it: a kernel would lose what they do not write.
static LogicalResult verifyOutput(scf::ForallOp forall, OpOperand &operand) {
  Value output = operand.get();
  if (stripCasts(output).getDefiningOp<tensor::EmptyOp>() ||
      getWrittenBuffer(output))
    return success();
  BlockArgument argument = forall.getTiedBlockArgument(&operand);
  for (Operation &op : forall.getTerminator().getBody()->getOperations())
    if (auto store = dyn_cast<tensor::ParallelInsertSliceOp>(op);
        store && store.getDest() == argument &&
        !getWrittenSlice(store.getSource(), forall) && writesAll(forall, store))
      return success();
  InFlightDiagnostic error =
      refuse(forall, "an output of it starts with values, and its blocks may "
                     "not write all of it; start from tensor.empty");
  error.attachNote(output.getLoc()) << "the values";
  return error;
}

/// Replaces the loop by the launch of `kernel`, whose arguments stand for
/// `captures`.
static void emitLaunch(scf::ForallOp forall, gpu::GPUFuncOp kernel,
                       ArrayRef<Capture> captures, int64_t warps) {
  OpBuilder b(forall);
  Location loc = forall.getLoc();
  DenseMap<Value, Value> buffers;
  for (auto [argument, output, result] :
       llvm::zip_equal(forall.getRegionOutArgs(), forall.getOutputs(),
                       forall.getResults())) {
    // Only where a kernel has written it does an output hold anything.
    if (Value written = getWrittenBuffer(output)) {
      buffers[argument] = written;
      continue;
    }
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (type.isDynamicDim(d))
        sizes.push_back(tensor::DimOp::create(b, loc, output, d));
    buffers[argument] = memref::AllocOp::create(
        b, loc, MemRefType::get(type.getShape(), type.getElementType()), sizes);
  }

  SmallVector<Value> operands;
  for (auto [i, captured] : llvm::enumerate(captures)) {
    auto type = dyn_cast<RankedTensorType>(captured.value.getType());
    if (!type) {
      operands.push_back(captured.value);
      continue;
    }
    Value buffer = buffers.lookup(captured.value);
    if (!buffer)
      buffer = bufferization::ToBufferOp::create(
          b, loc, getFullyDynamicMemRefType(type), captured.value,
          /*read_only=*/true);
    if (!llvm::equal(captured.order, llvm::seq<unsigned>(type.getRank())))
      buffer = memref::TransposeOp::create(
          b, loc, buffer,
          AffineMapAttr::get(
              AffineMap::getPermutationMap(captured.order, b.getContext())));
    operands.push_back(memref::CastOp::create(
        b, loc, kernel.getArgument(i).getType(), buffer));
  }
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value threads = arith::ConstantIndexOp::create(b, loc, 32 * warps);
  gpu::LaunchFuncOp::create(
      b, loc, kernel, gpu::KernelDim3{emitTripCount(b, loc, forall), one, one},
      gpu::KernelDim3{threads, one, one}, /*dynamicSharedMemorySize=*/Value(),
      operands);
  for (auto [argument, result] :
       llvm::zip_equal(forall.getRegionOutArgs(), forall.getResults())) {
    Value whole = bufferization::ToTensorOp::create(
        b, loc, result.getType(), buffers[argument], /*restrict=*/true,
        /*writable=*/true);
    result.replaceAllUsesWith(whole);
  }
  forall.erase();
}

namespace {
struct ConvertLinalgToTile
    : flash::impl::ConvertLinalgToTileBase<ConvertLinalgToTile> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops;
    getOperation().walk<WalkOrder::PreOrder>([&](scf::ForallOp forall) {
      loops.push_back(forall);
      return WalkResult::skip();
    });
    if (loops.empty())
      return;

    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    Location loc = getOperation().getLoc();
    getOperation()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                            b.getUnitAttr());
    auto kernels = gpu::GPUModuleOp::create(b, loc, "kernels");
    SymbolTable(getOperation()).insert(kernels);
    SymbolTable symbols(kernels);
    b.setInsertionPointToEnd(kernels.getBody());
    for (scf::ForallOp forall : loops) {
      for (OpOperand &output : forall.getOutputsMutable())
        if (failed(verifyOutput(forall, output)))
          return signalPassFailure();
      StringRef name = forall->getParentOfType<func::FuncOp>().getSymName();
      auto kernel = gpu::GPUFuncOp::create(b, forall.getLoc(), name,
                                           b.getFunctionType({}, {}));
      kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      b.getUnitAttr());
      symbols.insert(kernel);
      BlockConverter converter(forall, kernel);
      if (failed(converter.run()))
        return signalPassFailure();
      int64_t warps = converter.getNumWarps();
      kernel.setKnownBlockSizeAttr(
          b.getDenseI32ArrayAttr({static_cast<int32_t>(32 * warps), 1, 1}));
      emitLaunch(forall, kernel, converter.getCaptures(), warps);
    }
  }
};
} // namespace
