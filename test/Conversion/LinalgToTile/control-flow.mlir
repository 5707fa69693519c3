// Loops and conditions stay what they are, around tiles in registers and
// scalars; what is from outside is an argument of the kernel.
// RUN: flash-opt %s --convert-linalg-to-tile | FileCheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A loop carries matrices, vectors and scalars, and so does a condition.

// CHECK-LABEL: gpu.func @several(
// CHECK:       %[[L:.*]]:3 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[SUM:.*]] = %{{.*}}, %[[N:.*]] = %{{.*}}) -> (tensor<16x16xf32, #tile.fragment<1>>, tensor<16xf32, #tile.rows<1>>, index) {
// CHECK:         %[[C:.*]]:2 = scf.if %{{.*}} -> (tensor<16x16xf32, #tile.fragment<1>>, index) {
// CHECK:           %[[X:.*]] = arith.addf %[[ACC]], %[[ACC]]
// CHECK:           scf.yield %[[X]], %{{.*}} :
// CHECK:         } else {
// CHECK:           scf.yield %[[ACC]], %[[N]] :
// CHECK:         }
// CHECK:         %[[R:.*]] = tile.reduce add
// CHECK:         %[[S:.*]] = arith.addf %[[SUM]], %[[R]] : tensor<16xf32, #tile.rows<1>>
// CHECK:         scf.yield %[[C]]#0, %[[S]], %[[C]]#1 :
// CHECK:       }
// CHECK:       tile.store %[[L]]#0
// CHECK:       tile.store %[[L]]#1
func.func @several(%x: tensor<16x16xf32>, %n: index) -> (tensor<16x16xf32>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<16x16xf32>
  %ev = tensor.empty() : tensor<16xf32>
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %e, %ov = %ev) -> (tensor<16x16xf32>, tensor<16xf32>) {
    %0 = tensor.empty() : tensor<16xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<16xf32>) -> tensor<16xf32>
    %l:3 = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %x, %sum = %1, %count = %c0) -> (tensor<16x16xf32>, tensor<16xf32>, index) {
      %c = arith.cmpi sgt, %j, %count : index
      %2:2 = scf.if %c -> (tensor<16x16xf32>, index) {
        %3 = arith.addf %acc, %acc : tensor<16x16xf32>
        %4 = arith.addi %count, %j : index
        scf.yield %3, %4 : tensor<16x16xf32>, index
      } else {
        scf.yield %acc, %count : tensor<16x16xf32>, index
      }
      %5 = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
          ins(%2#0 : tensor<16x16xf32>) outs(%sum : tensor<16xf32>) {
      ^bb0(%a: f32, %so_far: f32):
        %6 = arith.addf %so_far, %a : f32
        linalg.yield %6 : f32
      } -> tensor<16xf32>
      scf.yield %2#0, %5, %2#1 : tensor<16x16xf32>, tensor<16xf32>, index
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l#0 into %o[0, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<16x16xf32>
      tensor.parallel_insert_slice %l#1 into %ov[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r#0, %r#1 : tensor<16x16xf32>, tensor<16xf32>
}

// Whether a condition holds for some row, lanes vote.

// CHECK-LABEL: gpu.func @any(
// CHECK:       %[[IS:.*]] = arith.cmpf ogt, %{{.*}} : tensor<16xf32, #tile.rows<1>>
// CHECK:       %[[LANES:.*]] = tile.broadcast %[[IS]] : {{.*}} to tensor<16x4xi1, #tile.lanes<1>>
// CHECK:       %[[ANY:.*]] = tile.any %[[LANES]]
// CHECK:       scf.if %[[ANY]] -> (tensor<16xf32, #tile.rows<1>>)
func.func @any(%v: tensor<16xf32>, %w: tensor<16xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16xf32>) {
    %x = math.exp2 %v : tensor<16xf32>
    %is = arith.cmpf ogt, %x, %w : tensor<16xf32>
    %any = flash.any %is : tensor<16xi1>
    %c = scf.if %any -> (tensor<16xf32>) {
      %y = arith.maxnumf %x, %w : tensor<16xf32>
      scf.yield %y : tensor<16xf32>
    } else {
      scf.yield %w : tensor<16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %c into %o[0] [16] [1] : tensor<16xf32> into tensor<16xf32>
    }
  }
  return %r : tensor<16xf32>
}

// Tables are memory, sizes are those of memory, numbers are passed and
// conditions compared in the kernel; constants are copied.

