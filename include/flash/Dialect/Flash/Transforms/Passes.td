//===- Passes.td - Passes of the flash dialect -------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TRANSFORMS_PASSES_TD
#define FLASH_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

// The options of passes that choose schedules.
defvar scheduleOptions = [
  Option<"schedule", "schedule", "std::string", "\"\"",
         "Keys of #flash.schedule, such as query_tile=64,key_tile=128, which "
         "go before those that the program has">,
  Option<"device", "device", "std::string", "\"\"",
         "Whose schedules in tuning-file to take, such as NVIDIA H200">,
  Option<"tuningFile", "tuning-file", "std::string", "\"\"",
         "A file with measured schedules">
];

// In the order in which the pipelines run them.

def RaiseAttention : Pass<"flash-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Recognise attention that is written in linalg";
  let description = [{
    Replaces a product, a softmax over its last operand's keys and a second
    product by one `flash.attention`, so that no score is ever stored.

    ```mlir
    %s = linalg.batch_matmul ... ins(%q, %k) outs(%zeros)
    %x = arith.mulf %s, %scale : tensor<8x256x256xf32>
    %p = linalg.softmax dimension(2) ins(%x) outs(%e)
    %o = linalg.batch_matmul ins(%p, %v) outs(%zeros2)
    // becomes
    %o = flash.attention %q, %k, %v scale(1.250000e-01) : (tensor<8x256x64xf32>, ...)
    ```

    The match is on what an element of each tensor is, not on the names of ops:
    named ops, `linalg.generic` (fused or not), elementwise `arith` on tensors,
    reshapes and transposes between the products are all evaluated
    symbolically. Recognised are

      - products of rank 2, 3 or 4 (no, one or two batch dimensions) in any
        layout, from an accumulator of zeros; a transpose is inserted where
        `flash.attention` needs another order of dimensions, and key and value
        heads that a broadcast repeats for groups of query heads are read once;
      - `linalg.softmax`, or its maximum, difference, exponential, sum and
        quotient as reductions and elementwise ops;
      - any number of multiplications and divisions by a splat constant;
      - masks: a select of the score or of exactly -inf, or the addition of a
        bias that is 0 or exactly -inf, by any boolean combination of
        comparisons of affine functions of `linalg.index`. A large negative
        number instead of -inf is not a mask: rows that it covers wholly have a
        meaning of their own;
      - casts between float types. The scores are computed in f32 throughout.
        The operands get the widest of the types of query, key, value and
        output, so nothing is rounded more than in the source.

    Left alone is all else, in particular scores or probabilities with another
    use, and head dimensions that `flash.attention` does not take; the latter
    is said in a remark.

    A row that is masked wholly becomes 0, where `linalg.softmax` gives NaN.
    Overflow of 16-bit intermediate results or of narrow index arithmetic is
    not reproduced.
  }];
  let statistics = [
    Statistic<"numRaised", "raised", "Attentions recognised and replaced">,
    Statistic<"numUnsupported", "unsupported",
              "Attentions recognised but of unsupported sizes">
  ];
  let dependentDialects = ["::flash::FlashDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def TileSoftmax : Pass<"flash-tile-softmax", "::mlir::func::FuncOp"> {
  let summary = "Cut a softmax into tiles and run it online";
  let description = [{
    A `linalg.softmax` that is not part of an attention becomes a parallel loop
    over blocks of rows with two passes over each row. The first carries the
    maximum and the sum of the exponentials through the tiles of the row (the
    online softmax of Milakov and Gimelshein, arXiv 1805.02867); the second
    writes the quotients. The exponential is 2 to the power of a multiple of
    log2(e), the state is f32.

    ```mlir
    %p = linalg.softmax dimension(1) ins(%x : tensor<64x4096xf32>) outs(%e)
    // becomes
    scf.forall (%i) = (0) to (64) step (16) shared_outs(%out = %e) {
      %max, %sum = scf.for %j = 0 to 4096 step 128 iter_args(%m, %l) {
        %t = linalg.generic  max_j %x[%i, %j]
        %m1, %r = linalg.generic  max(%m, %t), exp2(log2(e) * (%m - %m1))
        %p = linalg.generic  exp2(log2(e) * (%x[%i, %j] - %m1))
        %l1 = linalg.generic  %l * %r + sum_j %p
      }
      %block = tensor.extract_slice %out[%i, 0]
      scf.for %j = 0 to 4096 step 128 iter_args(%b = %block) {
        %y = linalg.generic  exp2(log2(e) * (%x[%i, %j] - %max)) / %sum
        tensor.insert_slice %y into %b[0, %j]
      }
    }
    ```

    `flash.softmax`, which is of a block of rows already, becomes the same two
    passes. Its sink is one more score, after the first pass.

    Rows are along the dimension before the softmax dimension, or along the
    last one when the softmax is over another. Tiles have static shapes: where a
    length is not known to be a multiple of the tile, the tile is padded with
    -inf. A row of only -inf gives NaN, as `linalg.softmax` says, and 0 with
    `flash.softmax`.

    With `transpose-tiles`, for a CPU, the first pass transposes a tile whose
    rows are not its last dimension, so that vectors run over rows and nothing
    is reduced across lanes.

    Rows that are one step are read once, and there is no loop. So are blocks of
    `whole-rows` elements at most, where their number is known: the blocks have
    fewer rows then, if they must. (Not where tiles are transposed: their two
    passes read in different orders.) A wider row is a block of its own, in as
    few steps as that many elements allow.

    ```mlir
    %m = linalg.generic  max_j %x[%i, %j]
    %p = linalg.generic  exp2(log2(e) * (%x[%i, %j] - %m))
    %l = linalg.generic  sum_j %p
    %y = linalg.generic  %p / %l
    ```

    With `reduction-bytes`, for GPUs, a step is as many bytes of a row as the lanes
    of a warp read at once. A softmax along another dimension than the last has no
    such bytes, and stays as it is.
  }];
  let options = [
    Option<"rowTile", "row-tile", "int64_t", "16",
           "Rows that a parallel iteration computes">,
    Option<"reductionTile", "reduction-tile", "int64_t", "128",
           "Elements of a row in one step">,
    Option<"reductionBytes", "reduction-bytes", "int64_t", "0",
           "Bytes of a row in one step, instead of reduction-tile">,
    Option<"wholeRows", "whole-rows", "int64_t", "0",
           "Most elements of a block whose rows are one step each">,
    Option<"transposeTiles", "transpose-tiles", "bool", "false",
           "Hold tiles with rows last in the first pass">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandRank : Pass<"flash-expand-rank", "::mlir::func::FuncOp"> {
  let summary = "Give rank-3 attention its missing dimension of size one";
  let description = [{
    After this pass every `flash.attention` has rank 4, so that all later passes
    know one form only. The inserted reshapes are views and cost nothing.

    ```mlir
    %o = flash.attention %q, %k, %v : (tensor<8x256x64xf32>, ...)
    // becomes
    %q4 = tensor.expand_shape %q [[0, 1], [2], [3]] ... into tensor<1x8x256x64xf32>
    %o4 = flash.attention %q4, %k4, %v4 : (tensor<1x8x256x64xf32>, ...)
    %o = tensor.collapse_shape %o4 [[0, 1], [2], [3]] ...
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect"];
}

def Specialize : Pass<"flash-specialize", "::mlir::ModuleOp"> {
  let summary = "Make the version of a program for calls with certain sizes";
  let description = [{
    A program whose sizes are open has one schedule for all of them. This makes
    another one of it, which takes whatever it took before but where types say more
    now, and is as fast as one that is written for the sizes:

      - each `flash.attention` gets the schedule that it would have if its operands had
        these sizes (`flash-select-schedule`), or sizes like them: of sizes above 64
        only the three highest bits count;
      - `multiples` says where lengths are multiples of the schedule's tiles, of 64,
        128 or 256, and there is at least one whole tile of queries;
      - where there are up to 32 queries, the numbers of queries and of heads are
        written into the types of the function's arguments, so that heads that read
        the same keys can be packed into tiles (`packed_heads`).

    `sizes` has the sizes of the first arguments, with `?` for what stays open; the
    sizes of other arguments are not known. For rows that `flash.unpack` takes it has the sizes of
    the view, a batch of sequences of the mean length. The result types of the function stay as they are.

    ```mlir
    // flash-specialize{sizes=16x32x1x128,16x8x4096x128,16x8x4096x128}
    func.func @f(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>) -> ... {
      %o = flash.attention %q, %k, %v : ...
    // becomes
    func.func @f(%q: tensor<?x32x1x128xf16>, %k: tensor<?x8x?x128xf16>, %v: tensor<?x8x?x128xf16>) -> ... {
      %o = flash.attention %q, %k, %v schedule(<query_tile = 64, ...>) : ...
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string",
               "Of each argument, such as 16x32x1x128">
  ] # scheduleOptions;
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def PackDocuments : Pass<"flash-pack-documents", "::mlir::func::FuncOp"> {
  let summary = "Compute documents that lie behind each other as packed rows";
  let description = [{
    An attention whose score region keeps the keys with the query's own id, read from one tensor, is computed in one of two
    ways, and the device chooses by the ids (`flash.document_offsets`). If they do not decrease along a row, each document is
    a sequence of packed rows: then tiles begin where documents do, and nothing is masked but by the rest of the mask.
    Otherwise the attention is computed as it is. On a GPU `tile-choose-on-device` has the kernels of the other way end at once.

    That is done on GPUs, where the mask and the score function, apart from the ids, depend on the head, the score and the
    distance from key to query alone, so that they are the same in the document as in the row; and where the attention
    has no schedule, lengths, lists of blocks or gradients of captured tensors of its own. In B rows of N elements there may be
    B + B N / 128 documents. `sizes` are known sizes of the function's first arguments, as for `flash-specialize`: nothing is
    chosen for fewer than 8192 elements of all rows, for which it was not measured.

    ```mlir
    %o = flash.attention %q, %k, %v mask(#flash.causal) score { ... flash.yield %s keep %same : f32 }
    // becomes
    %offsets, %count = flash.document_offsets %ids of[%b, %n] most(%c)
    %e = tensor.extract %count[%c0]
    %is_packed = arith.cmpi ne, %e, %c0_i32
    %o = scf.if %is_packed {
      %qs, %n = flash.unpack %q by %offsets count(%count)
      ...
      %os = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%n) key_lengths(%n)
      %packed = flash.pack %os by %offsets into %empty
      scf.yield %packed
    } else {
      %o = flash.attention %q, %k, %v mask(#flash.causal) score { ... flash.yield %s keep %same : f32 }
      scf.yield %o
    }
    ```
  }];
  let options = [
    ListOption<"sizes", "sizes", "std::string",
               "Of each argument, such as 16x32x?x128">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def MakeVersions : Pass<"flash-make-versions", "::mlir::ModuleOp"> {
  let summary = "Make versions of a program, and let each call take one by its sizes";
  let description = [{
    Each public function becomes a choice between versions of itself, made by
    `flash-specialize`, and the program as it was, for calls of other sizes. So one
    function is as fast for one query as for many.

    `calls` names the sizes of calls, with semicolons between calls: the sizes of the first arguments, as
    `flash-specialize` takes them, with `first..last` for all sizes in a range and `?` for what other arguments say,
    or what decides nothing.
    Ranges are cut into classes of sizes with the same version (`SizeClass.h`), those
    that Python's calls have, too. Classes of the same version are one condition, on
    batch sizes, numbers of heads and lengths; a condition on what types say is none.
    If keys are in pages, the table's sizes are the batch size and what stands for the length.

    ```mlir
    // flash-make-versions{calls=16x32x1x128,16x8x1..65536x128}
    func.func @f(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, ...) -> tensor<?x?x?x128xf16> {
      %o = flash.attention %q, %k, %v : ...
      return %o
    // becomes
    func.func @f(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, ...) -> tensor<?x?x?x128xf16> {
      %is_one_query = ...  // of 16 batches, 32 heads on 8, and up to 73727 keys
      %r = scf.if %is_one_query -> (tensor<?x?x?x128xf16>) {
        %q1 = tensor.cast %q : tensor<?x?x?x128xf16> to tensor<?x32x1x128xf16>
        %o = flash.attention %q1, %k1, %v1 schedule(<query_tile = 64, packed_heads = 4, ...>) : ...
        scf.yield ...
      } else {
        %o = flash.attention %q, %k, %v : ...
        scf.yield %o
      }
      return %r
    ```

    Refused are calls that do not say all that schedules depend on, that contradict
    types or themselves, that say what decides nothing, and more than 65536 classes.
  }];
  let options = [
    Option<"calls", "calls", "std::string", "\"\"",
           "Sizes of the arguments of each call, such as "
           "16x32x1x128,16x8x1..4096x128">
  ] # scheduleOptions;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AssertShapes : Pass<"flash-assert-shapes", "::mlir::func::FuncOp"> {
  let summary = "Check at run time the sizes that types leave open";
  let description = [{
    Inserts a `cf.assert` before each `flash.attention` for every rule about
    sizes that dynamic dimensions leave open: batch sizes, head counts and
    lengths agree, there is a key head and query heads are a multiple of key
    heads, lengths and sinks have an entry per batch and per query head, and
    static result sizes agree with the sizes of the operands. Rules that the
    types already guarantee cost nothing. Reads of arrays in a score region are
    checked, too. An array that is read at the batch, head, query or key has an
    element for each, and an array that is read at a constant has that element.
    An index that is computed from positions, each used once, by sums,
    differences, products with constants, quotients and remainders by constants,
    minima and maxima stays within the array; if it uses the query or the key,
    this is checked only if every element takes part. The message names the
    rule, the source line, and the argument where its name is known.

    ```mlir
    %o = flash.attention %q, %k, %v : (tensor<2x4x?x64xf32>, ...)
    // becomes
    %c2 = arith.constant 2 : index
    %nk = tensor.dim %k, %c2 : tensor<2x4x?x64xf32>
    %nv = tensor.dim %v, %c2 : tensor<2x4x?x64xf32>
    %agree = arith.cmpi eq, %nk, %nv : index
    cf.assert %agree, "flash.attention at a.mlir:1:6: lengths of key and value differ"
    %o = flash.attention %q, %k, %v : (tensor<2x4x?x64xf32>, ...)
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
}

def SeparateMasks : Pass<"flash-separate-masks", "::mlir::func::FuncOp"> {
  let summary = "Find the mask in score regions that write it as -inf";
  let description = [{
    A score region that gives -inf by a condition which does not depend on the
    score masks elements: it becomes one that says so. Only then are masked
    elements left out of products, and tiles of them not visited. If several
    such choices are inside each other, all are found. A choice by the score stays
    as it is, and so does another number than -inf. An attention that has a block map
    stays as it is, too: the map is of the mask that it has.

    ```mlir
    %x = arith.select %same, %s, %minus_infinity : f32
    flash.yield %x : f32
    // becomes
    flash.yield %s keep %same : f32
    ```
  }];
  let options = [
    Option<"onlyUnsaid", "only-unsaid", "bool", "false",
           "Leave alone what says its mask, as an attribute or behind keep">
  ];
  let dependentDialects = ["::flash::FlashDialect",
                           "::mlir::arith::ArithDialect"];
}

def GuardReads : Pass<"flash-guard-reads", "::mlir::func::FuncOp"> {
  let summary = "Keep elements that are left out from reading out of range";
  let description = [{
    Tiles compute scores of elements that a mask or a length leaves out, and of
    rows that pad a tile, and drop them. The indices that a score region computes
    from the query, the key or the score are therefore put behind `flash.guard`,
    and so are the divisors of integers; a lowering of the region makes a
    select of it where elements may be left out, and nothing elsewhere.

    Not guarded are the query and the key themselves, which tiles clamp to those
    that exist; indices that depend on batch and head alone, which must be in
    range for each of them; and those that are in range whatever the position
    is, by the ranges of what they are computed from.

    ```mlir
    %d = arith.subi %i, %j : index
    %x = tensor.extract %table[%d] : tensor<?xf32>
    // becomes
    %d = arith.subi %i, %j : index
    %n = flash.guard %d else 0 : index
    %x = tensor.extract %table[%n] : tensor<?xf32>
    ```
  }];
  let dependentDialects = ["::flash::FlashDialect"];
}

def WidenIndices : Pass<"flash-widen-indices", "::mlir::func::FuncOp"> {
  let summary = "Compute in 64 bits what 32 do not hold";
  let description = [{
    An index has 64 bits on the CPU and 32 on a GPU. In a score region, operations of
    index type become operations of i64 where that makes a difference, by the
    ranges of their operands: a comparison or a quotient of numbers that 32 bits do
    not hold, an index of a dimension of more than 2^31 elements, and what these
    are computed from. Sums and products whose low 32 bits are all that is used
    stay. Open sizes are supposed to be at most 2^31 - 1, which the host checks, and open lengths
    of queries and keys at most 4194304.

    ```mlir
    %n = arith.muli %i, %i : index
    %far = arith.cmpi sgt, %n, %c100 : index
    // becomes
    %wide = arith.index_cast %i : index to i64
    %n = arith.muli %wide, %wide : i64
    %far = arith.cmpi sgt, %n, %c100_i64 : i64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def CheckBlocks : Pass<"flash-check-blocks", "::mlir::func::FuncOp"> {
  let summary = "Have lists of blocks that a caller gives checked";
  let description = [{
    Writes a `flash.check_blocks` for each list of an attention, or of gradients,
    that is of blocks of the caller's. Part of the reference that
    `flash-run --check` compares with, and of emulation.

    ```mlir
    %o = flash.attention %q, %k, %v blocks(%list, %counts : ...) of [128, 128] : ...
    // becomes
    flash.check_blocks %list, %counts below %n : ...
    %o = flash.attention %q, %k, %v blocks(%list, %counts : ...) of [128, 128] : ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::tensor::TensorDialect"];
}

def AssertReads : Pass<"flash-assert-reads", "::mlir::ModuleOp"> {
  let summary = "Check at run time that elements are read and written in range";
  let description = [{
    Inserts a `cf.assert` before each `tensor.extract`, `memref.load` and
    `memref.store` for every index that may be negative or too large. Part of the reference that
    `flash-run --check` compares with, and of emulation, where the elements that
    `flash.guard` keeps from reading pass.

    A `flash.check_blocks` becomes loops that assert that the numbers of lists are in range; with `only-blocks` nothing
    else is done.

    ```mlir
    %x = tensor.extract %table[%n] : tensor<100xf32>
    // becomes
    %some = arith.cmpi sge, %n, %c0 : index
    cf.assert %some, "tensor.extract at a.mlir:7:10: the index of dimension 0 is negative"
    %below = arith.cmpi slt, %n, %c100 : index
    cf.assert %below, "tensor.extract at a.mlir:7:10: the index of dimension 0 is not below the size of the dimension, 100"
    %x = tensor.extract %table[%n] : tensor<100xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
  let options = [Option<"onlyBlocks", "only-blocks", "bool", "false",
    "Check lists of blocks where the program says so, and no reads">];
}

def AttachTarget : Pass<"flash-attach-target", "::mlir::ModuleOp"> {
  let summary = "Say which machine the module is for";
  let description = [{
    Writes the attribute `flash.target` of the module (`#flash.target`), which says all that schedules and
    kernels know of the machine. A module that is for `target` already keeps what it says of it. Without
    options the module stays as it is, and `keys` alone are of the GPU that it is for, or of sm_90a.

    ```mlir
    module { ... }
    // becomes, with target=sm_90a keys=multiprocessors=114,
    module attributes {flash.target = #flash.target<sm_90a, multiprocessors = 114>} { ... }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"",
           "cpu, emulate, or the name of a GPU such as sm_90a">,
    Option<"keys", "keys", "std::string", "\"\"",
           "Keys of #flash.target that differ, such as multiprocessors=114">
  ];
  let dependentDialects = ["::flash::FlashDialect"];
}

def SelectSchedule : Pass<"flash-select-schedule", "::mlir::func::FuncOp"> {
  let summary = "Complete the schedule of every attention";
  let description = [{
    Writes `schedule(#flash.schedule<...>)` on each `flash.attention`. Each key
    comes from the first of these that has it: the option `schedule`, the
    attribute that the program has, what was measured on `device`, a model.

    The model's are the largest tiles that pay, reduced until what one step touches (query,
    scores, accumulators, keys and values) fits the second-level cache, and
    until there are enough query tiles for the threads.

    For GPUs the tiles are for thread blocks: the largest that need
    no registers in memory, or half as many queries where these would give few
    blocks. Whether they fit into registers and shared memory is checked,
    whoever chose them. Where there may be too few CTAs for the multiprocessors,
    `split_ctas` says how many there should be. Where the machine has products of warpgroups, warps have
    roles too, if the elements have 16 bits.

    Schedules that were measured on `device` are in `tuning-file`
    (docs/tuning.md).

    The target `emulate` takes the tiles of the CPU, but does not drop `num_splits`
    and `split_ctas`, which the target `cpu` does.

    ```mlir
    %o = flash.attention %q, %k, %v : (...)
    // becomes
    %o = flash.attention %q, %k, %v
           schedule(<query_tile = 64, key_tile = 128>) : (...)
    ```
  }];
  let options = scheduleOptions;
}

def MakeBlockMaps : Pass<"flash-make-block-maps", "::mlir::func::FuncOp"> {
  let summary = "Have the device list the tiles that masks leave";
  let description = [{
    A mask that a score region computes, from arrays for example, is known only
    when the program runs, and `flash-refine-visits` gives up on some others. Such an
    attention gets a `flash.block_map` for the tiles of its schedule, which is
    computed in the call. An attention whose schedule says `block_map = 1` and whose mask the compiler knows gets one,
    too, if the mask leaves tiles of keys that are no range: sinks beside a window, for example. One map is for all
    batches, or all heads, where the mask does not depend on them; heads that share tiles (`packed_heads` of the
    schedule) share a map.

    The programs of gradients over queries and over keys have a map each. One program is over keys, and if its
    blocks add in order (`products = 5` where warps have roles), its map says in which: so it has one for each mask that
    leaves tiles of queries no range of tiles of keys, or the other way round, too.

    Splits of a number of keys (`split_keys`) and attention on a single tile of keys stay as they are, and so
    do attention that has a map and one whose schedule says `block_map = 0`. Attention whose results nobody
    uses is erased.

    ```mlir
    %o = flash.attention %q, %k, %v schedule(<query_tile = 128, key_tile = 64, ...>) score {
      ...
      flash.yield %s keep %same : f32
    } : (...)
    // becomes
    %tiles, %counts = flash.block_map of[1, 1, 4096, 4096] tiles([128, 64]) keep {
      ...
      flash.yield %same : i1
    } : tensor<1x1x32x64xi32>, tensor<1x1x32x2xi32>
    %o = flash.attention %q, %k, %v blocks(%tiles, %counts : ...) schedule(...) score { ... } : (...)
    ```
  }];
  let dependentDialects = ["::flash::FlashDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"];
}

def OutlineBlockMaps : Pass<"flash-outline-block-maps", "::mlir::ModuleOp"> {
  let summary = "Compute block maps in functions of their own, for many calls";
  let description = [{
    Each public function with block maps takes them as arguments, behind its own, and a
    second function, named like it with `_plan` behind it, takes the function's own arguments and returns
    them: `key_tiles`, `counts` and, if there are any, `ranks` of each. So one call of the second serves many of the
    first, for as long as sizes are the same and arrays hold the same. Maps that are given are
    arguments already; one inside of another operation, such as a choice between versions, is an error.

    ```mlir
    func.func @f(%q: !q, %ids: tensor<?xi32>) -> !q {
      %t, %n = flash.block_map of[1, 1, %nq, %nk] tiles([64, 64]) keep { ... %ids ... } : !t, !n
      %o = flash.attention %q, %q, %q blocks(%t, %n : !t, !n) ...
      return %o : !q
    }
    // becomes
    func.func @f(%q: !q, %ids: tensor<?xi32>, %key_tiles: !t, %tile_counts: !n) -> !q {
      %t, %n = flash.block_map of[1, 1, %nq, %nk] tiles([64, 64]) given(%key_tiles, %tile_counts : !t, !n) keep { ... } : !t, !n
      %o = flash.attention %q, %q, %q blocks(%t, %n : !t, !n) ...
      return %o : !q
    }
    func.func @f_plan(%q: !q, %ids: tensor<?xi32>) -> (!t, !n) {
      %t, %n = flash.block_map of[1, 1, %nq, %nk] tiles([64, 64]) keep { ... %ids ... } : !t, !n
      %o = flash.attention ...  // for the checks of its sizes alone
      return %t, %n : !t, !n
    }
    ```
  }];
  let dependentDialects = ["::flash::FlashDialect"];
}

def OnlineSoftmax : Pass<"flash-online-softmax", "::mlir::func::FuncOp"> {
  let summary = "Rewrite attention as a step of the online softmax";
  let description = [{
    Rewrites `flash.attention` as the initial state, one `flash.online_attention`
    over all keys, and `flash.finalize`. Because the step is associative over
    slices of keys, tiling may then cut the keys without changing the result
    (Milakov and Gimelshein, arXiv 1805.02867). A sink enters as the state
    (0, sink / unit, 1) of a key with that logit and no value.

    ```mlir
    %o = flash.attention %q, %k, %v mask(#flash.causal) : (...)
    // becomes
    %acc = linalg.fill 0, %max = linalg.fill -inf, %sum = linalg.fill 0
    %a, %m, %l = flash.online_attention ins(%q, %k, %v) outs(%acc, %max, %sum)
        at[0, 0, 0, 0] of[512, 512] scale(0.125) unit(0.125) mask(#flash.causal)
    %o = flash.finalize ins(%a, %m, %l) outs(%empty) unit(0.125)
    ```

    The unit is the scale, or 1 where a region changes scores, or where the scale
    is not positive or beyond 2^-64 or 2^64.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

def DecomposeNaive : Pass<"flash-decompose-naive", "::mlir::func::FuncOp"> {
  let summary = "Lower attention to scores, softmax and product";
  let description = [{
    Lowers `flash.attention` to the three computations of an implementation
    that knows nothing of the online softmax: the scores, which it materialises;
    their softmax, rounded to the elements' type; and the product with the
    values. This is the baseline that the other passes must beat, and, followed
    by `flash-promote-to-f64`, the reference that they must agree with.

    With `row-block=R` the same computation is emitted for R queries of one
    head at a time, so that R x Nk scores exist instead of B x H x Nq x Nk.

    ```mlir
    %o = flash.attention %q, %k, %v mask(#flash.causal) : (...)
    // becomes
    %kt = linalg.generic ... transpose %k                  // [B, Hkv, D, Nk]
    %qk = linalg.generic ... ins(%q, %kt)                  // [B, Hq, Nq, Nk]
    %s = linalg.generic { select(j <= i + nk - nq, score(scale * qk), -inf) }
    %max = linalg.generic ... maximumf
    %e = linalg.generic { exp(s - max) }
    %sum = linalg.generic ... addf
    %p = linalg.generic { truncf(e / sum) }
    %pv = linalg.generic { acc + select(j <= i + nk - nq, p * v, 0) }
    %o = linalg.generic { truncf(pv) }
    ```
  }];
  let options = [
    Option<"rowBlock", "row-block", "int64_t", "0",
           "Queries whose scores are held at a time; 0 holds all scores">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def DecomposeNaiveGrad
    : Pass<"flash-decompose-naive-grad", "::mlir::func::FuncOp"> {
  let summary = "Lower the gradients of attention to their definition";
  let description = [{
    Lowers `flash.attention_grad` to what its description says, in loops over
    the key heads of each batch, the query heads that read one, and blocks of
    queries: the scores of a block with all keys and, from the log-sum-exp, their
    probabilities; the gradients of both; and three products. All of it is f32 but the
    results, and the sums for sinks and captured tensors, which are f64. Followed by `flash-promote-to-f64` this is the
    reference of gradients; it shares nothing with a program on tiles but the
    predicate of masks and the derivative of the score region.

    The loop over key heads is parallel, unless captured tensors have gradients:
    these are sums over all elements, to which is added one after the other.

    ```mlir
    %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) : (...)
    // becomes
    %delta = linalg.generic { acc + do * o }                      // [B, Hq, Nq]
    scf.forall (%b, %hk) in (...) shared_outs(dq, dk, dv) {
      %kt = linalg.generic ... transpose %k                       // [D, Nk]
      %vt = linalg.generic ... transpose %v
      scf.for %g ... scf.for %i0 ... step 64 iter_args(dq, dk = 0, dv = 0) {
        %x = linalg.generic { scale * (q k^T) }                   // [64, Nk]
        %p = linalg.generic { select(j <= i + nk - nq, exp(x - lse), 0) }
        %dp = linalg.generic ... ins(%do, %vt)
        %ds = linalg.generic { select(j <= i + nk - nq, p * (dp - delta), 0) }
        %dqi = linalg.generic { acc + select(j <= i + nk - nq, ds * k, 0) }
        %dkj = linalg.generic { acc + select(j <= i + nk - nq, ds * q, 0) }
        %dvj = linalg.generic { acc + select(j <= i + nk - nq, p * do, 0) }
      }
    }
    ```
  }];
  let options = [
    Option<"rowBlock", "row-block", "int64_t", "64",
           "Queries whose scores are held at a time; 0 holds the scores of a whole head">
  ];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def TileNaive : Pass<"flash-tile-naive", "::mlir::func::FuncOp"> {
  let summary = "Lower attention to three loops over tiles that store all scores";
  let description = [{
    The naive computation of `flash-decompose-naive` at the level of tiles, for
    GPUs: three parallel loops, whose bodies are products and elementwise
    arithmetic on one tile, or the softmax of a few rows.

    ```mlir
    %o = flash.attention %q, %k, %v mask(#flash.causal) : (...)
    // becomes
    %s = flash.kernel (%b, %h, %i, %j) over(...) by [1, 1, 128, 128] {
      %qk = scf.for %d = 0 to %dim step 64 iter_args(%acc = 0) {
        %a = linalg.contract ... ins(%q[%b, %h, %i, %d], %k[%b, %h, %j, %d]) outs(%acc)
      }
      %m = linalg.generic { select(j <= i + nk - nq, score(scale * qk), -inf) }
      %r = arith.truncf %m
    }
    %p = flash.kernel (%b, %h, %i) over(...) by [1, 1, 8] {
      %w = flash.softmax %s[%b, %h, %i]
    }
    %o = flash.kernel (%b, %h, %i, %d) over(...) by [1, 1, 128, 128] {
      %x = scf.for %j = 0 to %nk step 64 iter_args(%acc = 0) {
        %a = linalg.contract ... ins(%p[%b, %h, %i, %j], %v[%b, %h, %j, %d]) outs(%acc)
      }
      %r = arith.truncf %x
    }
    ```

    The scores are rounded to the operands' type, f16, bf16 or f32, as a
    library's product of matrices does, but only once, after scale and
    modification. The columns of scores and probabilities are padded to whole
    tiles, which are -inf and 0, so that every row starts at a multiple of 16
    bytes whatever the number of keys. A schedule is ignored: tiles have 128
    queries and keys, or 64 if they are f32. The head dimensions are cut into
    equal parts, of at most half as many elements in the first loop and as many
    in the third.

    A masked element has the probability 0, and 0 times its value is added. So
    NaN and infinite values reach all rows, as they do in such implementations.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"];
}

def PromoteToF64 : Pass<"flash-promote-to-f64", "::mlir::ModuleOp"> {
  let summary = "Compute in f64 instead of f16, bf16 and f32";
  let description = [{
    Changes the type of every floating-point value narrower than f64, of every
    constant, argument and result, and drops the conversions that thereby become
    identities. After `flash-decompose-naive` this gives the reference of a
    program: called with exact copies of the inputs, it returns what the program
    would in exact arithmetic, up to rounding in f64.

    It knows the dialects that a program consists of before it is lowered to
    LLVM, and refuses what has no meaning in f64: ops of other dialects, casts
    of bit patterns, and external functions that take or return such values.

    ```mlir
    func.func @f(%x: tensor<4xf16>) -> f32 {
      %y = tensor.extract %x[%i] : tensor<4xf16>
      %z = arith.extf %y : f16 to f32
      return %z : f32
    // becomes
    func.func @f(%x: tensor<4xf64>) -> f64 {
      %y = tensor.extract %x[%i] : tensor<4xf64>
      return %y : f64
    ```
  }];
}

def TileGrad : Pass<"flash-tile-grad", "::mlir::func::FuncOp"> {
  let summary = "Tile the gradients of attention";
  let description = [{
    Lowers `flash.attention_grad` to programs over tiles of the schedule's sizes:

      1. rows: `delta`, the sums of the products of the output and its gradient
         less the gradient of the log-sum-exp, and the log-sum-exp in base 2.
         Beyond 2^25 its rounding could make probabilities infinite: steps
         of f32 limit them to 1, and have less to subtract by 2^-21 of it; in others
         it becomes infinite, and probabilities 0;
      2. tiles of queries: a loop over tiles of keys adds up the gradient of the
         query (`flash.query_grad_step`);
      3. tiles of keys: a loop over the query heads that read the key head, and
         in it one over tiles of queries, adds up the gradients of the key and of
         the value (`flash.key_grad_step`);
      4. heads, where there is a sink: sums of rows;
      5. for each captured tensor of `wrt`, tiles of scores, whose contributions
         (`flash.captured_grad_step`) are added up where the reads are of one
         element: over all keys of a query, or all queries of a key, if an index
         depends on one of them or on none; over pairs of tiles that are as far apart if
         it depends on the distance; else of each pair of a query and a key. Then, for each element
         of the tensor, the partial sums with the index of that element are added up.
         An index that depends on the score is an error.

    Scores are computed twice, and once for each captured tensor, so that no two iterations of a parallel loop add to
    the same result, which is therefore the same bit for bit in each run. With `products = 5` of the schedule the
    programs 2 and 3 are one, over tiles of keys, in which scores are computed once: its iterations add to the
    gradients of queries in a fixed order (`flash.contribute`, `flash.parallel_add`; under a mask the last tiles of
    keys come first, `#flash.order<reverse>`, and where tiles end with the last queries the last heads come forwards,
    `#flash.order<both_ways>`), which a program over rows then rounds. The program of rows writes the zeros that their
    counts begin with. Without `specialize_warps` an iteration has a head of keys, whose tiles add to the gradients of
    its queries one after the other, in the result itself. Its keys are up to eight parts, whose sums are added up in
    their order: by the iteration or, where all batches have less than eight heads and each part is an iteration, by
    the program over rows. Ragged tiles are padded with zeros; queries and keys that do not exist are left out by
    `queries(n)` and `keys(n)`.

    ```mlir
    %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do
    // becomes
    %rows:2 = flash.kernel (%b, %h, %i) over(2, 4, 512) by [1, 1, 16] { ... }
    %dq = flash.kernel (%b, %h, %i) over(2, 4, 512) by [1, 1, 64] {
      %0 = scf.for %j = %c0 to %c512 step %c128 { flash.query_grad_step ... }
      ...
    }
    %dkv:2 = flash.kernel (%b, %hk, %j) over(2, 2, 512) by [1, 1, 128] {
      %0:2 = scf.for %h = %hk * 2 to %hk * 2 + 2 step %c1 {
        scf.for %i = %c0 to %c512 step %c64 { flash.key_grad_step ... }
      }
      ...
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def Tile : Pass<"flash-tile", "::mlir::func::FuncOp"> {
  let summary = "Tile the online step over query tiles and key tiles";
  let description = [{
    Lowers a whole-tensor `flash.online_attention` and its `flash.finalize` to
    a `flash.kernel` over (batch, head, query tile) around a `flash.visit`
    of key tiles that carries the state. All tiles have the static sizes of
    the schedule: a ragged last tile is padded with zeros, its padded queries
    are computed and dropped, its padded keys excluded by `keys(n)`. With
    `lengths` the visit ends at `lengths[b]`; with a block map it is of the tiles that the map lists.

    ```mlir
    %a, %m, %l = flash.online_attention ins(%q, %k, %v) outs(%acc, %max, %sum)
    %o = flash.finalize ins(%a, %m, %l) outs(%empty)
    // becomes
    %o = flash.kernel (%b, %h, %i) over(2, 4, 512) by [1, 1, 64]
        shared_outs(%out = %empty) {
      %qt = flash.load_rows %q[%b, %h, %i] ...
      %s:3 = flash.visit keys tile(128) from %c0 to %c512 by %c128 exist(%c512) init(...) {
      ^bb0(%j: index, ...):
        %kt = flash.load_rows %k[%b, %h, %j] ...
        %vt = flash.load_rows %v[%b, %h, %j] ...
        flash.online_attention ins(%qt, %kt, %vt) outs(...) at[%b, %h, %i, %j]
      }
      %ot = flash.finalize ins(%s#0, %s#1, %s#2) ...
      tensor.parallel_insert_slice %ot into %out[%b, %h, %i, 0] ...
    }
    ```

    With `packed_heads = P` of the schedule the loop takes P heads that read the same
    keys at a time, and a tile has the rows of `query_tile` floordiv P queries of each,
    starting with the rows of the first query:

    ```mlir
    %o = flash.kernel (%b, %h, %i) over(2, 32, 2) by [1, 4, 16]
        shared_outs(%out = %empty) {
      %qt = flash.load_rows %q[%b, %h, %i] rows(%c2) packed(4) ... -> tensor<64x64xf16>
      ...
        flash.online_attention ins(%qt, %kt, %vt) outs(...) at[%b, %h, %i, %j] of[2, 512] packed(4)
      ...
      tensor.parallel_insert_slice ... into %out[%b, %h, %i, 0] [1, 4, 2, 64] ...
    }
    ```

    With split-KV (`num_splits` or `split_ctas` of the schedule) the loop is over
    splits of the keys too. Each takes every n-th key tile and writes an output in
    f32 and a log-sum-exp, which a second loop combines; only the first split
    starts from the initial state.

    ```mlir
    %splits:2 = flash.kernel (%s, %b, %h, %i) over(3, 2, 4, 512) by [1, 1, 1, 64] {
      scf.for %j = %s * 128 to %c512 step %c384 { flash.online_attention ... }
      flash.finalize ... -> (tensor<64x64xf32>, tensor<64xf32>)
    }
    %o = flash.kernel (%b, %h, %i) over(2, 4, 512) by [1, 1, 8] {
      flash.combine %splits#0[:, %b, %h, %i], %splits#1[:, %b, %h, %i]
    }
    ```

    More than 128 columns of up to 16 queries are combined in blocks, by the first position of the second loop.

    If their number is known at run time only, the first loop writes the results
    itself where it is 1, and the second has no iteration.

    Splits of a number of keys (`split_keys`) are ranges. With lengths a split that begins behind the last key stores
    no rows, and `flash.combine` is of the splits that have keys, of the first one at least.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect"];
}

def TileBlockMaps : Pass<"flash-tile-block-maps", "::mlir::func::FuncOp"> {
  let summary = "Compute block maps in two parallel loops";
  let description = [{
    A map that is given is what it is. Any other is computed.

    Tiles whose kind is known are set first: tiles that the mask leaves out or whole (`MaskTiles.h`), that lie behind
    the lengths, or for which the region's comparisons, at the ends of a tile's positions, have one result. An
    iteration whose tiles are all known evaluates no elements. Without a region, and where the kinds of all
    tiles are known, the second loop is the only one.

    The first loop counts what a mask leaves of each pair of tiles: an iteration has one tile of queries and eight
    tiles of keys, and each tile of keys is a row of a tile of `linalg`. An iteration of the second loop has one tile
    of queries and eight entries of its list, and finds by bisection which key tile each entry is: the first tile up
    to which enough tiles are left. So all entries are found in parallel, whichever iteration is first, and are in
    order. Where lists are of runs (`ranks`), an entry is a run: it begins at the first tile up to which enough runs
    have begun, and its partial tiles and the run itself end before the next tile of another kind. A run begins with a
    partial tile behind a tile that is not partial, or with a whole tile behind an empty one. The rank of a tile is
    how many later rows have something of it.

    ```mlir
    %kept = flash.kernel (%b, %h, %i, %t) over(...) by [1, 1, 128, 8] {
      %n = scf.for %row = 0 to %rows iter_args(%sum = 0) {
        %k = linalg.generic { select(keep(%b, %h, %i + %row, (%t + d0) * 64 + d1), 1, 0) }
        %sum1 = linalg.generic  %sum + sum_d1 %k
      }
      tensor.parallel_insert_slice %n into %counts[%b, %h, %i floordiv 128, %t]
    }
    %tiles, %counts = flash.kernel (%b, %h, %i, %entry) over(...) by [1, 1, 128, 8] {
      %parts = ...  // how many key tiles have 0 < kept < all
      %first, %last = scf.for %step = 0 to %log2Tk iter_args(%from = 0, %to = %Tk - 1) {
        %middle = (%from + %to) floordiv 2
        %n = linalg.generic  sum_d1 select(d1 <= %middle && kept[d1] is of the kind of %entry + d0, 1, 0)
        // to the left where %n is more than %entry + d0 (behind the parts, that less %parts)
      }
      tensor.parallel_insert_slice %first into %tiles[%b, %h, %i floordiv 128, %entry]
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def TileDocuments : Pass<"flash-tile-documents", "::mlir::func::FuncOp"> {
  let summary = "Find where documents begin";
  let description = [{
    A `flash.document_offsets` becomes two kernels. The first counts, for each 128 elements of a row, the documents that begin
    there and the ids that are less than the one before. In the second each document looks for its first element: the
    last stretch of 128 counts before which no more documents begin than before it, then the count, then the element.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def RefineVisits : Pass<"flash-refine-visits", "::mlir::func::FuncOp"> {
  let summary = "Say which tiles a mask leaves to a visit";
  let description = [{
    A key tile is *empty* for a query tile if every element is masked, *full* if
    none is, else *partial*. The pass writes `tiles` to each `flash.visit` whose step has a mask, or tiles
    that may lack rows, so that empty tiles are never visited and only partial tiles are computed with the mask. The
    classification is exact for every mask (see `MaskTiles.h`); a mask that is too complicated to be exact
    gets a warning. A visit of queries is classified as one of keys under the transposed mask, a
    diagonal for the distance instead of the tile of queries. What a step contributes to each of the tiles that it visits
    (`flash.contribute`) is among the contributions of the tiles that visit it, which `contributors` says.

    Where the program asserts that a length is a multiple of tiles (`flash-assert-shapes` does), a bound leaves out what it
    need not say then: the full tiles of a causal mask end at the last tile that is visited.

    The pass also says in which order blocks take tiles of queries which the mask makes longer or shorter
    (`#flash.order`), unless the program does. Visits of lists, and visits of tiles that do not start at multiples of
    their size, are left as they are.

    ```mlir
    flash.visit keys tile(128) from %c0 to %c512 by %c128 exist(%c512) init(...) {
      ... flash.online_attention ... mask(#flash.causal)
    }
    // becomes
    flash.visit keys tile(128) from %c0 to %c512 by %c128 exist(%c512)
        tiles(#flash.tiles<hi = [...], full_hi = [...]>) init(...) { ... }
    ```
  }];
}

def CountTiles : Pass<"flash-count-tiles", "::mlir::ModuleOp"> {
  let summary = "Count the tiles that a run visits";
  let description = [{
    Puts a call of the runtime function `flash_count_tile` before each
    `flash.online_attention`, telling whether the step has a mask. It runs after
    `convert-flash-to-scf`, and only on request (`flash-run --count-tiles`), to show
    how much work a mask leaves and that no empty tile is visited.

    ```mlir
    flash.online_attention ... mask(#flash.causal)
    // becomes
    %masked = llvm.mlir.constant(true) : i1
    llvm.call @flash_count_tile(%masked) : (i1) -> ()
    flash.online_attention ... mask(#flash.causal)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def Decompose : Pass<"flash-decompose", "::mlir::func::FuncOp"> {
  let summary = "Write the operations on one tile as linalg";
  let description = [{
    Lowers `flash.online_attention`, `flash.finalize` and the steps of gradients
    (`flash.query_grad_step`, `flash.key_grad_step`, `flash.captured_grad_step`) on
    tiles into linalg, arith and math ops on statically shaped tensors. A score
    region that has no derivative is an error. Every target takes this
    text; what it computes is written nowhere else. Rows are queries, columns
    keys, products take the elements as they are and give f32:

    ```mlir
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %v) outs(%a, %m, %l) ...
    // becomes
    %s = linalg.contract  s[i, j] = sum_d q[i, d] * k[j, d]
    %x = linalg.generic   select(the mask keeps (i, j), s[i, j], -inf)
    %t = linalg.generic   max_j x[i, j]
    %m1, %r = linalg.generic  max(m[i], t[i]), exp2(c[i] * m[i] - z[i])
    %c, %z = linalg.generic  ..., max(c[i] * m1[i], the least f32)
    %p = linalg.generic   exp2(c[i] * x[i, j] - z[i])
    %l1 = linalg.generic  l[i] * r[i] + sum_j p[i, j]
    %pt = arith.truncf %p                          // to the type of %v
    %a1 = linalg.contract  a[i, d] * r[i] + sum_j pt[i, j] * v[j, d]
    ```

    where `c` is the unit times log2(e). With a score region, or a scale that is
    not the unit, `%x` are scores divided by the unit. The rounding of `%z` makes all
    exponentials of a row larger by the same factor, which leaves the range of
    numbers where the maximum is large: `c` is then a power of two near it, so that
    `%z` is exact. Steps whose schedule has no roles lack the registers for a `c` of each row, but for
    `transpose-scores`. If they are of f32, `%p` is `exp2(c * (x[i, j] - m1[i]))`, whose difference is exact, and `%t`
    starts from the least f32, which is finite. If they are of 16 bits, their products are too short for one more
    instruction, and all rows have the same `c` unless a score region changes scores: rows of scores above 2^30, with
    values of f16 above 2^28, are NaN or 0. A step whose schedule has the feature `lazy_rescale` leaves the maxima as
    they are unless one of them grows by more than 8, which `flash.any` tests.

    `flash.combine` of a block of rows becomes a loop over its splits, up to eight
    at a time, which are read before the first is needed:

    ```mlir
    %o = flash.combine %outs, %lses : (tensor<?x8x64xf32>, tensor<?x8xf32>) -> tensor<8x64xf16>
    // becomes
    %a, %m, %l = scf.for %s = 0 to %splits step 8 iter_args(...) {
      %y0 = tensor.extract_slice %lses[%s, 0] [1, 8]
      %o0 = tensor.extract_slice %outs[%s, 0, 0] [1, 8, 64]
      ...
      %t = linalg.generic  max(%y0, ..., %y7)
      %m1, %r = linalg.generic  max(%m, %t), exp(%m - %m1)
      %w0 = linalg.generic  exp(%y0 - %m1)
      %l1 = linalg.generic  %l * %r + %w0 + ...
      %a1 = linalg.generic  %a * %r + %w0 * %o0 + ...
    }
    %o = linalg.generic  %a / %l
    ```

    A key that a mask leaves out has the probability 0, and 0 times a NaN is
    NaN. So under a mask the second product is a `linalg.generic` that adds only
    what takes part, which is right and slow. With `guard-values` it is chosen
    at run time, where a value is not finite:

    ```mlir
    %finite = flash.is_finite %v
    %a1 = scf.if %finite { linalg.contract ... } else { linalg.generic ... }
    ```

    With `transpose-scores` scores are held keys by queries, and 16-bit operands
    are widened, the query tile before the loop over keys: on a CPU vectors run
    over queries, no reduction is within a vector, and neither product needs a
    transposed key or value. The formulas are the same.
  }];
  let options = [
    Option<"transposeScores", "transpose-scores", "bool", "false",
           "Hold scores keys by queries, and multiply f32 alone">,
    Option<"guardValues", "guard-values", "bool", "false",
           "Multiply the values of a masked tile at once where all are finite">
  ];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::affine::AffineDialect"];
}

def DecomposeIsFinite : Pass<"flash-decompose-is-finite", "::mlir::func::FuncOp"> {
  let summary = "Expand tests of whole tiles into reductions";
  let description = [{
    For the CPU; GPUs have operations for them. `flash.any` becomes a disjunction over the rows, and
    `flash.zero_nonfinite` a choice for each element. `flash.is_finite` becomes a sum of products with 0, since 0
    times a finite number is 0, and 0 times any other is NaN.

    ```mlir
    %finite = flash.is_finite %v : tensor<128x64xf32>
    // becomes
    %columns = linalg.generic  sum over rows of 0 * %v
    %sum = linalg.generic      sum of %columns
    %x = tensor.extract %sum[] : tensor<f32>
    %finite = arith.cmpf ord, %x, %x : f32
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect"];
}

#endif // FLASH_TRANSFORMS_PASSES_TD
