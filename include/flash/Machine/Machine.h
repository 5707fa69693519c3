//===- Machine.h - What a machine can do ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that schedules and passes know of a machine. lib/Machine/Machines.cpp
// describes each; a module carries the description that it is compiled for as
// `flash.target` (TargetAttr.h), and what a program needs of a machine's
// resources is computed from it. Depends on LLVM's Support, but not on MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_MACHINE_MACHINE_H
#define FLASH_MACHINE_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace flash {

/// The matrix instructions of a machine, each with the ones before it.
enum class MatrixProducts {
  None,
  /// mma.sync of f16, m16n8k8.
  M16N8K8,
  /// mma.sync of elements of 16 bits, m16n8k16, and of tf32, m16n8k8; with
  /// them came conversions that round two numbers into a register, and bf16.
  M16N8K16,
  /// wgmma of elements of 16 bits, m64nNk16, and setmaxnreg, by which warps
  /// pass registers to each other.
  Warpgroup
};

/// The rows of a product's first operand and result that one warp has, of all
/// of these: m16, or a quarter of m64.
constexpr int64_t rowsOfWarp = 16;

/// How a machine copies tiles to shared memory, each way with those before it.
enum class TileCopies {
  /// By way of registers.
  Loads,
  /// cp.async.
  Async,
  /// cp.async.bulk.tensor, with mbarriers and tensor maps.
  Bulk
};

/// A description. The numbers of GPUs are from the CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability", and from the papers that
/// Machines.cpp names.
struct Machine {
  /// The option and the attribute that choose it, and of a GPU the chip of its
  /// PTX.
  llvm::StringRef name;
  /// Ten times the major version and the minor one; 0 of what is no GPU. The
  /// members below are of GPUs.
  int64_t computeCapability = 0;
  /// Multiprocessors of the GPU that a program is compiled for where nobody
  /// names another number: kernels are right on any.
  int64_t multiprocessors = 0;
  /// 32-bit registers that the threads on a multiprocessor share, and how many
  /// of them one thread can name.
  int64_t registers = 0, registersPerThread = 0;
  /// Bytes of shared memory that one block can have.
  int64_t sharedBytesPerBlock = 0;
  /// The same on the GPU that has the least among all that run its kernels: a
  /// schedule takes more only where it says so.
  int64_t portableSharedBytesPerBlock = 0;
  /// Bytes of shared memory that the driver keeps of each block.
  int64_t reservedSharedBytesPerBlock = 0;
  MatrixProducts products = MatrixProducts::None;
  TileCopies copies = TileCopies::Loads;
  /// Whether an instruction of the PTX that is written by default converts two
  /// numbers of f8E4M3FN to f16 (cvt.rn.f16x2.e4m3x2: PTX 8.1 for sm_89).
  bool convertsE4M3 = false;
  /// Whether a kernel may start before the one before it ends, and wait itself
  /// (griddepcontrol).
  bool hasDependentLaunches = false;
  /// Operations of the tensor cores of one multiprocessor per clock, dense,
  /// with sums in f32; a multiply-add is two. 0 where there are none.
  int64_t halfFlopsPerClock = 0, tf32FlopsPerClock = 0;
  /// Whether kernels for it run on all GPUs of its compute capability or a
  /// later one.
  bool isPortable = false;
  /// The first CUDA version, times ten, whose ptxas knows the chip.
  int64_t cudaVersion = 0;
  /// Cards that it describes.
  llvm::StringRef cards;
  /// Whether its kernels and schedules were run, timed and checked on such a
  /// card.
  bool wasTried = false;

  bool isGpu() const { return computeCapability != 0; }
  bool hasWarpgroups() const { return products >= MatrixProducts::Warpgroup; }
  /// Why the tensor cores do not multiply elements of a type, such as "bf16";
  /// empty if they do, and of what is no GPU.
  std::string findProductFault(llvm::StringRef element) const;

  /// Sets a key of `#flash.target`, such as "multiprocessors"; returns what is
  /// wrong with the key or the value, which is empty if nothing is.
  std::string set(llvm::StringRef key, llvm::StringRef value);
  /// Calls with each key and its value.
  void forEach(
      llvm::function_ref<void(llvm::StringRef, llvm::StringRef)> call) const;

  bool operator==(const Machine &other) const;
};

llvm::hash_code hash_value(const Machine &machine);

/// The most multiprocessors that a description may have.
constexpr int64_t mostMultiprocessors = 4096;

/// All descriptions: the CPU; block programs of any GPU on the CPU, "emulate";
/// and GPUs, by compute capability.
llvm::ArrayRef<Machine> getMachines();
/// The first is the oldest.
llvm::ArrayRef<Machine> getGpus();

/// The description of a name, such as "sm_90a"; null if there is none.
const Machine *findMachine(llvm::StringRef name);
/// The CPU, and the GPU that kernels of a module without a target are for.
const Machine &getCpu();
const Machine &getDefaultGpu();

/// The description whose kernels a card should run: its own; else, of the
/// descriptions that run there and need no more shared memory than the card has
/// for a block, the ones with the most of it, and the latest of them. Null if
/// none runs there.
const Machine *findNearestGpu(int64_t computeCapability,
                              int64_t sharedBytesPerBlock);

/// As an error message ends: "cpu, emulate, sm_80 and sm_90a".
std::string listMachines();
std::string listGpus();

} // namespace flash

#endif // FLASH_MACHINE_MACHINE_H
