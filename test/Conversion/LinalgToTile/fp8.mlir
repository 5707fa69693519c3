// Products of f8E4M3FN are of warps with roles, and weights in registers are of interleaved values. What is interleaved is stored as it is
// copied from memory.
// RUN: flash-opt %s --split-input-file --convert-linalg-to-tile --canonicalize --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @values
// CHECK:         %[[TILE:.*]] = tile.fetch %{{.*}} rows(%{{.*}}) : memref<2x100x32xf8E4M3FN, {{.*}} to <32x32xf8E4M3FN, swizzle = 32>
// CHECK:         tile.store_interleaved %[[TILE]], %{{.*}}[%{{.*}}, %{{.*}}] : {{.*}} to memref<2x128x32xf8E4M3FN
func.func @values(%v: tensor<2x100x32xf8E4M3FN>) -> tensor<2x128x32xf8E4M3FN> {
  %e = tensor.empty() : tensor<2x128x32xf8E4M3FN>
  %r = scf.forall (%h, %j) = (0, 0) to (2, 100) step (1, 32) shared_outs(%o = %e) -> tensor<2x128x32xf8E4M3FN> {
    %n = affine.min affine_map<(d0) -> (100 - d0, 32)>(%j)
    %pad = affine.apply affine_map<(d0) -> (32 - d0)>(%n)
    %t = tensor.extract_slice %v[%h, %j, 0] [1, %n, 32] [1, 1, 1] : tensor<2x100x32xf8E4M3FN> to tensor<?x32xf8E4M3FN>
    %zero = arith.constant 0.0 : f8E4M3FN
    %p = tensor.pad %t low[0, 0] high[%pad, 0] {
    ^bb0(%i: index, %k: index):
      tensor.yield %zero : f8E4M3FN
    } : tensor<?x32xf8E4M3FN> to tensor<32x32xf8E4M3FN>
    %x = flash.interleave %p : tensor<32x32xf8E4M3FN> -> tensor<32x32xf8E4M3FN>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%h, %j, 0] [1, 32, 32] [1, 1, 1] : tensor<32x32xf8E4M3FN> into tensor<2x128x32xf8E4M3FN>
    }
  } {mapping = [#gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
  return %r : tensor<2x128x32xf8E4M3FN>
}

// -----

#nt = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
// CHECK-LABEL: gpu.func @products
// CHECK:         %[[Q:.*]] = tile.fetch {{.*}} to <64x32xf8E4M3FN
// CHECK:         %[[S:.*]] = tile.mma_async %[[Q]], %{{.*}} transpose_b : !tile.smem<64x32xf8E4M3FN
// CHECK:         %[[P:.*]] = tile.mma_wait %[[S]]
// CHECK:         %[[W:.*]] = arith.truncf %[[P]] : tensor<64x32xf32, #tile.fragment<4>> to tensor<64x32xf8E4M3FN, #tile.fragment<4>>
// CHECK:         tile.mma_async %[[W]], %{{.*}} transpose_b : tensor<64x32xf8E4M3FN, #tile.fragment<4>>
func.func @products(%a: tensor<64x32xf8E4M3FN>, %b: tensor<32x32xf8E4M3FN>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %r = scf.forall (%i) = (0) to (64) step (64) shared_outs(%o = %e) -> tensor<64x32xf32> {
    %q = tensor.extract_slice %a[%i, 0] [64, 32] [1, 1] : tensor<64x32xf8E4M3FN> to tensor<64x32xf8E4M3FN>
    %k = tensor.extract_slice %b[0, 0] [32, 32] [1, 1] : tensor<32x32xf8E4M3FN> to tensor<32x32xf8E4M3FN>
    %x = tensor.empty() : tensor<64x32xf32>
    %c = linalg.fill ins(%zero : f32) outs(%x : tensor<64x32xf32>) -> tensor<64x32xf32>
    %s = linalg.contract indexing_maps = #nt ins(%q, %k : tensor<64x32xf8E4M3FN>, tensor<32x32xf8E4M3FN>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
    %w = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf8E4M3FN>
    %d = linalg.contract indexing_maps = #nt {flash.precision = #flash.precision<fp8>} ins(%w, %k : tensor<64x32xf8E4M3FN>, tensor<32x32xf8E4M3FN>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i, 0] [64, 32] [1, 1] : tensor<64x32xf32> into tensor<64x32xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 4, features = specialize_warps>, mapping = [#gpu.block<linear_dim_0>]}
  return %r : tensor<64x32xf32>
}

// -----

#nt = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
func.func @without_roles(%a: tensor<64x32xf8E4M3FN>, %b: tensor<32x32xf8E4M3FN>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %r = scf.forall (%i) = (0) to (64) step (64) shared_outs(%o = %e) -> tensor<64x32xf32> {
    %x = tensor.empty() : tensor<64x32xf32>
    %c = linalg.fill ins(%zero : f32) outs(%x : tensor<64x32xf32>) -> tensor<64x32xf32>
    // expected-error @below {{a product of f8E4M3FN is computed by warps with roles, over columns of both matrices, which #flash.precision<fp8> interleaves where the first is in registers, and there alone}}
    %d = linalg.contract indexing_maps = #nt ins(%a, %b : tensor<64x32xf8E4M3FN>, tensor<32x32xf8E4M3FN>) outs(%c : tensor<64x32xf32>) -> tensor<64x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %o[%i, 0] [64, 32] [1, 1] : tensor<64x32xf32> into tensor<64x32xf32>
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %r : tensor<64x32xf32>
}

// -----

// Rows of 24 elements are no multiple of 16 bytes.
func.func @columns(%v: tensor<96x24xf8E4M3FN>) -> tensor<72x32xf8E4M3FN> {
  %e = tensor.empty() : tensor<72x32xf8E4M3FN>
  %r = scf.forall (%j) = (0) to (96) step (32) shared_outs(%o = %e) -> tensor<72x32xf8E4M3FN> {
    %t = tensor.extract_slice %v[%j, 0] [32, 24] [1, 1] : tensor<96x24xf8E4M3FN> to tensor<32x24xf8E4M3FN>
    %row = affine.apply affine_map<(d0) -> (d0 floordiv 32 * 24)>(%j)
    // expected-error @below {{a tile is interleaved from memory, where rows of multiples of 16 bytes are side by side, to all of as many rows}}
    %x = flash.interleave %t : tensor<32x24xf8E4M3FN> -> tensor<24x32xf8E4M3FN>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[%row, 0] [24, 32] [1, 1] : tensor<24x32xf8E4M3FN> into tensor<72x32xf8E4M3FN>
    }
  } {mapping = [#gpu.block<linear_dim_0>]}
  return %r : tensor<72x32xf8E4M3FN>
}
