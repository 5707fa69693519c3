// RUN: flash-opt %s --tile-allocate-smem | FileCheck %s
// RUN: not flash-opt %s --tile-allocate-smem=limit=7167 2>&1 | FileCheck %s --check-prefix=LIMIT

// Every stage starts at a multiple of 1024 bytes.

// CHECK-LABEL: func.func @launch
// CHECK:       %[[BYTES:.*]] = arith.constant 7168 : i32
// CHECK:       gpu.launch_func @m::@rings {{.*}} dynamic_shared_memory_size %[[BYTES]]
// CHECK:       %[[ROLES:.*]] = arith.constant 7216 : i32
// CHECK:       gpu.launch_func @m::@roles {{.*}} dynamic_shared_memory_size %[[ROLES]]
// CHECK:       %[[NONE:.*]] = arith.constant 0 : i32
// CHECK:       gpu.launch_func @m::@nothing {{.*}} dynamic_shared_memory_size %[[NONE]]
// CHECK-LABEL: gpu.func @rings
// CHECK:       tile.ring {offset = 0 : i64} : <2, <24x64xf16
// CHECK:       tile.ring {offset = 6144 : i64} : <1, <8x8xf16
// Barriers come behind all stages: two of 8 bytes for each stage.
// CHECK-LABEL: gpu.func @roles
// CHECK:       tile.ring {barriers = 7168 : i64, offset = 0 : i64} : <2, <24x64xf16
// CHECK:       tile.ring {barriers = 7200 : i64, offset = 6144 : i64} : <1, <8x8xf16

// LIMIT: error: the kernel 'rings' needs 7168 bytes of shared memory, and a block may have 7167; choose smaller tiles or fewer stages
module attributes {gpu.container_module} {
  func.func @launch() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@rings blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @m::@roles blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @m::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
  gpu.module @m {
    gpu.func @rings() kernel {
      // 3072 bytes are a multiple of 1024.
      %large = tile.ring : !tile.ring<2, !tile.smem<24x64xf16, swizzle = 128>>
      // 256 bytes are not.
      %small = tile.ring : !tile.ring<1, !tile.smem<8x8xf16, swizzle = 32>>
      gpu.return
    }
    gpu.func @roles() kernel {
      %large = tile.ring : !tile.ring<2, !tile.smem<24x64xf16, swizzle = 128>>
      %small = tile.ring : !tile.ring<1, !tile.smem<8x8xf16, swizzle = 32>>
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
      } @producer(warps = 1, registers = 40) {
      }
      gpu.return
    }
    gpu.func @nothing() kernel {
      gpu.return
    }
  }
}
