// Numbers of bf16 are compared in f32: ptxas has no setp.ftz.bf16. They become
// such of f32 by moves of bits, which cvt.ftz.f32.bf16 is not for ptxas.
// RUN: flash-translate %s --chip=sm_90a | FileCheck %s

// CHECK-LABEL: .entry compare(
// CHECK-NOT: setp{{.*}}.bf16
// CHECK: setp.{{[a-z]*}}.ftz.f32
// CHECK-NOT: setp{{.*}}.bf16
// CHECK: ret
llvm.func @compare(%o: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %pair = llvm.load %o : !llvm.ptr<1> -> vector<2xbf16>
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %x = llvm.extractelement %pair[%c0 : i32] : vector<2xbf16>
  %y = llvm.extractelement %pair[%c1 : i32] : vector<2xbf16>
  %xw = llvm.fpext %x : bf16 to f32
  %yw = llvm.fpext %y : bf16 to f32
  %c = llvm.fcmp "ogt" %xw, %yw : f32
  %r = llvm.select %c, %c0, %c1 : i1, i32
  llvm.store %r, %o : i32, !llvm.ptr<1>
  llvm.return
}

// CHECK-LABEL: .entry extend(
// CHECK-NOT: cvt
// CHECK: shl.b32 {{.*}}, 16;
// CHECK-NOT: cvt
// CHECK: ret
llvm.func @extend(%o: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %x = llvm.load %o : !llvm.ptr<1> -> bf16
  %xw = llvm.fpext %x : bf16 to f32
  llvm.store %xw, %o : f32, !llvm.ptr<1>
  llvm.return
}

// CHECK-LABEL: .entry extend_pair(
// CHECK-NOT: cvt
// CHECK-DAG: shl.b32 {{.*}}, 16;
// CHECK-DAG: and.b32 {{.*}}, -65536;
// CHECK-NOT: cvt
// CHECK: ret
llvm.func @extend_pair(%o: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %pair = llvm.load %o : !llvm.ptr<1> -> vector<2xbf16>
  %w = llvm.fpext %pair : vector<2xbf16> to vector<2xf32>
  llvm.store %w, %o : vector<2xf32>, !llvm.ptr<1>
  llvm.return
}
