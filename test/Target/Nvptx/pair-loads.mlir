// Neighbours in memory are loaded at once, where they are aligned and in the tensor.
// RUN: flash-opt %s --flash-gpu-pair-loads --split-input-file | FileCheck %s

// Bytes at two rows, of two columns and two eight behind, which a bound keeps in the tensor. The
// greatest column says of all whether it is reached; the offsets of pairs are those without it.

// CHECK-LABEL: func.func @bytes
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[ROW:.*]]: i64, %[[NEXT:.*]]: i64, %[[KEY:.*]]: index, %[[LAST:.*]]: index
// CHECK:      %[[FIRST:.*]] = arith.index_cast %[[KEY]] : index to i64
// CHECK:      %[[OFFSET:.*]] = arith.addi %[[ROW]], %[[FIRST]] : i64
// CHECK:      %[[BASE:.*]] = llvm.ptrtoint %[[P]] : !llvm.ptr<1> to i32
// CHECK-NEXT: %[[LOW:.*]] = arith.trunci %[[OFFSET]] : i64 to i32
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[BASE]], %[[LOW]] : i32
// CHECK:      %[[BIT:.*]] = arith.andi %[[SUM]], %c1_i32
// CHECK:      arith.cmpi eq, %[[BIT]], %c0_i32
// CHECK:      %[[IN:.*]] = arith.cmpi slt, %[[K8:.*]], %[[LAST]] : index
// CHECK-NOT:  arith.cmpi
// CHECK:      cf.cond_br %{{.*}}, ^[[PAIRS:.*]], ^[[ALONE:.*]]
// CHECK:      ^[[PAIRS]]:
// CHECK:      %[[A:.*]] = llvm.getelementptr %[[P]][%[[OFFSET]]]
// CHECK-NEXT: %[[XY:.*]] = llvm.load %[[A]] {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK-COUNT-3: -> i16
// CHECK:      cf.br ^[[BEHIND:.*]](%[[XY]], %{{.*}}, %{{.*}}, %{{.*}} : i16, i16, i16, i16)
// CHECK:      ^[[ALONE]]:
// CHECK-COUNT-8: -> i8
// CHECK:      cf.br ^[[BEHIND]]
// CHECK:      ^[[BEHIND]](%[[BOTH:.*]]: i16, %{{.*}}: i16, %{{.*}}: i16, %{{.*}}: i16):
// CHECK:      %[[HIGH:.*]] = arith.shrui %[[BOTH]], %c8_i16
// CHECK-NEXT: %[[X:.*]] = arith.trunci %[[BOTH]] : i16 to i8
// CHECK-NEXT: %[[Y:.*]] = arith.trunci %[[HIGH]] : i16 to i8
// CHECK:      call @use(%[[X]], %[[Y]],
func.func private @use(i8, i8, i8, i8, i8, i8, i8, i8)
func.func @bytes(%p: !llvm.ptr<1>, %row: i64, %next: i64, %key: index, %last: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %k0 = arith.minsi %key, %last : index
  %i0 = arith.index_cast %k0 : index to i64
  %o0 = arith.addi %row, %i0 : i64
  %p0 = llvm.getelementptr %p[%o0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0 = llvm.load %p0 : !llvm.ptr<1> -> i8
  %key1 = arith.addi %key, %c1 : index
  %k1 = arith.minsi %key1, %last : index
  %i1 = arith.index_cast %k1 : index to i64
  %o1 = arith.addi %row, %i1 : i64
  %p1 = llvm.getelementptr %p[%o1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1 = llvm.load %p1 : !llvm.ptr<1> -> i8
  %o2 = arith.addi %next, %i0 : i64
  %p2 = llvm.getelementptr %p[%o2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2 = llvm.load %p2 : !llvm.ptr<1> -> i8
  %o3 = arith.addi %next, %i1 : i64
  %p3 = llvm.getelementptr %p[%o3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3 = llvm.load %p3 : !llvm.ptr<1> -> i8
  %key8 = arith.addi %key, %c8 : index
  %k8 = arith.minsi %key8, %last : index
  %i8 = arith.index_cast %k8 : index to i64
  %o4 = arith.addi %row, %i8 : i64
  %p4 = llvm.getelementptr %p[%o4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4 = llvm.load %p4 : !llvm.ptr<1> -> i8
  %key9 = arith.addi %key, %c9 : index
  %k9 = arith.minsi %key9, %last : index
  %i9 = arith.index_cast %k9 : index to i64
  %o5 = arith.addi %row, %i9 : i64
  %p5 = llvm.getelementptr %p[%o5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5 = llvm.load %p5 : !llvm.ptr<1> -> i8
  %o6 = arith.addi %next, %i8 : i64
  %p6 = llvm.getelementptr %p[%o6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6 = llvm.load %p6 : !llvm.ptr<1> -> i8
  %o7 = arith.addi %next, %i9 : i64
  %p7 = llvm.getelementptr %p[%o7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7 = llvm.load %p7 : !llvm.ptr<1> -> i8
  call @use(%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7) : (i8, i8, i8, i8, i8, i8, i8, i8) -> ()
  return
}

// -----

// Of 16 bits pairs are aligned at 4 bytes.

// CHECK-LABEL: func.func @halves
// CHECK:      arith.constant 3 : i32
// CHECK-COUNT-4: -> i32
// CHECK:      %[[BITS:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK-NEXT: arith.bitcast %[[BITS]] : i16 to bf16
func.func @halves(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load %p00 : !llvm.ptr<1> -> bf16
  %c01 = arith.constant 2 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load %p01 : !llvm.ptr<1> -> bf16
  %c10 = arith.constant 16 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load %p10 : !llvm.ptr<1> -> bf16
  %c11 = arith.constant 18 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load %p11 : !llvm.ptr<1> -> bf16
  %c20 = arith.constant 32 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load %p20 : !llvm.ptr<1> -> bf16
  %c21 = arith.constant 34 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load %p21 : !llvm.ptr<1> -> bf16
  %c30 = arith.constant 48 : i64
  %o30 = arith.addi %row, %c30 : i64
  %p30 = llvm.getelementptr %p[%o30] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x30 = llvm.load %p30 : !llvm.ptr<1> -> bf16
  %c31 = arith.constant 50 : i64
  %o31 = arith.addi %row, %c31 : i64
  %p31 = llvm.getelementptr %p[%o31] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x31 = llvm.load %p31 : !llvm.ptr<1> -> bf16
  call @take_halves(%x00, %x01, %x10, %x11, %x20, %x21, %x30, %x31) : (bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16) -> ()
  return
}
func.func private @take_halves(bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16)

// -----

// Both of 32 bits take two registers.

// CHECK-LABEL: func.func @words
// CHECK-NOT:  cf.cond_br
// CHECK:      return
func.func @words(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load %p00 : !llvm.ptr<1> -> f32
  %c01 = arith.constant 4 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load %p01 : !llvm.ptr<1> -> f32
  %c10 = arith.constant 32 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load %p10 : !llvm.ptr<1> -> f32
  %c11 = arith.constant 36 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load %p11 : !llvm.ptr<1> -> f32
  %c20 = arith.constant 64 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load %p20 : !llvm.ptr<1> -> f32
  %c21 = arith.constant 68 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load %p21 : !llvm.ptr<1> -> f32
  %c30 = arith.constant 96 : i64
  %o30 = arith.addi %row, %c30 : i64
  %p30 = llvm.getelementptr %p[%o30] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x30 = llvm.load %p30 : !llvm.ptr<1> -> f32
  %c31 = arith.constant 100 : i64
  %o31 = arith.addi %row, %c31 : i64
  %p31 = llvm.getelementptr %p[%o31] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x31 = llvm.load %p31 : !llvm.ptr<1> -> f32
  call @take_words(%x00, %x01, %x10, %x11, %x20, %x21, %x30, %x31) : (f32, f32, f32, f32, f32, f32, f32, f32) -> ()
  return
}
func.func private @take_words(f32, f32, f32, f32, f32, f32, f32, f32)

// -----

// Three are not worth a branch.

// CHECK-LABEL: func.func @few
// CHECK-NOT:  cf.cond_br
// CHECK:      return
func.func @few(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load %p00 : !llvm.ptr<1> -> bf16
  %c01 = arith.constant 2 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load %p01 : !llvm.ptr<1> -> bf16
  %c10 = arith.constant 16 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load %p10 : !llvm.ptr<1> -> bf16
  %c11 = arith.constant 18 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load %p11 : !llvm.ptr<1> -> bf16
  %c20 = arith.constant 32 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load %p20 : !llvm.ptr<1> -> bf16
  %c21 = arith.constant 34 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load %p21 : !llvm.ptr<1> -> bf16
  call @take_few(%x00, %x01, %x10, %x11, %x20, %x21) : (bf16, bf16, bf16, bf16, bf16, bf16) -> ()
  return
}
func.func private @take_few(bf16, bf16, bf16, bf16, bf16, bf16)

// -----

// These are not next to each other.

// CHECK-LABEL: func.func @apart
// CHECK-NOT:  cf.cond_br
// CHECK:      return
func.func @apart(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load %p00 : !llvm.ptr<1> -> bf16
  %c01 = arith.constant 4 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load %p01 : !llvm.ptr<1> -> bf16
  %c10 = arith.constant 16 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load %p10 : !llvm.ptr<1> -> bf16
  %c11 = arith.constant 20 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load %p11 : !llvm.ptr<1> -> bf16
  %c20 = arith.constant 32 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load %p20 : !llvm.ptr<1> -> bf16
  %c21 = arith.constant 36 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load %p21 : !llvm.ptr<1> -> bf16
  %c30 = arith.constant 48 : i64
  %o30 = arith.addi %row, %c30 : i64
  %p30 = llvm.getelementptr %p[%o30] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x30 = llvm.load %p30 : !llvm.ptr<1> -> bf16
  %c31 = arith.constant 52 : i64
  %o31 = arith.addi %row, %c31 : i64
  %p31 = llvm.getelementptr %p[%o31] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x31 = llvm.load %p31 : !llvm.ptr<1> -> bf16
  call @take_apart(%x00, %x01, %x10, %x11, %x20, %x21, %x30, %x31) : (bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16) -> ()
  return
}
func.func private @take_apart(bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16)

// -----

// What writes may write the tensor; of what is left there are too few.

// CHECK-LABEL: func.func @written
// CHECK-NOT:  cf.cond_br
// CHECK:      return
func.func @written(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load %p00 : !llvm.ptr<1> -> bf16
  %c01 = arith.constant 2 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load %p01 : !llvm.ptr<1> -> bf16
  %c10 = arith.constant 16 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load %p10 : !llvm.ptr<1> -> bf16
  llvm.store %x00, %p00 : bf16, !llvm.ptr<1>
  %c11 = arith.constant 18 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load %p11 : !llvm.ptr<1> -> bf16
  %c20 = arith.constant 32 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load %p20 : !llvm.ptr<1> -> bf16
  %c21 = arith.constant 34 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load %p21 : !llvm.ptr<1> -> bf16
  %c30 = arith.constant 48 : i64
  %o30 = arith.addi %row, %c30 : i64
  %p30 = llvm.getelementptr %p[%o30] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x30 = llvm.load %p30 : !llvm.ptr<1> -> bf16
  %c31 = arith.constant 50 : i64
  %o31 = arith.addi %row, %c31 : i64
  %p31 = llvm.getelementptr %p[%o31] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x31 = llvm.load %p31 : !llvm.ptr<1> -> bf16
  call @take_written(%x00, %x01, %x10, %x11, %x20, %x21, %x30, %x31) : (bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16) -> ()
  return
}
func.func private @take_written(bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16)

// -----

// A volatile load is what it is.

// CHECK-LABEL: func.func @volatile
// CHECK-NOT:  cf.cond_br
// CHECK:      return
func.func @volatile(%p: !llvm.ptr<1>, %row: i64) {
  %c00 = arith.constant 0 : i64
  %o00 = arith.addi %row, %c00 : i64
  %p00 = llvm.getelementptr %p[%o00] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x00 = llvm.load volatile %p00 : !llvm.ptr<1> -> bf16
  %c01 = arith.constant 2 : i64
  %o01 = arith.addi %row, %c01 : i64
  %p01 = llvm.getelementptr %p[%o01] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x01 = llvm.load volatile %p01 : !llvm.ptr<1> -> bf16
  %c10 = arith.constant 16 : i64
  %o10 = arith.addi %row, %c10 : i64
  %p10 = llvm.getelementptr %p[%o10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10 = llvm.load volatile %p10 : !llvm.ptr<1> -> bf16
  %c11 = arith.constant 18 : i64
  %o11 = arith.addi %row, %c11 : i64
  %p11 = llvm.getelementptr %p[%o11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11 = llvm.load volatile %p11 : !llvm.ptr<1> -> bf16
  %c20 = arith.constant 32 : i64
  %o20 = arith.addi %row, %c20 : i64
  %p20 = llvm.getelementptr %p[%o20] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x20 = llvm.load volatile %p20 : !llvm.ptr<1> -> bf16
  %c21 = arith.constant 34 : i64
  %o21 = arith.addi %row, %c21 : i64
  %p21 = llvm.getelementptr %p[%o21] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x21 = llvm.load volatile %p21 : !llvm.ptr<1> -> bf16
  %c30 = arith.constant 48 : i64
  %o30 = arith.addi %row, %c30 : i64
  %p30 = llvm.getelementptr %p[%o30] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x30 = llvm.load volatile %p30 : !llvm.ptr<1> -> bf16
  %c31 = arith.constant 50 : i64
  %o31 = arith.addi %row, %c31 : i64
  %p31 = llvm.getelementptr %p[%o31] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x31 = llvm.load volatile %p31 : !llvm.ptr<1> -> bf16
  call @take_volatile(%x00, %x01, %x10, %x11, %x20, %x21, %x30, %x31) : (bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16) -> ()
  return
}
func.func private @take_volatile(bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16)
