// The gradient of a table of f16 that f32 attention reads at computed indices, some of
// which are out of range for keys and queries that take no part or do not exist.
// RUN: flash-run %s --target=cpu --shape=0=3x4x70x40 --shape=1=3x2x90x40 --shape=2=3x2x90x72 --shape=4=3 \
// RUN:   --shape=5=3x4x70x72 --fill=4=37@0 --fill=4=0@1 --fill=4=90@2 --check | FileCheck %s
// RUN: flash-run %s --target=emulate --shape=0=3x4x70x40 --shape=1=3x2x90x40 --shape=2=3x2x90x72 --shape=4=3 \
// RUN:   --shape=5=3x4x70x72 --fill=4=37@0 --fill=4=0@1 --fill=4=90@2 --check | FileCheck %s
// CHECK: check: ok
!q = tensor<?x4x?x40xf32>
!k = tensor<?x2x?x40xf32>
!v = tensor<?x2x?x72xf32>
!o = tensor<?x4x?x72xf32>
!l = tensor<?x4x?xf32>
!b = tensor<4x159xf16>
func.func @attention_grad(%q: !q, %k: !k, %v: !v, %bias: !b, %n: tensor<?xi32>, %do: !o) -> (!q, !k, !v, !b) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 89 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %bias[%h, %at] : !b
    %w = arith.extf %e : f16 to f32
    %r = arith.mulf %s, %w : f32
    flash.yield %r : f32
  } : (!q, !k, !v) -> (!o, !l)
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<?xi32>) wrt(%bias : !b) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 89 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %bias[%h, %at] : !b
    %w = arith.extf %e : f16 to f32
    %r = arith.mulf %s, %w : f32
    flash.yield %r : f32
  } : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v, !b)
  return %0#0, %0#1, %0#2, %0#3 : !q, !k, !v, !b
}
