// RUN: flash-opt %s --flash-cpu-microkernel --cse | FileCheck %s
// RUN: flash-opt %s --flash-cpu-microkernel="vector-bits=256 registers=16" | FileCheck %s --check-prefix=AVX2
// RUN: flash-opt %s --flash-cpu-microkernel="vector-bits=256 registers=7" | FileCheck %s --check-prefix=FEW

// 4 x 32 accumulators stay in vectors through the reduction. They start from
// zero: the sum is added to the output as a whole.

// CHECK-LABEL: func.func @product
// CHECK-SAME: (%[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<8x32xf32>, %[[C:.*]]: memref<4x32xf32>)
// CHECK:     scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %c4
// CHECK:       %[[ZERO:.*]] = vector.broadcast %cst{{.*}} : f32 to vector<16xf32>
// CHECK-NOT:   vector.load
// CHECK:       %[[R:.*]]:8 = scf.for %[[K:.*]] = %c0 to %c8 step %c1 iter_args(%[[X0:[^ ]*]] = %[[ZERO]],
// CHECK:         %[[S:.*]] = memref.load %[[A]][%[[I]], %[[K]]]
// CHECK:         %[[V:.*]] = vector.broadcast %[[S]] : f32 to vector<16xf32>
// CHECK:         %[[B0:.*]] = vector.load %[[B]][%[[K]], %c0] : memref<8x32xf32>, vector<16xf32>
// CHECK:         vector.fma %[[V]], %[[B0]], %[[X0]] : vector<16xf32>
// CHECK:         vector.load %[[B]]
// CHECK-NOT:     vector.load %[[B]]
// CHECK:         scf.yield
// CHECK:       %[[C0:.*]] = vector.load %[[C]][%[[I]], %c0] : memref<4x32xf32>, vector<16xf32>
// CHECK:       %[[SUM:.*]] = arith.addf %[[C0]], %[[R]]#0
// CHECK:       vector.store %[[SUM]], %[[C]][%[[I]], %c0]

// AVX2-LABEL: func.func @product
// AVX2: vector.fma {{.*}} : vector<8xf32>
func.func @product(%a: memref<4x8xf32>, %b: memref<8x32xf32>, %c: memref<4x32xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x32xf32>) outs(%c : memref<4x32xf32>)
  return
}

// A size of 40 is two vectors of 16 lanes and one of 8. The 16-bit vectors are
// extended once per tile, not once per row.

// CHECK-LABEL: func.func @remainder_f16
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load {{.*}} : memref<2x8xf16>
// CHECK: arith.extf {{.*}} : f16 to f32
// CHECK-DAG: arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK-DAG: arith.extf {{.*}} : vector<8xf16> to vector<8xf32>
// CHECK-NOT: arith.extf {{.*}} : vector<8xf16>
// CHECK: vector.store {{.*}} vector<8xf32>
func.func @remainder_f16(%a: memref<2x8xf16>, %b: memref<8x40xf16>, %c: memref<2x40xf32>) {
  linalg.matmul ins(%a, %b : memref<2x8xf16>, memref<8x40xf16>) outs(%c : memref<2x40xf32>)
  return
}

// A row maximum over the outer dimension: lanes are rows.

// CHECK-LABEL: func.func @column_max
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK:   %[[X:.*]] = vector.load
// CHECK:   %[[N:.*]] = arith.maxnumf %[[X]], %[[M]] : vector<16xf32>
// CHECK:   scf.yield %[[N]]
// CHECK: vector.store %[[R]]
func.func @column_max(%s: memref<128x16xf32>, %m: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%s : memref<128x16xf32>) outs(%m : memref<16xf32>) {
  ^bb0(%x: f32, %o: f32):
    %n = arith.maxnumf %x, %o : f32
    linalg.yield %n : f32
  }
  return
}

// Elements are added up in blocks of 16, the last of which has 8 here; the maximum goes on from block to block.

// CHECK-LABEL: func.func @column_sum_and_max
// CHECK: %[[R:.*]]:2 = scf.for %[[K:.*]] = %c0 to %c40 step %c16 iter_args(%[[S:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK:   %[[NEXT:.*]] = arith.addi %[[K]], %c16
// CHECK:   %[[END:.*]] = arith.minui %c40, %[[NEXT]]
// CHECK:   %[[BLOCK:.*]]:2 = scf.for %{{.*}} = %[[K]] to %[[END]] step %c1 iter_args(%{{.*}} = %cst{{[_0-9]*}}, %{{.*}} = %[[M]])
// CHECK:   %[[N:.*]] = arith.addf %[[S]], %[[BLOCK]]#0 : vector<16xf32>
// CHECK:   scf.yield %[[N]], %[[BLOCK]]#1
func.func @column_sum_and_max(%x: memref<40x16xf32>, %sums: memref<16xf32>, %maxima: memref<16xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<40x16xf32>) outs(%sums, %maxima : memref<16xf32>, memref<16xf32>) {
  ^bb0(%e: f32, %sum: f32, %max: f32):
    %0 = arith.addf %e, %sum : f32
    %1 = arith.maximumf %e, %max : f32
    linalg.yield %0, %1 : f32, f32
  }
  return
}

