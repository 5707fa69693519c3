//===- Pipelines.cpp - Which passes run in which order --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Pipelines/Pipelines.h"

#include "flash/Conversion/Passes.h"
#include "flash/Dialect/Flash/Transforms/Passes.h"
#include "flash/Dialect/Tile/Transforms/Passes.h"
#include "flash/Target/Cpu/Pipeline.h"
#include "flash/Target/Nvptx/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

static void attachTarget(OpPassManager &pm,
                         const flash::FrontOptions &options) {
  std::string keys;
  if (options.multiprocessors)
    keys = "multiprocessors=" + llvm::itostr(options.multiprocessors);
  pm.addPass(flash::createAttachTarget({options.target, keys}));
}

void flash::buildRecognizePipeline(OpPassManager &pm,
                                   const FrontOptions &options) {
  pm.addNestedPass<func::FuncOp>(createRaiseAttention());
  pm.addNestedPass<func::FuncOp>(createSeparateMasks());
  attachTarget(pm, options);
  // Keys of a schedule are of one program, and versions take sizes of arguments
  // alone.
  if (options.schedule.empty() && options.versions.empty())
    pm.addNestedPass<func::FuncOp>(createPackDocuments());
  if (!options.versions.empty())
    pm.addPass(createMakeVersions({options.versions, options.schedule,
                                   options.device, options.tuningFile}));
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createExpandRank());
  func.addPass(createAssertShapes());
  func.addPass(createGuardReads());
  func.addPass(createWidenIndices());
}

void flash::buildSchedulePipeline(OpPassManager &pm,
                                  const FrontOptions &options) {
  pm.nest<func::FuncOp>().addPass(createSelectSchedule(
      {options.schedule, options.device, options.tuningFile}));
}

void flash::buildTilePipeline(OpPassManager &pm, const FrontOptions &options) {
  buildSchedulePipeline(pm, options);
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createMakeBlockMaps());
  func.addPass(createOnlineSoftmax());
  func.addPass(createTile());
  func.addPass(createTileGrad());
  func.addPass(createTileBlockMaps());
  func.addPass(createTileDocuments());
  func.addPass(createRefineVisits());
}

/// A program that says so has its lists of blocks checked, also where reads are
/// not.
static void addBlockChecks(OpPassManager &pm) {
  pm.addPass(flash::createAssertReads({/*onlyBlocks=*/true}));
}

void flash::buildDecomposePipeline(OpPassManager &pm, bool assertRows) {
  addBlockChecks(pm);
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createConvertFlashToSCF({/*onlyKernels=*/false, assertRows}));
  TileSoftmaxOptions softmax;
  softmax.transposeTiles = true;
  func.addPass(createTileSoftmax(softmax));
  DecomposeOptions decompose;
  decompose.transposeScores = true;
  decompose.guardValues = true;
  func.addPass(createDecompose(decompose));
  func.addPass(createDecomposeIsFinite());
  // Programs may hold elementwise arithmetic on whole tensors.
  func.addPass(createConvertElementwiseToLinalgPass());
}

void flash::buildFrontPipeline(OpPassManager &pm, const FrontOptions &options) {
  buildRecognizePipeline(pm, options);
  buildTilePipeline(pm, options);
  buildDecomposePipeline(pm);
}

static flash::SpecializeOptions
getSpecializeOptions(const flash::CallOptions &options) {
  flash::SpecializeOptions result;
  result.sizes.assign(options.sizes.begin(), options.sizes.end());
  result.schedule = options.schedule;
  result.device = options.device;
  result.tuningFile = options.tuningFile;
  return result;
}

void flash::buildVersionPipeline(OpPassManager &pm,
                                 const CallOptions &options) {
  pm.addNestedPass<func::FuncOp>(createRaiseAttention());
  pm.addNestedPass<func::FuncOp>(createSeparateMasks());
  attachTarget(pm, options);
  PackDocumentsOptions documents;
  documents.sizes.assign(options.sizes.begin(), options.sizes.end());
  if (options.schedule.empty())
    pm.addNestedPass<func::FuncOp>(createPackDocuments(documents));
  pm.addPass(createSpecialize(getSpecializeOptions(options)));
}

