// Multiplications by factors that a condition makes other than one: warps for whose
// rows it holds nowhere leave them out, and all that it decides.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-skip-rescale)))" | FileCheck %s

!acc = tensor<32x16xf32, #tile.fragment<2>>
!rows = tensor<32xf32, #tile.rows<2>>
!lanes = tensor<32x4xf32, #tile.lanes<2>>
!keep = tensor<32xi1, #tile.rows<2>>

gpu.module @kernels {
  // Of the maximum of a row, lanes know enough before they exchange theirs: it is
  // above the bound where one of them is. A positive factor changes nothing.

  // CHECK-LABEL: gpu.func @lazy(
  // CHECK-SAME:  %[[ACC:[^,: ]*]]: tensor<32x16xf32, #tile.fragment<2>>, %[[MAX:[^,: ]*]]: tensor<32xf32, #tile.rows<2>>, %[[L:[^,: ]*]]: tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[BOUND:.*]] = arith.addf %[[MAX]],
  // CHECK:       %[[S:.*]] = arith.mulf %[[L]], %{{.*}} : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[BOUNDS:.*]] = tile.broadcast %[[BOUND]] : {{.*}} to tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[ABOVE:.*]] = arith.cmpf ogt, %[[S]], %[[BOUNDS]] : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[ANY:.*]] = tile.any %[[ABOVE]]
  // CHECK:       %[[C:.*]]:2 = scf.if %[[ANY]]
  // CHECK:         %[[T:.*]] = tile.reduce max %[[L]]
  // CHECK:         %[[IS:.*]] = arith.cmpf ogt, %{{.*}}, %[[BOUND]] : tensor<32xf32, #tile.rows<2>>
  // CHECK:         %[[NEWMAX:.*]] = arith.select %[[IS]],
  // CHECK:         math.exp2
  // CHECK:         %[[F:.*]] = arith.select %[[IS]],
  // CHECK:         scf.yield %[[NEWMAX]], %[[F]]
  // CHECK:       } else {
  // CHECK:         scf.yield %[[MAX]], %[[ONE:.*]] :
  // CHECK:       }
  // CHECK:       %[[SCALED:.*]] = scf.if %[[ANY]] -> (tensor<32x16xf32, #tile.fragment<2>>) {
  // CHECK:         %[[FS:.*]] = tile.broadcast %[[C]]#1
  // CHECK:         %[[P:.*]] = arith.mulf %[[ACC]], %[[FS]]
  // CHECK:         scf.yield %[[P]]
  // CHECK:       } else {
  // CHECK:         scf.yield %[[ACC]]
  // CHECK:       }
  // CHECK:       tile.store %[[SCALED]]
  // CHECK:       tile.store %[[C]]#0
  gpu.func @lazy(%acc: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %eight = arith.constant dense<8.0> : !rows
    %scale = arith.constant dense<0.125> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %x = arith.mulf %t, %scale : !rows
    %bound = arith.addf %max, %eight : !rows
    %above = arith.cmpf ogt, %x, %bound : !rows
    %new_max = arith.select %above, %x, %max : !keep, !rows
    %d = arith.subf %max, %x : !rows
    %e = math.exp2 %d : !rows
    %f = arith.select %above, %e, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %scaled = arith.mulf %acc, %fs : !acc
    tile.store %scaled, %m[%n] : !acc to memref<?x16xf32>
    tile.store %new_max, %v[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // Several matrices may be multiplied by the same factors.

  // CHECK-LABEL: gpu.func @two(
  // CHECK:       %[[ANY:.*]] = tile.any
  // CHECK:       %[[F:.*]] = scf.if %[[ANY]] -> (tensor<32xf32, #tile.rows<2>>)
  // CHECK:       %[[X:.*]] = scf.if %[[ANY]]
  // CHECK:         tile.broadcast %[[F]]
  // CHECK:         arith.mulf %arg0,
  // CHECK:         scf.yield %arg0
  // CHECK:       %[[Y:.*]] = scf.if %[[ANY]]
  // CHECK:         tile.broadcast %[[F]]
  // CHECK:         arith.mulf %{{.*}}, %arg1
  // CHECK:         scf.yield %arg1
  // CHECK:       tile.store %[[X]]
  // CHECK:       tile.store %[[Y]]
  gpu.func @two(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %e = math.exp2 %t : !rows
    %f = arith.select %above, %e, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    %y = arith.mulf %fs, %acc2 : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    tile.store %y, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // A matrix that is made later is multiplied where it was.

  // CHECK-LABEL: gpu.func @later(
  // CHECK:       %[[ANY:.*]] = tile.any
  // CHECK:       scf.if %[[ANY]] -> (tensor<32xf32, #tile.rows<2>>)
  // CHECK:       %[[W:.*]] = arith.addf %arg0, %arg1
  // CHECK:       scf.for {{.*}} iter_args(%[[A:.*]] = %[[W]])
  // CHECK:         scf.if %[[ANY]]
  // CHECK:           arith.mulf %[[A]],
  // CHECK:           scf.yield %[[A]]
  gpu.func @later(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %e = math.exp2 %t : !rows
    %f = arith.select %above, %e, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %w = arith.addf %acc, %acc2 : !acc
    %x = scf.for %i = %n to %n step %n iter_args(%a = %w) -> !acc {
      %y = arith.mulf %a, %fs : !acc
      scf.yield %y : !acc
    }
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // What is chosen where the condition does not hold is known outside.

  // CHECK-LABEL: gpu.func @otherwise(
  // CHECK:       %[[ANY:.*]] = tile.any
  // CHECK:       %[[OLD:.*]] = arith.mulf %arg2, %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:       scf.if %[[ANY]]
  // CHECK:       } else {
  // CHECK:         scf.yield %[[OLD]], %[[OLD]], %{{.*}} :
  gpu.func @otherwise(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %two = arith.constant dense<2.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %old = arith.mulf %max, %two : !rows
    %first = arith.select %above, %t, %old : !keep, !rows
    %second = arith.select %above, %max, %first : !keep, !rows
    %f = arith.select %above, %t, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    tile.store %second, %v[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // All else stays what it is.

  // A value that is asked for before all of them are decided;

  // CHECK-LABEL: gpu.func @early(
  // CHECK-NOT:   scf.if
  // CHECK:       tile.store
  gpu.func @early(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %new_max = arith.select %above, %t, %max : !keep, !rows
    tile.store %new_max, %v[%n] : !rows to memref<?xf32>
    %e = math.exp2 %t : !rows
    %f = arith.select %above, %e, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // factors other than one;

  // CHECK-LABEL: gpu.func @not_one(
  // CHECK-NOT:   scf.if
  // CHECK:       tile.store
  gpu.func @not_one(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %f = arith.select %above, %t, %max : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // a condition on sums, of which no lane knows enough;

  // CHECK-LABEL: gpu.func @of_sums(
  // CHECK-NOT:   scf.if
  // CHECK:       tile.store
  gpu.func @of_sums(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce add %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %f = arith.select %above, %t, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // on a maximum times a negative number, which was a minimum;

  // CHECK-LABEL: gpu.func @negative(
  // CHECK-NOT:   scf.if
  // CHECK:       tile.store
  gpu.func @negative(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %minus = arith.constant dense<-1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %y = arith.mulf %t, %minus : !rows
    %above = arith.cmpf ogt, %y, %max : !rows
    %f = arith.select %above, %t, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }

  // or on being below, which all lanes must be.

  // CHECK-LABEL: gpu.func @below(
  // CHECK-NOT:   scf.if
  // CHECK:       tile.store
  gpu.func @below(%acc: !acc, %acc2: !acc, %max: !rows, %l: !lanes, %m: memref<?x16xf32>, %v: memref<?xf32>, %n: index) kernel {
    %one = arith.constant dense<1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %is_below = arith.cmpf olt, %t, %max : !rows
    %f = arith.select %is_below, %t, %one : !keep, !rows
    %fs = tile.broadcast %f : !rows to !acc
    %x = arith.mulf %acc, %fs : !acc
    tile.store %x, %m[%n] : !acc to memref<?x16xf32>
    gpu.return
  }
}
