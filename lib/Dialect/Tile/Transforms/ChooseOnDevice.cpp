//===- ChooseOnDevice.cpp - Kernels that end at once ----------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCondition.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Support/StripCasts.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace flash::tile {
#define GEN_PASS_DEF_CHOOSEONDEVICE
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

using namespace mlir;
using namespace flash::tile;

namespace {
/// Makes one choice.
class Chooser {
public:
  /// Launches the kernels of both branches.
  LogicalResult run(scf::IfOp choice);

private:
  LogicalResult endUnless(DeviceCondition &condition, bool isThen,
                          gpu::LaunchFuncOp launch);

  SymbolTableCollection tables;
  /// Memory of results.
  llvm::SmallPtrSet<Operation *, 8> memories;
  /// For a kernel and a branch of the choice, the one that ends at once.
  llvm::MapVector<Operation *, gpu::GPUFuncOp> ofBranches[2];
};
} // namespace

/// The allocation that memory is, below casts; null if it is something else.
static memref::AllocOp getAllocation(Value memory) {
  while (auto cast = memory.getDefiningOp<memref::CastOp>())
    memory = cast.getSource();
  return memory.getDefiningOp<memref::AllocOp>();
}

LogicalResult Chooser::endUnless(DeviceCondition &condition, bool isThen,
                                 gpu::LaunchFuncOp launch) {
  auto kernel = tables.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
      launch, launch.getKernelAttr());
  // One thread does next to nothing, and has no warp that ends together.
  ArrayRef<int32_t> threads =
      kernel.getKnownBlockSize().value_or(ArrayRef<int32_t>());
  if (!threads.empty() && threads[0] == 1) {
    if (llvm::any_of(launch.getKernelOperands(), [&](Value operand) {
          memref::AllocOp memory = getAllocation(operand);
          return memory && memories.contains(memory);
        }))
      return launch.emitOpError("has blocks of one thread, which cannot end "
                                "before they store a result of a choice");
    return success();
  }
  gpu::GPUFuncOp &copy = ofBranches[isThen][kernel];
  if (!copy) {
    // Others may launch the kernel without a condition.
    copy = cast<gpu::GPUFuncOp>(kernel->clone());
    SymbolTable(kernel->getParentOp())
        .insert(copy, Block::iterator(kernel->getNextNode()));
    Location loc = launch.getLoc();
    Block &body = copy.getBody().front();
    Value memory = body.addArgument(condition.memory.getType(), loc);
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    Value ends = condition.emit(b, loc, memory);
    if (isThen)
      ends = arith::XOrIOp::create(b, loc, ends,
                                   arith::ConstantIntOp::create(b, loc, 1, 1));
    EndBlockIfOp::create(b, loc, ends);
    copy.setFunctionType(b.getFunctionType(body.getArgumentTypes(), {}));
  }
  launch.getKernelOperandsMutable().append(condition.memory);
  launch.setKernelAttr(
      SymbolRefAttr::get(launch.getKernelModuleName(),
                         FlatSymbolRefAttr::get(copy.getNameAttr())));
  return success();
}

/// The memory that a tensor is, written by a kernel, below casts; null if it is
/// something else.
static memref::AllocOp getMemory(Value tensor) {
  auto memory =
      flash::stripCasts(tensor).getDefiningOp<bufferization::ToTensorOp>();
  if (!memory)
    return {};
  return getAllocation(memory.getBuffer());
}

/// Gives back what a branch allocates but the memory of results: the other
/// branch may have it.
static void giveBack(Block &branch, ArrayRef<memref::AllocOp> results) {
  OpBuilder b(branch.getTerminator());
  auto allocations = llvm::to_vector(branch.getOps<memref::AllocOp>());
  for (memref::AllocOp memory : llvm::reverse(allocations))
    if (!llvm::is_contained(results, memory))
      memref::DeallocOp::create(b, memory.getLoc(), memory);
}

LogicalResult Chooser::run(scf::IfOp choice) {
  std::optional<DeviceCondition> condition =
      DeviceCondition::of(choice.getCondition());
  if (!condition)
    return success();
  SmallVector<std::pair<memref::AllocOp, memref::AllocOp>> results;
  // Kernels of both branches write the memory of a result, which nothing else
  // may use.
  for (auto [x, y] : llvm::zip_equal(choice.thenYield().getOperands(),
                                     choice.elseYield().getOperands())) {
    memref::AllocOp memory = getMemory(x), other = getMemory(y);
    if (!memory || !other || memory->getBlock() != choice.thenBlock() ||
        other->getBlock() != choice.elseBlock() ||
        !memories.insert(memory).second || !memories.insert(other).second)
      return choice.emitOpError(
          "chooses by what a kernel writes, which the device can do between "
          "results of kernels alone, each computed in its branch and yielded "
          "once; compute both, or use --target=cpu");
    results.emplace_back(memory, other);
  }
  for (Region *branch : {&choice.getThenRegion(), &choice.getElseRegion()}) {
    WalkResult walk = branch->walk([&](gpu::LaunchFuncOp launch) {
      return WalkResult(
          endUnless(*condition, branch == &choice.getThenRegion(), launch));
    });
    if (walk.wasInterrupted())
      return failure();
  }
  SmallVector<Value> chosen(choice.thenYield().getOperands());
  // The memory of results is not given back with the rest.
  for (auto [memory, other] : results) {
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *op) { return choice->isAncestor(op); };
    (void)getBackwardSlice(memory.getOperation(), &slice, options);
    for (Operation *op : slice)
      op->moveBefore(choice);
  }
  for (Block *block : {choice.thenBlock(), choice.elseBlock()}) {
    giveBack(*block, llvm::to_vector(llvm::make_second_range(results)));
    block->getTerminator()->erase();
    choice->getBlock()->getOperations().splice(choice->getIterator(),
                                               block->getOperations());
  }
  for (auto [memory, other] : results) {
    OpBuilder b(other);
    Value same = b.createOrFold<memref::CastOp>(other.getLoc(), other.getType(),
                                                memory.getResult());
    other.replaceAllUsesWith(same);
    other.erase();
  }
  choice.replaceAllUsesWith(chosen);
  choice.erase();
  for (Operation *op :
       {condition->compare.getOperation(), condition->read.getOperation()})
    if (op->use_empty())
      op->erase();
  // Kernels that nothing launches without the condition.
  llvm::SetVector<Operation *> unused;
  for (const auto &ofBranch : ofBranches)
    for (Operation *kernel : llvm::make_first_range(ofBranch))
      unused.insert(kernel);
  for (Operation *kernel : unused)
    if (SymbolTable::symbolKnownUseEmpty(kernel,
                                         kernel->getParentOfType<ModuleOp>()))
      kernel->erase();
  return success();
}

namespace {
struct ChooseOnDevice : flash::tile::impl::ChooseOnDeviceBase<ChooseOnDevice> {
  void runOnOperation() override {
    SmallVector<scf::IfOp> choices;
    for (auto func : getOperation().getOps<func::FuncOp>())
      func.walk([&](scf::IfOp choice) {
        bool launches =
            choice
                .walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); })
                .wasInterrupted();
        if (launches)
          choices.push_back(choice);
      });
    for (scf::IfOp choice : choices)
      if (failed(Chooser().run(choice)))
        return signalPassFailure();
  }
};
} // namespace
