// Gradients through a mask that reads an array: what it leaves out has none.
// RUN: flash-run %s --function=captured --target=cpu --check | FileCheck %s
// RUN: flash-run %s --function=plain --target=cpu,emulate,emulate:sm_90a --check | FileCheck %s --check-prefix=EACH
// CHECK: check: ok
// EACH: cpu check: ok
// EACH-NEXT: emulate check: ok
// EACH-NEXT: emulate:sm_90a check: ok
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

// Documents that begin elsewhere in each batch and head: tiles that are left in whole and in part, in both
// programs, lists for each query head of a key head, lengths, and lengths of rows that are no multiple of tiles.
// DEFINE: %{shapes} = --shape=0=2x4x301x32 --shape=1=2x2x333x32 --shape=2=2x2x333x32 --fill=3=200 --fill=3=333@1 --shape=5=2x4x301x32
// RUN: flash-run %s --function=documents --target=cpu,emulate,emulate:sm_90a --check %{shapes} | FileCheck %s --check-prefix=EACH
!dq = tensor<2x4x?x32xf16>
!dk = tensor<2x2x?x32xf16>
func.func @documents(%q: !dq, %k: !dk, %v: !dk, %n: tensor<2xi32>, %first: tensor<2x4xi32>, %do: !dq) -> (!dq, !dk, !dk) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<2xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c97 = arith.constant 97 : i32
    %c140 = arith.constant 140 : i32
    %f = tensor.extract %first[%b, %h] : tensor<2x4xi32>
    %shift = arith.remui %f, %c97 : i32
    %ii = arith.index_cast %i : index to i32
    %jj = arith.index_cast %j : index to i32
    %is = arith.addi %ii, %shift : i32
    %js = arith.addi %jj, %shift : i32
    %x = arith.divui %is, %c140 : i32
    %y = arith.divui %js, %c140 : i32
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!dq, !dk, !dk) -> (!dq, tensor<2x4x?xf32>)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<2xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c97 = arith.constant 97 : i32
    %c140 = arith.constant 140 : i32
    %f = tensor.extract %first[%b, %h] : tensor<2x4xi32>
    %shift = arith.remui %f, %c97 : i32
    %ii = arith.index_cast %i : index to i32
    %jj = arith.index_cast %j : index to i32
    %is = arith.addi %ii, %shift : i32
    %js = arith.addi %jj, %shift : i32
    %x = arith.divui %is, %c140 : i32
    %y = arith.divui %js, %c140 : i32
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!dq, !dk, !dk, !dq, tensor<2x4x?xf32>, !dq) -> (!dq, !dk, !dk)
  return %dq, %dk, %dv : !dq, !dk, !dk
}
