// Kernels of both branches of a choice by what a kernel writes are launched, and end at once where the other one is chosen.
// RUN: flash-opt %s --tile-choose-on-device --split-input-file --verify-diagnostics | FileCheck %s

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.module @kernels
  gpu.module @kernels {
    // CHECK: gpu.func @flag(%{{.*}}: memref<1xi32>) kernel
    gpu.func @flag(%flag: memref<1xi32>) kernel {
      gpu.return
    }
    // The kernel itself is launched elsewhere.
    // CHECK:      gpu.func @add(%{{.*}}: memref<?xf32>) kernel
    // CHECK-NEXT:   gpu.return
    // CHECK:      gpu.func @[[THEN:.*]](%{{.*}}: memref<?xf32>, %[[FLAG:.*]]: memref<1xi32>) kernel
    // CHECK:        %[[E:.*]] = memref.load %[[FLAG]][%c0{{.*}}]
    // CHECK:        %[[IS:.*]] = arith.cmpi ne, %[[E]], %c0_i32
    // CHECK:        %[[NOT:.*]] = arith.xori %[[IS]], %true
    // CHECK:        tile.end_block_if %[[NOT]]
    gpu.func @add(%x: memref<?xf32>) kernel {
      gpu.return
    }
    // CHECK-NOT:  gpu.func @sub(
    // CHECK:      gpu.func @[[ELSE:.*]](%{{.*}}: memref<?xf32>, %[[FLAG:.*]]: memref<1xi32>) kernel
    // CHECK:        %[[IS:.*]] = arith.cmpi ne
    // CHECK-NEXT:   tile.end_block_if %[[IS]]
    gpu.func @sub(%x: memref<?xf32>) kernel {
      gpu.return
    }
    // A kernel of one thread does too little to end before.
    // CHECK:      gpu.func @zero(%{{.*}}: memref<?xf32>) kernel
    gpu.func @zero(%x: memref<?xf32>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
  // CHECK-LABEL: func.func @choice(
  // CHECK:         %[[FLAG:.*]] = memref.alloc() : memref<1xi32>
  // CHECK-NOT:     scf.if
  // CHECK-NOT:     tensor.extract
  // CHECK:         %[[X:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
  // CHECK:         %[[SCRATCH:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
  // CHECK:         gpu.launch_func {{ *}}@kernels::@[[THEN]] {{.*}} args(%[[SCRATCH]] : memref<?xf32>, %[[FLAG]] : memref<1xi32>)
  // CHECK:         gpu.launch_func {{ *}}@kernels::@zero {{.*}} args(%[[SCRATCH]] : memref<?xf32>)
  // CHECK:         gpu.launch_func {{ *}}@kernels::@[[THEN]] {{.*}} args(%[[X]] : memref<?xf32>, %[[FLAG]] : memref<1xi32>)
  // CHECK:         gpu.launch_func {{ *}}@kernels::@[[THEN]] {{.*}} args(%[[X]] : memref<?xf32>, %[[FLAG]] : memref<1xi32>)
  // CHECK:         %[[R:.*]] = bufferization.to_tensor %[[X]]
  // What the branch allocates besides it gives back.
  // CHECK:         memref.dealloc %[[SCRATCH]]
  // CHECK-NOT:     memref.alloc
  // CHECK:         gpu.launch_func {{ *}}@kernels::@[[ELSE]] {{.*}} args(%[[X]] : memref<?xf32>, %[[FLAG]] : memref<1xi32>)
  // CHECK:         gpu.launch_func {{ *}}@kernels::@add {{.*}} args(%{{.*}} : memref<?xf32>)
  // CHECK:         return %[[R]]
  func.func @choice(%n: index) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %flag = memref.alloc() : memref<1xi32>
    gpu.launch_func @kernels::@flag blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi32>)
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    %r = scf.if %is -> tensor<?xf32> {
      %scratch = memref.alloc(%n) : memref<?xf32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%scratch : memref<?xf32>)
      %x = memref.alloc(%n) : memref<?xf32>
      gpu.launch_func @kernels::@zero blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%scratch : memref<?xf32>)
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
      %y = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
      scf.yield %y : tensor<?xf32>
    } else {
      %x = memref.alloc(%n) : memref<?xf32>
      gpu.launch_func @kernels::@sub blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
      %y = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
      scf.yield %y : tensor<?xf32>
    }
    %m = bufferization.to_buffer %r : tensor<?xf32> to memref<?xf32>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>)
    return %r : tensor<?xf32>
  }
  // What the host knows it chooses itself.
  // CHECK-LABEL: func.func @by_host(
  // CHECK:         scf.if
  func.func @by_host(%is: i1, %x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    scf.if %is {
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    }
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%x: memref<1xi32>) kernel {
      gpu.return
    }
  }
  func.func @argument(%x: tensor<1xi32>) -> tensor<1xi32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %flag = memref.alloc() : memref<1xi32>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi32>)
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    // expected-error @below {{chooses by what a kernel writes, which the device can do between results of kernels alone, each computed in its branch and yielded once; compute both, or use --target=cpu}}
    %r = scf.if %is -> tensor<1xi32> {
      %m = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y : tensor<1xi32>
    } else {
      scf.yield %x : tensor<1xi32>
    }
    return %r : tensor<1xi32>
  }
}

// -----

// Memory from before the choice has other uses.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%x: memref<1xi32>) kernel {
      gpu.return
    }
  }
  func.func @before() -> tensor<1xi32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %flag = memref.alloc() : memref<1xi32>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi32>)
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    // expected-error @below {{each computed in its branch and yielded once}}
    %r = scf.if %is -> tensor<1xi32> {
      scf.yield %t : tensor<1xi32>
    } else {
      %m = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y : tensor<1xi32>
    }
    return %r : tensor<1xi32>
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%x: memref<1xi32>) kernel {
      gpu.return
    }
  }
  func.func @twice() -> (tensor<1xi32>, tensor<1xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %flag = memref.alloc() : memref<1xi32>
    gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi32>)
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    // expected-error @below {{each computed in its branch and yielded once}}
    %r:2 = scf.if %is -> (tensor<1xi32>, tensor<1xi32>) {
      %m = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y, %y : tensor<1xi32>, tensor<1xi32>
    } else {
      %m = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      %n = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%n : memref<1xi32>)
      %z = bufferization.to_tensor %n restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y, %z : tensor<1xi32>, tensor<1xi32>
    }
    return %r#0, %r#1 : tensor<1xi32>, tensor<1xi32>
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @one(%x: memref<1xi32>) kernel attributes {known_block_size = array<i32: 1, 1, 1>} {
      gpu.return
    }
  }
  func.func @one_thread() -> tensor<1xi32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c0_i32 = arith.constant 0 : i32
    %flag = memref.alloc() : memref<1xi32>
    gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%flag : memref<1xi32>)
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    %r = scf.if %is -> tensor<1xi32> {
      %m = memref.alloc() : memref<1xi32>
      // expected-error @below {{has blocks of one thread, which cannot end before they store a result of a choice}}
      gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y : tensor<1xi32>
    } else {
      %m = memref.alloc() : memref<1xi32>
      gpu.launch_func @kernels::@one blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<1xi32>)
      %y = bufferization.to_tensor %m restrict : memref<1xi32> to tensor<1xi32>
      scf.yield %y : tensor<1xi32>
    }
    return %r : tensor<1xi32>
  }
}
