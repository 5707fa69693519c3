// What lets kernels overlap, or ends a block, is one instruction each.
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

// A block ends by an instruction, and its warps know that all of their lanes do, or none.
gpu.module @empty {
  // CHECK-LABEL: gpu.func @e(
  // CHECK-SAME:    %[[P:.*]]: i1
  // CHECK:         %[[ENDS:.*]] = arith.extui %[[P]] : i1 to i32
  // CHECK:         %[[SAME:.*]] = nvvm.shfl.sync idx {{.*}}, %[[ENDS]],
  // CHECK:         %[[ALL:.*]] = arith.cmpi ne, %[[SAME]],
  // CHECK:         nvvm.inline_ptx "exit;", predicate = %[[ALL]]
  gpu.func @e(%p: i1) kernel {
    tile.end_block_if %p
    gpu.return
  }
}
