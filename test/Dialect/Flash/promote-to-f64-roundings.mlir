// A rounding whose mode the program says is part of what it computes.
// RUN: flash-opt %s --flash-promote-to-f64 | FileCheck %s

// CHECK-LABEL: func @dequantized(
// CHECK-SAME:    %[[X:.*]]: f8E4M3FN, %[[S:.*]]: f64) -> f64
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[X]] : f8E4M3FN to f64
// CHECK-NEXT:    %[[PRODUCT:.*]] = arith.mulf %[[WIDE]], %[[S]] : f64
// CHECK-NEXT:    %[[SINGLE:.*]] = arith.truncf %[[PRODUCT]] : f64 to f32
// CHECK-NEXT:    %[[HALF:.*]] = arith.truncf %[[SINGLE]] : f32 to f16
// CHECK-NEXT:    %[[R:.*]] = arith.extf %[[HALF]] : f16 to f64
// CHECK-NEXT:    return %[[R]]
func.func @dequantized(%x: f8E4M3FN, %s: f32) -> f16 {
  %w = arith.extf %x : f8E4M3FN to f32
  %p = arith.mulf %w, %s : f32
  %r = arith.truncf %p to_nearest_even : f32 to f16
  return %r : f16
}
