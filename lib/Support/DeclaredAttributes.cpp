//===- DeclaredAttributes.cpp - No attribute is ignored -------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Support/DeclaredAttributes.h"
#include "flash/Support/NearestName.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace flash;

LogicalResult
flash::verifyDeclaredAttribute(Operation *op, NamedAttribute attribute,
                               ArrayRef<DeclaredAttribute> declared) {
  StringRef name = attribute.getName().strref();
  const auto *found = llvm::find_if(
      declared, [&](const DeclaredAttribute &one) { return one.name == name; });
  if (found == declared.end()) {
    StringRef dialect = attribute.getNameDialect()->getNamespace();
    InFlightDiagnostic error = op->emitOpError("has an attribute '")
                               << name << "' that dialect '" << dialect
                               << "' does not declare; ";
    StringRef nearest =
        getNearestName(name, llvm::map_to_vector(declared, [](const auto &one) {
                         return StringRef(one.name);
                       }));
    if (nearest.empty())
      return error << "it declares none";
    return error << "the nearest is '" << nearest << "'";
  }
  if (!found->operations.empty() &&
      !llvm::is_contained(found->operations, op->getName().getStringRef())) {
    InFlightDiagnostic error = op->emitOpError("has an attribute '")
                               << name << "', which belongs to ";
    llvm::interleave(
        found->operations, error,
        [&](StringRef operation) { error << "'" << operation << "'"; }, " or ");
    return error;
  }
  if (!found->isOfKind(attribute.getValue()))
    return op->emitOpError("needs ") << found->kind << " as attribute '" << name
                                     << "', got " << attribute.getValue();
  return success();
}

LogicalResult flash::refuseValueAttribute(Operation *op, StringRef what,
                                          unsigned number,
                                          NamedAttribute attribute) {
  return op->emitOpError("has an attribute '")
         << attribute.getName().strref() << "' of " << what << " " << number
         << "; dialect '" << attribute.getNameDialect()->getNamespace()
         << "' declares none for " << what << "s";
}

LogicalResult flash::verifyOwnAttributes(Operation *op) {
  // Without a registered operation's own attributes.
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName().strref();
    // The dialect of a prefix, if it is known, verifies its attributes.
    if (name.contains('.'))
      continue;
    SmallVector<StringRef> known;
    for (StringAttr own : op->getName().getAttributeNames())
      // What ODS adds for operands and results.
      if (own != "operandSegmentSizes" && own != "resultSegmentSizes")
        known.push_back(own);
    InFlightDiagnostic error = op->emitOpError("has no attribute '")
                               << name << "'; ";
    StringRef nearest = getNearestName(name, known);
    if (nearest.empty())
      return error << "it has none at all";
    return error << "the nearest is '" << nearest << "'";
  }
  return success();
}
