//===- ScheduleAttr.cpp - The schedule as an attribute --------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Schedule/Schedule.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;

// The dialect reads mnemonics itself, and does not use the generated parser.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define GET_ATTRDEF_CLASSES
#include "flash/Schedule/ScheduleAttr.cpp.inc"
#pragma GCC diagnostic pop

Schedule ScheduleAttr::getValue() const { return getImpl()->value; }

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  Schedule schedule;
  auto parseKey = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key, word;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    auto parseSign = [&]() -> std::string {
      return succeeded(parser.parseOptionalMinus()) ? "-" : "";
    };
    std::string value = parseSign();
    int64_t number;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (isNumber.has_value()) {
      if (failed(*isNumber))
        return failure();
      value += std::to_string(number);
    } else {
      if (parser.parseKeyword(&word))
        return failure();
      value += word;
      while (succeeded(parser.parseOptionalVerticalBar())) {
        value += "|" + parseSign();
        if (parser.parseKeyword(&word))
          return failure();
        value += word;
      }
    }
    if (std::string fault = schedule.set(key, value); !fault.empty())
      return parser.emitError(loc, fault);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseKey))
    return {};
  return parser.getChecked<ScheduleAttr>(start, parser.getContext(), schedule);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  StringRef separator;
  getValue().forEach([&](StringRef key, StringRef value) {
    printer << separator << key << " = " << value;
    separator = ", ";
  });
  printer << '>';
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Schedule schedule) {
  if (std::string fault = schedule.findFault(); !fault.empty())
    return emitError() << fault;
  return success();
}

Schedule flash::getSchedule(Operation *op) {
  auto attribute = op->getAttrOfType<ScheduleAttr>(ScheduleAttr::name);
  return attribute ? attribute.getValue() : Schedule();
}

void flash::setSchedule(Operation *op, const Schedule &schedule) {
  if (!schedule.isEmpty())
    op->setAttr(ScheduleAttr::name,
                ScheduleAttr::get(op->getContext(), schedule));
}
