//===- FlashAddresses.td - Views of rows in memory ---------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td. Operands of attention whose rows do not lie in memory
// as their dimensions say.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_ADDRESSES_TD
#define FLASH_ADDRESSES_TD

/// Where each sequence starts among rows that lie behind each other, and where the last one ends.
def Flash_OffsetsTensor : Flash_VectorOf<[I32, I64]>;

/// Elements of keys and values in memory, which flash.dequantize converts to those that attention takes.
defvar Flash_quantizedElements = [F8E4M3FN, I8];
def Flash_QuantizedTensor : Flash_TensorOf<Flash_quantizedElements>;
/// Rows that an address makes a view of.
def Flash_RowsTensor : Flash_TensorOf<[F16, BF16, F32] # Flash_quantizedElements>;

/// An address whose `memory` has sequences that start at `offsets`.
class Flash_PackedRowsOp<string mnemonic, list<Trait> traits = []>
    : Flash_Op<mnemonic, traits # [Pure, Flash_AddressOpInterface]> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    PackedRows getRows(::mlir::OpBuilder &b, ::mlir::Location loc) {
      return {b, loc, getMemory(), getOffsets()};
    }
    // Of AddressOpInterface.
    bool hasLengths(::mlir::Value lengths);
    ::llvm::SmallVector<::mlir::OpFoldResult>
    emitAddress(::mlir::OpBuilder &b, ::mlir::Location loc,
                ::llvm::ArrayRef<::mlir::OpFoldResult> position) {
      return getRows(b, loc).emitAddress(position);
    }
    ::mlir::Value emitLength(::mlir::OpBuilder &b, ::mlir::Location loc,
                             ::mlir::Value batch) {
      return getRows(b, loc).emitLength(batch);
    }
    ::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>
    emitGaps(::mlir::OpBuilder &b, ::mlir::Location loc) {
      return getRows(b, loc).emitGaps();
    }
    ::llvm::SmallVector<::mlir::OpFoldResult>
    emitSizes(::mlir::OpBuilder &b, ::mlir::Location loc) {
      return getRows(b, loc).emitSizes();
    }
    ::mlir::Value emitTileCount(::mlir::OpBuilder &b, ::mlir::Location loc,
                                int64_t rows) {
      return getRows(b, loc).emitTileCount(rows);
    }
    ::mlir::Value emitFirstTile(::mlir::OpBuilder &b, ::mlir::Location loc,
                                ::mlir::Value batch, int64_t rows) {
      return getRows(b, loc).emitFirstTile(batch, rows);
    }
    ::mlir::Value emitBatchOfTile(::mlir::OpBuilder &b, ::mlir::Location loc,
                                  ::mlir::Value number, int64_t rows) {
      return getRows(b, loc).emitBatchOfTile(number, rows);
    }
  }];
}

def Flash_UnpackOp : Flash_PackedRowsOp<"unpack"> {
  let summary = "sequences that lie behind each other, as a batch";
  let description = [{
    The rows of `memory : [1, H, T, D]`, or `[1, H, T]`, belong to B sequences, one behind the other:
    sequence b has the rows from `offsets[b]` to `offsets[b + 1]`, of `offsets : [B + 1]`. The first result
    is a view of them as a batch `[B, H, T, D]`, in which row n of batch b is row n of sequence b; rows
    behind a sequence's last one do not exist and are zeros. The second result `[B]` has how many
    rows each sequence has.

    Offsets do not decrease and lie between 0 and T, which `flash-run` verifies where they are an argument; others
    are clamped, so that no row outside `memory` is read.

    No kernel has the view in memory: `flash.attention` reads the rows where they lie.

    Example:

    ```mlir
    %qs, %nq = flash.unpack %q by %offsets : tensor<1x8x?x64xf16>, tensor<?xi32>
        -> tensor<?x8x?x64xf16>, tensor<?xi32>
    ```
  }];
  let arguments = (ins Flash_RowsTensor:$memory, Flash_OffsetsTensor:$offsets);
  let results = (outs Flash_RowsTensor:$view, Flash_LengthsTensor:$lengths);
  let assemblyFormat = [{
    $memory `by` $offsets attr-dict `:` type($memory) `,` type($offsets) `->`
    type($view) `,` type($lengths)
  }];
}

def Flash_PackOp : Flash_PackedRowsOp<"pack", [AllTypesMatch<["memory", "result"]>]> {
  let summary = "puts the sequences of a batch behind each other";
  let description = [{
    The inverse of `flash.unpack`: row n of batch b of `view : [B, H, N, D]`, or `[B, H, N]`, becomes row
    `offsets[b] + n` of `memory : [1, H, T, D]`, or `[1, H, T]`, if it is before `offsets[b + 1]`. Rows of no sequence stay what
    they are in `memory`. If that is a `linalg.fill`, kernels write these rows alone and no row twice.

    Example:

    ```mlir
    %packed = flash.pack %o by %offsets into %e : tensor<?x8x?x64xf16>, tensor<?xi32>
        into tensor<1x8x?x64xf16>
    ```
  }];
  let arguments = (ins Flash_FloatTensor:$view, Flash_OffsetsTensor:$offsets,
    Flash_FloatTensor:$memory);
  let results = (outs Flash_FloatTensor:$result);
  let assemblyFormat = [{
    $view `by` $offsets `into` $memory attr-dict `:` type($view) `,` type($offsets) `into`
    type($memory)
  }];
}

/// The pages of each sequence.
def Flash_TableTensor : Flash_MatrixOf<[I32]>;

