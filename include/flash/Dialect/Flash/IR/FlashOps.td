//===- FlashOps.td - Attention and its online step ---------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_OPS_TD
#define FLASH_OPS_TD

include "flash/Dialect/Flash/IR/FlashAddressInterface.td"
include "flash/Dialect/Flash/IR/FlashAttentionInterface.td"
include "flash/Dialect/Flash/IR/FlashAttrs.td"
include "flash/Dialect/Flash/IR/FlashStepInterface.td"
include "flash/Machine/TargetAttr.td"
include "flash/Schedule/Schedule.td"
include "flash/Support/Clauses.td"
include "flash/Support/DeclaredAttributes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ParallelCombiningOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

/// Checks that operand groups which must have one operand have one, before
/// anything reads them. ODS checks the sizes of optional groups only.
def Flash_SingleOperandGroups : NativeOpTrait<"SingleOperandGroups">,
                                StructuralOpTrait {
  let cppNamespace = "::flash";
}

/// Checks the groups of one result.
def Flash_SingleResultGroups : NativeOpTrait<"SingleResultGroups">,
                               StructuralOpTrait {
  let cppNamespace = "::flash";
}

class Flash_Op<string mnemonic, list<Trait> traits = []>
    : Op<Flash_Dialect, mnemonic, traits # [DeclaredAttributesOnly]>;

/// An encoding (a sparse format, say) has no meaning here and would be lost.
def Flash_NoEncoding : CPred<
    "!::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding()">;
class Flash_TensorOf<list<Type> types>
    : RankedTensorOf<types, [Flash_NoEncoding],
                     "ranked tensor without encoding">;
class Flash_VectorOf<list<Type> types>
    : RankedTensorOf<types, [HasAnyRankOfPred<[1]>, Flash_NoEncoding],
                     "1D tensor without encoding">;

class Flash_MatrixOf<list<Type> types>
    : RankedTensorOf<types, [HasAnyRankOfPred<[2]>, Flash_NoEncoding],
                     "2D tensor without encoding">;

def Flash_FloatTensor : Flash_TensorOf<[F16, BF16, F32]>;
/// What a step multiplies: on tiles with precision(fp8), elements of 8 bits.
def Flash_FactorTensor : Flash_TensorOf<[F16, BF16, F32, F8E4M3FN]>;
def Flash_FloatTile : Flash_MatrixOf<[F16, BF16, F32]>;
def Flash_F32Tile : Flash_MatrixOf<[F32]>;
def Flash_F32Tensor : Flash_TensorOf<[F32]>;
def Flash_LengthsTensor : Flash_VectorOf<[I32]>;
def Flash_SinkTensor : Flash_VectorOf<[F32]>;
def Flash_BlockTensor
    : RankedTensorOf<[I32], [HasAnyRankOfPred<[4]>, Flash_NoEncoding],
                     "4D tensor without encoding">;

/// The optional operands and attributes that an attention and its gradients
/// share, and their syntax.
defvar Flash_attentionOperands = (ins Optional<Flash_LengthsTensor>:$lengths,
    Optional<Flash_LengthsTensor>:$query_lengths,
    Optional<Flash_LengthsTensor>:$key_lengths,
    Optional<Flash_SinkTensor>:$sink);
defvar Flash_attentionAttributes = (ins OptionalAttr<Flash_LeadingAttr>:$leading,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<Flash_MaskAttrInterface>:$mask,
    OptionalAttr<Flash_PrecisionAttr>:$precision,
    OptionalAttr<DenseI64ArrayAttr>:$block_sizes,
    OptionalAttr<DenseI64ArrayAttr>:$multiples,
    OptionalAttr<Flash_ScheduleAttr>:$schedule);
def Flash_MaskClause
    : Flash_Clause<"mask", "`(` custom<MaskOfClause>($mask)^ `)`">;
defvar Flash_attentionClauses = [
  Flash_AttributeClause<"leading">, Flash_AttributeClause<"scale">,
  Flash_MaskClause, Flash_ValueClause<"lengths">,
  Flash_ValueClause<"query_lengths">, Flash_ValueClause<"key_lengths">,
  Flash_ValueClause<"sink">
];
defvar Flash_scheduleClauses = [
  Flash_Clause<"of", "$block_sizes^">, Flash_AttributeClause<"precision">,
  Flash_AttributeClause<"multiples">, Flash_AttributeClause<"schedule">
];
def Flash_ClausesOfAttention : Flash_Clauses<!listconcat(
  Flash_attentionClauses, [
    Flash_Clause<"blocks", [{`(` $key_tiles^ `,` $tile_counts `:`
      type($key_tiles) `,` type($tile_counts) `)`}]>
  ], Flash_scheduleClauses, [Flash_RegionClause<"score">])>;
def Flash_ClausesOfAttentionGrad : Flash_Clauses<!listconcat(
  Flash_attentionClauses, [
    Flash_Clause<"blocks", [{`(` $key_tiles^ `,` $key_tile_counts `:`
      type($key_tiles) `,` type($key_tile_counts) `)`}]>,
    Flash_Clause<"query_blocks", [{`(` $query_tiles^ `,` $query_tile_counts
      (`,` $query_tile_ranks^)? `:` type($query_tiles) `,`
      type($query_tile_counts) (`,` type($query_tile_ranks)^)? `)`}]>
  ], Flash_scheduleClauses, [
    Flash_ValueClause<"lse_grad">,
    Flash_Clause<"wrt", "`(` $captured^ `:` type($captured) `)`">,
    Flash_RegionClause<"score">
  ])>;

