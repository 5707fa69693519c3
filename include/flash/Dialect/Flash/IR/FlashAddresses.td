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

/// How many of something there are, [1].
def Flash_CountTensor : Flash_VectorOf<[I32]>;

/// Elements of keys and values in memory, which flash.dequantize converts to those that attention takes.
defvar Flash_quantizedElements = [F8E4M3FN, I8];
def Flash_QuantizedTensor : Flash_TensorOf<Flash_quantizedElements>;
/// Rows that an address makes a view of.
def Flash_RowsTensor : Flash_TensorOf<[F16, BF16, F32] # Flash_quantizedElements>;

/// An address whose `memory` has sequences that start at `offsets`.
class Flash_PackedRowsOp<string mnemonic, list<Trait> traits = []>
    : Flash_Op<mnemonic, traits # [Pure, AttrSizedOperandSegments, Flash_AddressOpInterface]> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    PackedRows getRows(::mlir::OpBuilder &b, ::mlir::Location loc) {
      return {b, loc, getMemory(), getOffsets(), getCount(), getSizes()};
    }
    // Of AddressOpInterface.
    bool hasLengths(::mlir::Value lengths);
    bool hasCount() { return static_cast<bool>(getCount()); }
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
      PackedRows all = getRows(b, loc);
      all.count = {};
      return all.emitTileCount(rows);
    }
    ::mlir::Value emitExistingTiles(::mlir::OpBuilder &b, ::mlir::Location loc,
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

def Flash_ClausesOfPackedRows : Flash_Clauses<[
  Flash_ValueClause<"count">, Flash_Clause<"of", "`[` $sizes^ `]`">
]>;

def Flash_UnpackOp : Flash_PackedRowsOp<"unpack"> {
  let summary = "sequences that lie behind each other, as a batch";
  let description = [{
    The M T rows of `memory : [M, H, T, D]`, or `[M, H, T]`, belong to B sequences, one behind the other:
    sequence b has the rows from `offsets[b]` to `offsets[b + 1]`, of `offsets : [B + 1]`, and ends with the T rows among
    which it starts at the latest. `of[M, T]` says these sizes, so that views of several tensors with the same sizes have the same
    addresses; what is computed is undefined if they are not. `count : [1]` says how many sequences, the first ones, may have
    rows: then kernels end with these, however many offsets there is room for. Offsets behind them are all the same; what is
    computed is undefined if they are not, and reads no other memory. The first result
    is a view of them as a batch `[B, H, T, D]`, in which row n of batch b is row n of sequence b; rows
    behind a sequence's last one do not exist and are zeros. The second result `[B]` has how many
    rows each sequence has.

    Offsets do not decrease and lie between 0 and M T, which `flash-run` verifies where they are an argument; others
    are clamped, so that no row outside `memory` is read.

    No kernel has the view in memory: `flash.attention` reads the rows where they lie.

    Example:

    ```mlir
    %qs, %nq = flash.unpack %q by %offsets : tensor<1x8x?x64xf16>, tensor<?xi32>
        -> tensor<?x8x?x64xf16>, tensor<?xi32>
    ```
  }];
  let arguments = (ins Flash_RowsTensor:$memory, Flash_OffsetsTensor:$offsets,
    Optional<Flash_CountTensor>:$count, Variadic<Index>:$sizes);
  let results = (outs Flash_RowsTensor:$view, Flash_LengthsTensor:$lengths);
  let assemblyFormat = !strconcat("$memory `by` $offsets",
    Flash_ClausesOfPackedRows.format, "attr-dict", Flash_ClausesOfPackedRows.end, [{
    `:` type($memory) `,` type($offsets) `->` type($view) `,` type($lengths)
  }]);
}

def Flash_PackOp : Flash_PackedRowsOp<"pack", [AllTypesMatch<["memory", "result"]>]> {
  let summary = "puts the sequences of a batch behind each other";
  let description = [{
    The inverse of `flash.unpack`: row n of batch b of `view : [B, H, N, D]`, or `[B, H, N]`, becomes row
    `offsets[b] + n` of `memory : [M, H, T, D]`, or `[M, H, T]`, if the sequence has it. Rows of no sequence stay what
    they are in `memory`. If that is a `linalg.fill`, kernels write these rows alone and no row twice; M is 1 then on a GPU.

    Example:

    ```mlir
    %packed = flash.pack %o by %offsets into %e : tensor<?x8x?x64xf16>, tensor<?xi32>
        into tensor<1x8x?x64xf16>
    ```
  }];
  let arguments = (ins Flash_FloatTensor:$view, Flash_OffsetsTensor:$offsets,
    Flash_FloatTensor:$memory, Optional<Flash_CountTensor>:$count, Variadic<Index>:$sizes);
  let results = (outs Flash_FloatTensor:$result);
  let assemblyFormat = !strconcat("$view `by` $offsets `into` $memory",
    Flash_ClausesOfPackedRows.format, "attr-dict", Flash_ClausesOfPackedRows.end, [{
    `:` type($view) `,` type($offsets) `into` type($memory)
  }]);
}

/// The document of each row.
def Flash_DocumentsTensor
    : RankedTensorOf<[AnySignlessInteger], [HasAnyRankOfPred<[1, 2]>, Flash_NoEncoding],
                     "1D or 2D tensor of integers without encoding">;

def Flash_DocumentOffsetsOp : Flash_Op<"document_offsets", [Pure]> {
  let summary = "where documents begin that lie behind each other";
  let description = [{
    `ids : [B, N]`, or `[N]` for B equal rows, has the document of each of the first `rows` elements of the first `batches`
    rows; the elements of all rows are numbered one behind the other. A document begins where a row does, and where an id
    is not the one before it in the row. The results are of i32:

      - `offsets : [C + 1]`, where C is `most`: the numbers of the elements where documents begin, and then, as often as
        there is room, the number of all elements;
      - `count : [1]`: how many documents there are if no id is less than the one before it in the row and they are at most C,
        else 0, and the offsets are from 0 to the number of all elements then.

    So `flash.unpack ... by %offsets count(%count)` has a sequence for each document, unless the count is 0. There are fewer than
    2^24 elements.

    Example:

    ```mlir
    %offsets, %count = flash.document_offsets %ids of[%b, %n] most(%c) : tensor<?x?xi32> -> tensor<?xi32>, tensor<1xi32>
    ```
  }];
  let arguments = (ins Flash_DocumentsTensor:$ids, Index:$batches, Index:$rows, Index:$most);
  let results = (outs Flash_VectorOf<[I32]>:$offsets, Flash_CountTensor:$count);
  let assemblyFormat = [{
    $ids `of` `[` $batches `,` $rows `]` `most` `(` $most `)` attr-dict `:` type($ids) `->`
    type($offsets) `,` type($count)
  }];
  let hasVerifier = 1;
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
  let summary = "rows of 8 bits, as elements that attention takes";
  let description = [{
    Each element of the result is `f32(source) * scale`, a product in f32, rounded to the nearest element of f16 or bf16. The
    source is `[B, H, N, D]`, of `f8E4M3FN` or of `i8`, which is signed, and may be a view (`flash.unpage`, `flash.unpack`). The scale is one of three:

      - `[1]`, the same for all elements;
      - `[B, H]`, one for each batch and head;
      - `[B, H, N]`, one for each row, and may be a view, too.

    No kernel has the result in memory: `flash.attention` takes it as keys or values, reads elements of 8 bits, and converts each tile.
    Attention on the 16-bit tensor has the same results, bit for bit, where the schedules are the same. With `precision(fp8)`
    queries are quantized, too, and the elements of 8 bits may be multiplied themselves.

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

def Flash_InterleaveOp : Flash_Op<"interleave", [Pure]> {
  let summary = "a transposed tile of values of 8 bits, for products with fragments";
  let description = [{
    Row `16 c + 8 i + 2 t + e` of the tile, for i and e of 0 and 1 and t from 0 to 3, becomes column `16 c + 4 t + 2 i + e` of the result. A thread
    of a GPU has two neighbouring columns of eight of a fragment of scores, and multiplies four neighbours of 8 bits: in this
    order the probabilities that it has are those that it multiplies. Kernels store what is interleaved in
    memory, so that the values of a tile have keys as neighbours; `precision(fp8)` says what is multiplied by it.

    Example:

    ```mlir
    %vi = flash.interleave %vt : tensor<128x64xf8E4M3FN> -> tensor<64x128xf8E4M3FN>
    ```
  }];
  let arguments = (ins Flash_MatrixOf<[F8E4M3FN]>:$tile);
  let results = (outs Flash_MatrixOf<[F8E4M3FN]>:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile) `->` type($result)";
  let hasVerifier = 1;
}

#endif // FLASH_ADDRESSES_TD
