//===- Persist.cpp - Blocks that take one tile after the other ------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyRoles.h"
#include "flash/Dialect/Tile/IR/Tile.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/Debug.h"

namespace flash::tile {
#define GEN_PASS_DEF_PERSIST
#include "flash/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace flash::tile

#define DEBUG_TYPE "tile-persist"

using namespace mlir;
using namespace flash;
using namespace flash::tile;

/// The ops that are not the same for all blocks, or do more than to compute
/// scalars, and the conditions that only these use: kernels are passed numbers,
/// which can then be compared. What `shared` has is the same for all blocks.
static llvm::SetVector<Operation *>
getOpsOfBlocks(Block &body, const llvm::SetVector<Operation *> &shared) {
  llvm::SmallPtrSet<Operation *, 32> ops;
  for (Operation &op : body.without_terminator())
    if (isa<gpu::BlockIdOp>(op) || op.getNumRegions() > 0 ||
        (!isMemoryEffectFree(&op) && !shared.contains(&op)) ||
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return ops.contains(operand.getDefiningOp());
        }))
      ops.insert(&op);
  llvm::SetVector<Operation *> inOrder;
  for (Operation &op : body.without_terminator())
    if (ops.contains(&op) ||
        (isa<arith::CmpIOp>(op) && llvm::all_of(op.getUsers(), [&](auto *user) {
           return ops.contains(body.findAncestorOpInBlock(*user));
         })))
      inOrder.insert(&op);
  return inOrder;
}

static Value isEven(OpBuilder &b, Location loc, Value number) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value two = arith::ConstantIndexOp::create(b, loc, 2);
  Value odd = arith::RemUIOp::create(b, loc, number, two);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, odd, zero);
}

/// Whether the op that uses a value is in the loop that `ops` will be in.
static bool isUsedIn(const llvm::SetVector<Operation *> &ops, Block &body,
                     Operation *user) {
  return ops.contains(body.findAncestorOpInBlock(*user));
}

/// The indices that the loop of a block uses and whoever launches the kernel
/// can compute, from sizes and constants.
static SmallVector<Value>
getScalarsOfLaunch(Block &body, const llvm::SetVector<Operation *> &inLoop) {
  llvm::SmallPtrSet<Operation *, 32> computable;
  SmallVector<Value> scalars;
  for (Operation &op : body.without_terminator()) {
    bool isScalar =
        op.getNumResults() == 1 &&
        op.getResult(0).getType().isSignlessIntOrIndex() &&
        (isa<memref::DimOp>(op) || isa<arith::ArithDialect>(op.getDialect()));
    if (!isScalar || llvm::any_of(op.getOperands(), [&](Value operand) {
          Operation *def = operand.getDefiningOp();
          return def && !computable.contains(def);
        }))
      continue;
    computable.insert(&op);
    // Constants and sizes cost a kernel nothing.
    if (op.getResult(0).getType().isIndex() &&
        !isa<arith::ConstantOp, memref::DimOp>(op) &&
        llvm::any_of(op.getUsers(), [&](Operation *user) {
          return isUsedIn(inLoop, body, user);
        }))
      scalars.push_back(op.getResult(0));
  }
  return scalars;
}

/// Computes a scalar of the kernel where the kernel is launched.
static Value computeAtLaunch(OpBuilder &b, Value scalar, IRMapping &atLaunch) {
  if (Value known = atLaunch.lookupOrNull(scalar))
    return known;
  Operation *op = scalar.getDefiningOp();
  for (Value operand : op->getOperands())
    computeAtLaunch(b, operand, atLaunch);
  b.clone(*op, atLaunch);
  return atLaunch.lookup(scalar);
}

/// An ordered addition of the kernel; null if it has none.
static AddInOrderOp findOrderedAdd(gpu::GPUFuncOp kernel) {
  AddInOrderOp found;
  kernel.walk([&](AddInOrderOp add) { found = add; });
  return found;
}

