//===- TunedSchedules.cpp - What was measured on a device -----------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TunedSchedules.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace flash;

FailureOr<TunedSchedules> TunedSchedules::load(Operation *op, StringRef device,
                                               StringRef path) {
  TunedSchedules schedules;
  schedules.device = device.str();
  schedules.path = path.str();
  if (path.empty())
    return schedules;
  auto refuse = [&](const Twine &message) -> FailureOr<TunedSchedules> {
    return emitError(op->getLoc(), message);
  };
  if (device.empty())
    return refuse("the tuning file '" + path +
                  "' is for devices, and none is named");
  auto table = TuningTable::load(path);
  if (!table)
    return refuse(llvm::toString(table.takeError()));
  std::vector<std::string> devices = table->getDevices();
  if (!llvm::is_contained(devices, device))
    return refuse("the tuning file '" + path + "' has no schedules for '" +
                  device + "'; it has some for " +
                  (devices.empty() ? "no device"
                                   : "'" + llvm::join(devices, "', '") + "'"));
  schedules.file = std::move(*table);
  return schedules;
}

const TuningEntry *TunedSchedules::find(const Problem &problem,
                                        const Machine &machine) const {
  return file.find(TuningKey::get(problem, machine, device));
}

Location TunedSchedules::getLocation(MLIRContext *context,
                                     const TuningEntry &entry) const {
  return FileLineColLoc::get(context, path, entry.line, 1);
}
