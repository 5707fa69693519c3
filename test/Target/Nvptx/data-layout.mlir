// Accesses without an alignment have that of the type on the chip, whichever
// module they are in.
// RUN: flash-translate %s | FileCheck %s

// CHECK-LABEL: .entry copy(
// CHECK: ld.global.b64
// CHECK: st.global.b64
// CHECK: ld.shared.v4.b32
// CHECK: st.shared.v4.b32
gpu.module @kernels {
  llvm.func @copy(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>) attributes {nvvm.kernel} {
    %x = llvm.load %p : !llvm.ptr<1> -> i64
    %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
    llvm.store %x, %q : i64, !llvm.ptr<1>
    %y = llvm.load %s : !llvm.ptr<3> -> vector<4xf32>
    %t = llvm.getelementptr %s[16] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.store %y, %t : vector<4xf32>, !llvm.ptr<3>
    llvm.return
  }
}
