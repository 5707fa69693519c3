//===- HostViews.h - Memrefs of the host as strided views -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H
#define FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H

#include "HostScalars.h"
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
  /// This is the argument itself, so that what a cast asks of it is asked of
  /// the caller.
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

  /// Adds an argument or a buffer to the plan. Fails, silently, if the type has
  /// no strides, an offset, or elements that are not whole bytes.
  llvm::LogicalResult addArgument(mlir::BlockArgument argument);
  llvm::LogicalResult addBuffer(mlir::memref::AllocOp op);

  /// Fails, silently, if the alignment of a later element is asked for.
  llvm::LogicalResult assumeAlignment(mlir::memref::AssumeAlignmentOp op);
  void extractMetadata(mlir::memref::ExtractStridedMetadataOp op);

  /// Fails, silently, if the operation makes no strided view of known rank.
  llvm::LogicalResult translate(mlir::Operation *op);

private:
  std::optional<HostView> cast(mlir::memref::CastOp op);
  HostView subview(mlir::memref::SubViewOp op);
  HostView reinterpret(mlir::memref::ReinterpretCastOp op);
  HostView expandShape(mlir::memref::ExpandShapeOp op);
  HostView collapseShape(mlir::memref::CollapseShapeOp op);
  void require(runtime::Register actual, int64_t expected, llvm::StringRef what,
               unsigned dimension);
  llvm::SmallVector<runtime::Register, 4>
  getDenseStrides(llvm::ArrayRef<runtime::Register> sizes);

  runtime::LaunchPlanBuilder &builder;
  HostScalars &scalars;
  llvm::DenseMap<mlir::Value, HostView> views;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTVIEWS_H
