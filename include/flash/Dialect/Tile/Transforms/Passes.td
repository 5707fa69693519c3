//===- Passes.td - Passes of the tile dialect --------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_TRANSFORMS_PASSES_TD
#define FLASH_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

// In the order in which the pipelines run them.

def MergeKernels : Pass<"tile-merge-kernels", "::mlir::ModuleOp"> {
  let summary = "Make one kernel of those that are equal";
  let description = [{
    Kernels of a `gpu.module` that differ in their names only become the first of them,
    which all of their launches then launch: versions of a program, or its attentions,
    often have the same combination of splits, and each kernel takes time to compile
    and is as large as its tiles.

    ```mlir
    gpu.launch_func @kernels::@f ...
    gpu.launch_func @kernels::@f_0 ...
    // becomes, where @f_0 and @f have equal bodies,
    gpu.launch_func @kernels::@f ...
    gpu.launch_func @kernels::@f ...
    ```
  }];
}

def PartialSums : Pass<"tile-partial-sums", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Add up the sums of lanes after the loop";
  let description = [{
    A sum for each row that loops carry, multiply and add the sums of tiles to
    is held by four lanes, or all of a warp, and each lane can have a sum of its
    own: to add these up takes two shuffles, or five, once behind
    the loops rather than for each tile. The first is divided among the lanes,
    which is exact.

    ```mlir
    %scaled = arith.mulf %sum, %factor : tensor<128xf32, #tile.rows<8>>
    %lanes = tile.fold add %p into %zero : ...
    %tile = tile.reduce add %lanes : ...
    %next = arith.addf %scaled, %tile : tensor<128xf32, #tile.rows<8>>
    // becomes, of sums of lanes,
    %factors = tile.broadcast %factor : ... to tensor<128x4xf32, #tile.lanes<8>>
    %scaled = arith.mulf %sum, %factors : tensor<128x4xf32, #tile.lanes<8>>
    %next = tile.fold add %p into %scaled : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def AnyOfLanes : Pass<"tile-any-of-lanes", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Vote before maxima are shuffled";
  let description = [{
    Whether the maximum of a row is above a bound, as a lazily rescaled softmax
    tests for each tile, is whether the maximum of one of its lanes is. So a vote needs no
    shuffles; only where it says yes maxima are shuffled.

    ```mlir
    %max = tile.reduce max %lanes : ...
    %above = arith.cmpf ogt, %max, %bound : tensor<128xf32, #tile.rows<8>>
    %conditions = tile.broadcast %above : ... to tensor<128x4xi1, #tile.lanes<8>>
    %any = tile.any %conditions : ...
    scf.if %any { ... %max ... }
    // becomes
    %bounds = tile.broadcast %bound : ... to tensor<128x4xf32, #tile.lanes<8>>
    %conditions = arith.cmpf ogt, %lanes, %bounds : ...
    %any = tile.any %conditions : ...
    scf.if %any { %max = tile.reduce max %lanes : ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def HoistProducts : Pass<"tile-hoist-products", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Take products out of choices";
  let description = [{
    For kernels whose `flash.schedule` has `specialize_warps`. A product that is
    left out under a condition, such as values that are not finite, cannot
    overlap with anything, as it ends with the choice. Behind the choice
    it can. Where it was left out its second operand is cleared, so that it adds
    nothing: a finite number times zero. Exponentials (`math.exp2` or `math.exp`,
    rounded or not) are finite where rows are shifted by about their maximum;
    of any other first operand in registers the choice gives zeros there.

    ```mlir
    %o = scf.if %finite {
      %op = tile.mma_async %p, %vt add %acc : ...
      %r = tile.mma_wait %op : ...
      scf.yield %r : ...
    } else {
      ... // without a product
      scf.yield %s : ...
    }
    // becomes
    %c = scf.if %finite {
      scf.yield %acc : ...
    } else {
      ...
      tile.clear %vt warps(8) : ...
      scf.yield %s : ...
    }
    %op = tile.mma_async %p, %vt add %c : ...
    %o = tile.mma_wait %op : ...
    ```
  }];
}

def Persist : Pass<"tile-persist", "::mlir::ModuleOp"> {
  let summary = "Launch as many blocks as there are multiprocessors";
  let description = [{
    For kernels whose `flash.schedule` has `persistent`. There are as many blocks
    as multiprocessors (`flash.target` of the module), with
    `ctas_per_sm = 2` twice as many. A block does the work of one block after
    the other, so that the copies of the next begin while the last is being
    finished. Indices that the tiles need of sizes are computed where the kernel
    is launched, and become arguments.

    ```mlir
    %i = gpu.block_id x
    ...
    // becomes
    scf.for %wave = %c0 to %waves step %c1 {
      %i = ... // %wave * %grid_dim + %block_id, or as far from the other end
      ...
    }
    ```

    Where blocks add in order (`tile.add_in_order`), not all of them need be running, and who waits for one
    that cannot start waits for ever. So they claim tiles (`tile.claim`), which the last of the counts counts.
    That it is no tile's, the host asserts.

    ```mlir
    scf.for %step = %c0 to %blocks step %c1 {
      %i = tile.claim %step of %counts[%last]
      ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::memref::MemRefDialect",
                           "::flash::tile::TileDialect",
                           "::mlir::scf::SCFDialect"];
}

def PersistChoices : Pass<"tile-persist-choices", "::mlir::ModuleOp"> {
  let summary = "Launch few blocks of kernels that may end at once";
  let description = [{
    Kernels in the branches of a choice by what a kernel writes are all launched
    (`tile-choose-on-device`), and end at once in the branch that is not chosen. That takes as long as it takes to start their blocks, so
    kernels without a schedule get one by which `tile-persist` launches as many blocks as can run at the same
    time.

    ```mlir
    scf.if %written {
      gpu.launch_func @kernels::@f blocks in (%tiles, %c1, %c1) ...
    gpu.func @f(...) kernel attributes {known_block_size = array<i32: 128, 1, 1>}
    // becomes
    gpu.func @f(...) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 16, features = persistent>, ...}
    ```

    Kernels whose tiles the device counts (`tile.end_grid`) stay as they are, and so do kernels whose threads map more than 16 elements each,
    which a loop would cost registers.
  }];
}

def DivideByReciprocals : Pass<"tile-divide-by-reciprocals", "::mlir::ModuleOp"> {
  let summary = "Multiply by reciprocals that the host computes";
  let description = [{
    A GPU has no division of integers: one of numbers that are not known when a
    kernel is compiled is about twenty instructions, several in a row that each wait for the one
    before. Which tile a block works on takes three, in every role. For `arith.divui` and `arith.remui`
    of indices by arguments of the kernel, by sizes of its memory, or by choices
    among these, the host passes a reciprocal of 64 bits, and a quotient is two
    multiplications; it is the same for all numbers below 2^32. What is done for each
    element of a tile stays as it is: its numbers may be any.

    ```mlir
    %head = arith.remui %number, %heads : index
    // becomes, with %f = floor((2^64 - 1) / %heads) from the launch
    %q = ... // the upper 64 bits of (%number + 1) * %f
    %head = %number - %q * %heads
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def MultiplyQuantized : Pass<"tile-multiply-quantized", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Convert tiles of 8 bits in the registers that products read";
  let description = [{
    A tile that is dequantized (`tile.dequantize`) for one product of one warp needs no second tile in shared memory: the
    product becomes a `tile.mma_quantized`. What products of rows of such tiles add to, and what is computed from it element by element or
    stored, is then a wide fragment. Where something else needs it as a fragment, as a product does that does not become one of these,
    tiles that are multiplied by their rows stay as they are. So do tiles that several warps or
    several products read: each would convert the whole tile.

    Where no more than eight of 16 rows exist, a lane has one of these and one of the others. The others get constants that leave
    nothing to compute: scores of 0, which they have anyway, and factors of 1.

    ```mlir
    %vt = tile.dequantize %v8 : !tile.smem<32x128xi8, swizzle = 128> to !tile.smem<32x128xf16, swizzle = 128> {...}
    %p = tile.mma_async %w, %vt add %o : ..., tensor<16x128xf32, #tile.fragment<1>> -> !tile.pending<tensor<16x128xf32, #tile.fragment<1>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<16x128xf32, #tile.fragment<1>>>
    // becomes
    %s = tile.mma_quantized %w, %v8 add %o : ..., tensor<16x128xf32, #tile.wide_fragment<1>> -> tensor<16x128xf32, #tile.wide_fragment<1>> {...}
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def DivideColumns : Pass<"tile-divide-columns", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Divide wide accumulators between two warpgroups";
  let description = [{
    For kernels whose `flash.schedule` has `divide_columns`. A thread has no registers for a fragment of 64 rows and
    more than 256 columns, as sums of wide values are. The warps that hold such fragments keep the first columns, from 0
    to a multiple of a panel (see `!tile.smem`), and as many other warps behind them get the rest: the layouts of
    the halves say so, and `tile-specialize-warps` makes a role of what those warps do. What both halves
    depend on, such as probabilities and the factors of rows, the first warps compute, and share with the others
    (`tile.share`). A product of the other half takes its first operand from shared memory.

    ```mlir
    %f = tile.broadcast %factor : tensor<64xf32, #tile.rows<4>> to tensor<64x512xf32, #tile.fragment<4>>
    %c = arith.mulf %acc, %f : tensor<64x512xf32, #tile.fragment<4>>
    %op = tile.mma_async %p, %kt add %c : ...
    // becomes
    %f0 = tile.broadcast %factor : tensor<64xf32, #tile.rows<4>> to tensor<64x256xf32, #tile.fragment<4>>
    %ft = tile.share %factor : tensor<64xf32, #tile.rows<4>> to !tile.smem<8x8xf32, swizzle = 32>
    %g = tile.load %ft : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.rows<4 from 4>>
    %f1 = tile.broadcast %g : tensor<64xf32, #tile.rows<4 from 4>> to tensor<64x256xf32, #tile.fragment<4 from 4>>
    %c0 = arith.mulf %acc0, %f0 : tensor<64x256xf32, #tile.fragment<4>>
    %c1 = arith.mulf %acc1, %f1 : tensor<64x256xf32, #tile.fragment<4 from 4>>
    %pt = tile.share %p : tensor<64x64xf16, #tile.fragment<4>> to !tile.smem<64x64xf16, swizzle = 128>
    %op0 = tile.mma_async %p, %kt add %c0 : ...
    %op1 = tile.mma_async %pt, %kt panel(%c4) add %c1 : ...
    ```

    With `ping_pong` the two groups of warps alternate between tiles of keys whose first columns are the values. An
    iteration of a loop over tiles gets two of them, and a loop behind it the tile that is left. The other warps
    compute the scores of the second tile and what depends on them. They share with the first warps the factors
    of rows, the probabilities and, for the next iteration, the maxima and the sums of rows, so tiles are still added up in
    their order. They start the product of the first tile's probabilities behind the scores of the second tile, and
    wait for it behind the exponentials. Tiles are fetched in pieces of columns: the values of either half, and the rest.
    Each piece is free for a next tile when its last product has ended.

    ```mlir
    scf.for %j = %c0 to %middle step %c128 iter_args(%max0 = ...) {
      %s0 = ... // scores of a tile, by the first warps
      %max1 = arith.maxnumf %max0, %r0 : tensor<64xf32, #tile.rows<4>>
      %p0 = tile.share ...
      %a = tile.mma_async ... -> !tile.pending<tensor<64x256xf32, #tile.fragment<4>>>
      %s1 = ... // scores of the next tile, by the other warps
      %b = tile.mma_async %p0, ... -> !tile.pending<tensor<64x256xf32, #tile.fragment<4 from 4>>>
      %max2 = arith.maxnumf %shared, %r1 : tensor<64xf32, #tile.rows<4 from 4>>
      ...
    }
    ```

    Where a loop has choices, as where tiles are checked, or where others than products read the tiles, columns are
    divided alone, with a warning, and the kernel's schedule loses `ping_pong`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def MakeRings : Pass<"tile-make-rings", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Make of fetches rings that asynchronous copies fill";
  let description = [{
    Every `tile.fetch` becomes a ring and the four operations of one step, which
    all stay where the fetch was; nothing overlaps yet. So does every
    `tile.share`, whose ring of one stage the threads fill. Loops carry the number
    of the step, which goes on from one loop to the next, so that all loops of a
    block over the same memory share a ring; a loop that no other is around and
    that counts its iterations has it already. Loops that fetch other tiles, or
    some of them only, have rings and a count of their own. Where canonicalization
    has inlined a loop of one iteration, its fetches, beside another loop, in a choice
    or one step behind the other, are steps of the same rings. `stages` of the kernel's `flash.schedule`
    is the number of stages of these rings, 1 if absent; `query_stages` that
    of tiles which are fetched in a loop around others. Where loops go over pairs of tiles (`tile-divide-columns` with
    `ping_pong`), the rings of either tile have half of the stages, and a loop over one tile has the rings of the first.

    ```mlir
    scf.for %j = ... iter_args(%acc = ...) {
      %kt = tile.fetch %k[%b, %h, %j] : ...
      ...
    }
    // becomes
    %ring = tile.ring : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
    scf.for %j = ... iter_args(%acc = ..., %t = %c0) {
      tile.ring.acquire %ring[%t]
      tile.copy_async %k[%b, %h, %j] to %ring[%t] : ...
      %kt = tile.ring.wait %ring[%t]
      ...
      tile.ring.release %ring[%t]   // after the last use of %kt
      %t1 = arith.addi %t, %c1 : index
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def Prefetch : Pass<"tile-prefetch", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Start copies as early as their stages are free";
  let description = [{
    Software pipelining for threads that both copy and compute. The copy of a
    ring is started where its stage has just become free: after the first wait of
    another ring that follows the release (all threads meet there anyway), for
    the step that is as many stages ahead. Copies of the first steps go before
    the loops. The loops of a chain, which all count the steps on, are treated
    as one: the tiles of the next come behind the end of the one before, wherever
    they lie. Where the rows of copies are read from memory that the kernel does not
    write, such as a list of tiles or a table of pages, the row or page of a later step is read where there is such
    a step; loops of a chain read them alike. The copies of a stage's parts, which are constants, start together.
    Where other loops copy to the same rings, or where only an iteration can compute what it copies, copies stay where
    they are.

    With one stage this is the schedule of FlashAttention-2 (Dao, arXiv
    2307.08691): the next keys are copied during softmax and second product, the
    values during the first product.

    ```mlir
    scf.for %j = %lo to %hi step %c64 iter_args(%t = %c0, ...) {
      %kt = tile.ring.wait %kr[%t]
      tile.ring.acquire %vr[%t]            // released in the step before
      tile.copy_async %v[%b, %h, %j] to %vr[%t]
      ...                                  // first product
      tile.ring.release %kr[%t]
      %vt = tile.ring.wait %vr[%t]
      scf.if %more {
        tile.ring.acquire %kr[%t1]
        tile.copy_async %k[%b, %h, %j1] to %kr[%t1]
      }
      ...                                  // second product
      tile.ring.release %vr[%t]
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def SpecializeWarps : Pass<"tile-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Let some warps compute and others copy";
  let description = [{
    For kernels whose `flash.schedule` has `specialize_warps`. The program is sliced
    in two: the consumers' part is all but the acquires and copies; the
    producer's is these, the loops and branches around them, and the scalars
    that they need. Neither waits for the other but at the rings, so copies run
    as far ahead as there are stages. Products become products of warpgroups, which
    each have 64 rows of the query tile. Where four copies or more fill a stage, as
    of small pages, every other ring of such copies has a producer of its own.

    Where the program tests whether a tile is finite (`tile.is_finite`), there is
    a third part, the non-finite check: it goes through all steps of the tile's
    ring and checks the tested ones; consumers read what it found.

    ```mlir
    scf.for %j = ... iter_args(%acc = ..., %t = %c0) {
      tile.ring.acquire %ring[%t]
      tile.copy_async %k[%b, %h, %j] to %ring[%t] : ...
      %kt = tile.ring.wait %ring[%t]
      ...
      tile.ring.release %ring[%t]
    }
    // becomes
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %j = ... iter_args(%acc = ..., %t = %c0) {
        %kt = tile.ring.wait %ring[%t]
        ...
        tile.ring.release %ring[%t]
      }
    } @producer(warps = 1, registers = 24) {
      scf.for %j = ... iter_args(%t = %c0) {
        tile.ring.acquire %ring[%t]
        tile.copy_async %k[%b, %h, %j] to %ring[%t] : ...
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def BulkStores : Pass<"tile-bulk-stores", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Store results by bulk copies from shared memory";
  let description = [{
    For kernels whose `flash.schedule` has `bulk_store`. A thread has two elements
    of 16 bits next to each other, so to store them from registers takes many
    instructions that fill a quarter of a line each, for which the next tile's
    products wait. Instead a warpgroup puts its rows in shared memory, and one
    thread starts a bulk copy, if the rings leave room for at least a panel of
    columns.

    ```mlir
    tile.store %o, %out[%b, %h, %i] rows(%n) : ...
    // becomes
    tile.store_bulk %o, %out[%b, %h, %i] through !tile.smem<128x64xf16, swizzle = 128> : ...
    ```

    In a loop over tiles whose queries have a ring of one stage, they go where the
    queries were, if sizes are known and there is room for 64 rows more. Then the
    ring has a stage for the rows of each warpgroup, and one more: all columns are
    stored at once, and the next queries of one warpgroup can come before the other
    has released its own.

    ```mlir
    %queries = tile.ring : !tile.ring<1, ...>
    ...
    tile.ring.release %queries[%t] : ...
    tile.store %o, %out[%b, %h, %i] : ...
    // becomes
    %queries = tile.ring row_stages = 3 : !tile.ring<1, ...>
    ...
    tile.store_bulk %o, %out[%b, %h, %i] through !tile.smem<64x256xf16, swizzle = 128> in %q : ...
    tile.ring.release %queries[%t] : ...
    ```

    Where no tile follows and no memory is left, as in programs of gradients, stores go through the memory of a tile
    of the same type whose rows each warpgroup has read for itself, by products or loads.

    ```mlir
    tile.ring.release %keys[%c0] : ...
    tile.store %dk, %out[%b, %h, %i] : ...
    // becomes
    tile.store_bulk %dk, %out[%b, %h, %i] through !tile.smem<128x128xf16, swizzle = 128> in %k : ...
    tile.ring.release %keys[%c0] : ...
    ```
  }];
}

def DelayWaits : Pass<"tile-delay-waits", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let products run until their results are needed";
  let description = [{
    For loops of a role in which several products need no other. Products of
    warpgroups go on while others are started and what does not need them is
    computed: those that need no other are started first, then what copies fill is
    waited for. The rest are started when all that they have in registers has been
    computed, and what threads put into rings has been put: others wait for that.
    Where a thread has registers for it, what it loads from rings to compute with the
    first result is loaded before that product starts, and what it computes with
    another one before that is waited for, unless one warp alone adds in order, which
    takes as long as a step.
    A product is waited for where something needs its result, or at the
    iteration's end, and a stage is given back behind the last of its readers.

    ```mlir
    %sp = tile.mma_async %k, %qt transpose_b : ...
    %s = tile.mma_wait %sp : ...
    ...                                        // %p from %s
    %dpp = tile.mma_async %v, %dot transpose_b : ...
    %dp = tile.mma_wait %dpp : ...
    %dvp = tile.mma_async %p, %dot add %dv : ...
    %dv1 = tile.mma_wait %dvp : ...
    ...                                        // %ds from %p and %dp
    %dkp = tile.mma_async %ds, %qt add %dk : ...
    %dk1 = tile.mma_wait %dkp : ...
    // becomes
    %sp = tile.mma_async %k, %qt transpose_b : ...
    %dpp = tile.mma_async %v, %dot transpose_b : ...
    %s = tile.mma_wait %sp younger(%dpp : ...) : ...
    ...                                        // %p from %s
    %dp = tile.mma_wait %dpp : ...
    ...                                        // %ds from %p and %dp
    %dvp = tile.mma_async %p, %dot add %dv : ...
    %dkp = tile.mma_async %ds, %qt add %dk : ...
    %dv1 = tile.mma_wait %dvp younger(%dkp : ...) : ...
    %dk1 = tile.mma_wait %dkp : ...
    ```

    Loops that store, or have products in a choice, stay as they are; so do those that load from memory that the kernel
    writes, but not those that read lists of tiles. Before a
    choice that clears a tile, products that read it have ended. A tile that threads
    put into a ring is put before a product of the same registers starts, and what a
    product gave before younger ones are waited for. A stage that threads load from
    is given back behind the next put, which has taken what was loaded.
  }];
}

def DeferProducts : Pass<"tile-defer-products", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Multiply what was put into shared memory an iteration before";
  let description = [{
    For kernels whose `flash.schedule` has `defer_products`. Where threads put a
    tile into a ring for a product that reads the rows of all of them, and put
    the result into another ring for another role, all warpgroups wait for the slowest
    one in each iteration. The product that an iteration has instead is the product with the tile of
    the iteration before, which all have put by then, so that they need not run in step:
    one computes while another multiplies. The ring has two stages for that
    (`tile-make-rings`). The wait for the tile, the product and the put of its result are of stage 1 of a pipeline
    (`#tile.pipeline`), where they stand; `tile-pipeline` expands it.

    ```mlir
    tile.ring.put %ds to %ring[%t] : ...
    %dst = tile.ring.wait %ring[%t] : ...
    %p = tile.mma_async %k, %dst transpose_a warpgroup : ...
    // becomes
    tile.ring.put %ds to %ring[%t] : ...
    %dst = tile.ring.wait %ring[%t] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : ...
    %p = tile.mma_async %k, %dst transpose_a warpgroup {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : ...
    ```
  }];
}

def Overlap : Pass<"tile-overlap", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Compute from a tile's scores during the product before it";
  let description = [{
    For kernels whose `flash.schedule` has `overlap`. A product is deferred if it
    needs what is computed from other products of its iteration, and nothing but
    the loop's next iteration needs it: it adds to a value that the loop carries.
    Leading products need no other. In loops that have both, deferred products are of stage 1 of a
    pipeline (`#tile.pipeline`), which `tile-pipeline` expands: the deferred products of an iteration run while the next
    one has its leading products and computes the maxima of these (FlashAttention-3, arXiv
    2407.08608, section 3.2, with the exponentials too, which ptxas does
    not leave there; so they come behind the deferred products, beside the
    rounding and the sums, which are interleaved with them). What else depends on a
    product stays behind the leading ones.

    | cluster | stage | |
    |---|---|---|
    | 0 | 0 | leading products, with what they need |
    | 1 | 1 | deferred products start |
    | 2 | 0 | what needs neither them nor what is behind them |
    | 3 | 1 | deferred products end, and their tiles are given back |
    | 4 | 0 | what needs their results, or their registers |

    Who reads the tile of a deferred product in the iteration itself, to leave out
    values of masked keys or as a leading product does, gets it by
    `tile.ring.peek`. What all leading products read, the queries, is given back
    before the last deferred product: its release is of stage 0.

    ```mlir
    %sp = tile.mma_async %q, %kt transpose_b : ...
    %s = tile.mma_wait %sp : ...
    ...                                        // %p from %s
    %op = tile.mma_async %p, %vt add %scaled : ...
    // becomes
    %sp = tile.mma_async %q, %kt transpose_b {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : ...
    %s = tile.mma_wait %sp {tile.pipeline = #tile.pipeline<stage = 0, cluster = 2>} : ...
    ...                                        // maxima of %s: 2, rescaled, exponentials, rounded: 4
    %op = tile.mma_async %p, %vt add %scaled {tile.pipeline = #tile.pipeline<stage = 1, cluster = 1>} : ...
    ```
  }];
}

def Pipeline : Pass<"tile-pipeline", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Make pipelines of loops whose operations say when they run";
  let description = [{
    Each iteration of the pipelined loop has stage 0 of its own work and stage 1 of the work of the
    iteration before, in the order of clusters (`#tile.pipeline`). Stage 0 of the first
    iteration comes before the loop, stage 1 of the last one behind it. The loop carries
    what stage 1 needs; a value that stage 1 gives is used where it is given, and not carried.

    A loop that may have no iteration comes into a choice by its bounds. Behind a loop that is always entered, since its
    bounds are constants or a choice around it guarantees an iteration, other loops
    go on with what it carries: stage 1 of the last iteration of one runs in the
    first iteration of the next. A release of stage 0 behind the loops, of a tile that they alone read, comes
    before the last operations of stage 1.

    Where stage 1 takes nothing from stage 0 but a tile that stage 0 puts into a ring, the loop carries nothing, and
    no iteration is peeled off before it: zeros are put into the ring, and nothing uses the results of stage 1 for
    them. So all roles count a step more for each tile of the kernel. Tiles that stage 1 does not read are given back
    before its last operations.

    ```mlir
    scf.for ... iter_args(%t = %c0) {
      tile.ring.put %ds to %ring[%t] : ...
      %dst = tile.ring.wait %ring[%t] : ...
      %p = tile.mma_async %k, %dst transpose_a warpgroup : ...
      %dq = tile.mma_wait %p : ...
      tile.ring.put %dq to %results[%t] : ...
    }
    // becomes
    tile.ring.put %zeros to %ring[%c0] : ...
    %n = scf.for ... iter_args(%t = %c0) {
      %next = arith.addi %t, %c1 : index
      tile.ring.put %ds to %ring[%next] : ...
      %dst = tile.ring.wait %ring[%t] : ...
      %p = tile.mma_async %k, %dst transpose_a warpgroup : ...
      %dq = tile.mma_wait %p : ...
      tile.ring.put %dq to %results[%t] : ...
    }
    %dst = tile.ring.wait %ring[%n] : ...
    ...
    ```

    Stage 0 that needs what stage 1 of its iteration gives is an error. That the order of waits and
    releases is right as well, `tile-verify-async` checks.

    ```mlir
    scf.for %j = %lo to %hi step %n iter_args(%acc = ...) {
      %s = ... {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>}
      %p = ... %s {tile.pipeline = #tile.pipeline<stage = 0, cluster = 2>}
      %o = ... %p, %acc {tile.pipeline = #tile.pipeline<stage = 1, cluster = 1>}
      scf.yield %o
    }
    // becomes, between the first and the last iteration,
    scf.for %j = %second to %hi step %n iter_args(%p = ..., %acc = ...) {
      %s = ...
      %o = ... %p, %acc
      %p1 = ... %s
      scf.yield %p1, %o
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def DelayFinite : Pass<"tile-delay-finite", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let tiles that are made finite come late";
  let description = [{
    Where products that `tile-defer-products` has deferred read a tile of a `finite`
    ring, nobody needs it before the second step. Where the loop first reads it, it
    looks at the tile; the wait goes behind the loop. The copy goes into the first
    iteration of the producer's loop, behind the other copies there, and what makes the
    tile finite behind the checks of that iteration. Other products read it in their
    first step, and would wait for what comes late.

    ```mlir
    %k = tile.ring.wait %finite[%i] : ...
    scf.for ... {
      ...
      %op = tile.mma_async %ds, %k ...
    }
    // becomes
    scf.for ... {
      ...
      %seen = tile.ring.peek %finite[%i] : ...
      %op = tile.mma_async %ds, %seen ...
    }
    %k = tile.ring.wait %finite[%i] : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect"];
}

def PingPong : Pass<"tile-ping-pong", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let warpgroups alternate on the tensor cores";
  let description = [{
    For kernels whose `flash.schedule` has `ping_pong` and not `divide_columns`. While one warpgroup's
    products run the others compute exponentials (FlashAttention-3, arXiv
    2407.08608, section 3.1): products that give scores, and those started with
    them, wait for the warpgroup's phase.

    ```mlir
    tile.ping_pong.wait
    %sp = tile.mma_async %q, %kt transpose_b warpgroup : ...
    %op = tile.mma_async %p, %vt add %scaled warpgroup : ...
    tile.ping_pong.arrive
    ```
  }];
}

def SkipRows : Pass<"tile-skip-rows", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Let warpgroups without rows leave out products";
  let description = [{
    For kernels whose `flash.schedule` has `skip_rows`. A tile of queries may have few rows that exist: a token of
    a sequence, or the end of one. Warpgroups without any go through the tiles of keys
    without a product or an exponential, and the others have the tensor cores for themselves. They give back
    the stages of rings in the same steps, since nobody else does it for them.

    ```mlir
    %has = tile.has_rows %n
    %next = scf.if %has -> (index) {
      ...
      tile.store %o, %m[%b, %i, %h] rows(%n) : ...
      scf.yield %steps : index
    } else {
      ...
      tile.ring.wait %keys[%step] : ...
      tile.ring.release %keys[%step] : ...
      scf.yield %steps : index
    }
    ```

    Kernels whose stores say nothing about rows, or differ in that, kernels that do more than store, and
    kernels whose blocks have one tile each stay as they are.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def VerifyAsync : Pass<"tile-verify-async", "::mlir::gpu::GPUFuncOp"> {
  let summary = "Check the order of operations on rings and pending products";
  let description = [{
    What must hold of every program of this level, and can be seen without
    running it:

    - a copy, or a register tile, fills a stage that was acquired before it under
      the same guard, and every acquired stage is filled: where several copies
      fill it, each part of it once;
    - a tile is used between the wait that gives it and the release of its step,
      both in one block, by products too: those must be waited for before;
    - a product is waited for exactly once, where it was started;
    - products that may go on during a wait (`younger`) are those that were
      started later and are not waited for yet;
    - the steps of a ring are counted by one loop, or by loops that go on
      counting from each other, in each role;
    - without roles, a step is acquired, filled, waited for and released by one
      operation each, or by one in each branch of a choice; guards that nothing
      relates may both hold;
    - consumers wait and release only, the producer acquires and copies only;
    - the loops and choices around the copies of a ring are those around its
      releases, and around its `tile.ring.check_finite`, but for an iteration
      that stands beside its loop or is chosen in it: no role waits for a step
      that another never does;
    - `tile.ping_pong.wait` and `tile.ping_pong.arrive` alternate, and a choice by
      `tile.has_rows` does not change how often;
    - what several warps do together does not depend on a `tile.any`.

    `tile-emulate` checks while the program runs what depends on values: that
    a step is copied before it is waited for, and released before its stage is
    taken again.

    ```mlir
    %kt = tile.ring.wait %ring[%t] : ...
    %p = tile.mma_async %q, %kt transpose_b : ...
    tile.ring.release %ring[%t] : ...
    %s = tile.mma_wait %p : ...  // refused: %p may still read %kt
    ```
  }];
}

def ChooseOnDevice : Pass<"tile-choose-on-device", "::mlir::ModuleOp"> {
  let summary = "Let kernels end at once where a number on the device says so";
  let description = [{
    The host does not know what kernels write. Where it would choose by an element of their results (`scf.if`), the kernels
    of both branches are launched, and their blocks read the element: where it chooses the other branch, they end at once
    (`tile.end_block_if`). Both branches write the same memory for what the choice returns, and what else a branch
    allocates it gives back, so that the other one may have it.

    The condition is a comparison of one element with a constant. What a branch returns is memory of a kernel.

    ```mlir
    %e = tensor.extract %flag[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    %r = scf.if %is -> (tensor<?xf16>) {
      gpu.launch_func @kernels::@f ... args(%memory)
      ...
    // becomes
    gpu.launch_func @kernels::@f ... args(%memory, %flag)
    gpu.launch_func @kernels::@g ... args(%memory, %flag)
    ```
  }];
  let dependentDialects = [
    "::flash::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect"];
}

def OverlapLaunches : Pass<"tile-overlap-launches", "::mlir::ModuleOp"> {
  let summary = "Let kernels start before those launched before them end";
  let description = [{
    For machines with `dependent_launches` (`#flash.target`).
    If two launches follow each other in a block of the host, the second becomes
    dependent: its kernel is there when the first one ends, and waits for it before
    it touches global memory. What it computes before that, such as indices, and
    the time of a launch are hidden.

    ```mlir
    gpu.launch_func @kernels::@f ... args(%parts : ...)
    gpu.launch_func @kernels::@combine ... args(%parts : ..., %o : ...)
    gpu.func @f(...) kernel {
    gpu.func @combine(...) kernel {
      %t = tile.load %parts[...]
    // becomes
    gpu.launch_func @kernels::@f ... args(%parts : ...)
    gpu.launch_func @kernels::@combine ... args(%parts : ..., %o : ...) {tile.dependent}
    gpu.func @f(...) kernel {
      tile.launch_dependents
    gpu.func @combine(...) kernel {
      tile.await_dependencies
      %t = tile.load %parts[...]
    ```

    Where launches are in a choice or a loop between the two, the second starts as
    before: which kernel it would follow is not known.
  }];
  let dependentDialects = ["::flash::tile::TileDialect"];
}

def EndEmptyBlocks : Pass<"tile-end-empty-blocks", "::mlir::gpu::GPUFuncOp"> {
  let summary = "End blocks that store nothing before they copy anything";
  let description = [{
    Where all stores of a kernel have no rows under one condition, a block for which it holds ends where the condition
    is known. For example, splits behind the last key store no rows, and only the device knows the number of keys.

    ```mlir
    %rows = arith.select %is_empty, %c0, %n : index
    tile.warp_specialize @consumer(...) {
      ...
      tile.store %o, %out[%s, %i] rows(%rows) : ...
    // becomes
    %rows = arith.select %is_empty, %c0, %n : index
    tile.end_block_if %is_empty
    tile.warp_specialize @consumer(...) {
    ```

    Blocks that take one tile after the other (`persistent`) go on, and so do blocks that copy before the condition
    is known.
  }];
  let dependentDialects = ["::flash::tile::TileDialect"];
}

def AssertStrides : Pass<"tile-assert-strides", "::mlir::ModuleOp"> {
  let summary = "Check at run time that copies of 16 bytes can be made";
  let description = [{
    A thread copies 16 bytes at a time, and offsets inside a tile have 32 bits.
    For every memref that a launched kernel copies from, the host asserts that
    its address is a multiple of 16 bytes, that its strides are, and that the
    rows of a tile span less than 2^31 bytes. The launch says with
    `tile.store_vector_widths` how many elements are stored to each operand at a
    time, for callers that choose the strides of results.

    ```mlir
    gpu.launch_func @kernels::@f ... args(%k : memref<?x64xf16, strided<[?, 1]>>)
    // becomes
    %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %k : ...
    %rest = arith.remsi %strides#0, %c8 : index
    %whole = arith.cmpi eq, %rest, %c0 : index
    cf.assert %whole, "the kernel 'f' copies 16 bytes at a time: ..."
    %aligned = memref.assume_alignment %k, 16 : ...
    gpu.launch_func @kernels::@f ... args(%aligned : ...)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect"];
}

def AllocateSmem : Pass<"tile-allocate-smem", "::mlir::ModuleOp"> {
  let summary = "Allocate shared memory for rings and what else needs it";
  let description = [{
    Sets the `offset` of each `tile.ring`, a multiple of 1024 bytes as the
    widest swizzle needs, of what bulk stores go through and what warps exchange
    in a `tile.reduce_rows`, and the amount of dynamic shared memory in the
    launches. Two rings of one stage have the same memory if two roles put tiles of the same type into them
    alternately: the one waits for the other's tile, and gives it back, before it puts its next, and the other puts its tile
    when it has given back the one before. A kernel that needs more than a block of the module's `flash.target`
    may have is refused.
  }];
}

#endif // FLASH_TILE_TRANSFORMS_PASSES_TD
