// The second of two launches becomes dependent: its kernel waits before it first
// touches global memory, and the first one lets it start.
// RUN: flash-opt %s --tile-overlap-launches | FileCheck %s
// Once done, there is nothing left to do.
// RUN: flash-opt %s --tile-overlap-launches -o %t.mlir
// RUN: flash-opt %t.mlir --tile-overlap-launches | diff %t.mlir -

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @chain(
  // CHECK:         launch_func @kernels::@first
  // CHECK-NOT:     tile.dependent
  // CHECK:         memref.dim
  // CHECK-NEXT:    launch_func @kernels::@both {{.*}} {tile.dependent}
  // CHECK-NEXT:    launch_func @kernels::@last {{.*}} {tile.dependent}
  func.func @chain(%x: memref<?xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    %d = memref.dim %x, %c0 : memref<?xf32>
    gpu.launch_func @kernels::@both blocks in (%d, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@last blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    return
  }
  // Which of them is the last one before is not known.
  // CHECK-LABEL: func.func @choice(
  // CHECK-NOT:     tile.dependent
  // CHECK:         scf.if
  // CHECK:           launch_func @kernels::@alone
  // CHECK-NEXT:      launch_func @kernels::@last {{.*}} {tile.dependent}
  // CHECK-NEXT:    }
  // CHECK-NEXT:    launch_func @kernels::@alone
  // CHECK-NOT:     tile.dependent
  // CHECK:         return
  func.func @choice(%x: memref<?xf32>, %n: index, %p: i1) {
    gpu.launch_func @kernels::@alone blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    scf.if %p {
      gpu.launch_func @kernels::@alone blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
      gpu.launch_func @kernels::@last blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    }
    gpu.launch_func @kernels::@alone blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    return
  }
  gpu.module @kernels {
    // CHECK:      gpu.func @first(
    // CHECK-NEXT:   tile.launch_dependents
    // CHECK-NOT:    tile.await_dependencies
    gpu.func @first(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
    // Until it goes on itself, the next one would only take up room.
    // CHECK:      gpu.func @both(
    // CHECK-NEXT:   gpu.block_id
    // CHECK-NEXT:   memref.dim
    // CHECK-NEXT:   tile.await_dependencies
    // CHECK-NEXT:   tile.launch_dependents
    // CHECK-NEXT:   scf.for
    gpu.func @both(%x: memref<?xf32>) kernel {
      %i = gpu.block_id x
      %n = memref.dim %x, %i : memref<?xf32>
      scf.for %j = %i to %n step %n {
        %s = memref.load %x[%j] : memref<?xf32>
        memref.store %s, %x[%j] : memref<?xf32>
      }
      gpu.return
    }
    // It must end behind those before it also where it touches nothing.
    // CHECK:      gpu.func @last(
    // CHECK-NEXT:   tile.await_dependencies
    // CHECK-NEXT:   gpu.return
    gpu.func @last(%x: memref<?xf32>) kernel {
      gpu.return
    }
    // CHECK:      gpu.func @alone(
    // CHECK-NEXT:   tile.launch_dependents
    gpu.func @alone(%x: memref<?xf32>) kernel {
      gpu.return
    }
  }
}