def Flash_UnpageOp : Flash_Op<"unpage", [Pure, Flash_AddressOpInterface]> {
  let summary = "sequences that lie in pages, as a batch";
  let description = [{
    Rows of `memory : [P, H, page, D]`, or `[P, H, page]`, lie in P pages, which sequences take as they grow. Page i of sequence b is
    the page `table[b, i]`, of `table : [B, C]`. The result is a view of the sequences as a batch `[B, H, N, D]`, or `[B, H, N]`,
    with N = C * page, in which row n of batch b is row `n mod page` of the page `table[b, n floordiv page]`.
    `lengths : [B]` says how many rows each sequence has; rows behind its last one do not exist and are zeros.
    Lengths are clamped to 0 and N. Entries of the table behind a sequence's last page are not used and may be
    anything.

    The others are at least 0 and below P, which `flash-run` verifies where the table and the lengths are arguments;
    they are clamped, so that no row outside `memory` is read. Sequences may share pages.

    No kernel has the view in memory: `flash.attention` takes it as keys or values, beside the same lengths as
    `key_lengths`, and reads the rows where they lie. A tile of keys is one part of a page, or it is several
    pages: `key_tile` divides the page's rows, or is a multiple of them.

    Example:

    ```mlir
    %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>)
        : tensor<?x8x16x64xf16>, tensor<?x?xi32> -> tensor<?x8x?x64xf16>
    ```
  }];
  let arguments = (ins Flash_RowsTensor:$memory, Flash_TableTensor:$table,
    Flash_LengthsTensor:$lengths);
  let results = (outs Flash_RowsTensor:$view);
  let assemblyFormat = [{
    $memory `by` $table `lengths` `(` $lengths `:` type($lengths) `)` attr-dict `:`
    type($memory) `,` type($table) `->` type($view)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The pages that rows lie in which attention takes; null if they lie in none.
    static UnpageOp ofRows(::mlir::Value rows) {
      return ::llvm::dyn_cast_if_present<UnpageOp>(
          AddressOpInterface::ofRows(rows).getOperation());
    }
    int64_t getPageRows() { return getMemory().getType().getDimSize(2); }
    // Of AddressOpInterface.
    std::optional<int64_t> getContiguousRows() { return getPageRows(); }
    bool hasLengths(::mlir::Value lengths) { return lengths == getLengths(); }
    ::llvm::SmallVector<::mlir::OpFoldResult>
    emitAddress(::mlir::OpBuilder &b, ::mlir::Location loc,
                ::llvm::ArrayRef<::mlir::OpFoldResult> position);
    ::mlir::Value emitLength(::mlir::OpBuilder &b, ::mlir::Location loc,
                             ::mlir::Value batch);
    ::llvm::SmallVector<::mlir::OpFoldResult>
    emitSizes(::mlir::OpBuilder &b, ::mlir::Location loc);
  }];
}

//===----------------------------------------------------------------------===//
// Elements of 8 bits
//===----------------------------------------------------------------------===//

def Flash_DequantizeOp : Flash_Op<"dequantize", [Pure]> {
  let summary = "keys or values of 8 bits, as elements that attention takes";
  let description = [{
    Each element of the result is `f32(source) * scale`, a product in f32, rounded to the nearest element of f16 or bf16. The
    source is `[B, H, N, D]`, of `f8E4M3FN` or of `i8`, which is signed, and may be a view (`flash.unpage`, `flash.unpack`). The scale is one of three:

      - `[1]`, the same for all elements;
      - `[B, H]`, one for each batch and head;
      - `[B, H, N]`, one for each row, and may be a view, too.

    No kernel has the result in memory: `flash.attention` takes it as keys or values, reads elements of 8 bits, and converts each tile.
    Attention on the 16-bit tensor has the same results, bit for bit, where the schedules are the same.

    Example:

    ```mlir
    %ks = flash.dequantize %k scale(%s : tensor<2x8xf32>)
        : tensor<2x8x512x64xf8E4M3FN> -> tensor<2x8x512x64xf16>
    ```
  }];
  let arguments = (ins Flash_QuantizedTensor:$source, Flash_F32Tensor:$scale);
  let results = (outs Flash_TensorOf<[F16, BF16]>:$result);
  let assemblyFormat = [{
    $source `scale` `(` $scale `:` type($scale) `)` attr-dict `:` type($source) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def Flash_DequantizeTileOp : Flash_Op<"dequantize_tile",
    [RecursiveMemoryEffects, SingleBlock]> {
  let summary = "a tile of 8 bits, as elements that are multiplied";
  let description = [{
    `flash.dequantize` of a tile `[M, D]` that a block of a GPU loads, whose region gives the scale of a row of the tile and may read memory.
    `convert-flash-to-scf` writes it; programs for the CPU have `linalg` instead.

    Example:

    ```mlir
    %kt = flash.dequantize_tile %t : tensor<64x128xf8E4M3FN> -> tensor<64x128xf16> {
    ^bb0(%row: index):
      %s = tensor.extract %scales[%b, %h, %row] : tensor<2x8x512xf32>
      flash.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Flash_MatrixOf<Flash_quantizedElements>:$tile);
  let results = (outs Flash_MatrixOf<[F16, BF16]>:$result);
  let regions = (region SizedRegion<1>:$scale);
  let assemblyFormat = [{
    $tile attr-dict `:` type($tile) `->` type($result) custom<OwnRegion>($scale)
  }];
  let hasVerifier = 1;
}

#endif // FLASH_ADDRESSES_TD
