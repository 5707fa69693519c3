// Products of tiles: of two slices, of one that is computed, sums that start
// from values, sums of terms other than products.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#transposed = affine_map<(m, n, k) -> (n, k)>
#result = affine_map<(m, n, k) -> (m, n)>

// The second operand lies as it is read, or with its columns as rows. What a sum
// starts from is left out where it is zero.

// CHECK-LABEL: gpu.func @two(
// CHECK-DAG:   %[[A:.*]] = tile.fetch {{.*}} to <32x16xf16, swizzle = 32>
// CHECK-DAG:   %[[B:.*]] = tile.fetch {{.*}} to <16x64xf16, swizzle = 128>
// CHECK-DAG:   %[[C:.*]] = tile.fetch {{.*}} to <64x16xf16, swizzle = 32>
// CHECK:       %[[ABP:.*]] = tile.mma_async %[[A]], %[[B]] : {{.*}} -> <tensor<32x64xf32, #tile.fragment<2>>>
// CHECK:       %[[AB:.*]] = tile.mma_wait %[[ABP]]
// CHECK:       %[[SUMP:.*]] = tile.mma_async %[[A]], %[[C]] add %[[AB]] transpose_b :
// CHECK:       %[[SUM:.*]] = tile.mma_wait %[[SUMP]]
// CHECK:       tile.store %[[SUM]]
func.func @two(%a: tensor<128x16xf16>, %b: tensor<16x64xf16>, %c: tensor<64x16xf16>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x64xf32>
  %r = scf.forall (%i) = (0) to (128) step (32) shared_outs(%o = %e) -> (tensor<128x64xf32>) {
    %ai = tensor.extract_slice %a[%i, 0] [32, 16] [1, 1] : tensor<128x16xf16> to tensor<32x16xf16>
    %0 = tensor.empty() : tensor<32x64xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<32x64xf32>) -> tensor<32x64xf32>
    %ab = linalg.matmul ins(%ai, %b : tensor<32x16xf16>, tensor<16x64xf16>) outs(%1 : tensor<32x64xf32>) -> tensor<32x64xf32>
    %sum = linalg.contract indexing_maps = [#rows, #transposed, #result]
        ins(%ai, %c : tensor<32x16xf16>, tensor<64x16xf16>) outs(%ab : tensor<32x64xf32>) -> tensor<32x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sum into %o[%i, 0] [32, 64] [1, 1] : tensor<32x64xf32> into tensor<128x64xf32>
    }
  }
  return %r : tensor<128x64xf32>
}

// The first operand may be computed. A sum that starts from another value than
// zero starts from a tile of it.