// CHECK-LABEL: gpu.func @captured(
// CHECK-SAME:  %[[TABLE:[^,: ]*]]: memref<8xi32
// CHECK-SAME:  %[[X:[^,: ]*]]: memref<?x16xf32
// CHECK-SAME:  %[[N:[^,: ]*]]: index
// CHECK-SAME:  %[[S:[^,: ]*]]: f32
// CHECK:       %[[C5:.*]] = arith.constant 5 : index
// CHECK:       %[[FEW:.*]] = arith.cmpi slt, %[[N]], %[[C5]] : index
// CHECK:       %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK:       %[[ENTRY:.*]] = memref.load %[[TABLE]][%{{.*}}]
// CHECK:       %[[AT:.*]] = arith.index_cast %[[ENTRY]]
// CHECK:       arith.minsi %[[AT]], %[[SIZE]]
// CHECK:       scf.if %[[FEW]]
// CHECK:         tile.broadcast %[[S]] : f32
func.func @captured(%x: tensor<?x16xf32>, %table: tensor<8xi32>, %s: f32, %n: index) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %size = tensor.dim %x, %c0 : tensor<?x16xf32>
  %few = arith.cmpi slt, %n, %c5 : index
  %e = tensor.empty(%size) : tensor<?x16xf32>
  %r = scf.forall (%i) = (0) to (8) step (1) shared_outs(%o = %e) -> (tensor<?x16xf32>) {
    %entry = tensor.extract %table[%i] : tensor<8xi32>
    %at = arith.index_cast %entry : i32 to index
    %row = arith.minsi %at, %size : index
    %0 = tensor.extract_slice %x[%row, 0] [16, 16] [1, 1] : tensor<?x16xf32> to tensor<16x16xf32>
    %1 = tensor.empty() : tensor<16x16xf32>
    %2 = scf.if %few -> (tensor<16x16xf32>) {
      %3 = linalg.generic {indexing_maps = [#m, affine_map<(i, j) -> ()>, #m], iterator_types = ["parallel", "parallel"]}
          ins(%0, %s : tensor<16x16xf32>, f32) outs(%1 : tensor<16x16xf32>) {
      ^bb0(%a: f32, %b: f32, %unused: f32):
        %4 = arith.mulf %a, %b : f32
        linalg.yield %4 : f32
      } -> tensor<16x16xf32>
      scf.yield %3 : tensor<16x16xf32>
    } else {
      scf.yield %0 : tensor<16x16xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[%row, 0] [16, 16] [1, 1] : tensor<16x16xf32> into tensor<?x16xf32>
    }
  }
  return %r : tensor<?x16xf32>
}

// The order of the loop, and what the schedule says of kernels with products.

// CHECK-LABEL: gpu.func @attributes(
// CHECK-SAME:  flash.schedule = #flash.schedule<warps = 2, stages = 3>
// CHECK-SAME:  known_block_size = array<i32: 64, 1, 1>
// CHECK:       tile.position %{{.*}} of(%{{.*}}, %{{.*}}) longest_first
// CHECK:       tile.mma_async {{.*}} #tile.fragment<2>
func.func @attributes(%q: tensor<2x128x16xf16>) -> tensor<2x128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x128x32xf32>
  %r = scf.forall (%h, %i) = (0, 0) to (2, 128) step (1, 32) shared_outs(%o = %e) -> (tensor<2x128x32xf32>) {
    %qt = tensor.extract_slice %q[%h, %i, 0] [1, 32, 16] [1, 1, 1] : tensor<2x128x16xf16> to tensor<32x16xf16>
    %0 = tensor.empty() : tensor<32x32xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%qt, %qt : tensor<32x16xf16>, tensor<32x16xf16>) outs(%1 : tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %2 into %o[%h, %i, 0] [1, 32, 32] [1, 1, 1] : tensor<32x32xf32> into tensor<2x128x32xf32>
    }
  } {tile.order = #tile.order<longest_first>, flash.schedule = #flash.schedule<warps = 2, stages = 3>}
  return %r : tensor<2x128x32xf32>
}

// Without a schedule, the rows of all matrices say among how many warps they are
// shared: four at most.

// CHECK-LABEL: gpu.func @warps(
// CHECK-SAME:  known_block_size = array<i32: 96, 1, 1>
// CHECK:       tile.position %{{.*}} of(%{{.*}}) linear
// CHECK:       tensor<96x16xf32, #tile.fragment<3>>
func.func @warps(%x: tensor<96x16xf32>) -> tensor<96x16xf32> {
  %e = tensor.empty() : tensor<96x16xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<96x16xf32>) {
    %0 = arith.addf %x, %x : tensor<96x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [96, 16] [1, 1] : tensor<96x16xf32> into tensor<96x16xf32>
    }
  }
  return %r : tensor<96x16xf32>
}
