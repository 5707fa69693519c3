//===- LowerAssert.cpp - Failing assertions reach the runtime -------------===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "flash/Target/Cpu/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/FunctionCallUtils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace flash {
#define GEN_PASS_DEF_FLASHCPULOWERASSERT
#include "flash/Target/Cpu/Passes.h.inc"
} // namespace flash

using namespace mlir;

namespace {
struct LowerAssert : flash::impl::FlashCpuLowerAssertBase<LowerAssert> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<cf::AssertOp> asserts;
    module.walk([&](cf::AssertOp op) { asserts.push_back(op); });
    if (asserts.empty())
      return;
    OpBuilder b(module.getBodyRegion());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    FailureOr<LLVM::LLVMFuncOp> callee =
        LLVM::lookupOrCreateFn(b, module, "flash_runtime_failure", {pointer},
                               LLVM::LLVMVoidType::get(&getContext()));
    if (failed(callee))
      return signalPassFailure();
    for (auto [i, op] : llvm::enumerate(asserts)) {
      Location loc = op.getLoc();
      std::string text = op.getMsg().str();
      text.push_back('\0');
      b.setInsertionPointToStart(module.getBody());
      auto type = LLVM::LLVMArrayType::get(b.getI8Type(), text.size());
      auto message = LLVM::GlobalOp::create(
          b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
          "flash_message_" + std::to_string(i), b.getStringAttr(text));
      b.setInsertionPoint(op);
      Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
      Value bad = arith::XOrIOp::create(b, loc, op.getArg(), yes);
      scf::IfOp::create(b, loc, bad, [&](OpBuilder &b, Location loc) {
        Value address = LLVM::AddressOfOp::create(b, loc, message);
        LLVM::CallOp::create(b, loc, *callee, address);
        scf::YieldOp::create(b, loc);
      });
      op.erase();
    }
  }
};
} // namespace
