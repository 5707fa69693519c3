//===- HostTensorMaps.cpp - Tensor maps of host functions -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostTensorMaps.h"

#include "flash/Runtime/TensorMap.h"

using namespace mlir;
using namespace flash;
using flash::runtime::HostProgram;
using flash::runtime::TensorMapElement;

static std::optional<TensorMapElement> getElement(Type type) {
  if (type.isF16())
    return TensorMapElement::F16;
  if (type.isBF16())
    return TensorMapElement::BF16;
  if (type.isF32())
    return TensorMapElement::F32;
  if (type.isF64())
    return TensorMapElement::F64;
  if (type.isSignlessInteger(32))
    return TensorMapElement::I32;
  if (type.isSignlessInteger(64))
    return TensorMapElement::I64;
  // Copies do not look at the elements.
  if (type.isSignlessInteger(8) || isa<Float8E4M3FNType>(type))
    return TensorMapElement::I8;
  return std::nullopt;
}

static int getSwizzleBytes(nvgpu::TensorMapSwizzleKind kind) {
  switch (kind) {
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE:
    return 0;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_32B:
    return 32;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_64B:
    return 64;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_128B:
    return 128;
  }
  llvm_unreachable("all kinds are handled");
}

static int getL2PromotionBytes(nvgpu::TensorMapL2PromoKind kind) {
  switch (kind) {
  case nvgpu::TensorMapL2PromoKind::L2PROMO_NONE:
    return 0;
  case nvgpu::TensorMapL2PromoKind::L2PROMO_64B:
    return 64;
  case nvgpu::TensorMapL2PromoKind::L2PROMO_128B:
    return 128;
  case nvgpu::TensorMapL2PromoKind::L2PROMO_256B:
    return 256;
  }
  llvm_unreachable("all kinds are handled");
}

/// What is broken whatever the call's sizes, strides and addresses.
static std::string findBrokenRule(const HostProgram::TensorMapRecipe &recipe) {
  SmallVector<int64_t> sizes(recipe.box.size(), 1),
      byteStrides(sizes.empty() ? 0 : sizes.size() - 1, 0);
  runtime::TensorMapOptions options;
  options.element = recipe.element;
  options.sizes = sizes;
  options.byteStrides = byteStrides;
  options.box = recipe.box;
  options.swizzleBytes = recipe.swizzleBytes;
  return runtime::findBrokenRule(options);
}

LogicalResult HostTensorMaps::addBox(nvgpu::TmaCreateDescriptorOp op,
                                     size_t rank,
                                     HostProgram::TensorMapRecipe &recipe) {
  ValueRange box = op.getBoxDimensions();
  if (box.size() != rank)
    return op.emitOpError() << "has a box of " << box.size()
                            << " dimensions for a memref of rank " << rank
                            << "; give a size for each, outermost first";
  int64_t numElements = 1;
  for (auto [d, value] : llvm::enumerate(box)) {
    std::optional<int64_t> size = HostBuilder::getConstant(scalars.get(value));
    if (!size)
      return op.emitOpError() << "needs a constant as size of its box in "
                                 "dimension "
                              << d;
    recipe.box.push_back(*size);
  }
  if (std::string broken = findBrokenRule(recipe); !broken.empty())
    return op.emitOpError() << "cannot be encoded: " << broken;
  for (int64_t size : recipe.box)
    numElements *= size;
  MemRefType tile = op.getTensorMap().getType().getTensor();
  if (numElements != tile.getNumElements())
    return op.emitOpError()
           << "has a box of " << numElements << " elements, but copies to "
           << tile << ", which has " << tile.getNumElements();
  return success();
}

LogicalResult HostTensorMaps::add(nvgpu::TmaCreateDescriptorOp op) {
  nvgpu::TensorMapDescriptorType type = op.getTensorMap().getType();
  Type elementType = op.getTensor().getType().getElementType();
  std::optional<TensorMapElement> element = getElement(elementType);
  if (!element)
    return op.emitOpError()
           << "cannot be of elements of type " << elementType
           << ": tensor maps have i8, i32, i64, f16, bf16, f32 and f64";
  if (elementType != type.getTensor().getElementType())
    return op.emitOpError() << "cannot copy elements of type " << elementType
                            << " to " << type.getTensor();
  if (type.getOob() != nvgpu::TensorMapOOBKind::OOB_ZERO)
    return op.emitOpError("must read zeros beyond the tensor: oob = zero");

  const HostView &view = views.get(op.getTensor());
  HostProgram::TensorMapRecipe recipe;
  recipe.element = *element;
  recipe.swizzleBytes = getSwizzleBytes(type.getSwizzle());
  recipe.l2PromotionBytes = getL2PromotionBytes(type.getL2promo());
  if (failed(addBox(op, view.sizes.size(), recipe)))
    return failure();
  // Otherwise the call checks it: casts that know it are folded into that to
  // no rank.
  if (HostBuilder::getConstant(view.strides.back()).value_or(1) != 1)
    return op.emitOpError("needs a memref whose innermost stride is 1");
  recipes[op] = std::move(recipe);
  return success();
}
