// Tiles of memory that copies cannot make are read element by element: a map
// of nothing but positions.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

!m = tensor<16x16xf32>

// Vectors, from where they start. What does not exist is not read.

// CHECK-LABEL: gpu.func @vector(
// CHECK-SAME:  %[[M:[^,: ]*]]: memref<100xf32
// CHECK:       %[[I:.*]] = arith.muli
// CHECK:       %[[SIZE:.*]] = affine.min
// CHECK:       %[[V:.*]] = tile.map : () -> tensor<16xf32, #tile.rows<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index):
// CHECK-NEXT:    %[[EXISTS:.*]] = arith.cmpi ult, %[[R]], %[[SIZE]]
// CHECK-NEXT:    %[[AT:.*]] = arith.addi %[[I]], %[[R]]
// CHECK-NEXT:    %[[E:.*]] = scf.if %[[EXISTS]] -> (f32) {
// CHECK-NEXT:      %[[X:.*]] = memref.load %[[M]][%[[AT]]]
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[ONE:.*]] :
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.yield %[[E]]
// CHECK:       math.exp2 %[[V]]
func.func @vector(%v: tensor<100xf32>) -> tensor<100xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<100xf32>
  %r = scf.forall (%i) = (0) to (100) step (16) shared_outs(%o = %e) -> (tensor<100xf32>) {
    %size = affine.min affine_map<(i) -> (100 - i, 16)>(%i)
    %high = affine.apply affine_map<(n) -> (16 - n)>(%size)
    %0 = tensor.extract_slice %v[%i] [%size] [1] : tensor<100xf32> to tensor<?xf32>
    %1 = tensor.pad %0 low[0] high[%high] {
    ^bb0(%a: index):
      tensor.yield %one : f32
    } : tensor<?xf32> to tensor<16xf32>
    %2 = math.exp2 %1 : tensor<16xf32>
    %3 = tensor.extract_slice %2[0] [%size] [1] : tensor<16xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[%i] [%size] [1] : tensor<?xf32> into tensor<100xf32>
    }
  }
  return %r : tensor<100xf32>
}

// Every third row and second column, of a slice of a slice.

// CHECK-LABEL: gpu.func @strides(
// CHECK:       tile.map : () -> tensor<16x16xf32, #tile.fragment<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-NEXT:    %[[ROW:.*]] = arith.muli %[[R]], %c3
// CHECK-NEXT:    %[[AT:.*]] = arith.addi %[[ROW]], %c5
// CHECK-NEXT:    %[[COLUMN:.*]] = arith.muli %[[C]], %c2
// CHECK-NEXT:    %[[COLUMNAT:.*]] = arith.addi %[[COLUMN]], %c4
// CHECK-NEXT:    memref.load %arg0[%[[AT]], %[[COLUMNAT]]]
func.func @strides(%x: tensor<64x64xf32>) -> !m {
  %e = tensor.empty() : !m
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (!m) {
    %0 = tensor.extract_slice %x[5, 0] [50, 32] [1, 2] : tensor<64x64xf32> to tensor<50x32xf32>
    %1 = tensor.extract_slice %0[0, 2] [16, 16] [3, 1] : tensor<50x32xf32> to !m
    %2 = arith.addf %1, %1 : !m
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : !m into !m
    }
  }
  return %r : !m
}

// Padded in front and behind, in rows and columns, with a number. f16 are read
// as f32, and are f16 again.

// CHECK-LABEL: gpu.func @padded(
// CHECK:       %[[X:.*]] = tile.map : () -> tensor<16x16xf32, #tile.fragment<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-NEXT:    %[[ROW:.*]] = arith.subi %[[R]], %c2
// CHECK-NEXT:    %[[HASROW:.*]] = arith.cmpi ult, %[[ROW]], %c12
// CHECK-NEXT:    %[[HASCOLUMN:.*]] = arith.cmpi ult, %[[C]], %c10
// CHECK-NEXT:    %[[EXISTS:.*]] = arith.andi %[[HASROW]], %[[HASCOLUMN]]
// CHECK-NEXT:    scf.if %[[EXISTS]]
// CHECK-NEXT:      %[[E:.*]] = memref.load %{{.*}}[%[[ROW]], %[[C]]]
// CHECK-NEXT:      arith.extf %[[E]] : f16 to f32
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[SEVEN:.*]] :
// CHECK:       arith.truncf %[[X]] : {{.*}} to tensor<16x16xf16, #tile.fragment<1>>
func.func @padded(%x: tensor<12x10xf16>) -> tensor<16x16xf16> {
  %seven = arith.constant 7.0 : f16
  %e = tensor.empty() : tensor<16x16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf16>) {
    %0 = tensor.pad %x low[2, 0] high[2, 6] {
    ^bb0(%a: index, %b: index):
      tensor.yield %seven : f16
    } : tensor<12x10xf16> to tensor<16x16xf16>
    %1 = arith.addf %0, %0 : tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x16xf16>
    }
  }
  return %r : tensor<16x16xf16>
}

