// Sums that differ by constants share what is no constant in them.
// RUN: flash-opt %s --flash-gpu-share-sums --cse | FileCheck %s

// Sums of indices, as in ALiBi: both elements convert the same difference.

// CHECK-LABEL: func.func @positions
// CHECK-SAME: %[[KEY:.*]]: index, %[[QUERY:.*]]: index
// CHECK:      %[[D:.*]] = arith.subi %[[KEY]], %[[QUERY]] : index
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[D]] : index to i32
// CHECK-NEXT: %[[BASE:.*]] = arith.sitofp %[[I]] : i32 to f32
// CHECK-NEXT: %[[EIGHT:.*]] = arith.constant 8.000000e+00 : f32
// CHECK-NEXT: %[[A:.*]] = arith.addf %[[BASE]], %[[EIGHT]] : f32
// CHECK-NOT:  arith.sitofp
// CHECK:      %[[SIX:.*]] = arith.constant 6.000000e+00 : f32
// CHECK-NEXT: %[[B:.*]] = arith.addf %[[BASE]], %[[SIX]] : f32
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @positions(%key: index, %query: index) -> (f32, f32) {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %k = arith.addi %key, %c8 : index
  %d0 = arith.subi %k, %query : index
  %i0 = arith.index_cast %d0 : index to i32
  %f0 = arith.sitofp %i0 : i32 to f32
  %q = arith.addi %c2, %query : index
  %d1 = arith.subi %k, %q : index
  %i1 = arith.index_cast %d1 : index to i32
  %f1 = arith.sitofp %i1 : i32 to f32
  return %f0, %f1 : f32, f32
}

// A constant may be subtracted, and be subtracted from.

// CHECK-LABEL: func.func @differences
// CHECK-SAME: %[[X:.*]]: index
// CHECK:      %[[I:.*]] = arith.index_cast %[[X]] : index to i32
// CHECK-NEXT: arith.sitofp %[[I]]
// CHECK-NEXT: arith.constant -3.000000e+00 : f32
// CHECK-NEXT: arith.addf
func.func @differences(%x: index) -> f32 {
  %c3 = arith.constant 3 : index
  %d = arith.subi %x, %c3 : index
  %i = arith.index_cast %d : index to i32
  %f = arith.sitofp %i : i32 to f32
  return %f : f32
}

// What is only subtracted is subtracted from zero before it is converted.

// CHECK-LABEL: func.func @only_subtracted
// CHECK-SAME: %[[X:.*]]: index
// CHECK:      %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[MINUS:.*]] = arith.subi %[[ZERO]], %[[X]] : index
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[MINUS]] : index to i32
// CHECK-NEXT: %[[BASE:.*]] = arith.sitofp %[[I]] : i32 to f32
// CHECK-NEXT: %[[FIVE:.*]] = arith.constant 5.000000e+00 : f32
// CHECK-NEXT: arith.addf %[[BASE]], %[[FIVE]]
func.func @only_subtracted(%x: index) -> f32 {
  %c5 = arith.constant 5 : index
  %d = arith.subi %c5, %x : index
  %i = arith.index_cast %d : index to i32
  %f = arith.sitofp %i : i32 to f32
  return %f : f32
}

// The difference of a difference adds its second operand again.

// CHECK-LABEL: func.func @nested
// CHECK-SAME: %[[X:.*]]: index, %[[Y:.*]]: index
// CHECK:      %[[S:.*]] = arith.addi %[[X]], %[[Y]] : index
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[S]] : index to i32
// CHECK-NEXT: %[[BASE:.*]] = arith.sitofp %[[I]]
// CHECK-NEXT: %[[OFFSET:.*]] = arith.constant -4.000000e+00 : f32
// CHECK-NEXT: arith.addf %[[BASE]], %[[OFFSET]]
func.func @nested(%x: index, %y: index) -> f32 {
  %c4 = arith.constant 4 : index
  %d = arith.subi %c4, %y : index
  %e = arith.subi %x, %d : index
  %i = arith.index_cast %e : index to i32
  %f = arith.sitofp %i : i32 to f32
  return %f : f32
}

// Integers of a program may wrap round, and so may an index in eight bits.

