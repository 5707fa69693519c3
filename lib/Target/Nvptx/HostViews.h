//===- HostViews.h - Memrefs of the host as strided views -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H
#define FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H

#include "HostScalars.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace flash {

/// A memref: a strided part of an argument or a buffer.
struct HostView {
  bool isArgument = false;
  /// The number of the argument or buffer.
  unsigned root = 0;
  /// Of the first element from the root's first, in elements.
  runtime::Register offset = 0;
  llvm::SmallVector<runtime::Register, 4> sizes, strides;
  /// This is the argument or the buffer itself, so that what a cast asks of it
  /// is asked of the caller.
  bool isWhole = false;
};

/// Turns `memref` operations that only make a view into instructions.
class HostViews {
public:
  HostViews(runtime::LaunchPlanBuilder &builder, HostScalars &scalars)
      : builder(builder), scalars(scalars) {}

  const HostView &get(mlir::Value value) const {
    return views.find(value)->second;
  }

  /// Looks from what the function returns for the buffers behind it. Where the
  /// views between have an inverse, callers may choose the strides of the
  /// result. Call this first.
  void findResults(mlir::func::ReturnOp op);
  /// What callers must know of a result; its buffer, sizes and strides are not
  /// filled in.
  runtime::LaunchPlan::Result &getResult(unsigned index) {
    return results[index];
  }

  /// Adds an argument or a buffer to the plan. Fails, silently, if the type has
  /// no strides, an offset, or elements that are not whole bytes.
  llvm::LogicalResult addArgument(mlir::BlockArgument argument);
  llvm::LogicalResult addBuffer(mlir::memref::AllocOp op);

  /// Notes that a kernel is passed a view of this type, to which it stores so
  /// many elements at a time; 0 if that is no matter.
  void addUse(mlir::Value operand, int64_t alignment, llvm::StringRef kernel);

  /// Fails, silently, if the alignment of a later element is asked for.
  llvm::LogicalResult assumeAlignment(mlir::memref::AssumeAlignmentOp op);
  void extractMetadata(mlir::memref::ExtractStridedMetadataOp op);

  /// Fails, silently, if the operation makes no strided view of known rank.
  llvm::LogicalResult translate(mlir::Operation *op);

private:
  /// Where the stride of a buffer's dimension comes from: a dimension of the
  /// result, and the later dimensions of the buffer that it spans.
  struct StrideOrigin {
    int64_t dimension;
    llvm::SmallVector<int64_t, 1> spanned;
  };
  /// A buffer that is returned, with an origin for each of its dimensions.
  struct ReturnedBuffer {
    unsigned result = 0;
    llvm::SmallVector<StrideOrigin, 4> origins;
  };
  void traceResult(mlir::OpOperand &returned);
  void chooseStrides(const ReturnedBuffer &returned, HostView &view);
  /// The buffer of the view, if callers choose the strides of it; else null.
  const ReturnedBuffer *getReturned(const HostView &view) const;

  std::optional<HostView> cast(mlir::memref::CastOp op);
  HostView subview(mlir::memref::SubViewOp op);
  HostView reinterpret(mlir::memref::ReinterpretCastOp op);
  HostView expandShape(mlir::memref::ExpandShapeOp op);
  HostView collapseShape(mlir::memref::CollapseShapeOp op);
  HostView transpose(mlir::memref::TransposeOp op);
  void require(llvm::StringRef who, runtime::Register actual, int64_t expected,
               llvm::StringRef what, unsigned dimension);
  llvm::SmallVector<runtime::Register, 4>
  getDenseStrides(llvm::ArrayRef<runtime::Register> sizes);

  runtime::LaunchPlanBuilder &builder;
  HostScalars &scalars;
  llvm::DenseMap<mlir::Value, HostView> views;
  /// By the operation that allocates it, and by the number of the buffer.
  llvm::DenseMap<mlir::Operation *, ReturnedBuffer> returnedBuffers;
  llvm::DenseMap<unsigned, const ReturnedBuffer *> returnedRoots;
  llvm::SmallVector<runtime::LaunchPlan::Result> results;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H
