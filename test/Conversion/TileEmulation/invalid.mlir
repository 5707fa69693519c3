// What tile-emulate refuses.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --tile-emulate

// expected-error @below {{the names flash_emulation_* and flash_location_* belong to tile-emulate}}
func.func private @flash_emulation_ring()

// -----

func.func @f() {
  // expected-error @below {{'tile.ring' op has no emulation: it is outside of any kernel}}
  %r = tile.ring : !tile.ring<1, !tile.smem<16x8xf32, swizzle = 32>>
  return
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // expected-error @below {{has no emulation: only kernels of one block, with structured control flow, have}}
    gpu.func @k(%i: index) kernel {
      cf.br ^next
    ^next:
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // expected-error @below {{has no emulation: it has attributions of memory}}
    gpu.func @k() workgroup(%x: memref<4xf32, 3>) kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      // expected-error @below {{'gpu.thread_id' op has no emulation: only the operations of block programs before tile-lower-rings have}}
      %i = gpu.thread_id x
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%i: index) kernel {
      // expected-error @below {{'tile.smem_view' op has no emulation: only the operations of block programs before tile-lower-rings have}}
      %t = tile.smem_view %i : !tile.smem<16x8xf32, swizzle = 32>
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    // expected-error @below {{has no emulation: it is asynchronous}}
    %token = gpu.launch_func async @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    // expected-error @below {{has no emulation: its blocks form clusters}}
    gpu.launch_func @kernels::@k clusters in (%n, %n, %n) blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    llvm.func @k() attributes {gpu.kernel} {
      llvm.return
    }
  }
  func.func @f(%n: index) {
    // expected-error @below {{has no emulation: @kernels::@k is no gpu.func}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
}

// -----

func.func @f(%x: tensor<16x8xf32, #tile.fragment<1>>) -> tensor<16x8xf32, #tile.fragment<1>> {
  // expected-error @below {{'arith.negf' op has no emulation: it is outside of any kernel}}
  %y = arith.negf %x : tensor<16x8xf32, #tile.fragment<1>>
  return %y : tensor<16x8xf32, #tile.fragment<1>>
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%i: index, %m: memref<4xf32>) kernel {
      %f = memref.load %m[%i] : memref<4xf32>
      %x = tile.broadcast %f : f32 to tensor<16x8xf32, #tile.fragment<1>>
      // expected-error @below {{failed to legalize operation 'tensor.extract'}}
      %e = tensor.extract %x[%i, %i] : tensor<16x8xf32, #tile.fragment<1>>
      memref.store %e, %m[%i] : memref<4xf32>
      gpu.return
    }
  }
  func.func @f(%n: index, %m: memref<4xf32>) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index, %m : memref<4xf32>)
    return
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @f(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
    // expected-error @below {{'gpu.launch_func' op is dependent, but @kernels::@k does not wait; give it a tile.await_dependencies}}
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) {tile.dependent}
    return
  }
}
