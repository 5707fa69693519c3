//===- ConvertHostToLLVM.cpp - Host programs as machine code --------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that are called are in Runtime/HostCall.h.
//
//===----------------------------------------------------------------------===//

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Target/Host/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/TypeSwitch.h"

namespace flash {
#define GEN_PASS_DEF_CONVERTHOSTTOLLVM
#include "flash/Target/Host/Passes.h.inc"
} // namespace flash

using namespace mlir;
using namespace flash::host;

namespace {
/// Converts one operation of a function whose argument is a pointer already:
/// i64 and i1 are types of both dialects.
class Converter {
public:
  Converter(ModuleOp module, func::FuncOp function)
      : module(module), function(function),
        b(&function.getBody().front(), function.getBody().front().begin()),
        pointer(LLVM::LLVMPointerType::get(module.getContext())) {
    size_t most = 0;
    for (auto launch : function.getOps<LaunchOp>())
      most = std::max<size_t>(most, launch.getValues().size());
    if (most == 0)
      return;
    frame =
        LLVM::AllocaOp::create(b, loc, pointer, b.getI64Type(), constant(most));
  }

  /// Fails, with an error, at what the pass wants to be gone.
  LogicalResult convert(Operation *op);

private:
  Value constant(int64_t value, unsigned bits = 64) {
    return LLVM::ConstantOp::create(b, loc, b.getIntegerType(bits), value);
  }
  Value getElement(Value array, int32_t index) {
    return LLVM::GEPOp::create(b, loc, pointer, b.getI64Type(), array,
                               ArrayRef<LLVM::GEPArg>{index});
  }
  /// The address of a number that a pointer of the call leads to: inputs are
  /// behind the first, outputs behind the second.
  Value getWord(int32_t which, int32_t index) {
    Value at =
        LLVM::GEPOp::create(b, loc, pointer, pointer, function.getArgument(0),
                            ArrayRef<LLVM::GEPArg>{which});
    return getElement(LLVM::LoadOp::create(b, loc, pointer, at), index);
  }
  /// To what the function has for the values of launches in its frame.
  Value storeValues(ValueRange values);
  Value getText(StringRef text);
  Value call(StringRef name, ValueRange operands, Type result = {});
  /// Returns 1 unless the bit is set, after what `fail` writes.
  void returnUnless(Value bit, Operation *op, function_ref<void()> fail = {});
  void convertOverflow(OverflowOp op);

  ModuleOp module;
  func::FuncOp function;
  OpBuilder b;
  LLVM::LLVMPointerType pointer;
  Location loc = module.getLoc();
  Value frame;
  unsigned numMessages = 0;
};
} // namespace

