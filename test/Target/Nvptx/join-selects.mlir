// A float is selected once, by all conditions that must hold.
// RUN: flash-translate %s | FileCheck %s

// Selections in each other, of a conjunction and of what must not hold.
// CHECK-LABEL: .entry chain(
// CHECK-DAG: setp.lt.s32 [[A:%p[0-9]+]], {{%r[0-9]+}}, 8;
// CHECK-DAG: setp.gt.s32 [[B:%p[0-9]+]], {{%r[0-9]+}}, 3;
// CHECK-DAG: setp.ne.b32 [[C:%p[0-9]+]], {{%r[0-9]+}}, 5;
// CHECK-DAG: and.pred [[BA:%p[0-9]+]], [[B]], [[A]];
// CHECK-DAG: and.pred [[ALL:%p[0-9]+]], [[BA]], [[C]];
// CHECK: selp.f32 {{%r[0-9]+}}, {{%r[0-9]+}}, 0fFF800000, [[ALL]];
// CHECK-NOT: selp
// CHECK: ret
llvm.func @chain(%o: !llvm.ptr<1>, %x: f32, %i: i32, %j: i32, %k: i32) attributes {nvvm.kernel} {
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %none = llvm.mlir.constant(0xFF800000 : f32) : f32
  %a = llvm.icmp "slt" %i, %c8 : i32
  %b = llvm.icmp "sgt" %j, %c3 : i32
  %c = llvm.icmp "eq" %k, %c5 : i32
  %both = llvm.and %a, %b : i1
  %inner = llvm.select %both, %x, %none : i1, f32
  %outer = llvm.select %c, %none, %inner : i1, f32
  llvm.store %outer, %o : f32, !llvm.ptr<1>
  llvm.return
}

// What is compared with memory is joined, too, and comes as it stands.
// CHECK-LABEL: .entry memory(
// CHECK-DAG: setp.lt.s32 [[A:%p[0-9]+]], {{%r[0-9]+}}, 8;
// CHECK-DAG: setp.gt.s32 [[B:%p[0-9]+]], {{%r[0-9]+}}, 3;
// CHECK-DAG: ld.global.b32 [[READ:%r[0-9]+]]
// CHECK-DAG: setp.eq.b32 [[C:%p[0-9]+]], {{.*}}[[READ]]
// CHECK-DAG: and.pred [[TWO:%p[0-9]+]], [[A]], [[C]];
// CHECK-DAG: and.pred [[ALL:%p[0-9]+]], [[TWO]], [[B]];
// CHECK: selp.f32 {{%r[0-9]+}}, {{%r[0-9]+}}, 0fFF800000, [[ALL]];
// CHECK-NOT: selp
// CHECK: ret
llvm.func @memory(%o: !llvm.ptr<1>, %ids: !llvm.ptr<1>, %x: f32, %i: i32, %j: i32, %k: i32) attributes {nvvm.kernel} {
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %none = llvm.mlir.constant(0xFF800000 : f32) : f32
  %a = llvm.icmp "slt" %i, %c8 : i32
  %b = llvm.icmp "sgt" %j, %c3 : i32
  %id = llvm.load %ids : !llvm.ptr<1> -> i32
  %c = llvm.icmp "eq" %id, %k : i32
  %inner = llvm.select %a, %x, %none : i1, f32
  %middle = llvm.select %c, %inner, %none : i1, f32
  %outer = llvm.select %b, %middle, %none : i1, f32
  llvm.store %outer, %o : f32, !llvm.ptr<1>
  llvm.return
}

// In gradients, whose elements become 0, -0 among them, it stays by itself and comes last.
// CHECK-LABEL: .entry gradient(
// CHECK-DAG: setp.lt.s32 [[A:%p[0-9]+]], {{%r[0-9]+}}, 8;
// CHECK-DAG: setp.gt.s32 [[B:%p[0-9]+]], {{%r[0-9]+}}, 3;
// CHECK-DAG: ld.global.b32 [[READ:%r[0-9]+]]
// CHECK-DAG: setp.eq.b32 [[C:%p[0-9]+]], {{.*}}[[READ]]
// CHECK-DAG: and.pred [[BOTH:%p[0-9]+]], [[A]], [[B]];
// CHECK-DAG: selp.f32 [[FIRST:%r[0-9]+]], {{%r[0-9]+}}, 0f80000000, [[BOTH]];
// CHECK: selp.f32 {{%r[0-9]+}}, [[FIRST]], 0f80000000, [[C]];
// CHECK: ret
llvm.func @gradient(%o: !llvm.ptr<1>, %ids: !llvm.ptr<1>, %x: f32, %i: i32, %j: i32, %k: i32) attributes {nvvm.kernel} {
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %none = llvm.mlir.constant(-0.0 : f32) : f32
  %a = llvm.icmp "slt" %i, %c8 : i32
  %b = llvm.icmp "sgt" %j, %c3 : i32
  %id = llvm.load %ids : !llvm.ptr<1> -> i32
  %c = llvm.icmp "eq" %id, %k : i32
  %inner = llvm.select %a, %x, %none : i1, f32
  %middle = llvm.select %c, %inner, %none : i1, f32
  %outer = llvm.select %b, %middle, %none : i1, f32
  llvm.store %outer, %o : f32, !llvm.ptr<1>
  llvm.return
}

// What somebody else uses stays, and so does what has another value otherwise.
// CHECK-LABEL: .entry others(
// CHECK-NOT: and.pred
// CHECK: selp.f32 [[INNER:%r[0-9]+]], {{%r[0-9]+}}, 0fFF800000,
// CHECK: selp.f32 [[OUTER:%r[0-9]+]], [[INNER]], 0fFF800000,
// CHECK: selp.f32 {{%r[0-9]+}}, [[OUTER]], 0f00000000,
// CHECK-NOT: and.pred
// CHECK: ret
llvm.func @others(%o: !llvm.ptr<1>, %x: f32, %i: i32, %j: i32, %k: i32) attributes {nvvm.kernel} {
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %none = llvm.mlir.constant(0xFF800000 : f32) : f32
  %a = llvm.icmp "slt" %i, %c8 : i32
  %c = llvm.icmp "sgt" %j, %c5 : i32
  %d = llvm.icmp "slt" %k, %c3 : i32
  %inner = llvm.select %a, %x, %none : i1, f32
  %second = llvm.getelementptr %o[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
  llvm.store %inner, %second : f32, !llvm.ptr<1>
  %outer = llvm.select %c, %inner, %none : i1, f32
  %last = llvm.select %d, %outer, %zero : i1, f32
  llvm.store %last, %o : f32, !llvm.ptr<1>
  llvm.return
}
