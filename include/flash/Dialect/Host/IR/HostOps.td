//===- HostOps.td - What a host program does besides arith -*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_HOST_OPS_TD
#define FLASH_HOST_OPS_TD

include "flash/Support/DeclaredAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Host_Dialect : Dialect {
  let name = "host";
  let cppNamespace = "::flash::host";
  let summary = "Programs of the host that launch kernels";
  let description = [{
    The host side of a GPU program, behind the memrefs: a function of a call,
    made of `arith` on i64 and i1, `scf.if`, `scf.for` and the operations here.
    It checks sizes, says what results and scratch memory need, and launches. It
    becomes machine code (`convert-host-to-llvm`), which runs before addresses
    are known and passes on what stands in for them, and C
    (`convert-host-to-emitc`), which runs for sizes alone, too.

    ```mlir
    func.func @scale(%call: !host.call) -> i32 {
      %ok = arith.constant 0 : i32
      %c128 = arith.constant 128 : i64
      %n = host.input %call[2]
      %bytes = host.checked mul %n, %c128
      %scratch = host.allocate %call, %bytes
      host.launch %call, 0 "scale" (%n, %scratch)
      return %ok : i32
    }
    ```
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

class Host_Op<string mnemonic, list<Trait> traits = []>
    : Op<Host_Dialect, mnemonic, traits # [DeclaredAttributesOnly]>;

def Host_CallType : TypeDef<Host_Dialect, "Call"> {
  let mnemonic = "call";
  let summary = "a call in progress";
  let description = [{
    What a call is given and what it has found: `flash::runtime::HostCall` in the
    process, `NAME_call` in a C header.
  }];
}

def Host_Arithmetic : I32EnumAttr<"Arithmetic", "arithmetic that can fail", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Sub", 1, "sub">,
    I32EnumAttrCase<"Mul", 2, "mul">, I32EnumAttrCase<"DivS", 3, "divs">,
    I32EnumAttrCase<"DivU", 4, "divu">,
    I32EnumAttrCase<"CeilDivS", 5, "ceildivs">,
    I32EnumAttrCase<"CeilDivU", 6, "ceildivu">,
    I32EnumAttrCase<"FloorDivS", 7, "floordivs">,
    I32EnumAttrCase<"RemS", 8, "rems">, I32EnumAttrCase<"RemU", 9, "remu">]> {
  let cppNamespace = "::flash::host";
}

def Host_CheckedOp : Host_Op<"checked", [NoMemoryEffect]> {
  let summary = "arithmetic on 64 bits that ends the call where it has no result";
  let description = [{
    Ends the call with an error where the result does not fit in 64 bits, or the
    divisor is 0. One whose result nobody needs is not computed, and fails not.

    ```mlir
    %bytes = host.checked mul %rows, %width
    ```
  }];
  let arguments = (ins Host_Arithmetic:$kind, I64:$lhs, I64:$rhs);
  let results = (outs I64:$result);
  let hasFolder = 1;
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict";
}

def Host_NarrowOp : Host_Op<"narrow", [NoMemoryEffect]> {
  let summary = "ends the call if a number does not fit in an i32";
  let arguments = (ins I64:$value);
  let results = (outs I64:$result);
  let hasFolder = 1;
  let assemblyFormat = "$value attr-dict";
}

def Host_OverflowOp : Host_Op<"overflow", [Pure]> {
  let summary = "a sum, difference or product, and whether it fits in 64 bits";
  let description = [{
    Where it does not fit, the result is none that may be used.

    ```mlir
    %product, %fits = host.overflow mul %a, %b
    ```
  }];
  let arguments = (ins Host_Arithmetic:$kind, I64:$lhs, I64:$rhs);
  let results = (outs I64:$result, I1:$fits);
  let hasFolder = 1;
  let hasVerifier = 1;
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict";
}

def Host_InputOp : Host_Op<"input", [Pure]> {
  let summary = "a number that the call is given";
  let description = [{
    Number 0 is 1 where the caller has given buffers for results, and else 0. Then
    come, for each argument and after them for each result, the address, the sizes
    and the strides. The numbers of results may be used only where number 0 is 1;
    otherwise results are dense.
  }];
  let arguments = (ins Host_CallType:$call, I32Attr:$index);
  let results = (outs I64:$result);
  let assemblyFormat = "$call `[` $index `]` attr-dict";
}

def Host_OutputOp : Host_Op<"output"> {
  let summary = "a number that the call has found";
  let description = [{
    The numbers are, for each result, the bytes of its memory, the sizes and the strides.
  }];
  let arguments = (ins Host_CallType:$call, I32Attr:$index, I64:$value);
  let assemblyFormat = "$call `[` $index `]` `,` $value attr-dict";
}

def Host_CheckOp : Host_Op<"check"> {
  let summary = "ends the call with an error unless a condition holds";
  let description = [{
    The first text is a constant, for C. Where there is a second one, it is the
    message in the process, in which {0} and {1} stand for the values.

    ```mlir
    host.check %positive, "the size is negative" : "the size is {0}" (%size)
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$text, OptionalAttr<StrAttr>:$format,
                       Variadic<I64>:$values);
  let extraClassDeclaration = [{
    static constexpr unsigned maxValues = 2;
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let assemblyFormat = [{
    $condition `,` $text (`:` $format^ `(` $values `)`)? attr-dict
  }];
}

def Host_AllocateOp : Host_Op<"allocate"> {
  let summary = "scratch memory on the device until the call is through";
  let description = [{
    The address is a multiple of 256.
  }];
  let arguments = (ins Host_CallType:$call, I64:$bytes);
  let results = (outs I64:$address);
  let assemblyFormat = "$call `,` $bytes attr-dict";
}

def Host_MarkOp : Host_Op<"mark"> {
  let summary = "how much scratch memory is in use";
  let arguments = (ins Host_CallType:$call);
  let results = (outs I64:$used);
  let assemblyFormat = "$call attr-dict";
}

def Host_ReleaseOp : Host_Op<"release"> {
  let summary = "scratch memory allocated since a mark may be used again";
  let description = [{
    The kernels of a call run one after another, so that later allocations may
    have the memory of those that earlier kernels use.
  }];
  let arguments = (ins Host_CallType:$call, I64:$used);
  let assemblyFormat = "$call `,` $used attr-dict";
}

def Host_LaunchOp : Host_Op<"launch"> {
  let summary = "queues a kernel";
  let description = [{
    The number is the index of the launch in the list of the program, which says how
    the kernel takes its parameters (`flash::runtime::HostProgram::Launch`). The
    values are the grid, the block, the bytes of dynamic shared memory, then of
    each parameter: its value; of a pointer the address of the memory and an
    offset in elements; of a tensor map these, the sizes and the strides.

    Limits and tensor maps are checked, which may end the call; nothing is queued
    before all checks of the call have passed. Without blocks the kernel is not
    launched, and its parameters are not looked at.

    A kernel that is `dependent` may start before the one launched before it has
    ended: it waits itself.

    ```mlir
    host.launch %call, 1 "combine" (%n, %c1, %c1, %c128, %c1, %c1, %c0, %scratch, %c0) dependent
    ```
  }];
  let arguments = (ins Host_CallType:$call, I32Attr:$number, StrAttr:$kernel,
                       Variadic<I64>:$values, UnitAttr:$dependent);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $call `,` $number $kernel `(` $values `)` (`dependent` $dependent^)? attr-dict
  }];
}

#endif // FLASH_HOST_OPS_TD
