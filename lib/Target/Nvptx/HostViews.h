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

/// An allocation that is returned.
struct ReturnedBuffer {
  /// Where the stride of a dimension comes from: a dimension of the result, and
  /// the later dimensions of the allocation that it spans.
  struct StrideOrigin {
    int64_t dimension;
    llvm::SmallVector<int64_t, 1> spanned;
  };

  unsigned result = 0;
  /// The origin of each stride, if the views between have an inverse.
  llvm::SmallVector<StrideOrigin, 4> origins;
  bool hasInverse = true;
  bool isCollapsed = false;
};

/// A memref: a strided part of the memory of an argument, a result or an
/// allocation.
struct HostView {
  /// Whose memory it is, where that is known to be one argument or result, or
  /// that it is an allocation.
  std::optional<unsigned> argument, result;
  bool isScratch = false;
  /// The address of the memory's first element.
  mlir::Value address;
  /// The memory's bytes, of results.
  mlir::Value bytes;
  /// The distance of the first element from the memory's first, in elements.
  mlir::Value offset;
  llvm::SmallVector<mlir::Value, 4> sizes, strides;
  /// This is the whole memory, so that what a cast requires of it is required
  /// of the caller.
  bool isWhole = false;
  /// The buffer of an allocation whose strides callers choose.
  const ReturnedBuffer *returned = nullptr;

  /// The values that it is made of, in the order in which `rebuild` takes them.
  llvm::SmallVector<mlir::Value> flatten() const;
  /// The same view with other values.
  HostView rebuild(mlir::ValueRange values) const;
};

/// Makes arithmetic of `memref` operations that only make a view.
class HostViews {
public:
  HostViews(HostBuilder &builder, HostScalars &scalars)
      : builder(builder), scalars(scalars) {}

  const HostView &get(mlir::Value value) const {
    return views.find(value)->second;
  }
  void set(mlir::Value value, HostView view) { views[value] = std::move(view); }

  /// Looks from what the function returns for the allocations behind it. Where
  /// the views between have an inverse, callers may choose the strides of the
  /// result. Call this first.
  void findResults(mlir::func::ReturnOp op);

  /// Describes an argument, or allocates. Fails, silently, if the type has
  /// no strides, an offset, or elements that are not whole bytes.
  llvm::LogicalResult addArgument(mlir::BlockArgument argument);
  llvm::LogicalResult addBuffer(mlir::memref::AllocOp op);

  /// Notes that a kernel is passed a view of this type, to which it stores so
  /// many elements at a time; 0 if that is no matter.
  void addUse(mlir::Value operand, int64_t alignment, llvm::StringRef kernel);

  /// Fails, silently, if the alignment of a later element is required.
  llvm::LogicalResult assumeAlignment(mlir::memref::AssumeAlignmentOp op);
  void extractMetadata(mlir::memref::ExtractStridedMetadataOp op);

  /// Fails, silently, if the operation makes no strided view of known rank.
  llvm::LogicalResult translate(mlir::Operation *op);

  /// Whether what is translated runs in each call, so that what it requires of
  /// an argument can be required of the caller.
  bool isUnconditional = true;

private:
  /// Allocations count only if they are in the region.
  void traceResult(mlir::Value value, ReturnedBuffer buffer,
                   mlir::Region *region);
  static void traceView(mlir::Operation *op, ReturnedBuffer &buffer);
  void chooseStrides(const ReturnedBuffer &returned, HostView &view);
  mlir::Value getResultStride(unsigned result, unsigned dimension,
                              mlir::Value dense);

  std::optional<HostView> cast(mlir::memref::CastOp op);
  HostView subview(mlir::memref::SubViewOp op);
  HostView reinterpret(mlir::memref::ReinterpretCastOp op);
  HostView expandShape(mlir::memref::ExpandShapeOp op);
  HostView collapseShape(mlir::memref::CollapseShapeOp op);
  HostView transpose(mlir::memref::TransposeOp op);
  /// A view of the same memory without shape.
  static HostView getPart(const HostView &source);
  void require(llvm::StringRef who, mlir::Value actual, int64_t expected,
               llvm::StringRef what, unsigned dimension);
  llvm::SmallVector<mlir::Value, 4>
  getDenseStrides(llvm::ArrayRef<mlir::Value> sizes);

  HostBuilder &builder;
  HostScalars &scalars;
  llvm::DenseMap<mlir::Value, HostView> views;
  /// By the operation that allocates it.
  llvm::DenseMap<mlir::Operation *, ReturnedBuffer> returnedBuffers;
  unsigned numBuffers = 0;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H
