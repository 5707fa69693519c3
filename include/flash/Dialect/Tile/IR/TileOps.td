//===- TileOps.td - The program of one thread block --------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TILE_OPS_TD
#define FLASH_TILE_OPS_TD

include "flash/Dialect/Tile/IR/TileAttrs.td"
include "flash/Dialect/Tile/IR/TileRingInterface.td"
include "flash/Dialect/Tile/IR/TileTypes.td"
include "flash/Support/DeclaredAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits # [DeclaredAttributesOnly]>;

class Tile_TensorWith<string layout>
    : Type<CPred<"::llvm::isa<::mlir::RankedTensorType>($_self) && "
                 "::llvm::isa_and_nonnull<::flash::tile::" # layout # ">("
                 "::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">,
           "tensor in the layout " # layout, "::mlir::RankedTensorType">;
def Tile_FragmentTensor : Tile_TensorWith<"FragmentAttr">;
def Tile_WideFragmentTensor : Tile_TensorWith<"WideFragmentAttr">;
def Tile_RowsTensor : Tile_TensorWith<"RowsAttr">;
def Tile_ColumnsTensor : Tile_TensorWith<"ColumnsAttr">;
def Tile_LanesTensor : Tile_TensorWith<"LanesAttr">;
def Tile_WarpRowsTensor : Tile_TensorWith<"WarpRowsAttr">;
class Tile_AnyTensorOf<list<Type> types>
    : AnyTypeOf<types, "", "::mlir::RankedTensorType">;
def Tile_RegisterTensor : Tile_TensorWith<"LayoutAttrInterface">;
/// A tile of elements of 16 bits or more, which tensor cores multiply.
def Tile_FactorSmem
    : Type<And<[Tile_SmemType.predicate,
                CPred<"!::flash::isQuantized(::llvm::cast<::flash::tile::"
                      "SmemType>($_self).getElementType())">]>,
           "shared-memory tile of f16, bf16 or f32",
           "::flash::tile::SmemType">;
/// A tile of elements of 8 bits.
def Tile_QuantizedSmem
    : Type<And<[Tile_SmemType.predicate,
                CPred<"::flash::isQuantized(::llvm::cast<::flash::tile::"
                      "SmemType>($_self).getElementType())">]>,
           "shared-memory tile of f8E4M3FN or i8", "::flash::tile::SmemType">;

/// A tile that tensor cores multiply. Warpgroups multiply f8E4M3FN, too.
def Tile_ProductSmem
    : Type<And<[Tile_SmemType.predicate,
                CPred<"::flash::ElementType::find(::llvm::cast<::flash::tile::"
                      "SmemType>($_self).getElementType())->isFactor()">]>,
           "shared-memory tile of f16, bf16, f32 or f8E4M3FN",
           "::flash::tile::SmemType">;

/// Memory that all blocks share: kernels address no other by memrefs.
class Tile_GlobalMemory<list<Type> types>
    : ConfinedType<MemRefOf<types>,
                   [CPred<"!::llvm::cast<::mlir::MemRefType>($_self).getMemorySpace()">],
                   MemRefOf<types>.summary # " without a memory space",
                   "::mlir::MemRefType">;
def Tile_GlobalTensor : Tile_GlobalMemory<[F16, BF16, F32, F8E4M3FN, I8]>;

/// The regions of an op compute, and read memory, and do nothing else.
def OnlyReads : NativeOpTrait<"OnlyReads"> {
  let cppNamespace = "::flash::tile";
}

//===----------------------------------------------------------------------===//
// Which tile a block works on
//===----------------------------------------------------------------------===//

