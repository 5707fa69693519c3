// Scores that the region does not use: the last product of a phase is not followed by what is computed from them.
// RUN: flash-run %s --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok
!t = tensor<1x2x256x128xf16>
func.func @f(%q: !t, %k: !t, %v: !t, %c: tensor<256xf32>) -> !t {
  %o = flash.attention %q, %k, %v mask(#flash.causal) schedule(<query_tile = 128, key_tile = 128, features = specialize_warps|overlap|ping_pong|lazy_rescale>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %c[%j] : tensor<256xf32>
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