void flash::buildPlanPipeline(OpPassManager &pm, const CallOptions &options) {
  // Who plans ahead does not pay in the call.
  CallOptions planned;
  planned.copyOptionValuesFrom(options);
  if (!StringRef(planned.schedule).contains("block_map="))
    planned.schedule = planned.schedule.empty()
                           ? "block_map=1"
                           : planned.schedule + ",block_map=1";
  pm.addNestedPass<func::FuncOp>(createRaiseAttention());
  // A plan serves all programs of the mask that is said, whatever their scores
  // are.
  pm.addNestedPass<func::FuncOp>(createSeparateMasks({/*onlyUnsaid=*/true}));
  attachTarget(pm, planned);
  if (!planned.sizes.empty())
    pm.addPass(createSpecialize(getSpecializeOptions(planned)));
  pm.addNestedPass<func::FuncOp>(createExpandRank());
  buildSchedulePipeline(pm, planned);
  pm.addNestedPass<func::FuncOp>(createMakeBlockMaps());
  pm.addPass(createOutlineBlockMaps());
}

void flash::buildNaiveTilePipeline(OpPassManager &pm) {
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createTileNaive());
  func.addPass(createTileBlockMaps());
  func.addPass(createTileDocuments());
}

void flash::buildBlockPipeline(OpPassManager &pm) {
  // Eight rows, one for each warp, or fewer long rows, which warps share. A
  // lane has up to twice 16 bytes in a step, and 64 elements of rows that are
  // read once: with more, fewer warps would be there to hide the latency of
  // memory.
  TileSoftmaxOptions softmax;
  softmax.rowTile = 8;
  softmax.reductionBytes = 1024;
  softmax.wholeRows = 8 * 32 * 64;
  DecomposeOptions decompose;
  decompose.guardValues = true;
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createConvertFlashToSCF({/*onlyKernels=*/true}));
  func.addPass(createTileSoftmax(softmax));
  func.addPass(createDecompose(decompose));
  // No canonicalization before the loops are scheduled: it would inline loops
  // of one iteration, and what is prefetched and overlapped are loops.
  pm.addPass(createCSEPass());
  pm.addPass(createConvertLinalgToTile());
  pm.addPass(createCSEPass());
  pm.addPass(tile::createMergeKernels());
  OpPassManager &tiles = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  tiles.addPass(tile::createPartialSums());
  tiles.addPass(tile::createAnyOfLanes());
  tiles.addPass(tile::createHoistProducts());
  pm.addPass(createLowerTilePositions());
  pm.addPass(createCSEPass());
  pm.addPass(tile::createPersistChoices());
  pm.addPass(tile::createPersist());
  pm.addPass(tile::createDivideByReciprocals());
  OpPassManager &kernel = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel.addPass(tile::createMultiplyQuantized());
  kernel.addPass(tile::createDivideColumns());
  kernel.addPass(tile::createMakeRings());
  pm.addPass(tile::createSpecializeWarps());
  OpPassManager &scheduled = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  scheduled.addPass(tile::createPrefetch());
  scheduled.addPass(tile::createBulkStores());
  scheduled.addPass(tile::createDelayWaits());
  scheduled.addPass(tile::createDeferProducts());
  scheduled.addPass(tile::createOverlap());
  scheduled.addPass(tile::createPipeline());
  scheduled.addPass(tile::createPingPong());
  scheduled.addPass(tile::createDelayFinite());
  scheduled.addPass(tile::createSkipRows());
  scheduled.addPass(tile::createVerifyAsync());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void flash::buildEmulatePipeline(OpPassManager &pm) {
  pm.nest<func::FuncOp>().addPass(createCheckHost({/*emulated=*/true}));
  // Refuses kernels that the GPU has too little shared memory for.
  pm.addPass(tile::createAllocateSmem());
  pm.addPass(createAssertReads());
  pm.addPass(createEmulateTiles());
  buildDecomposePipeline(pm);
}

void flash::buildThreadPipeline(OpPassManager &pm) {
  pm.nest<func::FuncOp>().addPass(createCheckHost());
  pm.addPass(tile::createAssertStrides());
  pm.addPass(tile::createAllocateSmem());
  pm.addPass(createLowerTileRoles());
  OpPassManager &kernel = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  kernel.addPass(createLowerTileRings());
  kernel.addPass(createConvertTileToNvx());
}