def Tile_PositionOp : Tile_Op<"position",
    [NoMemoryEffect, AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the tile that a block takes, from the number of the block";
  let description = [{
    The results are one index for each dimension of a grid of `sizes` tiles, which
    are numbered from 0 in an `order` (see `#tile.order`). Conversion to this level
    emits the op; `tile-lower-positions` replaces it by arithmetic.

    ```mlir
    %b, %h, %i = tile.position %number of (%batches, %heads, %tiles) longest_first
    ```

    Some orders interleave heads (`interleaved`, `reverse`, `both_ways`). If tiles add in order
    (`tile.add_in_order`), the number of heads that are interleaved depends on `additions`. This is the
    largest number of tiles of sums to which one tile adds, in all heads that it goes through.

    ```mlir
    %b, %h, %j = tile.position %number of (%batches, %heads, %tiles) reverse additions(%n)
    ```

    The order `both_ways` has one more result: whether the tiles of this head are
    taken from the last to the first, as in most heads.

    ```mlir
    %h, %i, %is_backwards = tile.position %number of (%heads, %tiles) both_ways
    ```

    If rows are packed, a second `tile.position` in the body takes the number of a tile among the tiles of
    its sequence, so that each sequence has an order of its own.
  }];
  let arguments = (ins Index:$number, Variadic<Index>:$sizes,
                       Tile_OrderAttr:$order, Optional<Index>:$additions);
  let results = (outs Variadic<AnyTypeOf<[Index, I1]>>:$position);
  let assemblyFormat = [{
    $number `of` `(` $sizes `)` custom<Order>($order)
    (`additions` `(` $additions^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether an order goes through the tiles of several heads together, number by number.
    static bool interleavesHeads(::flash::TileOrder order);
  }];
}

//===----------------------------------------------------------------------===//
// Blocks that end at once
//===----------------------------------------------------------------------===//

def Tile_EndBlockIfOp : Tile_Op<"end_block_if"> {
  let summary = "ends a block that would store nothing";
  let description = [{
    If the condition holds, the block ends and executes nothing after the op. The condition is the
    same for all threads of the block. The op is in the body of a kernel, where every thread executes
    it, and before all copies, rings and roles, because no thread may wait for one that has ended. It
    becomes `exit` of PTX.

    ```mlir
    %is_empty = arith.cmpi sge, %first, %length : index
    tile.end_block_if %is_empty
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether a block may end before this op, but not after it.
    static bool mustFollow(::mlir::Operation *op);
  }];
}

def Tile_EndGridOp : Tile_Op<"end_grid"> {
  let summary = "says how many blocks have something to do";
  let description = [{
    Of the blocks, whose numbers are `gpu.block_id x`, those from `count` on do nothing. The host need not know
    the count. `tile-persist` has blocks that claim tiles end with it, and blocks of one tile each end at once. The op is in the body of a
    kernel, where every thread executes it, and computes `count` alike, whatever the block.

    ```mlir
    %tiles = memref.load %counts[%c0] : memref<1xindex>
    tile.end_grid %tiles
    ```
  }];
  let arguments = (ins Index:$count);
  let assemblyFormat = "$count attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels that overlap
//===----------------------------------------------------------------------===//

def Tile_LaunchDependentsOp : Tile_Op<"launch_dependents"> {
  let summary = "lets the kernel that is launched next start";
  let description = [{
    When all blocks have executed this op or have ended, the next kernel starts
    on multiprocessors that have room, if its launch has `tile.dependent`. Until
    its `tile.await_dependencies`, that kernel uses nothing that this one writes, so
    this op may be the first of a kernel. By then all blocks of this kernel have
    started, and lose no room to the next kernel. The op becomes
    `griddepcontrol.launch_dependents` of sm_90.

    ```mlir
    tile.launch_dependents
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_AwaitDependenciesOp : Tile_Op<"await_dependencies"> {
  let summary = "waits until the kernels launched before have ended";
  let description = [{
    After this op, all that these kernels have written is visible. It is in the body
    of a kernel, where every thread executes it, and before all ops that may read or
    write global memory. That includes memory that only this kernel uses, since the
    previous call may still use it. A kernel that has waited ends after all kernels
    before it, so the next kernel needs to wait for this one only. If the launch has
    no `tile.dependent`, there is nothing to wait for. The op becomes
    `griddepcontrol.wait` of sm_90.

    ```mlir
    gpu.func @combine(%parts: memref<?x?x64xf32>, %o: memref<?x64xf16>) kernel {
      %i = gpu.block_id x
      tile.await_dependencies
      %t = tile.load %parts[%i, %c0] ...
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether an op may read or write global memory, so that it must come later.
    static bool mustFollow(::mlir::Operation *op);
  }];
}

//===----------------------------------------------------------------------===//
// From global to shared memory
//===----------------------------------------------------------------------===//

def Tile_FetchOp : Tile_Op<"fetch",
    [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "a tile of global memory, in shared memory";
  let description = [{
    The result has the M rows from `i` on of the matrix at the leading indices. Rows from `rows` on do not exist, and
    are zeros. With `to_end` they lie after the last row of the memory, where a bulk copy writes zeros by itself. With
    `finite`, 0 replaces NaN and infinities. If there is an index for each dimension of the memory, the last one is
    the first column, and all columns of the tile exist. Without it, the memory has as many columns as the tile.
    Conversion to this level emits this op; `tile-make-rings` replaces it by a ring and an asynchronous copy.

    ```mlir
    %kt = tile.fetch %k[%b, %h, %j] rows(%n)
        : memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>> to !tile.smem<128x64xf16, swizzle = 128>
    ```

    With `packed(P)` the rows of a tile lie along two dimensions of the memory, the
    two before the columns: row r is at `[i + r floordiv P, j + r mod P]`. If P does
    not divide the number of rows of the tile, the remaining rows never exist, and
    `rows` leaves them out.

    ```mlir
    %qt = tile.fetch %q[%b, %i, %h] packed(4) rows(%n)
        : memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>> to !tile.smem<64x64xf16, swizzle = 128>
    ```

    With `parts(n)` the tile consists of n parts with equally many rows. The operands are the indices of all parts,
    one part after the other, and, if `rows` are given, a number for each part.

    ```mlir
    %kt = tile.fetch %k[%page, %h, %c0, %next, %h, %c0] parts(2) rows(%n, %m)
        : memref<?x?x16x64xf16, strided<[?, ?, ?, 1]>> to !tile.smem<32x64xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_GlobalTensor:$source, Variadic<Index>:$indices,
                       Variadic<Index>:$rows, UnitAttr:$to_end,
                       OptionalAttr<I64Attr>:$packed,
                       OptionalAttr<I64Attr>:$parts, UnitAttr:$finite);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`packed` `(` $packed^ `)`)?
    (`parts` `(` $parts^ `)`)? (`rows` `(` $rows^ `)`)? (`to_end` $to_end^)? (`finite` $finite^)? attr-dict
    `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getNumParts() { return getParts().value_or(1); }
    /// Where a part lies, and how many of its rows exist; null if all do.
    ::mlir::OperandRange getIndicesOfPart(int64_t part) {
      int64_t count = getIndices().size() / getNumParts();
      return getIndices().slice(part * count, count);
    }
    ::mlir::Value getRowsOfPart(int64_t part) {
      return getRows().empty() ? ::mlir::Value() : getRows()[part];
    }
  }];
}

def Tile_ShareOp : Tile_Op<"share"> {
  let summary = "a register tile, in shared memory";
  let description = [{
    Products read second operands and transposed operands from shared memory, and
    other warps can read the tile there. Elements have 16 bits or are f32.
    `tile-make-rings` replaces the op by a ring that is filled by the threads that hold the tile.

    ```mlir
    %pt = tile.share %p : tensor<128x64xf16, #tile.fragment<8>> to !tile.smem<128x64xf16, swizzle = 128>
    ```

    If the operand has one f32 value for each row, the result has eight values in each row, as `tile.load` reads them.

    ```mlir
    %mt = tile.share %m : tensor<64xf32, #tile.rows<4>> to !tile.smem<8x8xf32, swizzle = 32>
    ```
  }];
  let arguments = (ins Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_RowsTensor]>:$x);
  let results = (outs Tile_SmemType:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$x)>];
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_DequantizeOp : Tile_Op<"dequantize", [SingleBlock, OnlyReads]> {
  let summary = "converts a tile of 8-bit elements to the type of products";
  let description = [{
    Each element is multiplied in f32 by the scale of its row, and the product is rounded to the nearest f16 or
    bf16. The region yields the scale of a row, and may read memory. All warps of the block convert.
    `tile-make-rings` replaces the op by a ring that these warps fill.

    ```mlir
    %kt = tile.dequantize %t : !tile.smem<64x128xf8E4M3FN, swizzle = 128> to !tile.smem<64x128xf16, swizzle = 128> {
    ^bb0(%row: index):
      tile.yield %scale : f32
    }
    ```
  }];
  let arguments = (ins Tile_QuantizedSmem:$tile);
  let results = (outs Tile_SmemType:$result);
  let regions = (region SizedRegion<1>:$scale);
  let assemblyFormat = [{
    $tile attr-dict `:` type($tile) `to` type($result) custom<OwnRegion>($scale)
  }];
  let hasVerifier = 1;
}

def Tile_RingOp : Tile_Op<"ring"> {
  let summary = "a ring whose stages are all free";
  let description = [{
    ```mlir
    %ring = tile.ring : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
    ```

    In a `checked` ring, additional warps check whether each tile is finite, and
    release it too. In a `finite` ring, these warps replace NaN and infinities by 0
    (`tile.ring.make_finite`); only then do warps that wait for the tile go on.

    A ring of one stage, from which each consumer warpgroup reads only its own 64 rows,
    may instead have `row_stages`, which are stages of 64 rows. The warpgroups take
    them one after the other. The next rows of one warpgroup can then be copied while
    another warpgroup still reads its current rows.

    ```mlir
    %ring = tile.ring row_stages = 3 : !tile.ring<1, !tile.smem<128x256xf16, swizzle = 128>>
    ```

    With `copies = n` each stage is filled by n copies of equally many rows, for
    example from pages at different addresses.

    ```mlir
    %ring = tile.ring copies = 2 : !tile.ring<3, !tile.smem<128x64xf16, swizzle = 128>>
    ```

    A ring without uses is removed.

    `tile-allocate-smem` sets `offset`, the byte of shared memory at which the
    stages start. If warps have roles, it also sets `barriers`, the byte at which the
    mbarriers start. These have 8 bytes, and each stage has one of each kind: first
    come the barriers of full stages, then the barriers of empty stages and, if the ring
    is `checked` or `finite`, the barriers of checked stages. A `checked` ring has 16
    more bytes for each stage, for the result of the check. If two warps add the tiles
    of the ring alternately, each has its own full barriers: the barriers of the
    second warp come after the empty barriers.
  }];
  let arguments = (ins UnitAttr:$checked, UnitAttr:$finite,
                       OptionalAttr<I64Attr>:$row_stages,
                       OptionalAttr<I64Attr>:$copies,
                       OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$barriers);
  let builders = [OpBuilder<(ins "::mlir::Type":$result), [{
    $_state.addTypes(result);
  }]>];
  let results = (outs Res<Tile_RingType, "", [MemAlloc]>:$result);
  let assemblyFormat = [{
    (`checked` $checked^)? (`finite` $finite^)? (`row_stages` `=` $row_stages^)?
    (`copies` `=` $copies^)? attr-dict
    `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of a stage: a tile, or the 64 rows of a warpgroup (`row_stages`).
    SmemType getStageType();
    int64_t getNumStages();
    /// Bytes from one stage to the next.
    int64_t getStageDistance() { return getStageType().getAlignedBytes(); }
    int64_t getNumBytes() { return getNumStages() * getStageDistance(); }
    /// How many copies fill a stage, and the rows of each.
    int64_t getNumCopies() { return getCopies().value_or(1); }
    int64_t getRowsOfCopy() {
      return getResult().getType().getTile().getRows() / getNumCopies();
    }
    /// Whether register tiles fill the stages, rather than copies.
    bool isFilledFromRegisters();
    /// The number of barriers of full stages: one for each stage. If warps add
    /// the tiles alternately, each warp has barriers of its own for all stages,
    /// and looks only at these, so that it never misses a phase.
    int64_t getNumFullBarriers();
    /// The bytes of the mbarriers and of the results of checks, for warps with
    /// roles.
    int64_t getNumBarrierBytes() {
      int64_t others = getChecked() ? 4 : getFinite() ? 2 : 1;
      return (getNumFullBarriers() + getNumStages() * others) * 8;
    }
  }];
}

/// An operation on the stage of a step.
class Tile_RingStageOp<string mnemonic, string effect, list<Trait> traits = []>
    : Tile_Op<mnemonic,
        traits # [Tile_RingOpInterface]> {
  code ringEffect = "RingEffect getRingEffect() { return RingEffect::" # effect # "; }";
  let extraClassDeclaration = ringEffect;
}

class Tile_RingStepOp<string mnemonic, string effect, list<Trait> traits = []>
    : Tile_RingStageOp<mnemonic, effect, traits> {
  let arguments = (ins Tile_RingType:$ring, Index:$step);
}

def Tile_RingAcquireOp : Tile_RingStepOp<"ring.acquire", "Acquire"> {
  let summary = "waits until the stage of a step is free to be filled";
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
}

def Tile_CopyAsyncOp
    : Tile_RingStageOp<"copy_async", "Fill", [AttrSizedOperandSegments]> {
  let summary = "starts to copy a tile of global memory into a stage";
  let description = [{
    Starts the copy that `tile.fetch` describes, into the acquired stage of a step. The stage is full when the copy is
    complete. If warps have roles, memory has at most five dimensions. In this case, a copy with `rows` and without
    `to_end` reads through a tensor map of overlapping tiles, as `tile.store_bulk` writes, and memory has at most four.

    ```mlir
    tile.copy_async %k[%b, %h, %j] rows(%n) to %ring[%t]
        : memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>> to !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
    ```

    If several copies fill a stage, each fills one `part`. Parts count from 0: in a
    ring with `copies = 2` and stages of 128 rows, part 1 has the rows from 64 on.
    The part is a constant, or the variable of a loop over all parts.

    ```mlir
    tile.ring.acquire %ring[%t] : ...
    scf.for %p = %c0 to %c2 step %c1 {
      %page = memref.load %pages[%first, %p] : memref<?x?xindex>
      tile.copy_async %k[%page, %h, %c0] to %ring[%t] part(%p) : ...
    }
    ```
  }];
  let arguments = (ins Tile_GlobalTensor:$source, Variadic<Index>:$indices,
                       Optional<Index>:$rows, Tile_RingType:$ring, Index:$step,
                       Optional<Index>:$part, UnitAttr:$to_end,
                       OptionalAttr<I64Attr>:$packed);
  let assemblyFormat = [{
    $source `[` $indices `]` (`packed` `(` $packed^ `)`)?
    (`rows` `(` $rows^ `)`)? (`to_end` $to_end^)?
    `to` $ring `[` $step `]` (`part` `(` $part^ `)`)? attr-dict
    `:` type($source) `to` type($ring)
  }];
  let hasVerifier = 1;
}

def Tile_RingPutOp : Tile_RingStageOp<"ring.put", "Fill"> {
  let summary = "writes a register tile to a stage";
  let description = [{
    The threads that hold the tile write it to the acquired stage of a step. The tile has
    16-bit elements or f32, or one value for each row, which is written as by `tile.share`.
    The stage is full when all of these threads have written their rows.

    ```mlir
    tile.ring.acquire %ring[%t] : ...
    tile.ring.put %p to %ring[%t]
        : tensor<128x64xf16, #tile.fragment<8>> to !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
    %pt = tile.ring.wait %ring[%t] : ...
    ```
  }];
  let arguments = (ins Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_RowsTensor]>:$x,
                       Tile_RingType:$ring, Index:$step);
  let assemblyFormat = [{
    $x `to` $ring `[` $step `]` attr-dict `:` type($x) `to` type($ring)
  }];
  let hasVerifier = 1;
}