// CHECK-LABEL: func.func @may_wrap
// CHECK-NOT:  arith.addf
// CHECK:      return
func.func @may_wrap(%x: i32, %y: index) -> (f32, f32) {
  %c4 = arith.constant 4 : i32
  %s = arith.addi %x, %c4 : i32
  %f = arith.sitofp %s : i32 to f32
  %c8 = arith.constant 8 : index
  %t = arith.addi %y, %c8 : index
  %i = arith.index_cast %t : index to i8
  %g = arith.sitofp %i : i8 to f32
  return %f, %g : f32, f32
}

// Nothing is gained without a constant, also where constants cancel.

// CHECK-LABEL: func.func @no_constant
// CHECK-NOT:  arith.addf
// CHECK:      return
func.func @no_constant(%x: index, %y: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %s = arith.addi %x, %c0 : index
  %i = arith.index_cast %s : index to i32
  %f = arith.sitofp %i : i32 to f32
  %a = arith.addi %x, %c7 : index
  %b = arith.addi %y, %c7 : index
  %d = arith.subi %a, %b : index
  %j = arith.index_cast %d : index to i32
  %g = arith.sitofp %j : i32 to f32
  return %f, %g : f32, f32
}

// Beyond 2^24 f32 does not hold all integers: those constants stay.

// CHECK-LABEL: func.func @large
// CHECK:      arith.sitofp
// CHECK-NEXT: %[[LIMIT:.*]] = arith.constant 0x4B800000 : f32
// CHECK-NEXT: arith.addf %{{.*}}, %[[LIMIT]]
// CHECK-NOT:  arith.addf
// CHECK:      return
func.func @large(%x: index) -> (f32, f32, f32) {
  %limit = arith.constant 16777216 : index
  %beyond = arith.constant 16777217 : index
  %s0 = arith.addi %x, %limit : index
  %i0 = arith.index_cast %s0 : index to i32
  %f0 = arith.sitofp %i0 : i32 to f32
  %s1 = arith.addi %x, %beyond : index
  %i1 = arith.index_cast %s1 : index to i32
  %f1 = arith.sitofp %i1 : i32 to f32
  %s2 = arith.subi %x, %beyond : index
  %i2 = arith.index_cast %s2 : index to i32
  %f2 = arith.sitofp %i2 : i32 to f32
  return %f0, %f1, %f2 : f32, f32, f32
}

// f16 holds fewer integers, and f64 is not used for scores: both stay, as do
// conversions of vectors, of unsigned integers and of constants.

// CHECK-LABEL: func.func @others
// CHECK-NOT:  arith.addf
// CHECK:      return
func.func @others(%x: index, %v: vector<2xi32>) -> (f16, f64, vector<2xf32>, f32, f32) {
  %c8 = arith.constant 8 : index
  %s = arith.addi %x, %c8 : index
  %i = arith.index_cast %s : index to i32
  %half = arith.sitofp %i : i32 to f16
  %double = arith.sitofp %i : i32 to f64
  %eights = arith.constant dense<8> : vector<2xi32>
  %w = arith.addi %v, %eights overflow<nsw> : vector<2xi32>
  %vector = arith.sitofp %w : vector<2xi32> to vector<2xf32>
  %unsigned = arith.uitofp %i : i32 to f32
  %j = arith.index_cast %c8 : index to i32
  %constant = arith.sitofp %j : i32 to f32
  return %half, %double, %vector, %unsigned, %constant : f16, f64, vector<2xf32>, f32, f32
}

// A causal mask: the elements compare one distance with constants of their own.

// CHECK-LABEL: func.func @mask
// CHECK-SAME: %[[QUERY:.*]]: index, %[[KEY:.*]]: index
// CHECK:      %[[D:.*]] = arith.subi %[[QUERY]], %[[KEY]] : index
// CHECK-NEXT: %[[A:.*]] = arith.cmpi sge, %[[D]], %c8 : index
// CHECK-NOT:  arith.subi
// CHECK:      %[[M3:.*]] = arith.constant -3 : index
// CHECK-NEXT: %[[B:.*]] = arith.cmpi slt, %[[D]], %[[M3]] : index
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @mask(%query: index, %key: index) -> (i1, i1) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %k = arith.addi %key, %c8 overflow<nsw> : index
  %d0 = arith.subi %query, %k : index
  %a = arith.cmpi sge, %d0, %c0 : index
  %q = arith.addi %query, %c7 overflow<nsw> : index
  %d1 = arith.subi %q, %key : index
  %b = arith.cmpi slt, %d1, %c4 : index
  return %a, %b : i1, i1
}

