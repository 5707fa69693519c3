//===- Kernel.cpp - A compiled function -----------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Run/Kernel.h"

#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Pipelines/Pipelines.h"
#include "flash/Run/Reference.h"
#include "flash/Run/Stopwatch.h"
#include "flash/Runtime/Cpu.h"
#include "flash/Target/Cpu/Pipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace flash::run;
using llvm::createStringError;
using llvm::formatv;

namespace {

/// Remembers the pass that failed. Its diagnostic says why; this says where.
struct FailureRecorder : PassInstrumentation {
  FailureRecorder(std::string &name) : name(name) {}
  void runAfterPassFailed(Pass *pass, Operation *) override {
    if (name.empty())
      name = pass->getArgument().empty() ? pass->getName().str()
                                         : pass->getArgument().str();
  }
  std::string &name;
};

} // namespace

static llvm::Error runPasses(ModuleOp module,
                             llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  std::string failed;
  pm.addInstrumentation(std::make_unique<FailureRecorder>(failed));
  build(pm);
  if (succeeded(pm.run(module)))
    return llvm::Error::success();
  return createStringError(
      formatv("the program cannot be compiled: the pass '{0}' failed",
              failed.empty() ? "verifier" : failed));
}

static void print(ModuleOp module, llvm::StringRef stage) {
  llvm::outs() << "// flash-run: " << stage << "\n" << *module << "\n";
}

/// A copy of the program in which nothing but the entry is public, so that
/// functions it does not use are not compiled.
static OwningOpRef<ModuleOp> copyProgram(ModuleOp program, StringRef entry) {
  OwningOpRef<ModuleOp> copy = program.clone();
  for (auto func : copy->getOps<func::FuncOp>())
    func.setVisibility(func.getSymName() == entry
                           ? SymbolTable::Visibility::Public
                           : SymbolTable::Visibility::Private);
  return copy;
}

bool flash::run::isBlockLevel(ModuleOp program) {
  return program.walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

llvm::Error Kernel::runFront(ModuleOp module, const Options &options) {
  auto run = [&](llvm::function_ref<void(OpPassManager &)> build, Dump dump,
                 StringRef name) -> llvm::Error {
    if (llvm::Error error = runPasses(module, build))
      return error;
    if (options.has(dump))
      print(module, name);
    return llvm::Error::success();
  };
  auto emulate = [&] {
    return run(buildEmulatePipeline, Dump::Linalg, "linalg");
  };
  if (isBlockLevel(module)) {
    level0 = module.clone();
    if (options.target != Target::Emulate)
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func); use --target=emulate");
    if (options.has(Dump::L0) || options.has(Dump::L1))
      return createStringError("the program is at level 2 (it has a "
                               "gpu.launch_func): there is no level above to "
                               "dump");
    if (options.has(Dump::L2))
      print(module, "l2");
    return emulate();
  }

  FrontOptions front;
  front.queryTile = options.queryTile;
  front.keyTile = options.keyTile;
  if (options.queryTile || options.keyTile)
    module.walk([](flash::AttentionOp op) { op.removeScheduleAttr(); });
  auto recognize = [](OpPassManager &pm) {
    pm.addPass(createSymbolDCEPass());
    buildRecognizePipeline(pm);
  };
  if (llvm::Error error = run(recognize, Dump::L0, "l0"))
    return error;
  level0 = module.clone();
  auto tile = [&](OpPassManager &pm) {
    buildTilePipeline(pm, front);
    if (options.countTiles)
      pm.addPass(createCountTiles());
  };
  if (llvm::Error error = run(tile, Dump::L1, "l1"))
    return error;
  if (options.target == Target::Cpu)
    return run(buildDecomposePipeline, Dump::Linalg, "linalg");
  if (llvm::Error error = run(buildBlockPipeline, Dump::L2, "l2"))
    return error;
  return emulate();
}

