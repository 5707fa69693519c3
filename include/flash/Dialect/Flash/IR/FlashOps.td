//===- FlashOps.td - Attention and its online step ---------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_OPS_TD
#define FLASH_OPS_TD

include "flash/Dialect/Flash/IR/FlashAttrs.td"
include "flash/Schedule/Schedule.td"
include "flash/Support/DeclaredAttributes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"

/// ODS checks the sizes of optional operand groups only; this checks the groups
/// of one operand, before anything reads them.
def Flash_SingleOperandGroups : NativeOpTrait<"SingleOperandGroups">,
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
def Flash_FloatTile : Flash_MatrixOf<[F16, BF16, F32]>;
def Flash_F32Tensor : Flash_TensorOf<[F32]>;
def Flash_LengthsTensor : Flash_VectorOf<[I32]>;
def Flash_SinkTensor : Flash_VectorOf<[F32]>;

def Flash_AttentionOp : Flash_Op<"attention",
    [Pure, AttrSizedOperandSegments, Flash_SingleOperandGroups]> {
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

    `D` and `Dv` are static multiples of 8 from 8 to 256; all other sizes may
    be dynamic. Elements are f16, bf16 or f32, the accumulation is f32. Rank-3
    operands drop the batch dimension, or with `leading(batch)` the head
    dimension.

    Optional parts, in this order:
      - `scale(x)`: default `1 / sqrt(D)`;
      - `mask(attr)`: any attribute with the mask interface, default full;
      - `lengths(%n : tensor<Bxi32>)`: keeps the keys `j < n[b]`; values are
        clamped to `[0, Nk]`, and the alignment of the mask is unaffected;
      - `sink(%s : tensor<Hqxf32>)`: one extra logit per query head in the
        denominator;
      - `precision(tf32)`: both products may round their f32 operands to tf32,
        10 bits of mantissa, which takes a third of the work of tensor cores.
        Without it they are as accurate as f32 arithmetic. It permits and does
        not oblige: the tiled programs of GPUs, and their emulation, round;
      - `multiples([m, n])`: the number of queries is a multiple of `m` and that of
        keys one of `n`, which is checked at run time (`flash-assert-shapes`) where
        types do not say it: the last tiles are then as whole as the others;
      - `schedule(attr)`: how to tile, see `#flash.schedule`;
      - `score { ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
        ... flash.yield %r : f32 }`: modifies each score. The region may use
        elementwise `arith` and `math` ops, `tensor.extract` and `tensor.dim`,
        and values from outside.

    Example:

    ```mlir
    %o, %lse = flash.attention %q, %k, %v scale(0.2) mask(#flash.causal)
        : (tensor<2x8x333x64xf32>, tensor<2x2x517x64xf32>,
           tensor<2x2x517x48xf32>)
        -> (tensor<2x8x333x48xf32>, tensor<2x8x333xf32>)
    ```
  }];
  let arguments = (ins Flash_FloatTensor:$query, Flash_FloatTensor:$key,
    Flash_FloatTensor:$value, Optional<Flash_LengthsTensor>:$lengths,
    Optional<Flash_SinkTensor>:$sink, OptionalAttr<Flash_LeadingAttr>:$leading,
    OptionalAttr<F64Attr>:$scale,
    OptionalAttr<Flash_MaskAttrInterface>:$mask,
    OptionalAttr<Flash_PrecisionAttr>:$precision,
    OptionalAttr<DenseI64ArrayAttr>:$multiples,
    OptionalAttr<Flash_ScheduleAttr>:$schedule);
  let results = (outs Flash_FloatTensor:$output,
                      Optional<Flash_F32Tensor>:$lse);
  let regions = (region MaxSizedRegion<1>:$score);
  let assemblyFormat = [{
    $query `,` $key `,` $value
    (`leading` `(` $leading^ `)`)?
    (`scale` `(` $scale^ `)`)?
    (`mask` `(` $mask^ `)`)?
    (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`precision` `(` $precision^ `)`)?
    (`multiples` `(` $multiples^ `)`)?
    (`schedule` `(` $schedule^ `)`)?
    (`score` $score^)?
    attr-dict `:` `(` type($query) `,` type($key) `,` type($value) `)`
    `->` custom<AttentionResults>(type($output), type($lse))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr unsigned numRequiredOperands = 3;
    /// The scale, or its default 1 / sqrt(D).
    double getScaleOrDefault();
    /// The mask, or the full mask where none is written.
    MaskAttrInterface getMaskOrFull();
    /// Whether the operands have a batch dimension (always the first).
    bool hasBatch();
    /// Whether the operands have a head dimension (always before the last two).
    bool hasHeads();
    /// How many query heads read the same key head, if the types say.
    std::optional<int64_t> getGroup();
    /// The reads of the score region at the element's own position. A tile
    /// makes them for elements that a mask leaves out, too.
    ::llvm::SmallVector<::flash::PositionRead> getPositionReads();
    /// Emits an error unless the rank is 4, as flash-expand-rank makes it.
    ::llvm::LogicalResult requireRank4();
    int64_t getHeadDim() { return getQuery().getType().getShape().back(); }
    int64_t getValueDim() { return getValue().getType().getShape().back(); }
  }];
}

