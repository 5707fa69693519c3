// RUN: flash-opt %s --flash-attach-target | FileCheck %s --check-prefix=NONE
// RUN: flash-opt %s --flash-attach-target="target=sm_80 keys=multiprocessors=66" --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-attach-target="target=sm_90a keys=multiprocessors=66" --flash-select-schedule | FileCheck %s --check-prefix=SM90
// RUN: flash-opt %s --flash-gpu="target=sm_90a multiprocessors=66 schedule=features=specialize_warps|persistent" --mlir-print-ir-after=tile-persist 2>&1 | FileCheck %s --check-prefix=PERSISTENT
// RUN: not flash-opt %s --flash-attach-target=keys=multiprocessors=4097 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not flash-opt %s --flash-attach-target=keys=multiprocessors=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not flash-opt %s --flash-attach-target=target=sm_70 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not flash-opt %s --flash-attach-target="target=cpu keys=registers=3" 2>&1 | FileCheck %s --check-prefix=CPU
// A module keeps what it says of its target, and is for another without it.
// RUN: flash-opt %s --flash-attach-target="keys=copies=async,registers=32768" --flash-attach-target=target=sm_90a | FileCheck %s --check-prefix=KEPT
// RUN: flash-opt %s --flash-attach-target="keys=copies=async,registers=32768" --flash-attach-target=target=sm_86 | FileCheck %s --check-prefix=OTHER
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-attach-target=target=cpu | FileCheck %s --check-prefix=NONE
// NAME: error: there is no target 'sm_70'; the targets are cpu, emulate, sm_75, sm_80, sm_86, sm_89, sm_90a and sm_120
// CPU: error: the target cpu has no keys; GPUs have
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
