//===- TargetAttr.h - The machine of a module -------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_MACHINE_TARGETATTR_H
#define FLASH_MACHINE_TARGETATTR_H

#include "flash/Machine/Machine.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/Operation.h"

namespace flash::detail {
struct TargetAttrStorage : mlir::AttributeStorage {
  using KeyTy = Machine;

  explicit TargetAttrStorage(const Machine &machine) : machine(machine) {}
  bool operator==(const KeyTy &key) const { return machine == key; }
  static llvm::hash_code hashKey(const KeyTy &key) { return hash_value(key); }
  static TargetAttrStorage *
  construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key) {
    return new (allocator.allocate<TargetAttrStorage>()) TargetAttrStorage(key);
  }

  Machine machine;
};
} // namespace flash::detail

#define GET_ATTRDEF_CLASSES
#include "flash/Machine/TargetAttr.h.inc"

namespace flash {

/// The machine for which the module around `op` is compiled: its attribute
/// `flash.target`, or the CPU if it has none.
Machine getMachine(mlir::Operation *op);

/// The GPU for which kernels in the module around `op` are compiled:
/// `getMachine` if that is a GPU, else `getDefaultGpu`.
Machine getMachineOfKernels(mlir::Operation *op);

} // namespace flash

#endif // FLASH_MACHINE_TARGETATTR_H
