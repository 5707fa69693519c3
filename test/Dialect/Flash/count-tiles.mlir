// RUN: flash-opt %s --flash-count-tiles | FileCheck %s

// CHECK-LABEL: func @steps(
// CHECK:         %[[FULL:.*]] = llvm.mlir.constant(false) : i1
// CHECK-NEXT:    llvm.call @flash_count_tile(%[[FULL]])
// CHECK-NEXT:    flash.online_attention
// CHECK:         %[[PARTIAL:.*]] = llvm.mlir.constant(true) : i1
// CHECK-NEXT:    llvm.call @flash_count_tile(%[[PARTIAL]])
// CHECK-NEXT:    flash.online_attention
func.func @steps(%q: tensor<16x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>) -> tensor<16x8xf32> {
  %s:3 = flash.online_attention ins(%q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5)
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      outs(%s#0, %s#1, %s#2 : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 16] of[16, 32] scale(0.5)
      mask(#flash.causal)
  return %a : tensor<16x8xf32>
}

// CHECK-LABEL: func @masked_by_region(
// CHECK:         %[[PARTIAL:.*]] = llvm.mlir.constant(true) : i1
// CHECK-NEXT:    llvm.call @flash_count_tile(%[[PARTIAL]])
func.func @masked_by_region(%q: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>) -> tensor<16x8xf32> {
  %s:3 = flash.online_attention ins(%q, %q, %q : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>)
      outs(%q, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi ne, %i, %j : index
    flash.yield %x keep %keep : f32
  }
  return %s#0 : tensor<16x8xf32>
}
