//===- KernelAbi.cpp - How kernels take their operands --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Nvx/IR/KernelAbi.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace flash;

static SmallVector<AbiField> getMemRefFields(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return {};
  SmallVector<AbiField> fields = {{AbiType::Pointer, AbiRole::Pointer}};
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      fields.push_back({AbiType::I32, AbiRole::Size, unsigned(d)});
  for (auto [d, stride] : llvm::enumerate(strides))
    if (ShapedType::isDynamic(stride))
      fields.push_back({AbiType::I64, AbiRole::Stride, unsigned(d)});
  return fields;
}

SmallVector<AbiField> flash::getAbiFields(Type type) {
  if (auto memref = dyn_cast<MemRefType>(type))
    return getMemRefFields(memref);
  if (type.isIndex() || type.isSignlessInteger(32))
    return {{AbiType::I32, AbiRole::Scalar}};
  if (type.isSignlessInteger(64))
    return {{AbiType::I64, AbiRole::Scalar}};
  if (type.isF32())
    return {{AbiType::F32, AbiRole::Scalar}};
  if (type.isF64())
    return {{AbiType::F64, AbiRole::Scalar}};
  if (isa<nvgpu::TensorMapDescriptorType>(type))
    return {{AbiType::TensorMap, AbiRole::TensorMap}};
  return {};
}

SmallVector<Type> flash::getPartTypes(MemRefType type) {
  MLIRContext *context = type.getContext();
  return llvm::map_to_vector(
      getAbiFields(type), [&](const AbiField &field) -> Type {
        switch (field.role) {
        case AbiRole::Pointer:
          return LLVM::LLVMPointerType::get(
              context, static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
        case AbiRole::Stride:
          return IntegerType::get(context, 64);
        case AbiRole::Size:
          return IndexType::get(context);
        case AbiRole::Scalar:
        case AbiRole::TensorMap:
          break;
        }
        llvm_unreachable("no field of a memref");
      });
}