Value Converter::storeValues(ValueRange values) {
  for (auto [i, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(b, loc, value, getElement(frame, i));
  return frame;
}

Value Converter::getText(StringRef text) {
  std::string bytes = text.str();
  bytes.push_back('\0');
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
  OpBuilder global(module.getBodyRegion());
  auto message = LLVM::GlobalOp::create(
      global, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
      (function.getName() + "_message_" + Twine(numMessages++)).str(),
      b.getStringAttr(bytes));
  return LLVM::AddressOfOp::create(b, loc, message);
}

Value Converter::call(StringRef name, ValueRange operands, Type result) {
  FailureOr<LLVM::LLVMFuncOp> callee = LLVM::lookupOrCreateFn(
      b, module, name, llvm::to_vector(operands.getTypes()),
      result ? result : LLVM::LLVMVoidType::get(b.getContext()));
  assert(succeeded(callee) && "another function has the name");
  auto call = LLVM::CallOp::create(b, loc, *callee, operands);
  return result ? call.getResult() : Value();
}

void Converter::returnUnless(Value bit, Operation *op,
                             function_ref<void()> fail) {
  Block *before = op->getBlock();
  Block *after = before->splitBlock(op);
  Block *failing = b.createBlock(&function.getBody());
  if (fail)
    fail();
  func::ReturnOp::create(b, loc, constant(1, 32));
  b.setInsertionPointToEnd(before);
  // Processors branch on an overflow itself.
  auto inverted = bit.getDefiningOp<LLVM::XOrOp>();
  if (inverted && matchPattern(inverted.getRhs(), m_One()))
    cf::CondBranchOp::create(b, loc, inverted.getLhs(), failing, after);
  else
    cf::CondBranchOp::create(b, loc, bit, after, failing);
}

void Converter::convertOverflow(OverflowOp op) {
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                               {b.getI64Type(), b.getI1Type()});
  Value lhs = op.getLhs(), rhs = op.getRhs(), both;
  if (op.getKind() == Arithmetic::Add)
    both = LLVM::SAddWithOverflowOp::create(b, loc, type, lhs, rhs);
  else if (op.getKind() == Arithmetic::Sub)
    both = LLVM::SSubWithOverflowOp::create(b, loc, type, lhs, rhs);
  else
    both = LLVM::SMulWithOverflowOp::create(b, loc, type, lhs, rhs);
  Value result = LLVM::ExtractValueOp::create(b, loc, both, 0);
  Value overflows = LLVM::ExtractValueOp::create(b, loc, both, 1);
  Value fits = LLVM::XOrOp::create(b, loc, overflows, constant(1, 1));
  op.replaceAllUsesWith(ValueRange{result, fits});
}

LogicalResult Converter::convert(Operation *op) {
  if (op->getDialect()->getNamespace() != HostDialect::getDialectNamespace())
    return success();
  b.setInsertionPoint(op);
  loc = op->getLoc();
  Value argument = function.getArgument(0);
  Type word = b.getI64Type();
  bool isConverted =
      llvm::TypeSwitch<Operation *, bool>(op)
          .Case([&](InputOp op) {
            op.replaceAllUsesWith(
                LLVM::LoadOp::create(b, loc, word, getWord(0, op.getIndex()))
                    .getResult());
            return true;
          })
          .Case([&](OutputOp op) {
            LLVM::StoreOp::create(b, loc, op.getValue(),
                                  getWord(1, op.getIndex()));
            return true;
          })
          .Case([&](OverflowOp op) {
            convertOverflow(op);
            return true;
          })
          .Case([&](CheckOp op) {
            returnUnless(op.getCondition(), op, [&] {
              Value text = getText(op.getFormat().value_or(op.getText()));
              SmallVector<Value> operands = {argument, text,
                                             constant(op.getValues().size())};
              llvm::append_range(operands, op.getValues());
              // The function takes as many registers as there may be values.
              while (operands.size() < 3 + CheckOp::maxValues)
                operands.push_back(constant(0));
              call("flash_host_fail", operands);
            });
            return true;
          })
          .Case([&](AllocateOp op) {
            op.replaceAllUsesWith(
                call("flash_host_allocate", {argument, op.getBytes()}, word));
            return true;
          })
          .Case([&](MarkOp op) {
            op.replaceAllUsesWith(call("flash_host_mark", argument, word));
            return true;
          })
          .Case([&](ReleaseOp op) {
            call("flash_host_release", {argument, op.getUsed()});
            return true;
          })
          .Case([&](LaunchOp op) {
            Value status = call("flash_host_launch",
                                {argument, constant(op.getNumber()),
                                 storeValues(op.getValues())},
                                b.getI32Type());
            returnUnless(LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq,
                                              status, constant(0, 32)),
                         op);
            return true;
          })
          .Default(false);
  if (!isConverted)
    return op->emitOpError("is left: --host-expand-checked comes first");
  op->erase();
  return success();
}

/// What the conversion to the LLVM dialect leaves of other dialects.
static LogicalResult convertRest(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

namespace {
struct ConvertHostToLLVM
    : flash::impl::ConvertHostToLLVMBase<ConvertHostToLLVM> {
  void runOnOperation() override {
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    for (auto function :
         llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.getNumArguments() != 1 ||
          !isa<CallType>(function.getArgument(0).getType()))
        continue;
      function.getArgument(0).setType(pointer);
      function.setType(
          FunctionType::get(&getContext(), pointer, function.getResultTypes()));
      Converter converter(getOperation(), function);
      SmallVector<Operation *> ops;
      for (Operation &op : function.getOps())
        ops.push_back(&op);
      for (Operation *op : ops)
        if (failed(converter.convert(op)))
          return signalPassFailure();
    }
    if (failed(convertRest(getOperation())))
      signalPassFailure();
  }
};
} // namespace
