// A score that is -inf by position keeps what is behind it from reading, and so does what a region keeps: forwards and
// gradients, alone and beside a mask. --check and emulation report reads that are out of range.
// RUN: flash-run %s --function=behind_inf --target=cpu --check --fill=1=-1000000@5 | FileCheck %s
// RUN: flash-run %s --function=behind_inf --target=emulate --check --fill=1=-1000000@5 | FileCheck %s
// RUN: flash-run %s --function=behind_inf --target=emulate:sm_90a --check --fill=1=-1000000@5 | FileCheck %s
// RUN: flash-run %s --function=behind_keep --target=cpu --check --fill=1=-1000000@5 | FileCheck %s
// RUN: flash-run %s --function=behind_keep --target=emulate:sm_90a --check --fill=1=-1000000@5 | FileCheck %s
// CHECK: check: ok

!t = tensor<1x2x90x32xf16>
!l = tensor<1x2x90xf32>

func.func @behind_inf(%q: !t, %pages: tensor<90xi64>, %bias: tensor<90x2xf32>) -> (!t, !l, !t, !t, !t) {
  %o, %lse = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %page = tensor.extract %pages[%j] : tensor<90xi64>
    %zero = arith.constant 0 : i64
    %inf = arith.constant 0xFF800000 : f32
    %exists = arith.cmpi sge, %page, %zero : i64
    %at = arith.index_cast %page : i64 to index
    %x = tensor.extract %bias[%at, %h] : tensor<90x2xf32>
    %y = arith.addf %s, %x : f32
    %r = arith.select %exists, %y, %inf : f32
    flash.yield %r : f32
  } : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %lse, %o score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %page = tensor.extract %pages[%j] : tensor<90xi64>
    %zero = arith.constant 0 : i64
    %inf = arith.constant 0xFF800000 : f32
    %exists = arith.cmpi sge, %page, %zero : i64
    %at = arith.index_cast %page : i64 to index
    %x = tensor.extract %bias[%at, %h] : tensor<90x2xf32>
    %y = arith.addf %s, %x : f32
    %r = arith.select %exists, %y, %inf : f32
    flash.yield %r : f32
  } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %o, %lse, %dq, %dk, %dv : !t, !l, !t, !t, !t
}

func.func @behind_keep(%q: !t, %pages: tensor<90xi64>, %bias: tensor<90x2xf32>) -> (!t, !l, !t, !t, !t) {
  %o, %lse = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %page = tensor.extract %pages[%j] : tensor<90xi64>
    %zero = arith.constant 0 : i64
    %exists = arith.cmpi sge, %page, %zero : i64
    %at = arith.index_cast %page : i64 to index
    %x = tensor.extract %bias[%at, %h] : tensor<90x2xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y keep %exists : f32
  } : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %lse, %o mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %page = tensor.extract %pages[%j] : tensor<90xi64>
    %zero = arith.constant 0 : i64
    %exists = arith.cmpi sge, %page, %zero : i64
    %at = arith.index_cast %page : i64 to index
    %x = tensor.extract %bias[%at, %h] : tensor<90x2xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y keep %exists : f32
  } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %o, %lse, %dq, %dk, %dv : !t, !l, !t, !t, !t
}
