// RUN: flash-opt %s --allow-unregistered-dialect --flash-cpu-yield-in-place | FileCheck %s

// The new maximum is read after the old one was overwritten, so that it needs
// a buffer of its own and is copied back.

// CHECK-LABEL: func.func @read_after_update
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}})
// CHECK:   %[[NEW:.*]] = linalg.max
// CHECK:   linalg.sub ins(%[[M]], %[[NEW]]
// CHECK:   %[[KEPT:.*]] = linalg.copy ins(%[[NEW]] : {{.*}}) outs(%[[M]] :
// CHECK:   scf.yield %[[KEPT]]
func.func @read_after_update(%m0: tensor<64xf32>, %x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0) -> (tensor<64xf32>) {
    %new = linalg.max ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
    %e = tensor.empty() : tensor<64xf32>
    %d = linalg.sub ins(%m, %new : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    "test.use"(%d) : (tensor<64xf32>) -> ()
    scf.yield %new : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// CHECK-LABEL: func.func @in_place
// CHECK-NOT: linalg.copy
func.func @in_place(%m0: tensor<64xf32>, %x: tensor<64xf32>, %n: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0) -> (tensor<64xf32>) {
    %new = linalg.add ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
    scf.yield %new : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// Both branches of a choice update the carried tensor.

// CHECK-LABEL: func.func @both_branches
// CHECK-NOT: linalg.copy
// CHECK:     return
func.func @both_branches(%m0: tensor<64xf32>, %x: tensor<64xf32>, %n: index, %c: i1) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0) -> (tensor<64xf32>) {
    %new = linalg.add ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
    %chosen = scf.if %c -> (tensor<64xf32>) {
      %a = linalg.mul ins(%new, %x : tensor<64xf32>, tensor<64xf32>) outs(%new : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    } else {
      %a = linalg.sub ins(%new, %x : tensor<64xf32>, tensor<64xf32>) outs(%new : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    }
    scf.yield %chosen : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// One branch gives another tensor; or a later one still reads what both update.

// CHECK-LABEL: func.func @one_branch
// CHECK:     linalg.copy
// CHECK-LABEL: func.func @read_after_choice
// CHECK:     linalg.copy
func.func @one_branch(%m0: tensor<64xf32>, %x: tensor<64xf32>, %n: index, %c: i1) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0) -> (tensor<64xf32>) {
    %chosen = scf.if %c -> (tensor<64xf32>) {
      %a = linalg.mul ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    } else {
      scf.yield %x : tensor<64xf32>
    }
    scf.yield %chosen : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
func.func @read_after_choice(%m0: tensor<64xf32>, %x: tensor<64xf32>, %n: index, %c: i1) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0) -> (tensor<64xf32>) {
    %chosen = scf.if %c -> (tensor<64xf32>) {
      %a = linalg.mul ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    } else {
      %a = linalg.sub ins(%m, %x : tensor<64xf32>, tensor<64xf32>) outs(%m : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %a : tensor<64xf32>
    }
    "test.use"(%m) : (tensor<64xf32>) -> ()
    scf.yield %chosen : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
