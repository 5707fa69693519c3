// Rows that are put together from parts of memory are one fetch.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: gpu.func @product(
// CHECK:       tile.fetch %[[K:.*]][%[[I:.*]], %c0, %c2, %c0] parts(2) : memref<9x8x16xf16, {{.*}} to <16x16xf16
// CHECK:       tile.fetch %[[K]][%[[I]], %c0, %c3, %c0] parts(2) rows(%[[N:[^,]*]], %[[N]]) : {{.*}} to <16x16xf16
func.func @product(%q: tensor<9x16x16xf16>, %k: tensor<9x8x16xf16>, %n: index) -> tensor<9x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %pad = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<9x16x16xf32>
  %r = scf.forall (%i) in (9) shared_outs(%o = %e) -> (tensor<9x16x16xf32>) {
    %a = tensor.extract_slice %q[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<9x16x16xf16> to tensor<16x16xf16>
    %k0 = tensor.extract_slice %k[%i, 0, 0] [1, 8, 16] [1, 1, 1] : tensor<9x8x16xf16> to tensor<8x16xf16>
    %k1 = tensor.extract_slice %k[2, 0, 0] [1, 8, 16] [1, 1, 1] : tensor<9x8x16xf16> to tensor<8x16xf16>
    %b = tensor.concat dim(0) %k0, %k1 : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<16x16xf16>
    %k2 = tensor.extract_slice %k[%i, 0, 0] [1, %n, 16] [1, 1, 1] : tensor<9x8x16xf16> to tensor<?x16xf16>
    %k3 = tensor.extract_slice %k[3, 0, 0] [1, %n, 16] [1, 1, 1] : tensor<9x8x16xf16> to tensor<?x16xf16>
    %high = affine.apply affine_map<(d0) -> (8 - d0)>(%n)
    %p2 = tensor.pad %k2 low[0, 0] high[%high, 0] {
    ^bb0(%x: index, %y: index):
      tensor.yield %pad : f16
    } : tensor<?x16xf16> to tensor<8x16xf16>
    %p3 = tensor.pad %k3 low[0, 0] high[%high, 0] {
    ^bb0(%x: index, %y: index):
      tensor.yield %pad : f16
    } : tensor<?x16xf16> to tensor<8x16xf16>
    %c = tensor.concat dim(0) %p2, %p3 : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<16x16xf16>
    %init = tensor.empty() : tensor<16x16xf32>
    %none = linalg.fill ins(%zero : f32) outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
    %first = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%none : tensor<16x16xf32>) -> tensor<16x16xf32>
    %both = linalg.matmul ins(%a, %c : tensor<16x16xf16>, tensor<16x16xf16>) outs(%first : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %both into %o[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf32> into tensor<9x16x16xf32>
    }
  }
  return %r : tensor<9x16x16xf32>
}

// -----

func.func @few(%q: tensor<9x16x16xf16>, %k: tensor<9x4x16xf16>) -> tensor<9x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x16x16xf32>
  %r = scf.forall (%i) in (9) shared_outs(%o = %e) -> (tensor<9x16x16xf32>) {
    %a = tensor.extract_slice %q[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<9x16x16xf16> to tensor<16x16xf16>
    %k0 = tensor.extract_slice %k[%i, 0, 0] [1, 4, 16] [1, 1, 1] : tensor<9x4x16xf16> to tensor<4x16xf16>
    // expected-error @below {{has no translation to a block program: it puts together parts of 4 rows; each has a multiple of 8}}
    %b = tensor.concat dim(0) %k0, %k0, %k0, %k0 : (tensor<4x16xf16>, tensor<4x16xf16>, tensor<4x16xf16>, tensor<4x16xf16>) -> tensor<16x16xf16>
    %init = tensor.empty() : tensor<16x16xf32>
    %none = linalg.fill ins(%zero : f32) outs(%init : tensor<16x16xf32>) -> tensor<16x16xf32>
    %p = linalg.matmul ins(%a, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%none : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %o[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf32> into tensor<9x16x16xf32>
    }
  }
  return %r : tensor<9x16x16xf32>
}

// -----

#swapped = affine_map<(d0, d1) -> (d1, d0)>
#same = affine_map<(d0, d1) -> (d0, d1)>
func.func @swapped(%k: tensor<9x8x16xf32>) -> tensor<9x16x16xf32> {
  %e = tensor.empty() : tensor<9x16x16xf32>
  %r = scf.forall (%i) in (9) shared_outs(%o = %e) -> (tensor<9x16x16xf32>) {
    %k0 = tensor.extract_slice %k[%i, 0, 0] [1, 8, 16] [1, 1, 1] : tensor<9x8x16xf32> to tensor<8x16xf32>
    // expected-error @below {{has no translation to a block program: it puts rows together that products alone take, from rows of multiples of 16 bytes, side by side in memory}}
    %b = tensor.concat dim(0) %k0, %k0 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %init = tensor.empty() : tensor<16x16xf32>
    %s = linalg.generic {indexing_maps = [#swapped, #same], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16x16xf32>) outs(%init : tensor<16x16xf32>) {
    ^bb0(%x: f32, %y: f32):
      %d = arith.addf %x, %x : f32
      linalg.yield %d : f32
    } -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf32> into tensor<9x16x16xf32>
    }
  }
  return %r : tensor<9x16x16xf32>
}
