//===- NvxOps.td - What the NVVM dialect lacks -------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_NVX_OPS_TD
#define FLASH_NVX_OPS_TD

include "flash/Support/DeclaredAttributes.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nvx_Dialect : Dialect {
  let name = "nvx";
  let cppNamespace = "::flash::nvx";
  let summary = "Operations of one GPU thread that the NVVM dialect lacks";
  let description = [{
    Level 3 of the attention compiler is the program of one thread: `nvvm`,
    `llvm`, `arith`, `scf` and `vector`, whose one-dimensional vectors are the
    registers of a register tile; and the few operations here.
  }];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

class Nvx_Op<string mnemonic, list<Trait> traits = []>
    : Op<Nvx_Dialect, mnemonic, traits # [DeclaredAttributesOnly]>;

def Nvx_SharedMemoryOp : Nvx_Op<"shared_memory", [Pure]> {
  let summary = "the start of the block's dynamic shared memory";
  let description = [{
    A pointer aligned to 1024 bytes. `gpu.dynamic_shared_memory` lowers to an
    internal array of 16-byte alignment, which a static allocation may overlap.

    ```mlir
    %base = nvx.shared_memory : !llvm.ptr<3>
    ```
  }];
  let results = (outs LLVM_PointerInAddressSpace<3>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Nvx_WarpgroupOp : Nvx_Op<"warpgroup", [Pure]> {
  let summary = "the number of the thread's warpgroup in its block";
  let description = [{
    `threadIdx.x / 128`, as the first lane of the warp has it: from a shuffle
    ptxas knows that all lanes have the same, and computes what follows from it,
    such as matrix descriptors, in uniform registers.

    ```mlir
    %i = nvx.warpgroup : i32
    ```
  }];
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

class Nvx_RegistersOf<list<Type> types>
    : FixedVectorOfRankAndType<[1], types>;

def Nvx_WarpgroupMmaOp : Nvx_Op<"warpgroup_mma"> {
  let summary = "starts a product of 64 rows on the tensor cores of four warps";
  let description = [{
    `wgmma.mma_async` (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply
    Instructions"), once for each 32 bytes of the inner dimension, one after the
    other: `d = a b`, or `d = a b + c`. Upstream's op has no form with `a` in
    registers.

    An operand in shared memory is a matrix descriptor and what is added to it
    for each step; `a` in registers is a vector with four for each step. The
    second operand has its columns next to each other in memory if `transpose_b`,
    its inner dimension otherwise; so has the first in shared memory its rows if
    `transpose_a`. The elements are f16 or bf16, or f8E4M3FN, which neither transposes.

    The registers of the result must not be used, nor the registers of `a` and `c`
    changed, before `nvx.warpgroup_wait`. `nvvm.wgmma.fence.aligned` comes
    before, `nvvm.wgmma.commit.group.sync.aligned` after it.

    ```mlir
    %s = nvx.warpgroup_mma f16 %qd at [0, 2] : i64, %kd at [0, 2] -> vector<64xf32>
    %o = nvx.warpgroup_mma f16 %p : vector<8xi32>, %vd at [0, 128]
        add %acc : vector<64xf32> transpose_b -> vector<64xf32>
    ```
  }];
  let arguments = (ins TypeAttr:$elementType,
    AnyTypeOf<[Nvx_RegistersOf<[I32]>, I64]>:$a,
    OptionalAttr<DenseI64ArrayAttr>:$offsetsA, I64:$b,
    DenseI64ArrayAttr:$offsetsB, Optional<Nvx_RegistersOf<[F32]>>:$c,
    UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Nvx_RegistersOf<[F32]>:$result);
  let assemblyFormat = [{
    $elementType $a (`at` $offsetsA^)? `:` type($a) `,` $b `at` $offsetsB
    (`add` $c^ `:` type($c))? (`transpose_a` $transpose_a^)?
    (`transpose_b` $transpose_b^)? attr-dict
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nvx_WarpgroupWaitOp : Nvx_Op<"warpgroup_wait"> {
  let summary = "waits for all but the last products of the warpgroup";
  let description = [{
    `wgmma.wait_group`: at most `pending` of the committed groups are still
    running afterwards. The values are registers that products use;
    their users thereby come after the wait.

    ```mlir
    %s1, %o1 = nvx.warpgroup_wait 1 %s, %o
        : (vector<64xf32>, vector<64xf32>) -> (vector<64xf32>, vector<64xf32>)
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<7>]>:$pending,
                       Variadic<Nvx_RegistersOf<[F32, I32]>>:$values);
  let results = (outs Variadic<Nvx_RegistersOf<[F32, I32]>>:$results);
  let assemblyFormat = "$pending $values attr-dict `:` functional-type($values, $results)";
  let hasVerifier = 1;
}

class Nvx_ApproximateOp<string mnemonic, string instruction>
    : Nvx_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let description = "`" # instruction # [{` (PTX ISA, "Floating Point
    Instructions"): subnormals count as zero.}];
  let arguments = (ins F32:$x);
  let results = (outs F32:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def Nvx_Log2Op : Nvx_ApproximateOp<"log2", "lg2.approx.ftz.f32"> {
  let summary = "the base-2 logarithm, to 2^-22 of absolute error near 1";
}

#endif // FLASH_NVX_OPS_TD