def Tile_RingDequantizeOp
    : Tile_RingStageOp<"ring.dequantize", "Fill", [SingleBlock, OnlyReads]> {
  let summary = "writes a tile of 8-bit elements to a stage in the type of products";
  let description = [{
    All threads of the block convert the tile as in `tile.dequantize`, and write it to the acquired stage of a step.
    The stage is full when all of them have written their part. Warps with roles have no such operation yet.

    ```mlir
    tile.ring.acquire %ring[%t] : ...
    tile.ring.dequantize %t8 to %ring[%t]
        : !tile.smem<64x128xf8E4M3FN, swizzle = 128> to !tile.ring<1, !tile.smem<64x128xf16, swizzle = 128>> {
    ^bb0(%row: index):
      tile.yield %scale : f32
    }
    %kt = tile.ring.wait %ring[%t] : ...
    ```
  }];
  let arguments = (ins Tile_QuantizedSmem:$tile, Tile_RingType:$ring, Index:$step);
  let regions = (region SizedRegion<1>:$scale);
  let assemblyFormat = [{
    $tile `to` $ring `[` $step `]` attr-dict `:` type($tile) `to` type($ring) custom<OwnRegion>($scale)
  }];
  let hasVerifier = 1;
}

def Tile_RingWaitOp : Tile_RingStepOp<"ring.wait", "Wait",
    [TypesMatchWith<"the tile is the ring's stage", "ring", "tile",
                    "::llvm::cast<RingType>($_self).getTile()">]> {
  let summary = "waits until the stage of a step is full, and gives its tile";
  let description = [{
    The tile may be read until the step is released.

    ```mlir
    %kt = tile.ring.wait %ring[%t] : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
    ```
  }];
  let results = (outs Tile_SmemType:$tile);
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
  let extraClassDeclaration = ringEffect # [{
    /// The release of the step in the op's own block; null if there is none, for
    /// example if each branch of an `scf.if` has one.
    RingReleaseOp getRelease();
  }];
}

def Tile_RingPeekOp : Tile_RingStepOp<"ring.peek", "Peek",
    [TypesMatchWith<"the tile is the ring's stage", "ring", "tile",
                    "::llvm::cast<RingType>($_self).getTile()">]> {
  let summary = "waits until the stage of a step is full, to look at its tile";
  let description = [{
    Other warps still wait for the step and release it.

    ```mlir
    %vt = tile.ring.peek %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
    ```
  }];
  let results = (outs Tile_SmemType:$tile);
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
}

def Tile_RingReleaseOp : Tile_RingStepOp<"ring.release", "Release"> {
  let summary = "gives the stage of a step back";
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
}

def Tile_RingCheckFiniteOp : Tile_RingStepOp<"ring.check_finite", "CheckFinite"> {
  let summary = "checks whether the tile of a step is finite, and releases it";
  let description = [{
    Waits until the stage is full. With `unchecked` the result is not used, and the tile
    is not read.

    ```mlir
    tile.ring.check_finite %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
    ```
  }];
  let arguments = (ins Tile_RingType:$ring, Index:$step, UnitAttr:$unchecked);
  let assemblyFormat =
      "$ring `[` $step `]` (`unchecked` $unchecked^)? attr-dict `:` type($ring)";
}

def Tile_RingMakeFiniteOp : Tile_RingStepOp<"ring.make_finite", "CheckFinite"> {
  let summary = "replaces NaN and infinities in the tile of a step, and releases it";
  let description = [{
    Waits until the stage has been copied. Warps that wait for the tile go on when
    NaN and infinities in it have been replaced by 0.

    ```mlir
    tile.ring.make_finite %ring[%t] : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
    ```
  }];
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
}

