//===- Passes.td - Passes on kernels -----------------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_NVPTX_PASSES
#define FLASH_TARGET_NVPTX_PASSES

include "mlir/Pass/PassBase.td"

def FlashGpuExpandMath : Pass<"flash-gpu-expand-math"> {
  let summary = "Expand math functions that have no instruction on a GPU";
  let description = [{
    Kernels have no library. Functions with an instruction stay: `math.exp2` on
    f32, square roots, fused products, rounding, signs, classes, counts of bits.
    All others become arithmetic. exp and tanh are computed in f32, accurate to
    2e-7 and, with what the instructions for 2^x and quotients add, 3e-7
    (relative); the rest in f64, whose few operations are accurate to 1e-7
    and need no care for cancellation and overflow. Functions of f16 and bf16 are
    computed in f32. Functions of f64 without an instruction, and of any other
    type of float, are refused.

    ```mlir
    %y = math.log %x : f32
    // becomes
    %wide = arith.extf %x : f32 to f64
    ... // exponent and fraction of %wide, a polynomial
    %y = arith.truncf %sum : f64 to f32
    ```

    sin, cos and tan are accurate for angles below 2^48; beyond, the sine is some
    value between -1 and 1.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // FLASH_TARGET_NVPTX_PASSES
