// Rows that lie along two dimensions of memory: slices that are transposed and
// collapsed, results that are expanded and transposed.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// The kernel sees queries before heads, and row r at query i + r / 3 and head
// h + r mod 3. A value for each row need not be next to the one before.

// CHECK-LABEL: func @heads(
// CHECK:       memref.transpose %{{.*}} (d0, d1, d2) -> (d1, d0, d2) : memref<12x50x16xf16
// CHECK:       memref.transpose %{{.*}} (d0, d1, d2) -> (d1, d0, d2) : memref<12x50x16xf16
// CHECK:       memref.transpose %{{.*}} (d0, d1) -> (d1, d0) : memref<12x50xf32

// CHECK-LABEL: gpu.func @heads(
// CHECK-SAME:  %[[IN:[^,: ]*]]: memref<50x12x16xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME:  %[[OUT:[^,: ]*]]: memref<50x12x16xf16, strided<[?, ?, 1], offset: ?>>
// CHECK-SAME:  %[[LSE:[^,: ]*]]: memref<50x12xf32, strided<[?, ?], offset: ?>>
// CHECK:       %[[AT:.*]]:2 = tile.position
// CHECK:       %[[H:.*]] = arith.muli %[[AT]]#0, %c3
// CHECK:       %[[I:.*]] = arith.muli %[[AT]]#1, %c5
// CHECK:       %[[N:.*]] = affine.min {{.*}}[%[[I]]]
// CHECK:       %[[ROWS:.*]] = affine.apply {{.*}}[%[[N]]]
// CHECK:       tile.fetch %[[IN]][%[[I]], %[[H]]] packed(3) rows(%[[ROWS]]) : {{.*}} to <16x16xf16
// CHECK-DAG:   tile.store %{{.*}}, %[[OUT]][%[[I]], %[[H]]] packed(3) rows(%[[ROWS]]) : tensor<16x16xf16, #tile.fragment<1>>
// CHECK-DAG:   tile.store %{{.*}}, %[[LSE]][%[[I]], %[[H]]] packed(3) rows(%[[ROWS]]) : tensor<16xf32, #tile.rows<1>>
func.func @heads(%q: tensor<12x50x16xf16>) -> (tensor<12x50x16xf16>, tensor<12x50xf32>) {
  %e = tensor.empty() : tensor<12x50x16xf16>
  %el = tensor.empty() : tensor<12x50xf32>
  %zero = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f32
  %r:2 = scf.forall (%h, %i) = (0, 0) to (12, 50) step (3, 5) shared_outs(%o = %e, %l = %el) -> (tensor<12x50x16xf16>, tensor<12x50xf32>) {
    %n = affine.min affine_map<(d0) -> (50 - d0, 5)>(%i)
    %high = affine.apply affine_map<(d0) -> (16 - d0 * 3)>(%n)
    %m = affine.apply affine_map<(d0) -> (d0 * 3)>(%n)
    %heads = tensor.extract_slice %q[%h, %i, 0] [3, %n, 16] [1, 1, 1] : tensor<12x50x16xf16> to tensor<3x?x16xf16>
    %t = tensor.empty(%n) : tensor<?x3x16xf16>
    %queries = linalg.transpose ins(%heads : tensor<3x?x16xf16>) outs(%t : tensor<?x3x16xf16>) permutation = [1, 0, 2]
    %rows = tensor.collapse_shape %queries [[0, 1], [2]] : tensor<?x3x16xf16> into tensor<?x16xf16>
    %tile = tensor.pad %rows low[0, 0] high[%high, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f16
    } : tensor<?x16xf16> to tensor<16x16xf16>
    %x = arith.addf %tile, %tile : tensor<16x16xf16>
    %y = tensor.empty() : tensor<16xf32>
    %v = linalg.fill ins(%one : f32) outs(%y : tensor<16xf32>) -> tensor<16xf32>
    %part = tensor.extract_slice %x[0, 0] [%m, 16] [1, 1] : tensor<16x16xf16> to tensor<?x16xf16>
    %apart = tensor.expand_shape %part [[0, 1], [2]] output_shape [%n, 3, 16] : tensor<?x16xf16> into tensor<?x3x16xf16>
    %u = tensor.empty(%n) : tensor<3x?x16xf16>
    %back = linalg.transpose ins(%apart : tensor<?x3x16xf16>) outs(%u : tensor<3x?x16xf16>) permutation = [1, 0, 2]
    %partl = tensor.extract_slice %v[0] [%m] [1] : tensor<16xf32> to tensor<?xf32>
    %apartl = tensor.expand_shape %partl [[0, 1]] output_shape [%n, 3] : tensor<?xf32> into tensor<?x3xf32>
    %ul = tensor.empty(%n) : tensor<3x?xf32>
    %backl = linalg.transpose ins(%apartl : tensor<?x3xf32>) outs(%ul : tensor<3x?xf32>) permutation = [1, 0]
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %back into %o[%h, %i, 0] [3, %n, 16] [1, 1, 1] : tensor<3x?x16xf16> into tensor<12x50x16xf16>
      tensor.parallel_insert_slice %backl into %l[%h, %i] [3, %n] [1, 1] : tensor<3x?xf32> into tensor<12x50xf32>
    }
  }
  return %r#0, %r#1 : tensor<12x50x16xf16>, tensor<12x50xf32>
}

