// RUN: flash-opt %s --flash-cpu-expand-math | FileCheck %s

// CHECK-LABEL: func.func @exp2
// CHECK-NOT: math.exp2
// CHECK: arith.cmpf ogt
// CHECK: arith.cmpf olt
// CHECK: %[[POWER:.*]] = arith.bitcast {{.*}} : vector<16xi32> to vector<16xf32>
// CHECK-COUNT-6: math.fma
// CHECK: arith.mulf %{{.*}}, %[[POWER]] : vector<16xf32>
func.func @exp2(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp2 %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @scalars
// CHECK-NOT: math.exp
// CHECK-NOT: math.tanh
// CHECK: arith.divf {{.*}} : f32
func.func @scalars(%x: f32) -> (f32, f32) {
  %y = math.exp %x : f32
  %z = math.tanh %x : f32
  return %y, %z : f32, f32
}

// CHECK-LABEL: func.func @half
// CHECK: arith.extf
// CHECK-NOT: math.exp2
// CHECK: arith.truncf
func.func @half(%x: f16) -> f16 {
  %y = math.exp2 %x : f16
  return %y : f16
}

// Double precision goes to libm later.

// CHECK-LABEL: func.func @double
// CHECK: math.exp2 {{.*}} : vector<8xf64>
func.func @double(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.exp2 %x : vector<8xf64>
  return %y : vector<8xf64>
}

// CHECK-LABEL: func @integer_power(
// CHECK:         %[[N:.*]] = arith.sitofp %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK:         math.powf %{{.*}}, %[[N]]
func.func @integer_power(%x: vector<8xf32>, %n: vector<8xi32>) -> vector<8xf32> {
  %y = math.fpowi %x, %n : vector<8xf32>, vector<8xi32>
  return %y : vector<8xf32>
}

// What neither LLVM nor libm has.

// CHECK-LABEL: func.func @arithmetic(
// CHECK-NOT:     math.{{clampf|isinf|isnormal|ipowi}}
// CHECK:         return
func.func @arithmetic(%x: vector<8xf32>, %n: vector<8xi32>, %i: index) -> (vector<8xf32>, vector<8xi1>, vector<8xi1>, vector<8xi32>, index) {
  %a = math.clampf %x to [%x, %x] : vector<8xf32>
  %b = math.isinf %x : vector<8xf32>
  %c = math.isnormal %x : vector<8xf32>
  %d = math.ipowi %n, %n : vector<8xi32>
  %e = math.ipowi %i, %i : index
  return %a, %b, %c, %d, %e : vector<8xf32>, vector<8xi1>, vector<8xi1>, vector<8xi32>, index
}
