//===- DeclaredAttributes.h - No attribute is ignored -----------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR keeps attributes that nobody knows: a misspelt one changes nothing, and
// nobody says so. Here each must be declared, by the operation in ODS or by its
// dialect in a table; attributes of dialects of others are theirs to judge.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_SUPPORT_DECLAREDATTRIBUTES_H
#define FLASH_SUPPORT_DECLAREDATTRIBUTES_H

#include "mlir/IR/OpDefinition.h"

namespace flash {

/// An attribute of a dialect for operations that need not be its own.
struct DeclaredAttribute {
  /// With the dialect's prefix.
  llvm::StringLiteral name;
  /// The names of the operations that may have it; none if any may.
  llvm::ArrayRef<llvm::StringLiteral> operations;
  /// What its value must be, such as "an i64", and whether it is.
  llvm::StringLiteral kind;
  bool (*isOfKind)(mlir::Attribute value);
};

/// Emits an error unless `attribute`, which has a dialect's prefix, is one of
/// those that the dialect declares, on one of its operations and with a value
/// of its kind. For Dialect::verifyOperationAttribute.
llvm::LogicalResult
verifyDeclaredAttribute(mlir::Operation *op, mlir::NamedAttribute attribute,
                        llvm::ArrayRef<DeclaredAttribute> declared);

/// Emits an error: no argument or result of a function has an attribute of the
/// dialect whose prefix `attribute` has. For Dialect::verifyRegionArgAttribute
/// (`what` is "argument") and verifyRegionResultAttribute ("result").
llvm::LogicalResult refuseValueAttribute(mlir::Operation *op,
                                         llvm::StringRef what, unsigned number,
                                         mlir::NamedAttribute attribute);

/// Emits an error if the operation has an attribute without a prefix that is
/// none of its own.
llvm::LogicalResult verifyOwnAttributes(mlir::Operation *op);

/// Of all operations of the project's dialects: see verifyOwnAttributes.
template <typename ConcreteOp>
struct DeclaredAttributesOnly
    : mlir::OpTrait::TraitBase<ConcreteOp, DeclaredAttributesOnly> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    return verifyOwnAttributes(op);
  }
};

} // namespace flash

#endif // FLASH_SUPPORT_DECLAREDATTRIBUTES_H
