// Gradients through a mask that reads an array: what it leaves out has none.
// RUN: flash-run %s --function=captured --target=cpu --check | FileCheck %s
// RUN: flash-run %s --function=plain --target=cpu --check | FileCheck %s
// RUN: flash-run %s --function=plain --target=emulate --check | FileCheck %s
// RUN: flash-run %s --function=plain --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok
!q = tensor<2x4x70x32xf16>
!k = tensor<2x2x90x32xf16>
!l = tensor<2x4x70xf32>
func.func @captured(%q: !q, %k: !k, %v: !k, %ids: tensor<90xi32>, %bias: tensor<4x90xf32>, %do: !q) -> (!q, !k, !k, tensor<4x90xf32>) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<90xi32>
    %y = tensor.extract %ids[%j] : tensor<90xi32>
    %e = tensor.extract %bias[%h, %j] : tensor<4x90xf32>
    %c3 = arith.constant 3 : i32
    %xm = arith.remui %x, %c3 : i32
    %ym = arith.remui %y, %c3 : i32
    %same = arith.cmpi eq, %xm, %ym : i32
    %r = arith.addf %s, %e : f32
    flash.yield %r keep %same : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %db = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) wrt(%bias : tensor<4x90xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<90xi32>
    %y = tensor.extract %ids[%j] : tensor<90xi32>
    %e = tensor.extract %bias[%h, %j] : tensor<4x90xf32>
    %c3 = arith.constant 3 : i32
    %xm = arith.remui %x, %c3 : i32
    %ym = arith.remui %y, %c3 : i32
    %same = arith.cmpi eq, %xm, %ym : i32
    %r = arith.addf %s, %e : f32
    flash.yield %r keep %same : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, tensor<4x90xf32>)
  return %dq, %dk, %dv, %db : !q, !k, !k, tensor<4x90xf32>
}

func.func @plain(%q: !q, %k: !k, %v: !k, %ids: tensor<90xi32>, %bias: tensor<4x90xf32>, %do: !q) -> (!q, !k, !k) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<90xi32>
    %y = tensor.extract %ids[%j] : tensor<90xi32>
    %e = tensor.extract %bias[%h, %j] : tensor<4x90xf32>
    %c3 = arith.constant 3 : i32
    %xm = arith.remui %x, %c3 : i32
    %ym = arith.remui %y, %c3 : i32
    %same = arith.cmpi eq, %xm, %ym : i32
    %r = arith.addf %s, %e : f32
    flash.yield %r keep %same : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<90xi32>
    %y = tensor.extract %ids[%j] : tensor<90xi32>
    %e = tensor.extract %bias[%h, %j] : tensor<4x90xf32>
    %c3 = arith.constant 3 : i32
    %xm = arith.remui %x, %c3 : i32
    %ym = arith.remui %y, %c3 : i32
    %same = arith.cmpi eq, %xm, %ym : i32
    %r = arith.addf %s, %e : f32
    flash.yield %r keep %same : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
