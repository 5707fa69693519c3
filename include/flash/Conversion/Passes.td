//===- Passes.td - Conversions between levels --------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_CONVERSION_PASSES_TD
#define FLASH_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFlashToTile : Pass<"convert-flash-to-tile", "::mlir::ModuleOp"> {
  let summary = "Make a block program of each parallel loop over query tiles";
  let description = [{
    Takes what `flash-tile` and `flash-split-mask` leave behind. The body of the
    `scf.forall` becomes a `gpu.func`, one thread block for each iteration; the
    loop itself a `gpu.launch_func` with a one-dimensional grid, query tiles
    fastest. Where there is a mask the blocks differ in length: some heads are
    gone through together, their last query tiles first, which are longest where
    the mask is causal.

    A step of the online softmax becomes two products and arithmetic on register
    tiles between them; tiles are fetched from global memory where they are
    used, without any overlap yet.

    ```mlir
    %acc1, %max1, %sum1 = flash.online_attention ins(%q, %k, %v : ...) outs(%acc, %max, %sum : ...) ...
    // becomes
    %kt = tile.fetch %key[%b, %h, %j] : memref<...> to !tile.smem<64x64xf16, swizzle = 128>
    %sp = tile.mma_async %qs, %kt transpose_b : ...
    %s = tile.mma_wait %sp : ...
    ... // row maximum, exponentials, row sum, rescaling
    %vt = tile.fetch %value[%b, %h, %j] : ...
    %op = tile.mma_async %p, %vt add %rescaled : ...
    %acc1 = tile.mma_wait %op : ...
    ```

    Of loops around other ops, a `linalg.contract` of two slices becomes a
    product, an elementwise `linalg.generic` without inputs a `tile.map`, and
    elementwise `arith` on tiles itself. A `flash.softmax` or `linalg.softmax`
    of a slice of rows becomes two loops over strips of the rows: the first
    finds maximum and sum, for each lane, by the online softmax, the second
    writes the quotients.

    ```mlir
    %p = linalg.softmax dimension(1) ins(%rows : tensor<8x?xf16>) outs(...)
    // becomes
    %m, %l = scf.for %j = %c0 to %n step %c1024 iter_args(%max = -inf, %sum = 0) {
      %x = tile.read %s[%i, %j] rows(...) columns(...) : memref<...> to tensor<8x1024xf32, #tile.strips<8, 8>>
      %max1 = tile.fold max %x into %max : ...
      ... // exponentials and the rescaled sum
    }
    ... // exchanges between lanes
    scf.for %j = %c0 to %n step %c1024 {
      %x = tile.read %s[%i, %j] ...
      tile.store %quotients, %out[%i, %j] rows(...) columns(...) : ...
    }
    ```

    Tensors become memrefs with run-time strides, whose last dimension is
    contiguous. A captured constant is copied into the kernel, any other scalar
    is an argument of it.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::flash::FlashDialect", "::flash::tile::TileDialect"];
}

def CheckHost : Pass<"flash-check-host", "::mlir::func::FuncOp"> {
  let summary = "Refuse what has no translation to a GPU";
  let description = [{
    Run after `convert-flash-to-tile`, on what is left outside of kernels, by the
    pipelines of GPUs and by those that emulate them. The host side of a GPU
    program computes sizes, makes views, allocates and launches; any op that
    computes the elements of a tensor, or depends on them, is an error. So are
    loops, branches, calls, and results that are memory of an argument.

    ```mlir
    // error: 'linalg.matmul' op runs on the CPU only: of a program, attention
    // and softmaxes along the last dimension run on a GPU; use --target=cpu
    %y = linalg.matmul ins(%x, %w : ...) outs(%e : ...) -> tensor<64x64xf32>
    ```
  }];
}

def ConvertTileToNvx : Pass<"convert-tile-to-nvx", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Distribute a block program over its threads";
  let description = [{
    Every register tile becomes the vector of the registers that one thread
    holds, in the order of its layout; tiles of 16-bit elements become vectors
    of i32, two elements in each. Shared-memory tiles become pointers, products
    `mma.sync` or, those of warpgroups, `nvx.warpgroup_mma`, copies `cp.async`. A
    memref becomes a pointer, its dynamic sizes
    and its dynamic strides (in elements), in this order.

    ```mlir
    %y = arith.mulf %x, %x : tensor<64x64xf32, #tile.fragment<4>>
    // becomes
    %y = arith.mulf %x, %x : vector<32xf32>
    ```

    Products of f32 are computed from three products of tf32: an operand is the
    sum of its upper 10 bits of mantissa and of the rest (Ootomo and Yokota,
    arXiv 2203.03341), and the product of two rests is left out. Splitting cuts
    off rather than rounds, which saves an instruction; what is lost by this on
    average is added to the rests of the first operand. An infinite operand has
    a rest that is NaN, so that its products are NaN.
  }];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::flash::nvx::NvxDialect"];
}

def ConvertNvxToLLVM : Pass<"convert-nvx-to-llvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Turn thread programs into the LLVM and NVVM dialects";
  let description = [{
    Takes what is left when `scf` and `affine` have been lowered. Indices become
    i32: no size and no position reaches 2^31, and offsets in global memory are
    i64 by now.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

#endif // FLASH_CONVERSION_PASSES_TD
