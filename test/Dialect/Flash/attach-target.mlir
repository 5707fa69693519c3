// RUN: flash-opt %s --flash-attach-target | FileCheck %s --check-prefix=NONE
// RUN: flash-opt %s --flash-attach-target="target=sm_80 keys=multiprocessors=66" --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-attach-target="target=sm_90a keys=multiprocessors=66" --flash-select-schedule | FileCheck %s --check-prefix=SM90
// RUN: flash-opt %s --flash-gpu="target=sm_90a multiprocessors=66 schedule=features=specialize_warps|persistent" --mlir-print-ir-after=tile-persist 2>&1 | FileCheck %s --check-prefix=PERSISTENT
// RUN: not flash-opt %s --flash-attach-target=keys=multiprocessors=4097 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not flash-opt %s --flash-attach-target=keys=multiprocessors=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not flash-opt %s --flash-attach-target=target=sm_70 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not flash-opt %s --flash-attach-target="target=cpu keys=registers=3" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not flash-opt %s --flash-attach-target="target=sm_80 keys=registers=3,registers=4" 2>&1 | FileCheck %s --check-prefix=TWICE
// Instructions that a chip lacks cannot be given to it; fewer can.
// RUN: not flash-opt %s --flash-attach-target="target=sm_120 keys=products=warpgroup" 2>&1 | FileCheck %s --check-prefix=PRODUCTS
// RUN: not flash-opt %s --flash-attach-target="target=sm_75 keys=copies=async" 2>&1 | FileCheck %s --check-prefix=COPIES
// RUN: not flash-opt %s --flash-attach-target="target=sm_80 keys=dependent_launches=1" 2>&1 | FileCheck %s --check-prefix=LAUNCHES
// RUN: flash-opt %s --flash-attach-target="target=sm_90a keys=copies=async" --flash-select-schedule | FileCheck %s --check-prefix=NOROLES
// Registers and shared memory that are too little for a single block are an error of the tiles.
// RUN: not flash-opt %s --flash-attach-target="target=sm_80 keys=registers=1,registers_per_thread=16" --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=FEW
// RUN: not flash-opt %s --flash-attach-target="target=sm_80 keys=registers_per_thread=1,multiprocessors=4096" --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=FEW --implicit-check-not=split_ctas
// RUN: not flash-opt %s --flash-attach-target="target=sm_90a keys=shared_bytes_per_block=1" --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not flash-opt %s --flash-attach-target="target=sm_90a keys=registers=1" --flash-select-schedule 2>&1 | FileCheck %s --check-prefix=FEWROLES
// A module keeps what it says of its target, and is for another without it.
// RUN: flash-opt %s --flash-attach-target="keys=copies=async,registers=32768" --flash-attach-target=target=sm_90a | FileCheck %s --check-prefix=KEPT
// RUN: flash-opt %s --flash-attach-target="keys=copies=async,registers=32768" --flash-attach-target=target=sm_86 | FileCheck %s --check-prefix=OTHER
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-attach-target=target=cpu | FileCheck %s --check-prefix=NONE
// NAME: error: there is no target 'sm_70'; the targets are cpu, emulate, sm_75, sm_80, sm_86, sm_89, sm_90a and sm_120
// CPU: error: the target cpu has no keys; GPUs have
// TWICE: error: registers is given twice
// PRODUCTS: error: products must be at most m16n8k16 for sm_120, whose chip lacks the instructions, got warpgroup
// COPIES: error: copies must be at most loads for sm_75, whose chip lacks the instructions, got async
// LAUNCHES: error: dependent_launches must be at most 0 for sm_80, whose chip lacks the instructions, got 1
// NOROLES: schedule(<query_tile = {{[0-9]+}}, key_tile = {{[0-9]+}}, warps = 4, stages = 1,
// NOROLES-NOT: specialize_warps
// FEW: error: {{.*}} need 64 registers of each of 128 threads, and there are 0;
// SMALL: error: {{.*}} bytes of shared memory, and a block may have 0;
// FEWROLES: error: {{.*}} registers of a thread, and with {{[0-9]}} warpgroups there are 0;
// KEPT: module attributes {flash.target = #flash.target<sm_90a, registers = 32768, copies = async>}
// OTHER: module attributes {flash.target = #flash.target<sm_86>}
// MANY: error: multiprocessors must be from 1 to 4096, got 4097
// NEGATIVE: error: multiprocessors must be from 1 to 4096, got -1

// Half as many multiprocessors, half as many CTAs for the splits of the keys.
// NONE-NOT: flash.target
// CHECK: module attributes {flash.target = #flash.target<sm_80, multiprocessors = 66>}
// CHECK: schedule({{.*}}, split_ctas = 132>)
// SM90: schedule({{.*}}, split_ctas = 66>)
// PERSISTENT: %[[COUNT:.*]] = arith.constant 66 : index
// PERSISTENT: arith.minui %{{.*}}, %[[COUNT]] : index
func.func @one_head(%q: tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16>
  return %o : tensor<1x1x4096x64xf16>
}