def Flash_AttentionOp : Flash_Op<"attention",
    [Pure, AttrSizedOperandSegments, Flash_SingleOperandGroups,
     Flash_AttentionOpInterface]> {
  let summary = "softmax(scale * q k^T) v on whole tensors";
  let description = [{
    With `q : [B, Hq, Nq, D]`, `k : [B, Hkv, Nk, D]`, `v : [B, Hkv, Nk, Dv]`,
    and query head `h` reading key head `h floordiv (Hq / Hkv)`:

    ```
    s[b,h,i,j]   = score(scale * sum_d q[b,h,i,d] * k[b,h',j,d], b, h, i, j)
    m[b,h,i]     = max(max_j s, sink[h])          over the unmasked j
    l[b,h,i]     = sum_j exp(s - m) + exp(sink[h] - m)
    o[b,h,i,:]   = sum_j exp(s - m) * v[b,h',j,:] / l
    lse[b,h,i]   = m + log(l)                     (natural logarithm, f32)
    ```

    `D` and `Dv` are static multiples of 8 from 8 to 576; all other sizes may
    be dynamic. Elements are f16, bf16 or f32, the accumulation is f32. Rank-3
    operands drop the batch dimension, or with `leading(batch)` the head
    dimension.

    Optional parts, in this order:
      - `leading(batch)`: the first dimension of rank-3 operands is the batch;
      - `scale(x)`: default `1 / sqrt(D)`;
      - `mask(attr)`: any attribute with the mask interface, default full;
      - `lengths(%n : tensor<Bxi32>)`: masks the keys `j >= n[b]`. Values are clamped to `[0, Nk]`. The symbols
        `nq` and `nk` of the mask are still `Nq` and `Nk`;
      - `query_lengths(%n : tensor<Bxi32>)` and `key_lengths(%n : tensor<Bxi32>)`: batch `b` has only n[b] queries,
        or n[b] keys, and the symbols `nq` and `nk` of the mask are these lengths. Values are clamped to `[0, Nq]`
        and `[0, Nk]`. For queries that do not exist the output is 0 and the log-sum-exp -inf. `flash.unpack` returns
        such lengths;
      - `sink(%s : tensor<Hqxf32>)`: one extra logit per query head in the
        denominator;
      - `blocks(%tiles, %counts : ...)`: the key tiles that are not empty under the mask, as
        a `flash.block_map` in the same function lists them for the tiles of the
        schedule. The map must have the same mask, lengths and kept elements. Only
        the listed tiles are visited, which changes the speed, and not the result;
      - `blocks(%list, %counts : ...) of [M, N]`: lists of blocks of `M` queries and
        `N` keys that the caller gives. They change the result: keys of blocks that
        are not listed take no part. `list : [B or 1, Hq or 1, nq ceildiv M, n]` has
        for each block of queries the numbers of its blocks of keys, first the
        partial ones; `n` is any number. `counts : [B or 1, Hq or 1, nq ceildiv M, 2]`
        has the number of its partial blocks, and the number of all its blocks;
        later entries of `list` have any value. In a partial block, the elements take
        part that `mask` and the region keep. In the other blocks, all elements take
        part that exist and that `lengths` does not mask. The entries of each kind
        are in any order, and no block is listed twice. Where reads are checked
        (`flash-assert-reads`), other lists are errors; elsewhere the result is
        undefined, but nothing outside of the tensors is read. The sizes of tiles of
        the schedule divide the sizes of blocks;
      - `precision(tf32)`: both products may round their f32 operands to tf32,
        10 bits of mantissa, which takes a third of the work of tensor cores.
        Without it they are as accurate as f32 arithmetic. The tiled programs of
        GPUs, and their emulation, do round; other programs need not;
      - `precision(fp8)`: queries, keys and values are all results of `flash.dequantize` of f8E4M3FN, with a scale `[1]` or
        `[B, H]` each, none of them negative. Both products may multiply the elements of 8 bits, with
        probabilities that are rounded to f8E4M3FN, and apply the scales to the scores and to the result. The tiled
        programs for warpgroups (sm_90a), and their emulation, do so; other programs dequantize. Without it queries of 8 bits are an error;
      - `multiples([m, n])`: the number of queries is a multiple of `m`, and the
        number of keys a multiple of `n`. If types do not say so, it is checked at
        run time (`flash-assert-shapes`). If tiles divide `m` and `n`, the last
        tiles are then whole;
      - `schedule(attr)`: how to tile, see `#flash.schedule`;
      - `score { ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        ... flash.yield %r : f32 }`: modifies each score. The region may use
        elementwise `arith` and `math` ops, `tensor.extract` and `tensor.dim`,
        and values from outside. `flash.yield %r keep %k : f32` masks the elements
        whose `%k` is false, in addition to `mask` and `lengths`.

    Example:

    ```mlir
    %o, %lse = flash.attention %q, %k, %v scale(0.2) mask(#flash.causal)
        : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>,
           tensor<2x2x517x48xf32>)
        -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>)
    ```
  }];
  let arguments = !con((ins Flash_FloatTensor:$query, Flash_FloatTensor:$key,
    Flash_FloatTensor:$value), Flash_attentionOperands,
    (ins Optional<Flash_BlockTensor>:$key_tiles,
     Optional<Flash_BlockTensor>:$tile_counts), Flash_attentionAttributes);
  let results = (outs Flash_FloatTensor:$output,
                      Optional<Flash_F32Tensor>:$lse);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = !strconcat("$query `,` $key `,` $value",
    Flash_ClausesOfAttention.format, "attr-dict", Flash_ClausesOfAttention.end, [{
    `:` `(` type($query) `,` type($key) `,` type($value) `)`
    `->` custom<AttentionResults>(type($output), type($lse))
  }]);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned numRequiredOperands = 3;
  }];
}

