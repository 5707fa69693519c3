//===- Passes.td - Conversions between levels --------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_CONVERSION_PASSES_TD
#define FLASH_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFlashToSCF : Pass<"convert-flash-to-scf", "::mlir::func::FuncOp"> {
  let summary = "Make loops of kernels and visits, and slices of what they load and store";
  let description = [{
    Each `flash.kernel` becomes an `scf.forall`, whose terminator has what `flash.store_rows` stores as slices.
    Rows of an address operation (`AddressOpInterface`) are read and written where they lie in memory. A tile whose rows lie
    in parts, such as pages, is put together from these by `tensor.concat`, or with `only-kernels` off by insertions. A view that is used as a
    tensor is copied, which is an error with the option `only-kernels`.

    Each `flash.visit` becomes the loops over the tiles that its mask, its list or its range leaves, with
    a copy of the step in each: tiles that are known to be full have no mask, and tiles whose rows
    all exist have no count of rows and no padding. `flash.load_rows` becomes a slice, padded where
    rows may be missing. With the option `assert-rows` the program checks at run time that the rows exist which it reads
    and writes, in a view the rows of each batch.

    Where visited and full tiles are ranges there are up to four loops:

    ```mlir
    flash.visit keys tile(128) from %c0 to %c512 by %c128 exist(%c512) tiles(...) init(...) {
      ... flash.online_attention ... mask(#flash.causal)
    }
    // becomes
    %full = affine.apply affine_map<(i) -> (((i + 1) floordiv 128) * 128)>(%i)
    scf.for %j = %c0 to %full step %c128 { flash.online_attention ... }
    scf.for %j = %full to %end step %c128 {
      flash.online_attention ... mask(#flash.causal)
    }
    ```

    With `fill_once`, tiles that need care come first, in a loop that always has the last tile. A choice guards all loops
    by the bounds of this one: there is a tile to visit, or there is none. If no tile but the last one needs care,
    whatever the sizes are, that loop has one iteration.

    Where both sides of a window cut tiles, and where tiles have lists, one loop has all tiles if there is no score
    region. Its step has a condition (`partial`) for what tiles that need care need:

    ```mlir
    scf.if %any {
      scf.for %n = %from to %to step %c128 {
        %last = arith.cmpi slt, %n, %c0 : index
        %origin = arith.select %last, %end, %begin : index
        %j = arith.addi %origin, %n : index
        %cut = arith.cmpi slt, %n, %end_of_first : index
        flash.online_attention ... at[%b, %h, %i, %j] ... partial(%cut) mask(#flash.window<left = 1000, right = 0>)
      }
    }
    ```

    Where `tiles` has sets, one loop over the hull tests each tile. A visit of batches or heads becomes two
    loops, and at least one of them is empty, unless the sets depend on the batch or the head:

    ```mlir
    flash.visit heads ... { flash.captured_grad_step ... at[%b, %h, %i, %j] ... mask(#flash.causal) }
    // becomes
    scf.for %h = %c0 to %careful step %c1 {
      flash.captured_grad_step ... at[%b, %h, %i, %j] ... mask(#flash.causal)
    }
    scf.for %h = %c0 to %plain step %c1 { flash.captured_grad_step ... }
    ```
  }];
  let options = [Option<"onlyKernels", "only-kernels", "bool", "false",
    "Only kernels run, as on GPUs: views are read and stored by these">,
    Option<"assertRows", "assert-rows", "bool", "false",
    "Check that rows which are read and written exist">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::flash::tile::TileDialect"];
}

