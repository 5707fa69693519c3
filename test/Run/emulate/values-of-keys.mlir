// Keys that are the values, too, are in one ring: with one stage, no step overlaps the next.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --shape 0=1x3x130x64 --shape 1=1x3x200x64 --check
// RUN: %{run} --schedule=stages=1 | FileCheck %s
// RUN: %{run} --schedule="query_tile=128,key_tile=48,stages=1,features=specialize_warps|ping_pong" | FileCheck %s
// RUN: %{run} --schedule="query_tile=128,key_tile=48,stages=2,features=specialize_warps|overlap" | FileCheck %s
// RUN: not %{run} --schedule="query_tile=128,key_tile=48,stages=1,features=specialize_warps|overlap" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule=schedule=stages=1 | FileCheck %s --check-prefix=CHOSEN
// CHECK:  check: ok
// STAGES: overlap needs 2 stages where values are columns of the keys, got 1; choose stages = 2, or leave overlap out of the features
// CHOSEN: features = specialize_warps|ping_pong|lazy_rescale|
func.func @attention(%q: tensor<1x3x?x64xf16>, %k: tensor<1x3x?x64xf16>) -> tensor<1x3x?x64xf16> {
  %o = flash.attention %q, %k, %k mask(#flash.causal) : (tensor<1x3x?x64xf16>, tensor<1x3x?x64xf16>, tensor<1x3x?x64xf16>) -> tensor<1x3x?x64xf16>
  return %o : tensor<1x3x?x64xf16>
}
