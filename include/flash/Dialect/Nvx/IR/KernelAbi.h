//===- KernelAbi.h - How kernels take their operands ------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_NVX_IR_KERNELABI_H
#define FLASH_DIALECT_NVX_IR_KERNELABI_H

#include "flash/Runtime/AbiField.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

namespace flash {

/// The parameters that a kernel operand becomes, in order. Each is naturally
/// aligned in the parameter buffer (of kernels with tensor maps, see
/// HostProgram::Launch::hasTensorMaps).
///
/// A memref becomes the 64-bit address of its first element (the host has
/// applied the offset, static ones too), one i32 for each dynamic size, and
/// one i64 for each dynamic stride (in elements), both in the order of the
/// dimensions. `index` becomes i32; i32, i64, f32 and f64 go as they are.
///
/// `nvgpu.tensormap.descriptor` becomes a tensor map, passed by value: 128
/// bytes aligned to 64, as `llvm.byval` of such a pointer has them.
///
/// Empty for types that cannot be passed: others, and memrefs that are unranked
/// or without strides.
mlir::SmallVector<AbiField> getAbiFields(mlir::Type type);

/// The types of a memref's fields inside a kernel: a pointer to global memory,
/// sizes of type index (which becomes i32 last) and strides of type i64.
mlir::SmallVector<mlir::Type> getPartTypes(mlir::MemRefType type);

} // namespace flash

#endif // FLASH_DIALECT_NVX_IR_KERNELABI_H
