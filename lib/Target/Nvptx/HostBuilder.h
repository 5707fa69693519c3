//===- HostBuilder.h - Writing host programs --------------------*- C++ -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_LIB_TARGET_NVPTX_HOSTBUILDER_H
#define FLASH_LIB_TARGET_NVPTX_HOSTBUILDER_H

#include "flash/Dialect/Host/IR/Host.h"
#include "flash/Runtime/HostProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace flash {

/// Writes the function of a call. Values are i64, or i1; what is known is
/// folded.
class HostBuilder {
public:
  /// A program for a function whose arguments and results have these ranks;
  /// what else is to know of them is the caller's to fill in.
  HostBuilder(mlir::func::FuncOp function, llvm::ArrayRef<size_t> argumentRanks,
              llvm::ArrayRef<size_t> resultRanks);

  mlir::Value constant(int64_t value);
  mlir::Value constantBit(bool value);
  /// An input of the call (host.input).
  mlir::Value input(unsigned index);
  /// Whether the caller has given buffers for results.
  mlir::Value hasResults();

  mlir::Value create(host::Arithmetic kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return create(host::Arithmetic::Add, lhs, rhs);
  }
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) {
    return create(host::Arithmetic::Mul, lhs, rhs);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                      mlir::Value rhs);
  mlir::Value isEqual(mlir::Value lhs, mlir::Value rhs) {
    return compare(mlir::arith::CmpIPredicate::eq, lhs, rhs);
  }
  mlir::Value select(mlir::Value condition, mlir::Value lhs, mlir::Value rhs);
  /// Any other operation of `arith`, folded.
  template <typename Op, typename... Operands>
  mlir::Value createOp(Operands... operands) {
    return b.createOrFold<Op>(loc, operands...);
  }
  /// Ends the call unless the condition is known to hold. `format` is the
  /// message where values are part of it.
  void check(mlir::Value condition, const llvm::Twine &text,
             const llvm::Twine &format = "", mlir::ValueRange values = {});

  static std::optional<int64_t> getConstant(mlir::Value value);

  /// The bytes of a tensor; checks that they can be counted. `number` is that
  /// of the memory, for messages.
  mlir::Value countBytes(unsigned number, int64_t elementBytes,
                         mlir::ValueRange sizes);

  /// Drops what nothing needs.
  mlir::OwningOpRef<mlir::ModuleOp> finish();

  runtime::HostProgram program;
  /// Where operations are added, and their location.
  mlir::OpBuilder b;
  mlir::Location loc;
  /// The argument of the function.
  mlir::Value call;

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace flash

#endif // FLASH_LIB_TARGET_NVPTX_HOSTBUILDER_H
