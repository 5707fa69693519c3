// Whether a row's maximum is above a bound, lanes know before they shuffle theirs.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-any-of-lanes)))" | FileCheck %s

!tile = tensor<32x16xf32, #tile.fragment<2>>
!rows = tensor<32xf32, #tile.rows<2>>
!lanes = tensor<32x4xf32, #tile.lanes<2>>
!flags = tensor<32xi1, #tile.rows<2>>
!lane_flags = tensor<32x4xi1, #tile.lanes<2>>

gpu.module @kernels {
  // A positive factor changes nothing about which is the largest. What the vote
  // alone needs goes to it, but for the fold, which has been paid for.

  // CHECK-LABEL: gpu.func @lazy(
  // CHECK-SAME:  %[[X:[^,: ]*]]: tensor<32x16xf32, #tile.fragment<2>>, %[[MAX:[^,: ]*]]: tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[L:.*]] = tile.fold max %[[X]]
  // CHECK-NOT:   tile.reduce
  // CHECK:       %[[BOUND:.*]] = arith.addf %[[MAX]],
  // CHECK:       %[[S:.*]] = arith.mulf %[[L]], %{{.*}} : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[BOUNDS:.*]] = tile.broadcast %[[BOUND]] : {{.*}} to tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[ABOVE:.*]] = arith.cmpf ogt, %[[S]], %[[BOUNDS]] : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       %[[ANY:.*]] = tile.any %[[ABOVE]]
  // CHECK-NEXT:  %[[C:.*]] = scf.if %[[ANY]]
  // CHECK:         %[[T:.*]] = tile.reduce max %[[L]]
  // CHECK:         %[[TS:.*]] = arith.mulf %[[T]], %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:         arith.maxnumf %[[MAX]], %[[TS]]
  // CHECK:       } else {
  // CHECK-NEXT:    scf.yield %[[MAX]]
  gpu.func @lazy(%x: !tile, %max: !rows, %v: memref<?xf32>, %n: index) kernel {
    %low = arith.constant dense<0xFF800000> : !lanes
    %eight = arith.constant dense<8.0> : !rows
    %scale = arith.constant dense<0.125> : !rows
    %l = tile.fold max %x into %low : !tile into !lanes
    %t = tile.reduce max %l : !lanes to !rows
    %ts = arith.mulf %t, %scale : !rows
    %bound = arith.addf %max, %eight : !rows
    %above = arith.cmpf ogt, %ts, %bound : !rows
    %flags = tile.broadcast %above : !flags to !lane_flags
    %any = tile.any %flags : !lane_flags
    %c = scf.if %any -> !rows {
      %new = arith.maxnumf %max, %ts : !rows
      scf.yield %new : !rows
    } else {
      scf.yield %max : !rows
    }
    tile.store %c, %v[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // A maximum that others read is shuffled before, and so are its conditions.

  // CHECK-LABEL: gpu.func @shared(
  // CHECK:       %[[T:.*]] = tile.reduce max %[[L:.*]] :
  // CHECK:       arith.cmpf ogt, %[[T]], %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:       arith.cmpf ogt, %[[L]], %{{.*}} : tensor<32x4xf32, #tile.lanes<2>>
  // CHECK:       tile.any
  gpu.func @shared(%l: !lanes, %max: !rows, %v: memref<?xf32>, %n: index) kernel {
    %t = tile.reduce max %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %flags = tile.broadcast %above : !flags to !lane_flags
    %any = tile.any %flags : !lane_flags
    %c = scf.if %any -> !rows {
      scf.yield %t : !rows
    } else {
      scf.yield %max : !rows
    }
    %d = arith.select %above, %t, %c : !flags, !rows
    tile.store %d, %v[%n] : !rows to memref<?xf32>
    gpu.return
  }

  // All else stays what it is: a condition on a sum, of which no lane knows enough;

  // CHECK-LABEL: gpu.func @of_sums(
  // CHECK:       tile.reduce add
  // CHECK:       %[[ABOVE:.*]] = arith.cmpf ogt, %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[FLAGS:.*]] = tile.broadcast %[[ABOVE]]
  // CHECK:       tile.any %[[FLAGS]]
  gpu.func @of_sums(%l: !lanes, %max: !rows, %m: memref<?xi1>, %n: index) kernel {
    %t = tile.reduce add %l : !lanes to !rows
    %above = arith.cmpf ogt, %t, %max : !rows
    %flags = tile.broadcast %above : !flags to !lane_flags
    %any = tile.any %flags : !lane_flags
    memref.store %any, %m[%n] : memref<?xi1>
    gpu.return
  }

  // on a maximum times a negative number, which is a minimum;

  // CHECK-LABEL: gpu.func @negative(
  // CHECK:       %[[ABOVE:.*]] = arith.cmpf ogt, %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[FLAGS:.*]] = tile.broadcast %[[ABOVE]]
  // CHECK:       tile.any %[[FLAGS]]
  gpu.func @negative(%l: !lanes, %max: !rows, %m: memref<?xi1>, %n: index) kernel {
    %minus = arith.constant dense<-1.0> : !rows
    %t = tile.reduce max %l : !lanes to !rows
    %y = arith.mulf %t, %minus : !rows
    %above = arith.cmpf ogt, %y, %max : !rows
    %flags = tile.broadcast %above : !flags to !lane_flags
    %any = tile.any %flags : !lane_flags
    memref.store %any, %m[%n] : memref<?xi1>
    gpu.return
  }

  // or on being below, which all lanes must be.

  // CHECK-LABEL: gpu.func @below(
  // CHECK:       %[[BELOW:.*]] = arith.cmpf olt, %{{.*}} : tensor<32xf32, #tile.rows<2>>
  // CHECK:       %[[FLAGS:.*]] = tile.broadcast %[[BELOW]]
  // CHECK:       tile.any %[[FLAGS]]
  gpu.func @below(%l: !lanes, %max: !rows, %m: memref<?xi1>, %n: index) kernel {
    %t = tile.reduce max %l : !lanes to !rows
    %below = arith.cmpf olt, %t, %max : !rows
    %flags = tile.broadcast %below : !flags to !lane_flags
    %any = tile.any %flags : !lane_flags
    memref.store %any, %m[%n] : memref<?xi1>
    gpu.return
  }

  // Nothing moves to a choice by another condition.

  // CHECK-LABEL: gpu.func @another_choice(
  // CHECK:       math.exp2
  // CHECK:       scf.if
  gpu.func @another_choice(%max: !rows, %v: memref<?xf32>, %n: index, %c: i1) kernel {
    %e = math.exp2 %max : !rows
    %d = scf.if %c -> !rows {
      scf.yield %e : !rows
    } else {
      scf.yield %max : !rows
    }
    tile.store %d, %v[%n] : !rows to memref<?xf32>
    gpu.return
  }
}