void flash::buildThreadToLLVMPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createSCFToControlFlowPass());
  // Once through a kernel that is unrolled by now. To go through it again, or
  // to look for block arguments without a use, takes longer than all else here
  // and changes nothing: LLVM has passes for both.
  GreedyRewriteConfig once;
  once.setUseTopDownTraversal(true);
  once.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  once.setMaxIterations(1);
  kernels.addPass(createCanonicalizerPass(once));
  kernels.addPass(createCSEPass());
  kernels.addPass(createFlashGpuPairLoads());
  kernels.addPass(createFlashGpuShareSums());
  kernels.addPass(createFlashGpuContract());
  kernels.addPass(createFlashGpuExpandMath());
  kernels.addPass(createConvertNvxToLLVM());
  kernels.addPass(createConvertNVVMToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

void flash::buildHostPipeline(OpPassManager &pm) {
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::FullyDynamicLayoutMap;
  options.bufferAlignment = 0;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createCanonicalizerPass());
  func.addPass(createCSEPass());
}

void flash::buildNaivePipeline(OpPassManager &pm, const NaiveOptions &options) {
  addBlockChecks(pm);
  OpPassManager &func = pm.nest<func::FuncOp>();
  func.addPass(createSeparateMasks());
  func.addPass(createExpandRank());
  func.addPass(createAssertShapes());
  func.addPass(createGuardReads());
  func.addPass(createDecomposeNaive({options.rowBlock}));
  func.addPass(createDecomposeNaiveGrad({options.rowBlock}));
  func.addPass(createTileBlockMaps());
  func.addPass(createTileDocuments());
  func.addPass(createConvertFlashToSCF());
  // Programs may hold elementwise arithmetic on whole tensors.
  func.addPass(createConvertElementwiseToLinalgPass());
}

void flash::buildReferencePipeline(OpPassManager &pm) {
  NaiveOptions options;
  options.rowBlock = 64;
  pm.nest<func::FuncOp>().addPass(createCheckBlocks());
  buildNaivePipeline(pm, options);
  pm.addPass(createAssertReads());
  pm.addPass(createPromoteToF64());
}

static void buildBackendPipeline(OpPassManager &pm) {
  flash::buildCpuBackendPipeline(pm, flash::CpuBackendOptions());
}

/// For programs that run a few times, with small sizes: small register tiles
/// are compiled faster. Most such code is not optimized, and has its vectors in
/// memory anyway.
static void buildBriefBackendPipeline(OpPassManager &pm) {
  flash::CpuBackendOptions options;
  options.vectorBits =
      std::min<int64_t>(256, flash::getHostVectorRegisters().first);
  options.registers = 7;
  flash::buildCpuBackendPipeline(pm, options);
}

SmallVector<flash::Stage> flash::getCpuStages(Variant variant,
                                              const FrontOptions &options,
                                              bool isTileLevel) {
  switch (variant) {
  case Variant::Naive:
    return {{"linalg",
             [](OpPassManager &pm) { buildNaivePipeline(pm, NaiveOptions()); }},
            {"backend", buildBackendPipeline}};
  case Variant::Reference:
    return {{"linalg", buildReferencePipeline},
            {"backend", buildBriefBackendPipeline}};
  case Variant::Flash:
    break;
  }
  auto tile = [&](OpPassManager &pm) {
    buildTilePipeline(pm, options);
    if (!options.countTiles)
      return;
    // Each copy of a step counts the tiles that it computes.
    pm.nest<func::FuncOp>().addPass(createConvertFlashToSCF());
    pm.addPass(createCountTiles());
  };
  auto recognize = [&](OpPassManager &pm) {
    buildRecognizePipeline(pm, options);
  };
  return {{"l0", recognize},
          {"l1", tile},
          {"linalg",
           [=](OpPassManager &pm) { buildDecomposePipeline(pm, isTileLevel); }},
          {"backend", buildBackendPipeline}};
}

/// From a program to level 2.
static SmallVector<flash::Stage>
getBlockStages(flash::Variant variant, const flash::FrontOptions &options) {
  auto tile = [&options, variant](OpPassManager &pm) {
    if (variant == flash::Variant::Naive)
      flash::buildNaiveTilePipeline(pm);
    else
      flash::buildTilePipeline(pm, options);
  };
  auto recognize = [&options](OpPassManager &pm) {
    flash::buildRecognizePipeline(pm, options);
  };
  auto block = [](OpPassManager &pm) {
    flash::buildBlockPipeline(pm);
    pm.addPass(flash::tile::createChooseOnDevice());
    // Last, as which kernels there are and where they first read is known now.
    pm.addPass(flash::tile::createOverlapLaunches());
    // Behind the waits of kernels, without which blocks may not end.
    pm.nest<gpu::GPUModuleOp>().addNestedPass<gpu::GPUFuncOp>(
        flash::tile::createEndEmptyBlocks());
  };
  return {{"l0", recognize}, {"l1", tile}, {"l2", block}};
}

