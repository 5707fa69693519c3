// Operations on each element: op by op on tiles and vectors, on values for each
// row or column as long as that will do; with positions as tile.map.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#scalar = affine_map<(i, j) -> ()>
#v = affine_map<(i) -> (i)>

// Values for each row, for each column and scalars: what has none of a matrix is
// computed before it becomes one.

// CHECK-LABEL: gpu.func @op_by_op(
// CHECK-SAME:  %[[S:[^,: ]*]]: f32
// CHECK:       %[[X:.*]] = tile.load {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK:       %[[R:.*]] = tile.map : () -> tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[C:.*]] = tile.map : () -> tensor<32xf32, #tile.columns<1>>
// CHECK:       %[[E:.*]] = math.exp2 %[[R]] : tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[SS:.*]] = arith.mulf %[[S]], %[[S]] : f32
// CHECK:       %[[SC:.*]] = tile.broadcast %[[SS]] : f32 to tensor<32xf32, #tile.columns<1>>
// CHECK:       %[[CC:.*]] = arith.mulf %[[C]], %[[SC]] : tensor<32xf32, #tile.columns<1>>
// CHECK-DAG:   %[[EM:.*]] = tile.broadcast %[[E]] : {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK-DAG:   %[[CM:.*]] = tile.broadcast %[[CC]] : {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK:       %[[EC:.*]] = arith.addf %[[EM]], %[[CM]]
// CHECK:       arith.subf %[[X]], %[[EC]] : tensor<16x32xf32, #tile.fragment<1>>
func.func @op_by_op(%x: tensor<16x32xf32>, %rows: tensor<16xf32>, %columns: tensor<32xf32>, %s: f32) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.generic {indexing_maps = [#m, #row, #column, #scalar, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x, %rows, %columns, %s : tensor<16x32xf32>, tensor<16xf32>, tensor<32xf32>, f32) outs(%0 : tensor<16x32xf32>) {
    ^bb0(%element: f32, %of_row: f32, %of_column: f32, %factor: f32, %unused: f32):
      %2 = math.exp2 %of_row : f32
      %square = arith.mulf %factor, %factor : f32
      %3 = arith.mulf %of_column, %square : f32
      %4 = arith.addf %2, %3 : f32
      %5 = arith.subf %element, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// An operation that reads indices becomes tile.map, of its tiles alone: a
// scalar is seen from outside.

// CHECK-LABEL: gpu.func @positions(
// CHECK-SAME:  %[[TABLE:[^,: ]*]]: memref<32xf32
// CHECK-SAME:  %[[S:[^,: ]*]]: f32
// CHECK:       %[[X:.*]] = tile.load
// CHECK:       %[[R:.*]] = tile.broadcast %{{.*}} : tensor<16xf32, #tile.rows<1>>
// CHECK:       tile.map %[[X]], %[[R]] :
// CHECK-NEXT:  ^bb0(%[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index):
// CHECK:         arith.cmpi sge, %[[I]], %[[J]]
// CHECK:         memref.load %[[TABLE]][%[[J]]]
// CHECK:         arith.addf %[[A]], %[[B]]
// CHECK:         arith.mulf %{{.*}}, %[[S]]
// CHECK:         tile.yield
func.func @positions(%x: tensor<16x32xf32>, %rows: tensor<16xf32>, %table: tensor<32xf32>, %s: f32) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x32xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x32xf32>) {
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x, %rows : tensor<16x32xf32>, tensor<16xf32>) outs(%0 : tensor<16x32xf32>) {
    ^bb0(%a: f32, %b: f32, %unused: f32):
      %at = linalg.index 0 : index
      %key = linalg.index 1 : index
      %is_behind = arith.cmpi sge, %at, %key : index
      %y = tensor.extract %table[%key] : tensor<32xf32>
      %2 = arith.addf %a, %b : f32
      %3 = arith.mulf %2, %s : f32
      %4 = arith.select %is_behind, %3, %y : f32
      linalg.yield %4 : f32
    } -> tensor<16x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
    }
  }
  return %r : tensor<16x32xf32>
}

// The f32 of tile.map are what 16 bits hold: widened before, rounded behind.

// CHECK-LABEL: gpu.func @sixteen_bits(
// CHECK:       %[[X:.*]] = tile.load {{.*}} to tensor<16x16xf16, #tile.fragment<1>>
// CHECK:       %[[W:.*]] = arith.extf %[[X]]
// CHECK:       %[[Y:.*]] = tile.map %[[W]] :
// CHECK:         %[[A:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK:         %[[B:.*]] = arith.select %{{.*}}, %[[A]], %{{.*}} : f16
// CHECK:         %[[C:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK:         tile.yield %[[C]]
// CHECK:       arith.truncf %[[Y]] : {{.*}} to tensor<16x16xf16, #tile.fragment<1>>
func.func @sixteen_bits(%x: tensor<16x16xf16>) -> tensor<16x16xf16> {
  %one = arith.constant 1.0 : f16
  %e = tensor.empty() : tensor<16x16xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf16>) {
    %0 = tensor.empty() : tensor<16x16xf16>
    %1 = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<16x16xf16>) outs(%0 : tensor<16x16xf16>) {
    ^bb0(%a: f16, %unused: f16):
      %at = linalg.index 0 : index
      %key = linalg.index 1 : index
      %is_diagonal = arith.cmpi eq, %at, %key : index
      %2 = arith.select %is_diagonal, %a, %one : f16
      linalg.yield %2 : f16
    } -> tensor<16x16xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf16> into tensor<16x16xf16>
    }
  }
  return %r : tensor<16x16xf16>
}

