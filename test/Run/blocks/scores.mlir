// A map is of a mask alone: scores that are -inf in tiles that it keeps whole are so there, too, and what is read for
// others alone is not read.
// RUN: flash-run %s --target=cpu,emulate,emulate:sm_90a --check --shape=0=1x2x300x64 --shape=1=300 --fill=1=0 --shape=2=300 | FileCheck %s --check-prefix=EACH
// EACH: cpu check: ok
// EACH-NEXT: emulate check: ok
// EACH-NEXT: emulate:sm_90a check: ok

!t = tensor<1x2x?x64xf16>
!l = tensor<1x2x?xf32>

func.func @layer(%q: !t, %ids: tensor<?xi32>, %bias: tensor<?xf32>) -> (!t, !l, !t, !t, !t) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : !t
  %inf = arith.constant 0xFF800000 : f32
  %tiles, %counts = flash.block_map of[1, 1, %n, %n] tiles([64, 64]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %o, %lse = flash.attention %q, %q, %q blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %before = arith.cmpi slt, %j, %i : index
    %d = arith.subi %i, %j : index
    %e = arith.subi %d, %c1 : index
    %y0 = tensor.extract %bias[%e] : tensor<?xf32>
    %z = arith.addf %s, %y0 : f32
    %r = arith.select %before, %z, %inf : f32
    flash.yield %r keep %same : f32
  } : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %lse, %o blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 64, query_step = 64, key_step = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %before = arith.cmpi slt, %j, %i : index
    %d = arith.subi %i, %j : index
    %e = arith.subi %d, %c1 : index
    %y0 = tensor.extract %bias[%e] : tensor<?xf32>
    %z = arith.addf %s, %y0 : f32
    %r = arith.select %before, %z, %inf : f32
    flash.yield %r keep %same : f32
  } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %o, %lse, %dq, %dk, %dv : !t, !l, !t, !t, !t
}