// What threads have in common is added first, and the others follow in their order.

// CHECK-LABEL: func.func @threads
// CHECK-SAME: %[[TILE:.*]]: index
// CHECK:      %[[ID:.*]] = gpu.thread_id x
// CHECK:      %[[ROW:.*]] = arith.divui %[[ID]]
// CHECK:      %[[S:.*]] = arith.addi %[[TILE]], %[[ROW]] : index
// CHECK-NEXT: %[[D:.*]] = arith.subi %[[S]], %[[ID]] : index
// CHECK:      arith.cmpi sge, %[[D]], %{{.*}} : index
func.func @threads(%tile: index) -> i1 {
  %c4 = arith.constant 4 : index
  %id = gpu.thread_id x
  %row = arith.divui %id, %c4 : index
  %d = arith.subi %row, %id : index
  %e = arith.addi %d, %c4 : index
  %f = arith.addi %e, %tile : index
  %c0 = arith.constant 0 : index
  %a = arith.cmpi sge, %f, %c0 : index
  return %a : i1
}

// Past the last key, the number of which is no constant: the elements compare what is
// left with constants.

// CHECK-LABEL: func.func @last_keys
// CHECK-SAME: %[[KEYS:.*]]: index
// CHECK:      %[[ID:.*]] = gpu.thread_id x
// CHECK:      %[[D:.*]] = arith.subi %[[ID]], %[[KEYS]] : index
// CHECK:      %[[A:.*]] = arith.cmpi slt, %[[D]], %c-1 : index
// CHECK-NOT:  arith.addi
// CHECK:      %[[B:.*]] = arith.cmpi slt, %[[D]], %c-9 : index
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @last_keys(%keys: index) -> (i1, i1) {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %id = gpu.thread_id x
  %k1 = arith.addi %id, %c1 : index
  %a = arith.cmpi slt, %k1, %keys : index
  %k9 = arith.addi %id, %c9 : index
  %b = arith.cmpi slt, %k9, %keys : index
  return %a, %b : i1, i1
}

// Unsigned comparisons have another order below zero, i32 may wrap round, a bound beyond
// 2^24 stays, as does one that is no constant where threads have the sum in common, and
// without a constant in the sum nothing is shared.

// CHECK-LABEL: func.func @other_comparisons
// CHECK:      arith.cmpi ult, %[[S:.*]], %{{.*}} : index
// CHECK:      arith.cmpi slt, %{{.*}}, %{{.*}} : i32
// CHECK:      arith.cmpi slt, %[[S]], %{{.*}} : index
// CHECK:      arith.cmpi slt, %[[S]], %{{.*}} : index
// CHECK:      arith.cmpi slt, %{{.*}}, %c0 : index
func.func @other_comparisons(%x: index, %y: index, %n: i32) -> (i1, i1, i1, i1, i1) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %beyond = arith.constant 16777217 : index
  %s = arith.addi %x, %c4 : index
  %a = arith.cmpi ult, %s, %c9 : index
  %four = arith.constant 4 : i32
  %m = arith.addi %n, %four : i32
  %b = arith.cmpi slt, %m, %four : i32
  %c = arith.cmpi slt, %s, %y : index
  %d = arith.cmpi slt, %s, %beyond : index
  %t = arith.addi %x, %y : index
  %e = arith.cmpi slt, %t, %c0 : index
  return %a, %b, %c, %d, %e : i1, i1, i1, i1, i1
}

// A sum of 2^40 terms is not taken apart, also not to see whether threads differ in it.

