//===- ConvertHostToEmitC.cpp - Host programs as C ------------------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C functions that are called are in Runtime/CHeader.cpp.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Target/Host/Passes.h"
#include "mlir/Conversion/ArithToEmitC/ArithToEmitC.h"
#include "mlir/Conversion/FuncToEmitC/FuncToEmitC.h"
#include "mlir/Conversion/SCFToEmitC/SCFToEmitC.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/StringExtras.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTHOSTTOEMITC
#include "flash/Target/Host/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash::host;

/// A string of C, in which two question marks could start a trigraph, for a
/// format in which { stands for an operand.
static std::string quote(StringRef text) {
  std::string result = "\"";
  llvm::raw_string_ostream os(result);
  for (char c : text) {
    if (c == '?')
      os << "\\?";
    else if (c == '{')
      os << "{{";
    else
      os.write_escaped(StringRef(&c, 1));
  }
  os << '"';
  return result;
}

namespace {
template <typename Op> struct Pattern : OpConversionPattern<Op> {
  Pattern(const TypeConverter &converter, MLIRContext *context,
          StringRef prefix)
      : OpConversionPattern<Op>(converter, context, /*benefit=*/2),
        prefix(prefix) {}

protected:
  Value call(ConversionPatternRewriter &rewriter, Operation *op, StringRef name,
             ValueRange operands, Type result, ArrayAttr arguments = {}) const {
    return emitc::CallOpaqueOp::create(rewriter, op->getLoc(), result,
                                       (prefix + "_" + name).str(), operands,
                                       arguments)
        .getResult(0);
  }
  static void write(ConversionPatternRewriter &rewriter, Operation *op,
                    const Twine &text, ValueRange operands) {
    emitc::VerbatimOp::create(rewriter, op->getLoc(),
                              rewriter.getStringAttr(text), operands);
  }

  StringRef prefix;
};

/// Where a constant is used, not as a variable.
struct ConvertConstant : Pattern<arith::ConstantOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto value = dyn_cast<IntegerAttr>(op.getValue());
    if (!value)
      return failure();
    rewriter.replaceOpWithNewOp<emitc::LiteralOp>(
        op, getTypeConverter()->convertType(op.getType()), getText(value));
    return success();
  }

private:
  static std::string getText(IntegerAttr value) {
    if (value.getType().isInteger(32))
      return "CUDA_SUCCESS";
    if (value.getType().isInteger(1))
      return value.getValue().isZero() ? "0" : "1";
    int64_t number = value.getInt();
    if (number == INT64_MIN)
      return "INT64_MIN";
    std::string text = "INT64_C(" + std::to_string(number) + ")";
    return number < 0 ? "(" + text + ")" : text;
  }
};

/// What is left of this arithmetic fits, so that it needs none of upstream's
/// conversions to unsigned numbers.
template <typename From, typename To> struct ConvertFitting : Pattern<From> {
  using Pattern<From>::Pattern;
  LogicalResult
  matchAndRewrite(From op, typename From::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op.getType(), adaptor.getOperands());
    return success();
  }
};

struct ConvertInput : Pattern<InputOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(InputOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(
        op, call(rewriter, op, "input", adaptor.getCall(), op.getType(),
                 rewriter.getArrayAttr(
                     {rewriter.getIndexAttr(0),
                      rewriter.getI32IntegerAttr(op.getIndex())})));
    return success();
  }
};

