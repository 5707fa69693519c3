// What 32 bits do not hold is computed in 64; all else stays.
// RUN: flash-opt %s --flash-guard-reads --flash-widen-indices | FileCheck %s
// RUN: flash-run %s --function=table --target=sm_80 --dump=ptx | FileCheck %s --check-prefix=PTX

!t = tensor<1x1x?x16xf32>
!large = tensor<1x1x50000x64xf16>

// CHECK-LABEL: func @powers(
// CHECK:         %[[D:.*]] = arith.subi {{.*}} : index
// CHECK-NEXT:    %[[WIDE:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK-NEXT:    %[[X:.*]] = arith.muli %[[WIDE]], %[[WIDE]] : i64
// CHECK-NEXT:    %[[Y:.*]] = arith.muli %[[X]], %[[X]] : i64
// CHECK:         %[[C:.*]] = arith.constant 5000000000 : i64
// CHECK-NEXT:    arith.cmpi sgt, %[[Y]], %[[C]] : i64
// CHECK-NEXT:    arith.divsi %[[Y]], %[[C]] : i64
// CHECK-NEXT:    arith.index_cast %{{.*}} : i64 to index
func.func @powers(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = arith.muli %d, %d : index
    %y = arith.muli %x, %x : index
    %c = arith.constant 5000000000 : index
    %far = arith.cmpi sgt, %y, %c : index
    %quotient = arith.divsi %y, %c : index
    %times = arith.index_cast %quotient : index to i32
    %f = arith.sitofp %times : i32 to f32
    %t = arith.select %far, %s, %f : f32
    flash.yield %t : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// Integers of 64 bits and without a sign become indices.
// CHECK-LABEL: func @read(
// CHECK:         %[[A:.*]] = tensor.extract {{.*}} : tensor<?xi64>
// CHECK-NEXT:    %[[B:.*]] = tensor.extract {{.*}} : tensor<?xi32>
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extui %[[B]] : i32 to i64
// CHECK-NEXT:    arith.cmpi slt, %[[A]], %[[WIDE]] : i64
func.func @read(%q: !t, %ids: tensor<?xi64>, %ends: tensor<?xi32>) -> !t {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%j] : tensor<?xi64>
    %y = tensor.extract %ends[%i] : tensor<?xi32>
    %id = arith.index_cast %x : i64 to index
    %end = arith.index_castui %y : i32 to index
    %keep = arith.cmpi slt, %id, %end : index
    flash.yield %s keep %keep : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// The guard, too, is of 64 bits.
// CHECK-LABEL: func @table(
// CHECK:         %[[X:.*]] = arith.muli {{.*}} : i64
// CHECK:         %[[Y:.*]] = arith.addi %[[X]], {{.*}} : i64
// CHECK-NEXT:    %[[N:.*]] = flash.guard %[[Y]] else 0 : i64
// CHECK-NEXT:    %[[INDEX:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[INDEX]]] : tensor<2500000000xi8>
// PTX-LABEL: entry table
// PTX: mul.wide.s32 {{.*}}, 50000;
// PTX-NOT: mad.lo.s32 {{.*}}, 50000
func.func @table(%q: !large, %table: tensor<2500000000xi8>) -> !large {
  %o = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %columns = arith.constant 50000 : index
    %d = arith.subi %i, %j : index
    %row = arith.muli %d, %columns : index
    %n = arith.addi %row, %j : index
    %e = tensor.extract %table[%n] : tensor<2500000000xi8>
    %f = arith.sitofp %e : i8 to f32
    %r = arith.addf %s, %f : f32
    flash.yield %r : f32
  } : (!large, !large, !large) -> !large
  return %o : !large
}

// The size of an open table has 32 bits, a sum of positions and lengths, too,
// and so have indices from outside.
// CHECK-LABEL: func @narrow(
// CHECK-NOT:     i64
// CHECK:         return
func.func @narrow(%q: !t, %k: !t, %table: tensor<?xf32>, %of: tensor<?xf32>) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %columns = tensor.dim %of, %c0 : tensor<?xf32>
  %first = arith.muli %columns, %columns : index
  %nq = tensor.dim %q, %c2 : !t
  %nk = tensor.dim %k, %c2 : !t
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %row = arith.muli %i, %columns : index
    %n = arith.addi %row, %j : index
    %x = tensor.extract %table[%n] : tensor<?xf32>
    %end = arith.addi %i, %nk : index
    %place = arith.subi %end, %nq : index
    %d = arith.subi %place, %j : index
    %some = arith.cmpi sge, %d, %c1 : index
    %far = arith.cmpi slt, %j, %first : index
    %y = arith.select %some, %x, %s : f32
    flash.yield %y keep %far : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// The mask of a map is computed as that of its attention is.
// CHECK-LABEL: func @map(
// CHECK-NOT:     i64
// CHECK:         flash.attention
// CHECK-NOT:     i64
// CHECK:         return
func.func @map(%q: !t, %k: !t) -> !t {
  %c2 = arith.constant 2 : index
  %nq = tensor.dim %q, %c2 : !t
  %nk = tensor.dim %k, %c2 : !t
  %tiles, %counts = flash.block_map of[1, 1, %nq, %nk] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %end = arith.addi %i, %nk : index
    %place = arith.subi %end, %nq : index
    %past = arith.cmpi sle, %j, %place : index
    flash.yield %past : i1
  } : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %o = flash.attention %q, %k, %k blocks(%tiles, %counts : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      schedule(<query_tile = 64, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %end = arith.addi %i, %nk : index
    %place = arith.subi %end, %nq : index
    %past = arith.cmpi sle, %j, %place : index
    flash.yield %s keep %past : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}
