//===- NvxToLLVM.cpp - Thread programs in the LLVM dialect ----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Nvx/IR/KernelAbi.h"
#include "flash/Dialect/Nvx/IR/Nvx.h"
#include "flash/Schedule/Warpgroups.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTNVXTOLLVM
#include "flash/Conversion/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash;

namespace {
constexpr StringLiteral sharedMemoryName = "shared_memory";

/// The address of an external array without a size: dynamic shared memory.
struct SharedMemory : ConvertOpToLLVMPattern<nvx::SharedMemoryOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvx::SharedMemoryOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::AddressOfOp>(op, op.getType(),
                                                   sharedMemoryName);
    return success();
  }
};

struct Log2 : ConvertOpToLLVMPattern<nvx::Log2Op> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvx::Log2Op op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.nvvm.lg2.approx.ftz.f"),
        ValueRange{adaptor.getX()});
    return success();
  }
};

struct ConvertNvxToLLVM : flash::impl::ConvertNvxToLLVMBase<ConvertNvxToLLVM> {
  /// Declares the block's dynamic shared memory where something uses it.
  void declareSharedMemory() {
    bool isUsed = false;
    getOperation().walk([&](nvx::SharedMemoryOp) { isUsed = true; });
    if (!isUsed)
      return;
    OpBuilder b = OpBuilder::atBlockBegin(getOperation().getBody());
    // The widest swizzle repeats every 1024 bytes.
    LLVM::GlobalOp::create(
        b, getOperation().getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
        /*isConstant=*/false, LLVM::Linkage::External, sharedMemoryName,
        Attribute(), /*alignment=*/1024,
        static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  }

  /// Computes the number of the warpgroup once, where all threads still meet.
  void shareWarpgroup(gpu::GPUFuncOp kernel) {
    SmallVector<nvx::WarpgroupOp> numbers;
    kernel.walk([&](nvx::WarpgroupOp op) { numbers.push_back(op); });
    if (numbers.empty())
      return;
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Location loc = kernel.getLoc();
    auto i32 = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                      b.getI32IntegerAttr(value));
    };
    Value thread = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
    Value number =
        LLVM::UDivOp::create(b, loc, thread, i32(threadsOfWarpgroup));
    number =
        NVVM::ShflOp::create(b, loc, b.getI32Type(), i32(-1), number, i32(0),
                             i32(31), NVVM::ShflKind::idx, UnitAttr());
    for (nvx::WarpgroupOp op : numbers) {
      op.replaceAllUsesWith(number);
      op.erase();
    }
  }

  /// The arguments that are tensor maps, by the kernel's name.
  llvm::StringMap<SmallVector<unsigned>> tensorMaps;

  /// Makes the argument a pointer, which uses have cast it to.
  void makePointer(gpu::GPUFuncOp kernel, BlockArgument map) {
    for (Operation *user : llvm::make_early_inc_range(map.getUsers())) {
      user->replaceAllUsesWith(ValueRange(map));
      user->erase();
    }
    map.setType(LLVM::LLVMPointerType::get(&getContext()));
    tensorMaps[kernel.getName()].push_back(map.getArgNumber());
  }

  /// Lets threads read tensor maps where the launch puts them, as copies name
  /// them by their addresses.
  void passTensorMapsByValue() {
    Builder b(&getContext());
    // 128 bytes at a multiple of 64: CUtensorMap.
    auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
    for (auto kernel : getOperation().getOps<LLVM::LLVMFuncOp>())
      for (unsigned i : tensorMaps.lookup(kernel.getName())) {
        kernel.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                          TypeAttr::get(bytes));
        kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                          b.getI64IntegerAttr(64));
        kernel.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                          b.getUnitAttr());
      }
  }

  /// Replaces each memref argument by its pointer, sizes and strides, as
  /// convert-tile-to-nvx has taken it apart (see getAbiFields).
  LogicalResult expandMemRefs(gpu::GPUFuncOp kernel) {
    if (kernel.getNumWorkgroupAttributions() ||
        kernel.getNumPrivateAttributions())
      return kernel.emitOpError("has attributions of memory; the only memory "
                                "of a block is that of its rings (tile.ring)");
    Block &entry = kernel.getBody().front();
    OpBuilder b(&getContext());
    SmallVector<BlockArgument> maps;
    for (unsigned i = entry.getNumArguments(); i-- > 0;) {
      BlockArgument memory = entry.getArgument(i);
      if (isa<nvgpu::TensorMapDescriptorType>(memory.getType())) {
        maps.push_back(memory);
        continue;
      }
      auto type = dyn_cast<MemRefType>(memory.getType());
      if (!type)
        continue;
      SmallVector<Type> types = getPartTypes(type);
      for (auto [n, part] : llvm::enumerate(types))
        entry.insertArgument(i + 1 + n, part, memory.getLoc());
      ValueRange parts = entry.getArguments().slice(i + 1, types.size());
      for (Operation *user : llvm::make_early_inc_range(memory.getUsers())) {
        if (!isa<UnrealizedConversionCastOp>(user))
          return user->emitOpError("still uses a memref of the kernel");
        user->replaceAllUsesWith(parts);
        user->erase();
      }
      entry.eraseArgument(i);
    }
    kernel.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
    for (BlockArgument map : llvm::reverse(maps))
      makePointer(kernel, map);
    kernel.setFunctionType(b.getFunctionType(entry.getArgumentTypes(), {}));
    return success();
  }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (failed(expandMemRefs(kernel)))
        return signalPassFailure();
      shareWarpgroup(kernel);
    }
    declareSharedMemory();
    LowerToLLVMOptions options(&getContext());
    options.overrideIndexBitwidth(32);
    LLVMTypeConverter converter(&getContext(), options);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<gpu::GPUModuleOp>();
    target.addLegalDialect<NVVM::NVVMDialect>();
    RewritePatternSet patterns(&getContext());
    patterns.add<SharedMemory, Log2>(converter);
    populateWarpgroupPatterns(converter, patterns);
    // Not all of arith-expand, which takes maxnumf apart.
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    // What folds did so in the canonicalizer, or does in LLVM.
    ConversionConfig config;
    config.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns), config)))
      return signalPassFailure();
    passTensorMapsByValue();
  }
};
} // namespace
