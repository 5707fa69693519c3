//===- Machine.h - What a machine can do ------------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Everything that schedules and passes know of a machine.
// lib/Machine/Machines.cpp describes each machine. A module has the description
// of the machine that it is compiled for as its attribute `flash.target`
// (TargetAttr.h). This header depends on LLVM's Support, but not on MLIR.
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

/// The matrix instructions of a machine. A machine with one of them has those
/// listed before it, too.
enum class MatrixProducts {
  None,
  /// mma.sync of f16, m16n8k8.
  M16N8K8,
  /// mma.sync of elements of 16 bits, m16n8k16, and of tf32, m16n8k8. GPUs that
  /// have these also have bf16, and conversions that round two numbers into one
  /// register.
  M16N8K16,
  /// wgmma of elements of 16 bits, m64nNk16, and setmaxnreg, which moves
  /// registers between warps.
  Warpgroup
};

/// How many rows of a product's first operand and result one warp holds. It is
/// the same for all of these instructions: m16, or a quarter of m64.
constexpr int64_t rowsOfWarp = 16;

/// How a machine copies tiles to shared memory. A machine with one of these
/// ways has the ways listed before it, too.
enum class TileCopies {
  /// Loads to registers, and stores from there.
  Loads,
  /// cp.async.
  Async,
  /// cp.async.bulk.tensor, with mbarriers and tensor maps.
  Bulk
};

/// A description of a machine. The numbers of GPUs are from the CUDA C++
/// Programming Guide, "Technical Specifications per Compute Capability", and
/// from the papers that Machines.cpp names.
struct Machine {
  /// The name that chooses this description in options and in `#flash.target`.
  /// For a GPU it is also the chip of the PTX.
  llvm::StringRef name;
  /// Ten times the major version plus the minor version, or 0 if the machine is
  /// no GPU. The members below have a meaning for GPUs only.
  int64_t computeCapability = 0;
  /// The number of multiprocessors for which a program is scheduled, unless
  /// another number is given. Kernels are right on any number.
  int64_t multiprocessors = 0;
  /// The number of 32-bit registers that the threads on a multiprocessor share,
  /// and the number that one thread can use.
  int64_t registers = 0, registersPerThread = 0;
  /// Bytes of shared memory that one block can have.
  int64_t sharedBytesPerBlock = 0;
  /// The smallest such number among all GPUs that run kernels for this one. A
  /// schedule needs more only if one of its keys requires it.
  int64_t portableSharedBytesPerBlock = 0;
  /// Bytes of shared memory that the driver keeps of each block.
  int64_t reservedSharedBytesPerBlock = 0;
  MatrixProducts products = MatrixProducts::None;
  TileCopies copies = TileCopies::Loads;
  /// Whether the version of PTX that is written by default has an instruction
  /// that converts two numbers of f8E4M3FN to f16 (cvt.rn.f16x2.e4m3x2: PTX 8.1
  /// for sm_89).
  bool convertsE4M3 = false;
  /// Whether a kernel may start before the previous kernel ends, and wait for
  /// its end by an instruction (griddepcontrol).
  bool hasDependentLaunches = false;
  /// Dense operations of the tensor cores of one multiprocessor per clock, with
  /// sums in f32. A multiply-add counts as two operations. 0 if the GPU has no
  /// such operations.
  int64_t halfFlopsPerClock = 0, tf32FlopsPerClock = 0;
  /// Whether kernels for this GPU run on all GPUs of its compute capability or
  /// a later one.
  bool isPortable = false;
  /// The first CUDA version, times ten, whose ptxas knows the chip.
  int64_t cudaVersion = 0;
  /// The names of the cards that have this description.
  llvm::StringRef cards;
  /// Whether kernels with this description were run, timed and checked on such
  /// a card.
  bool wasTried = false;

  bool isGpu() const { return computeCapability != 0; }
  bool hasWarpgroups() const { return products >= MatrixProducts::Warpgroup; }
  /// Returns an error message if the tensor cores do not multiply elements of a
  /// type, such as "bf16". Empty if they do, and for machines that are no GPUs.
  std::string findProductFault(llvm::StringRef element) const;

  /// Sets a key of `#flash.target`, such as "multiprocessors". Returns an error
  /// message if the machine is no GPU, if there is no such key, or if the value
  /// is malformed, out of range or more than the chip has; otherwise an empty
  /// string. `name` must be one of `getMachines()`.
  std::string set(llvm::StringRef key, llvm::StringRef value);
  /// Calls `call` with each key of `#flash.target` and its value.
  void forEach(
      llvm::function_ref<void(llvm::StringRef, llvm::StringRef)> call) const;

  bool operator==(const Machine &other) const;
};

llvm::hash_code hash_value(const Machine &machine);

/// The largest number of multiprocessors in a description.
constexpr int64_t mostMultiprocessors = 4096;

/// All descriptions: the CPU; "emulate", which runs block programs for a GPU on
/// the CPU; and the GPUs, sorted by compute capability.
llvm::ArrayRef<Machine> getMachines();
/// The descriptions of GPUs. The first one is the oldest GPU.
llvm::ArrayRef<Machine> getGpus();

/// The description with a name such as "sm_90a", or null if no description has
/// this name.
const Machine *findMachine(llvm::StringRef name);
/// The description of the CPU, and the description of the GPU for which modules
/// without a target are compiled.
const Machine &getCpu();
const Machine &getDefaultGpu();

/// The description whose kernels a card should run. If the card has no
/// description of its own, the candidates are those whose kernels run on the
/// card and which need no more shared memory for a block than the card has. The
/// candidate with the most shared memory is chosen, and the latest among equal
/// ones. Null if there is no candidate.
const Machine *findNearestGpu(int64_t computeCapability,
                              int64_t sharedBytesPerBlock);

/// The names as a list for error messages: "cpu, emulate, sm_80 and sm_90a".
std::string listMachines();
std::string listGpus();

} // namespace flash

#endif // FLASH_MACHINE_MACHINE_H
