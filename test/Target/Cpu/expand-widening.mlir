// LLVM has no type of f8E4M3FN: its elements are computed from their bits. A mode of rounding that is the one there is is dropped.
// RUN: flash-opt %s --flash-cpu-expand-math | FileCheck %s --implicit-check-not=arith.extf

// CHECK-LABEL: func @vector(
// CHECK-SAME:    %[[X:.*]]: vector<8xf8E4M3FN>
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : vector<8xf8E4M3FN> to vector<8xi8>
// CHECK:         arith.extui %[[BITS]] : vector<8xi8> to vector<8xi32>
// CHECK:         arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK:         arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
func.func @vector(%x: vector<8xf8E4M3FN>) -> vector<8xf16> {
  %w = arith.extf %x : vector<8xf8E4M3FN> to vector<8xf32>
  %r = arith.truncf %w to_nearest_even : vector<8xf32> to vector<8xf16>
  return %r : vector<8xf16>
}

// CHECK-LABEL: func @scalar(
// CHECK:         %[[F32:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK:         arith.truncf %[[F32]] : f32 to f16
func.func @scalar(%x: f8E4M3FN) -> f16 {
  %w = arith.extf %x : f8E4M3FN to f16
  return %w : f16
}

// What is rounded to them is computed to their bits, too.
// CHECK-LABEL: func @round(
// CHECK-SAME:    %[[X:.*]]: vector<8xf32>
// CHECK:         arith.bitcast %[[X]] : vector<8xf32> to vector<8xi32>
// CHECK:         %[[BITS:.*]] = arith.trunci %{{.*}} : vector<8xi32> to vector<8xi8>
// CHECK:         arith.bitcast %[[BITS]] : vector<8xi8> to vector<8xf8E4M3FN>
// CHECK-NOT:     arith.truncf
func.func @round(%x: vector<8xf32>) -> vector<8xf8E4M3FN> {
  %r = arith.truncf %x : vector<8xf32> to vector<8xf8E4M3FN>
  return %r : vector<8xf8E4M3FN>
}
