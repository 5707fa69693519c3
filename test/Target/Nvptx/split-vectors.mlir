// Vectors become scalars, and are put together again for those who use them as
// a whole.
// RUN: flash-translate %s | FileCheck %s

// A loop-carried tile: two sums are all that the loop does with it.
// CHECK-LABEL: .entry loop(
// CHECK: add.rn.ftz.f32
// CHECK-NEXT: add.rn.ftz.f32
// CHECK-NOT: .f32
// CHECK: bra
// CHECK: st.global.v2.b32
llvm.func @loop(%o: !llvm.ptr<1>, %x: f32, %n: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %zero = llvm.mlir.constant(dense<0.0> : vector<2xf32>) : vector<2xf32>
  llvm.br ^body(%c0, %zero : i32, vector<2xf32>)
^body(%i: i32, %tile: vector<2xf32>):
  %undef = llvm.mlir.poison : vector<2xf32>
  %f = llvm.sitofp %i : i32 to f32
  %one = llvm.insertelement %x, %undef[%c0 : i32] : vector<2xf32>
  %both = llvm.insertelement %f, %one[%c1 : i32] : vector<2xf32>
  %sum = llvm.fadd %tile, %both : vector<2xf32>
  %next = llvm.add %i, %c1 : i32
  %more = llvm.icmp "slt" %next, %n : i32
  llvm.cond_br %more, ^body(%next, %sum : i32, vector<2xf32>), ^exit
^exit:
  llvm.store %sum, %o : vector<2xf32>, !llvm.ptr<1>
  llvm.return
}

// The last insertion of an element counts, and what was never inserted comes
// from the vector below.
// CHECK-LABEL: .entry insertions(
// CHECK-DAG: ld.param.b32 [[X:%r[0-9]+]], [insertions_param_1]
// CHECK-DAG: ld.param.b32 [[Y:%r[0-9]+]], [insertions_param_2]
// CHECK-DAG: ld.global.v2.b32 {{{.*}}, [[L:%r[0-9]+]]}
// CHECK: add.rn.ftz.f32 [[S:%r[0-9]+]], [[Y]], [[X]]
// CHECK: add.rn.ftz.f32 [[T:%r[0-9]+]], [[L]], [[L]]
// CHECK: st.global.v2.b32 [{{.*}}], {[[T]], [[S]]}
llvm.func @insertions(%o: !llvm.ptr<1>, %x: f32, %y: f32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %below = llvm.load %o : !llvm.ptr<1> -> vector<2xf32>
  %first = llvm.insertelement %x, %below[%c0 : i32] : vector<2xf32>
  %second = llvm.insertelement %y, %first[%c0 : i32] : vector<2xf32>
  %other = llvm.shufflevector %first, %second [0, 3] : vector<2xf32>
  %sum = llvm.fadd %second, %other : vector<2xf32>
  %swapped = llvm.shufflevector %sum, %sum [1, 0] : vector<2xf32>
  llvm.store %swapped, %o : vector<2xf32>, !llvm.ptr<1>
  llvm.return
}

// An index that only the kernel knows takes no memory.
// CHECK-LABEL: .entry variable(
// CHECK-NOT: .local
// CHECK: selp
// CHECK: ret;
llvm.func @variable(%o: !llvm.ptr<1>, %i: i32) attributes {nvvm.kernel} {
  %below = llvm.load %o : !llvm.ptr<1> -> vector<2xf32>
  %sum = llvm.fadd %below, %below : vector<2xf32>
  %element = llvm.extractelement %sum[%i : i32] : vector<2xf32>
  llvm.store %element, %o : f32, !llvm.ptr<1>
  llvm.return
}

// What is the same for all elements stays: one condition selects both.
// CHECK-LABEL: .entry choice(
// CHECK:     setp.lt.s32 [[C:%p[0-9]+]],
// CHECK-DAG: selp.f32 {{.*}}, [[C]]
// CHECK-DAG: selp.f32 {{.*}}, [[C]]
// CHECK:     ret;
llvm.func @choice(%o: !llvm.ptr<1>, %i: i32) attributes {nvvm.kernel} {
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %below = llvm.load %o : !llvm.ptr<1> -> vector<2xf32>
  %sum = llvm.fadd %below, %below : vector<2xf32>
  %product = llvm.fmul %below, %below : vector<2xf32>
  %isLess = llvm.icmp "slt" %i, %c0 : i32
  %choice = llvm.select %isLess, %sum, %product : i1, vector<2xf32>
  llvm.store %choice, %o : vector<2xf32>, !llvm.ptr<1>
  llvm.return
}
