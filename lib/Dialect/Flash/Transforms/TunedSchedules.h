//===- TunedSchedules.h - What was measured on a device ---------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TUNEDSCHEDULES_H
#define FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TUNEDSCHEDULES_H

#include "flash/Schedule/TuningTable.h"
#include "mlir/IR/Operation.h"

namespace flash {

/// The schedules of a tuning file for a device.
class TunedSchedules {
public:
  /// None if `path` is empty. Fails after an error at `op` if no device is
  /// named, and if the file cannot be read or has no entry for the device.
  static llvm::FailureOr<TunedSchedules>
  load(mlir::Operation *op, llvm::StringRef device, llvm::StringRef path);

  /// The entry of the problem's class; null if there is none.
  const TuningEntry *find(const Problem &problem, const Machine &machine) const;

  /// The line of the file in which an entry is written.
  mlir::Location getLocation(mlir::MLIRContext *context,
                             const TuningEntry &entry) const;

private:
  std::string device, path;
  TuningTable file;
};

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TUNEDSCHEDULES_H
