//===- HostDialect.cpp - The host dialect ---------------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace flash::host;

#include "flash/Dialect/Host/IR/HostDialect.cpp.inc"
#include "flash/Dialect/Host/IR/HostEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "flash/Dialect/Host/IR/HostTypes.cpp.inc"

#define GET_OP_CLASSES
#include "flash/Dialect/Host/IR/HostOps.cpp.inc"

void HostDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "flash/Dialect/Host/IR/HostOps.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "flash/Dialect/Host/IR/HostTypes.cpp.inc"
      >();
}

Operation *HostDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult HostDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  return flash::verifyDeclaredAttribute(op, attribute, {});
}

LogicalResult HostDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned number,
                                                    NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "argument", number, attribute);
}

LogicalResult HostDialect::verifyRegionResultAttribute(
    Operation *op, unsigned region, unsigned number, NamedAttribute attribute) {
  return flash::refuseValueAttribute(op, "result", number, attribute);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static std::optional<int64_t> getNumber(Attribute value) {
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    return integer.getInt();
  return std::nullopt;
}

static Attribute getAttribute(MLIRContext *context, int64_t value) {
  return IntegerAttr::get(IntegerType::get(context, 64), value);
}

/// What is known of the result without both operands. Quotients of numbers are
/// left to `arith`, which they become.
static OpFoldResult foldArithmetic(Arithmetic kind, Value lhs, Value rhs,
                                   Attribute lhsValue, Attribute rhsValue) {
  std::optional<int64_t> a = getNumber(lhsValue), b = getNumber(rhsValue);
  int64_t result;
  switch (kind) {
  case Arithmetic::Add:
    if (a == 0)
      return rhs;
    if (b == 0)
      return lhs;
    if (a && b && !llvm::AddOverflow(*a, *b, result))
      return getAttribute(lhs.getContext(), result);
    return {};
  case Arithmetic::Sub:
    if (b == 0)
      return lhs;
    if (a && b && !llvm::SubOverflow(*a, *b, result))
      return getAttribute(lhs.getContext(), result);
    return {};
  case Arithmetic::Mul:
    if (a == 0 || b == 1)
      return lhs;
    if (b == 0 || a == 1)
      return rhs;
    if (a && b && !llvm::MulOverflow(*a, *b, result))
      return getAttribute(lhs.getContext(), result);
    return {};
  default:
    return b == 1 && kind != Arithmetic::RemS && kind != Arithmetic::RemU
               ? OpFoldResult(lhs)
               : OpFoldResult();
  }
}

OpFoldResult CheckedOp::fold(FoldAdaptor adaptor) {
  return foldArithmetic(getKind(), getLhs(), getRhs(), adaptor.getLhs(),
                        adaptor.getRhs());
}

OpFoldResult NarrowOp::fold(FoldAdaptor adaptor) {
  std::optional<int64_t> value = getNumber(adaptor.getValue());
  if ((value && llvm::isInt<32>(*value)) ||
      getValue().getDefiningOp<NarrowOp>())
    return getValue();
  return {};
}

LogicalResult OverflowOp::verify() {
  if (getKind() <= Arithmetic::Mul)
    return success();
  return emitOpError("is of add, sub or mul, not of ")
         << stringifyArithmetic(getKind());
}

LogicalResult OverflowOp::fold(FoldAdaptor adaptor,
                               SmallVectorImpl<OpFoldResult> &results) {
  OpFoldResult result = foldArithmetic(getKind(), getLhs(), getRhs(),
                                       adaptor.getLhs(), adaptor.getRhs());
  if (!result)
    return failure();
  results.push_back(result);
  results.push_back(BoolAttr::get(getContext(), true));
  return success();
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

LogicalResult CheckOp::verify() {
  if (getValues().size() > maxValues)
    return emitOpError("has ")
           << getValues().size() << " values, but its message may have at most "
           << maxValues;
  if (!getFormat())
    return success();
  for (size_t i = 0; i != getValues().size(); ++i)
    if (!getFormat()->contains(llvm::formatv("{{{0}}", i).str()))
      return emitOpError("has a value ") << i << " that its message leaves out";
  return success();
}

LogicalResult CheckOp::canonicalize(CheckOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

LogicalResult LaunchOp::verify() {
  // A grid, a block, and shared memory.
  if (getValues().size() < 7)
    return emitOpError(
        "needs three sizes of the grid, three of the block and the "
        "bytes of shared memory");
  if (!getDependent())
    return success();
  // In the order of the text, which choices and loops keep when they become
  // branches.
  bool isFirst = true;
  (*this)->getParentOfType<FunctionOpInterface>().walk([&](LaunchOp launch) {
    if (launch == *this)
      return WalkResult::interrupt();
    isFirst = false;
    return WalkResult::advance();
  });
  if (!isFirst)
    return success();
  return emitOpError("depends on no launch, as it is the first of its "
                     "function; leave out 'dependent'");
}