def ConvertLinalgToTile : Pass<"convert-linalg-to-tile", "::mlir::ModuleOp"> {
  let summary = "Make a block program of each parallel loop over tiles";
  let description = [{
    The body of an `scf.forall` becomes a `gpu.func`, one thread block for each
    iteration; the loop itself a `gpu.launch_func` with a one-dimensional grid.
    `tile.order` of the loop says in which order blocks take the iterations, and
    `flash.schedule` how many warps share a tile. Each operation is converted by
    itself:

    - A slice of a tensor from outside, padded behind its rows or not, becomes
      `tile.fetch`, where copies of 16 bytes can make it, `tile.read` where rows
      are a warp's, any other a `tile.map` that reads its elements. Where its rows
      and columns are not the last dimensions of the tensor, the kernel gets the
      tensor with its dimensions in another order, which moves nothing.
      `tensor.parallel_insert_slice` of a tile, or of its first rows and columns,
      becomes `tile.store`, and so does `tensor.insert_slice` into a slice of an
      output, which loops may carry. `tensor.insert` of an element into one becomes
      a `memref.store`, which all threads make alike.
    - `linalg.contract` of two matrices, or what comes to the same, becomes
      `tile.mma_async` and `tile.mma_wait`. Rows of f16 or bf16 that it is over are
      a multiple of 16, as many as an instruction reads. A sum of other terms than products
      goes through the inner dimension in a loop. A computed tile that an
      operation takes the other way round goes through shared memory.
    - Elementwise `linalg` and `arith` become arithmetic on tiles, or on a value
      for each row or column as long as that will do; one that uses indices
      becomes `tile.map`.
    - A reduction of rows becomes `tile.fold` and `tile.reduce`, of columns
      `tile.reduce_rows`: sums, products, largest and smallest elements, of f32.
    - `scf.for`, `scf.if` and arithmetic on scalars stay what they are.

    All matrices have the layout of products, or, where there are none and what is
    reduced are wide rows or few, `#tile.warp_rows`. A vector has a value for each row
    or for each column, as the matrices that it meets say. What has no
    translation is an error at the operation.

    ```mlir
    %s = linalg.contract ... ins(%q, %kt : tensor<64x64xf16>, tensor<64x64xf16>) outs(%zero : tensor<64x64xf32>)
    %m = linalg.generic ... ins(%s : tensor<64x64xf32>) outs(%none : tensor<64xf32>) { ... arith.maxnumf ... }
    // becomes
    %qs = tile.fetch %query[%b, %h, %i] : memref<...> to !tile.smem<64x64xf16, swizzle = 128>
    %ks = tile.fetch %key[%b, %h, %j] : memref<...> to !tile.smem<64x64xf16, swizzle = 128>
    %sp = tile.mma_async %qs, %ks transpose_b : ... -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    %s = tile.mma_wait %sp : ...
    %l = tile.fold max %s into %none : ... into tensor<64x4xf32, #tile.lanes<4>>
    %m = tile.reduce max %l : ... to tensor<64xf32, #tile.rows<4>>
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
    Run after `convert-linalg-to-tile`, on what is left outside of kernels, by the
    pipelines of GPUs and by those that emulate them. The host side of a GPU
    program computes sizes, makes views, allocates and launches; any op that
    computes the elements of a tensor, or depends on them, is an error. So are
    loops, branches, calls, results that are memory of an argument, and slices with gaps between the elements of a row.
    Emulations may check lists of blocks (`flash.check_blocks`), with the option `emulated`; as nothing checks strides
    in an emulated call, slices that may have such gaps are errors there, too.

    ```mlir
    // error: 'linalg.matmul' op runs on the CPU only: of a program, attention,
    // softmaxes along the last dimension and parallel loops over tiles run on a
    // GPU; use --target=cpu
    %y = linalg.matmul ins(%x, %w : ...) outs(%e : ...) -> tensor<64x64xf32>
    ```
  }];
  let options = [Option<"emulated", "emulated", "bool", "false",
    "The program is for an emulation, which may check what it is given">];
}

def LowerTilePositions : Pass<"tile-lower-positions", "::mlir::ModuleOp"> {
  let summary = "Compute which tile a block takes from its number";
  let description = [{
    Each `tile.position` becomes arithmetic on indices. A wave is as many blocks as the multiprocessors hold, whose number is an attribute of
    the module (`flash.target`); with
    `ctas_per_sm = 2` in the schedule of the kernel, twice as many. Orders for blocks that wait for each other have
    heads of one wave together, of two if the kernel is persistent.

    ```mlir
    %h, %i = tile.position %number of (%heads, %tiles) linear
    // becomes
    %h = arith.divui %number, %tiles : index
    %i = arith.remui %number, %tiles : index
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LowerTileRings : Pass<"tile-lower-rings", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Lower rings to groups of copies and barriers";
  let description = [{
    For blocks in which all threads copy and compute. A copy is a group of
    `cp.async`, or the copies of all parts of a stage are one; a wait waits for the thread's
    own groups, leaving as many pending as were started after the awaited one, and
    then for all threads at a barrier. Acquiring needs a barrier only if none lies
    between the release and it. An `scf.if` around nothing but copies becomes a
    choice of their number of rows, which is 0 where it does not hold; the group
    is made in any case, so that the number of groups is known.

    Copies of no rows write zeros, and pending copies have no order among each
    other: acquiring a stage waits for the groups that may still fill it.

    ```mlir
    %kt = tile.ring.wait %ring[%t]
    // becomes
    nvvm.cp.async.wait.group 1
    gpu.barrier
    %kt = tile.smem_view %offset : !tile.smem<64x64xf16, swizzle = 128>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def LowerTileRoles : Pass<"tile-lower-roles", "::mlir::ModuleOp"> {
  let summary = "Lower roles and their rings to mbarriers and bulk copies (sm_90a)";
  let description = [{
    For kernels with a `tile.warp_specialize`. Each stage of a ring has two
    mbarriers: a copy by the tensor memory accelerator completes the one, or one
    for each part, or an arrival of each warp that fills its rows; an
    arrival of each warp that reads or checks it the other. A stage of a `checked` ring has a third, for what
    the check found. A ring of two stages or more from which threads load, as statistics of rows, is full with the
    one that is filled before it in the same steps, if that is waited for first: both copies arrive at its mbarrier.
    A tile that is a piece of the columns of memory, in a ring of one stage, has an mbarrier for each panel: the product that
    sums over its columns begins when the first panel is there.
    The tensor maps with which copies are made become arguments of the kernel;
    the host makes them before the launch. A `tile.add_in_order` reads a tile at a known address:
    the result of a `tile.ring.wait` or a `tile.smem_view`; any other tile is an error.

    ```mlir
    %kt = tile.ring.wait %ring[%t]
    // becomes
    nvvm.mbarrier.try_wait.parity %full, %parity, %ticks
    %kt = tile.smem_view %offset : !tile.smem<64x64xf16, swizzle = 128>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::flash::nvx::NvxDialect"];
}

def ConvertTileToNvx : Pass<"convert-tile-to-nvx", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Distribute a block program over its threads";
  let description = [{
    Every register tile becomes the vector of the registers that one thread
    holds, in the order of its layout; tiles of 16-bit elements become vectors
    of i32, two elements in each. Shared-memory tiles become pointers, products
    `mma.sync` or, for warpgroups, `nvx.warpgroup_mma`, copies `cp.async`. A
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
  let summary = "Convert thread programs to the LLVM and NVVM dialects";
  let description = [{
    Takes what is left when `scf` and `affine` have been lowered. Indices become
    i32: no size and no position reaches 2^31, and offsets in global memory are
    i64 by now.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def EmulateTiles : Pass<"tile-emulate", "::mlir::ModuleOp"> {
  let summary = "Run block programs on the CPU, and watch their rings";
  let description = [{
    Replaces `tile-allocate-smem` and all that follows. A launch becomes a
    parallel loop over its blocks around the kernel's body; register tiles become
    tensors without a layout, tiles in shared memory buffers of their rows and
    columns. Values are the same as on a GPU but for the order of additions inside a
    product, whose factors are extended to f32 (or rounded to tf32) exactly.

    Rings become calls of a run-time library. It checks the order of the
    operations on each stage and that nothing is read after its release, and lets
    the program fail with the location of the operation. A copy is carried out as
    late as possible, by the wait; until then, and after a release, the stage
    holds NaN.

    ```mlir
    tile.copy_async %k[%b, %h, %j] to %ring[%t] : ...
    %kt = tile.ring.wait %ring[%t] : ...
    %s = tile.mma_async %q, %kt transpose_b : ...
    // becomes
    llvm.call @flash_emulation_copy_async(%block, %ring, %t, %part, %address, %stride, %rows, %location1)
    %lease = llvm.call @flash_emulation_wait(%block, %ring, %t, %location2)
    llvm.call @flash_emulation_check_lease(%block, %lease, %location3)
    %b = ... // the stage's tile, transposed and extended to f32
    %s = linalg.generic ins(%q, %b) outs(%zero) ... -> tensor<64x64xf32>
    ```

    Operations of single threads, and what `tile-lower-rings` leaves behind, are
    refused.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

#endif // FLASH_CONVERSION_PASSES_TD