// -----

// What copies cannot make is read element by element, at the same addresses.

// CHECK-LABEL: gpu.func @every_other(
// CHECK:       tile.map
// CHECK:       ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK:         %[[QUERY:.*]] = arith.divui %[[R]], %c4
// CHECK:         %[[HEAD:.*]] = arith.remui %[[R]], %c4
// CHECK:         %[[APART:.*]] = arith.muli %[[HEAD]], %c2
// CHECK:         memref.load %{{.*}}[%[[APART]], %[[QUERY]], %[[C]]]
func.func @every_other(%q: tensor<8x4x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %heads = tensor.extract_slice %q[0, 0, 0] [4, 4, 16] [2, 1, 1] : tensor<8x4x16xf32> to tensor<4x4x16xf32>
    %t = tensor.empty() : tensor<4x4x16xf32>
    %queries = linalg.transpose ins(%heads : tensor<4x4x16xf32>) outs(%t : tensor<4x4x16xf32>) permutation = [1, 0, 2]
    %tile = tensor.collapse_shape %queries [[0, 1], [2]] : tensor<4x4x16xf32> into tensor<16x16xf32>
    %x = arith.addf %tile, %tile : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @three_dimensions(%q: tensor<2x4x2x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{has no translation to a block program: rows lie along one dimension of memory or two, the second of known size}}
    %tile = tensor.collapse_shape %q [[0, 1, 2], [3]] : tensor<2x4x2x16xf32> into tensor<16x16xf32>
    %x = arith.addf %tile, %tile : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @part(%q: tensor<8x4x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %rows = tensor.collapse_shape %q [[0, 1], [2]] : tensor<8x4x16xf32> into tensor<32x16xf32>
    // expected-error @below {{it takes part of rows along two dimensions of memory; take the part before they are put together}}
    %tile = tensor.extract_slice %rows[8, 0] [16, 16] [1, 1] : tensor<32x16xf32> to tensor<16x16xf32>
    %x = arith.addf %tile, %tile : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// -----

func.func @padded(%q: tensor<7x4x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<32x16xf32>
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %whole = tensor.pad %q low[0, 0, 0] high[1, 0, 0] {
    ^bb0(%a: index, %b: index, %c: index):
      tensor.yield %zero : f32
    } : tensor<7x4x16xf32> to tensor<8x4x16xf32>
    // expected-error @below {{it puts dimensions of a padded tile together; pad the rows}}
    %tile = tensor.collapse_shape %whole [[0, 1], [2]] : tensor<8x4x16xf32> into tensor<32x16xf32>
    %x = arith.addf %tile, %tile : tensor<32x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, 0] [32, 16] [1, 1] : tensor<32x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}

// -----

func.func @apart(%q: tensor<64x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    // expected-error @below {{it takes dimensions of memory apart; do so before the loop}}
    %apart = tensor.expand_shape %q [[0, 1], [2]] output_shape [4, 16, 16] : tensor<64x16xf32> into tensor<4x16x16xf32>
    %tile = tensor.extract_slice %apart[1, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<4x16x16xf32> to tensor<16x16xf32>
    %x = arith.addf %tile, %tile : tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}
