//===- ExtractLaunchPlan.cpp - From host functions to data ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Nvptx/ExtractLaunchPlan.h"

#include "HostScalars.h"
#include "HostTensorMaps.h"
#include "HostViews.h"
#include "flash/Dialect/Tile/IR/StoreVectorWidths.h"
#include "flash/Target/Nvptx/KernelAbi.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;
using flash::runtime::LaunchPlan;
using flash::runtime::LaunchPlanBuilder;
using flash::runtime::Register;

namespace {
class Extractor {
public:
  FailureOr<LaunchPlan> extract(func::FuncOp function);

private:
  LogicalResult translate(Operation *op);
  LogicalResult translateDim(memref::DimOp op);
  LogicalResult translateLaunch(gpu::LaunchFuncOp op);
  LogicalResult translateReturn(func::ReturnOp op);
  LaunchPlan::Field getField(Value operand, const AbiField &abi);

  LaunchPlanBuilder builder;
  HostScalars scalars{builder};
  HostViews views{builder, scalars};
  HostTensorMaps tensorMaps{builder, scalars, views};
};
} // namespace

LogicalResult Extractor::translateDim(memref::DimOp op) {
  std::optional<int64_t> dimension = op.getConstantIndex();
  auto type = dyn_cast<MemRefType>(op.getSource().getType());
  if (!dimension || !type || *dimension < 0 || *dimension >= type.getRank())
    return op.emitOpError(
        "runs on the CPU only unless its dimension is a constant of the "
        "memref's rank");
  scalars.set(op, views.get(op.getSource()).sizes[*dimension]);
  return success();
}

LaunchPlan::Field Extractor::getField(Value operand, const AbiField &abi) {
  LaunchPlan::Field field;
  field.abi = abi;
  if (abi.role == AbiRole::Scalar) {
    field.value = scalars.get(operand);
    return field;
  }
  bool isMap = abi.role == AbiRole::TensorMap;
  if (isMap)
    field.tensorMap = tensorMaps.get(operand);
  const HostView &view = views.get(
      isMap ? operand.getDefiningOp<nvgpu::TmaCreateDescriptorOp>().getTensor()
            : operand);
  switch (abi.role) {
  case AbiRole::Size:
    field.value = view.sizes[abi.dimension];
    break;
  case AbiRole::Stride:
    field.value = view.strides[abi.dimension];
    break;
  default:
    const LaunchPlan &plan = builder.plan;
    field.value = view.offset;
    field.isArgument = view.isArgument;
    field.root = view.root;
    field.elementBytes = view.isArgument
                             ? plan.arguments[view.root].elementBytes
                             : plan.buffers[view.root].elementBytes;
  }
  return field;
}

LogicalResult Extractor::translateLaunch(gpu::LaunchFuncOp op) {
  if (op.getAsyncToken() || !op.getAsyncDependencies().empty() ||
      op.getAsyncObject())
    return op.emitOpError("cannot be asynchronous: the kernels of a call run "
                          "one after another on the stream of the call");
  if (op.hasClusterSize())
    return op.emitOpError("cannot have clusters: set the kernel's "
                          "nvvm.cluster_dim instead");

  LaunchPlan::Launch launch;
  launch.module = op.getKernelModuleName().str();
  launch.kernel = op.getKernelName().str();
  auto assign = [&](Register(&registers)[3], gpu::KernelDim3 sizes) {
    registers[0] = scalars.get(sizes.x);
    registers[1] = scalars.get(sizes.y);
    registers[2] = scalars.get(sizes.z);
  };
  assign(launch.grid, op.getGridSizeOperandValues());
  assign(launch.block, op.getBlockSizeOperandValues());
  Value shared = op.getDynamicSharedMemorySize();
  launch.sharedBytes = shared ? scalars.get(shared) : builder.constant(0);

  auto vectorWidths =
      op->getAttrOfType<DenseI64ArrayAttr>(tile::storeVectorWidthsAttr);
  for (auto [i, operand] : llvm::enumerate(op.getKernelOperands())) {
    views.addUse(
        operand,
        vectorWidths && i < size_t(vectorWidths.size()) ? vectorWidths[i] : 0,
        launch.kernel);
    SmallVector<AbiField> fields = getAbiFields(operand.getType());
    if (fields.empty())
      return op.emitOpError()
             << "cannot pass kernel operand " << i << " of type "
             << operand.getType()
             << ": kernels take strided memrefs, tensor maps, index, i32, i64, "
                "f32 and f64";
    for (const AbiField &abi : fields) {
      LaunchPlan::Field field = getField(operand, abi);
      field.operand = i;
      LaunchPlanBuilder::addField(launch, field);
    }
  }
  builder.plan.launches.push_back(std::move(launch));
  return success();
}

LogicalResult Extractor::translateReturn(func::ReturnOp op) {
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    if (!isa<MemRefType>(value.getType()))
      return op.emitOpError() << "cannot return result " << i << " of type "
                              << value.getType() << ": results are memrefs";
    const HostView &view = views.get(value);
    if (view.isArgument)
      return op.emitOpError()
             << "cannot return result " << i << ": it is memory of argument "
             << view.root << "; copy it into a memref.alloc";
    if (builder.getConstant(view.offset) != 0)
      return op.emitOpError() << "cannot return result " << i
                              << ": it does not start where its memref.alloc "
                                 "does";
    LaunchPlan::Buffer &buffer = builder.plan.buffers[view.root];
    if (buffer.isResult)
      return op.emitOpError() << "cannot return result " << i
                              << ": it is memory of another result; copy it "
                                 "into a memref.alloc";
    buffer.isResult = true;
    LaunchPlan::Result &result = views.getResult(i);
    result.buffer = view.root;
    result.sizes = view.sizes;
    result.strides = view.strides;
    builder.plan.results.push_back(std::move(result));
  }
  return success();
}

LogicalResult Extractor::translate(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::DimOp op) { return translateDim(op); })
      .Case([&](gpu::LaunchFuncOp op) { return translateLaunch(op); })
      .Case([&](func::ReturnOp op) { return translateReturn(op); })
      // Scratch memory is released, in stream order, when the call is done.
      .Case([](memref::DeallocOp) { return success(); })
      .Case([&](cf::AssertOp op) {
        builder.assertTrue(scalars.get(op.getArg()), op.getMsg());
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
                  "argument or a memref.alloc, of the latter at most "
               << LaunchPlan::alignment;
      })
      .Case([&](memref::AllocOp op) -> LogicalResult {
        if (succeeded(views.addBuffer(op)))
          return success();
        return op.emitOpError()
               << "must allocate whole bytes in row-major order, aligned to at "
                  "most "
               << LaunchPlan::alignment << " bytes";
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

FailureOr<LaunchPlan> Extractor::extract(func::FuncOp function) {
  builder.plan.name = function.getSymName().str();
  if (function.isExternal())
    return function.emitOpError("has no body");
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("branches, which runs on the CPU only");
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
  return builder.finish();
}

FailureOr<LaunchPlan> flash::extractLaunchPlan(func::FuncOp function) {
  return Extractor().extract(function);
}
