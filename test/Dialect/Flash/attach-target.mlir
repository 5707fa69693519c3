// RUN: flash-opt %s --flash-attach-target | FileCheck %s --check-prefix=NONE
// RUN: flash-opt %s --flash-attach-target=multiprocessors=66 --flash-select-schedule=target=sm_80 | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=multiprocessors=66 --flash-select-schedule=target=sm_90a | FileCheck %s --check-prefix=SM90
// RUN: flash-opt %s --flash-sm90="multiprocessors=66 schedule=features=specialize_warps|persistent" --mlir-print-ir-after=tile-persist 2>&1 | FileCheck %s --check-prefix=PERSISTENT
// RUN: not flash-opt %s --flash-attach-target=multiprocessors=4097 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not flash-opt %s --flash-attach-target=multiprocessors=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// MANY: error: multiprocessors must be from 1 to 4096, got 4097
// NEGATIVE: error: multiprocessors must be from 1 to 4096, got -1

// Half as many multiprocessors, half as many CTAs for the splits of the keys.
// NONE-NOT: flash.multiprocessors
// CHECK: module attributes {flash.multiprocessors = 66 : i64}
// CHECK: schedule({{.*}}, split_ctas = 132>)
// SM90: schedule({{.*}}, split_ctas = 66>)
// PERSISTENT: %[[COUNT:.*]] = arith.constant 66 : index
// PERSISTENT: arith.minui %{{.*}}, %[[COUNT]] : index
func.func @one_head(%q: tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16> {
  %o = flash.attention %q, %q, %q : (tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>, tensor<1x1x4096x64xf16>) -> tensor<1x1x4096x64xf16>
  return %o : tensor<1x1x4096x64xf16>
}
