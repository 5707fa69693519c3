//===- AssertStrides.cpp - What copies need of addresses and strides ------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Tile/IR/StoreVectorWidths.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/FormatVariadic.h"

namespace flash::tile {
#define GEN_PASS_DEF_ASSERTSTRIDES
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

static constexpr int64_t copyBytes = 16;

/// The most rows that a copy from or to the argument has, or 0 if there is
/// none.
static int64_t getCopiedRows(BlockArgument argument) {
  int64_t rows = 0;
  for (Operation *user : argument.getUsers()) {
    // An argument may also be an index of a copy.
    if (auto copy = dyn_cast<CopyAsyncOp>(user);
        copy && copy.getSource() == argument)
      // The address of each packed row is computed.
      rows = std::max<int64_t>(
          rows,
          copy.getPacked() ? 1 : copy.getRing().getType().getTile().getRows());
    if (auto store = dyn_cast<StoreBulkOp>(user);
        store && store.getDestination() == argument)
      rows = std::max(rows, store.getStageType().getRows());
    if (auto add = dyn_cast<AddInOrderOp>(user);
        add && add.getSums() == argument)
      rows = std::max(rows, add.getTile().getType().getRows());
  }
  return rows;
}

/// How many elements a store to the argument has, or 0.
static int64_t getStoreVectorWidth(BlockArgument argument) {
  int64_t vectorWidth = 0;
  for (Operation *user : argument.getUsers()) {
    if (auto store = dyn_cast<StoreBulkOp>(user);
        store && store.getDestination() == argument)
      vectorWidth =
          copyBytes * 8 / store.getX().getType().getElementTypeBitWidth();
    // A thread has two neighbouring elements of a fragment.
    if (auto store = dyn_cast<StoreOp>(user);
        store && store.getDestination() == argument) {
      auto type = cast<RankedTensorType>(store.getX().getType());
      if (type.getRank() == 2 &&
          isa<FragmentAttr, WideFragmentAttr>(type.getEncoding()) &&
          !store.getColumns())
        vectorWidth = std::max<int64_t>(vectorWidth, 2);
    }
  }
  return vectorWidth;
}

/// Whose memory an operand is, for messages: an argument of the function, by
/// its name in the program.
static std::string describeOwner(Value operand) {
  while (Operation *op = operand.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      operand = view.getViewSource();
    else if (auto cast = dyn_cast<memref::CastOp>(op))
      operand = cast.getSource();
    else if (auto buffer = dyn_cast<bufferization::ToBufferOp>(op))
      operand = buffer.getTensor();
    else
      break;
  }
  auto argument = dyn_cast<BlockArgument>(operand);
  if (!argument ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return "its operands";
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    return "argument " + name.getName().str();
  return "argument " + std::to_string(argument.getArgNumber());
}

/// Emits the assertions for one operand of the launch, and replaces it by a
/// value whose alignment is known.
static void assertCopies(gpu::LaunchFuncOp launch, OpOperand &operand,
                         int64_t rows) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  auto type = cast<MemRefType>(operand.get().getType());
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, operand.get());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  StringRef kernel = launch.getKernelName().getValue();
  std::string owner = describeOwner(operand.get());
  auto [strides, offset] = type.getStridesAndOffset();
  for (int64_t d = 0; d + 1 < type.getRank(); ++d) {
    if (!ShapedType::isDynamic(strides[d]))
      continue;
    Value stride = metadata.getStrides()[d];
    int64_t alignment = copyBytes / elementBytes;
    Value rest = arith::RemSIOp::create(b, loc, stride, constant(alignment));
    Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          rest, constant(0));
    cf::AssertOp::create(
        b, loc, isWhole,
        llvm::formatv(
            "the kernel '{0}' copies {1} bytes at a time: the strides "
            "of {2} must be multiples of {3} elements",
            kernel, copyBytes, owner, alignment)
            .str());
  }
  int64_t row = type.getRank() - 2;
  if (ShapedType::isDynamic(strides[row])) {
    int64_t most = std::numeric_limits<int32_t>::max() / (rows * elementBytes);
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                              metadata.getStrides()[row], constant(most));
    cf::AssertOp::create(
        b, loc, fits,
        llvm::formatv("the kernel '{0}' needs rows of {1} that are at most {2} "
                      "elements apart",
                      kernel, owner, most)
            .str());
  }
  operand.set(
      memref::AssumeAlignmentOp::create(b, loc, operand.get(), copyBytes));
}

namespace {
struct AssertStrides : flash::tile::impl::AssertStridesBase<AssertStrides> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel)
        return;
      Block &entry = kernel.getBody().front();
      SmallVector<int64_t> vectorWidths =
          llvm::map_to_vector(entry.getArguments(), getStoreVectorWidth);
      vectorWidths.resize(launch.getNumKernelOperands());
      if (llvm::any_of(vectorWidths,
                       [](int64_t vectorWidth) { return vectorWidth > 0; }))
        launch->setAttr(storeVectorWidthsAttr,
                        DenseI64ArrayAttr::get(&getContext(), vectorWidths));
      for (auto [argument, operand] : llvm::zip_first(
               entry.getArguments(), launch.getKernelOperandsMutable()))
        if (int64_t rows = getCopiedRows(argument))
          assertCopies(launch, operand, rows);
    });
  }
};
} // namespace
