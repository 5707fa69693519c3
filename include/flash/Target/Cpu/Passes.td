//===- Passes.td - CPU backend passes ----------------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_CPU_PASSES
#define FLASH_TARGET_CPU_PASSES

include "mlir/Pass/PassBase.td"

def FlashCpuFullRankSlices : Pass<"flash-cpu-full-rank-slices"> {
  let summary = "Give slices whose dimensions could be mistaken all of them";
  let description = [{
    The tile of a slice may lack dimensions of one element. Which ones follows
    from the sizes; but where a dimension that it has is found to have one element
    too, upstream's canonicalization (22.1) takes the wrong one, and elements
    go elsewhere. Where that could be, the slice keeps all dimensions, and the
    tile loses them behind an extraction or gets them before an insertion.

    ```mlir
    tensor.insert_slice %x into %o[%i, 0, %j] [%n, 32, 1] [1, 1, 1]
        : tensor<?x32xf32> into tensor<4x32x4xf32>
    // becomes
    %all = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 32, 1]
        : tensor<?x32xf32> into tensor<?x32x1xf32>
    tensor.insert_slice %all into %o[%i, 0, %j] [%n, 32, 1] [1, 1, 1]
        : tensor<?x32x1xf32> into tensor<4x32x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def FlashCpuYieldInPlace : Pass<"flash-cpu-yield-in-place"> {
  let summary = "Make loop-carried tensors update their own buffer";
  let description = [{
    One-shot bufferization wants the value a loop yields to live in the buffer
    of the matching iteration argument. Where the chain of destinations does
    not lead there, this pass copies the value into the argument. It leads
    through a choice if both branches update the same tensor.

    ```mlir
    scf.for ... iter_args(%m = %m0) -> (tensor<64xf32>) {
      %new = linalg.max ins(%m, %t) outs(%empty) -> tensor<64xf32>
      scf.yield %new
    }
    ```
    becomes
    ```mlir
    scf.for ... iter_args(%m = %m0) -> (tensor<64xf32>) {
      %new = linalg.max ins(%m, %t) outs(%empty) -> tensor<64xf32>
      %kept = linalg.copy ins(%new) outs(%m) -> tensor<64xf32>
      scf.yield %kept
    }
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [Statistic<"numCopies", "copies", "Copies inserted">];
}

def FlashCpuOwnResults : Pass<"flash-cpu-own-results"> {
  let summary = "Keep arguments and results in buffers of their own";
  let description = [{
    The caller frees each result, so none may share a buffer with another or
    with an argument: those that would are copied. The arguments of public
    functions are marked as not writable.

    ```mlir
    return %arg0, %o, %o
    // becomes
    %0 = bufferization.alloc_tensor() copy(%arg0)
    %1 = bufferization.alloc_tensor() copy(%o)
    return %0, %o, %1
    ```

    Nor may a tile that a parallel loop stores be in the buffer of another: a tile
    is copied if there is a newer version of it, or if another tile starts from the
    same values.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def FlashCpuMicrokernel : Pass<"flash-cpu-microkernel"> {
  let summary = "Convert linalg operations on buffers to register tiles";
  let description = [{
    Every linalg operation (and `memref.copy`) becomes loops over register
    tiles: `mr` rows times `nr` vectors of the dimension that is innermost and
    contiguous in the output. Reductions run innermost and carry the tile in
    vector iteration arguments, so that a product accumulated over `d` keeps
    its accumulators in registers. Sizes that the tile does not divide get
    smaller tiles; a dynamic size ends in a loop of single lanes. The order in
    which values are accumulated is the order of the original operation, whatever
    the tile. A sum starts from zero, and is added to the output as a whole: its
    error then does not depend on how large the output was before. More than 16
    elements are added up in blocks of 16, since the error of a sum of equal terms
    grows with their number; products are not, whose sums fill the registers.

    ```mlir
    linalg.generic {indexing_maps = [(i,j,k)->(j,k), (i,j,k)->(k,i), (i,j,k)->(j,i)], ...}
      ins(%a, %b : memref<64x32xf32>, memref<32x32xf32>)
      outs(%c : memref<64x32xf32>) { mulf, addf }
    ```
    becomes
    ```mlir
    scf.for %j = %c0 to %c64 step %c8 {
      %zero = vector.broadcast %cst : f32 to vector<16xf32>
      %r:16 = scf.for %k = %c0 to %c32 step %c1 iter_args(%x0 = %zero, ...) {
        %b0 = vector.load %b[%k, %c0] : memref<32x32xf32>, vector<16xf32>
        %s0 = memref.load %a[%j, %k] : memref<64x32xf32>
        %v0 = vector.broadcast %s0 : f32 to vector<16xf32>
        %y0 = vector.fma %v0, %b0, %x0 : vector<16xf32>
        // ... 15 more
        scf.yield %y0, ...
      }
      %acc0 = vector.load %c[%j, %c0] : memref<64x32xf32>, vector<16xf32>
      %sum0 = arith.addf %acc0, %r#0 : vector<16xf32>
      vector.store %sum0, %c[%j, %c0] : memref<64x32xf32>, vector<16xf32>
      // ... 15 more
    }
    ```

    An operation whose structure is not covered becomes scalar loops.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::affine::AffineDialect"
  ];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", /*default=*/"512",
           "Width of a vector register">,
    Option<"registers", "registers", "int64_t", /*default=*/"32",
           "Number of vector registers">
  ];
  let statistics = [
    Statistic<"numVectorized", "vectorized", "Operations on register tiles">,
    Statistic<"numScalar", "scalar", "Operations left to scalar loops">
  ];
}

def FlashCpuExpandMath : Pass<"flash-cpu-expand-math"> {
  let summary = "Expand math functions into arithmetic";
  let description = [{
    exp2, exp and tanh on f32 become polynomials accurate to about 1e-7
    (relative); the other f32 functions go through the approximations that
    MLIR has, or to libm. Functions on f16 and bf16 are computed in f32; those
    on f64 are taken apart into scalars for libm. Integer powers of reals become
    powers of reals; integer powers of integers, clamps, and whether a number is infinite or
    normal, become arithmetic. exp2 of anything below -126
    is exactly 0, so that a masked score contributes nothing.

    ```mlir
    %y = math.exp2 %x : vector<16xf32>
    ```
    becomes
    ```mlir
    // Clamp so that 2^n is 0 below the normal range and inf above it.
    %hi = arith.cmpf ogt, %x, %c128 : vector<16xf32>
    %x1 = arith.select %hi, %c128, %x : vector<16xi1>, vector<16xf32>
    // ... t = x + magic holds n in its low bits; f = x - n; 2^f by Horner.
    %y = arith.mulf %poly, %pow2n : vector<16xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def FlashCpuOutlineParallel
    : Pass<"flash-cpu-outline-parallel", "::mlir::ModuleOp"> {
  let summary = "Run the outermost scf.forall on the runtime's threads";
  let description = [{
    The body of an outermost `scf.forall` (without results) becomes a function
    of a context and a linear index; captured values travel through a struct on
    the caller's stack. The runtime hands indices out in order; the last
    dimension is walked backwards, so that under a causal mask the query tiles
    with most keys start first. A nested `scf.forall` becomes `scf.for`, but one
    that is mapped to warpgroups, whose iterations wait for one another, gets a
    thread for each (`flash_concurrent_for`).
    Buffers of static size that live within an iteration are allocated once, on
    the thread's stack at entry.

    ```mlir
    scf.forall (%h, %i) = (0, 0) to (8, 2048) step (1, 64) {
      "use"(%m, %h, %i) : (memref<8x2048xf32>, index, index) -> ()
    }
    ```
    becomes
    ```mlir
    %ctx = llvm.alloca %c1 x !llvm.struct<(...)> : (i64) -> !llvm.ptr
    llvm.store %captured, %ctx
    llvm.call @flash_parallel_for(%c256, @f_parallel_0, %ctx)

    llvm.func internal @f_parallel_0(%ctx: !llvm.ptr, %linear: i64) {
      // reload captures; %h = %linear / 32; %i = 64 * (31 - %linear % 32)
      "use"(%m, %h, %i)
      llvm.return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
  let options = [
    Option<"maxStackBytes", "max-stack-bytes", "int64_t",
           /*default=*/"1 << 20",
           "Static buffers beyond this many bytes per body stay on the heap">
  ];
}

def FlashCpuConvertToLLVM
    : Pass<"flash-cpu-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert arithmetic, vectors, branches, buffers and functions to LLVM";
  let description = [{
    Upstream has a pass for each of `arith`, `cf`, `index`, `memref`, `func` and
    `vector`; one conversion with the patterns of all takes half of their time,
    which is noticed in kernels with tens of thousands of operations. Buffers
    are allocated by `_mlir_memref_to_llvm_alloc`, which the runtime defines.

    Limitations: `math` and `scf` are converted before, and of `vector` what
    upstream's pass first rewrites, such as `vector.transfer_read`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def FlashCpuLowerAssert : Pass<"flash-cpu-lower-assert", "::mlir::ModuleOp"> {
  let summary = "Convert cf.assert to a call of the runtime's failure function";
  let description = [{
    The runtime unwinds to the caller of the kernel, which reports the message.

    ```mlir
    cf.assert %ok, "lengths[b] exceeds Nk"
    ```
    becomes
    ```mlir
    %true = arith.constant true
    %bad = arith.xori %ok, %true : i1
    scf.if %bad {
      %message = llvm.mlir.addressof @flash_message_0 : !llvm.ptr
      llvm.call @flash_runtime_failure(%message) : (!llvm.ptr) -> ()
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect"
  ];
}

#endif // FLASH_TARGET_CPU_PASSES
