// Copies of a step that read more than two tensors have their addresses from the loop's index.
// RUN: flash-translate %s | FileCheck %s

// CHECK-LABEL: .entry three(
// CHECK:       [[STEP:\$L__.*]]:
// CHECK:       mul.lo.s64 [[OFFSET:%rd[0-9]+]],
// CHECK-NEXT:  add.s64 [[A:%rd[0-9]+]], {{%rd[0-9]+}}, [[OFFSET]];
// CHECK-NEXT:  cp.async.cg.shared.global {{.*}}, {{\[}}[[A]]], 16;
// CHECK:       bra [[STEP]];

// The addresses of two are carried through the loop.
// CHECK-LABEL: .entry two(
// CHECK:       [[STEP:\$L__.*]]:
// CHECK-NOT:   mul
// CHECK:       bra [[STEP]];

llvm.func @three(%s: !llvm.ptr<3>, %t1: !llvm.ptr<1>, %t2: !llvm.ptr<1>, %t3: !llvm.ptr<1>, %stride: i64, %first: i32, %n: i32) attributes {nvvm.kernel} {
  %c64 = llvm.mlir.constant(64 : i32) : i32
  llvm.br ^step(%first : i32)
^step(%i: i32):
  %row = llvm.sext %i : i32 to i64
  %offset = llvm.mul %row, %stride : i64
  %a1 = llvm.getelementptr %t1[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %s, %a1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  %a2 = llvm.getelementptr %t2[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %s, %a2, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  %a3 = llvm.getelementptr %t3[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %s, %a3, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  %next = llvm.add %i, %c64 overflow<nsw> : i32
  %more = llvm.icmp "slt" %next, %n : i32
  llvm.cond_br %more, ^step(%next : i32), ^exit
^exit:
  llvm.return
}

llvm.func @two(%s: !llvm.ptr<3>, %t1: !llvm.ptr<1>, %t2: !llvm.ptr<1>, %stride: i64, %first: i32, %n: i32) attributes {nvvm.kernel} {
  %c64 = llvm.mlir.constant(64 : i32) : i32
  llvm.br ^step(%first : i32)
^step(%i: i32):
  %row = llvm.sext %i : i32 to i64
  %offset = llvm.mul %row, %stride : i64
  %a1 = llvm.getelementptr %t1[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %s, %a1, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  %a2 = llvm.getelementptr %t2[%offset] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  nvvm.cp.async.shared.global %s, %a2, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  nvvm.cp.async.commit.group
  %next = llvm.add %i, %c64 overflow<nsw> : i32
  %more = llvm.icmp "slt" %next, %n : i32
  llvm.cond_br %more, ^step(%next : i32), ^exit
^exit:
  llvm.return
}
