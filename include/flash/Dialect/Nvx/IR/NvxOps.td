//===- NvxOps.td - What the NVVM dialect lacks -------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_NVX_OPS_TD
#define FLASH_NVX_OPS_TD

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
}

class Nvx_Op<string mnemonic, list<Trait> traits = []>
    : Op<Nvx_Dialect, mnemonic, traits>;

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