// CHECK-LABEL: gpu.func @computed(
// CHECK:       %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<16x8xf32, #tile.fragment<1>>
// CHECK:       %[[S:.*]] = tile.mma_wait
// CHECK:       %[[P:.*]] = arith.truncf %[[S]] : {{.*}} to tensor<16x16xbf16, #tile.fragment<1>>
// CHECK:       tile.mma_async %[[P]], %{{.*}} add %[[ONES]] : tensor<16x16xbf16, #tile.fragment<1>>, <16x8xbf16,
func.func @computed(%a: tensor<16x8xbf16>, %b: tensor<16x8xbf16>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x8xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %s = linalg.contract indexing_maps = [#rows, #transposed, #result]
        ins(%a, %b : tensor<16x8xbf16>, tensor<16x8xbf16>) outs(%1 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %p = arith.truncf %s : tensor<16x16xf32> to tensor<16x16xbf16>
    %2 = tensor.empty() : tensor<16x8xf32>
    %3 = linalg.fill ins(%one : f32) outs(%2 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %pb = linalg.matmul ins(%p, %b : tensor<16x16xbf16>, tensor<16x8xbf16>) outs(%3 : tensor<16x8xf32>) -> tensor<16x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %pb into %o[0, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x8xf32>
    }
  }
  return %r : tensor<16x8xf32>
}

// Products of f32 are of tf32 where the program says so.

// CHECK-LABEL: gpu.func @precision(
// CHECK:       tile.mma_async %{{.*}}, %{{.*}} tf32 :
// CHECK:       tile.mma_async %{{.*}}, %{{.*}} add %{{[^ ]*}} :
func.func @precision(%a: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = linalg.contract indexing_maps = [#rows, #columns, #result] {flash.precision = #flash.precision<tf32>}
        ins(%a, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%1 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %3 = linalg.contract indexing_maps = [#rows, #columns, #result]
        ins(%a, %a : tensor<16x16xf32>, tensor<16x16xf32>) outs(%2 : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %3 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}

// Of the two inputs the one that has the rows of the result is the first, in
// whatever order they stand.

// CHECK-LABEL: gpu.func @swapped(
// CHECK-DAG:   %[[A:.*]] = tile.fetch {{.*}} to <16x16xf16, swizzle = 32>
// CHECK-DAG:   %[[B:.*]] = tile.fetch {{.*}} to <16x32xf16, swizzle = 64>
// CHECK:       tile.mma_async %[[A]], %[[B]] :
func.func @swapped(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = linalg.contract indexing_maps = [#columns, #rows, #result]
        ins(%b, %a : tensor<16x32xf16>, tensor<16x16xf16>) outs(%1 : tensor<16x32xf32>) -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// A sum of other terms is a loop over the inner dimension: a column of the one
// and a row of the other, and where these are.

// CHECK-LABEL: gpu.func @terms(
// CHECK:       %[[B:.*]] = tile.fetch %arg1
// CHECK:       %[[A:.*]] = tile.load %{{.*}} to tensor<16x8xf32, #tile.fragment<1>>
// CHECK:       %[[SUM:.*]] = scf.for %[[K:.*]] = %c0 to %c8 step %c1 iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (tensor<16x32xf32, #tile.fragment<1>>)
// CHECK:         %[[COLUMN:.*]] = tile.column %[[A]][%[[K]]] : {{.*}} to tensor<16xf32, #tile.rows<1>>
// CHECK:         %[[ROW:.*]] = tile.load_row %[[B]][%[[K]]] : {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK:         %[[COLUMNS:.*]] = tile.broadcast %[[COLUMN]]
// CHECK:         %[[NEXT:.*]] = tile.map %[[COLUMNS]], %[[ROW]], %[[SO_FAR]] :
// CHECK-NEXT:    ^bb0(%[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32, %[[Z:[^:]*]]: f32, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK:           %[[D:.*]] = arith.subi %[[I]], %[[K]]
// CHECK:           arith.cmpi sge, %[[D]], %[[J]]
// CHECK:           arith.select
// CHECK:           tile.yield
// CHECK:         scf.yield %[[NEXT]]
// CHECK:       tile.store %[[SUM]]
func.func @terms(%a: tensor<16x8xf32>, %b: tensor<8x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<16x8xf32>, tensor<8x32xf32>) outs(%1 : tensor<16x32xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %m = linalg.index 0 : index
      %n = linalg.index 1 : index
      %k = linalg.index 2 : index
      %d = arith.subi %m, %k : index
      %takes_part = arith.cmpi sge, %d, %n : index
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      %t = arith.select %takes_part, %s, %z : f32
      linalg.yield %t : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// Terms without positions are arithmetic on tiles.

// CHECK-LABEL: gpu.func @maximum(
// CHECK:       %[[A:.*]] = tile.load
// CHECK:       scf.for %[[K:.*]] = %c0 to %c8
// CHECK:         tile.column
// CHECK:         %[[ROW:.*]] = tile.load_row
// CHECK:         %[[COLUMNS:.*]] = tile.broadcast
// CHECK:         %[[TERM:.*]] = arith.addf %[[COLUMNS]], %[[ROW]]
// CHECK:         arith.maxnumf %{{.*}}, %[[TERM]]
// CHECK-NOT:   tile.map
// CHECK:       tile.store
func.func @maximum(%a: tensor<16x8xf32>, %b: tensor<8x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %2 = linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<16x8xf32>, tensor<8x32xf32>) outs(%1 : tensor<16x32xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.addf %x, %y : f32
      %s = arith.maxnumf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// A computed tile that a product takes with its columns as rows goes through
// shared memory, and so does one that lies across the others of an operation.

// CHECK-LABEL: gpu.func @computed_transposed(
// CHECK:       %[[Y:.*]] = arith.addf
// CHECK:       %[[S:.*]] = tile.share %[[Y]] : tensor<32x16xf16, #tile.fragment<1>> to <32x16xf16
// CHECK:       %[[T:.*]] = tile.load %[[S]] transpose : {{.*}} to tensor<16x32xf16, #tile.fragment<1>>
// CHECK:       tile.mma_async %[[T]], %{{.*}} : tensor<16x32xf16, #tile.fragment<1>>
func.func @computed_transposed(%x: tensor<32x16xf16>, %k: tensor<32x8xf16>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x8xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x8xf32>) {
    %0 = tensor.empty() : tensor<16x8xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x8xf32>) -> tensor<16x8xf32>
    %y = arith.addf %x, %x : tensor<32x16xf16>
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, #result]
        ins(%y, %k : tensor<32x16xf16>, tensor<32x8xf16>) outs(%1 : tensor<16x8xf32>) -> tensor<16x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0, 0] [16, 8] [1, 1] : tensor<16x8xf32> into tensor<16x8xf32>
    }
  }
  return %r : tensor<16x8xf32>
}

// CHECK-LABEL: gpu.func @across(
// CHECK:       %[[S:.*]] = tile.share %[[Y:.*]] : tensor<32x16xf32, #tile.fragment<1>>
// CHECK:       %[[T:.*]] = tile.load %[[S]] transpose : {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK:       arith.mulf %{{.*}}, %[[T]] : tensor<16x32xf32, #tile.fragment<1>>
func.func @across(%x: tensor<32x16xf32>, %z: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %y = arith.addf %x, %x : tensor<32x16xf32>
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%z, %y : tensor<16x32xf32>, tensor<32x16xf32>) outs(%0 : tensor<16x32xf32>) {
    ^bb0(%a: f32, %b: f32, %unused: f32):
      %2 = arith.mulf %a, %b : f32
      linalg.yield %2 : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// Columns of a tile that is in shared memory, from a panel of it on, 64 columns of 16 bits, need no tile of their own;
// from another column on they do.

// CHECK-LABEL: gpu.func @columns(
// CHECK-DAG:   %[[A:.*]] = tile.fetch {{.*}} to <16x32xf16, swizzle = 64>
// CHECK-DAG:   %[[B:.*]] = tile.fetch {{.*}} to <32x192xf16, swizzle = 128>
// CHECK:       tile.mma_async %[[A]], %[[B]] : !tile.smem<16x32xf16, swizzle = 64>, <32x192xf16, swizzle = 128> -> <tensor<16x192xf32, #tile.fragment<1>>>
// CHECK:       tile.mma_async %[[A]], %[[B]] panel(%{{.*}}) : !tile.smem<16x32xf16, swizzle = 64>, <32x192xf16, swizzle = 128> -> <tensor<16x128xf32, #tile.fragment<1>>>
// CHECK:       %[[C:.*]] = tile.fetch {{.*}} to <32x64xf16, swizzle = 128>
// CHECK:       tile.mma_async %[[A]], %[[C]] : !tile.smem<16x32xf16, swizzle = 64>, <32x64xf16, swizzle = 128> -> <tensor<16x64xf32, #tile.fragment<1>>>
func.func @columns(%a: tensor<16x32xf16>, %b: tensor<96x192xf16>) -> (tensor<16x192xf32>, tensor<16x192xf32>, tensor<16x192xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x192xf32>
  %r:3 = scf.forall (%c) = (0) to (65) step (64) shared_outs(%o = %e, %o1 = %e, %o2 = %e) -> (tensor<16x192xf32>, tensor<16x192xf32>, tensor<16x192xf32>) {
    %bt = tensor.extract_slice %b[%c, 0] [32, 192] [1, 1] : tensor<96x192xf16> to tensor<32x192xf16>
    %panels = tensor.extract_slice %bt[0, %c] [32, 128] [1, 1] : tensor<32x192xf16> to tensor<32x128xf16>
    %others = tensor.extract_slice %bt[0, 32] [32, 64] [1, 1] : tensor<32x192xf16> to tensor<32x64xf16>
    %0 = tensor.empty() : tensor<16x192xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16x192xf32>) -> tensor<16x192xf32>
    %ab = linalg.matmul ins(%a, %bt : tensor<16x32xf16>, tensor<32x192xf16>) outs(%1 : tensor<16x192xf32>) -> tensor<16x192xf32>
    %2 = tensor.empty() : tensor<16x128xf32>
    %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %ap = linalg.matmul ins(%a, %panels : tensor<16x32xf16>, tensor<32x128xf16>) outs(%3 : tensor<16x128xf32>) -> tensor<16x128xf32>
    %4 = tensor.empty() : tensor<16x64xf32>
    %5 = linalg.fill ins(%zero : f32) outs(%4 : tensor<16x64xf32>) -> tensor<16x64xf32>
    %ao = linalg.matmul ins(%a, %others : tensor<16x32xf16>, tensor<32x64xf16>) outs(%5 : tensor<16x64xf32>) -> tensor<16x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %ab into %o[0, 0] [16, 192] [1, 1] : tensor<16x192xf32> into tensor<16x192xf32>
      tensor.parallel_insert_slice %ap into %o1[0, %c] [16, 128] [1, 1] : tensor<16x128xf32> into tensor<16x192xf32>
      tensor.parallel_insert_slice %ao into %o2[0, %c] [16, 64] [1, 1] : tensor<16x64xf32> into tensor<16x192xf32>
    }
  }
  return %r#0, %r#1, %r#2 : tensor<16x192xf32>, tensor<16x192xf32>, tensor<16x192xf32>
}
