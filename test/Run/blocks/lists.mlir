// Lists of blocks that the caller gives, against the reference, which looks for each element whether its block is listed:
// blocks that are listed for each head or for all batches, of several tiles, which the last ones lack, or lack in part; lengths,
// and a mask and a region that full blocks do not compute.
// DEFINE: %{sizes} = --shape=0=2x4x300x64 --shape=1=2x2x500x64 --shape=2=2x2x500x64 --shape=3=1x4x3x5 --shape=4=1x4x3x2
// DEFINE: %{grads} = %{sizes} --shape=5=1x4x8x3 --shape=6=1x4x8x2
// RUN: flash-run %s --function=forward --target=cpu --check %{sizes} | FileCheck %s
// RUN: flash-run %s --function=forward --target=emulate --check %{sizes} --seed=1 | FileCheck %s
// RUN: flash-run %s --function=forward --target=emulate:sm_90a --check %{sizes} --schedule=query_tile=128,key_tile=64 | FileCheck %s
// RUN: flash-run %s --function=forward --target=emulate:sm_90a --check %{sizes} --schedule=num_splits=3,query_tile=64,key_tile=32 | FileCheck %s
// RUN: flash-run %s --function=forward --target=emulate --check --baseline %{sizes} --seed=1 | FileCheck %s --check-prefixes=CHECK,NAIVE
// RUN: flash-run %s --function=gradients --target=cpu --check %{grads} | FileCheck %s
// RUN: flash-run %s --function=gradients --target=emulate --check %{grads} --seed=2 | FileCheck %s
// RUN: flash-run %s --function=gradients --target=emulate:sm_90a --check %{grads} --seed=2 | FileCheck %s
// Without room for a block there is none, as where no queries exist.
// RUN: flash-run %s --function=forward --target=cpu --check --shape=0=2x4x300x64 --shape=1=2x2x500x64 --shape=2=2x2x500x64 --shape=3=2x1x3x0 --shape=4=2x1x3x2 | FileCheck %s
// RUN: flash-run %s --function=forward --target=emulate:sm_90a --check --shape=0=2x4x300x64 --shape=1=2x2x500x64 --shape=2=2x2x500x64 --shape=3=2x1x3x0 --shape=4=2x1x3x2 | FileCheck %s
// RUN: flash-run %s --function=forward --target=cpu --check --shape=0=2x4x0x64 --shape=1=2x2x500x64 --shape=2=2x2x500x64 --shape=3=2x1x0x8 --shape=4=2x1x0x2 | FileCheck %s
// CHECK: check: ok
// NAIVE: baseline check: ok

// What no caller may give is an error where reads are checked; elsewhere, nothing outside of the tensors is read.
// RUN: not flash-run %s --function=forward --target=cpu --check %{sizes} --fill=3=8@1 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not flash-run %s --function=forward --target=emulate %{sizes} --fill=3=8@1 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: a list of blocks at {{.*}}lists.mlir:[[#@LINE+24]]:8 has a number that is not below how many blocks there are
// RUN: not flash-run %s --function=forward --target=emulate:sm_90a %{sizes} --fill=3=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: has a negative number
// RUN: not flash-run %s --function=forward --target=cpu --check %{sizes} --fill=3=2@1 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: has a block twice
// RUN: not flash-run %s --function=forward --target=cpu --check %{sizes} --fill=4=6 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: has a count above its length
// A program says so, too.
// RUN: flash-run %s --function=forward --target=emulate --dump=l1 > %t.mlir
// RUN: not flash-run %t.mlir --target=cpu %{sizes} --fill=4=6 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: flash-run %s --function=gradients --target=cpu %{grads} --fill=3=2000000000 --fill=4=6 --fill=5=-2000000000 --fill=6=2000000000

// RUN: not flash-run %s --function=gradients --target=cpu %{sizes} --shape=5=1x4x8x1 --shape=6=1x4x8x2 2>&1 | FileCheck %s --check-prefix=ROOM
// ROOM: argument 5, lists of blocks of queries, has no room for the pairs of argument 3; give it as many batches and heads, and a last size of 3
// RUN: not flash-run %s --function=forward --target=cpu --shape=0=2x4x301x64 --shape=1=2x2x500x64 --shape=2=2x2x500x64 --shape=3=1x3x3x5 --shape=4=1x3x3x2 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: flash.attention at {{.*}}: blocks are of another number of heads
// RUN: not flash-run %s --function=captured --target=cpu 2>&1 | FileCheck %s --check-prefix=WRT
// WRT: has tensors in wrt, whose gradients are sums over ranges of tiles, and lists of blocks that are given; leave out wrt

!q = tensor<2x4x?x64xf16>
!k = tensor<2x2x?x64xf16>
!l = tensor<?x?x?x?xi32>
!s = tensor<2x4x?xf32>
func.func @forward(%q: !q, %k: !k, %v: !k, %list: !l, %counts: !l, %n: tensor<2xi32>, %ids: tensor<5xi32>) -> !q {
  %o = flash.attention %q, %k, %v mask(#flash.causal) lengths(%n : tensor<2xi32>) blocks(%list, %counts : !l, !l) of [128, 64] score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c5 = arith.constant 5 : index
    %c0 = arith.constant 0 : i32
    %at = arith.remui %j, %c5 : index
    %id = arith.index_cast %at : index to i32
    %x = tensor.extract %ids[%at] : tensor<5xi32>
    %keep = arith.cmpi ne, %x, %id : i32
    %2 = arith.addf %s, %s : f32
    flash.yield %2 keep %keep : f32
  } : (!q, !k, !k) -> !q
  return %o : !q
}

func.func @gradients(%q: !q, %k: !k, %v: !k, %list: !l, %counts: !l, %qlist: !l, %qcounts: !l) -> (!q, !q, !k, !k) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) blocks(%list, %counts : !l, !l) of [128, 64] : (!q, !k, !k) -> (!q, !s)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %q mask(#flash.causal) blocks(%list, %counts : !l, !l)
      query_blocks(%qlist, %qcounts : !l, !l) of [128, 64] : (!q, !k, !k, !q, !s, !q) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

!t = tensor<1x1x64x64xf16>
!b = tensor<1x1x1x2xi32>
func.func @captured(%q: !t, %l: !b, %lse: tensor<1x1x64xf32>, %bias: tensor<64xf32>) -> tensor<64xf32> {
  %dq, %dk, %dv, %db = flash.attention_grad %q, %q, %q, %q, %lse, %q blocks(%l, %l : !b, !b) query_blocks(%l, %l : !b, !b) of [64, 64]
      wrt(%bias : tensor<64xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%j] : tensor<64xf32>
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (!t, !t, !t, !t, tensor<1x1x64xf32>, !t) -> (!t, !t, !t, tensor<64xf32>)
  return %db : tensor<64xf32>
}
