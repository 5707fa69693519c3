// A tile of 8 bits is fetched as it lies, and dequantized into shared memory where it is first multiplied.
// RUN: flash-opt %s --split-input-file --convert-linalg-to-tile --canonicalize --verify-diagnostics | FileCheck %s

#nt = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
// CHECK-LABEL: gpu.func @product
// CHECK:         %[[A:.*]] = tile.fetch {{.*}} to <16x32xf16, swizzle = 64>
// CHECK:         %[[B:.*]] = tile.fetch {{.*}} : memref<64x32xi8, {{.*}} to <16x32xi8, swizzle = 32>
// CHECK:         %[[FACTOR:.*]] = tile.dequantize %[[B]] : <16x32xi8, swizzle = 32> to <16x32xf16, swizzle = 64> {
// CHECK-NEXT:    ^bb0(%[[ROW:.*]]: index):
// CHECK-NEXT:      %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]] : index
// CHECK-NEXT:      %[[SCALE:.*]] = memref.load %{{.*}}[%[[AT]]] : memref<64xf32
// CHECK-NEXT:      tile.yield %[[SCALE]] : f32
// CHECK:         tile.mma_async %[[A]], %[[FACTOR]] transpose_b
func.func @product(%a: tensor<16x32xf16>, %b: tensor<64x32xi8>, %scales: tensor<64xf32>) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %r = scf.forall (%j) = (0) to (64) step (16) shared_outs(%o = %e) -> tensor<16x64xf32> {
    %t = tensor.extract_slice %b[%j, 0] [16, 32] [1, 1] : tensor<64x32xi8> to tensor<16x32xi8>
    %f = flash.dequantize_tile %t : tensor<16x32xi8> -> tensor<16x32xf16> {
    ^bb0(%row: index):
      %at = arith.addi %j, %row : index
      %s = tensor.extract %scales[%at] : tensor<64xf32>
      flash.yield %s : f32
    }
    %x = tensor.empty() : tensor<16x16xf32>
    %c = linalg.fill ins(%zero : f32) outs(%x : tensor<16x16xf32>) -> tensor<16x16xf32>
    %d = linalg.contract indexing_maps = #nt ins(%a, %f : tensor<16x32xf16>, tensor<16x32xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[0, %j] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x64xf32>
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %r : tensor<16x64xf32>
}

// -----

#nt = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
func.func @columns(%a: tensor<16x24xf16>, %b: tensor<64x24xi8>, %s: f32) -> tensor<16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x64xf32>
  %r = scf.forall (%j) = (0) to (64) step (16) shared_outs(%o = %e) -> tensor<16x64xf32> {
    %t = tensor.extract_slice %b[%j, 0] [16, 24] [1, 1] : tensor<64x24xi8> to tensor<16x24xi8>
    // expected-error @below {{has no translation to a block program: a quantized tile is dequantized from memory: from rows of multiples of 16 bytes, side by side there}}
    %f = flash.dequantize_tile %t : tensor<16x24xi8> -> tensor<16x24xf16> {
    ^bb0(%row: index):
      flash.yield %s : f32
    }
    %x = tensor.empty() : tensor<16x16xf32>
    %c = linalg.fill ins(%zero : f32) outs(%x : tensor<16x16xf32>) -> tensor<16x16xf32>
    %d = linalg.contract indexing_maps = #nt ins(%a, %f : tensor<16x24xf16>, tensor<16x24xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[0, %j] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x64xf32>
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %r : tensor<16x64xf32>
}
