// Kernels that differ in their names only become one.
// RUN: flash-opt %s --tile-merge-kernels | FileCheck %s

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @launches(
  // CHECK-NEXT:    launch_func @kernels::@first
  // CHECK-NEXT:    launch_func @kernels::@first
  // CHECK-NEXT:    launch_func @kernels::@constant
  // CHECK-NEXT:    launch_func @kernels::@type
  // CHECK-NEXT:    launch_func @kernels::@schedule
  // CHECK-NEXT:    launch_func @others::@same
  func.func @launches(%x: memref<?xf32>, %y: memref<8xf32>, %n: index) {
    gpu.launch_func @kernels::@first blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@same blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@constant blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    gpu.launch_func @kernels::@type blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%y : memref<8xf32>)
    gpu.launch_func @kernels::@schedule blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    gpu.launch_func @others::@same blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : memref<?xf32>)
    return
  }
  // CHECK:      gpu.module @kernels
  // CHECK-NEXT:   gpu.func @first(
  // CHECK-NOT:    @same
  // CHECK:        gpu.func @constant(
  // CHECK:        gpu.func @type(
  // CHECK:        gpu.func @schedule(
  gpu.module @kernels {
    gpu.func @first(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
    gpu.func @same(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
    gpu.func @constant(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 1 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
    gpu.func @type(%x: memref<8xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<8xf32>
      memref.store %s, %x[%c0] : memref<8xf32>
      gpu.return
    }
    gpu.func @schedule(%x: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<warps = 4>} {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
  }
  // Modules are loaded one by one.
  // CHECK:      gpu.module @others
  // CHECK-NEXT:   gpu.func @same(
  gpu.module @others {
    gpu.func @same(%x: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.load %x[%c0] : memref<?xf32>
      memref.store %s, %x[%c0] : memref<?xf32>
      gpu.return
    }
  }
}