SmallVector<flash::Stage> flash::getEmulationStages(Variant variant,
                                                    const FrontOptions &options,
                                                    bool isBlockLevel) {
  SmallVector<Stage> stages;
  if (!isBlockLevel) {
    stages = getBlockStages(variant, options);
    auto build = stages.front().build;
    stages.front().build = [build](OpPassManager &pm) {
      pm.nest<func::FuncOp>().addPass(createCheckBlocks());
      build(pm);
    };
  }
  stages.push_back({"linalg", buildEmulatePipeline});
  stages.push_back({"backend", buildBriefBackendPipeline});
  return stages;
}

SmallVector<flash::Stage> flash::getGpuStages(Variant variant,
                                              const FrontOptions &options,
                                              bool isBlockLevel) {
  SmallVector<Stage> stages;
  if (!isBlockLevel)
    stages = getBlockStages(variant, options);
  stages.push_back({"l3", buildThreadPipeline});
  // One stage: verifying the kernels takes longer than the host's passes, which
  // leave them alone.
  stages.push_back({"nvvm", [](OpPassManager &pm) {
                      buildThreadToLLVMPipeline(pm);
                      buildHostPipeline(pm);
                    }});
  return stages;
}

static void build(OpPassManager &pm, ArrayRef<flash::Stage> stages) {
  for (const flash::Stage &stage : stages)
    stage.build(pm);
}

void flash::registerPipelines() {
  PassPipelineRegistration<FrontOptions>(
      "flash-front", "From a program to linalg on tensors, in tiles",
      buildFrontPipeline);
  PassPipelineRegistration<CallOptions>(
      "flash-version", "The version of a program for calls of certain sizes",
      buildVersionPipeline);
  PassPipelineRegistration<CallOptions>(
      "flash-plan",
      "A program that takes the maps of its masks, and what makes them",
      buildPlanPipeline);
  PassPipelineRegistration<FrontOptions>(
      "flash-cpu", "From a program to the LLVM dialect for this machine",
      [](OpPassManager &pm, const FrontOptions &options) {
        build(pm, getCpuStages(Variant::Flash, options));
      });
  using GetStages = SmallVector<Stage> (*)(Variant, const FrontOptions &, bool);
  for (auto [name, getStages, variant, description] :
       {std::tuple(StringRef("flash-emulate"), GetStages(getEmulationStages),
                   Variant::Flash,
                   StringRef("As flash-cpu, by way of block programs, whose "
                             "rings are checked")),
        std::tuple(StringRef("flash-emulate-naive"),
                   GetStages(getEmulationStages), Variant::Naive,
                   StringRef("As flash-emulate, but storing all scores")),
        std::tuple(StringRef("flash-gpu"), GetStages(getGpuStages),
                   Variant::Flash,
                   StringRef("From a program to thread programs and their "
                             "launches")),
        std::tuple(StringRef("flash-gpu-naive"), GetStages(getGpuStages),
                   Variant::Naive,
                   StringRef("As flash-gpu, but storing all scores"))})
    PassPipelineRegistration<FrontOptions>(
        name, description,
        [getStages = getStages,
         variant = variant](OpPassManager &pm, const FrontOptions &options) {
          FrontOptions front;
          front.copyOptionValuesFrom(options);
          // A program for blocks is for a GPU.
          if (front.target == getCpu().name)
            front.target = "sm_80";
          build(pm, getStages(variant, front, /*isBlockLevel=*/false));
        });
  PassPipelineRegistration<NaiveOptions>(
      "flash-naive", "As flash-cpu, but storing all scores",
      [](OpPassManager &pm, const NaiveOptions &options) {
        buildNaivePipeline(pm, options);
        buildBackendPipeline(pm);
      });
  PassPipelineRegistration<>(
      "flash-reference", "As flash-naive, computed in f64",
      [](OpPassManager &pm) {
        build(pm, getCpuStages(Variant::Reference, FrontOptions()));
      });
}
