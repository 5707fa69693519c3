//===- Pipelines.h - Which passes run in which order ------------*- C++ -*-===//
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
      llvm::cl::desc("Whose measured schedules to take, such as NVIDIA H200"),
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

/// Options of what is made of a program for calls of certain sizes.
struct CallOptions : FrontOptions {
  ListOption<std::string> sizes{
      *this, "sizes",
      llvm::cl::desc("Sizes of each argument, such as 16x32x?x128")};
};

struct NaiveOptions : mlir::PassPipelineOptions<NaiveOptions> {
  Option<int64_t> rowBlock{
      *this, "row-block",
      llvm::cl::desc("Queries whose scores are held at a time; 0 holds all"),
      llvm::cl::init(0)};
};

/// The three parts of the front end. From any program to level 0, where every
/// attention is one op on rank-4 tensors, and there are the versions that
/// `options` name:
void buildRecognizePipeline(mlir::OpPassManager &pm,
                            const FrontOptions &options);
/// from there to level 1, visits of tiles around the online step; the first
/// part chooses the schedule:
void buildSchedulePipeline(mlir::OpPassManager &pm,
                           const FrontOptions &options);
void buildTilePipeline(mlir::OpPassManager &pm, const FrontOptions &options);
/// and from there to linalg on tensors.
void buildDecomposePipeline(mlir::OpPassManager &pm);

/// All three.
void buildFrontPipeline(mlir::OpPassManager &pm, const FrontOptions &options);

/// From any program to the version of it that serves calls of these sizes.
void buildVersionPipeline(mlir::OpPassManager &pm, const CallOptions &options);
/// From any program to one that takes the maps of its masks as arguments, and a
/// function that makes them. If sizes are given, the maps' tiles are chosen for
/// calls of these sizes.
void buildPlanPipeline(mlir::OpPassManager &pm, const CallOptions &options);

/// From level 0 to level 1 of another kind: three loops over tiles, which store
/// all scores.
void buildNaiveTilePipeline(mlir::OpPassManager &pm);

/// From level 1 to level 2, one block program for each parallel loop, with
/// copies that overlap.
void buildBlockPipeline(mlir::OpPassManager &pm);
/// From level 2 to linalg on tensors, with rings that are checked as they run.
void buildEmulatePipeline(mlir::OpPassManager &pm);
/// From level 2 to level 3, what one thread does.
void buildThreadPipeline(mlir::OpPassManager &pm);
/// From level 3 to the LLVM dialect.
void buildThreadToLLVMPipeline(mlir::OpPassManager &pm);
/// The functions that launch kernels: from tensors to memrefs, whose strides
/// are all known at run time only.
void buildHostPipeline(mlir::OpPassManager &pm);

/// Attention as three separate computations: to linalg on tensors.
void buildNaivePipeline(mlir::OpPassManager &pm, const NaiveOptions &options);

/// The naive program, computed in f64 and in blocks of rows so that it fits
/// into memory. Shares no pass with the front end beyond the rank expansion.
void buildReferencePipeline(mlir::OpPassManager &pm);

//===----------------------------------------------------------------------===//
// The whole way of each target
//===----------------------------------------------------------------------===//

/// Which of the three translations of a program.
enum class Variant {
  /// The compiler's: tiles and the online softmax.
  Flash,
  /// All scores in memory: the baseline.
  Naive,
  /// The naive one in f64, on f64 copies of the floating-point inputs.
  Reference,
};

/// A part of the way from a program to what its target runs.
struct Stage {
  /// "l0" to "l3", "linalg": what the program is behind it; "backend" and
  /// "nvvm" for the LLVM dialect.
  llvm::StringLiteral name;
  std::function<void(mlir::OpPassManager &)> build;
};

/// The ways, which flash-opt has as pipelines and others run stage by stage.
/// `options` must outlive the result; only `Flash` needs them. A program
/// that is at level 2 (`isBlockLevel`) starts there.
llvm::SmallVector<Stage> getCpuStages(Variant variant,
                                      const FrontOptions &options);
llvm::SmallVector<Stage> getEmulationStages(Variant variant,
                                            const FrontOptions &options,
                                            bool isBlockLevel = false);
llvm::SmallVector<Stage> getGpuStages(Variant variant,
                                      const FrontOptions &options,
                                      bool isBlockLevel = false);

/// Registers --flash-cpu, --flash-emulate, --flash-naive and --flash-reference,
/// each from the program to the LLVM dialect, --flash-gpu, --flash-gpu-naive,
/// --flash-emulate-naive, --flash-front, --flash-version and --flash-plan.
void registerPipelines();

} // namespace flash

#endif // FLASH_PIPELINES_PIPELINES_H
