//===- FlashGradSteps.td - Steps of the gradients ----------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Included by FlashOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_GRAD_STEPS_TD
#define FLASH_GRAD_STEPS_TD

def Flash_F32Rows : Flash_VectorOf<[F32]>;

/// What a step of the gradients reads, and where it is.
defvar Flash_gradStepTiles = (ins Flash_FloatTile:$query, Flash_FloatTile:$key,
    Flash_FloatTile:$value, Flash_FloatTile:$output_grad, Flash_F32Rows:$lse_log2,
    Flash_F32Rows:$delta);
defvar Flash_gradStepClauses = (ins Variadic<Index>:$position,
    Variadic<Index>:$extents, DenseI64ArrayAttr:$static_position,
    DenseI64ArrayAttr:$static_extents, F64Attr:$scale,
    OptionalAttr<Flash_MaskAttrInterface>:$mask,
    OptionalAttr<Flash_PrecisionAttr>:$precision,
    OptionalAttr<Flash_ScheduleAttr>:$schedule, UnitAttr:$neutral_padding);
defvar Flash_gradStepTilesFormat = [{
    `ins` `(` $query `,` $key `,` $value `,` $output_grad `,` $lse_log2 `,` $delta
    `:` type($query) `,` type($key) `,` type($value) `,` type($output_grad) `,`
    type($lse_log2) `,` type($delta) `)`
  }];
defvar Flash_gradStepPositionFormat = [{
    `at` `` custom<DynamicIndexList>($position, $static_position)
    `of` `` custom<DynamicIndexList>($extents, $static_extents)
  }];
defvar Flash_gradStepClausesFormat = [{
    (`neutral_padding` $neutral_padding^)? `scale` `(` $scale `)`
    (`mask` `(` $mask^ `)`)?
    (`precision` `(` $precision^ `)`)?
    (`schedule` `(` $schedule^ `)`)?
    (`score` custom<OwnRegion>($score)^)?
    attr-dict
  }];

class Flash_GradStepOp<string mnemonic, list<Trait> traits>
    : Flash_Op<mnemonic, [Pure, AttrSizedOperandSegments,
                          Flash_SingleOperandGroups, Flash_StepOpInterface] #
                         traits> {
  let regions = (region MaxSizedRegion<1>:$score);
  let hasVerifier = 1;
  code declarations = [{
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedPosition();
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedExtents();
    int64_t getPackedHeads() { return 1; }
    ::mlir::MutableOperandRange getCountMutable();
    ::mlir::MutableOperandRange getFixedCountMutable();
  }];
}

def Flash_QueryGradStepOp : Flash_GradStepOp<"query_grad_step",
    [AllTypesMatch<["query_grad", "query_grad_out"]>]> {
  let summary = "adds what a tile of keys gives to the gradient of queries";
  let description = [{
    With a tile of each operand of `flash.attention_grad`, `q : [M, D]`,
    `k : [N, D]`, `v : [N, Dv]`, `do : [M, Dv]`, and of each query the
    `lse_log2 : [M]`, its log-sum-exp in base 2 (0 instead of -inf), and
    `delta : [M]`:

    ```
    x[i,j]  = scale * sum_d q[i,d] * k[j,d]
    p[i,j]  = exp2(log2(e) * score(x) - lse_log2[i])             (0 where masked)
    dx[i,j] = p * (sum_d do[i,d] * v[j,d] - delta[i]) * score'(x)
    dq'     = dq + sum_j dx[i,j] * k[j,:]
    ```

    The scale of `dq` is left to the end of the loop over keys. `at`, `of`,
    `keys(n)`, which leaves out the keys from the `n`-th on, and `neutral_padding` are as in
    `flash.online_attention`.

    Example:

    ```mlir
    %1 = flash.query_grad_step ins(%q, %k, %v, %do, %lse, %delta : tensor<64x64xf16>,
            tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
        outs(%0 : tensor<64x64xf32>) at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01)
        mask(#flash.causal)
    ```
  }];
  let arguments = !con(Flash_gradStepTiles, (ins Flash_F32Tile:$query_grad,
    Optional<Index>:$keys), Flash_gradStepClauses);
  let results = (outs Flash_F32Tile:$query_grad_out);
  let assemblyFormat = !strconcat(Flash_gradStepTilesFormat, [{
    `outs` `(` $query_grad `:` type($query_grad) `)`
  }], Flash_gradStepPositionFormat, "(`keys` `(` $keys^ `)`)?",
  Flash_gradStepClausesFormat);
  let extraClassDeclaration = declarations # [{
    static constexpr unsigned numRequiredOperands = 7;
    bool stepsOverQueries() { return false; }
  }];
}