struct ConvertOutput : Pattern<OutputOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(OutputOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    write(rewriter, op, "{}->outputs[" + Twine(op.getIndex()) + "] = {};",
          {adaptor.getCall(), adaptor.getValue()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertOverflow : Pattern<OverflowOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(OverflowOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = rewriter.getI64Type();
    Value result =
        emitc::VariableOp::create(rewriter, loc, emitc::LValueType::get(type),
                                  emitc::OpaqueAttr::get(getContext(), "0"));
    Value address = emitc::AddressOfOp::create(
        rewriter, loc, emitc::PointerType::get(type), result);
    Value fits = call(rewriter, op, stringifyArithmetic(op.getKind()),
                      {adaptor.getLhs(), adaptor.getRhs(), address},
                      rewriter.getI1Type());
    rewriter.replaceOp(
        op, {emitc::LoadOp::create(rewriter, loc, type, result), fits});
    return success();
  }
};

struct ConvertCheck : Pattern<CheckOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(CheckOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value call = op->getParentOfType<FunctionOpInterface>().getArgument(0);
    call = rewriter.getRemappedValue(call);
    write(rewriter, op,
          "if (!{})\n  return " + prefix + "_fail({}->message, " +
              quote(op.getText()) + ",\n      CUDA_ERROR_INVALID_VALUE);",
          {adaptor.getCondition(), call});
    rewriter.eraseOp(op);
    return success();
  }
};

/// A call of the C function that has the name of the op.
template <typename Op> struct ConvertCall : Pattern<Op> {
  using Pattern<Op>::Pattern;
  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto call = emitc::CallOpaqueOp::create(
        rewriter, op.getLoc(), op->getResultTypes(),
        (this->prefix + "_" + op->getName().stripDialect()).str(),
        adaptor.getOperands());
    rewriter.replaceOp(op, call);
    return success();
  }
};

struct ConvertLaunch : Pattern<LaunchOp> {
  using Pattern::Pattern;
  LogicalResult
  matchAndRewrite(LaunchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<StringRef> places(adaptor.getValues().size(), "{}");
    SmallVector<Value> operands(adaptor.getValues());
    operands.push_back(adaptor.getCall());
    write(rewriter, op,
          "{{\n  const int64_t values[] = {{" + llvm::join(places, ", ") +
              "};\n  CUresult result = " + prefix + "_launch_" +
              Twine(op.getNumber()) +
              "({}, values);\n  if (result != CUDA_SUCCESS)\n"
              "    return result;\n}",
          operands);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertHostToEmitC
    : flash::impl::ConvertHostToEmitCBase<ConvertHostToEmitC> {
  using ConvertHostToEmitCBase::ConvertHostToEmitCBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.isExternal() || function.getNumArguments() != 1 ||
          !isa<CallType>(function.getArgument(0).getType())) {
        function.emitOpError("is no host program: it must have a body and one "
                             "argument, a !host.call");
        return signalPassFailure();
      }
    MLIRContext *context = &getContext();
    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion([&](CallType type) -> Type {
      return emitc::PointerType::get(
          emitc::OpaqueType::get(context, prefix + "_call"));
    });
    // An i32 is what a function returns.
    converter.addConversion([&](IntegerType type) -> Type {
      return type.isInteger(32)
                 ? Type(emitc::OpaqueType::get(context, "CUresult"))
                 : type;
    });
    RewritePatternSet patterns(context);
    patterns.add<ConvertFitting<arith::AddIOp, emitc::AddOp>,
                 ConvertFitting<arith::SubIOp, emitc::SubOp>,
                 ConvertFitting<arith::MulIOp, emitc::MulOp>,
                 ConvertFitting<arith::ExtUIOp, emitc::CastOp>, ConvertConstant,
                 ConvertInput, ConvertOutput, ConvertOverflow, ConvertCheck,
                 ConvertCall<AllocateOp>, ConvertCall<MarkOp>,
                 ConvertCall<ReleaseOp>, ConvertLaunch>(converter, context,
                                                        prefix);
    populateArithToEmitCPatterns(converter, patterns);
    populateSCFToEmitCConversionPatterns(patterns, converter);
    populateFuncToEmitCPatterns(converter, patterns);
    ConversionTarget target(*context);
    target.addLegalDialect<emitc::EmitCDialect>();
    target.addIllegalDialect<HostDialect, arith::ArithDialect, scf::SCFDialect,
                             func::FuncDialect>();
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      return signalPassFailure();
    for (auto function : getOperation().getOps<emitc::FuncOp>()) {
      // Compilers warn of variables that nothing reads.
      function.walk([](emitc::LoadOp load) {
        if (load.use_empty())
          load.erase();
      });
      if (function.getArgument(0).use_empty()) {
        auto b = OpBuilder::atBlockBegin(&function.getBody().front());
        emitc::VerbatimOp::create(b, function.getLoc(),
                                  b.getStringAttr("(void){};"),
                                  function.getArgument(0));
      }
      function.setName(prefix + "_program");
      function.setSpecifiersAttr(
          Builder(context).getStrArrayAttr({"static", "inline"}));
    }
  }
};
} // namespace
