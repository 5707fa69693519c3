//===- FlashDialect.td - The flash dialect -----------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_DIALECT_TD
#define FLASH_DIALECT_TD

include "mlir/IR/OpBase.td"

def Flash_Dialect : Dialect {
  let name = "flash";
  let cppNamespace = "::flash";
  let summary = "Attention as algebra on tensors, and its online-softmax step";
  let description = [{
    The two upper levels of the attention compiler.

    At level 0 a program says *what* to compute: `flash.attention` on whole
    tensors. At level 1 it says *in which steps*: loops over tiles around
    `flash.online_attention`, one step of the (accumulator, maximum, sum) monoid
    of the online softmax (Milakov and Gimelshein, arXiv 1805.02867; Dao et
    al., arXiv 2205.14135), closed by `flash.finalize`.

    **Positions.** `i` and `j` are raw query and key indices, `b` and `h` the
    batch and query-head indices, `nq` and `nk` the two lengths. The diagonal
    of causal and window masks is aligned to the bottom-right corner: query `i`
    faces key `i + nk - nq`.

    **Semantics shared by every level and target.**
      - A row whose keys are all masked gives an output of 0 and a log-sum-exp
        of -inf (or, with a sink, an output of 0 and the sink's logit).
      - No result depends on an element that is masked or out of range, not
        even when that element is NaN or infinite.
      - A NaN in an element that takes part reaches the row's output.
  }];
  let discardableAttrs = (ins "::flash::ScheduleAttr":$schedule,
                              "::flash::ProductPrecisionAttr":$precision,
                              "::flash::TargetAttr":$target);
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    // That of the schedule is generated apart from the others.
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;
  }];
  // Tiling builds ops of these.
  let dependentDialects = ["::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

#endif // FLASH_DIALECT_TD
