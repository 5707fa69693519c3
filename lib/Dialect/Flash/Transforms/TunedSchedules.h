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

/// The schedules that were measured to be best on a device: those of a file go
/// before those that are compiled in.
class TunedSchedules {
public:
  /// None where no device is named. Fails after an error at `op` if the file,
  /// of which there need be none, cannot be read or has nothing for the device.
  static llvm::FailureOr<TunedSchedules>
  load(mlir::Operation *op, llvm::StringRef device, llvm::StringRef path);

  /// That of the problem's class; null if there is none.
  const TuningEntry *find(const Problem &problem, const Machine &machine) const;

  /// Where it is written.
  mlir::Location getLocation(mlir::MLIRContext *context,
                             const TuningEntry &entry) const;

private:
  std::string device, path;
  TuningTable file;
};

} // namespace flash

#endif // FLASH_LIB_DIALECT_FLASH_TRANSFORMS_TUNEDSCHEDULES_H
