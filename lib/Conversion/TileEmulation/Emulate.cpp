//===- Emulate.cpp - Block programs on the CPU ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"
#include "flash/Dialect/Tile/Utils/ClaimLoop.h"
#include "flash/Machine/TargetAttr.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Tile/IR/DependentLaunch.h"
#include "flash/Support/DescribeLocation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SmallSet.h"

namespace flash {
#define GEN_PASS_DEF_EMULATETILES
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash::tile;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

MemRefType flash::tile::getEmulatedType(SmemType type) {
  int64_t columns = type.getColumns();
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic,
                                       {columns, 1});
  return MemRefType::get({type.getRows(), columns}, type.getElementType(),
                         layout);
}

RankedTensorType flash::tile::getEmulatedType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

EmulationTypes::EmulationTypes() {
  addConversion([](Type type) { return type; });
  addConversion([](RankedTensorType type) -> std::optional<Type> {
    if (isa_and_nonnull<LayoutAttrInterface>(type.getEncoding()))
      return getEmulatedType(type);
    return std::nullopt;
  });
  addConversion([](SmemType type, SmallVectorImpl<Type> &results) {
    results.append(
        {getEmulatedType(type), IntegerType::get(type.getContext(), 64)});
    return success();
  });
  addConversion([](RingType type, SmallVectorImpl<Type> &results) {
    SmemType stage = type.getTile();
    results.append({MemRefType::get(
                        {type.getStages(), stage.getRows(), stage.getColumns()},
                        stage.getElementType()),
                    IntegerType::get(type.getContext(), 64)});
    return success();
  });
  addConversion([](PendingType type, SmallVectorImpl<Type> &results) {
    Type lease = IntegerType::get(type.getContext(), 64);
    results.append({getEmulatedType(type.getValue()), lease, lease});
    return success();
  });
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void EmulationCalls::beginBlock(OpBuilder &b, scf::ForallOp loop,
                                Value number) {
  blocks[loop] = create(b, loop.getLoc(), "begin",
                        LLVM::LLVMPointerType::get(b.getContext()), number);
}

void EmulationCalls::endBlock(OpBuilder &b, scf::ForallOp loop) {
  create(b, loop.getLoc(), "end", Type(), blocks[loop]);
}

Value EmulationCalls::create(OpBuilder &b, Location loc, StringRef name,
                             Type result, ValueRange operands) {
  Type i64 = b.getI64Type();
  SmallVector<Value> arguments;
  for (Value operand : operands)
    arguments.push_back(
        isa<IndexType>(operand.getType())
            ? arith::IndexCastOp::create(b, loc, i64, operand).getResult()
            : operand);
  FailureOr<LLVM::LLVMFuncOp> callee = LLVM::lookupOrCreateFn(
      b, module, ("flash_emulation_" + name).str(),
      llvm::to_vector(ValueRange(arguments).getTypes()),
      result ? result : LLVM::LLVMVoidType::get(b.getContext()));
  // Fails only if the name is taken, which the pass refuses before.
  auto call = LLVM::CallOp::create(b, loc, *callee, arguments);
  return result ? call.getResult() : Value();
}

Value EmulationCalls::getBlock(Operation *op) {
  Value block;
  for (Operation *parent = op; !block; parent = parent->getParentOp())
    block = blocks.lookup(parent);
  return block;
}

Value EmulationCalls::create(OpBuilder &b, Operation *op, StringRef name,
                             Type result, ValueRange operands) {
  SmallVector<Value> arguments = {getBlock(op)};
  arguments.append(operands.begin(), operands.end());
  arguments.push_back(getLocationText(b, op));
  return create(b, op->getLoc(), name, result, arguments);
}

void EmulationCalls::startRoles(OpBuilder &b, Operation *op, int64_t count) {
  create(
      b, op->getLoc(), "start_roles", Type(),
      {getBlock(op), arith::ConstantIndexOp::create(b, op->getLoc(), count)});
}

void EmulationCalls::enterRole(OpBuilder &b, WarpSpecializeOp roles,
                               unsigned role) {
  Location loc = roles.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  create(b, loc, "enter_role", Type(),
         {getBlock(roles), constant(roles.getNumWarps(role)),
          constant(roles.getNumRegisters(role)),
          getText(b, loc, roles.getName(role))});
}

void EmulationCalls::finishRole(OpBuilder &b, Operation *op) {
  create(b, op->getLoc(), "finish_role", Type(), getBlock(op));
}

void EmulationCalls::checkLease(OpBuilder &b, Operation *op, Value lease) {
  if (!matchPattern(lease, m_Zero()))
    create(b, op, "check_lease", Type(), lease);
}

Value EmulationCalls::getLocationText(OpBuilder &b, Operation *op) {
  // Rings are named by other operations' messages.
  std::string text =
      isa<RingOp>(op) ? "ring" : op->getName().getStringRef().str();
  if (auto fold = dyn_cast<FoldOp>(op))
    text += (" " + stringifyReduction(fold.getReduction())).str();
  text += flash::describeLocation(op->getLoc());
  return getText(b, op->getLoc(), text);
}

Value EmulationCalls::getText(OpBuilder &b, Location loc, StringRef text) {
  LLVM::GlobalOp &global = locations[text];
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    std::string bytes = text.str() + '\0';
    global = LLVM::GlobalOp::create(
        b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal,
        "flash_location_" + std::to_string(locations.size() - 1),
        b.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(b, loc, global);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Refuses what is below the level of block programs, or was never in it.
static LogicalResult checkKernel(gpu::GPUFuncOp kernel) {
  if (kernel.isExternal() || !kernel.getBody().hasOneBlock())
    return kernel.emitOpError("has no emulation: only kernels of one block, "
                              "with structured control flow, have");
  if (kernel.getNumWorkgroupAttributions() ||
      kernel.getNumPrivateAttributions())
    return kernel.emitOpError(
        "has no emulation: it has attributions of memory");
  WalkResult walk = kernel.walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    bool isForThreads = dialect == "nvvm" ||
                        (dialect == "gpu" &&
                         !isa<gpu::GPUFuncOp, gpu::BlockIdOp, gpu::GridDimOp,
                              gpu::BlockDimOp, gpu::ReturnOp>(op));
    if (!isForThreads && !isa<SmemViewOp, CopyOp, CallOpInterface>(op))
      return WalkResult::advance();
    op->emitOpError("has no emulation: only the operations of block programs "
                    "before tile-lower-rings have");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Refuses modules in which the patterns would not find what they rely on.
static LogicalResult checkModule(ModuleOp module, const EmulationTypes &types) {
  for (auto symbol : module.getOps<SymbolOpInterface>())
    if (symbol.getName().starts_with("flash_emulation_") ||
        symbol.getName().starts_with("flash_location_"))
      return symbol->emitError(
          "the names flash_emulation_* and flash_location_* "
          "belong to tile-emulate");
  WalkResult walk = module.walk([&](Operation *op) {
    bool isOfBlock =
        isa_and_nonnull<TileDialect>(op->getDialect()) || !types.isLegal(op);
    if (!isOfBlock || op->getParentOfType<gpu::GPUFuncOp>())
      return WalkResult::advance();
    op->emitOpError("has no emulation: it is outside of any kernel");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Makes the roles iterations of a loop that is mapped to warpgroups, so that
/// they run at the same time. All consumers are one role: what they do to rings
/// they do together, and a register tile is that of all of them.
static void separateRoles(WarpSpecializeOp roles, EmulationCalls &calls) {
  OpBuilder b(roles);
  Location loc = roles.getLoc();
  int64_t numRoles = roles.getNumRoles();
  roles->getParentOfType<scf::ForallOp>().walk([&](RingOp ring) {
    llvm::SmallSet<unsigned, 2> readers;
    for (Operation *user : ring->getUsers())
      if (auto step = dyn_cast<RingOpInterface>(user);
          step && step.givesBack() && roles->isProperAncestor(user))
        readers.insert(roles.getRoleOf(user));
    calls.readers[ring] = std::max<int64_t>(readers.size(), 1);
  });
  calls.startRoles(b, roles, numRoles);
  auto mapping = gpu::GPUWarpgroupMappingAttr::get(b.getContext(),
                                                   gpu::MappingId::LinearDim0);
  auto loop = scf::ForallOp::create(
      b, loc, getAsIndexOpFoldResult(b.getContext(), numRoles),
      /*outputs=*/ValueRange(), b.getArrayAttr(mapping));
  calls.startRoles(b, roles, /*count=*/1);
  b.setInsertionPointToStart(loop.getBody());
  auto isRole = [&](int64_t number) -> Value {
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::eq, loop.getInductionVar(0),
        arith::ConstantIndexOp::create(b, loc, number));
  };
  auto fill = [&](Block *to, unsigned role) {
    b.setInsertionPoint(to->getTerminator());
    calls.enterRole(b, roles, role);
    to->getOperations().splice(to->getTerminator()->getIterator(),
                               roles.getRoles()[role].front().getOperations());
  };
  // The last role takes what is left.
  Block *rest = loop.getBody();
  for (int64_t role = 0; role + 1 < numRoles; ++role) {
    auto choice =
        scf::IfOp::create(b, loc, isRole(role), /*withElseRegion=*/true);
    fill(choice.thenBlock(), role);
    rest = choice.elseBlock();
    b.setInsertionPointToStart(rest);
  }
  fill(rest, numRoles - 1);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  calls.finishRole(b, loop.getBody()->getTerminator());
  roles.erase();
}

/// Replaces the launch by a parallel loop over the blocks around the kernel's
/// body.
static LogicalResult inlineLaunch(gpu::LaunchFuncOp launch,
                                  EmulationCalls &calls) {
  if (launch.getAsyncToken() || !launch.getAsyncDependencies().empty())
    return launch.emitOpError("has no emulation: it is asynchronous");
  if (launch.hasClusterSize())
    return launch.emitOpError("has no emulation: its blocks form clusters");
  auto kernel = SymbolTable::lookupNearestSymbolFrom<gpu::GPUFuncOp>(
      launch, launch.getKernel());
  if (!kernel)
    return launch.emitOpError("has no emulation: ")
           << launch.getKernel() << " is no gpu.func";
  if (failed(checkKernel(kernel)))
    return failure();

  if (launch->hasAttr(dependentLaunchAttr) &&
      kernel.getOps<AwaitDependenciesOp>().empty())
    return launch.emitOpError("is dependent, but ")
           << launch.getKernel()
           << " does not wait; give it a tile.await_dependencies";

  OpBuilder b(launch);
  Location loc = launch.getLoc();
  auto asIndices = [&](gpu::KernelDim3 dims) {
    return llvm::map_to_vector(
        ArrayRef<Value>{dims.x, dims.y, dims.z}, [&](Value size) -> Value {
          if (isa<IndexType>(size.getType()))
            return size;
          return arith::IndexCastOp::create(b, loc, b.getIndexType(), size);
        });
  };
  SmallVector<Value> grid = asIndices(launch.getGridSizeOperandValues()),
                     threads = asIndices(launch.getBlockSizeOperandValues());
  // Loops with a mapping are not folded into the host's function, not even
  // loops of one block: a function of many kernels takes more than linear time
  // to compile.
  ArrayAttr mapping = b.getArrayAttr(
      {gpu::GPUBlockMappingAttr::get(b.getContext(), gpu::MappingId::DimZ),
       gpu::GPUBlockMappingAttr::get(b.getContext(), gpu::MappingId::DimY),
       gpu::GPUBlockMappingAttr::get(b.getContext(), gpu::MappingId::DimX)});
  bool addsInOrder = false;
  kernel.walk([&](AddInOrderOp) { addsInOrder = true; });
  SmallVector<Value> block;
  Value number;
  scf::ForallOp loop;
  if (addsInOrder) {
    // Blocks wait for blocks of smaller numbers: one after the other, each
    // finds that the blocks before have added, or they never would.
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value ofPlane = arith::MulIOp::create(b, loc, grid[0], grid[1]);
    auto numbers = scf::ForOp::create(
        b, loc, constant(0), arith::MulIOp::create(b, loc, ofPlane, grid[2]),
        constant(1));
    b.setInsertionPointToStart(numbers.getBody());
    number = numbers.getInductionVar();
    Value row = arith::DivUIOp::create(b, loc, number, grid[0]);
    block = {arith::RemUIOp::create(b, loc, number, grid[0]),
             arith::RemUIOp::create(b, loc, row, grid[1]),
             arith::DivUIOp::create(b, loc, row, grid[1])};
    OpFoldResult one = b.getIndexAttr(1);
    loop = scf::ForallOp::create(b, loc, ArrayRef<OpFoldResult>{one, one, one},
                                 /*outputs=*/ValueRange(), mapping);
    b.setInsertionPointToStart(loop.getBody());
  } else {
    loop = scf::ForallOp::create(b, loc,
                                 getAsOpFoldResult({grid[2], grid[1], grid[0]}),
                                 /*outputs=*/ValueRange(), mapping);
    b.setInsertionPointToStart(loop.getBody());
    block = llvm::to_vector(llvm::reverse(loop.getInductionVars()));
    number = arith::MulIOp::create(b, loc, block[2], grid[1]);
    number = arith::AddIOp::create(b, loc, number, block[1]);
    number = arith::MulIOp::create(b, loc, number, grid[0]);
    number = arith::AddIOp::create(b, loc, number, block[0]);
  }
  calls.beginBlock(b, loop, number);

  IRMapping values;
  values.map(kernel.getBody().getArguments(), launch.getKernelOperands());
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto end = dyn_cast<EndBlockIfOp>(op);
    if (!end) {
      b.clone(op, values);
      continue;
    }
    Value goesOn =
        arith::XOrIOp::create(b, loc, values.lookup(end.getCondition()),
                              arith::ConstantIntOp::create(b, loc, 1, 1));
    auto rest = scf::IfOp::create(b, loc, goesOn, /*withElseRegion=*/false);
    b.setInsertionPointToStart(rest.thenBlock());
  }
  b.setInsertionPoint(loop.getTerminator());
  calls.endBlock(b, loop);

  auto replace = [&](Operation *op, ArrayRef<Value> sizes,
                     gpu::Dimension dimension) {
    op->getResult(0).replaceAllUsesWith(sizes[static_cast<int>(dimension)]);
    op->erase();
  };
  loop.walk([&](Operation *op) {
    if (auto id = dyn_cast<gpu::BlockIdOp>(op))
      replace(op, block, id.getDimension());
    else if (auto size = dyn_cast<gpu::GridDimOp>(op))
      replace(op, grid, size.getDimension());
    else if (auto size = dyn_cast<gpu::BlockDimOp>(op))
      replace(op, threads, size.getDimension());
    else if (auto roles = dyn_cast<WarpSpecializeOp>(op))
      separateRoles(roles, calls);
    // Here kernels run one after another.
    else if (isa<AwaitDependenciesOp, LaunchDependentsOp>(op))
      op->erase();
  });
  launch.erase();
  return success();
}

namespace {
struct EmulateTiles : flash::impl::EmulateTilesBase<EmulateTiles> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    EmulationTypes types;
    EmulationCalls calls(module);
    SmallVector<gpu::LaunchFuncOp> launches;
    module.walk([&](gpu::LaunchFuncOp launch) { launches.push_back(launch); });
    // The passes for the CPU say where memory is given back.
    module.walk([](memref::DeallocOp dealloc) { dealloc.erase(); });
    if (failed(checkModule(module, types)))
      return signalPassFailure();
    for (gpu::LaunchFuncOp launch : launches)
      if (failed(inlineLaunch(launch, calls)))
        return signalPassFailure();
    for (auto kernels :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
      kernels.erase();
    module->removeAttr(gpu::GPUDialect::getContainerModuleAttrName());

    SmallVector<ClaimOp> claims;
    module.walk([&](ClaimOp claim) { claims.push_back(claim); });
    OpBuilder b(&getContext());
    for (ClaimOp claim : claims)
      lowerClaimLoop(b, claim, [&](Value step) {
        Value number =
            ClaimOp::create(b, claim.getLoc(), TypeRange(b.getIndexType()),
                            step, claim.getCounts(), claim.getIndices(),
                            /*offset=*/IntegerAttr())
                .getNumber();
        SmallVector<Value> results = {number};
        llvm::append_range(results, emitScalarsOfTile(b, claim, number));
        results.resize(claim.getNumResults());
        return results;
      });

    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns,
                                                         target);
    populateMemoryEmulation(types, calls, patterns);
    populateRegisterEmulation(types, calls, patterns);
    target.addIllegalDialect<TileDialect>();
    target.markUnknownOpDynamicallyLegal(
        [&](Operation *op) { return types.isLegal(op); });
    if (failed(applyPartialConversion(module, target, std::move(patterns))))
      return signalPassFailure();
    // What is left is for the CPU.
    module->removeAttr(flash::TargetAttr::name);
  }
};
} // namespace