// Each of several results is computed from what it needs; what it starts from is
// read where the body does.

// CHECK-LABEL: gpu.func @results(
// CHECK:       %[[X:.*]] = tile.load
// CHECK:       %[[Y:.*]] = arith.mulf %[[X]], %[[X]] : tensor<16x16xf32, #tile.fragment<1>>
// CHECK:       %[[Z:.*]] = arith.addf %[[Y]], %{{.*}} : tensor<16x16xf32, #tile.fragment<1>>
// CHECK-DAG:   tile.store %[[Y]]
// CHECK-DAG:   tile.store %[[Z]]
func.func @results(%x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %e, %o2 = %e) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
    %0 = tensor.empty() : tensor<16x16xf32>
    %1 = linalg.fill ins(%two : f32) outs(%0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    %2:2 = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<16x16xf32>) outs(%0, %1 : tensor<16x16xf32>, tensor<16x16xf32>) {
    ^bb0(%a: f32, %unused: f32, %start: f32):
      %y = arith.mulf %a, %a : f32
      %z = arith.addf %y, %start : f32
      linalg.yield %y, %z : f32, f32
    } -> (tensor<16x16xf32>, tensor<16x16xf32>)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2#0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
      tensor.parallel_insert_slice %2#1 into %o2[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r#0, %r#1 : tensor<16x16xf32>, tensor<16x16xf32>
}

// Vectors have a value for each row unless a matrix says that they are of
// columns, and so have those that they meet.

// CHECK-LABEL: gpu.func @vectors(
// CHECK:       %[[C:.*]] = tile.map : () -> tensor<32xf32, #tile.columns<1>>
// CHECK:       %[[C2:.*]] = arith.mulf %[[C]], %[[C]] : tensor<32xf32, #tile.columns<1>>
// CHECK:       %[[I:.*]] = tile.map %[[C2]] : (tensor<32xf32, #tile.columns<1>>) -> tensor<32xf32, #tile.columns<1>>
// CHECK-NEXT:  ^bb0(%{{.*}}: f32, %{{.*}}: index):
// CHECK:       %[[B:.*]] = tile.broadcast %[[I]] : {{.*}} to tensor<16x32xf32, #tile.fragment<1>>
// CHECK:       %[[R:.*]] = tile.map : () -> tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[N:.*]] = arith.negf %[[R]] : tensor<16xf32, #tile.rows<1>>
// CHECK:       tile.store %[[B]]
// CHECK:       tile.store %[[N]]
func.func @vectors(%columns: tensor<32xf32>, %rows: tensor<16xf32>) -> (tensor<16x32xf32>, tensor<16xf32>) {
  %e = tensor.empty() : tensor<16x32xf32>
  %er = tensor.empty() : tensor<16xf32>
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %e, %or = %er) -> (tensor<16x32xf32>, tensor<16xf32>) {
    %0 = tensor.empty() : tensor<32xf32>
    %1 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%columns : tensor<32xf32>) outs(%0 : tensor<32xf32>) {
    ^bb0(%a: f32, %unused: f32):
      %y = arith.mulf %a, %a : f32
      linalg.yield %y : f32
    } -> tensor<32xf32>
    %2 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%1 : tensor<32xf32>) outs(%0 : tensor<32xf32>) {
    ^bb0(%a: f32, %unused: f32):
      %at = linalg.index 0 : index
      %n = arith.index_cast %at : index to i32
      %f = arith.sitofp %n : i32 to f32
      %y = arith.mulf %a, %f : f32
      linalg.yield %y : f32
    } -> tensor<32xf32>
    %3 = tensor.empty() : tensor<16x32xf32>
    %4 = linalg.generic {indexing_maps = [#column, #m], iterator_types = ["parallel", "parallel"]}
        ins(%2 : tensor<32xf32>) outs(%3 : tensor<16x32xf32>) {
    ^bb0(%a: f32, %unused: f32):
      linalg.yield %a : f32
    } -> tensor<16x32xf32>
    %5 = tensor.empty() : tensor<16xf32>
    %6 = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%rows : tensor<16xf32>) outs(%5 : tensor<16xf32>) {
    ^bb0(%a: f32, %unused: f32):
      %y = arith.negf %a : f32
      linalg.yield %y : f32
    } -> tensor<16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %4 into %o[0, 0] [16, 32] [1, 1] : tensor<16x32xf32> into tensor<16x32xf32>
      tensor.parallel_insert_slice %6 into %or[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r#0, %r#1 : tensor<16x32xf32>, tensor<16xf32>
}

// Arithmetic of arith and math on tiles, and constant tiles.

// CHECK-LABEL: gpu.func @arithmetic(
// CHECK-DAG:   %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<16x16xf32, #tile.fragment<1>>
// CHECK:       %[[X:.*]] = tile.load
// CHECK:       %[[ABOVE:.*]] = arith.cmpf ogt, %[[X]], %[[TWO]] : tensor<16x16xf32, #tile.fragment<1>>
// CHECK:       arith.select %[[ABOVE]], %[[X]], %[[TWO]] : tensor<16x16xi1, #tile.fragment<1>>, tensor<16x16xf32, #tile.fragment<1>>
func.func @arithmetic(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %e = tensor.empty() : tensor<16x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x16xf32>) {
    %two = arith.constant dense<2.0> : tensor<16x16xf32>
    %above = arith.cmpf ogt, %x, %two : tensor<16x16xf32>
    %0 = arith.select %above, %x, %two : tensor<16x16xi1>, tensor<16x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
    }
  }
  return %r : tensor<16x16xf32>
}
