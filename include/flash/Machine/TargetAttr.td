//===- TargetAttr.td - The machine of a module -------------*- tablegen -*-===//
//
// Part of flash-mlir, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Apart from the attributes of the flash dialect, whose name it has, as
// programs on tiles and threads are for a machine, too.
//
//===----------------------------------------------------------------------===//

#ifndef FLASH_TARGET_ATTR_TD
#define FLASH_TARGET_ATTR_TD

include "flash/Dialect/Flash/IR/FlashDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Flash_TargetAttr : AttrDef<Flash_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "the machine that a module is compiled for";
  let description = [{
    `#flash.target<sm_90a>` is one of the machines that `lib/Machine` describes and `flash-run --targets` lists: `cpu`,
    `emulate`, or a GPU. `#flash.target<sm_90a, multiprocessors = 114>` is like it, but for the keys that are written;
    so an experiment with other resources needs no change of the compiler. Only GPUs have keys:

    | key | values |
    |---|---|
    | `multiprocessors` | 1 to 4096; kernels are right on any number |
    | `registers` | 1 to 1048576, of a multiprocessor, each of 32 bits |
    | `registers_per_thread` | 1 to 255 |
    | `shared_bytes_per_block` | 1 to 1048576, the most shared memory that one block can have |
    | `portable_shared_bytes_per_block` | 1 to 1048576, what schedules take at most where they are not given |
    | `reserved_shared_bytes_per_block` | 0 to 1048576, what the driver keeps of each block |
    | `products` | `none`, `m16n8k8`, `m16n8k16` or `warpgroup`: the matrix instructions, each with the ones before it |
    | `copies` | `loads`, `async` or `bulk`: how tiles get to shared memory, each way with the ones before it |
    | `converts_e4m3` | 0 or 1: whether an instruction converts two numbers of f8E4M3FN to f16 |
    | `dependent_launches` | 0 or 1: whether a kernel may start before the one before it ends |

    `products`, `copies`, `converts_e4m3` and `dependent_launches` are at most what the machine is described with, as its chip lacks
    other instructions. Warps have roles where there are products of warpgroups and bulk copies.

    A module has it as `flash.target`, which `flash-attach-target` writes. A module without it is for the CPU, and
    its kernels for sm_90a.
  }];
  let parameters = (ins "::flash::Machine":$machine);
  // The dialect, which registers it, is elsewhere.
  let genStorageClass = 0;
  let hasCustomAssemblyFormat = 1;
}

#endif // FLASH_TARGET_ATTR_TD
