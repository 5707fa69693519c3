//===- Target.cpp - The numbers of a target -------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/Target.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/MathExtras.h"

using namespace flash;

int64_t flash::getSharedTileBytes(int64_t rows, int64_t columns,
                                  int64_t elementBytes, int64_t swizzle) {
  int64_t panels = llvm::divideCeil(columns, swizzle / elementBytes);
  return llvm::alignTo(rows * swizzle * panels, 8 * swizzle);
}

std::optional<TargetInfo> flash::findTarget(llvm::StringRef name) {
  for (const TargetInfo &target :
       {cpuTarget, emulateTarget, sm80Target, sm90aTarget})
    if (target.name == name)
      return target;
  return std::nullopt;
}

llvm::StringRef flash::listTargets() {
  return "cpu, emulate, sm_80 and sm_90a";
}

std::optional<int64_t> flash::findMultiprocessors(mlir::Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto count = op->getAttrOfType<mlir::IntegerAttr>(multiprocessorsName))
      return count.getInt();
  return std::nullopt;
}

int64_t flash::getMultiprocessors(mlir::Operation *op) {
  return findMultiprocessors(op).value_or(sm90aTarget.multiprocessors);
}

llvm::FailureOr<TargetInfo> flash::getTarget(mlir::Operation *op,
                                             llvm::StringRef name) {
  std::optional<TargetInfo> target = findTarget(name);
  if (!target)
    return mlir::emitError(op->getLoc(),
                           "there is no schedule for the target '")
           << name << "'; there are " << listTargets();
  if (target->isGpu)
    target->multiprocessors =
        findMultiprocessors(op).value_or(target->multiprocessors);
  return *target;
}