/// Emits a loop over the waves of blocks: all blocks take part in `whole`
/// waves, and `rest` blocks from `firstOfRest` on in one more; returns it, with
/// the number that a block would have in a launch without a loop.
static std::pair<scf::ForOp, Value> emitWaves(OpBuilder &b, Location loc,
                                              Value whole, Value rest,
                                              Value firstOfRest) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value id = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value grid = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  // The last wave may be one of some blocks only.
  Value inRest = arith::SubIOp::create(b, loc, id, firstOfRest);
  Value isInRest =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, inRest, rest);
  Value more = arith::AddIOp::create(b, loc, whole, constant(1));
  Value waves = arith::SelectOp::create(b, loc, isInRest, more, whole);
  auto loop = scf::ForOp::create(b, loc, constant(0), waves, constant(1));
  b.setInsertionPointToStart(loop.getBody());
  // Every other wave goes backwards: where later blocks have less to do, none
  // has the most of every wave.
  Value wave = loop.getInductionVar();
  Value last = arith::SubIOp::create(b, loc, grid, constant(1));
  Value mirrored = arith::SubIOp::create(b, loc, last, id);
  Value position =
      arith::SelectOp::create(b, loc, isEven(b, loc, wave), id, mirrored);
  Value number = arith::MulIOp::create(b, loc, wave, grid);
  return {loop, arith::AddIOp::create(b, loc, number, position)};
}

/// Emits a loop over tiles that blocks claim by a count, and returns it, with
/// the number of the tile.
static std::pair<scf::ForOp, Value> emitClaims(OpBuilder &b, Location loc,
                                               Value tiles, Value counts,
                                               ValueRange indices) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, constant(0), tiles, constant(1));
  b.setInsertionPointToStart(loop.getBody());
  return {loop, ClaimOp::create(b, loc, TypeRange(b.getIndexType()),
                                loop.getInductionVar(), counts, indices,
                                /*offset=*/IntegerAttr())
                    .getNumber()};
}

/// The last count of the ordered additions, which counts claimed tiles: no tile
/// uses it, since there are more counts than tiles (flash.parallel_add).
static SmallVector<Value> getLastCount(OpBuilder &b, Location loc,
                                       Value counts) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> last;
  for (int64_t d = 0, e = cast<MemRefType>(counts.getType()).getRank(); d < e;
       ++d) {
    Value size = memref::DimOp::create(b, loc, counts, d);
    last.push_back(arith::SubIOp::create(b, loc, size, one));
  }
  return last;
}

/// The ops of the loop over tiles that compute scalars of a tile, of its number
/// and of what is the same for all; nothing if none of them reads memory.
static llvm::SetVector<Operation *> getScalarsOfTile(ClaimOp claim) {
  Block &body = *claim->getBlock();
  llvm::SetVector<Operation *> scalars;
  bool readsMemory = false;
  for (Operation &op : body.without_terminator()) {
    if (isa<TileDialect>(op.getDialect()) || !computesScalars(&op))
      continue;
    bool isKnown = true;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        isKnown &= operand == claim.getNumber() ||
                   operand.getParentBlock() != &body ||
                   scalars.contains(operand.getDefiningOp());
    });
    if (!isKnown)
      continue;
    scalars.insert(&op);
    readsMemory |= !isMemoryEffectFree(&op);
  }
  if (!readsMemory)
    scalars.clear();
  return scalars;
}

