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

// -----

// Three tensors one after the other; one branch takes 32 pairs: of the third tensor, the pair that is
// begun before the last of these is no part of the next group, and stays alone.

// CHECK-LABEL: func.func @in_turns
// CHECK:      cf.cond_br
// CHECK-COUNT-32: -> i16
// CHECK-NOT:  -> i16
// CHECK:      cf.cond_br
// CHECK-COUNT-9: -> i16
// CHECK-NOT:  -> i16
// CHECK:      return
func.func @in_turns(%p0: !llvm.ptr<1>, %p1: !llvm.ptr<1>, %p2: !llvm.ptr<1>, %row: i64) {
  %c0a = arith.constant 0 : i64
  %o0a = arith.addi %row, %c0a : i64
  %a0a0 = llvm.getelementptr %p0[%o0a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0a0 = llvm.load %a0a0 : !llvm.ptr<1> -> i8
  %a0a1 = llvm.getelementptr %p1[%o0a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0a1 = llvm.load %a0a1 : !llvm.ptr<1> -> i8
  %a0a2 = llvm.getelementptr %p2[%o0a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0a2 = llvm.load %a0a2 : !llvm.ptr<1> -> i8
  %c0b = arith.constant 1 : i64
  %o0b = arith.addi %row, %c0b : i64
  %a0b0 = llvm.getelementptr %p0[%o0b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0b0 = llvm.load %a0b0 : !llvm.ptr<1> -> i8
  %a0b1 = llvm.getelementptr %p1[%o0b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0b1 = llvm.load %a0b1 : !llvm.ptr<1> -> i8
  %a0b2 = llvm.getelementptr %p2[%o0b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x0b2 = llvm.load %a0b2 : !llvm.ptr<1> -> i8
  %c1a = arith.constant 8 : i64
  %o1a = arith.addi %row, %c1a : i64
  %a1a0 = llvm.getelementptr %p0[%o1a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1a0 = llvm.load %a1a0 : !llvm.ptr<1> -> i8
  %a1a1 = llvm.getelementptr %p1[%o1a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1a1 = llvm.load %a1a1 : !llvm.ptr<1> -> i8
  %a1a2 = llvm.getelementptr %p2[%o1a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1a2 = llvm.load %a1a2 : !llvm.ptr<1> -> i8
  %c1b = arith.constant 9 : i64
  %o1b = arith.addi %row, %c1b : i64
  %a1b0 = llvm.getelementptr %p0[%o1b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1b0 = llvm.load %a1b0 : !llvm.ptr<1> -> i8
  %a1b1 = llvm.getelementptr %p1[%o1b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1b1 = llvm.load %a1b1 : !llvm.ptr<1> -> i8
  %a1b2 = llvm.getelementptr %p2[%o1b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x1b2 = llvm.load %a1b2 : !llvm.ptr<1> -> i8
  %c2a = arith.constant 16 : i64
  %o2a = arith.addi %row, %c2a : i64
  %a2a0 = llvm.getelementptr %p0[%o2a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2a0 = llvm.load %a2a0 : !llvm.ptr<1> -> i8
  %a2a1 = llvm.getelementptr %p1[%o2a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2a1 = llvm.load %a2a1 : !llvm.ptr<1> -> i8
  %a2a2 = llvm.getelementptr %p2[%o2a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2a2 = llvm.load %a2a2 : !llvm.ptr<1> -> i8
  %c2b = arith.constant 17 : i64
  %o2b = arith.addi %row, %c2b : i64
  %a2b0 = llvm.getelementptr %p0[%o2b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2b0 = llvm.load %a2b0 : !llvm.ptr<1> -> i8
  %a2b1 = llvm.getelementptr %p1[%o2b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2b1 = llvm.load %a2b1 : !llvm.ptr<1> -> i8
  %a2b2 = llvm.getelementptr %p2[%o2b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x2b2 = llvm.load %a2b2 : !llvm.ptr<1> -> i8
  %c3a = arith.constant 24 : i64
  %o3a = arith.addi %row, %c3a : i64
  %a3a0 = llvm.getelementptr %p0[%o3a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3a0 = llvm.load %a3a0 : !llvm.ptr<1> -> i8
  %a3a1 = llvm.getelementptr %p1[%o3a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3a1 = llvm.load %a3a1 : !llvm.ptr<1> -> i8
  %a3a2 = llvm.getelementptr %p2[%o3a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3a2 = llvm.load %a3a2 : !llvm.ptr<1> -> i8
  %c3b = arith.constant 25 : i64
  %o3b = arith.addi %row, %c3b : i64
  %a3b0 = llvm.getelementptr %p0[%o3b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3b0 = llvm.load %a3b0 : !llvm.ptr<1> -> i8
  %a3b1 = llvm.getelementptr %p1[%o3b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3b1 = llvm.load %a3b1 : !llvm.ptr<1> -> i8
  %a3b2 = llvm.getelementptr %p2[%o3b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x3b2 = llvm.load %a3b2 : !llvm.ptr<1> -> i8
  %c4a = arith.constant 32 : i64
  %o4a = arith.addi %row, %c4a : i64
  %a4a0 = llvm.getelementptr %p0[%o4a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4a0 = llvm.load %a4a0 : !llvm.ptr<1> -> i8
  %a4a1 = llvm.getelementptr %p1[%o4a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4a1 = llvm.load %a4a1 : !llvm.ptr<1> -> i8
  %a4a2 = llvm.getelementptr %p2[%o4a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4a2 = llvm.load %a4a2 : !llvm.ptr<1> -> i8
  %c4b = arith.constant 33 : i64
  %o4b = arith.addi %row, %c4b : i64
  %a4b0 = llvm.getelementptr %p0[%o4b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4b0 = llvm.load %a4b0 : !llvm.ptr<1> -> i8
  %a4b1 = llvm.getelementptr %p1[%o4b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4b1 = llvm.load %a4b1 : !llvm.ptr<1> -> i8
  %a4b2 = llvm.getelementptr %p2[%o4b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x4b2 = llvm.load %a4b2 : !llvm.ptr<1> -> i8
  %c5a = arith.constant 40 : i64
  %o5a = arith.addi %row, %c5a : i64
  %a5a0 = llvm.getelementptr %p0[%o5a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5a0 = llvm.load %a5a0 : !llvm.ptr<1> -> i8
  %a5a1 = llvm.getelementptr %p1[%o5a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5a1 = llvm.load %a5a1 : !llvm.ptr<1> -> i8
  %a5a2 = llvm.getelementptr %p2[%o5a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5a2 = llvm.load %a5a2 : !llvm.ptr<1> -> i8
  %c5b = arith.constant 41 : i64
  %o5b = arith.addi %row, %c5b : i64
  %a5b0 = llvm.getelementptr %p0[%o5b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5b0 = llvm.load %a5b0 : !llvm.ptr<1> -> i8
  %a5b1 = llvm.getelementptr %p1[%o5b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5b1 = llvm.load %a5b1 : !llvm.ptr<1> -> i8
  %a5b2 = llvm.getelementptr %p2[%o5b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x5b2 = llvm.load %a5b2 : !llvm.ptr<1> -> i8
  %c6a = arith.constant 48 : i64
  %o6a = arith.addi %row, %c6a : i64
  %a6a0 = llvm.getelementptr %p0[%o6a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6a0 = llvm.load %a6a0 : !llvm.ptr<1> -> i8
  %a6a1 = llvm.getelementptr %p1[%o6a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6a1 = llvm.load %a6a1 : !llvm.ptr<1> -> i8
  %a6a2 = llvm.getelementptr %p2[%o6a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6a2 = llvm.load %a6a2 : !llvm.ptr<1> -> i8
  %c6b = arith.constant 49 : i64
  %o6b = arith.addi %row, %c6b : i64
  %a6b0 = llvm.getelementptr %p0[%o6b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6b0 = llvm.load %a6b0 : !llvm.ptr<1> -> i8
  %a6b1 = llvm.getelementptr %p1[%o6b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6b1 = llvm.load %a6b1 : !llvm.ptr<1> -> i8
  %a6b2 = llvm.getelementptr %p2[%o6b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x6b2 = llvm.load %a6b2 : !llvm.ptr<1> -> i8
  %c7a = arith.constant 56 : i64
  %o7a = arith.addi %row, %c7a : i64
  %a7a0 = llvm.getelementptr %p0[%o7a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7a0 = llvm.load %a7a0 : !llvm.ptr<1> -> i8
  %a7a1 = llvm.getelementptr %p1[%o7a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7a1 = llvm.load %a7a1 : !llvm.ptr<1> -> i8
  %a7a2 = llvm.getelementptr %p2[%o7a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7a2 = llvm.load %a7a2 : !llvm.ptr<1> -> i8
  %c7b = arith.constant 57 : i64
  %o7b = arith.addi %row, %c7b : i64
  %a7b0 = llvm.getelementptr %p0[%o7b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7b0 = llvm.load %a7b0 : !llvm.ptr<1> -> i8
  %a7b1 = llvm.getelementptr %p1[%o7b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7b1 = llvm.load %a7b1 : !llvm.ptr<1> -> i8
  %a7b2 = llvm.getelementptr %p2[%o7b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x7b2 = llvm.load %a7b2 : !llvm.ptr<1> -> i8
  %c8a = arith.constant 64 : i64
  %o8a = arith.addi %row, %c8a : i64
  %a8a0 = llvm.getelementptr %p0[%o8a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8a0 = llvm.load %a8a0 : !llvm.ptr<1> -> i8
  %a8a1 = llvm.getelementptr %p1[%o8a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8a1 = llvm.load %a8a1 : !llvm.ptr<1> -> i8
  %a8a2 = llvm.getelementptr %p2[%o8a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8a2 = llvm.load %a8a2 : !llvm.ptr<1> -> i8
  %c8b = arith.constant 65 : i64
  %o8b = arith.addi %row, %c8b : i64
  %a8b0 = llvm.getelementptr %p0[%o8b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8b0 = llvm.load %a8b0 : !llvm.ptr<1> -> i8
  %a8b1 = llvm.getelementptr %p1[%o8b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8b1 = llvm.load %a8b1 : !llvm.ptr<1> -> i8
  %a8b2 = llvm.getelementptr %p2[%o8b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x8b2 = llvm.load %a8b2 : !llvm.ptr<1> -> i8
  %c9a = arith.constant 72 : i64
  %o9a = arith.addi %row, %c9a : i64
  %a9a0 = llvm.getelementptr %p0[%o9a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9a0 = llvm.load %a9a0 : !llvm.ptr<1> -> i8
  %a9a1 = llvm.getelementptr %p1[%o9a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9a1 = llvm.load %a9a1 : !llvm.ptr<1> -> i8
  %a9a2 = llvm.getelementptr %p2[%o9a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9a2 = llvm.load %a9a2 : !llvm.ptr<1> -> i8
  %c9b = arith.constant 73 : i64
  %o9b = arith.addi %row, %c9b : i64
  %a9b0 = llvm.getelementptr %p0[%o9b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9b0 = llvm.load %a9b0 : !llvm.ptr<1> -> i8
  %a9b1 = llvm.getelementptr %p1[%o9b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9b1 = llvm.load %a9b1 : !llvm.ptr<1> -> i8
  %a9b2 = llvm.getelementptr %p2[%o9b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x9b2 = llvm.load %a9b2 : !llvm.ptr<1> -> i8
  %c10a = arith.constant 80 : i64
  %o10a = arith.addi %row, %c10a : i64
  %a10a0 = llvm.getelementptr %p0[%o10a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10a0 = llvm.load %a10a0 : !llvm.ptr<1> -> i8
  %a10a1 = llvm.getelementptr %p1[%o10a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10a1 = llvm.load %a10a1 : !llvm.ptr<1> -> i8
  %a10a2 = llvm.getelementptr %p2[%o10a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10a2 = llvm.load %a10a2 : !llvm.ptr<1> -> i8
  %c10b = arith.constant 81 : i64
  %o10b = arith.addi %row, %c10b : i64
  %a10b0 = llvm.getelementptr %p0[%o10b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10b0 = llvm.load %a10b0 : !llvm.ptr<1> -> i8
  %a10b1 = llvm.getelementptr %p1[%o10b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10b1 = llvm.load %a10b1 : !llvm.ptr<1> -> i8
  %a10b2 = llvm.getelementptr %p2[%o10b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x10b2 = llvm.load %a10b2 : !llvm.ptr<1> -> i8
  %c11a = arith.constant 88 : i64
  %o11a = arith.addi %row, %c11a : i64
  %a11a0 = llvm.getelementptr %p0[%o11a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11a0 = llvm.load %a11a0 : !llvm.ptr<1> -> i8
  %a11a1 = llvm.getelementptr %p1[%o11a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11a1 = llvm.load %a11a1 : !llvm.ptr<1> -> i8
  %a11a2 = llvm.getelementptr %p2[%o11a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11a2 = llvm.load %a11a2 : !llvm.ptr<1> -> i8
  %c11b = arith.constant 89 : i64
  %o11b = arith.addi %row, %c11b : i64
  %a11b0 = llvm.getelementptr %p0[%o11b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11b0 = llvm.load %a11b0 : !llvm.ptr<1> -> i8
  %a11b1 = llvm.getelementptr %p1[%o11b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11b1 = llvm.load %a11b1 : !llvm.ptr<1> -> i8
  %a11b2 = llvm.getelementptr %p2[%o11b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x11b2 = llvm.load %a11b2 : !llvm.ptr<1> -> i8
  %c12a = arith.constant 96 : i64
  %o12a = arith.addi %row, %c12a : i64
  %a12a0 = llvm.getelementptr %p0[%o12a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12a0 = llvm.load %a12a0 : !llvm.ptr<1> -> i8
  %a12a1 = llvm.getelementptr %p1[%o12a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12a1 = llvm.load %a12a1 : !llvm.ptr<1> -> i8
  %a12a2 = llvm.getelementptr %p2[%o12a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12a2 = llvm.load %a12a2 : !llvm.ptr<1> -> i8
  %c12b = arith.constant 97 : i64
  %o12b = arith.addi %row, %c12b : i64
  %a12b0 = llvm.getelementptr %p0[%o12b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12b0 = llvm.load %a12b0 : !llvm.ptr<1> -> i8
  %a12b1 = llvm.getelementptr %p1[%o12b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12b1 = llvm.load %a12b1 : !llvm.ptr<1> -> i8
  %a12b2 = llvm.getelementptr %p2[%o12b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x12b2 = llvm.load %a12b2 : !llvm.ptr<1> -> i8
  %c13a = arith.constant 104 : i64
  %o13a = arith.addi %row, %c13a : i64
  %a13a0 = llvm.getelementptr %p0[%o13a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13a0 = llvm.load %a13a0 : !llvm.ptr<1> -> i8
  %a13a1 = llvm.getelementptr %p1[%o13a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13a1 = llvm.load %a13a1 : !llvm.ptr<1> -> i8
  %a13a2 = llvm.getelementptr %p2[%o13a] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13a2 = llvm.load %a13a2 : !llvm.ptr<1> -> i8
  %c13b = arith.constant 105 : i64
  %o13b = arith.addi %row, %c13b : i64
  %a13b0 = llvm.getelementptr %p0[%o13b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13b0 = llvm.load %a13b0 : !llvm.ptr<1> -> i8
  %a13b1 = llvm.getelementptr %p1[%o13b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13b1 = llvm.load %a13b1 : !llvm.ptr<1> -> i8
  %a13b2 = llvm.getelementptr %p2[%o13b] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %x13b2 = llvm.load %a13b2 : !llvm.ptr<1> -> i8
  call @take_in_turns(%x0a0, %x0a1, %x0a2, %x0b0, %x0b1, %x0b2, %x1a0, %x1a1, %x1a2, %x1b0, %x1b1, %x1b2, %x2a0, %x2a1, %x2a2, %x2b0, %x2b1, %x2b2, %x3a0, %x3a1, %x3a2, %x3b0, %x3b1, %x3b2, %x4a0, %x4a1, %x4a2, %x4b0, %x4b1, %x4b2, %x5a0, %x5a1, %x5a2, %x5b0, %x5b1, %x5b2, %x6a0, %x6a1, %x6a2, %x6b0, %x6b1, %x6b2, %x7a0, %x7a1, %x7a2, %x7b0, %x7b1, %x7b2, %x8a0, %x8a1, %x8a2, %x8b0, %x8b1, %x8b2, %x9a0, %x9a1, %x9a2, %x9b0, %x9b1, %x9b2, %x10a0, %x10a1, %x10a2, %x10b0, %x10b1, %x10b2, %x11a0, %x11a1, %x11a2, %x11b0, %x11b1, %x11b2, %x12a0, %x12a1, %x12a2, %x12b0, %x12b1, %x12b2, %x13a0, %x13a1, %x13a2, %x13b0, %x13b1, %x13b2) : (i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8) -> ()
  return
}
func.func private @take_in_turns(i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8, i8)
