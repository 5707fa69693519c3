//===- TargetAttr.cpp - The machine of a module ---------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Machine/TargetAttr.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace flash;

// The dialect reads mnemonics itself, and does not use the generated parser.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define GET_ATTRDEF_CLASSES
#include "flash/Machine/TargetAttr.cpp.inc"
#pragma GCC diagnostic pop

Machine TargetAttr::getMachine() const { return getImpl()->machine; }

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseLess() || parser.parseKeyword(&name))
    return {};
  const Machine *known = findMachine(name);
  if (!known) {
    parser.emitError(loc) << "there is no target '" << name
                          << "'; the targets are " << listMachines();
    return {};
  }
  Machine machine = *known;
  llvm::StringSet<> keys;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key, word;
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return {};
    if (!keys.insert(key).second) {
      parser.emitError(loc) << key << " is given twice";
      return {};
    }
    APInt number;
    std::string value;
    OptionalParseResult isNumber = parser.parseOptionalInteger(number);
    if (isNumber.has_value()) {
      if (failed(*isNumber))
        return {};
      value = llvm::toString(number, 10, /*Signed=*/true);
    } else {
      if (parser.parseKeyword(&word))
        return {};
      value = word.str();
    }
    if (std::string fault = machine.set(key, value); !fault.empty()) {
      parser.emitError(loc, fault);
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), machine);
}

void TargetAttr::print(AsmPrinter &printer) const {
  Machine machine = getMachine(), described = *findMachine(machine.name);
  llvm::StringMap<std::string> values;
  described.forEach(
      [&](StringRef key, StringRef value) { values[key] = value.str(); });
  printer << '<' << machine.name;
  machine.forEach([&](StringRef key, StringRef value) {
    if (value != values[key])
      printer << ", " << key << " = " << value;
  });
  printer << '>';
}

Machine flash::getMachine(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(TargetAttr::name))
      return target.getMachine();
  return getCpu();
}

Machine flash::getMachineOfKernels(Operation *op) {
  Machine machine = getMachine(op);
  return machine.isGpu() ? machine : getDefaultGpu();
}