/// How many rows of a tile its stores have, if all have the same number of them
/// and nothing else is written: a tile without rows has no work then. What it
/// adds in order are sums over its rows, whose counts are not read if there are
/// none.
static Value getRowsOfStores(Block &body) {
  Value rows;
  WalkResult walk = body.walk([&](Operation *op) {
    if (auto store = dyn_cast<StoreOp>(op)) {
      if (!store.getRows() || (rows && store.getRows() != rows))
        return WalkResult::interrupt();
      rows = store.getRows();
      return WalkResult::advance();
    }
    bool isOfTile = isa<ClaimOp, AddInOrderOp, CopyAsyncOp, FetchOp>(op);
    bool hasMemory =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
    return isOfTile || !hasMemory || isMemoryEffectFree(op) ||
                   hasSingleEffect<MemoryEffects::Read>(op)
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return walk.wasInterrupted() ? Value() : rows;
}

/// Lets the thread that claims a tile compute its scalars for all roles where
/// some are read in memory, such as the sequence of packed rows: each role
/// would wait for the same answers, and consumers have no registers to search.
static void shareScalars(ClaimOp claim) {
  llvm::SetVector<Operation *> scalars = getScalarsOfTile(claim);
  Block &body = *claim->getBlock();
  Value rows = getRowsOfStores(body);
  auto isUsedOutside = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isUsedIn(scalars, body, user);
    });
  };
  auto replaceUsesOutside = [&](Value value, Value by) {
    value.replaceUsesWithIf(by, [&](OpOperand &use) {
      return !isUsedIn(scalars, body, use.getOwner());
    });
  };
  // Indices are shared; what else roles use they compute of them once more.
  OpBuilder b(claim);
  for (Operation *op : llvm::reverse(scalars))
    if (llvm::any_of(op->getResults(), [&](Value result) {
          return !result.getType().isIndex() && isUsedOutside(result);
        })) {
      b.setInsertionPoint(op);
      Operation *ofRoles = b.clone(*op);
      for (auto [value, by] :
           llvm::zip(op->getResults(), ofRoles->getResults()))
        replaceUsesOutside(value, by);
    }
  SmallVector<Value> shared;
  for (Operation *op : scalars)
    llvm::copy_if(op->getResults(), std::back_inserter(shared), isUsedOutside);
  if (shared.empty())
    return;
  b.setInsertionPoint(claim);
  auto sharing = ClaimOp::create(
      b, claim.getLoc(), SmallVector<Type>(1 + shared.size(), b.getIndexType()),
      claim.getStep(), claim.getCounts(), claim.getIndices(),
      /*offset=*/IntegerAttr());
  Block *computed = b.createBlock(&sharing.getScalars(), {}, b.getIndexType(),
                                  claim.getLoc());
  for (auto [value, result] : llvm::zip(shared, sharing.getShared()))
    replaceUsesOutside(value, result);
  for (Operation *op : scalars)
    op->moveBefore(computed, computed->end());
  Value isNone;
  if (rows && scalars.contains(rows.getDefiningOp()))
    isNone = arith::CmpIOp::create(
        b, claim.getLoc(), arith::CmpIPredicate::eq, rows,
        arith::ConstantIndexOp::create(b, claim.getLoc(), 0));
  ShareScalarsOp::create(b, claim.getLoc(), shared, isNone);
  claim.getNumber().replaceUsesWithIf(
      computed->getArgument(0), [&](OpOperand &use) {
        return computed->findAncestorOpInBlock(*use.getOwner());
      });
  claim.getNumber().replaceAllUsesWith(sharing.getNumber());
  claim.erase();
}

/// The type of the count of claimed tiles where nothing else has it.
static MemRefType getCountType(OpBuilder &b) {
  return MemRefType::get({1}, b.getI32Type());
}

/// How many numbers a kernel is passed of its tiles, and of its waves.
static constexpr unsigned numbersOfClaims = 1, numbersOfWaves = 3;

