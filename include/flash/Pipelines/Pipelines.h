//===- Pipelines.h - Pipelines of passes ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_PIPELINES_PIPELINES_H
#define FLASH_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <functional>

namespace flash {

/// Options of the passes from a program to its tiles.
struct FrontOptions : mlir::PassPipelineOptions<FrontOptions> {
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Keys of #flash.schedule, such as "
                     "query_tile=64,key_tile=128; the others are chosen"),
      llvm::cl::init("")};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("The machine: cpu, emulate, or a GPU such as sm_90a"),
      llvm::cl::init("cpu")};
  Option<int64_t> multiprocessors{
      *this, "multiprocessors",
      llvm::cl::desc("How many the GPU has; 0 for what its description says"),
      llvm::cl::init(0)};
  Option<bool> countTiles{
      *this, "count-tiles",
      llvm::cl::desc("Count the tiles that the program visits, on the CPU"),
      llvm::cl::init(false)};
  Option<std::string> device{
      *this, "device",
      llvm::cl::desc(
          "Whose schedules in tuning-file to take, such as NVIDIA H200"),
      llvm::cl::init("")};
  Option<std::string> tuningFile{
      *this, "tuning-file", llvm::cl::desc("A file with measured schedules"),
      llvm::cl::init("")};
  Option<std::string> versions{
      *this, "versions",
      llvm::cl::desc("The calls that are to have versions, as "
                     "flash-make-versions takes them"),
      llvm::cl::init("")};
};

/// Options of pipelines that change a program for calls of certain sizes.
struct CallOptions : FrontOptions {
  ListOption<std::string> sizes{
      *this, "sizes",
      llvm::cl::desc("Sizes of each argument, such as 16x32x?x128")};
};

/// Options of the naive program, which stores scores.
struct NaiveOptions : mlir::PassPipelineOptions<NaiveOptions> {
  Option<int64_t> rowBlock{
      *this, "row-block",
      llvm::cl::desc("Queries whose scores are held at a time; 0 holds all"),
      llvm::cl::init(0)};
};

/// The first part of the front end: from any program to level 0. Each attention
/// is one op on tensors of rank 4, and there are the versions that `options`
/// name.
void buildRecognizePipeline(mlir::OpPassManager &pm,
                            const FrontOptions &options);
/// The second part: from level 0 to level 1, visits of tiles around the step of
/// the online softmax. `buildTilePipeline` begins with the passes of
/// `buildSchedulePipeline`, which choose schedules.
void buildSchedulePipeline(mlir::OpPassManager &pm,
                           const FrontOptions &options);
void buildTilePipeline(mlir::OpPassManager &pm, const FrontOptions &options);
/// The third part: from level 1 to linalg on tensors.
void buildDecomposePipeline(mlir::OpPassManager &pm, bool assertRows = false);

/// All three parts of the front end.
void buildFrontPipeline(mlir::OpPassManager &pm, const FrontOptions &options);

/// From any program to its version for calls of the sizes that `options` have.
void buildVersionPipeline(mlir::OpPassManager &pm, const CallOptions &options);
/// From any program to one that takes the block maps of its masks as arguments,
/// and a function that computes these maps. If `options` have sizes, the tiles
/// of the maps are chosen for calls of these sizes.
void buildPlanPipeline(mlir::OpPassManager &pm, const CallOptions &options);

/// From level 0 to another form of level 1, for the naive program: three loops
/// over tiles, which store all scores.
void buildNaiveTilePipeline(mlir::OpPassManager &pm);

/// From level 1 to level 2: each parallel loop over tiles becomes a block
/// program, in which copies overlap with computation.
void buildBlockPipeline(mlir::OpPassManager &pm);
/// From level 2 to linalg on tensors, for the CPU. Rings are checked while the
/// program runs.
void buildEmulatePipeline(mlir::OpPassManager &pm);
/// From level 2 to level 3: from block programs to programs of one thread.
void buildThreadPipeline(mlir::OpPassManager &pm);
/// From level 3 to the LLVM dialect.
void buildThreadToLLVMPipeline(mlir::OpPassManager &pm);
/// Bufferizes the functions that launch kernels. Tensors become memrefs whose
/// offset and strides are all dynamic.
void buildHostPipeline(mlir::OpPassManager &pm);

/// From any program to linalg on tensors, with attention as three separate
/// computations.
void buildNaivePipeline(mlir::OpPassManager &pm, const NaiveOptions &options);

/// As `buildNaivePipeline`, but the program computes in f64, and 64 queries at
/// a time, so that the scores fit into memory. It shares no pass with the front
/// end that chooses schedules, tiles attention or makes the online softmax.
void buildReferencePipeline(mlir::OpPassManager &pm);

//===----------------------------------------------------------------------===//
// The stages of each target
//===----------------------------------------------------------------------===//

/// The three ways in which a program is compiled.
enum class Variant {
  /// The program that the compiler is for: tiles and the online softmax.
  Flash,
  /// The naive program, the baseline of measurements: all scores are in memory.
  Naive,
  /// The naive program in f64. It takes f64 copies of the floating-point
  /// arguments.
  Reference,
};

/// One of the stages in which a program is compiled for its target.
struct Stage {
  /// The level of the program after this stage: "l0" to "l3" or "linalg";
  /// "backend" or "nvvm" for the LLVM dialect.
  llvm::StringLiteral name;
  std::function<void(mlir::OpPassManager &)> build;
};

/// The stages for each target, in their order, which flash-opt has as
/// pipelines. `options` must outlive the result; only `Flash` needs them on the
/// CPU. If the program is at level 2 already (`isBlockLevel`), the stages begin
/// there. If it is at level 1 (`isTileLevel`), it checks on the CPU that the
/// rows of its tiles exist: nothing has proved it.
llvm::SmallVector<Stage> getCpuStages(Variant variant,
                                      const FrontOptions &options,
                                      bool isTileLevel = false);
llvm::SmallVector<Stage> getEmulationStages(Variant variant,
                                            const FrontOptions &options,
                                            bool isBlockLevel = false);
llvm::SmallVector<Stage> getGpuStages(Variant variant,
                                      const FrontOptions &options,
                                      bool isBlockLevel = false);

/// Registers the pipelines of flash-opt. --flash-cpu, --flash-emulate,
/// --flash-emulate-naive, --flash-naive and --flash-reference compile a program
/// to the LLVM dialect. --flash-gpu and --flash-gpu-naive compile the kernels
/// of a program to the LLVM dialect, and bufferize the functions that launch
/// them. The others are --flash-front, --flash-version and --flash-plan.
void registerPipelines();

} // namespace flash

#endif // FLASH_PIPELINES_PIPELINES_H
