// Loops whose operations say when they run.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-pipeline)))' | FileCheck %s

!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  // An iteration has stage 1 of the one before, in the order of clusters. What that gives is not carried, since
  // all that uses it comes behind it, also what says that it runs before; what it needs is carried. An operation that
  // does not say when it runs does so as soon as it can.
  // CHECK-LABEL: gpu.func @clusters(
  // CHECK-SAME:    %[[X:.*]]: tensor<{{.*}}>, %[[Y:.*]]: tensor
  // CHECK:       %[[E0:.*]] = math.exp2 %[[X]]
  // CHECK:       %[[N0:.*]] = arith.addf %[[X]], %[[Y]]
  // CHECK:       %[[S0:.*]] = arith.mulf %[[E0]], %[[Y]]
  // CHECK:       %[[L:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %c4 step %c1 iter_args(%[[A:.*]] = %[[N0]], %[[S:.*]] = %[[S0]])
  // CHECK-NEXT:    %[[E:.*]] = math.exp2 %[[A]]
  // CHECK-NEXT:    %[[N:.*]] = arith.addf %[[A]], %[[Y]]
  // CHECK-NEXT:    %[[Z:.*]] = arith.addf %[[S]], %[[Y]]
  // CHECK-NEXT:    %[[M:.*]] = arith.mulf %[[E]], %[[Z]]
  // CHECK-NEXT:    scf.yield %[[N]], %[[M]]
  // CHECK:       arith.addf %[[L]]#1, %[[Y]]
  // CHECK-NEXT:  gpu.return
  gpu.func @clusters(%x: !scores, %y: !scores) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %y) -> (!scores, !scores) {
      %e = math.exp2 %a : !scores
      %m = arith.mulf %e, %b {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : !scores
      %s = arith.addf %m, %y {tile.pipeline = #tile.pipeline<stage = 1, cluster = 2>} : !scores
      %n = arith.addf %a, %y : !scores
      scf.yield %n, %s : !scores, !scores
    }
    gpu.return
  }

  // A loop of four iterations in a choice by what the kernel is given.
  // CHECK-LABEL: gpu.func @given(
  // CHECK-SAME:    %[[C:[a-z0-9]+]]: i1
  // CHECK:       scf.if %[[C]] {
  // CHECK-NEXT:    math.exp2
  // CHECK:         scf.for
  // CHECK:       gpu.return
  gpu.func @given(%x: !scores, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.if %c {
      %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> !scores {
        %e = math.exp2 %x : !scores
        %s = arith.addf %e, %a {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !scores
        scf.yield %s : !scores
      }
    }
    gpu.return
  }

  // Two loops whose stages 1 differ are two pipelines: the second one would do with the last values of the first what it
  // does with its own.
  // CHECK-LABEL: gpu.func @different(
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK:         arith.addf
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK:         arith.mulf
  // CHECK-NEXT:    gpu.return
  gpu.func @different(%x: !scores) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (!scores) {
      %e = math.exp2 %x {tile.pipeline = #tile.pipeline<stage = 0, cluster = 1>} : !scores
      %s = arith.addf %a, %e {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !scores
      scf.yield %s : !scores
    }
    %t = scf.for %i = %c4 to %c8 step %c1 iter_args(%a = %r) -> (!scores) {
      %e = math.exp2 %x {tile.pipeline = #tile.pipeline<stage = 0, cluster = 1>} : !scores
      %s = arith.mulf %a, %e {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !scores
      scf.yield %s : !scores
    }
    gpu.return
  }

  // Of one iteration the first is the last.
  // CHECK-LABEL: gpu.func @once(
  // CHECK:       math.exp2
  // CHECK-NEXT:  arith.addf
  // CHECK-NEXT:  gpu.return
  gpu.func @once(%x: !scores) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> !scores {
      %e = math.exp2 %x : !scores
      %s = arith.addf %e, %a {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !scores
      scf.yield %s : !scores
    }
    gpu.return
  }
}
