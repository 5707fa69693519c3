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

/// A tensor that a kernel has returned; freed through the runtime.
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

/// Seconds spent in each stage of compilation.
struct CompileTimes {
  double translate = 0, optimize = 0, codegen = 0, link = 0;
};

struct JitOptions {
  /// Keep the text of the optimised LLVM IR and of the assembly.
  bool keepText = false;
  /// Without optimizations, compiling takes a fraction of the time and running
  /// about four times as long.
  bool optimize = true;
};

/// A compiled kernel as a relocatable object file, for any process on a machine
/// with the same processor.
struct CpuObject {
  std::string bytes;
  unsigned numInputs = 0;
  llvm::SmallVector<unsigned> resultRanks;
};

/// A kernel compiled for this machine.
class CpuExecutable {
public:
  /// Compiles function `entry` of a module in the LLVM dialect, as left by
  /// `buildCpuBackendPipeline`. Arguments and results are ranked tensors.
  static llvm::Expected<std::unique_ptr<CpuExecutable>>
  compile(mlir::ModuleOp module, llvm::StringRef entry,
          const JitOptions &options = {});
  /// Loads what `getObject` of another executable gave.
  static llvm::Expected<std::unique_ptr<CpuExecutable>> link(CpuObject object);
  ~CpuExecutable();

  /// Runs the kernel on contiguous tensors, whose static sizes and element
  /// types must be the types of the compiled function, which does not check
  /// them. A failed assertion or allocation comes back as an error.
  llvm::Error invoke(llvm::ArrayRef<StridedBuffer> inputs,
                     llvm::SmallVectorImpl<OwnedBuffer> &results) const;

  const CompileTimes &getTimes() const { return times; }
  const CpuObject &getObject() const { return object; }

  /// Empty unless `keepText` was set.
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
