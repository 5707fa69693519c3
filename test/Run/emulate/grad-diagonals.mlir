// The gradient of a bias by distance from the diagonals that the program of five
// products adds up: with masks from either side, groups, lengths, odd and open
// sizes, steps of 64 and of 128 queries, and where the index of the bias is a
// function of the distance.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --check
// DEFINE: %{open} = --shape 0=1x2x130x128 --shape 1=1x1x390x128 --shape 2=1x1x390x128 --shape 3=1x2x130x128 --shape 4=1 --shape 5=2x600
// RUN: %{run} --function=causal | FileCheck %s
// RUN: %{run} --function=window | FileCheck %s
// RUN: %{run} --function=buckets | FileCheck %s
// RUN: %{run} --function=open %{open} --fill=4=300@0 | FileCheck %s
// RUN: %{run} --function=open %{open} --fill=4=0@0 | FileCheck %s
// CHECK: check: ok

// RUN: flash-run %s --target=emulate:sm_90a --function=causal --dump=l2 | FileCheck %s --check-prefix=L2
// L2: tile.store_diagonals

#deferred = #flash.schedule<products = 5, features = specialize_warps|persistent|bulk_store|defer_products|sum_diagonals>
#plain = #flash.schedule<products = 5, features = specialize_warps|bulk_store|sum_diagonals>

!q = tensor<1x4x300x128xf16>
!k = tensor<1x2x333x128xf16>
!l = tensor<1x4x300xf32>
!w = tensor<4x640xf32>
func.func @causal(%q: !q, %k: !k, %v: !k, %do: !q, %w: !w) -> (!q, !k, !k, !w) {
  %n = arith.constant 333 : index
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%h, %e] : !w
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !k, !k) -> (!q, !l)
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) schedule(#plain) wrt(%w : !w) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%h, %e] : !w
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k, !w)
  return %0#0, %0#1, %0#2, %0#3 : !q, !k, !k, !w
}

!qw = tensor<2x2x500x64xbf16>
!lw = tensor<2x2x500xf32>
!ww = tensor<2x2x300xf32>
func.func @window(%q: !qw, %k: !qw, %v: !qw, %do: !qw, %w: !ww) -> (!qw, !qw, !qw, !ww) {
  %n = arith.constant 70 : index
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 100, right = 60>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%b, %h, %e] : !ww
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!qw, !qw, !qw) -> (!qw, !lw)
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 100, right = 60>) schedule(#deferred)
      wrt(%w : !ww) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %x = tensor.extract %w[%b, %h, %e] : !ww
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!qw, !qw, !qw, !qw, !lw, !qw) -> (!qw, !qw, !qw, !ww)
  return %0#0, %0#1, %0#2, %0#3 : !qw, !qw, !qw, !ww
}

// An element for 32 distances each, of a bias in 16 bits; the sum is capped.
!qb = tensor<1x2x256x64xbf16>
!lb = tensor<1x2x256xf32>
!wb = tensor<16x2xbf16>
func.func @buckets(%q: !qb, %k: !qb, %v: !qb, %do: !qb, %w: !wb) -> (!qb, !qb, !qb, !wb) {
  %n = arith.constant 256 : index
  %c = arith.constant 32 : index
  %o, %lse = flash.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %f = arith.divui %e, %c : index
    %x = tensor.extract %w[%f, %h] : !wb
    %y = arith.extf %x : bf16 to f32
    %r = arith.addf %s, %y : f32
    %t = math.tanh %r : f32
    flash.yield %t : f32
  } : (!qb, !qb, !qb) -> (!qb, !lb)
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do schedule(#deferred) wrt(%w : !wb) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %n : index
    %f = arith.divui %e, %c : index
    %x = tensor.extract %w[%f, %h] : !wb
    %y = arith.extf %x : bf16 to f32
    %r = arith.addf %s, %y : f32
    %t = math.tanh %r : f32
    flash.yield %t : f32
  } : (!qb, !qb, !qb, !qb, !lb, !qb) -> (!qb, !qb, !qb, !wb)
  return %0#0, %0#1, %0#2, %0#3 : !qb, !qb, !qb, !wb
}

!qo = tensor<?x?x?x128xbf16>
!lo = tensor<?x?x?xf32>
!wo = tensor<?x?xf32>
func.func @open(%q: !qo, %k: !qo, %v: !qo, %do: !qo, %n: tensor<?xi32>, %w: !wo) -> (!qo, !qo, !qo, !wo) {
  %c = arith.constant 400 : index
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %c : index
    %x = tensor.extract %w[%h, %e] : !wo
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!qo, !qo, !qo) -> (!qo, !lo)
  %0:4 = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<?xi32>) schedule(#plain) wrt(%w : !wo) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %e = arith.addi %d, %c : index
    %x = tensor.extract %w[%h, %e] : !wo
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!qo, !qo, !qo, !qo, !lo, !qo) -> (!qo, !qo, !qo, !wo)
  return %0#0, %0#1, %0#2, %0#3 : !qo, !qo, !qo, !wo
}
