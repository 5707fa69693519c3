//===- FunctionPattern.h - Conversions that are functions -------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_CONVERSION_FUNCTIONPATTERN_H
#define FLASH_CONVERSION_FUNCTIONPATTERN_H

#include "mlir/Transforms/DialectConversion.h"
#include <functional>

namespace flash {

/// The operands of an op, each of any number of values.
template <typename Op>
using ManyValues =
    typename Op::template GenericAdaptor<llvm::ArrayRef<mlir::ValueRange>>;

/// Replaces an op by what a function gives: the values that its result becomes
/// if it has one, else a value for each result. `Operands` are `ManyValues`, or
/// `Op::Adaptor` where each operand is one value.
template <typename Op, typename Operands>
struct FunctionPattern : mlir::OpConversionPattern<Op> {
  using Values = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;
  using Function =
      std::function<Values(Op, Operands, mlir::ConversionPatternRewriter &)>;

  FunctionPattern(const mlir::TypeConverter &types, mlir::MLIRContext *context,
                  mlir::PatternBenefit benefit, Function convert)
      : mlir::OpConversionPattern<Op>(types, context, benefit),
        convert(std::move(convert)) {}
  mlir::LogicalResult
  matchAndRewrite(Op op, Operands operands,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    Values values = convert(op, operands, rewriter);
    if (failed(values))
      return mlir::failure();
    if (op->getNumResults() == 1)
      rewriter.replaceOpWithMultiple(op, {mlir::ValueRange(*values)});
    else
      rewriter.replaceOp(op, *values);
    return mlir::success();
  }

  Function convert;
};

} // namespace flash

#endif // FLASH_CONVERSION_FUNCTIONPATTERN_H