// The column index differs per lane, the row index does not; the load from a
// table by a uniform index stays scalar.

// CHECK-LABEL: func.func @mask
// CHECK: arith.constant dense<{{\[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\]}}> : vector<16xindex>
// CHECK: arith.cmpi ule, {{.*}} : vector<16xindex>
// CHECK: memref.load %{{.*}} : memref<8xf32>
// CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xf32>
func.func @mask(%s: memref<8x16xf32>, %bias: memref<8xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%s : memref<8x16xf32>) {
  ^bb0(%x: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %b = memref.load %bias[%i] : memref<8xf32>
    %keep = arith.cmpi ule, %j, %i : index
    %r = arith.select %keep, %x, %b : f32
    linalg.yield %r : f32
  }
  return
}

// A dynamic size ends in single lanes; no library copy is left.

// With few registers there is little code: one vector in each step.
// FEW-LABEL: func.func @dynamic_copy
// FEW: scf.for {{.*}} step %c8
// FEW: vector.store {{.*}} vector<8x
// FEW-NOT: vector.store {{.*}} vector<8x
// FEW-LABEL: func.func @convolution

// CHECK-LABEL: func.func @dynamic_copy
// CHECK: vector.load {{.*}}, vector<16xf32>
// CHECK: vector.load {{.*}}, vector<1xf32>
// CHECK-NOT: memref.copy
func.func @dynamic_copy(%a: memref<?xf32>, %b: memref<?xf32>) {
  memref.copy %a, %b : memref<?xf32> to memref<?xf32>
  return
}

// Indices that are not plain dimensions fall back to scalar loops.

// CHECK-LABEL: func.func @convolution
// CHECK-NOT: vector
// CHECK: memref.store
func.func @convolution(%a: memref<20xf32>, %k: memref<3xf32>, %c: memref<18xf32>) {
  linalg.conv_1d ins(%a, %k : memref<20xf32>, memref<3xf32>) outs(%c : memref<18xf32>)
  return
}

// A reduction that follows the fill of its output starts in registers.

// CHECK-LABEL: func.func @starts_from_fill
// CHECK-NOT: vector.store
// CHECK: %[[ZERO:.*]] = vector.broadcast %cst : f32 to vector<16xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]])
// CHECK: vector.store
func.func @starts_from_fill(%s: memref<128x16xf32>) -> memref<16xf32> {
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc() : memref<16xf32>
  linalg.fill ins(%zero : f32) outs(%m : memref<16xf32>)
  linalg.reduce { arith.addf } ins(%s : memref<128x16xf32>) outs(%m : memref<16xf32>) dimensions = [0]
  return %m : memref<16xf32>
}

// A maximum that starts from a number never is NaN: a comparison ignores a NaN
// element as maxnumf does, and is one instruction. Not so one that starts from
// what a buffer holds (@column_max), or from NaN.

// CHECK-LABEL: func.func @max_of_numbers
// CHECK:     scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}})
// CHECK:       %[[X:.*]] = vector.load
// CHECK:       %[[GREATER:.*]] = arith.cmpf ogt, %[[X]], %[[M]]
// CHECK:       %[[N:.*]] = arith.select %[[GREATER]], %[[X]], %[[M]]
// CHECK:       scf.yield %[[N]]
// CHECK-LABEL: func.func @max_from_nan
// CHECK:       arith.maxnumf
func.func @max_of_numbers(%s: memref<128x16xf32>) -> memref<16xf32> {
  %least = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<16xf32>
  linalg.fill ins(%least : f32) outs(%m : memref<16xf32>)
  linalg.reduce { arith.maxnumf } ins(%s : memref<128x16xf32>) outs(%m : memref<16xf32>) dimensions = [0]
  return %m : memref<16xf32>
}
func.func @max_from_nan(%s: memref<128x16xf32>) -> memref<16xf32> {
  %nan = arith.constant 0x7FC00000 : f32
  %m = memref.alloc() : memref<16xf32>
  linalg.fill ins(%nan : f32) outs(%m : memref<16xf32>)
  linalg.reduce { arith.maxnumf } ins(%s : memref<128x16xf32>) outs(%m : memref<16xf32>) dimensions = [0]
  return %m : memref<16xf32>
}
