// Blocks of one and two warps that the model chooses for few queries of each key head: with splits, lengths on both sides of them, and a cap of the scores.
// RUN: split-file %s %t
// RUN: flash-run %t/one.mlir --target=emulate:sm_90a --fill 3=2100@0 --fill 3=0@1 --fill 3=1@2 --fill 3=1024@3 --fill 3=1025@4 --fill 3=2048@5 --check --seed=3 | FileCheck %s
// RUN: flash-run %t/one.mlir --target=emulate:sm_90a --dump=l1 | FileCheck %s --check-prefix=ONE
// RUN: flash-run %t/two.mlir --target=emulate:sm_90a --check --seed=4 | FileCheck %s
// RUN: flash-run %t/two.mlir --target=emulate:sm_90a --dump=l1 | FileCheck %s --check-prefix=TWO
// CHECK: check: ok
// ONE: query_tile = 16, key_tile = 32, {{.*}}warps = 1, {{.*}}features = none, {{.*}}split_keys = 1024
// TWO: query_tile = 32, key_tile = 64, {{.*}}warps = 2, {{.*}}features = none, {{.*}}split_ctas = 132

//--- one.mlir
!q = tensor<17x8x1x64xf16>
!k = tensor<17x2x2100x64xf16>
func.func @attention(%q: !q, %k: !k, %v: !k, %n: tensor<17xi32>) -> (!q, tensor<17x8x1xf32>) {
  %o, %l = flash.attention %q, %k, %v mask(#flash.causal) key_lengths(%n : tensor<17xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c = arith.constant 20.0 : f32
    %d = arith.divf %s, %c : f32
    %t = math.tanh %d : f32
    %r = arith.mulf %t, %c : f32
    flash.yield %r : f32
  } : (!q, !k, !k) -> (!q, tensor<17x8x1xf32>)
  return %o, %l : !q, tensor<17x8x1xf32>
}
//--- two.mlir
!q = tensor<1x8x7x40xbf16>
!k = tensor<1x2x1111x40xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = flash.attention %q, %k, %v mask(#flash.causal) : (!q, !k, !k) -> !q
  return %o : !q
}
