// A step on elements of 8 bits: exponentials up to 2^8, and a product with values whose keys are interleaved.
// RUN: flash-opt %s --flash-decompose=guard-values | FileCheck %s
// RUN: not flash-opt %s --flash-decompose=transpose-scores 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not flash-opt %s --convert-flash-to-scf 2>&1 | FileCheck %s --check-prefix=TENSORS

// CPU: 'flash.online_attention' op multiplies elements of 8 bits, as warpgroups do; use the target sm_90a
// TENSORS: 'flash.interleave' op is of kernels for a GPU; use flash.dequantize, or a target that is a GPU

// CHECK-LABEL: func @step
// CHECK-SAME:    %[[Q:.*]]: tensor<64x32xf8E4M3FN>, %[[K:.*]]: tensor<128x32xf8E4M3FN>, %[[V:.*]]: tensor<64x128xf8E4M3FN>, %[[F:.*]]: f32
// 2 log2(e)
// CHECK:         %[[UNIT:.*]] = arith.constant 2.885390e+00 : f32
// CHECK:         %[[C:.*]] = arith.mulf %[[F]], %[[UNIT]] : f32
// CHECK:         %[[S:.*]] = linalg.contract indexing_maps = {{\[[^{]*\]}} ins(%[[Q]], %[[K]]
// CHECK:         %[[X:.*]] = linalg.generic {{.*}} outs(%[[S]]
// CHECK:           arith.select
// CHECK:         linalg.generic
// CHECK:           arith.maxnumf
// CHECK:         linalg.generic
// CHECK:           math.fma %{{.*}}, %[[C]], %{{.*}} : f32
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} outs(%[[X]]
// CHECK:           math.fma %{{.*}}, %[[C]], %{{.*}} : f32
// CHECK-NEXT:      math.exp2
// CHECK:         %[[W:.*]] = arith.truncf %[[P]] : tensor<64x128xf32> to tensor<64x128xf8E4M3FN>
// CHECK:         linalg.contract {{.*}} {flash.precision = #flash.precision<fp8>} ins(%[[W]], %[[V]]
// CHECK-NOT:     flash.is_finite
func.func @step(%q: tensor<64x32xf8E4M3FN>, %k: tensor<128x32xf8E4M3FN>, %v: tensor<64x128xf8E4M3FN>, %f: f32,
                %a: tensor<64x64xf32>, %m: tensor<64xf32>, %l: tensor<64xf32>) -> tensor<64x64xf32> {
  %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %v : tensor<64x32xf8E4M3FN>, tensor<128x32xf8E4M3FN>, tensor<64x128xf8E4M3FN>)
      outs(%a, %m, %l : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>)
      at[0, 0, 0, 0] of[64, 128] factor(%f) scale(2.0) unit(0.69314718055994529) mask(#flash.causal) precision(fp8)
  return %a1 : tensor<64x64xf32>
}

func.func @values(%v: tensor<16x32xf8E4M3FN>) -> tensor<32x16xf8E4M3FN> {
  %0 = flash.interleave %v : tensor<16x32xf8E4M3FN> -> tensor<32x16xf8E4M3FN>
  return %0 : tensor<32x16xf8E4M3FN>
}
