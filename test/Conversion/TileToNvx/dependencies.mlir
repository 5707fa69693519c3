// What lets kernels overlap is one instruction each.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))' | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @k(
  // CHECK-NEXT:    nvvm.griddepcontrol wait
  // CHECK-NEXT:    nvvm.griddepcontrol launch_dependents
  // CHECK-NEXT:    gpu.return
  gpu.func @k() kernel {
    tile.await_dependencies
    tile.launch_dependents
    gpu.return
  }
}
