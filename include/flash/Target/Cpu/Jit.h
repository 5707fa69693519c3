//===- Jit.h - Compile and run a kernel in this process ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_CPU_JIT_H
#define FLASH_TARGET_CPU_JIT_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace flash {

/// A tensor in memory that somebody else owns. Strides count elements.
struct StridedBuffer {
  void *data;
  llvm::SmallVector<int64_t, 4> sizes;
  llvm::SmallVector<int64_t, 4> strides;
};

/// A tensor that a kernel has returned. The destructor frees its memory, which
/// comes from the allocation functions of Runtime/Cpu.h.
class OwnedBuffer {
public:
  OwnedBuffer() = default;
  OwnedBuffer(void *allocated, StridedBuffer view)
      : allocated(allocated), view(std::move(view)) {}
  OwnedBuffer(OwnedBuffer &&other) { *this = std::move(other); }
  OwnedBuffer &operator=(OwnedBuffer &&other) {
    std::swap(allocated, other.allocated);
    std::swap(view, other.view);
    return *this;
  }
  ~OwnedBuffer();

  const StridedBuffer &get() const { return view; }
  void *data() const { return view.data; }

private:
  void *allocated = nullptr;
  StridedBuffer view{nullptr, {}, {}};
};

/// Seconds spent in each stage of compilation. All are 0 for an executable that
/// was made by `link`.
struct CompileTimes {
  double translate = 0, optimize = 0, codegen = 0, link = 0;
};

struct JitOptions {
  /// Keep the text of the optimised LLVM IR and of the assembly.
  bool keepText = false;
  /// Without optimizations, compilation takes a fraction of the time, but the
  /// kernel takes about four times as long. In either case the code generator
  /// does not optimize modules with very large functions.
  bool optimize = true;
};

/// A compiled kernel as a relocatable object file, which any process on a
/// machine with the same processor can link.
struct CpuObject {
  std::string bytes;
  /// The number of arguments.
  unsigned numInputs = 0;
  /// The rank of each result.
  llvm::SmallVector<unsigned> resultRanks;
};

/// A kernel compiled for this machine.
class CpuExecutable {
public:
  /// Compiles the function `entry` of a module in the LLVM dialect, which
  /// `buildCpuBackendPipeline` has made. The arguments and results of the
  /// function must be ranked tensors. It is an error if they are not, or if
  /// there is no such function.
  static llvm::Expected<std::unique_ptr<CpuExecutable>>
  compile(mlir::ModuleOp module, llvm::StringRef entry,
          const JitOptions &options = {});
  /// Makes an executable of an object that `getObject` has returned, perhaps in
  /// another process. The code of the object is trusted.
  static llvm::Expected<std::unique_ptr<CpuExecutable>> link(CpuObject object);
  ~CpuExecutable();

  /// Runs the kernel on row-major tensors without gaps. It is an error if the
  /// number of inputs is not the number of arguments, if a tensor has gaps, or
  /// if an assertion or an allocation of the kernel fails. Ranks, static sizes
  /// and element types are not checked; they must be the ones of the compiled
  /// function. `results` is replaced, and only if there is no error. Several
  /// threads may call this at the same time.
  llvm::Error invoke(llvm::ArrayRef<StridedBuffer> inputs,
                     llvm::SmallVectorImpl<OwnedBuffer> &results) const;

  const CompileTimes &getTimes() const { return times; }
  const CpuObject &getObject() const { return object; }

  /// The texts that `JitOptions::keepText` keeps; empty if it was not set, and
  /// after `link`.
  llvm::StringRef getLLVMIR() const { return llvmIR; }
  llvm::StringRef getAssembly() const { return assembly; }

private:
  CpuExecutable() = default;

  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*function)(void *) = nullptr;
  CpuObject object;
  CompileTimes times;
  std::string llvmIR, assembly;
};

} // namespace flash

#endif // FLASH_TARGET_CPU_JIT_H
