// A map that is written by hand serves two attentions, is a result too, and is of the sizes of both.
// RUN: flash-run %s --target=cpu --check --shape=0=2x4x300x64 --shape=1=300 --fill=1=3 | FileCheck %s
// RUN: flash-run %s --target=emulate --check --shape=0=2x4x300x64 --shape=1=300 --fill=1=3 | FileCheck %s
// RUN: flash-run %s --target=emulate:sm_90a --check --shape=0=2x4x300x64 --shape=1=300 --fill=1=3 | FileCheck %s
// CHECK: check: ok
// RUN: not flash-run %s --target=cpu --check --shape=0=2x4x300x64 --shape=1=301 --fill=1=3 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: flash.attention at {{.*}}by-hand.mlir:[[#@LINE+19]]:8: the block map is of another number of queries

!t = tensor<2x4x?x64xf16>

func.func @layers(%q: !t, %ids: tensor<?xi32>) -> (!t, tensor<1x1x?x2xi32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi32>
  %tiles, %counts = flash.block_map of[1, 1, %n, %n] tiles([64, 64]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c7 = arith.constant 7 : i32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %xy = arith.muli %x, %y : i32
    %k = arith.index_cast %j : index to i32
    %z = arith.addi %xy, %k : i32
    %r = arith.remui %z, %c7 : i32
    %keep = arith.cmpi ne, %r, %x : i32
    flash.yield %keep : i1
  } : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %0 = flash.attention %q, %q, %q blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c7 = arith.constant 7 : i32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %xy = arith.muli %x, %y : i32
    %k = arith.index_cast %j : index to i32
    %z = arith.addi %xy, %k : i32
    %r = arith.remui %z, %c7 : i32
    %keep = arith.cmpi ne, %r, %x : i32
    flash.yield %s keep %keep : f32
  } : (!t, !t, !t) -> !t
  %1 = flash.attention %0, %q, %q blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %c7 = arith.constant 7 : i32
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %xy = arith.muli %x, %y : i32
    %k = arith.index_cast %j : index to i32
    %z = arith.addi %xy, %k : i32
    %r = arith.remui %z, %c7 : i32
    %keep = arith.cmpi ne, %r, %x : i32
    flash.yield %s keep %keep : f32
  } : (!t, !t, !t) -> !t
  return %1, %counts : !t, tensor<1x1x?x2xi32>
}
