// Sums of rows that loops carry: each lane has one of its own, and these are
// added up behind the loops.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-partial-sums)))" | FileCheck %s

!tile = tensor<32x16xf32, #tile.fragment<2>>
!rows = tensor<32xf32, #tile.rows<2>>
!lanes = tensor<32x4xf32, #tile.lanes<2>>

gpu.module @kernels {
  // Four lanes start with a quarter each of what the sum starts from.

  // CHECK-LABEL: gpu.func @carried(
  // CHECK-SAME:  %[[START:[^,: ]*]]: tensor<32xf32, #tile.rows<2>>, %[[F:[^,: ]*]]: tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[QUARTER:.*]] = arith.constant dense<2.500000e-01> : tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[PART:.*]] = arith.mulf %[[START]], %[[QUARTER]]
  // CHECK:       %[[PARTS:.*]] = tile.broadcast %[[PART]] : {{.*}} to tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %[[PARTS]]) -> (tensor<32x4xf32, #tile.lanes<2>>)
  // CHECK:         %[[FACTORS:.*]] = tile.broadcast %[[F]] : {{.*}} to tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:         %[[SCALED:.*]] = arith.mulf %[[SO_FAR]], %[[FACTORS]] : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:         %[[NEXT:.*]] = tile.fold add %{{.*}} into %[[SCALED]]
  // CHECK-NOT:     tile.reduce
  // CHECK:         scf.yield %[[NEXT]] : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[WHOLE:.*]] = tile.reduce add %[[SUM]] : {{.*}} to tensor<32xf32, #tile.rows<2>>
  // CHECK:       tile.store %[[WHOLE]]
  // CHECK:       arith.addf %[[WHOLE]], %[[WHOLE]]
  gpu.func @carried(%start: !rows, %f: !rows, %x: !tile, %m: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %sum = scf.for %i = %n to %n step %n iter_args(%so_far = %start) -> !rows {
      %scaled = arith.mulf %so_far, %f : !rows
      %lanes = tile.fold add %x into %zero : !tile into !lanes
      %more = tile.reduce add %lanes : !lanes to !rows
      %next = arith.addf %scaled, %more : !rows
      scf.yield %next : !rows
    }
    tile.store %sum, %m[%n] : !rows to memref<?xf32>
    %twice = arith.addf %sum, %sum : !rows
    tile.store %twice, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // A second loop goes on with what the first one gives, and a choice with one of
  // two sums: nothing is added up in between.

  // CHECK-LABEL: gpu.func @two_loops(
  // CHECK:       %[[A:.*]] = scf.for
  // CHECK:       %[[B:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %[[A]]) -> (tensor<32x4xf32, #tile.lanes<2>>)
  // CHECK:         scf.if %{{.*}} -> (tensor<32x4xf32, #tile.lanes<2>>)
  // CHECK:           tile.fold add %{{.*}} into %[[SO_FAR]]
  // CHECK:         } else {
  // CHECK:           scf.yield %[[SO_FAR]]
  // CHECK-NOT:   tile.reduce
  // CHECK:       tile.reduce add %[[B]]
  gpu.func @two_loops(%start: !rows, %x: !tile, %m: memref<?xf32>, %n: index, %c: i1) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %a = scf.for %i = %n to %n step %n iter_args(%so_far = %start) -> !rows {
      %lanes = tile.fold add %x into %zero : !tile into !lanes
      %more = tile.reduce add %lanes : !lanes to !rows
      %next = arith.addf %so_far, %more : !rows
      scf.yield %next : !rows
    }
    %b = scf.for %i = %n to %n step %n iter_args(%so_far = %a) -> !rows {
      %chosen = scf.if %c -> !rows {
        %lanes = tile.fold add %x into %zero : !tile into !lanes
        %more = tile.reduce add %lanes : !lanes to !rows
        %next = arith.addf %so_far, %more : !rows
        scf.yield %next : !rows
      } else {
        scf.yield %so_far : !rows
      }
      scf.yield %chosen : !rows
    }
    tile.store %b, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // A loop may start again from a value of rows.

  // CHECK-LABEL: gpu.func @restarted(
  // CHECK:         %[[PART:.*]] = arith.mulf %{{.*}}, %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:         %[[PARTS:.*]] = tile.broadcast %[[PART]]
  // CHECK:       scf.for
  // CHECK:         scf.if %{{.*}} -> (tensor<32x4xf32, #tile.lanes<2>>)
  // CHECK:           scf.yield %[[PARTS]]
  gpu.func @restarted(%start: !rows, %x: !tile, %m: memref<?xf32>, %n: index, %c: i1) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %sum = scf.for %i = %n to %n step %n iter_args(%so_far = %start) -> !rows {
      %lanes = tile.fold add %x into %zero : !tile into !lanes
      %more = tile.reduce add %lanes : !lanes to !rows
      %next = arith.addf %so_far, %more : !rows
      %chosen = scf.if %c -> !rows {
        scf.yield %start : !rows
      } else {
        scf.yield %next : !rows
      }
      scf.yield %chosen : !rows
    }
    tile.store %sum, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // A loop that needs whole sums has them.

  // CHECK-LABEL: gpu.func @asked_for(
  // CHECK:       scf.for {{.*}} -> (tensor<32xf32, #tile.rows<2>>)
  // CHECK:         tile.reduce add
  // CHECK:         %[[NEXT:.*]] = arith.addf
  // CHECK:         math.exp2 %[[NEXT]]
  gpu.func @asked_for(%start: !rows, %x: !tile, %m: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %sum = scf.for %i = %n to %n step %n iter_args(%so_far = %start) -> !rows {
      %lanes = tile.fold add %x into %zero : !tile into !lanes
      %more = tile.reduce add %lanes : !lanes to !rows
      %next = arith.addf %so_far, %more : !rows
      %e = math.exp2 %next : !rows
      tile.store %e, %m[%i] : !rows to memref<?xf32>
      scf.yield %next : !rows
    }
    tile.store %sum, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // A square of the sum is no sum of squares.

  // CHECK-LABEL: gpu.func @squared(
  // CHECK:       scf.for {{.*}} -> (tensor<32xf32, #tile.rows<2>>)
  // CHECK:         tile.reduce add
  gpu.func @squared(%start: !rows, %x: !tile, %m: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %sum = scf.for %i = %n to %n step %n iter_args(%so_far = %start) -> !rows {
      %square = arith.mulf %so_far, %so_far : !rows
      %lanes = tile.fold add %x into %zero : !tile into !lanes
      %more = tile.reduce add %lanes : !lanes to !rows
      %next = arith.addf %square, %more : !rows
      scf.yield %next : !rows
    }
    tile.store %sum, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // Nothing is saved where a sum is of one tile, and what lanes start from other
  // than zero is not theirs four times. A maximum is no sum.

  // CHECK-LABEL: gpu.func @others(
  // CHECK:       tile.reduce add
  // CHECK:       scf.for {{.*}} -> (tensor<32xf32, #tile.rows<2>>, tensor<32xf32, #tile.rows<2>>)
  // CHECK:         tile.fold add %{{.*}} into %{{.*}}
  // CHECK:         tile.reduce add
  // CHECK:         tile.fold max
  // CHECK:         tile.reduce max
  gpu.func @others(%start: !rows, %some: !lanes, %x: !tile, %m: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant dense<0.0> : !lanes
    %lanes = tile.fold add %x into %zero : !tile into !lanes
    %one = tile.reduce add %lanes : !lanes to !rows
    %first = arith.addf %start, %one : !rows
    tile.store %first, %m[%n] : !rows to memref<?xf32>
    %r:2 = scf.for %i = %n to %n step %n iter_args(%sum = %start, %max = %start) -> (!rows, !rows) {
      %l = tile.fold add %x into %some : !tile into !lanes
      %more = tile.reduce add %l : !lanes to !rows
      %next = arith.addf %sum, %more : !rows
      %l2 = tile.fold max %x into %zero : !tile into !lanes
      %largest = tile.reduce max %l2 : !lanes to !rows
      %next_max = arith.maxnumf %max, %largest : !rows
      scf.yield %next, %next_max : !rows, !rows
    }
    tile.store %r#0, %m[%n] : !rows to memref<?xf32>
    tile.store %r#1, %m[%n] : !rows to memref<?xf32>
    gpu.return
  }
}
