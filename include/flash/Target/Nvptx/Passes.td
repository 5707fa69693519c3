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
    All others become arithmetic, and so does the remainder of floats, which is exact. exp and tanh are computed in f32, accurate to
    3e-7 and, with what the instruction for quotients adds, 6e-7 (relative);
    the rest in f64, whose few operations are accurate to 1e-7
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

def FlashGpuContract : Pass<"flash-gpu-contract"> {
  let summary = "Let a product and the sum that it is part of be one instruction";
  let description = [{
    Scores are scaled before a score function changes them, a slope is multiplied by a
    distance and added: a product and a sum, which are both rounded, where the
    machine has one instruction that rounds once. Sums, differences and products are
    marked with `fastmath<contract>`, so that the code generator takes it:

    ```mlir
    %scaled = arith.mulf %product, %scale : f32
    %score = arith.addf %scaled, %bias : f32
    // becomes
    %scaled = arith.mulf %product, %scale fastmath<contract> : f32
    %score = arith.addf %scaled, %bias fastmath<contract> : f32
    ```

    What is compared or made an integer, such as the number of a bucket, is left as it
    is written: the forward and the gradients would not always contract the same, and
    a number that is rounded in another way may be another integer. Maxima are no
    comparisons: the maximum of a row of scores would leave all scores as they are.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FlashGpuShareSums : Pass<"flash-gpu-share-sums"> {
  let summary = "Share what positions of neighbours have in common";
  let description = [{
    The positions of a thread's elements differ by constants. What is done with a
    sum of indices is done with what is no constant in it, which the elements
    share, and with the constant.

    A bias that depends on positions, such as ALiBi's, converts as many integers as
    there are scores, and a multiprocessor converts 16 of them in a cycle: as many
    as exponentials. A conversion of a sum becomes the conversion of its terms and
    the addition of its constant:

    ```mlir
    %sum = arith.addi %column, %c8 : index
    %integer = arith.index_cast %sum : index to i32
    %float = arith.sitofp %integer : i32 to f32
    // becomes
    %shared = arith.index_cast %column : index to i32
    %base = arith.sitofp %shared : i32 to f32
    %float = arith.addf %base, %c8.0 : f32
    ```

    Up to 2^24 both are exact; beyond, the sum is rounded twice.

    A mask compares as many sums as there are scores. A comparison of a sum with a
    constant becomes the comparison of its terms with another constant, which
    needs no register and no instruction besides the comparison:

    ```mlir
    %key = arith.addi %column, %c8 : index
    %distance = arith.subi %query, %key : index
    %visible = arith.cmpi sge, %distance, %c0 : index
    // becomes
    %shared = arith.subi %query, %column : index
    %visible = arith.cmpi sge, %shared, %c8 : index
    ```

    So does one of sums that threads differ in with a bound that is no constant,
    such as the number of keys: the bound is subtracted from the terms once for
    all elements.

    A captured tensor is read where a sum says. The widened sum of an address
    becomes the widened terms and the constant, which is then part of the
    instruction:

    ```mlir
    %sum = arith.addi %distance, %c8 : index
    %offset = arith.index_cast %sum : index to i64
    // becomes
    %base = arith.index_cast %distance : index to i64
    %offset = arith.addi %base, %c8 : i64
    ```

    Sums are sums of indices, which do not overflow in a kernel; for a conversion,
    cast to 32 bits or more. Constants are at most 2^24, and terms are taken
    apart up to 16. Terms that all threads have in common are added first.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FlashGpuPairLoads : Pass<"flash-gpu-pair-loads"> {
  let summary = "Load two neighbours in memory at once";
  let description = [{
    A thread has two keys of a query next to each other. A captured tensor with an
    element for each query and key, such as a bias or a mask of bytes, is read at
    both, and where eight rows are read at the same time, a load of a warp takes the
    time of eight lines of the cache, whatever each thread takes of them. One load of
    both halves that.

    Loads of 8 or 16 bits from global memory are a pair where the second's offset
    is the first's and an element: sums are compared, also below casts, products
    with a constant, and a bound of both that keeps positions behind the last key
    in the tensor. Whether all pairs of a group are aligned and no bound is reached
    is seen when the kernel runs; else each is loaded as before:

    ```mlir
    %x = llvm.load %first : !llvm.ptr<1> -> i8
    %y = llvm.load %second : !llvm.ptr<1> -> i8
    // becomes
      cf.cond_br %are_pairs, ^pairs, ^alone
    ^pairs:
      %xy = llvm.load %first : !llvm.ptr<1> -> i16
      cf.br ^behind(%xy : i16)
    ```

    Groups have 4 to 32 pairs, and nothing that may write is between their loads. Loads
    of 32 bits stay alone, since two of each pair take more registers than there are.
    So do keys that are rows of a tile, as in gradients, which are eight apart
    in a thread.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif // FLASH_TARGET_NVPTX_PASSES