def Flash_OnlineAttentionOp : Flash_Op<"online_attention",
    [Pure, AttrSizedOperandSegments, Flash_SingleOperandGroups,
     DestinationStyleOpInterface,
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
    s    = log2(e) * score(scale * q k^T), -inf where masked
    max' = max(max, max_j s)
    acc' = acc * 2^(max - max') + 2^(s - max') v
    sum' = sum * 2^(max - max') + sum_j 2^(s - max')
    ```

    The state starts at (0, -inf, 0), or (0, sink * log2(e), 1) with a sink.
    The step is associative over disjoint slices of keys, so a tiling may visit
    them in any order, or in parallel: the partial reduction interface gives
    each slice a state of its own and merges these into `acc`, `max` and `sum`.
    `max` is in units of log2 and may stay -inf.

    The operands are tensors of rank 4 as in `flash.attention`, or one tile of
    one head of rank 2: `q : [M, D]`, `k : [N, D]`, `v : [N, Dv]`.
    `at[b, h, i, j]` is the position of the first element in the whole problem,
    whose lengths are `of[nq, nk]`. With `packed(P)` the rows of a tile are those of
    P heads: row r is of head `h + r mod P` and query `i + r floordiv P`. `keys(n)`
    says that only the first `n` keys of a tile exist, the rest being padding with
    finite values, such as zeros; `lengths` and `multiples`, on rank 4, and `precision` are as in `flash.attention`.

    Example:

    ```mlir
    %a1, %m1, %l1 = flash.online_attention
        ins(%qt, %kt, %vt : tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>)
        outs(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
        at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01) mask(#flash.causal)
    ```
  }];
  let arguments = (ins Flash_FloatTensor:$query, Flash_FloatTensor:$key,
    Flash_FloatTensor:$value, Flash_F32Tensor:$acc, Flash_F32Tensor:$max,
    Flash_F32Tensor:$sum, Variadic<Index>:$position, Variadic<Index>:$extents,
    Optional<Index>:$keys, Optional<Flash_LengthsTensor>:$lengths,
    DenseI64ArrayAttr:$static_position, DenseI64ArrayAttr:$static_extents,
    F64Attr:$scale, OptionalAttr<Flash_MaskAttrInterface>:$mask,
    OptionalAttr<Flash_PrecisionAttr>:$precision,
    OptionalAttr<DenseI64ArrayAttr>:$multiples,
    OptionalAttr<Flash_ScheduleAttr>:$schedule, OptionalAttr<I64Attr>:$packed);
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
    (`keys` `(` $keys^ `)`)?
    `scale` `(` $scale `)`
    (`mask` `(` $mask^ `)`)?
    (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    (`precision` `(` $precision^ `)`)?
    (`multiples` `(` $multiples^ `)`)?
    (`schedule` `(` $schedule^ `)`)?
    (`score` $score^)?
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
    /// How many heads the rows of a tile are of.
    int64_t getPackedHeads() { return getPacked().value_or(1); }
    /// The step on one tile of the loops, not from the op's own state but from
    /// `state`: acc, max and sum of the tile's queries.
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
  let summary = "turns the online state into the attention's results";
  let description = [{
    ```
    out = acc / sum                (0 where sum is 0), rounded to its type
    lse = ln(2) * max + log(sum)   (-inf where sum is 0)
    ```

    Operands are of rank 4 or, for one tile, of rank 2.

    Example:

    ```mlir
    %o = flash.finalize ins(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
        outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
    ```
  }];
  let arguments = (ins Flash_F32Tensor:$acc, Flash_F32Tensor:$max,
    Flash_F32Tensor:$sum, Flash_FloatTensor:$output_init,
    Optional<Flash_F32Tensor>:$lse_init);
  let results = (outs Flash_FloatTensor:$output,
                      Optional<Flash_F32Tensor>:$lse);
  let assemblyFormat = [{
    `ins` `(` $acc `,` $max `,` $sum `:` type($acc) `,` type($max) `,`
    type($sum) `)` `outs` `(` $output_init (`,` $lse_init^)? `:`
    type($output_init) (`,` type($lse_init)^)? `)` attr-dict `->`
    custom<AttentionResults>(type($output), type($lse))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable();
  }];
}

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
  let assemblyFormat = [{
    $scores (`sink` `(` $sink^ `)`)? attr-dict `:` type($scores) `->`
    custom<AttentionResults>(type($result), type($lse))
  }];
  let hasVerifier = 1;
}

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

    A split without keys (0 and -inf) counts for nothing. The sum is in f32, and
    then rounded to the type of the result.

    Splits are added several at a time, with one maximum, in their order. `step(8)`
    says how many (1 to 8), so that splits without keys at the end change no bit;
    without it, steps are chosen such that all have as many.

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
  let assemblyFormat = [{
    $outs `,` $lses (`step` `(` $step^ `)`)? attr-dict `:` `(` type($outs) `,` type($lses) `)` `->`
    custom<AttentionResults>(type($output), type($lse))
  }];
  let hasVerifier = 1;
}

def Flash_ConditionVector
    : RankedTensorOf<[I1], [HasAnyRankOfPred<[1]>, Flash_NoEncoding],
                     "1D tensor of conditions without encoding">;

def Flash_AnyOp : Flash_Op<"any", [Pure]> {
  let summary = "whether a condition holds for some row";
  let description = [{
    What depends on the result must be right for each row for which the
    condition does not hold, whichever the result is: a target may ask the rows
    that it computes together rather than all. Where a row's condition holds the
    result is true for that row. `flash-decompose` asks whether a maximum has grown
    by much.

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
    not finite is NaN. `flash-decompose` asks this of the values of a masked
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

def Flash_GuardOp : Flash_Op<"guard",
    [Pure, AllTypesMatch<["value", "result"]>,
     ParentOneOf<["AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "an index or divisor that elements left out do not use";
  let description = [{
    In a score region, `value` for an element that takes part, and for any other
    a number that is harmless. Tiles compute scores that a mask leaves out, and
    drop them: an index that is right for the others alone must not be read at
    for those. `flash-guard-reads` writes it.

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

def Flash_YieldOp : Flash_Op<"yield",
    [Pure, Terminator, ParentOneOf<["AttentionOp", "OnlineAttentionOp"]>]> {
  let summary = "ends a score region";
  let arguments = (ins F32:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

#endif // FLASH_OPS_TD