// Across what it meets, and along dimensions whose elements are no neighbours.

// CHECK-LABEL: gpu.func @across(
// CHECK:       tile.map : () -> tensor<16x32xf32, #tile.fragment<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-NEXT:    memref.load %arg0[%[[C]], %[[R]]]
// CHECK:       tile.map : () -> tensor<16x32xf32, #tile.fragment<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-NEXT:    memref.load %arg1[%[[R]], %[[C]], %c3]
func.func @across(%x: tensor<32x16xf32>, %y: tensor<16x32x4xf32>) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %ys = tensor.extract_slice %y[0, 0, 3] [16, 32, 1] [1, 1, 1] : tensor<16x32x4xf32> to tensor<16x32xf32>
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%x, %ys : tensor<32x16xf32>, tensor<16x32xf32>) outs(%0 : tensor<16x32xf32>) {
    ^bb0(%a: f32, %b: f32, %unused: f32):
      %2 = arith.subf %a, %b : f32
      linalg.yield %2 : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// A second operand of a product that is computed, or read like this, goes through
// shared memory; a first one that lies across is read the right way round.

// CHECK-LABEL: gpu.func @products(
// CHECK:       %[[B:.*]] = arith.addf %{{.*}} : tensor<32x16xf32, #tile.fragment<1>>
// CHECK:       %[[A:.*]] = tile.map : () -> tensor<16x32xf32, #tile.fragment<1>> {
// CHECK-NEXT:  ^bb0(%[[R:.*]]: index, %[[C:.*]]: index):
// CHECK-NEXT:    memref.load %arg0[%[[C]], %[[R]]]
// CHECK:       %[[SHARED:.*]] = tile.share %[[B]] : {{.*}} to <32x16xf32
// CHECK:       tile.mma_async %[[A]], %[[SHARED]] :
func.func @products(%x: tensor<32x16xf32>) -> !m {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !m
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (!m) {
    %y = arith.addf %x, %x : tensor<32x16xf32>
    %0 = tensor.empty() : !m
    %1 = linalg.fill ins(%zero : f32) outs(%0 : !m) -> !m
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %y : tensor<32x16xf32>, tensor<32x16xf32>) outs(%1 : !m) -> !m
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 16] [1, 1] : !m into !m
    }
  }
  return %r : !m
}

// What an output starts from is nothing where blocks write all of it.

// CHECK-LABEL: gpu.func @overwritten(
// CHECK-SAME:  %{{[^,]*}}: memref<100x16xf32, strided<[?, 1], offset: ?>>, %[[OUT:[^,]*]]: memref<100x16xf32, strided<[?, 1], offset: ?>>) kernel
// CHECK:       tile.store %{{.*}}, %[[OUT]][%{{.*}}] rows(
func.func @overwritten(%x: tensor<100x16xf32>, %start: tensor<100x16xf32>) -> tensor<100x16xf32> {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) = (0) to (100) step (16) shared_outs(%o = %start) -> (tensor<100x16xf32>) {
    %size = affine.min affine_map<(i) -> (100 - i, 16)>(%i)
    %high = affine.apply affine_map<(n) -> (16 - n)>(%size)
    %0 = tensor.extract_slice %x[%i, 0] [%size, 16] [1, 1] : tensor<100x16xf32> to tensor<?x16xf32>
    %1 = tensor.pad %0 low[0, 0] high[%high, 0] {
    ^bb0(%a: index, %b: index):
      tensor.yield %zero : f32
    } : tensor<?x16xf32> to !m
    %2 = arith.addf %1, %1 : !m
    %3 = tensor.extract_slice %2[0, 0] [%size, 16] [1, 1] : !m to tensor<?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[%i, 0] [%size, 16] [1, 1] : tensor<?x16xf32> into tensor<100x16xf32>
    }
  }
  return %r : tensor<100x16xf32>
}
