//===- HostTensorMaps.h - Tensor maps of host functions ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTTENSORMAPS_H
#define FLASH_LIB_TARGET_NVPTX_HOSTTENSORMAPS_H

#include "HostViews.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

namespace flash {

/// Makes of `nvgpu.tma.create.descriptor` recipes of tensor maps.
class HostTensorMaps {
public:
  HostTensorMaps(const HostScalars &scalars, const HostViews &views)
      : scalars(scalars), views(views) {}

  /// The recipe of a translated operation.
  const runtime::HostProgram::TensorMapRecipe &get(mlir::Value map) const {
    return recipes.find(map)->second;
  }

  /// Makes a recipe, or reports why there is none.
  llvm::LogicalResult add(mlir::nvgpu::TmaCreateDescriptorOp op);

private:
  llvm::LogicalResult addBox(mlir::nvgpu::TmaCreateDescriptorOp op, size_t rank,
                             runtime::HostProgram::TensorMapRecipe &recipe);

  const HostScalars &scalars;
  const HostViews &views;
  llvm::DenseMap<mlir::Value, runtime::HostProgram::TensorMapRecipe> recipes;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTTENSORMAPS_H
