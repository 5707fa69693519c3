// Gradients of what score regions read, where warps have roles: sums by distance, by key, by query, and of
// heads, with lengths, heads that share keys, a mask, tiles that are cut off, and open sizes.
// RUN: flash-run %s --function=distances --target=emulate:sm_90a --check | FileCheck %s
// RUN: flash-run %s --function=heads --target=emulate:sm_90a --check | FileCheck %s
// RUN: flash-run %s --function=queries --target=emulate:sm_90a --check | FileCheck %s
// RUN: flash-run %s --function=open --shape 0=2x2x300x128 --shape 1=2x2x333x128 --shape 2=2x2x333x128 --shape 3=2x2x300x128 \
// RUN:   --shape 4=2x333 --shape 5=2 --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok

#schedule = #flash.schedule<features = specialize_warps|bulk_store>
!q = tensor<2x4x300x64xf16>
!k = tensor<2x2x333x64xf16>
!l = tensor<2x4x300xf32>
!t = tensor<2x4x640xf32>
func.func @distances(%q: !q, %k: !k, %v: !k, %do: !q, %n: tensor<2xi32>, %t: !t) -> (!q, !k, !k, !t) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 335 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %t[%b, %h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>)
      schedule(#schedule) wrt(%t : !t) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant 335 : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %t[%b, %h, %at] : !t
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !t)
  return %dq, %dk, %dv, %dt : !q, !k, !k, !t
}

!h = tensor<4xf32>
func.func @heads(%q: !q, %k: !k, %v: !k, %do: !q, %n: tensor<2xi32>, %t: !h) -> (!q, !k, !k, !h) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : !h
    %x = math.tanh %s : f32
    %y = arith.mulf %x, %e : f32
    flash.yield %y : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) lengths(%n : tensor<2xi32>)
      schedule(#schedule) wrt(%t : !h) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : !h
    %x = math.tanh %s : f32
    %y = arith.mulf %x, %e : f32
    flash.yield %y : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !h)
  return %dq, %dk, %dv, %dt : !q, !k, !k, !h
}

!i = tensor<4x300xf32>
func.func @queries(%q: !q, %k: !k, %v: !k, %do: !q, %n: tensor<2xi32>, %t: !i) -> (!q, !k, !k, !i) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<2xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h, %i] : !i
    %y = arith.mulf %s, %e : f32
    flash.yield %y : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<2xi32>)
      schedule(#schedule) wrt(%t : !i) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h, %i] : !i
    %y = arith.mulf %s, %e : f32
    flash.yield %y : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !i)
  return %dq, %dk, %dv, %dt : !q, !k, !k, !i
}

!qo = tensor<?x?x?x128xbf16>
!lo = tensor<?x?x?xf32>
!to = tensor<?x?xf32>
func.func @open(%q: !qo, %k: !qo, %v: !qo, %do: !qo, %t: !to, %n: tensor<?xi32>) -> (!qo, !qo, !qo, !to) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h, %j] : !to
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!qo, !qo, !qo) -> (!qo, !lo)
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<?xi32>)
      schedule(#schedule) wrt(%t : !to) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h, %j] : !to
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (!qo, !qo, !qo, !qo, !lo, !qo) -> (!qo, !qo, !qo, !to)
  return %dq, %dk, %dv, %dt : !qo, !qo, !qo, !to
}
