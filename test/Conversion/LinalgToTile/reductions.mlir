// Reductions of a matrix: of each row by shuffles between lanes, of each column
// between warps too.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#last = affine_map<(j, i) -> (i, j)>
#last_row = affine_map<(j, i) -> (i)>

// What is neutral is where sums start; nothing else is added.

// CHECK-LABEL: gpu.func @rows(
// CHECK-DAG:   %[[LOW:.*]] = arith.constant dense<0xFF800000> : tensor<32x4xf32, #tile.lanes<2>>
// CHECK:       %[[X:.*]] = arith.addf
// CHECK:       %[[L:.*]] = tile.fold max %[[X]] into %[[LOW]] : tensor<32x16xf32, #tile.fragment<2>> into tensor<32x4xf32, #tile.lanes<2>>
// CHECK:       %[[M:.*]] = tile.reduce max %[[L]] : tensor<32x4xf32, #tile.lanes<2>> to tensor<32xf32, #tile.rows<2>>
// CHECK-NOT:   arith.maxnumf
// CHECK:       tile.store %[[M]], %{{.*}} : tensor<32xf32, #tile.rows<2>>
func.func @rows(%x: tensor<32x16xf32>) -> tensor<32xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32xf32>) {
    %0 = tensor.empty() : tensor<32xf32>
    %1 = linalg.fill ins(%low : f32) outs(%0 : tensor<32xf32>) -> tensor<32xf32>
    %y = arith.addf %x, %x : tensor<32x16xf32>
    %2 = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
        ins(%y : tensor<32x16xf32>) outs(%1 : tensor<32xf32>) {
    ^bb0(%a: f32, %so_far: f32):
      %3 = arith.maxnumf %so_far, %a : f32
      linalg.yield %3 : f32
    } -> tensor<32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [32] [1] : tensor<32xf32> into tensor<32xf32>
    }
  }
  return %r : tensor<32xf32>
}

// Elements may be computed, from several tiles and where they are. Another
// start than zero is added at the end, and so is a tile.

// CHECK-LABEL: gpu.func @computed(
// CHECK-DAG:   %[[FIVE:.*]] = arith.constant dense<5.000000e+00> : tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[X:.*]] = tile.load
// CHECK:       %[[R:.*]] = tile.map : () -> tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[RM:.*]] = tile.broadcast %[[R]]
// CHECK:       %[[P:.*]] = arith.mulf %[[X]], %[[RM]]
// CHECK:       %[[L:.*]] = tile.fold add %[[P]]
// CHECK:       %[[S:.*]] = tile.reduce add %[[L]]
// CHECK:       %[[T:.*]] = arith.addf %[[S]], %[[FIVE]] : tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[Y:.*]] = tile.map
// CHECK:         arith.cmpi
// CHECK:       %[[L2:.*]] = tile.fold add %[[Y]]
// CHECK:       %[[S2:.*]] = tile.reduce add %[[L2]]
// CHECK:       arith.addf %[[T]], %[[S2]]
func.func @computed(%x: tensor<16x16xf32>, %rows: tensor<16xf32>) -> tensor<16xf32> {
  %five = arith.constant 5.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%five : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#m, #row, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x, %rows : tensor<16x16xf32>, tensor<16xf32>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f32, %b: f32, %so_far: f32):
      %p = arith.mulf %a, %b : f32
      %3 = arith.addf %p, %so_far : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    %4 = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<16x16xf32>) outs(%2 : tensor<16xf32>) {
    ^bb0(%a: f32, %so_far: f32):
      %at = linalg.index 0 : index
      %key = linalg.index 1 : index
      %is_behind = arith.cmpi sge, %at, %key : index
      %term = arith.select %is_behind, %a, %zero : f32
      %5 = arith.addf %so_far, %term : f32
      linalg.yield %5 : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %4 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// Of the two loops that one goes along rows which the matrix says.

// CHECK-LABEL: gpu.func @order_of_loops(
// CHECK:       tile.fold add {{.*}} : tensor<16x32xf32, #tile.fragment<1>>
// CHECK:       tile.reduce add {{.*}} to tensor<16xf32, #tile.rows<1>>
func.func @order_of_loops(%x: tensor<16x32xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#last, #last_row], iterator_types = ["reduction", "parallel"]}
        ins(%x : tensor<16x32xf32>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f32, %so_far: f32):
      %3 = arith.addf %so_far, %a : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// Elements of 16 bits are summed in f32.

// CHECK-LABEL: gpu.func @sixteen_bits(
// CHECK:       %[[X:.*]] = tile.load {{.*}} to tensor<16x16xf16, #tile.fragment<1>>
// CHECK:       %[[W:.*]] = arith.extf %[[X]]
// CHECK:       tile.fold add %[[W]]
func.func @sixteen_bits(%x: tensor<16x16xf16>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<16x16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f16, %so_far: f32):
      %w = arith.extf %a : f16 to f32
      %3 = arith.addf %so_far, %w : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// Of the rows: a value for each column, here for an operation on the matrix.

// CHECK-LABEL: gpu.func @columns(
// CHECK:       %[[X:.*]] = tile.load
// CHECK:       %[[M:.*]] = tile.reduce_rows max %[[X]] : tensor<32x16xf32, #tile.fragment<2>> to tensor<16xf32, #tile.columns<2>>
// CHECK:       %[[S:.*]] = tile.reduce_rows add
// CHECK:       %[[T:.*]] = arith.addf %[[M]], %[[S]] : tensor<16xf32, #tile.columns<2>>
// CHECK:       %[[B:.*]] = tile.broadcast %[[T]] : {{.*}} to tensor<32x16xf32, #tile.fragment<2>>
// CHECK:       arith.subf %{{.*}}, %[[B]]
func.func @columns(%x: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<32x16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%low : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : tensor<32x16xf32>) outs(%1 : tensor<16xf32>) {
    ^bb0(%a: f32, %so_far: f32):
      %3 = arith.maxnumf %so_far, %a : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    %4 = linalg.generic {indexing_maps = [#m, #column], iterator_types = ["reduction", "parallel"]}
        ins(%x : tensor<32x16xf32>) outs(%2 : tensor<16xf32>) {
    ^bb0(%a: f32, %so_far: f32):
      %3 = arith.addf %so_far, %a : f32
      linalg.yield %3 : f32
    } -> tensor<16xf32>
    %5 = tensor.empty() : tensor<32x16xf32>
    %6 = linalg.generic {indexing_maps = [#m, #column, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x, %4 : tensor<32x16xf32>, tensor<16xf32>) outs(%5 : tensor<32x16xf32>) {
    ^bb0(%a: f32, %b: f32, %unused: f32):
      %7 = arith.subf %a, %b : f32
      linalg.yield %7 : f32
    } -> tensor<32x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %6 into %o[0, 0] [32, 16] [1, 1] : tensor<32x16xf32> into tensor<32x16xf32>
    }
  }
  return %r : tensor<32x16xf32>
}