/// Whether blocks of the kernel claim tiles by a count that nothing else has.
static bool claimsByOwnCount(gpu::GPUFuncOp kernel) {
  // Where a mask leaves no key, no warps get roles.
  return flash::getSchedule(kernel).has(flash::ScheduleFeatures::ClaimTiles) &&
         kernel.walk([](MmaAsyncOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

/// Where the grid ends, if that is in memory, with what computes it; erases
/// what says so.
static Value takeEndOfGrid(Block &body, llvm::SetVector<Operation *> &slice) {
  auto ends = body.getOps<EndGridOp>();
  if (ends.empty())
    return {};
  EndGridOp end = *ends.begin();
  Value count = end.getCount();
  BackwardSliceOptions options;
  options.inclusive = true;
  (void)getBackwardSlice(count, &slice, options);
  end.erase();
  return count;
}

/// Lets blocks behind the end of the grid end at once.
static void endBlocksBehindGrid(gpu::GPUFuncOp kernel) {
  for (EndGridOp end :
       llvm::make_early_inc_range(kernel.getBody().getOps<EndGridOp>())) {
    OpBuilder b(end);
    Value block = gpu::BlockIdOp::create(b, end.getLoc(), gpu::Dimension::x);
    EndBlockIfOp::create(b, end.getLoc(),
                         arith::CmpIOp::create(b, end.getLoc(),
                                               arith::CmpIPredicate::uge, block,
                                               end.getCount()));
    end.erase();
  }
}

/// Puts what a block does into a loop over the numbers of blocks that there
/// would be. How many these are become arguments: quotients that a kernel
/// computes itself keep ptxas from seeing that all threads go round the loop
/// alike. So do, behind them, the scalars that are returned: constant memory
/// has them for the whole loop, where registers are scarce. The last argument
/// is the count of claimed tiles, if nothing else has it.
static SmallVector<Value> persist(gpu::GPUFuncOp kernel) {
  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  llvm::SetVector<Operation *> ofEnd;
  Value end = takeEndOfGrid(body, ofEnd);
  llvm::SetVector<Operation *> ops = getOpsOfBlocks(body, ofEnd);
  SmallVector<Value> scalars = getScalarsOfLaunch(body, ops);
  Type index = IndexType::get(kernel.getContext());
  AddInOrderOp add = findOrderedAdd(kernel);
  bool hasOwnCount = claimsByOwnCount(kernel), claims = add || hasOwnCount;
  SmallVector<Value> numbers;
  for (unsigned i = 0; i < (claims ? numbersOfClaims : numbersOfWaves); ++i)
    numbers.push_back(body.addArgument(index, loc));
  for (Value scalar : scalars)
    scalar.replaceUsesWithIf(body.addArgument(index, loc), [&](OpOperand &use) {
      return isUsedIn(ops, body, use.getOwner());
    });
  OpBuilder b(body.getTerminator());
  Value tiles = numbers[0];
  if (end)
    tiles = arith::MinUIOp::create(b, loc, tiles, end);
  Value counts;
  SmallVector<Value> indices;
  if (hasOwnCount) {
    counts = body.addArgument(getCountType(b), loc);
    indices.push_back(arith::ConstantIndexOp::create(b, loc, 0));
  } else if (add) {
    counts = add.getCounts();
    indices = getLastCount(b, loc, counts);
  }
  kernel.setFunctionType(b.getFunctionType(body.getArgumentTypes(), {}));
  auto [loop, number] =
      claims ? emitClaims(b, loc, tiles, counts, indices)
             : emitWaves(b, loc, numbers[0], numbers[1], numbers[2]);
  for (Operation *op : ops) {
    if (auto blockId = dyn_cast<gpu::BlockIdOp>(op)) {
      blockId.replaceAllUsesWith(number);
      blockId.erase();
      continue;
    }
    op->moveBefore(loop.getBody()->getTerminator());
  }
  if (claims)
    shareScalars(number.getDefiningOp<ClaimOp>());
  return scalars;
}

/// Makes a kernel of one thread that sets a count of claimed tiles to zero.
static gpu::GPUFuncOp makeZeroKernel(gpu::GPUModuleOp module) {
  OpBuilder b(module.getContext());
  Location loc = module.getLoc();
  auto zero = gpu::GPUFuncOp::create(b, loc, "zero_claims",
                                     b.getFunctionType({getCountType(b)}, {}));
  SymbolTable(module).insert(zero);
  zero->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  zero.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({1, 1, 1}));
  b.setInsertionPointToStart(&zero.getBody().front());
  memref::StoreOp::create(
      b, loc, arith::ConstantIntOp::create(b, loc, 0, 32), zero.getArgument(0),
      ValueRange(arith::ConstantIndexOp::create(b, loc, 0)));
  gpu::ReturnOp::create(b, loc);
  return zero;
}

/// Allocates the count of claimed tiles of a launch, and launches the kernel
/// before it that sets it to zero.
static Value emitOwnCount(gpu::LaunchFuncOp launch, gpu::GPUFuncOp zero) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  Value count = memref::AllocOp::create(b, loc, getCountType(b));
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  gpu::KernelDim3 single = {one, one, one};
  gpu::LaunchFuncOp::create(b, loc, zero, single, single,
                            /*dynamicSharedMemorySize=*/Value(),
                            ValueRange(count));
  return count;
}

/// Asserts that the counts have one that is no tile's.
static void assertSpareCount(gpu::LaunchFuncOp launch, AddInOrderOp add) {
  OpBuilder b(launch);
  Location loc = launch.getLoc();
  auto getSize = [&](Value memory, int64_t dim) -> Value {
    unsigned number = cast<BlockArgument>(memory).getArgNumber();
    return memref::DimOp::create(b, loc, launch.getKernelOperand(number), dim);
  };
  int64_t last = add.getCountIndices().size() - 1;
  Value counts = getSize(add.getCounts(), last),
        tiles = getSize(add.getSums(), last);
  Value isMore =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, counts, tiles);
  cf::AssertOp::create(b, loc, isMore,
                       "the kernel '" +
                           launch.getKernelName().getValue().str() +
                           "' claims its tiles, which takes a count more than "
                           "there are tiles to add to");
}

