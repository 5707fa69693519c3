// A tensor of wrt whose reads have no effect, or are not there (any more), has
// a gradient of 0.
// RUN: flash-run %s --check --target=cpu | FileCheck %s
// RUN: flash-run %s --check --target=emulate | FileCheck %s
// RUN: flash-opt %s --canonicalize | flash-run - --check --target=cpu | FileCheck %s
// CHECK: check: ok
!q = tensor<1x2x40x16xf32>
!l = tensor<1x2x40xf32>
func.func @f(%q: !q, %k: !q, %v: !q, %do: !q, %a: tensor<5xf32>, %c: tensor<2x3xf16>) -> (!q, !q, !q, tensor<5xf32>, tensor<2x3xf16>) {
  %o, %lse = flash.attention %q, %k, %v : (!q, !q, !q) -> (!q, !l)
  %g:5 = flash.attention_grad %q, %k, %v, %o, %lse, %do wrt(%a, %c : tensor<5xf32>, tensor<2x3xf16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %a[%h] : tensor<5xf32>
    flash.yield %s : f32
  } : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, tensor<5xf32>, tensor<2x3xf16>)
  return %g#0, %g#1, %g#2, %g#3, %g#4 : !q, !q, !q, tensor<5xf32>, tensor<2x3xf16>
}
