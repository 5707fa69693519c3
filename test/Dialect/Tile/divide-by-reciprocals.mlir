// Divisors that are known at the launch have reciprocals from there.
// RUN: flash-opt %s --split-input-file --tile-divide-by-reciprocals | FileCheck %s

// One for each divisor, whatever divides by it: an argument and a size, which two operations give.
// CHECK-LABEL: func.func @launch(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: memref<?x?xf32>
// CHECK:         %[[D:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK:         %[[ONE:.*]] = arith.maxui %[[D]], %c1_i64
// CHECK:         %[[F:.*]] = arith.divui %c-1_i64, %[[ONE]] : i64
// CHECK:         %[[DIM:.*]] = memref.dim %[[M]], %c1
// CHECK:         %[[E:.*]] = arith.index_cast %[[DIM]] : index to i64
// CHECK:         %[[SOME:.*]] = arith.maxui %[[E]],
// CHECK:         %[[G:.*]] = arith.divui %{{.*}}, %[[SOME]] : i64
// CHECK:         gpu.launch_func @m::@kernel {{.*}} %[[F]] : i64, %[[G]] : i64)

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: memref<?x?xf32>, %[[F:[a-z0-9]+]]: i64, %[[G:[a-z0-9]+]]: i64)
// CHECK:         %[[I:.*]] = gpu.block_id x
// CHECK:         %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} overflow<nuw> : index
// CHECK:         %[[WIDE:.*]] = arith.index_castui %[[NEXT]] : index to i64
// CHECK:         %[[LOW:.*]] = arith.andi %[[F]], %c4294967295_i64
// CHECK:         %[[HIGH:.*]] = arith.shrui %[[F]], %c32_i64
// CHECK:         %[[A:.*]] = arith.muli %[[LOW]], %[[WIDE]]
// CHECK:         %[[CARRIED:.*]] = arith.shrui %[[A]], %c32_i64
// CHECK:         %[[B:.*]] = arith.muli %[[HIGH]], %[[WIDE]]
// CHECK:         %[[SUM:.*]] = arith.addi %[[B]], %[[CARRIED]]
// CHECK:         %[[UPPER:.*]] = arith.shrui %[[SUM]], %c32_i64
// CHECK:         %[[Q:.*]] = arith.index_castui %[[UPPER]] : i64 to index
// The remainder of the same numbers.
// CHECK:         %[[P:.*]] = arith.muli %[[Q]], %[[N]]
// CHECK:         %[[R:.*]] = arith.subi %[[I]], %[[P]]
// CHECK:         arith.andi %[[G]]
// CHECK:         scf.for
// CHECK:           arith.andi %[[G]]
// CHECK-NOT:     arith.divui
// CHECK-NOT:     arith.remui
// A choice of divisors is one of reciprocals.
// CHECK:         %[[OF:.*]] = arith.select %[[C:.*]], %[[F]], %[[G]] : i64
// CHECK:         arith.select %[[C]], %[[N]], %{{.*}} : index
// CHECK:         arith.andi %[[OF]]
// By a constant, signed, and by what only the block knows: left alone.
// CHECK:         arith.divui %{{.*}}, %c7
// CHECK:         arith.divsi
// CHECK:         arith.divui %{{.*}}, %[[I]]
// CHECK:         gpu.return
module attributes {gpu.container_module} {
  func.func @launch(%n: index, %m: memref<?x?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%n : index, %m : memref<?x?xf32>)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%n: index, %m: memref<?x?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c7 = arith.constant 7 : index
      %f = arith.constant 1.0 : f32
      %i = gpu.block_id x
      %q = arith.divui %i, %n : index
      %r = arith.remui %i, %n : index
      %size = memref.dim %m, %c1 : memref<?x?xf32>
      %a = arith.divui %q, %size : index
      memref.store %f, %m[%a, %r] : memref<?x?xf32>
      scf.for %j = %c0 to %r step %c1 {
        %same = memref.dim %m, %c1 : memref<?x?xf32>
        %x = arith.remui %j, %same : index
        memref.store %f, %m[%x, %x] : memref<?x?xf32>
      }
      %is = arith.cmpi ult, %i, %c7 : index
      %by = arith.select %is, %n, %size : index
      %b = arith.divui %i, %by : index
      %c = arith.divui %b, %c7 : index
      %d = arith.divsi %c, %n : index
      %e = arith.divui %d, %i : index
      memref.store %f, %m[%b, %e] : memref<?x?xf32>
      gpu.return
    }
  }
}

// -----

// What each element of a tile divides may be any number.
// CHECK-LABEL: gpu.func @elements(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: index, %{{[^:]*}}: tensor<16x16xf32, #tile.fragment<1>>)
// CHECK:         arith.remui %{{.*}}, %[[N]]
!f = tensor<16x16xf32, #tile.fragment<1>>
gpu.module @m {
  gpu.func @elements(%n: index, %x: !f) {
    %y = tile.map %x : (!f) -> !f {
    ^bb0(%s: f32, %i: index, %j: index):
      %r = arith.remui %j, %n : index
      %k = arith.index_cast %r : index to i32
      %z = arith.sitofp %k : i32 to f32
      tile.yield %z : f32
    }
    gpu.return
  }
}
