//===- Schedule.cpp - A schedule in the making ----------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Flash/Transforms/Schedule.h"

using namespace mlir;
using namespace flash;

Schedule Schedule::get(ScheduleAttr attribute) {
  return {attribute.getQueryTile(),
          attribute.getKeyTile(),
          attribute.getWarps().value_or(0),
          attribute.getStages().value_or(0),
          attribute.getQueryStages().value_or(0),
          attribute.getResidentBlocks().value_or(0),
          attribute.getFeatures(),
          attribute.getSplits().value_or(0),
          attribute.getUnits().value_or(0)};
}

ScheduleAttr Schedule::getAttribute(
    MLIRContext *context,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  auto optional = [](int64_t value) {
    return value ? std::optional<int64_t>(value) : std::nullopt;
  };
  return ScheduleAttr::getChecked(
      emitError, context, queryTile, keyTile, optional(warps), optional(stages),
      optional(queryStages), optional(residentBlocks), features,
      optional(splits), optional(units));
}

std::string Schedule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  forEachNumber(*this, [&](StringRef name, int64_t value) {
    if (value)
      os << (text.empty() ? "" : ",") << name << "=" << value;
  });
  if (features != ScheduleFeatures::None)
    os << ",features=" << stringifyScheduleFeatures(features);
  return text;
}

bool Schedule::operator==(const Schedule &other) const {
  auto tie = [](const Schedule &s) {
    return std::tie(s.queryTile, s.keyTile, s.warps, s.stages, s.queryStages,
                    s.residentBlocks, s.features, s.splits, s.units);
  };
  return tie(*this) == tie(other);
}
