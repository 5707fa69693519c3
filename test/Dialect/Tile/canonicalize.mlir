// RUN: flash-opt %s --canonicalize | FileCheck %s

// A ring that nobody uses, as where a mask leaves nothing of a loop, is dropped: its
// barriers would wait for no arrivals, which the driver does not assemble.

gpu.module @m {
  // CHECK-LABEL: gpu.func @unused_ring
  // CHECK-NOT:   tile.ring
  // CHECK:       gpu.return
  gpu.func @unused_ring() kernel {
    %ring = tile.ring checked : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
    gpu.return
  }
}