def Flash_AttentionGradOp : Flash_Op<"attention_grad",
    [Pure, AttrSizedOperandSegments, AttrSizedResultSegments,
     Flash_SingleOperandGroups, Flash_SingleResultGroups,
     Flash_AttentionOpInterface]> {
  let summary = "the gradients of an attention's operands";
  let description = [{
    `query`, `key` and `value` are the operands of a `flash.attention`, and `output`
    and `lse` are its results. `output_grad` (`do` below) is the gradient of some
    scalar with respect to `output`. `score'` is the derivative of the score region
    with respect to its first argument. Then:

    ```
    x[b,h,i,j]   = scale * sum_d q[b,h,i,d] * k[b,h',j,d]
    p[b,h,i,j]   = exp(score(x) - lse[b,h,i])     (0 where masked)
    delta[b,h,i] = sum_d do[b,h,i,d] * o[b,h,i,d] - dlse[b,h,i]
    ds[b,h,i,j]  = p * (sum_d do[b,h,i,d] * v[b,h',j,d] - delta)
    dx[b,h,i,j]  = ds * score'(x)
    dq[b,h,i,:]  = scale * sum_j dx * k[b,h',j,:]
    dk[b,h',j,:] = scale * sum_h,i dx * q[b,h,i,:]
    dv[b,h',j,:] = sum_h,i p * do[b,h,i,:]
    dsink[h]     = -sum_b,i exp(sink[h] - lse) * delta
    ```

    The sums of `dk` and `dv` go over the query heads `h` that read the key head
    `h' = h floordiv (Hq / Hkv)`. A row that sees no key (`lse` is -inf) has
    gradients of 0 and adds 0 to others, whatever `do` is; with a sink alone its
    `dq` is 0. An element that is masked, NaN or not, has no effect on any
    gradient. All sums are f32.

    Operands, clauses and the score region are as in `flash.attention`, and must
    be the same as for the attention that is differentiated. Two block maps (`flash.block_map`) may
    list the tiles that are not empty under the mask. The sizes of these tiles are keys of the schedule:
      - `blocks(%tiles, %counts : ...)`: the tiles of `key_step` keys for
        each tile of `query_tile` queries. The program over queries visits these;
      - `query_blocks(%tiles, %counts : ...)`: the tiles of `query_step` queries for
        each tile of `key_tile` keys, from a map with `over_queries`. The
        program over keys visits these. If this program adds to `dq` in order (`products = 5` of the
        schedule), the map's ranks are an operand, too: `query_blocks(%tiles, %counts, %ranks : ...)`.

    If the caller gives lists, with `of [M, N]`, both are needed, and they have no ranks.
    `query_blocks` then lists for each of the `nk ceildiv N` blocks of keys the blocks of queries whose
    list in `blocks` has it, partial ones first. It is not checked that both list the same pairs.

    In addition, after `schedule`:
      - `lse_grad(%x : tensor<BxHqxNqxf32>)`: the gradient with respect to the
        log-sum-exp, `dlse` above; 0 without it;
      - `wrt(%a, %b : types)`: tensors that the score region reads with
        `tensor.extract`, and whose gradients are results, too. The gradient of an
        element is a sum over all reads of it: the derivative of the score with
        respect to what is read, times `ds`. It is 0 if nothing reads the element.

    The results are `dq`, `dk`, `dv`, then `dsink` if there is a sink, then the
    gradients of the tensors of `wrt`. A gradient has the shape and the element type
    of its tensor.

    Example:

    ```mlir
    %dq, %dk, %dv, %ds = flash.attention_grad %q, %k, %v, %o, %lse, %do
        mask(#flash.causal) sink(%s : tensor<8xf32>)
        : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>,
           tensor<2x8x333x48xf32>, tensor<2x8x333xf32>, tensor<2x8x333x48xf32>)
        -> (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>, tensor<2x2x517x48xf32>,
            tensor<8xf32>)
    ```
  }];
  let arguments = !con((ins Flash_FloatTensor:$query, Flash_FloatTensor:$key,
    Flash_FloatTensor:$value, Flash_FloatTensor:$output, Flash_F32Tensor:$lse,
    Flash_FloatTensor:$output_grad), Flash_attentionOperands,
    (ins Optional<Flash_BlockTensor>:$key_tiles,
     Optional<Flash_BlockTensor>:$key_tile_counts,
     Optional<Flash_BlockTensor>:$query_tiles,
     Optional<Flash_BlockTensor>:$query_tile_counts,
     Optional<Flash_BlockTensor>:$query_tile_ranks),
    Flash_attentionAttributes,
    (ins Optional<Flash_F32Tensor>:$lse_grad,
         Variadic<Flash_FloatTensor>:$captured));
  let results = (outs Flash_FloatTensor:$query_grad, Flash_FloatTensor:$key_grad,
    Flash_FloatTensor:$value_grad, Optional<Flash_SinkTensor>:$sink_grad,
    Variadic<Flash_FloatTensor>:$captured_grads);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = !strconcat([{
    $query `,` $key `,` $value `,` $output `,` $lse `,` $output_grad
  }], Flash_ClausesOfAttentionGrad.format, "attr-dict",
  Flash_ClausesOfAttentionGrad.end, [{
    `:` `(` type($query) `,` type($key) `,` type($value) `,`
    type($output) `,` type($lse) `,` type($output_grad) `)`
    `->` custom<AttentionGradResults>(ref($sink), type($query_grad),
      type($key_grad), type($value_grad), type($sink_grad),
      type($captured_grads))
  }]);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned numRequiredOperands = 6;
    static constexpr unsigned numRequiredResults = 3;
    /// For each result, the value that it is the gradient of.
    ::llvm::SmallVector<::mlir::Value> getDifferentiated();
  }];
}