llvm::Expected<Kernel> Kernel::compile(ModuleOp program, StringRef entry,
                                       Variant variant,
                                       const Options &options) {
  Kernel kernel;
  OwningOpRef<ModuleOp> module = copyProgram(program, entry);
  bool isFlash = variant == Variant::Flash;
  Stopwatch watch;
  auto stage = [&](StringRef name) {
    kernel.times.emplace_back(name, watch.lap());
  };

  auto func = module->lookupSymbol<func::FuncOp>(entry);
  if (variant == Variant::Reference)
    returnLogSumExp(func);
  for (Type type : func.getResultTypes()) {
    DType dtype = *getDType(cast<ShapedType>(type).getElementType());
    kernel.resultTypes.push_back(
        variant == Variant::Reference && isFloat(dtype) ? DType::F64 : dtype);
  }

  if (isFlash) {
    if (llvm::Error error = kernel.runFront(*module, options))
      return error;
  } else if (llvm::Error error = runPasses(*module, [&](OpPassManager &pm) {
               pm.addPass(createSymbolDCEPass());
               if (variant == Variant::Naive)
                 buildNaivePipeline(pm, NaiveOptions());
               else
                 buildReferencePipeline(pm);
             })) {
    return error;
  }
  stage("front");

  if (llvm::Error error = runPasses(*module, [](OpPassManager &pm) {
        buildCpuBackendPipeline(pm, CpuBackendOptions());
      }))
    return error;
  stage("backend");

  JitOptions jit;
  jit.keepText = isFlash && (options.has(Dump::LLVM) || options.has(Dump::Asm));
  auto executable = CpuExecutable::compile(*module, entry, jit);
  if (!executable)
    return executable.takeError();
  kernel.executable = std::move(*executable);
  CompileTimes times = kernel.executable->getTimes();
  kernel.times.append({{"translate", times.translate},
                       {"optimize", times.optimize},
                       {"codegen", times.codegen},
                       {"link", times.link}});
  if (isFlash && options.has(Dump::LLVM))
    llvm::outs() << "; flash-run: llvm\n" << kernel.executable->getLLVMIR();
  if (isFlash && options.has(Dump::Asm))
    llvm::outs() << "# flash-run: asm\n" << kernel.executable->getAssembly();
  return kernel;
}

/// The result in a buffer of the runtime, as a dense tensor.
static llvm::Expected<HostTensor> takeResult(flash::OwnedBuffer buffer,
                                             DType dtype) {
  flash::StridedBuffer view = buffer.get();
  auto spec = TensorSpec::create(dtype, view.sizes);
  if (!spec)
    return spec.takeError();
  bool dense = true;
  int64_t stride = 1;
  for (size_t d = view.sizes.size(); d-- > 0; stride *= view.sizes[d])
    dense &= view.sizes[d] == 1 || view.strides[d] == stride;
  if (dense || spec->getNumElements() == 0) {
    HostTensor::Memory memory(
        new flash::OwnedBuffer(std::move(buffer)),
        [](void *owner) { delete static_cast<flash::OwnedBuffer *>(owner); });
    return HostTensor(std::move(*spec), std::move(memory), view.data);
  }
  return createStringError("the program returns a tensor that is not dense");
}

llvm::Expected<std::vector<HostTensor>>
Kernel::run(llvm::ArrayRef<HostTensor> inputs) {
  SmallVector<StridedBuffer> buffers;
  for (const HostTensor &input : inputs) {
    llvm::ArrayRef<int64_t> shape = input.getSpec().shape;
    StridedBuffer buffer{const_cast<void *>(input.getData()),
                         SmallVector<int64_t, 4>(shape),
                         SmallVector<int64_t, 4>(shape.size(), 1)};
    for (size_t d = shape.size(); d-- > 1;)
      buffer.strides[d - 1] = buffer.strides[d] * shape[d];
    buffers.push_back(std::move(buffer));
  }

  int64_t before = runtime::getMemoryUse().current;
  runtime::resetPeakMemory();
  runtime::resetTileCounts();
  SmallVector<OwnedBuffer> owned;
  if (llvm::Error error = executable->invoke(buffers, owned))
    return error;
  tileCounts = runtime::getTileCounts();
  runtime::MemoryUse use = runtime::getMemoryUse();
  peakBytes = use.peak - before;

  std::vector<HostTensor> results;
  for (auto [buffer, dtype] : llvm::zip_equal(owned, resultTypes)) {
    auto result = takeResult(std::move(buffer), dtype);
    if (!result)
      return result.takeError();
    peakBytes -= result->getSpec().getNumBytes();
    results.push_back(std::move(*result));
  }
  peakBytes = std::max<int64_t>(peakBytes, 0);
  return results;
}
