// Vectors of memory: values for columns that lie eight in a row are copied as
// matrices are, others are read where the program takes them.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>

// CHECK-LABEL: gpu.func @vectors(
// CHECK-SAME:  %[[EIGHTS:[^,: ]*]]: memref<?x8xf32
// A value for each row is taken in front of the loop.
// CHECK:       %[[R:.*]] = tile.map : () -> tensor<16xf32, #tile.rows<1>>
// CHECK:       scf.for %[[J:.*]] = %c0 to
// CHECK:         %[[T:.*]] = tile.fetch %[[EIGHTS]][%[[J]]] rows(%{{.*}}) : memref<?x8xf32, {{.*}}> to <8x8xf32, swizzle = 32>
// CHECK:         %[[C:.*]] = tile.load %[[T]] : <8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<1>>
// CHECK-NOT:     tile.map
// CHECK:         tile.broadcast %[[R]]
// CHECK:         tile.broadcast %[[C]]
func.func @vectors(%rows: tensor<16xf32>, %eights: tensor<?x8xf32>, %n: index) -> tensor<16x64xf32> {
  %e = tensor.empty() : tensor<16x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x64xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant 0.0 : f32
    %start = tensor.empty() : tensor<16x64xf32>
    %sum = linalg.fill ins(%zero : f32) outs(%start : tensor<16x64xf32>) -> tensor<16x64xf32>
    %of_rows = tensor.extract_slice %rows[0] [16] [1] : tensor<16xf32> to tensor<16xf32>
    %1 = scf.for %j = %c0 to %n step %c8 iter_args(%acc = %sum) -> (tensor<16x64xf32>) {
      %count = affine.min affine_map<(j)[n] -> (8, n - j)>(%j)[%n]
      %lack = affine.apply affine_map<(c) -> (8 - c)>(%count)
      %slice = tensor.extract_slice %eights[%j, 0] [%count, 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
      %tile = tensor.pad %slice low[0, 0] high[%lack, 0] {
      ^bb0(%x: index, %y: index):
        tensor.yield %zero : f32
      } : tensor<?x8xf32> to tensor<8x8xf32>
      %columns = tensor.collapse_shape %tile [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
      %2 = linalg.generic {indexing_maps = [#row, #column, #m], iterator_types = ["parallel", "parallel"]}
          ins(%of_rows, %columns : tensor<16xf32>, tensor<64xf32>) outs(%acc : tensor<16x64xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %3 = math.fma %x, %y, %z : f32
        linalg.yield %3 : f32
      } -> tensor<16x64xf32>
      scf.yield %2 : tensor<16x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [16, 64] [1, 1] : tensor<16x64xf32> into tensor<16x64xf32>
    }
  }
  return %r : tensor<16x64xf32>
}
