//===- OutlineParallel.cpp - Parallel loops as runtime calls --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Transforms.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPUOUTLINEPARALLEL
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

/// The one deallocation of a buffer, if it is in the buffer's own block: then
/// the buffer lives within one run of that block.
static memref::DeallocOp getLocalDealloc(memref::AllocOp alloc) {
  memref::DeallocOp found;
  for (Operation *user : alloc->getUsers())
    if (auto dealloc = dyn_cast<memref::DeallocOp>(user)) {
      if (found || dealloc->getBlock() != alloc->getBlock())
        return {};
      found = dealloc;
    }
  return found;
}

/// Allocates the region's static buffers once at the start of `entry`: on the
/// stack as long as they fit in `maxStackBytes`, on the heap beyond. Inside a
/// loop an alloca would grow the stack with every iteration.
static void hoistStaticBuffers(Block &entry, int64_t maxStackBytes,
                               const DataLayout &layout) {
  SmallVector<memref::AllocOp> allocs;
  entry.walk([&](memref::AllocOp alloc) { allocs.push_back(alloc); });
  int64_t used = 0;
  constexpr int64_t alignment = 64;
  for (memref::AllocOp alloc : allocs) {
    MemRefType type = alloc.getType();
    memref::DeallocOp dealloc = getLocalDealloc(alloc);
    if (!dealloc || !type.hasStaticShape() ||
        !type.getElementType().isIntOrIndexOrFloat())
      continue;
    int64_t bytes = llvm::alignTo(type.getNumElements() *
                                      layout.getTypeSize(type.getElementType()),
                                  alignment);
    OpBuilder b(&entry, entry.begin());
    if (used + bytes <= maxStackBytes) {
      used += bytes;
      Value buffer = memref::AllocaOp::create(b, alloc.getLoc(), type,
                                              b.getI64IntegerAttr(alignment));
      alloc.replaceAllUsesWith(buffer);
      dealloc.erase();
      alloc.erase();
    } else {
      alloc->moveBefore(&entry, entry.begin());
      dealloc->moveBefore(entry.getTerminator());
    }
  }
}

/// Whether the iterations wait for one another, as warpgroups do.
static bool isConcurrent(scf::ForallOp loop) {
  std::optional<ArrayAttr> mapping = loop.getMapping();
  return mapping &&
         llvm::any_of(*mapping, llvm::IsaPred<gpu::GPUWarpgroupMappingAttr>);
}

namespace {
struct OutlineParallel
    : flash::impl::FlashCpuOutlineParallelBase<OutlineParallel> {
  using FlashCpuOutlineParallelBase::FlashCpuOutlineParallelBase;

  void runOnOperation() override {
    functions.clear();
    IRRewriter rewriter(&getContext());
    SmallVector<scf::ForallOp> nested;
    getOperation().walk([&](scf::ForallOp loop) {
      if (loop->getParentOfType<scf::ForallOp>() && !isConcurrent(loop))
        nested.push_back(loop);
    });
    for (scf::ForallOp loop : nested) {
      rewriter.setInsertionPoint(loop);
      if (failed(scf::forallToForLoop(rewriter, loop)))
        return signalPassFailure();
    }
    // From the outside in: what is inside is then in a function of its own, and
    // each call of it has its own context.
    while (scf::ForallOp loop = findFirstLoop())
      if (failed(outline(loop)))
        return signalPassFailure();
    DataLayout layout(getOperation());
    for (LLVM::LLVMFuncOp function : functions)
      hoistStaticBuffers(function.front(), maxStackBytes, layout);
  }

  /// None of the others is around it.
  scf::ForallOp findFirstLoop();
  LogicalResult outline(scf::ForallOp loop);

  SmallVector<LLVM::LLVMFuncOp> functions;
};
} // namespace

scf::ForallOp OutlineParallel::findFirstLoop() {
  scf::ForallOp first;
  getOperation().walk<WalkOrder::PreOrder>([&](scf::ForallOp loop) {
    first = loop;
    return WalkResult::interrupt();
  });
  return first;
}