/// The numbers of `emitWaves`, for so many blocks in waves of `grid`.
static SmallVector<Value> countWaves(OpBuilder &b, Location loc, Value count,
                                     Value grid) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  // No blocks at all are launched as none.
  Value divisor = arith::MaxUIOp::create(b, loc, grid, constant(1));
  Value whole = arith::DivUIOp::create(b, loc, count, divisor);
  Value rest = arith::RemUIOp::create(b, loc, count, divisor);
  // A wave that goes backwards ends with the first blocks.
  Value firstOfRest =
      arith::SelectOp::create(b, loc, isEven(b, loc, whole), constant(0),
                              arith::SubIOp::create(b, loc, grid, rest));
  return {whole, rest, firstOfRest};
}

static bool isPersistent(gpu::GPUFuncOp kernel) {
  return flash::getSchedule(kernel).has(flash::ScheduleFeatures::Persistent);
}

namespace {
struct Persist : flash::tile::impl::PersistBase<Persist> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    DenseMap<Operation *, SmallVector<Value>> scalars;
    /// By their modules, the kernels that set counts of claims to zero.
    DenseMap<Operation *, gpu::GPUFuncOp> zeros;
    getOperation().walk([&](gpu::GPUFuncOp kernel) {
      if (!isPersistent(kernel)) {
        endBlocksBehindGrid(kernel);
        return;
      }
      LLVM_DEBUG(llvm::dbgs()
                 << kernel.getName() << ": blocks "
                 << (findOrderedAdd(kernel) || claimsByOwnCount(kernel)
                         ? "claim tiles\n"
                         : "take one tile of each wave\n"));
      scalars[kernel] = persist(kernel);
    });
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      auto kernel = symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(
          launch, launch.getKernelAttr());
      if (!kernel || !isPersistent(kernel))
        return;
      OpBuilder b(launch);
      Location loc = launch.getLoc();
      Value count = launch.getGridSizeX();
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantIndexOp::create(b, loc, value);
      };
      Value grid = arith::MinUIOp::create(
          b, loc, count,
          constant(flash::getMachineOfKernels(kernel).multiprocessors *
                   getCtasPerSm(kernel)));
      IRMapping atLaunch;
      for (auto [argument, operand] :
           llvm::zip(kernel.getArguments(), launch.getKernelOperands()))
        atLaunch.map(argument, operand);
      SmallVector<Value> added = {count};
      bool hasOwnCount = claimsByOwnCount(kernel);
      AddInOrderOp add = findOrderedAdd(kernel);
      if (add && !hasOwnCount)
        assertSpareCount(launch, add);
      if (!add && !hasOwnCount)
        added = countWaves(b, loc, count, grid);
      for (Value scalar : scalars.lookup(kernel))
        added.push_back(computeAtLaunch(b, scalar, atLaunch));
      if (hasOwnCount) {
        auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
        gpu::GPUFuncOp &zero = zeros[module];
        zero = zero ? zero : makeZeroKernel(module);
        added.push_back(emitOwnCount(launch, zero));
      }
      launch.getKernelOperandsMutable().append(added);
      launch.getGridSizeXMutable().assign(grid);
    });
  }
};
} // namespace
