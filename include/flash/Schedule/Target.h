//===- Target.h - The numbers of a target -----------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability"; NVIDIA A100 and H100 Tensor Core GPU Architecture (whitepapers).
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SCHEDULE_TARGET_H
#define FLASH_SCHEDULE_TARGET_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace mlir {
class Operation;
} // namespace mlir

namespace flash {

/// 32-bit registers that the threads on a multiprocessor share; of all GPUs
/// since compute capability 3.7.
constexpr int64_t registersPerMultiprocessor = 64 * 1024;

/// Registers that a thread can name; of all GPUs since compute capability 3.5.
constexpr int64_t maxRegistersPerThread = 255;

/// Bytes of shared memory that the driver keeps of each block; since compute
/// capability 8.0.
constexpr int64_t reservedSharedBytesPerBlock = 1024;

/// Tiles lie in shared memory as `!tile.smem` describes, with the narrowest
/// swizzle that holds a row of so many bytes, or 128.
constexpr int64_t getSwizzle(int64_t rowBytes) {
  return rowBytes <= 32 ? 32 : rowBytes <= 64 ? 64 : 128;
}
/// The bytes from the start of such a tile to where the next can start: after
/// eight rows the pattern of the swizzle repeats.
int64_t getSharedTileBytes(int64_t rows, int64_t columns, int64_t elementBytes,
                           int64_t swizzle);
inline int64_t getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes) {
  return getSharedTileBytes(rows, columns, elementBytes,
                            getSwizzle(columns * elementBytes));
}

/// What schedules take from the machine that runs them.
struct TargetInfo {
  llvm::StringLiteral name;
  /// Whether it has multiprocessors, and the members below mean something.
  bool isGpu = false;
  /// Multiprocessors of the GPU that a program is compiled for where nobody
  /// names another: kernels are right on any number.
  int64_t multiprocessors = 0;
  /// Bytes of shared memory that one block can have.
  int64_t maxSharedBytesPerBlock = 0;
  /// The same on the GPU that has the least among all that run its kernels: a
  /// schedule takes more only where it says so.
  int64_t leastSharedBytesPerBlock = 0;
  /// Whether it has products of warpgroups, bulk copies, and registers that
  /// warps pass to each other, for elements of 16 bits.
  bool hasWarpgroups = false;
  /// Whether a kernel may start before the one before it ends, and wait itself.
  bool hasDependentLaunches = false;
};

constexpr TargetInfo cpuTarget = {"cpu"};
/// Block programs of any target, on the CPU, with its schedules.
constexpr TargetInfo emulateTarget = {"emulate"};
/// An A100 has 108 multiprocessors. But the schedules of this target were
/// measured on an H200 (docs/benchmarks.md), which has 132, and are for it.
/// GPUs of compute capability 8.6, 8.9 and 12.0 have less shared memory.
constexpr TargetInfo sm80Target = {"sm_80", /*isGpu=*/true,
                                   /*multiprocessors=*/132,
                                   /*maxSharedBytesPerBlock=*/163 * 1024,
                                   /*leastSharedBytesPerBlock=*/99 * 1024};
/// H100 SXM and H200.
constexpr TargetInfo sm90aTarget = {"sm_90a",
                                    /*isGpu=*/true,
                                    /*multiprocessors=*/132,
                                    /*maxSharedBytesPerBlock=*/227 * 1024,
                                    /*leastSharedBytesPerBlock=*/227 * 1024,
                                    /*hasWarpgroups=*/true,
                                    /*hasDependentLaunches=*/true};

/// The target of a name, such as "sm_90a".
std::optional<TargetInfo> findTarget(llvm::StringRef name);

/// As an error message ends: "cpu, emulate, sm_80 and sm_90a".
llvm::StringRef listTargets();

/// The most multiprocessors that the attribute below may say.
constexpr int64_t mostMultiprocessors = 4096;

/// The attribute of the module that says how many multiprocessors the GPU has.
constexpr llvm::StringLiteral multiprocessorsName = "flash.multiprocessors";

/// How many multiprocessors there are, from the attribute of a module around
/// `op`; none if there is no such module.
std::optional<int64_t> findMultiprocessors(mlir::Operation *op);

/// The target of a name, as a pass has it as an option, with the
/// multiprocessors of that attribute; fails after an error at `op`.
llvm::FailureOr<TargetInfo> getTarget(mlir::Operation *op,
                                      llvm::StringRef name);

/// How many multiprocessors there are for a kernel: without the attribute, as
/// many as sm_90a has.
int64_t getMultiprocessors(mlir::Operation *op);

} // namespace flash

#endif // FLASH_SCHEDULE_TARGET_H