def Flash_OnlineAttentionOp : Flash_Op<"online_attention",
    [Pure, AttrSizedOperandSegments, Flash_SingleOperandGroups,
     DestinationStyleOpInterface, Flash_StepOpInterface,
     DeclareOpInterfaceMethods<TilingInterface,
       ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
        "getResultTilePosition", "generateResultTileValue"]>,
     DeclareOpInterfaceMethods<PartialReductionOpInterface,
       ["generateInitialTensorForPartialReduction", "tileToPartialReduction",
        "mergeReductions", "getPartialResultTilePosition"]>,
     AllTypesMatch<["acc", "acc_out"]>, AllTypesMatch<["max", "max_out"]>,
     AllTypesMatch<["sum", "sum_out"]>]> {
  let summary = "one step of the online softmax over a slice of keys";
  let description = [{
    Adds the keys of `key` and `value` to the running state of the queries:

    ```
    x    = score(scale * q k^T) / unit, -inf where masked
    max' = max(max, max_j x)
    acc' = acc * exp(unit * (max - max')) + exp(unit * (x - max')) v
    sum' = sum * exp(unit * (max - max')) + sum_j exp(unit * (x - max'))
    ```

    The state (`acc`, `max`, `sum`) starts at (0, -inf, 0), or (0, sink / unit, 1)
    with a sink. The unit is between 2^-64 and 2^64, and 1 if none is given. If it is
    equal to the scale, and no region changes scores, then `x` is just `q k^T`, and
    no multiplication by the scale is needed.
    The step is associative over disjoint slices of keys, so a tiling may visit
    them in any order, or in parallel: the partial reduction interface gives
    each slice a state of its own and merges these into `acc`, `max` and `sum`.
    `max` may stay -inf.

    The operands are tensors of rank 4 as in `flash.attention`, or one tile of
    one head of rank 2: `q : [M, D]`, `k : [N, D]`, `v : [N, Dv]`.
    `at[b, h, i, j]` is the position of the first element in the whole problem,
    whose lengths are `of[nq, nk]`. With `packed(P)` the rows of a tile belong to
    P heads: row r is of head `h + r mod P` and query `i + r floordiv P`. `keys(n)`
    says that only the first `n` keys of a tile exist. The other keys are padding with
    finite values, such as zeros. With `neutral_padding` the mask already excludes padding for each query that
    exists, so no element is compared with `n`. If the condition `c` of `partial(c)` is false, neither the
    mask nor `keys(n)` nor the score region excludes any element of the tile, and no element is tested.
    `lengths`, `blocks` and `multiples`, on rank 4, and `precision` are as in `flash.attention`.

    With `factor(f)`, of type f32, a tile has `precision(fp8)`, and its operands have elements of f8E4M3FN. The products
    `q k^T` are multiplied by `f`, and `v : [Dv, N]` has the values as `flash.interleave` gives them. Exponentials are
    multiplied by 2^8 and rounded to f8E4M3FN before they are multiplied by values, so that they use the range
    of that type, and `max` is less by 8 in units of log2 for that. `sum` adds exponentials that are not rounded.

    Example:

    ```mlir
    %a1, %m1, %l1 = flash.online_attention
        ins(%qt, %kt, %vt : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>)
        outs(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
        at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01) unit(1.250000e-01) mask(#flash.causal)
    ```
  }];
  let arguments = (ins Flash_FactorTensor:$query, Flash_FactorTensor:$key,
    Flash_FactorTensor:$value, Flash_F32Tensor:$acc, Flash_F32Tensor:$max,
    Flash_F32Tensor:$sum, Variadic<Index>:$position, Variadic<Index>:$extents,
    Optional<Index>:$keys, Optional<I1>:$partial, Optional<F32>:$factor, Optional<Flash_LengthsTensor>:$lengths,
    Optional<Flash_LengthsTensor>:$query_lengths,
    Optional<Flash_LengthsTensor>:$key_lengths,
    Optional<Flash_BlockTensor>:$key_tiles,
    Optional<Flash_BlockTensor>:$tile_counts,
    DenseI64ArrayAttr:$static_position, DenseI64ArrayAttr:$static_extents,
    F64Attr:$scale, DefaultValuedOptionalAttr<F64Attr, "1.0">:$unit,
    OptionalAttr<Flash_MaskAttrInterface>:$mask,
    OptionalAttr<Flash_PrecisionAttr>:$precision,
    OptionalAttr<DenseI64ArrayAttr>:$block_sizes,
    OptionalAttr<DenseI64ArrayAttr>:$multiples,
    OptionalAttr<Flash_ScheduleAttr>:$schedule, OptionalAttr<I64Attr>:$packed,
    UnitAttr:$neutral_padding);
  let results = (outs Flash_F32Tensor:$acc_out, Flash_F32Tensor:$max_out,
                      Flash_F32Tensor:$sum_out);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,`
    type($value) `)` `outs` `(` $acc `,` $max `,` $sum `:` type($acc) `,`
    type($max) `,` type($sum) `)`
    `at` `` custom<DynamicIndexList>($position, $static_position)
    `of` `` custom<DynamicIndexList>($extents, $static_extents)
    (`packed` `(` $packed^ `)`)?
    (`keys` `(` $keys^ `)` (`neutral_padding` $neutral_padding^)?)?
    (`partial` `(` $partial^ `)`)? (`factor` `(` $factor^ `)`)? `scale` `(` $scale `)`
    (`unit` `(` $unit^ `)`)?
    (`mask` `(` $mask^ `)`)?
    (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    (`query_lengths` `(` $query_lengths^ `:` type($query_lengths) `)`)?
    (`key_lengths` `(` $key_lengths^ `:` type($key_lengths) `)`)?
    (`blocks` `(` $key_tiles^ `,` $tile_counts `:` type($key_tiles) `,`
    type($tile_counts) `)`)? (`of` $block_sizes^)?
    (`precision` `(` $precision^ `)`)?
    (`multiples` `(` $multiples^ `)`)?
    (`schedule` `(` $schedule^ `)`)?
    (`score` custom<OwnRegion>($score)^)?
    attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned numRequiredOperands = 6;
    ::mlir::MutableOperandRange getDpsInitsMutable();
    /// The position (b, h, i, j) of the first element in the whole problem.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedPosition();
    /// The lengths (nq, nk) of the whole problem.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedExtents();
    /// Whether the operands are one tile (rank 2) rather than whole tensors.
    bool isTile() { return getQuery().getType().getRank() == 2; }
    /// The number of heads that share the rows of a tile.
    int64_t getPackedHeads() { return getPacked().value_or(1); }
    bool stepsOverQueries() { return false; }
    ::mlir::MutableOperandRange getCountMutable() { return getKeysMutable(); }
    ::mlir::MutableOperandRange getFixedCountMutable() {
      return ::mlir::MutableOperandRange(*this, 0, 0);
    }
    /// The step on one tile of the loops. It starts from `state` (acc, max and
    /// sum of the tile's queries) instead of the op's own state.
    ::mlir::FailureOr<::mlir::TilingResult> tileFrom(
        ::mlir::OpBuilder &b, ::mlir::ValueRange state,
        ::llvm::ArrayRef<::mlir::OpFoldResult> offsets,
        ::llvm::ArrayRef<::mlir::OpFoldResult> sizes);
  }];
}

def Flash_FinalizeOp : Flash_Op<"finalize",
    [Pure, DestinationStyleOpInterface,
     DeclareOpInterfaceMethods<TilingInterface,
       ["getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
        "getResultTilePosition", "generateResultTileValue"]>]> {
  let summary = "computes the attention's results from the online state";
  let description = [{
    ```
    out = acc / sum                (0 where sum is 0), rounded to its type
    lse = unit * max + log(sum)    (-inf where sum is 0)
    ```

    The unit is the same as in the steps. Operands are of rank 4 or, for one tile, of rank 2.

    Example:

    ```mlir
    %o = flash.finalize ins(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
        outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    ```
  }];
  let arguments = (ins Flash_F32Tensor:$acc, Flash_F32Tensor:$max,
    Flash_F32Tensor:$sum, Flash_FloatTensor:$output_init,
    Optional<Flash_F32Tensor>:$lse_init,
    DefaultValuedOptionalAttr<F64Attr, "1.0">:$unit);
  let results = (outs Flash_FloatTensor:$output,
                      Optional<Flash_F32Tensor>:$lse);
  let assemblyFormat = [{
    `ins` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,`
    type($sum) `)` `outs` `(` $output_init (`,` $lse_init^)? `:`
    type($output_init) (`,` type($lse_init)^)? `)` (`unit` `(` $unit^ `)`)?
    attr-dict `->`
    custom<AttentionResults>(type($output), type($lse))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
}