def Tile_RingCopyFiniteOp
    : Tile_RingStepOp<"ring.copy_finite", "Ask", [AllTypesMatch<["tile", "result"]>]> {
  let summary = "a tile without NaN and infinities, if need be in the stage of a step";
  let description = [{
    The result is the tile itself, which `tile.ring.wait` has given, if it is finite.
    Otherwise all warps of the role copy it to the acquired stage, with 0 instead of NaN and
    infinities, and the result is this copy. So a product can read keys without NaN and
    infinities where shared memory has no room for a second tile of keys: the stage is that
    of the product's result, which `tile.ring.put`, in the same block, writes over the copy
    when all warpgroups have come there. What reads the copy has ended by then. A tile takes
    no more bytes than a stage. This is for warps with roles.

    ```mlir
    %k = tile.ring.wait %keys[%c0] : ...
    tile.ring.acquire %ring[%t] : ...
    %finite = tile.ring.is_finite %keys[%c0] : ...
    %kf = tile.ring.copy_finite %k unless %finite in %ring[%t]
        : !tile.smem<128x192xbf16, swizzle = 64> in !tile.ring<1, !tile.smem<128x96xf32, swizzle = 128>>
    %p = tile.mma_async %ds, %kf transpose_a divide_columns warpgroup ...
    %dq = tile.mma_wait %p ...
    tile.ring.put %dq to %ring[%t] : ...
    ```
  }];
  let arguments = (ins Tile_FactorSmem:$tile, I1:$isFinite, Tile_RingType:$ring,
                       Index:$step);
  let results = (outs Tile_FactorSmem:$result);
  let assemblyFormat = [{
    $tile `unless` $isFinite `in` $ring `[` $step `]` attr-dict
    `:` type($tile) `in` type($ring)
  }];
  let hasVerifier = 1;
}
def Tile_RingIsFiniteOp : Tile_RingStepOp<"ring.is_finite", "Ask"> {
  let summary = "whether the tile of a step is finite";
  let description = [{
    Waits until the tile has been checked (`tile.ring.check_finite`). The result is
    true if no element is NaN or infinite. The step must still be released.

    ```mlir
    %finite = tile.ring.is_finite %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "$ring `[` $step `]` attr-dict `:` type($ring)";
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

def Tile_MmaAsyncOp : Tile_Op<"mma_async",
    [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "starts a matrix product on tensor cores";
  let description = [{
    `d = a b + c`, or `a b` without `c`, with `a : MxK` in registers or shared
    memory, `b : KxN` in shared memory, or with `transpose_b`, `b : NxK`. The
    elements of `a` and `b` are f16, bf16, f32 or f8E4M3FN, and the elements of the result are
    f32. The rows of a tile are spread over the warps.

    With `transpose_a`, for warpgroups only, `a : KxM` is in shared memory and has elements
    of 16 bits. If K is the number of rows of a tile with 16-bit elements,
    it is a multiple of 16, the number of rows that an instruction reads (PTX,
    `mma.m16n8k16`, `wgmma`).

    With `divide_columns` every warpgroup multiplies all M rows of `a`, which are 64, by columns of `b` of its own, and has the product as
    its rows of the result: of N columns of `b` and W warpgroups the result is `WMxN/W`. Each begins at a panel of `b`.

    Without `transpose_b` the product may use only some columns of `b`, for example if the first columns of the keys
    are the values. These columns start at a `panel` of the tile (see `!tile.smem`), by default at the first panel.

    ```mlir
    %o = tile.mma_async %p, %kt panel(%first) add %o0 : tensor<64x32xf16, #tile.fragment<4>>,
        !tile.smem<32x576xf16, swizzle = 128>, tensor<64x256xf32, #tile.fragment<4>> -> !tile.pending<tensor<64x256xf32, #tile.fragment<4>>>
    ```

    Products of f32 are as accurate as f32 arithmetic unless `tf32` rounds the
    operands to 10 bits of mantissa. The emulation rounds to the nearest such number; a
    GPU may round to the other neighbour if it is about as near.

    Elements of f8E4M3FN are multiplied with `warpgroup` and `transpose_b` alone. Hopper's tensor cores cut such products off to
    13 or 14 bits of the largest where they add them, so `c` is added to their sum in f32 by the `tile.mma_wait`. If such an `a` is in
    registers, K is a multiple of 32, and column `16 n + 8 i + 2 t + e` of `a`, for i and e of 0 and 1 and t from 0 to 3, is multiplied by
    column `16 n + 4 t + 2 i + e` of `b`: a thread has the columns 2 t and 2 t + 1 of eight of a fragment, and an
    instruction takes four neighbours from it.

    With `warpgroup`, every four warps multiply 64 rows together (`wgmma`), and each
    warpgroup goes at its own pace. Otherwise every warp multiplies alone, and its
    product is complete when it goes on (`mma.sync`). After rings have been replaced
    by shared memory, `a` may have only the 64 rows of one warpgroup.

    ```mlir
    %s = tile.mma_async %q, %kt transpose_b : tensor<128x64xf16, #tile.fragment<4>>,
        !tile.smem<128x64xf16, swizzle = 128> -> !tile.pending<tensor<128x128xf32, #tile.fragment<4>>>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_FragmentTensor, Tile_ProductSmem]>:$a,
    Tile_ProductSmem:$b, Optional<Index>:$panel, Optional<Tile_FragmentTensor>:$c, UnitAttr:$transpose_a,
    UnitAttr:$transpose_b, UnitAttr:$tf32, UnitAttr:$warpgroup, UnitAttr:$divide_columns);
  let results = (outs Tile_PendingType:$result);
  let assemblyFormat = [{
    $a `,` $b (`panel` `(` $panel^ `)`)? (`add` $c^)? (`transpose_a` $transpose_a^)?
    (`transpose_b` $transpose_b^)? (`tf32` $tf32^)? (`divide_columns` $divide_columns^)? (`warpgroup` $warpgroup^)? attr-dict `:` type($a) `,` type($b) (`,` type($c)^)? `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The number of rows that an instruction reads if it contracts the rows of
    /// a tile of 16-bit elements.
    static constexpr int64_t rowMultiple = 16;
    /// Among how many warpgroups the columns of `b` are divided.
    int64_t getNumParts();
  }];
  let hasVerifier = 1;
}

def Tile_MmaQuantizedOp : Tile_Op<"mma_quantized",
    [MemoryEffects<[MemRead]>, SingleBlock, OnlyReads]> {
  let summary = "multiplies by a tile of 8-bit elements, which are converted in registers";
  let description = [{
    `d = a b + c`, or `a b` without `c`, as `tile.mma_async` and `tile.mma_wait` give it, where `b` is what `tile.dequantize`
    makes of a tile of f8E4M3FN or i8 and the scales of its rows: every element is that number of f16 or bf16, the type
    of `a`. Each warp converts what it multiplies in the registers from which `mma.sync` reads it, so the numbers take no
    second tile of shared memory; but each warp converts all of the tile.

    With `transpose_b` the rows of the tile are the columns of `d`, a fragment. Otherwise they are what is contracted, and
    `d` is a wide fragment. The rows and the columns of the tile are multiples of 16.

    ```mlir
    %o = tile.mma_quantized %p, %vt add %o0 : tensor<16x32xbf16, #tile.fragment<1>>,
        !tile.smem<32x128xf8E4M3FN, swizzle = 128>, tensor<16x128xf32, #tile.wide_fragment<1>> -> tensor<16x128xf32, #tile.wide_fragment<1>> {
    ^bb0(%row: index):
      tile.yield %scale : f32
    }
    ```
  }];
  let arguments = (ins AnyTypeOf<[Tile_FragmentTensor, Tile_FactorSmem]>:$a,
    Tile_QuantizedSmem:$b,
    Optional<Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_WideFragmentTensor]>>:$c,
    UnitAttr:$transpose_b);
  let results = (outs Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_WideFragmentTensor]>:$result);
  let regions = (region SizedRegion<1>:$scale);
  let assemblyFormat = [{
    $a `,` $b (`add` $c^)? (`transpose_b` $transpose_b^)? attr-dict `:` type($a) `,` type($b) (`,` type($c)^)?
    `->` type($result) custom<OwnRegion>($scale)
  }];
  let extraClassDeclaration = [{
    /// The type of what is multiplied.
    ::mlir::Type getFactorType();
  }];
  let hasVerifier = 1;
}

def Tile_MmaWaitOp : Tile_Op<"mma_wait",
    [TypesMatchWith<"the result is what was pending", "pending", "result",
                    "::llvm::cast<PendingType>($_self).getValue()">]> {
  let summary = "waits for a product";
  let description = [{
    Products complete in the order in which they were started. The products
    `younger` were started later, and need not be complete after this op.

    ```mlir
    %s = tile.mma_wait %sp younger(%op : !tile.pending<...>) : !tile.pending<...>
    ```
  }];
  let arguments = (ins Tile_PendingType:$pending,
                       Variadic<Tile_PendingType>:$younger);
  let results = (outs Tile_FragmentTensor:$result);
  let assemblyFormat = [{
    $pending (`younger` `(` $younger^ `:` type($younger) `)`)? attr-dict
    `:` type($pending)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result,
                                 "::mlir::Value":$pending), [{
    build($_builder, $_state, result, pending, ::mlir::ValueRange());
  }]>];
}

//===----------------------------------------------------------------------===//
// Roles of warps
//===----------------------------------------------------------------------===//

def Tile_WarpSpecializeOp
    : Tile_Op<"warp_specialize",
        [NoTerminator, SingleBlock, RecursiveMemoryEffects, NoRegionArguments]> {
  let summary = "gives the warps of a block different things to do";
  let description = [{
    Each role is a region that some warps execute, at their own pace. `warps` is their
    number. They follow the warps of the role before; a role of four or more
    warps starts with a new warpgroup. `from` gives another first warp. Warps
    without a role end. The operations of a role determine which threads execute it:

    - A register tile belongs to the role that has as many warps as the tile's layout, and the same first warp (0 by
      default). The warpgroups of this role go at their own pace.
    - Copies into rings are started by one thread of a role of one warp. Ordered additions
      (`tile.add_in_order`) are started in the same way, by a role of their own.
    - Checks whether tiles are finite, and the replacement of NaN and infinities, are
      shared by all warps of one role, which has the last warps of the block.

    `registers` is the number that each thread of a role may use. Roles that share a
    warpgroup have the same number. The block starts with an equal number for all
    of its threads, and the roles together must not need more registers than that.

    ```mlir
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %kt = tile.ring.wait %ring[%t] : ...
      ...
    } @producer(warps = 1, registers = 24) {
      tile.ring.acquire %ring[%t] : ...
      tile.copy_async %k[%b, %h, %j] to %ring[%t] : ...
    } @nonfinite_check(warps = 1 from 11, registers = 24) {
      tile.ring.check_finite %ring[%t] : ...
    }
    ```
  }];
  let arguments = (ins StrArrayAttr:$names, DenseI64ArrayAttr:$first_warps,
                       DenseI64ArrayAttr:$warps, DenseI64ArrayAttr:$registers);
  let regions = (region VariadicRegion<SizedRegion<1>>:$roles);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<::llvm::StringRef>":$names,
    "::llvm::ArrayRef<int64_t>":$firstWarps, "::llvm::ArrayRef<int64_t>":$warps,
    "::llvm::ArrayRef<int64_t>":$registers)>];
  let extraClassDeclaration = [{
    unsigned getNumRoles() { return getRoles().size(); }
    ::llvm::StringRef getName(unsigned role) {
      return ::llvm::cast<::mlir::StringAttr>(getNames()[role]).getValue();
    }
    /// The warps of a role, from the first one on.
    int64_t getFirstWarp(unsigned role) { return getFirstWarps()[role]; }
    int64_t getNumWarps(unsigned role) { return getWarps()[role]; }
    int64_t getEndWarp(unsigned role) {
      return getFirstWarp(role) + getNumWarps(role);
    }
    int64_t getNumWarpgroups(unsigned role) { return getNumWarps(role) / 4; }
    /// How many warpgroups the block has.
    int64_t getNumWarpgroups();
    int64_t getNumThreads() { return 128 * getNumWarpgroups(); }
    /// The registers of a thread; they are set for all roles that share a warpgroup.
    int64_t getNumRegisters(unsigned role) { return getRegisters()[role]; }
    void setNumRegisters(unsigned role, int64_t registers);
    /// Makes sure that a role of one warp has at least `enough` registers, which
    /// it needs if it does more than count steps, for example if it reads which
    /// tiles to copy. The threads of the role `from` give up registers for it.
    void leaveRegisters(unsigned from, unsigned role, int64_t enough);
    /// The role that contains the op.
    unsigned getRoleOf(::mlir::Operation *op);
    /// Whether the role adds tiles in order.
    bool addsInOrder(unsigned role);
    /// Whether the role has two warps that take steps alternately. Such a role
    /// adds tiles in order or stores sums of diagonals.
    bool alternates(unsigned role);
    /// Whether only one thread executes the role, or one thread of each warp that
    /// adds tiles in order. Such a role only starts copies or additions.
    bool isOfOneThread(unsigned role);
  }];
}

def Tile_PingPongWaitOp : Tile_Op<"ping_pong.wait"> {
  let summary = "waits until the warpgroup before has arrived";
  let description = [{
    Ping-pong: the consumer warpgroups alternate. A warpgroup goes on when the one
    before it has arrived (`tile.ping_pong.arrive`); the last warpgroup is the one
    before the first. Only the first wait of the first warpgroup does not wait. All
    warpgroups wait, and arrive, equally often.

    ```mlir
    tile.ping_pong.wait
    %sp = tile.mma_async %q, %kt transpose_b warpgroup : ...
    tile.ping_pong.arrive
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_PingPongArriveOp : Tile_Op<"ping_pong.arrive"> {
  let summary = "lets the next warpgroup go on";
  let assemblyFormat = "attr-dict";
}

def Tile_HasRowsOp : Tile_Op<"has_rows", [Pure]> {
  let summary = "whether the thread's warpgroup has any of a tile's first rows";
  let description = [{
    If only the first `rows` of a register tile exist, some warpgroups may have none of them. What these compute is stored nowhere, and a
    program may leave it out: a branch for them waits for stages and gives them back in the same steps as
    the other branch, and takes part in the ping-pong and in what all warpgroups do together
    (`tile-skip-rows`).

    The emulation, which carries out all warpgroups as one, says whether there is any row.

    ```mlir
    %has = tile.has_rows %n
    ```
  }];
  let arguments = (ins Index:$rows);
  let results = (outs I1:$result);
  let assemblyFormat = "$rows attr-dict";
}

//===----------------------------------------------------------------------===//
// Register tiles
//===----------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "a shared-memory tile, in registers";
  let description = [{
    With `transpose`, element `(i, j)` of the result is `(j, i)` of the source.

    ```mlir
    %q = tile.load %qs : !tile.smem<128x64xf16, swizzle = 128> to tensor<128x64xf16, #tile.fragment<4>>
    %t = tile.load %qs transpose : !tile.smem<128x64xf16, swizzle = 128> to tensor<64x128xf16, #tile.fragment<4>>
    ```

    A value for each column, or for each row, comes from eight in a row, of f32: element `j` of the
    result is `(j / 8, j mod 8)` of the source.

    ```mlir
    %l = tile.load %ls : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
    ```
  }];
  let arguments = (ins Tile_FactorSmem:$source, UnitAttr:$transpose);
  let results =
      (outs Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_RowsTensor, Tile_ColumnsTensor]>:$result);
  let assemblyFormat = [{
    $source (`transpose` $transpose^)? attr-dict
    `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReadOp : Tile_Op<"read",
    [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "rows of global memory, in warp rows";
  let description = [{
    Rows and columns from the last two indices on. Rows from `rows` on and columns
    from `columns` on do not exist: they are not read, and are the `padding`.
    Without one they are zero in a vector and anything in a matrix.

    ```mlir
    %x = tile.read %s[%b, %i, %j] rows(%m) columns(%n) padding(%none : f16)
        : memref<?x?x?xf16, strided<[?, ?, 1]>> to tensor<8x1024xf16, #tile.warp_rows<8, 8>>
    ```

    Neighbours that a lane holds are read at once where the rows start at a multiple
    of their size and `columns` is a multiple of their number, one by one elsewhere.
    `aligned` says that it is so everywhere, and `nonempty` that the first
    element exists, which can then be read instead of one that does not exist.
    Each saves a test, and with both reads do not wait for those before them. `in_order` has reads begin in their
    order, before what needs the first of them, whatever registers that takes.

    A vector has its elements from the last index on, a value for each row; they need
    not be next to each other.

    ```mlir
    %l = tile.read %lse[%b, %i] rows(%m)
        : memref<?x?xf32, strided<[?, 1]>> to tensor<8xf32, #tile.warp_rows<8, 1>>
    ```
  }];
  let arguments = (ins Tile_GlobalTensor:$source, Variadic<Index>:$indices,
                       Optional<Index>:$rows, Optional<Index>:$columns,
                       Optional<AnyTypeOf<[F16, BF16, F32]>>:$padding,
                       UnitAttr:$aligned, UnitAttr:$nonempty,
                       UnitAttr:$in_order);
  let results = (outs Tile_WarpRowsTensor:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`rows` `(` $rows^ `)`)?
    (`columns` `(` $columns^ `)`)? (`padding` `(` $padding^ `:` type($padding) `)`)?
    (`aligned` $aligned^)? (`nonempty` $nonempty^)? (`in_order` $in_order^)? attr-dict
    `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_LoadRowOp : Tile_Op<"load_row", [MemoryEffects<[MemRead]>]> {
  let summary = "one row of a shared-memory tile, in every row of a register tile";
  let description = [{
    `result[i, c]` is `source[row, c]`, converted to f32. The result may have some of the columns, from a `panel` of the
    tile on as the result of a product.

    ```mlir
    %v = tile.load_row %vt[%j] : !tile.smem<64x48xf16, swizzle = 128> to tensor<128x48xf32, #tile.fragment<4>>
    ```
  }];
  let arguments = (ins Tile_FactorSmem:$source, Index:$row, Optional<Index>:$panel);
  let results = (outs Tile_FragmentTensor:$result);
  let assemblyFormat = [{
    $source `[` $row `]` (`panel` `(` $panel^ `)`)? attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ColumnOp : Tile_Op<"column", [Pure]> {
  let summary = "one column of a register tile, as a value for each row";
  let description = [{
    `result[i]` is `x[i, column]`, converted to f32.

    ```mlir
    %w = tile.column %p[%j] : tensor<128x64xf16, #tile.fragment<4>> to tensor<128xf32, #tile.rows<4>>
    ```
  }];
  let arguments = (ins Tile_FragmentTensor:$x, Index:$column);
  let results = (outs Tile_RowsTensor:$result);
  let assemblyFormat =
      "$x `[` $column `]` attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_IsFiniteOp : Tile_Op<"is_finite", [MemoryEffects<[MemRead]>]> {
  let summary = "whether no element of a shared-memory tile is NaN or infinite";
  let description = [{
    All threads of the block get the same result, and meet here; with `warps`
    only as many, the last of the block, check a share each, and get the result
    of their own share.

    ```mlir
    %finite = tile.is_finite %vt : !tile.smem<64x48xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_FactorSmem:$source, OptionalAttr<I64Attr>:$warps);
  let results = (outs I1:$result);
  let assemblyFormat =
      "$source (`warps` `(` $warps^ `)`)? attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def Tile_MakeFiniteOp
    : Tile_Op<"make_finite", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "replaces NaN and infinities in a shared-memory tile by 0";
  let description = [{
    With `warps` as many, the last of the block, which check tiles, see to a share each.
    With `copy` the tile stays as it is, and another tile of the same type gets its elements,
    with 0 instead of NaN and infinities; `warps` are then the first of the block, which
    compute.

    ```mlir
    tile.make_finite %kt : !tile.smem<64x48xf16, swizzle = 128>
    tile.make_finite %kt copy(%to : !tile.smem<64x48xf16, swizzle = 128>) warps(8) : !tile.smem<64x48xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_FactorSmem:$tile, Optional<Tile_FactorSmem>:$copy,
                       OptionalAttr<I64Attr>:$warps);
  let assemblyFormat = [{
    $tile (`copy` `(` $copy^ `:` type($copy) `)`)? (`warps` `(` $warps^ `)`)? attr-dict
    `:` type($tile)
  }];
  let hasVerifier = 1;
}

def Tile_ClearOp : Tile_Op<"clear", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "fills a shared-memory tile with zeros";
  let description = [{
    All `warps` of the block that read the tile meet before and after it, where
    they have a role: none of them finds a part of it cleared.

    ```mlir
    tile.clear %vt warps(8) : !tile.smem<64x48xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_SmemType:$tile, I64Attr:$warps);
  let assemblyFormat = "$tile `warps` `(` $warps `)` attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "whether a condition holds for one of the lanes";
  let description = [{
    A vote of each warp on its rows (PTX `vote.any`): the same for its threads, but
    warps may differ. So no operation of several warps may depend on it.

    ```mlir
    %grown = tile.any %x : tensor<128x4xi1, #tile.lanes<4>>
    ```
  }];
  let arguments = (ins Tile_LanesTensor:$x);
  let results = (outs I1:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "repeats a scalar, or the values of a vector, along the tile";
  let description = [{
    ```mlir
    %x = tile.broadcast %rows : tensor<128xf32, #tile.rows<4>> to tensor<128x64xf32, #tile.fragment<4>>
    ```
  }];
  let arguments =
      (ins AnyTypeOf<[I1, F16, BF16, F32, Tile_RowsTensor, Tile_ColumnsTensor,
                      Tile_WarpRowsTensor]>:$source);
  let results = (outs Tile_RegisterTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_FoldOp : Tile_Op<"fold", [Pure, AllTypesMatch<["init", "result"]>]> {
  let summary = "combines the elements of a row that a lane holds";
  let description = [{
    The first half of a reduction along the rows, within each thread:
    `result[i, c]` is `init[i, c]` combined with all `x[i, j]` with
    `(j mod 8) / 2 = c`, in the order of `j`. For warp rows over `L` lanes it is
    combined with all `x[i, j]` with `(j / V) mod L = c`.

    ```mlir
    %l1 = tile.fold add %p into %l0 : tensor<128x64xf32, #tile.fragment<4>> into tensor<128x4xf32, #tile.lanes<4>>
    ```
  }];
  let arguments = (ins Tile_ReductionAttr:$reduction,
    Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_WarpRowsTensor]>:$x,
    Tile_AnyTensorOf<[Tile_LanesTensor, Tile_WarpRowsTensor]>:$init);
  let results =
      (outs Tile_AnyTensorOf<[Tile_LanesTensor, Tile_WarpRowsTensor]>:$result);
  let assemblyFormat = [{
    $reduction $x `into` $init attr-dict `:` type($x) `into` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "combines the values of each row's lanes";
  let description = [{
    The second half of a reduction along the rows: two shuffles between
    neighbouring lanes, or five between the lanes of a warp that holds warp rows. Warps
    that share a row meet, and exchange theirs through shared memory: `offset`, its
    byte there, is set by `tile-allocate-smem`.

    ```mlir
    %l = tile.reduce add %l1 : tensor<128x4xf32, #tile.lanes<4>> to tensor<128xf32, #tile.rows<4>>
    ```
  }];
  let arguments = (ins Tile_ReductionAttr:$reduction,
    Tile_AnyTensorOf<[Tile_LanesTensor, Tile_WarpRowsTensor]>:$x,
    OptionalAttr<I64Attr>:$offset);
  let results =
      (outs Tile_AnyTensorOf<[Tile_RowsTensor, Tile_WarpRowsTensor]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$result,
                                 "Reduction":$reduction, "::mlir::Value":$x), [{
    build($_builder, $_state, result, reduction, x, ::mlir::IntegerAttr());
  }]>];
  let extraClassDeclaration = [{
    /// The bytes of shared memory in which warps exchange what they have; 0 for one.
    int64_t getNumScratchBytes();
  }];
  let assemblyFormat = "$reduction $x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_ReduceRowsOp : Tile_Op<"reduce_rows", [MemoryEffects<[MemWrite]>]> {
  let summary = "combines the rows of a register tile";
  let description = [{
    `result[j]` is all `x[i, j]` combined: within a thread, then between the lanes
    of its warp, then between the warps. Several warps exchange theirs through shared
    memory, and meet there: none of them may be elsewhere, as behind a
    `tile.any`. `offset`, the byte of shared memory at which each warp has its
    values, is set by `tile-allocate-smem`.

    ```mlir
    %s = tile.reduce_rows add %p : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
    ```
  }];
  let arguments = (ins Tile_ReductionAttr:$reduction, Tile_FragmentTensor:$x,
                       OptionalAttr<I64Attr>:$offset);
  let results = (outs Tile_ColumnsTensor:$result);
  let extraClassDeclaration = [{
    /// The bytes of shared memory in which warps exchange what they have; 0 for one.
    int64_t getNumScratchBytes();
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result,
                                 "Reduction":$reduction, "::mlir::Value":$x), [{
    build($_builder, $_state, result, reduction, x, ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = "$reduction $x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [RecursiveMemoryEffects, SingleBlock, OnlyReads]> {
  let summary = "applies scalar code to each element and its position";
  let description = [{
    The region gets an element of each tile and its coordinates in the tile. It
    may read memory; so masks, score modifications and biases are written once
    for every layout.

    ```mlir
    %y = tile.map %x : (tensor<128x64xf32, #tile.fragment<4>>) -> tensor<128x64xf32, #tile.fragment<4>> {
    ^bb0(%e: f32, %i: index, %j: index):
      %keep = arith.cmpi sle, %j, %i : index
      %r = arith.select %keep, %e, %minus_infinity : f32
      tile.yield %r : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_RegisterTensor>:$inputs);
  let results = (outs Tile_RegisterTensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "($inputs^)? attr-dict `:` functional-type($inputs, $result) custom<OwnRegion>($body)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield",
    [Pure, Terminator,
     ParentOneOf<["MapOp", "DequantizeOp", "MmaQuantizedOp", "RingDequantizeOp",
                  "PutDequantizedOp"]>]> {
  let summary = "ends the region of a map, or the one that gives the scales of rows";
  let arguments = (ins AnyType:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

def Tile_StoreOp : Tile_Op<"store",
    [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "writes a register tile to global memory";
  let description = [{
    Row `r` goes to row `i + r` of the matrix (or vector, for a value for each
    row or column) at the leading indices; rows from `rows` on are not written. With
    `to_end` these lie behind the last row of the memory, so that a copy which ends there writes the same.
    The index of a first column and `packed` rows are as in `tile.fetch`; warp rows
    always have that index, and are not packed. Columns of a matrix from `columns`
    on are not written. A thread stores two neighbours of a fragment at once, so the
    first column and the strides of the memory are even; with `columns` they need
    not be, and it stores one by one. Values of rows may be integers. With `add` elements of f32 of a fragment are
    added to those in memory, each at once, in no order between blocks.

    ```mlir
    tile.store %o, %out[%b, %h, %i] rows(%n) : tensor<128x64xf16, #tile.fragment<4>> to memref<?x?x?x64xf16>
    ```
  }];
  let arguments = (ins UnitAttr:$add,
    AnyTypeOf<[Tile_FragmentTensor, Tile_WideFragmentTensor, Tile_RowsTensor,
               Tile_ColumnsTensor, Tile_WarpRowsTensor]>:$x,
    Tile_GlobalMemory<[F16, BF16, F32, I32]>:$destination, Variadic<Index>:$indices,
    Optional<Index>:$rows, UnitAttr:$to_end, Optional<Index>:$columns,
    OptionalAttr<I64Attr>:$packed);
  let builders = [OpBuilder<(ins "::mlir::Value":$x,
      "::mlir::Value":$destination, "::mlir::ValueRange":$indices,
      "::mlir::Value":$rows, "::mlir::Value":$columns), [{
    build($_builder, $_state, /*add=*/false, x, destination, indices, rows,
          /*to_end=*/false, columns, /*packed=*/::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    (`add` $add^)? $x `,` $destination `[` $indices `]`
    (`packed` `(` $packed^ `)`)? (`rows` `(` $rows^ `)`)? (`to_end` $to_end^)?
    (`columns` `(` $columns^ `)`)? attr-dict
    `:` type($x) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Tile_StoreBulkOp : Tile_Op<"store_bulk",
    [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "writes a register tile to global memory through shared memory";
  let description = [{
    Does what `tile.store` does, for a matrix and whole rows of a kernel's argument, all rows of the tile that are
    before the last one of the memory, by bulk copies from a tile of shared memory: as many columns at a
    time as that has. `offset`, its byte in shared memory, is set by
    `tile-allocate-smem`. Each warpgroup writes and stores its own rows of that tile, and waits for none of the others.

    ```mlir
    tile.store_bulk %o, %out[%b, %h, %i] through !tile.smem<128x64xf16, swizzle = 128>
      : tensor<128x64xf16, #tile.fragment<8>> to memref<?x?x?x64xf16>
    ```

    Memory has at most five dimensions. With `rows` the first rows of the tile are stored alone, also where memory has
    more behind them. Memory then has at most four dimensions. The tensor map is of overlapping tiles, one from each
    row of memory on. A copy of n rows takes the tile that ends with them, and starts n rows before its end: what is
    beyond a tile's end is not written (PTX ISA, "Tensor, out of bound access").

    ```mlir
    tile.store_bulk %o, %out[%b, %h, %i] rows(%n) through !tile.smem<128x64xf16, swizzle = 128>
      : tensor<128x64xf16, #tile.fragment<8>> to memref<1x?x?x64xf16>
    ```

    Or all columns go `in` the stages of a tile that is not read any more, whose
    ring has `row_stages`: each warpgroup's 64 rows where its rows of the tile were.

    ```mlir
    tile.store_bulk %o, %out[%b, %h, %i] through !tile.smem<64x256xf16, swizzle = 128>
      in %qt : !tile.smem<128x256xf16, swizzle = 128>
      : tensor<128x256xf16, #tile.fragment<8>> to memref<?x?x?x256xf16>
    ```

    Or they go through the memory of a tile of the same type, the only one of its ring, which is not read and
    not copied to any more.

    ```mlir
    tile.store_bulk %dk, %out[%b, %h, %i] through !tile.smem<128x128xf16, swizzle = 128>
      in %kt : !tile.smem<128x128xf16, swizzle = 128>
      : tensor<128x128xf16, #tile.fragment<8>> to memref<?x?x?x128xf16>
    ```

    With `add` elements of f32 are added to those in memory, each at once, in no
    order between blocks (`cp.reduce.async.bulk`).

    ```mlir
    tile.store_bulk add %dq, %out[%b, %h, %i] through !tile.smem<128x32xf32, swizzle = 128>
      : tensor<128x64xf32, #tile.fragment<8>> to memref<?x?x?x64xf32>
    ```
  }];
  let arguments = (ins UnitAttr:$add, Tile_FragmentTensor:$x, Tile_GlobalTensor:$destination,
                       Variadic<Index>:$indices, Optional<Index>:$rows,
                       TypeAttrOf<Tile_SmemType>:$stage,
                       Optional<Tile_SmemType>:$reused,
                       OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = [{
    (`add` $add^)? $x `,` $destination `[` $indices `]` (`rows` `(` $rows^ `)`)?
    `through` $stage (`in` $reused^ `:` type($reused))? attr-dict
    `:` type($x) `to` type($destination)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The most dimensions of a memory that roles copy from or store to: a
    /// tensor map has five, and tiles of some `rows` take one more.
    static int64_t getMaxRank(bool ofSomeRows) { return ofSomeRows ? 4 : 5; }
    SmemType getStageType() {
      return ::llvm::cast<SmemType>(getStage());
    }
    /// Whether both may go through the same memory: the same warps store the
    /// same rows from the same bytes of each panel. Other rows or panels of
    /// other widths would mix the bytes of warpgroups, which do not wait for
    /// each other.
    bool canShareStage(StoreBulkOp other);
  }];
}

def Tile_AddInOrderOp : Tile_Op<"add_in_order",
    [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "adds a shared-memory tile to global memory, in an order";
  let description = [{
    Blocks that add to the same tile of a kernel's argument have ranks 0, 1, 2 and
    so on, whatever blocks finish first, so that sums are the same from run to run.
    `counts` says how many have added. The op waits until that is its `rank`;
    the first one stores the tile, as there is nothing yet, and all others add it;
    when its elements are there for all blocks, the count becomes `rank + 1`.

    ```mlir
    tile.add_in_order %dq, %sums[%b, %h, %i, %c0] rank(%rank) of %counts[%b, %h, %i]
        : !tile.smem<128x64xf32, swizzle = 128> to memref<?x?x?x128x64xf32>, memref<?x?x?xi32>
    ```

    Rows go from the last index on, as in `tile.store_bulk`; those that the memory
    does not have are left out. Counts are 0 when the kernel starts.

    A GPU starts blocks by their numbers, and may have none left for the others when
    some wait. So a block waits only for blocks of smaller numbers: ranks follow
    the order of blocks, or of tiles that these claim (`tile.claim`). Emulation, which runs such blocks one after the other,
    refuses a rank above the count. One thread of a warp waits and adds
    (`cp.reduce.async.bulk`), while others compute. In a role of two warps each warp has
    the tiles of every other step.
  }];
  let arguments = (ins Tile_SmemType:$tile, Tile_GlobalMemory<[F32]>:$sums,
                       Variadic<Index>:$indices, Index:$rank,
                       Tile_GlobalMemory<[I32]>:$counts, Variadic<Index>:$count_indices);
  let assemblyFormat = [{
    $tile `,` $sums `[` $indices `]` `rank` `(` $rank `)` `of`
    $counts `[` $count_indices `]` attr-dict
    `:` type($tile) `to` type($sums) `,` type($counts)
  }];
  let hasVerifier = 1;
}

def Tile_StoreDiagonalsOp : Tile_Op<"store_diagonals",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "stores the sums of the diagonals of a shared-memory tile";
  let description = [{
    Element `R + c - r` of the row of R + C elements that the indices name becomes the sum of the elements at rows `r` and
    columns `c` of a tile of R rows and C columns, in f32;
    element 0, of no diagonal, becomes 0. What was there before is not part of it.

    ```mlir
    tile.store_diagonals %ds, %sums[%b, %h, %i, %j]
        : !tile.smem<128x64xf16, swizzle = 128> to memref<?x?x?x?x192xf32>
    ```

    One warp of a role of its own does it, while others compute: 128 rows of 64 or 128 elements of
    16 bits, `swizzle = 128`.
  }];
  let arguments = (ins Tile_SmemType:$tile, Tile_GlobalMemory<[F32]>:$sums,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $tile `,` $sums `[` $indices `]` attr-dict
    `:` type($tile) `to` type($sums)
  }];
  let hasVerifier = 1;
}

def Tile_StoreInterleavedOp : Tile_Op<"store_interleaved",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "stores the columns of a shared-memory tile of 8 bits as rows";
  let description = [{
    Element (`16 c + 8 i + 2 t + e`, `d`) of the tile, for i and e of 0 and 1 and t from 0 to 3, becomes element `16 c + 4 t + 2 i + e` of the row
    that lies `d` behind the row that the indices name (`flash.interleave`). Rows in memory are as long as the tile has rows, a multiple of 16.

    ```mlir
    tile.store_interleaved %v, %memory[%b, %h, %row]
        : !tile.smem<128x64xf8E4M3FN, swizzle = 64> to memref<?x?x?x128xf8E4M3FN>
    ```
  }];
  let arguments = (ins Tile_QuantizedSmem:$tile, Tile_GlobalMemory<[F8E4M3FN]>:$destination,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $tile `,` $destination `[` $indices `]` attr-dict
    `:` type($tile) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Tile_ClaimOp : Tile_Op<"claim",
    [MemoryEffects<[MemRead, MemWrite]>, OnlyReads]> {
  let summary = "the next tile that no block has, or the end of a loop";
  let description = [{
    Blocks that claim tiles take one after the other, as they get done, by numbers that go up. So a block that waits
    for its rank (`tile.add_in_order`) waits for tiles that others have claimed before it and work on. The count is
    the number of claimed tiles; it is 0 when the kernel starts.

    The op is the first in a loop over tiles: an `scf.for` from 0 in steps of 1 up to their number, whose `step` it
    has. Where no tile is left the loop ends. Each role of the block has the op, and all get the same number: one
    of the threads that copy claims the tile, and shares its number through shared memory at `offset`, which
    `tile-allocate-smem` sets.

    ```mlir
    scf.for %step = %c0 to %tiles step %c1 {
      %number = tile.claim %step of %counts[%c0, %last] : memref<?x?xi32>
      %h, %i = tile.position %number of (%heads, %tiles_of_head) interleaved
    ```

    The region computes scalars of the tile, of its number and of what it reads in memory that does not change. The
    thread that claims the tile carries it out if there is such a tile, and shares the results (`tile.share_scalars`)
    as it shares the number. The others read each where they use it, so that they need no register for it in between.
    A tile without work, which `unless` says, is skipped: the thread claims the next one instead. The loop goes over
    it where that costs nothing, as in emulation.

    ```mlir
      %number, %row = tile.claim %step of %counts[%c0] shares {
      ^bb0(%n: index):
        %offset = memref.load %offsets[%n] : memref<?xi32>
        %first = arith.index_cast %offset : i32 to index
        %isNone = arith.cmpi sge, %first, %end : index
        tile.share_scalars %first unless %isNone : index
      } : memref<?xi32> -> index
    ```
  }];
  let arguments = (ins Index:$step, Tile_GlobalMemory<[I32]>:$counts,
                       Variadic<Index>:$indices, OptionalAttr<I64Attr>:$offset);
  let results = (outs Index:$number, Variadic<Index>:$shared);
  let regions = (region MaxSizedRegion<1>:$scalars);
  let assemblyFormat = [{
    $step `of` $counts `[` $indices `]` attr-dict (`shares` $scalars^)? `:` type($counts) (`->` type($shared)^)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// How many tiles the thread that claims may be ahead of the others.
    static constexpr int64_t numSlots = 2;
    /// Where a slot of shared memory has what: a barrier that says that a tile is
    /// there, one that says that all have read it, the number, and what is shared.
    static constexpr int64_t offsetOfEmptyBarrier = 8, offsetOfNumber = 16,
                             offsetOfShared = 20;
    /// The size of a slot, which starts at a multiple of 8 bytes.
    int64_t getSlotBytes() {
      return llvm::alignTo(offsetOfShared + 4 * getShared().size(), 8);
    }
    int64_t getNumSharedBytes() { return numSlots * getSlotBytes(); }
    /// Whether tiles without work are left out.
    bool leavesOutTiles();
  }];
}

def Tile_ShareScalarsOp : Tile_Op<"share_scalars",
    [Pure, Terminator, AttrSizedOperandSegments, HasParent<"ClaimOp">]> {
  let summary = "ends the region of a claim with what all roles get";
  let arguments = (ins Variadic<Index>:$shared, Optional<I1>:$isNone);
  let assemblyFormat = "$shared (`unless` $isNone^)? attr-dict `:` type($shared)";
}

//===----------------------------------------------------------------------===//
// Shared memory after allocation
//===----------------------------------------------------------------------===//

def Tile_SmemViewOp : Tile_Op<"smem_view", [Pure]> {
  let summary = "the tile at a byte of the block's shared memory";
  let description = [{
    What rings become once they are allocated. The offset is a multiple of 1024.

    ```mlir
    %kt = tile.smem_view %c16384 : !tile.smem<128x64xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Index:$offset);
  let results = (outs Tile_SmemType:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
}

def Tile_CopyOp : Tile_Op<"copy", [AttrSizedOperandSegments]> {
  let summary = "starts to copy into a shared-memory tile";
  let description = [{
    `tile.copy_async` without its ring: every thread copies its share by
    `cp.async`, which `nvvm.cp.async.commit.group` and
    `nvvm.cp.async.wait.group` follow. It fills `tile_rows` rows of the tile from
    `first_row` on, if these are given.
  }];
  let arguments = (ins Tile_GlobalTensor:$source, Variadic<Index>:$indices,
                       Optional<Index>:$rows, Tile_SmemType:$destination,
                       Optional<Index>:$first_row,
                       OptionalAttr<I64Attr>:$tile_rows,
                       OptionalAttr<I64Attr>:$packed);
  let assemblyFormat = [{
    $source `[` $indices `]` (`packed` `(` $packed^ `)`)?
    (`rows` `(` $rows^ `)`)? `to` $destination
    (`[` $first_row^ `]`)? attr-dict `:` type($source) `to` type($destination)
  }];
  let hasVerifier = 1;
}

def Tile_PutOp : Tile_Op<"put", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes columns of a register tile to shared memory";
  let description = [{
    Writes the columns from `column` on, as many as there are and as the destination has:
    16-bit elements by `stmatrix`, f32 and all `by_pairs` by stores of the two
    neighbours that a thread has. The rows of a thread's warp go to the same rows of the
    destination, or of the 64 that its warpgroup has of its own. Values for each row go eight in a row.

    Sixteen lanes at a time store four rows of eight columns of f32, and the swizzle
    of 128 bytes gives two of them the same banks. With `alternate` odd rows have the columns that
    are 16 further meanwhile, whose banks no other row uses; it takes a choice
    for each element.

    ```mlir
    tile.put %o, %stage {column = 64} : tensor<128x128xf16, #tile.fragment<8>> to !tile.smem<128x64xf16, swizzle = 128>
    ```
  }];
  let arguments = (ins Tile_AnyTensorOf<[Tile_FragmentTensor, Tile_RowsTensor]>:$x, Tile_SmemType:$destination,
                       I64Attr:$column, UnitAttr:$by_pairs,
                       UnitAttr:$alternate);
  let assemblyFormat = [{
    $x `,` $destination attr-dict `:` type($x) `to` type($destination)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether a put of `x` to `to` may alternate between columns.
    static bool canAlternate(::mlir::RankedTensorType x, SmemType to);
  }];
}

def Tile_PutDequantizedOp : Tile_Op<"put_dequantized", [SingleBlock, OnlyReads]> {
  let summary = "writes a tile of 8 bits to shared memory as elements that are multiplied";
  let description = [{
    `tile.ring.dequantize` without its ring.
  }];
  let arguments = (ins Tile_QuantizedSmem:$tile, Tile_SmemType:$destination);
  let regions = (region SizedRegion<1>:$scale);
  let assemblyFormat = [{
    $tile `to` $destination attr-dict `:` type($tile) `to` type($destination) custom<OwnRegion>($scale)
  }];
  let hasVerifier = 1;
}

def Tile_CountUpOp : Tile_Op<"count_up", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a count, which is one more afterwards";
  let description = [{
    How a thread claims a tile (`tile.claim`): no two threads of the kernel get the same count.

    ```mlir
    %number = tile.count_up %counts[%c0, %last] : memref<?x?xi32>
    ```
  }];
  let arguments = (ins Tile_GlobalMemory<[I32]>:$counts, Variadic<Index>:$indices);
  let results = (outs I32:$count);
  let assemblyFormat = "$counts `[` $indices `]` attr-dict `:` type($counts)";
  let hasVerifier = 1;
}

class Tile_RankOp<string mnemonic> : Tile_Op<mnemonic> {
  let arguments = (ins Index:$rank, Tile_GlobalMemory<[I32]>:$counts,
                       Variadic<Index>:$indices);
  let assemblyFormat = [{
    $rank `of` $counts `[` $indices `]` attr-dict `:` type($counts)
  }];
  let hasVerifier = 1;
}

def Tile_AwaitRankOp : Tile_RankOp<"await_rank"> {
  let summary = "waits until a count is a rank";
  let description = [{
    The first half of `tile.add_in_order`, for one thread: what other blocks have
    added before, by bulk copies, is there for those that it starts.

    ```mlir
    tile.await_rank %rank of %counts[%b, %h, %i] : memref<?x?x?xi32>
    ```
  }];
}

def Tile_FinishRankOp : Tile_RankOp<"finish_rank"> {
  let summary = "makes a count the next rank";
  let description = [{
    The second half: for one thread, whose bulk copies are complete.

    ```mlir
    tile.finish_rank %rank of %counts[%b, %h, %i] : memref<?x?x?xi32>
    ```
  }];
}

#endif // FLASH_TILE_OPS_TD