// CHECK-LABEL: func.func @doubled
// CHECK:      arith.cmpi
func.func @doubled() -> i1 {
  %c4 = arith.constant 4 : index
  %x0 = gpu.thread_id x
  %x1 = arith.addi %x0, %x0 : index
  %x2 = arith.addi %x1, %x1 : index
  %x3 = arith.addi %x2, %x2 : index
  %x4 = arith.addi %x3, %x3 : index
  %x5 = arith.addi %x4, %x4 : index
  %x6 = arith.addi %x5, %x5 : index
  %x7 = arith.addi %x6, %x6 : index
  %x8 = arith.addi %x7, %x7 : index
  %x9 = arith.addi %x8, %x8 : index
  %x10 = arith.addi %x9, %x9 : index
  %x11 = arith.addi %x10, %x10 : index
  %x12 = arith.addi %x11, %x11 : index
  %x13 = arith.addi %x12, %x12 : index
  %x14 = arith.addi %x13, %x13 : index
  %x15 = arith.addi %x14, %x14 : index
  %x16 = arith.addi %x15, %x15 : index
  %x17 = arith.addi %x16, %x16 : index
  %x18 = arith.addi %x17, %x17 : index
  %x19 = arith.addi %x18, %x18 : index
  %x20 = arith.addi %x19, %x19 : index
  %x21 = arith.addi %x20, %x20 : index
  %x22 = arith.addi %x21, %x21 : index
  %x23 = arith.addi %x22, %x22 : index
  %x24 = arith.addi %x23, %x23 : index
  %x25 = arith.addi %x24, %x24 : index
  %x26 = arith.addi %x25, %x25 : index
  %x27 = arith.addi %x26, %x26 : index
  %x28 = arith.addi %x27, %x27 : index
  %x29 = arith.addi %x28, %x28 : index
  %x30 = arith.addi %x29, %x29 : index
  %x31 = arith.addi %x30, %x30 : index
  %x32 = arith.addi %x31, %x31 : index
  %x33 = arith.addi %x32, %x32 : index
  %x34 = arith.addi %x33, %x33 : index
  %x35 = arith.addi %x34, %x34 : index
  %x36 = arith.addi %x35, %x35 : index
  %x37 = arith.addi %x36, %x36 : index
  %x38 = arith.addi %x37, %x37 : index
  %x39 = arith.addi %x38, %x38 : index
  %x40 = arith.addi %x39, %x39 : index
  %s = arith.addi %x40, %c4 : index
  %a = arith.cmpi sge, %s, %c4 : index
  return %a : i1
}

// Addresses of neighbours: both loads have one base, and constants of their own.

// CHECK-LABEL: func.func @addresses
// CHECK-SAME: %[[COLUMN:.*]]: index
// CHECK:      %[[THREAD:.*]] = gpu.thread_id x
// CHECK:      %[[D:.*]] = arith.subi %[[COLUMN]], %[[THREAD]] : index
// CHECK:      %[[BASE:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK-NEXT: %[[EIGHT:.*]] = arith.constant 8 : i64
// CHECK-NEXT: arith.addi %[[BASE]], %[[EIGHT]] : i64
// CHECK-NOT:  arith.index_cast
// CHECK:      %[[SEVEN:.*]] = arith.constant 7 : i64
// CHECK-NEXT: arith.addi %[[BASE]], %[[SEVEN]] : i64
// Other uses of the sum are left alone.
// CHECK:      arith.addi %[[COLUMN]], %{{.*}} : index
// CHECK-NEXT: arith.index_cast
func.func @addresses(%column: index, %bias: !llvm.ptr<1>) -> (f32, f32, i64) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %four = arith.constant 4 : i64
  %thread = gpu.thread_id x
  %d = arith.subi %column, %thread : index
  %d0 = arith.addi %d, %c8 : index
  %i0 = arith.index_cast %d0 : index to i64
  %b0 = arith.muli %i0, %four : i64
  %a0 = llvm.getelementptr %bias[%b0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0 = llvm.load %a0 : !llvm.ptr<1> -> f32
  %d1 = arith.subi %d0, %c1 : index
  %i1 = arith.index_cast %d1 : index to i64
  %b1 = arith.muli %i1, %four : i64
  %a1 = llvm.getelementptr %bias[%b1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1 = llvm.load %a1 : !llvm.ptr<1> -> f32
  %e = arith.addi %column, %c8 : index
  %i2 = arith.index_cast %e : index to i64
  return %x0, %x1, %i2 : f32, f32, i64
}