def Flash_ClausesOfSoftmax
    : Flash_Clauses<[Flash_AttributeClause<"sink">]>;

def Flash_SoftmaxOp : Flash_Op<"softmax", [Pure]> {
  let summary = "the softmax of rows of scores, as attention needs it";
  let description = [{
    ```
    m[i]    = max(max_j s[i, j], sink)
    l[i]    = sum_j exp(s[i, j] - m[i]) + exp(sink - m[i])
    p[i, j] = exp(s[i, j] - m[i]) / l[i]     (0 where l[i] is 0)
    lse[i]  = m[i] + log(l[i])
    ```

    The difference to `linalg.softmax` is the optional logit that takes part in
    the denominator only, the log-sum-exp, and that a row of only -inf becomes
    0 rather than NaN. Rows may have any number of elements; arithmetic is f32.

    Example:

    ```mlir
    %p, %lse = flash.softmax %s sink(%x) : tensor<8x?xf16> -> (tensor<8x?xf16>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Flash_FloatTensor:$scores, Optional<F32>:$sink);
  let results = (outs Flash_FloatTensor:$result,
                      Optional<Flash_F32Tensor>:$lse);
  let assemblyFormat = !strconcat("$scores", Flash_ClausesOfSoftmax.format,
    "attr-dict", Flash_ClausesOfSoftmax.end, [{
    `:` type($scores) `->` custom<AttentionResults>(type($result), type($lse))
  }]);
  let hasVerifier = 1;
}

def Flash_ClausesOfCombine
    : Flash_Clauses<[Flash_AttributeClause<"step">]>;

def Flash_CombineOp : Flash_Op<"combine", [Pure]> {
  let summary = "attention over all keys from attention over splits of them";
  let description = [{
    `outs[s]` and `lses[s]` are the output and the log-sum-exp of rows over the
    s-th split of their keys, as `flash.finalize` gives them:

    ```
    m[i]      = max_s lses[s, i]
    l[i]      = sum_s exp(lses[s, i] - m[i])
    out[i, :] = sum_s exp(lses[s, i] - m[i]) * outs[s, i, :] / l[i]   (0 where l[i] is 0)
    lse[i]    = m[i] + log(l[i])
    ```

    A split without keys (output 0, log-sum-exp -inf) changes nothing. The sum is in
    f32, and then rounded to the type of the result.

    Splits are added in their order, several in one step with one maximum. `step(n)`
    gives the number of splits in a step, from 1 to 8; then splits without keys at the
    end change no bit. Without it, the number is chosen so that all steps have equally many.

    Example:

    ```mlir
    %o, %lse = flash.combine %outs, %lses : (tensor<4x8x64xf32>, tensor<4x8xf32>)
        -> (tensor<8x64xf16>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins Flash_F32Tensor:$outs, Flash_F32Tensor:$lses,
                       OptionalAttr<I64Attr>:$step);
  let results = (outs Flash_FloatTensor:$output,
                      Optional<Flash_F32Tensor>:$lse);
  let assemblyFormat = !strconcat("$outs `,` $lses",
    Flash_ClausesOfCombine.format, "attr-dict", Flash_ClausesOfCombine.end, [{
    `:` `(` type($outs) `,` type($lses) `)` `->`
    custom<AttentionResults>(type($output), type($lse))
  }]);
  let hasVerifier = 1;
}

def Flash_ConditionVector
    : RankedTensorOf<[I1], [HasAnyRankOfPred<[1]>, Flash_NoEncoding],
                     "1D tensor of conditions without encoding">;

def Flash_AnyOp : Flash_Op<"any", [Pure]> {
  let summary = "whether a condition holds for some row";
  let description = [{
    A target may test only rows that it computes together, such as the rows of a
    warp, so the result may differ from row to row. For a row whose condition holds
    it is true. For any other row it may be true or false, and the code that uses it
    must be correct in both cases. `flash-decompose` uses the op to test whether a
    maximum has grown by much.

    Example:

    ```mlir
    %any = flash.any %above : tensor<128xi1>
    ```
  }];
  let arguments = (ins Flash_ConditionVector:$conditions);
  let results = (outs I1:$result);
  let assemblyFormat = "$conditions attr-dict `:` type($conditions)";
}

def Flash_IsFiniteOp : Flash_Op<"is_finite", [Pure]> {
  let summary = "whether no element of a tile is NaN or infinite";
  let description = [{
    A key that takes no part has the probability 0, but 0 times a value that is
    not finite is NaN. `flash-decompose` tests the values of a masked
    tile before it multiplies them all.

    Example:

    ```mlir
    %finite = flash.is_finite %v : tensor<128x64xf16>
    ```
  }];
  let arguments = (ins Flash_FloatTile:$tile);
  let results = (outs I1:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Flash_ZeroNonfiniteOp : Flash_Op<"zero_nonfinite",
    [Pure, AllTypesMatch<["tile", "result"]>]> {
  let summary = "a tile with 0 for what is NaN or infinite";
  let description = [{
    A key that takes no part has the weight 0 in a sum of keys, but 0 times a key
    that is not finite is NaN. `flash-decompose` therefore sums up the result of this op.

    Example:

    ```mlir
    %finite = flash.zero_nonfinite %k : tensor<128x64xf16>
    ```
  }];
  let arguments = (ins Flash_FloatTile:$tile);
  let results = (outs Flash_FloatTile:$result);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
}

def Flash_GuardOp : Flash_Op<"guard",
    [Pure, AllTypesMatch<["value", "result"]>,
     ParentOneOf<["AttentionOp", "AttentionGradOp", "OnlineAttentionOp",
                  "QueryGradStepOp", "KeyGradStepOp",
                  "CapturedGradStepOp", "BlockMapOp"]>]> {
  let summary = "an index or a divisor, replaced where an element takes no part";
  let description = [{
    In a score region, the result is `value` for an element that takes part, and the
    number after `else` for any other element. A tile also computes the scores of
    masked elements, and drops them. An index that is in range only for elements that
    take part must not be used for the others. `flash-guard-reads` adds the op.

    ```mlir
    %d = arith.subi %i, %j : index
    %n = flash.guard %d else 0 : index
    %x = tensor.extract %table[%n] : tensor<?xf32>
    ```
  }];
  let arguments = (ins AnySignlessIntegerOrIndex:$value, I64Attr:$otherwise);
  let results = (outs AnySignlessIntegerOrIndex:$result);
  let assemblyFormat = "$value `else` $otherwise attr-dict `:` type($value)";
}

def Flash_ClausesOfBlockMap : Flash_Clauses<[
  Flash_AttributeClause<"packed">, Flash_WordClause<"over_queries">,
  Flash_MaskClause, Flash_ValueClause<"lengths">,
  Flash_Clause<"given", [{`(` $given_tiles^ `,` $given_counts
    (`,` $given_ranks^)? `:` type($given_tiles) `,` type($given_counts)
    (`,` type($given_ranks)^)? `)`}]>,
  Flash_RegionClause<"keep">
]>;

def Flash_BlockMapOp : Flash_Op<"block_map",
    [Pure, AttrSizedOperandSegments]> {
  let summary = "for each tile of queries, the tiles of keys that are not empty under a mask";
  let description = [{
    A mask keeps none, some or all of the existing elements of a tile of `M` queries
    and `N` keys: the tile is empty, partial or full. The problem is `of[B, H, nq, nk]`,
    and has `Tq = nq ceildiv M` and `Tk = nk ceildiv N` tiles of `tiles([M, N])`. The
    results are of i32:

      - `key_tiles : [B, H, Tq, Tk]`: for each tile of queries the numbers of the
        partial key tiles, and then the numbers of the full key tiles, each kind in
        ascending order; entries after these have any value;
      - `counts : [B, H, Tq, 2]`: for each tile of queries the number of partial key
        tiles, and the number of partial and full key tiles together.

    An element is kept if `mask`, `lengths` and the region keep it. If not all `N` keys
    of the last tile of keys exist, it is not full; queries that do not exist have no
    effect. `B` and `H` are 1 if nothing depends on the batch or the head.

    With `over_queries`, the roles of queries and keys are exchanged: the results list the tiles of
    queries for each tile of keys, and have the shapes `[B, H, Tk, Tq]` and `[B, H, Tk, 2]`. If not all `M`
    queries of the last tile of queries exist, it is not full, and keys that do not exist have no effect.
    With a third result, the lists have runs in ascending order. A run is a sequence of consecutive tiles,
    first partial ones and then full ones:

      - `key_tiles : [B, H, Tk, 3 Tq]`: entry `r` is the first tile of run `r`, entry `Tq + r` is the first tile
        after its partial ones, and entry `2 Tq + r` the first tile after the run;
      - `counts : [B, H, Tk, 2]`: the number of runs, and the number of tiles in all of them;
      - `ranks : [B, H, Tk, Tq]`: for each tile of queries, the number of tiles of keys with greater numbers
        whose lists have it. If the tiles of keys are taken in descending order, this many of them add to the
        tile of queries earlier (`flash.contribute`). All tiles of keys go through the queries in the same
        direction, so that none waits long.

    `packed(P)` is for tiles that P heads share (`packed_heads` of the schedule) if the
    mask depends on the head. P divides `H`, and the results have `H / P` instead of
    `H`. A tile is empty or full if it is so for all P heads. `M` is still a number of
    queries. Lists of queries are not packed.

    `given(%t, %n)`, or `given(%t, %n, %ranks)`, has a map that was computed elsewhere, such as in an earlier
    call. Nothing is computed: the results are these operands, and have their types. The attention that uses the
    map is still compared with the other clauses of the op. The host checks the sizes of the operands. The caller
    ensures that they are what such a `flash.block_map` would compute; for a number that no tile has, the
    behavior is undefined.

    `flash-make-block-maps` adds the op for masks that are known at run time, and
    `flash-tile-block-maps` describes how it is computed.

    Example:

    ```mlir
    %tiles, %counts = flash.block_map of[1, 1, 4096, 4096] tiles([128, 64])
        mask(#flash.causal) keep {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %x = tensor.extract %documents[%i] : tensor<4096xi32>
      %y = tensor.extract %documents[%j] : tensor<4096xi32>
      %same = arith.cmpi eq, %x, %y : i32
      flash.yield %same : i1
    } : tensor<1x1x32x64xi32>, tensor<1x1x32x2xi32>
    ```
  }];
  let arguments = (ins Variadic<Index>:$sizes,
    Optional<Flash_LengthsTensor>:$lengths, DenseI64ArrayAttr:$static_sizes,
    DenseI64ArrayAttr:$tiles, OptionalAttr<I64Attr>:$packed,
    UnitAttr:$over_queries, OptionalAttr<Flash_MaskAttrInterface>:$mask,
    Optional<Flash_BlockTensor>:$given_tiles,
    Optional<Flash_BlockTensor>:$given_counts,
    Optional<Flash_BlockTensor>:$given_ranks);
  let results = (outs Flash_BlockTensor:$key_tiles, Flash_BlockTensor:$counts,
                      Optional<Flash_BlockTensor>:$ranks);
  let regions = (region MaxSizedRegion<1>:$keep);
  let assemblyFormat = !strconcat([{
    `of` `` custom<DynamicIndexList>($sizes, $static_sizes)
    `tiles` `(` $tiles `)`
  }], Flash_ClausesOfBlockMap.format, "attr-dict", Flash_ClausesOfBlockMap.end, [{
    `:` type($key_tiles) `,` type($counts) (`,` type($ranks)^)?
  }]);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The numbers (B, H, nq, nk) of batches and heads with a map of their own,
    /// of queries and of keys.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedSizes();
    /// How many numbers a run has: its first tile and its two ends.
    static constexpr int64_t numbersOfRun = 3;
    /// The types of the results for such sizes and tiles; null for `ranks` if
    /// there are none.
    struct MapTypes {
      ::mlir::RankedTensorType tiles, counts, ranks;
    };
    static MapTypes
    getMapTypes(::mlir::MLIRContext *context, ::llvm::ArrayRef<int64_t> sizes,
                ::llvm::ArrayRef<int64_t> tiles, int64_t packedHeads,
                bool overQueries, bool hasRanks);
    /// The dimension whose tiles have lists: 0 for queries, 1 for keys.
    unsigned getFixedDim() { return getOverQueries() ? 1 : 0; }
    /// How many heads share a map.
    int64_t getPackedHeads() { return getPacked().value_or(1); }
    /// How many queries a tile has.
    int64_t getQueryTile() { return getTiles()[0]; }
    /// How many keys a tile has.
    int64_t getKeyTile() { return getTiles()[1]; }
  }];
}

def Flash_CheckBlocksOp : Flash_Op<"check_blocks"> {
  let summary = "checks the lists of blocks that a caller gives";
  let description = [{
    Ends the program with an error unless each list is valid. Its counts must be from
    0 to `n`, the count of partial blocks must not exceed the count of all blocks, and
    the counted entries must be different numbers from 0 to `limit - 1`.
    `flash-check-blocks` adds the op, and `flash-assert-reads` replaces it by loops.
    Only programs for the CPU have it. A kernel of a GPU replaces invalid numbers by
    valid ones without a message.

    Example:

    ```mlir
    flash.check_blocks %list, %counts below %n : tensor<1x1x32x8xi32>, tensor<1x1x32x2xi32>
    ```
  }];
  let arguments = (ins Flash_BlockTensor:$list, Flash_BlockTensor:$counts,
                       Index:$limit);
  let assemblyFormat = [{
    $list `,` $counts `below` $limit attr-dict `:` type($list) `,` type($counts)
  }];
}

def Flash_ClausesOfYield : Flash_Clauses<[Flash_Clause<"keep", "$keep^">]>;

def Flash_YieldOp : Flash_Op<"yield",
    [Pure, Terminator,
     ParentOneOf<["AttentionOp", "AttentionGradOp", "OnlineAttentionOp",
                  "QueryGradStepOp", "KeyGradStepOp",
                  "CapturedGradStepOp", "BlockMapOp",
                  "DequantizeTileOp"]>]> {
  let summary = "ends a score region, or the one of a block map or of scales";
  let description = [{
    A score region yields the new score and, after `keep`, whether the element takes
    part. This condition must not depend on the score; without `keep`, every element
    takes part. The region of `flash.block_map` yields whether the element takes part, the region of `flash.dequantize_tile` the scale of a row.

    ```mlir
    flash.yield %s : f32
    flash.yield %s keep %same : f32
    flash.yield %same : i1
    ```
  }];
  let arguments = (ins AnyTypeOf<[F32, I1]>:$result, Optional<I1>:$keep);
  let assemblyFormat = !strconcat("$result", Flash_ClausesOfYield.format,
    "attr-dict", Flash_ClausesOfYield.end, "`:` type($result)");
}

include "flash/Dialect/Flash/IR/FlashAddresses.td"
include "flash/Dialect/Flash/IR/FlashContributions.td"
include "flash/Dialect/Flash/IR/FlashGradSteps.td"
include "flash/Dialect/Flash/IR/FlashKernels.td"
include "flash/Dialect/Flash/IR/FlashVisits.td"

#endif // FLASH_OPS_TD