def Flash_KeyGradStepOp : Flash_GradStepOp<"key_grad_step",
    [InferTypeOpAdaptor]> {
  let summary = "adds what a tile of queries gives to the gradients of keys and "
                "values";
  let description = [{
    With `p` and `dx` of `flash.query_grad_step`:

    ```
    dk' = dk + sum_i dx[i,j] * q[i,:]
    dv' = dv + sum_i p[i,j] * do[i,:]
    ```

    The scale of `dk` is left to the end of the loop over queries. `queries(n)`
    leaves out the queries from the `n`-th on, unless these change nothing (`neutral_padding`). `keys(n)` says that the rows of
    the result from the `n`-th on are not used, so that the score region need
    not be right for them.

    With a third output, `dq : [M, D]`, the step adds to the gradient of its queries, too, as
    `flash.query_grad_step` does; the output may have the columns in parts, one below the other, `[c M, D / c]`. `keys(n)`
    then leaves out the keys from the `n`-th on there. Such a step may give a fourth result,
    with `score_grads`: `dx` as keys by queries, `[N, M]`, in the type of the operands.

    Example:

    ```mlir
    %2:2 = flash.key_grad_step ins(%q, %k, %v, %do, %lse, %delta : tensor<64x64xf16>,
            tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
        outs(%0, %1 : tensor<128x64xf32>, tensor<128x32xf32>) at[%b, %h, %i, %j] of[512, 512]
        scale(1.250000e-01) mask(#flash.causal)
    %5:3 = flash.key_grad_step ins(%q, %k, %v, %do, %lse, %delta : tensor<64x64xf16>,
            tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>, tensor<64xf32>)
        outs(%0, %1, %zero : tensor<128x64xf32>, tensor<128x32xf32>, tensor<64x64xf32>)
        at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01)
    ```
  }];
  let arguments = !con(Flash_gradStepTiles, (ins Flash_F32Tile:$key_grad,
    Flash_F32Tile:$value_grad, Optional<Flash_F32Tile>:$query_grad,
    Optional<Index>:$queries, Optional<Index>:$keys,
    UnitAttr:$score_grads), Flash_gradStepClauses);
  let results = (outs Flash_F32Tile:$key_grad_out,
                      Flash_F32Tile:$value_grad_out,
                      Variadic<Flash_FloatTile>:$others);
  let assemblyFormat = !strconcat(Flash_gradStepTilesFormat, [{
    `outs` `(` $key_grad `,` $value_grad (`,` $query_grad^)? `:`
    type($key_grad) `,` type($value_grad) (`,` type($query_grad)^)? `)`
    (`score_grads` $score_grads^)?
  }], Flash_gradStepPositionFormat, [{
    (`queries` `(` $queries^ `)`)?
    (`keys` `(` $keys^ `)`)?
  }], Flash_gradStepClausesFormat);
  let extraClassDeclaration = declarations # [{
    static constexpr unsigned numRequiredOperands = 8;
    bool stepsOverQueries() { return true; }
    /// The third and the fourth result; null if there is none.
    ::mlir::Value getQueryGradOut() {
      return getQueryGrad() ? getOthers()[0] : ::mlir::Value();
    }
    ::mlir::Value getScoreGradOut() {
      return getScoreGrads() ? getOthers()[1] : ::mlir::Value();
    }
  }];
}

def Flash_CapturedGradStepOp : Flash_GradStepOp<"captured_grad_step",
    [AllTypesMatch<["sum", "sum_out"]>]> {
  let summary = "adds what scores of a pair of tiles give to the gradient of "
                "elements that they read";
  let description = [{
    With `p` and the products of values and the output's gradients as in
    `flash.query_grad_step`, the gradient for the score of the row `r` of the fixed
    tile and the row `c` of the other with respect to what the score region reads of
    `captured` at `reads`. These number the `tensor.extract` of this tensor in the
    region:

    ```
    g[r,c] = p * (sum_d do[i,d] * v[j,d] - delta[i]) * (the derivative for the reads)
    sum'[r,c] = sum[r,c] + g[r,c],  or  sum'[r] = sum[r] + sum_c g[r,c]
    ```

    The fixed tile is that of the queries, with `over_queries` that of the keys. `queries(n)`
    and `keys(n)` leave out those from the `n`-th on, of both tiles.

    Example:

    ```mlir
    %1 = flash.captured_grad_step of(%bias : tensor<4x?xf32>) reads([0]) ins(%q, %k, %v, %do, %lse, %delta :
            tensor<64x64xf16>, tensor<128x64xf16>, tensor<128x32xf16>, tensor<64x32xf16>, tensor<64xf32>,
            tensor<64xf32>)
        outs(%0 : tensor<64x128xf32>) at[%b, %h, %i, %j] of[512, 512] scale(1.250000e-01) score {
    ^bb0(%s: f32, %sb: index, %sh: index, %si: index, %sj: index):
      %e = tensor.extract %bias[%sh, %sj] : tensor<4x?xf32>
      %r = arith.addf %s, %e : f32
      flash.yield %r : f32
    }
    ```
  }];
  let arguments = !con(Flash_gradStepTiles, (ins Flash_FloatTensor:$captured,
    DenseI64ArrayAttr:$reads, Flash_F32Tensor:$sum, Optional<Index>:$queries,
    Optional<Index>:$keys, UnitAttr:$over_queries),
    Flash_gradStepClauses);
  let results = (outs Flash_F32Tensor:$sum_out);
  let assemblyFormat = !strconcat([{
    `of` `(` $captured `:` type($captured) `)` `reads` `(` $reads `)`
  }], Flash_gradStepTilesFormat, [{
    `outs` `(` $sum `:` type($sum) `)`
  }], Flash_gradStepPositionFormat, [{
    (`queries` `(` $queries^ `)`)?
    (`keys` `(` $keys^ `)`)?
    (`over_queries` $over_queries^)?
  }], Flash_gradStepClausesFormat);
  let extraClassDeclaration = declarations # [{
    static constexpr unsigned numRequiredOperands = 8;
    bool stepsOverQueries() { return getOverQueries(); }
    /// The reads of `captured` in the region, in order.
    ::llvm::SmallVector<::mlir::Operation *> getAllReads();
  }];
}

#endif // FLASH_GRAD_STEPS_TD
