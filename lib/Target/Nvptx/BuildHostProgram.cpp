//===- BuildHostProgram.cpp - From host functions to programs -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Nvptx/BuildHostProgram.h"

#include "HostScalars.h"
#include "HostTensorMaps.h"
#include "HostViews.h"
#include "flash/Dialect/Nvx/IR/KernelAbi.h"
#include "flash/Dialect/Tile/IR/DependentLaunch.h"
#include "flash/Dialect/Tile/IR/StoreVectorWidths.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;
using arith::CmpIPredicate;
using flash::runtime::HostProgram;

namespace {
class Translator {
public:
  Translator(func::FuncOp function, ArrayRef<size_t> argumentRanks,
             ArrayRef<size_t> resultRanks)
      : builder(function, argumentRanks, resultRanks) {}

  FailureOr<BuiltHostProgram> translate(func::FuncOp function);

private:
  LogicalResult translate(Operation *op);
  LogicalResult translateDim(memref::DimOp op);
  LogicalResult translateLaunch(gpu::LaunchFuncOp op);
  LogicalResult translateReturn(func::ReturnOp op);
  LogicalResult translateIf(scf::IfOp op);
  LogicalResult translateFor(scf::ForOp op);
  /// The body of a region, up to what it yields, at the end of a block.
  LogicalResult translateRegion(Region &region, Block *target);
  HostProgram::Field getField(Value operand, const AbiField &abi,
                              SmallVectorImpl<Value> &values);

  /// A value of the function as the values of the program that it is made of.
  LogicalResult flatten(Operation *user, ValueRange values,
                        SmallVectorImpl<Value> &parts);
  /// The other way, from as many parts as `like` has.
  void rebuild(ValueRange values, ValueRange like, ValueRange parts);

  /// Memory of the region that is translated, in the order of allocation: the
  /// last one that is not given back keeps all before it. What is not given
  /// back before the call is done has no mark.
  struct Allocation {
    Value memory, mark;
    bool isGivenBack = false;
  };
  void allocate(memref::AllocOp op);
  void giveBack(memref::DeallocOp op);
  SmallVector<Allocation> allocations;

  HostBuilder builder;
  HostScalars scalars{builder};
  HostViews views{builder, scalars};
  HostTensorMaps tensorMaps{scalars, views};
};
} // namespace

LogicalResult Translator::translateDim(memref::DimOp op) {
  std::optional<int64_t> dimension = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!dimension || !type || *dimension < 0 || *dimension >= type.getRank())
    return op.emitOpError(
        "runs on the CPU only unless its dimension is a constant of the "
        "memref's rank");
  scalars.set(op, views.get(op.getSource()).sizes[*dimension]);
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

HostProgram::Field Translator::getField(Value operand, const AbiField &abi,
                                        SmallVectorImpl<Value> &values) {
  HostProgram::Field field;
  field.abi = abi;
  if (abi.role == AbiRole::Scalar) {
    values.push_back(scalars.get(operand));
    return field;
  }
  bool isMap = abi.role == AbiRole::TensorMap;
  if (isMap)
    operand = operand.getDefiningOp<nvgpu::TmaCreateDescriptorOp>().getTensor();
  const HostView &view = views.get(operand);
  if (view.argument) {
    field.argument = *view.argument;
    const std::string &name = builder.program.arguments[*view.argument].name;
    field.owner = " (argument " +
                  (name.empty() ? std::to_string(*view.argument) : name) + ")";
  } else if (view.result) {
    field.owner = " (result " + std::to_string(*view.result) + ")";
  }
  switch (abi.role) {
  case AbiRole::Size:
    values.push_back(view.sizes[abi.dimension]);
    break;
  case AbiRole::Stride:
    values.push_back(view.strides[abi.dimension]);
    break;
  default:
    field.elementBytes = llvm::divideCeil(
        cast<BaseMemRefType>(operand.getType()).getElementTypeBitWidth(), 8);
    values.append({view.address, view.offset});
  }
  if (isMap) {
    llvm::append_range(values, view.sizes);
    llvm::append_range(values, view.strides);
  }
  return field;
}

