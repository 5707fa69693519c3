//===- FunctionPattern.h - Conversion patterns from functions ---*- C++ -*-===//
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

/// The adaptor of an op for conversions in which each operand may become any
/// number of values.
template <typename Op>
using ManyValues =
    typename Op::template GenericAdaptor<llvm::ArrayRef<mlir::ValueRange>>;

/// A pattern that replaces an op by the values that a function returns. If the
/// op has one result, they are the values that this result becomes; otherwise
/// there is one value for each result. If the function fails, the pattern does
/// not match. `Operands` is `ManyValues<Op>`, or `Op::Adaptor` if each operand
/// becomes one value.
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
