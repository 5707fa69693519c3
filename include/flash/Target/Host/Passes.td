//===- Passes.td - Passes on host programs -----------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_HOST_PASSES
#define FLASH_TARGET_HOST_PASSES

include "mlir/Pass/PassBase.td"

def HostExpandChecked : Pass<"host-expand-checked"> {
  let summary = "Make arithmetic that can fail checks and plain arithmetic";
  let description = [{
    Behind it, only `host.check` and `host.launch` end a call. What is not
    needed has to be gone before: a check stays.

    ```mlir
    %q = host.checked divu %a, %b
    // becomes
    %divides = arith.cmpi ne, %b, %c0 : i64
    host.check %divides, "a value is divided by 0" : "{0} is divided by 0" (%a)
    %q = arith.divui %a, %b : i64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::flash::host::HostDialect"];
}

def ConvertHostToLLVM : Pass<"convert-host-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert host programs to the LLVM dialect";
  let description = [{
    For machine code in this process: `!host.call` is a pointer to a
    `flash::runtime::HostCall`, and what has effects calls the functions that
    are declared beside it. `arith` and `cf` are converted, too. Wants
    `host-expand-checked` and `convert-scf-to-cf`. A function returns 0, or 1
    after an error.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::cf::ControlFlowDialect"];
}

def ConvertHostToEmitC : Pass<"convert-host-to-emitc", "::mlir::ModuleOp"> {
  let summary = "Convert host programs to C";
  let description = [{
    For the C header: each function becomes a static one that returns a
    CUresult. What has effects calls the functions that the header defines
    (`flash::runtime::printCHeader`). Wants `host-expand-checked`.
  }];
  let options = [
    Option<"prefix", "prefix", "std::string", "\"host\"",
           "What the names of the header start with">];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // FLASH_TARGET_HOST_PASSES