/// Whether the kernel waits for those before it. That it does so before it
/// touches memory is what tile.await_dependencies verifies.
static bool awaitsDependencies(gpu::LaunchFuncOp op) {
  Operation *kernel = SymbolTable::lookupNearestSymbolFrom(op, op.getKernel());
  auto isWait = [](NVVM::GriddepcontrolOp control) {
    return control.getKind() == NVVM::GridDepActionKind::wait
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  return kernel && kernel->walk(isWait).wasInterrupted();
}

LogicalResult Translator::translateLaunch(gpu::LaunchFuncOp op) {
  if (op.getAsyncToken() || !op.getAsyncDependencies().empty() ||
      op.getAsyncObject())
    return op.emitOpError("cannot be asynchronous: the kernels of a call run "
                          "one after another on the stream of the call");
  if (op.hasClusterSize())
    return op.emitOpError("cannot have clusters: set the kernel's "
                          "nvvm.cluster_dim instead");

  HostProgram::Launch launch;
  launch.module = op.getKernelModuleName().str();
  launch.kernel = op.getKernelName().str();
  launch.isDependent = op->hasAttr(tile::dependentLaunchAttr);
  if (launch.isDependent && !awaitsDependencies(op))
    return op.emitOpError("is dependent, but ")
           << op.getKernel()
           << " does not wait; give it a tile.await_dependencies";
  SmallVector<Value> values;
  auto append = [&](gpu::KernelDim3 sizes) {
    values.append(
        {scalars.get(sizes.x), scalars.get(sizes.y), scalars.get(sizes.z)});
  };
  append(op.getGridSizeOperandValues());
  append(op.getBlockSizeOperandValues());
  Value shared = op.getDynamicSharedMemorySize();
  values.push_back(shared ? scalars.get(shared) : builder.constant(0));
  launch.sharedBytes =
      builder.getConstant(values.back()).value_or(HostProgram::dynamic);

  auto vectorWidths =
      op->getAttrOfType<DenseI64ArrayAttr>(tile::storeVectorWidthsAttr);
  for (auto [i, operand] : llvm::enumerate(op.getKernelOperands())) {
    SmallVector<AbiField> fields = getAbiFields(operand.getType());
    if (fields.empty())
      return op.emitOpError()
             << "cannot pass kernel operand " << i << " of type "
             << operand.getType()
             << ": kernels take strided memrefs, tensor maps, index, i32, i64, "
                "f32 and f64";
    views.addUse(
        operand,
        vectorWidths && i < size_t(vectorWidths.size()) ? vectorWidths[i] : 0,
        launch.kernel);
    for (const AbiField &abi : fields) {
      HostProgram::Field field = getField(operand, abi, values);
      field.owner = "operand " + std::to_string(i) + field.owner;
      if (abi.type == AbiType::TensorMap)
        launch.addTensorMap(field, tensorMaps.get(operand));
      else
        launch.addField(field);
    }
  }
  host::LaunchOp::create(builder.b, builder.loc, builder.call,
                         builder.program.launches.size(), launch.kernel, values,
                         launch.isDependent);
  builder.program.launches.push_back(std::move(launch));
  return success();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

LogicalResult Translator::flatten(Operation *user, ValueRange values,
                                  SmallVectorImpl<Value> &parts) {
  for (auto [i, value] : llvm::enumerate(values)) {
    if (HostScalars::isSupported(value.getType()))
      parts.push_back(scalars.get(value));
    else if (isa<MemRefType>(value.getType()))
      llvm::append_range(parts, views.get(value).flatten());
    else
      return user->emitOpError()
             << "cannot pass on value " << i << " of type " << value.getType()
             << ": the host passes on memrefs with strides, index, i1, i32 and "
                "i64";
  }
  return success();
}

void Translator::rebuild(ValueRange values, ValueRange like, ValueRange parts) {
  for (auto [value, model] : llvm::zip_equal(values, like)) {
    if (!isa<MemRefType>(value.getType())) {
      scalars.set(value, parts.front());
      parts = parts.drop_front();
      continue;
    }
    HostView view = views.get(model);
    size_t count = view.flatten().size();
    views.set(value, view.rebuild(parts.take_front(count)));
    parts = parts.drop_front(count);
  }
}

LogicalResult Translator::translateRegion(Region &region, Block *target) {
  OpBuilder::InsertionGuard guard(builder.b);
  builder.b.setInsertionPointToEnd(target);
  bool wasUnconditional = views.isUnconditional;
  views.isUnconditional = false;
  SmallVector<Allocation> outside;
  std::swap(outside, allocations);
  for (Operation &op : region.front().without_terminator())
    if (failed(translate(&op)))
      return failure();
  std::swap(outside, allocations);
  views.isUnconditional = wasUnconditional;
  return success();
}

void Translator::allocate(memref::AllocOp op) {
  bool isGivenBack = llvm::any_of(op->getUsers(), [](Operation *user) {
    return isa<memref::DeallocOp>(user);
  });
  Value mark;
  if (isGivenBack)
    mark = host::MarkOp::create(builder.b, builder.loc, builder.call);
  allocations.push_back({op, mark});
}

void Translator::giveBack(memref::DeallocOp op) {
  for (Allocation &allocation : allocations)
    allocation.isGivenBack |= allocation.memory == op.getMemref();
  Value mark;
  while (!allocations.empty() && allocations.back().isGivenBack)
    mark = allocations.pop_back_val().mark;
  if (mark)
    host::ReleaseOp::create(builder.b, builder.loc, builder.call, mark);
}

/// Whether two branches leave the same memory, as far as callers know it.
static bool isSameMemory(const HostView &a, const HostView &b) {
  return a.result == b.result;
}

/// Gives the memory that a region has allocated back at its end.
static void releaseAtEnd(HostBuilder &builder, Block *block) {
  WalkResult found =
      block->walk([](host::AllocateOp) { return WalkResult::interrupt(); });
  if (!found.wasInterrupted())
    return;
  OpBuilder b = OpBuilder::atBlockBegin(block);
  Value used = host::MarkOp::create(b, builder.loc, builder.call);
  b.setInsertionPointToEnd(block);
  host::ReleaseOp::create(b, builder.loc, builder.call, used);
}

LogicalResult Translator::translateIf(scf::IfOp op) {
  Location loc = builder.loc;
  auto choice = scf::IfOp::create(builder.b, loc, TypeRange(),
                                  scalars.get(op.getCondition()),
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/!op.getElseRegion().empty());
  Block *thenBlock = choice.thenBlock(), *elseBlock = choice.elseBlock();
  for (Block *block : {thenBlock, elseBlock})
    if (block && !block->empty())
      block->clear();
  if (failed(translateRegion(op.getThenRegion(), thenBlock)) ||
      (elseBlock && failed(translateRegion(op.getElseRegion(), elseBlock))))
    return failure();

  SmallVector<Value> thenParts, elseParts;
  if (op.getNumResults() != 0) {
    ValueRange thenValues = op.thenYield().getOperands(),
               elseValues = op.elseYield().getOperands();
    for (auto [i, left, right] : llvm::enumerate(thenValues, elseValues))
      if (isa<MemRefType>(left.getType()) &&
          !isSameMemory(views.get(left), views.get(right)))
        return op.emitOpError()
               << "chooses with result " << i
               << " between memory that the function returns and other "
                  "memory: allocate it in both branches";
    if (failed(flatten(op, thenValues, thenParts)) ||
        failed(flatten(op, elseValues, elseParts)))
      return failure();
  }
  auto yield = [&](Block *block, ValueRange parts, bool givesBack) {
    if (!block)
      return;
    if (givesBack)
      releaseAtEnd(builder, block);
    OpBuilder b = OpBuilder::atBlockEnd(block);
    scf::YieldOp::create(b, loc, parts);
  };
  bool givesBack = llvm::none_of(
      op.getResultTypes(), [](Type type) { return isa<BaseMemRefType>(type); });
  // What is the same in both needs no choice.
  SmallVector<Value> chosen(thenParts.size()), thenRest, elseRest;
  for (auto [i, left, right] : llvm::enumerate(thenParts, elseParts)) {
    std::optional<int64_t> known = builder.getConstant(left);
    if (left == right)
      chosen[i] = left;
    else if (known && known == builder.getConstant(right))
      chosen[i] = left.getType().isInteger(1) ? builder.constantBit(*known)
                                              : builder.constant(*known);
    if (chosen[i])
      continue;
    thenRest.push_back(left);
    elseRest.push_back(right);
  }
  yield(thenBlock, thenRest, givesBack);
  yield(elseBlock, elseRest, givesBack);
  auto complete =
      scf::IfOp::create(builder.b, loc, ValueRange(thenRest).getTypes(),
                        choice.getCondition(), /*addThenBlock=*/false,
                        /*addElseBlock=*/false);
  complete.getThenRegion().takeBody(choice.getThenRegion());
  complete.getElseRegion().takeBody(choice.getElseRegion());
  choice.erase();
  auto next = complete.getResults().begin();
  for (Value &part : chosen)
    if (!part)
      part = *next++;
  if (op.getNumResults() != 0)
    rebuild(op.getResults(), op.thenYield().getOperands(), chosen);
  return success();
}

LogicalResult Translator::translateFor(scf::ForOp op) {
  Location loc = builder.loc;
  if (op.getUnsignedCmp())
    return op.emitOpError("counts without signs, which runs on the CPU only");
  Value low = scalars.get(op.getLowerBound()),
        high = scalars.get(op.getUpperBound()),
        step = scalars.get(op.getStep());
  builder.check(builder.compare(CmpIPredicate::sgt, step, builder.constant(0)),
                "scf.for: the step is not positive",
                "scf.for: the step is {0}, not positive", step);
  // The index behind the last is compared with the bound, too.
  SmallVector<Value, 2> end;
  builder.b.createOrFold<host::OverflowOp>(end, loc, host::Arithmetic::Add,
                                           high, step);
  builder.check(end[1], "scf.for: the bound and the step are too large",
                "scf.for: the bound {0} and the step {1} are too large",
                {high, step});
  SmallVector<Value> parts;
  if (failed(flatten(op, op.getInitArgs(), parts)))
    return failure();
  auto loop = scf::ForOp::create(builder.b, loc, low, high, step, parts);
  Block *body = loop.getBody();
  if (body->mightHaveTerminator())
    body->getTerminator()->erase();
  scalars.set(op.getInductionVar(), loop.getInductionVar());
  rebuild(op.getRegionIterArgs(), op.getInitArgs(), loop.getRegionIterArgs());
  if (failed(translateRegion(op.getRegion(), body)))
    return failure();
  ValueRange yielded = op.getBody()->getTerminator()->getOperands();
  for (auto [i, first, next] : llvm::enumerate(op.getInitArgs(), yielded))
    if (isa<MemRefType>(first.getType()) &&
        !isSameMemory(views.get(first), views.get(next)))
      return op.emitOpError()
             << "carries with value " << i
             << " memory that the function returns and other memory: copy it "
                "into a memref.alloc";
  SmallVector<Value> nextParts;
  if (failed(flatten(op, yielded, nextParts)))
    return failure();
  if (llvm::none_of(op.getResultTypes(),
                    [](Type type) { return isa<BaseMemRefType>(type); }))
    releaseAtEnd(builder, body);
  OpBuilder b = OpBuilder::atBlockEnd(body);
  scf::YieldOp::create(b, loc, nextParts);
  rebuild(op.getResults(), op.getInitArgs(), loop.getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult Translator::translateReturn(func::ReturnOp op) {
  SmallVector<const HostView *> returned;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!type)
      return op.emitOpError() << "cannot return result " << i << " of type "
                              << value.getType() << ": results are memrefs";
    const HostView &view = views.get(value);
    if (view.argument)
      return op.emitOpError()
             << "cannot return result " << i << ": it is memory of argument "
             << *view.argument << "; copy it into a memref.alloc";
    if (view.result != i)
      return op.emitOpError()
             << "cannot return result " << i << ": it is memory of "
             << (view.result ? "another result"
                             : "an argument, or carried by a loop")
             << "; copy it into a memref.alloc";
    if (builder.getConstant(view.offset) != 0)
      return op.emitOpError() << "cannot return result " << i
                              << ": it does not start where its memref.alloc "
                                 "does";
    HostProgram::Result &result = builder.program.results[i];
    llvm::raw_string_ostream(result.elementType) << type.getElementType();
    result.elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    unsigned output = builder.program.getResultOutput(i);
    auto set = [&](Value number) {
      host::OutputOp::create(builder.b, builder.loc, builder.call, output++,
                             number);
    };
    set(view.bytes);
    for (auto [d, size] : llvm::enumerate(view.sizes)) {
      set(size);
      result.sizes[d] =
          builder.getConstant(size).value_or(HostProgram::dynamic);
    }
    for (Value stride : view.strides)
      set(stride);
  }
  Value done = arith::ConstantIntOp::create(builder.b, builder.loc, 0, 32);
  func::ReturnOp::create(builder.b, builder.loc, done);
  return success();
}

LogicalResult Translator::translate(Operation *op) {
  builder.loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::DimOp op) { return translateDim(op); })
      .Case([&](gpu::LaunchFuncOp op) { return translateLaunch(op); })
      .Case([&](func::ReturnOp op) { return translateReturn(op); })
      .Case([&](scf::IfOp op) { return translateIf(op); })
      .Case([&](scf::ForOp op) { return translateFor(op); })
      // Other memory is released, in stream order, when the call is done.
      .Case([&](memref::DeallocOp op) {
        giveBack(op);
        return success();
      })
      .Case([&](cf::AssertOp op) {
        builder.check(scalars.get(op.getArg()), op.getMsg());
        return success();
      })
      .Case([&](memref::ExtractStridedMetadataOp op) {
        views.extractMetadata(op);
        return success();
      })
      .Case([&](nvgpu::TmaCreateDescriptorOp op) { return tensorMaps.add(op); })
      .Case([&](memref::AssumeAlignmentOp op) -> LogicalResult {
        if (succeeded(views.assumeAlignment(op)))
          return success();
        return op.emitOpError()
               << "must be at a multiple of its bytes from the start of an "
                  "argument or a memref.alloc, of the latter and under a "
                  "condition at most "
               << HostProgram::alignment;
      })
      .Case([&](memref::AllocOp op) -> LogicalResult {
        allocate(op);
        if (succeeded(views.addBuffer(op)))
          return success();
        return op.emitOpError()
               << "must allocate whole bytes in row-major order, aligned to at "
                  "most "
               << HostProgram::alignment << " bytes";
      })
      .Default([&](Operation *op) -> LogicalResult {
        if (op->getNumRegions() == 0 && (succeeded(scalars.translate(op)) ||
                                         succeeded(views.translate(op))))
          return success();
        return op->emitOpError("runs on the CPU only: the host side of a GPU "
                               "program computes sizes, allocates and "
                               "launches");
      });
}

FailureOr<BuiltHostProgram> Translator::translate(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (failed(views.addArgument(argument)))
      return function.emitOpError()
             << "cannot take argument " << argument.getArgNumber()
             << " of type " << argument.getType()
             << ": arguments are memrefs with strides, offset 0 or ?, and "
                "elements of whole bytes";
  Block &body = function.getBody().front();
  if (auto returned = dyn_cast<func::ReturnOp>(body.getTerminator()))
    views.findResults(returned);
  for (Operation &op : body)
    if (failed(translate(&op)))
      return failure();
  BuiltHostProgram result;
  result.module = builder.finish();
  result.program = std::move(builder.program);
  return result;
}

FailureOr<BuiltHostProgram> flash::buildHostProgram(func::FuncOp function) {
  if (function.isExternal())
    return function.emitOpError("has no body");
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("branches, which runs on the CPU only");
  // Types without a rank are refused later.
  auto getRanks = [](TypeRange types) {
    return llvm::map_to_vector(types, [](Type type) -> size_t {
      auto memref = dyn_cast<MemRefType>(type);
      return memref ? memref.getRank() : 0;
    });
  };
  return Translator(function, getRanks(function.getArgumentTypes()),
                    getRanks(function.getResultTypes()))
      .translate(function);
}