LogicalResult OutlineParallel::outline(scf::ForallOp loop) {
  if (loop.getNumResults() != 0)
    return loop.emitError("must be bufferized before it is outlined");
  ModuleOp module = getOperation();
  MLIRContext *context = &getContext();
  LLVMTypeConverter converter(context);
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto nothing = LLVM::LLVMVoidType::get(context);
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Type i64 = b.getI64Type();

  // The trip count of every dimension, and their product.
  SmallVector<Value> lower = loop.getLowerBound(b),
                     upper = loop.getUpperBound(b), step = loop.getStep(b),
                     counts;
  Value total = arith::ConstantIndexOp::create(b, 1);
  for (auto [from, to, by] : llvm::zip(lower, upper, step)) {
    Value span = b.createOrFold<arith::SubIOp>(to, from);
    // Rounded up by hand: arith.ceildivsi has no direct lowering to LLVM.
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value padded = b.createOrFold<arith::AddIOp>(
        span, b.createOrFold<arith::SubIOp>(by, one));
    Value count = b.createOrFold<arith::DivSIOp>(padded, by);
    Value zero = arith::ConstantIndexOp::create(b, 0);
    count = b.createOrFold<arith::MaxSIOp>(count, zero);
    counts.push_back(count);
    total = b.createOrFold<arith::MulIOp>(total, count);
  }

  // Everything the body uses from outside. Constants are cloned instead, so
  // that the body is compiled knowing them.
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  used.insert(lower.begin(), lower.end());
  used.insert(step.begin(), step.end());
  used.insert(counts.begin(), counts.end());
  SmallVector<Value> captured, constants;
  SmallVector<Type> fields;
  for (Value value : used) {
    Operation *definition = value.getDefiningOp();
    if (definition && definition->hasTrait<OpTrait::ConstantLike>()) {
      constants.push_back(value);
      continue;
    }
    Type type = converter.convertType(value.getType());
    if (!type)
      return loop.emitError("captures a value of type ")
             << value.getType()
             << ", which the context of a parallel loop cannot hold";
    captured.push_back(value);
    fields.push_back(type);
  }
  auto contextType = LLVM::LLVMStructType::getLiteral(context, fields);

  auto parent = loop->getParentOfType<FunctionOpInterface>();
  StringRef kind = isConcurrent(loop) ? "concurrent" : "parallel";
  std::string name =
      llvm::formatv("{0}_{1}_{2}", parent.getName(), kind, functions.size());
  OpBuilder::InsertPoint caller = b.saveInsertionPoint();
  b.setInsertionPointAfter(parent);
  auto function = LLVM::LLVMFuncOp::create(
      b, name, LLVM::LLVMFunctionType::get(nothing, {pointer, i64}),
      LLVM::Linkage::Internal);

  // The caller fills the context on its stack and enters the runtime.
  FailureOr<LLVM::LLVMFuncOp> runtime = LLVM::lookupOrCreateFn(
      b, module, llvm::formatv("flash_{0}_for", kind).str(),
      {i64, pointer, pointer}, nothing);
  if (failed(runtime))
    return failure();
  Block &parentEntry = parent.getFunctionBody().front();
  b.setInsertionPointToStart(&parentEntry);
  Value one = LLVM::ConstantOp::create(b, i64, b.getI64IntegerAttr(1));
  Value storage = LLVM::AllocaOp::create(b, pointer, contextType, one);
  b.restoreInsertionPoint(caller);
  auto asLLVM = [&](Value value) -> Value {
    Type type = converter.convertType(value.getType());
    return UnrealizedConversionCastOp::create(b, type, value).getResult(0);
  };
  auto field = [&](Value base, unsigned i) -> Value {
    return LLVM::GEPOp::create(b, pointer, contextType, base,
                               ArrayRef<LLVM::GEPArg>{0, int32_t(i)});
  };
  for (auto [i, value] : llvm::enumerate(captured))
    LLVM::StoreOp::create(b, asLLVM(value), field(storage, i));
  Value body = LLVM::AddressOfOp::create(b, function);
  LLVM::CallOp::create(b, *runtime, ValueRange{asLLVM(total), body, storage});

  // The body reloads the captures and finds its iterations.
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  IRMapping mapping;
  for (Value value : constants)
    mapping.map(value, b.clone(*value.getDefiningOp())->getResult(0));
  for (auto [i, value] : llvm::enumerate(captured)) {
    Value loaded =
        LLVM::LoadOp::create(b, fields[i], field(entry->getArgument(0), i));
    mapping.map(value,
                UnrealizedConversionCastOp::create(b, value.getType(), loaded)
                    .getResult(0));
  }
  Value rest = UnrealizedConversionCastOp::create(b, b.getIndexType(),
                                                  entry->getArgument(1))
                   .getResult(0);
  unsigned rank = counts.size();
  for (unsigned dim = rank; dim-- > 0;) {
    Value count = mapping.lookup(counts[dim]);
    Value place = rest;
    if (dim > 0) {
      place = arith::RemUIOp::create(b, rest, count);
      rest = arith::DivUIOp::create(b, rest, count);
    }
    if (dim + 1 == rank) {
      Value last =
          arith::SubIOp::create(b, count, arith::ConstantIndexOp::create(b, 1));
      place = arith::SubIOp::create(b, last, place);
    }
    Value offset = arith::MulIOp::create(b, place, mapping.lookup(step[dim]));
    Value iv = arith::AddIOp::create(b, mapping.lookup(lower[dim]), offset);
    mapping.map(loop.getInductionVar(dim), iv);
  }
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
  LLVM::ReturnOp::create(b, ValueRange{});
  loop.erase();
  functions.push_back(function);
  return success();
}
