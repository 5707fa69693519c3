// RUN: flash-opt %s --flash-gpu-expand-math --split-input-file --verify-diagnostics | FileCheck %s

// What has an instruction stays.

// CHECK-LABEL: func.func @instructions
// CHECK-NEXT: math.exp2
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: math.roundeven
// CHECK-NEXT: math.fma {{.*}} : bf16
// CHECK-NEXT: math.ctlz
func.func @instructions(%x: vector<4xf32>, %h: bf16, %n: i32) -> (vector<4xf32>, bf16, i32) {
  %a = math.exp2 %x : vector<4xf32>
  %b = math.sqrt %a : vector<4xf32>
  %c = math.roundeven %b : vector<4xf32>
  %d = math.fma %h, %h, %h : bf16
  %e = math.ctlz %n : i32
  return %c, %d, %e : vector<4xf32>, bf16, i32
}

// In f32, or in f64. tanh is one quotient between bounds.

// CHECK-LABEL: func.func @vectors
// CHECK-NOT: math.tanh
// CHECK: arith.minimumf {{.*}} : vector<4xf32>
// CHECK: arith.maximumf {{.*}} : vector<4xf32>
// CHECK-NOT: math.exp2
// CHECK: arith.divf {{.*}} fastmath<afn> : vector<4xf32>
// CHECK: arith.extf {{.*}} : vector<4xf32> to vector<4xf64>
// CHECK-NOT: math.log
// CHECK: arith.truncf {{.*}} : vector<4xf64> to vector<4xf32>
func.func @vectors(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.tanh %x : vector<4xf32>
  %z = math.log %y : vector<4xf32>
  return %z : vector<4xf32>
}

// CHECK-LABEL: func.func @half
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: math.exp2 %[[WIDE]] : f32
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK-NOT: math.fpowi
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @half(%x: f16, %n: i32) -> (f16, f16) {
  %y = math.exp2 %x : f16
  %z = math.fpowi %x, %n : f16, i32
  return %y, %z : f16, f16
}

// CHECK-LABEL: func.func @remainder
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.extf %{{.*}} : f32 to f64
// CHECK-NOT: arith.remf
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @remainder(%x: bf16) -> bf16 {
  %y = arith.remf %x, %x : bf16
  return %y : bf16
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: math.{{sin|cos|ipowi|fpowi}}
// CHECK: return
func.func @others(%x: f32, %n: index, %m: i8) -> (f32, f32, f32, index, i8) {
  %s, %c = math.sincos %x : f32
  %p = math.fpowi %x, %n : f32, index
  %i = math.ipowi %n, %n : index
  %j = math.ipowi %m, %m : i8
  return %s, %c, %p, %i, %j : f32, f32, f32, index, i8
}

// -----

func.func @double(%x: f64) -> f64 {
  // expected-error @below {{'math.exp2' op has no code for a GPU on 'f64'; compute it in f32}}
  %y = math.exp2 %x : f64
  return %y : f64
}

// -----

func.func @narrow(%x: f8E5M2) -> f8E5M2 {
  // expected-error @below {{'math.absf' op has no code for a GPU on 'f8E5M2'; compute it in f32}}
  %y = math.absf %x : f8E5M2
  return %y : f8E5M2
}
