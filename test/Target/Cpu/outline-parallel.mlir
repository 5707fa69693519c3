// RUN: flash-opt %s --flash-cpu-outline-parallel | FileCheck %s

// CHECK-LABEL: func.func @scale
// CHECK: %[[CONTEXT:.*]] = llvm.alloca
// CHECK: llvm.store
// CHECK: %[[BODY:.*]] = llvm.mlir.addressof @scale_parallel_0
// CHECK: llvm.call @flash_parallel_for(%{{.*}}, %[[BODY]], %[[CONTEXT]])
// CHECK-NOT: scf.forall
// CHECK: return
func.func @scale(%a: memref<8x2048xf32>, %factor: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.forall (%h, %i) = (0, 0) to (8, 2048) step (1, 64) {
    scf.for %k = %c0 to %c4 step %c1 {
      %t = memref.alloc() : memref<16xf32>
      memref.store %factor, %t[%k] : memref<16xf32>
      %x = memref.load %t[%c0] : memref<16xf32>
      memref.store %x, %a[%h, %i] : memref<8x2048xf32>
      memref.dealloc %t : memref<16xf32>
    }
  }
  return
}

// The last dimension is walked from its end. The buffer of each iteration is
// on the stack, once. Constants are known to the body.

// CHECK-LABEL: llvm.func internal @scale_parallel_0
// CHECK-SAME: (%[[C:.*]]: !llvm.ptr, %[[L:.*]]: i64)
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK: %[[LINEAR:.*]] = builtin.unrealized_conversion_cast %[[L]] : i64 to index
// CHECK: %[[PLACE:.*]] = arith.remui %[[LINEAR]], %c32
// CHECK: arith.divui %[[LINEAR]], %c32
// CHECK: arith.subi %{{.*}}, %[[PLACE]]
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.dealloc
// CHECK: llvm.return

// CHECK-LABEL: func.func @nested
// CHECK: llvm.func internal @nested_parallel_1
// CHECK: scf.for
// CHECK-NOT: scf.forall
func.func @nested(%a: memref<8x8xf32>, %x: f32) {
  scf.forall (%i) in (8) {
    scf.forall (%j) in (8) {
      memref.store %x, %a[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// The iterations of a loop that is mapped to warpgroups wait for one another, and
// have a thread each. Each block has a context of its own.

// CHECK-LABEL: func.func @roles
// CHECK: llvm.func internal @roles_parallel_2
// CHECK: llvm.alloca
// CHECK: %[[BODY:.*]] = llvm.mlir.addressof @roles_parallel_2_concurrent_3
// CHECK: llvm.call @flash_concurrent_for(%{{.*}}, %[[BODY]], %{{.*}})
// CHECK: llvm.return
// CHECK: llvm.func internal @roles_parallel_2_concurrent_3
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// CHECK-NOT: scf.forall
func.func @roles(%a: memref<8x8xf32>, %x: f32) {
  scf.forall (%i) in (8) {
    scf.forall (%j) in (2) {
      %t = memref.alloc() : memref<16xf32>
      memref.store %x, %t[%j] : memref<16xf32>
      memref.store %x, %a[%i, %j] : memref<8x8xf32>
      memref.dealloc %t : memref<16xf32>
    } {mapping = [#gpu.warpgroup<linear_dim_0>]}
  }
  return
}
