// RUN: flash-opt %s --tile-allocate-smem | FileCheck %s
// RUN: not flash-opt %s --flash-attach-target=keys=shared_bytes_per_block=6399 --tile-allocate-smem 2>&1 | FileCheck %s --check-prefix=LIMIT

// Every stage starts at a multiple of eight times its swizzle.

// CHECK-LABEL: func.func @launch
// CHECK:       %[[BYTES:.*]] = arith.constant 6400 : i32
// CHECK:       gpu.launch_func @m::@rings {{.*}} dynamic_shared_memory_size %[[BYTES]]
// CHECK:       %[[ROLES:.*]] = arith.constant 6496 : i32
// CHECK:       gpu.launch_func @m::@roles {{.*}} dynamic_shared_memory_size %[[ROLES]]
// CHECK:       %[[NONE:.*]] = arith.constant 0 : i32
// CHECK:       gpu.launch_func @m::@nothing {{.*}} dynamic_shared_memory_size %[[NONE]]
// CHECK:       %[[ROWS:.*]] = arith.constant 32 : i32
// CHECK:       gpu.launch_func @m::@rows {{.*}} dynamic_shared_memory_size %[[ROWS]]
// CHECK:       %[[REDUCTIONS:.*]] = arith.constant 768 : i32
// CHECK:       gpu.launch_func @m::@reductions {{.*}} dynamic_shared_memory_size %[[REDUCTIONS]]
// CHECK-LABEL: gpu.func @rings
// CHECK:       tile.ring {offset = 0 : i64} : <2, <24x64xf16
// CHECK:       tile.ring {offset = 6144 : i64} : <1, <8x8xf16
// Barriers come behind all stages: two of 8 bytes for each stage.
// CHECK-LABEL: gpu.func @roles
// CHECK:       tile.ring {barriers = 6400 : i64, offset = 0 : i64} : <2, <24x64xf16
// CHECK:       tile.ring {barriers = 6432 : i64, offset = 6144 : i64} : <1, <8x8xf16
// Behind them claimed tiles have two buffers for all roles, of 24 bytes each.
// CHECK-COUNT-2: tile.claim {{.*}} {offset = 6448 : i64}

// Warps that share rows exchange what they have: four bytes of each for each row.
// The reductions of a kernel have the same buffer.
// CHECK-LABEL: gpu.func @rows
// CHECK:       tile.reduce {{ *}}max %{{.*}} {offset = 0 : i64} : tensor<2x128xf32
// CHECK:       tile.reduce {{ *}}add %{{.*}} {offset = 0 : i64} : tensor<2x128xf32
// CHECK:       tile.reduce {{ *}}add %{{.*}} : tensor<8x32xf32

// Stores of one role go through the same bytes if a warpgroup's rows lie in the
// same of them: not those of narrower panels, nor those of other warps.
// CHECK-LABEL: gpu.func @stores
// CHECK:       tile.store_bulk {{.*}} through {{.*}}128x128xf16, swizzle = 128> {offset = 0 : i64}
// CHECK:       tile.store_bulk {{.*}} through {{.*}}128x64xf16, swizzle = 128> {offset = 0 : i64}
// CHECK:       tile.store_bulk {{.*}} through {{.*}}128x16xf16, swizzle = 32> {offset = 32768 : i64}
// CHECK:       tile.store_bulk {{.*}} through {{.*}}128x64xf16, swizzle = 128> {offset = 36864 : i64}

// What warps exchange has a buffer behind the rings, which two reductions share. A
// warp alone exchanges nothing.
// CHECK-LABEL: gpu.func @reductions
// CHECK:       tile.ring {offset = 0 : i64}
// CHECK:       tile.reduce_rows add %{{.*}} {offset = 256 : i64}
// CHECK:       tile.reduce_rows max %{{.*}} {offset = 256 : i64}
// CHECK:       tile.reduce_rows add %{{[^{]*}} : tensor<16x8xf32, #tile.fragment<1>>

// LIMIT: error: the kernel 'rings' needs 6400 bytes of shared memory, and a block may have 6399; choose smaller tiles or fewer stages
!wide = memref<?x?x?x128xf16, strided<[?, ?, ?, 1], offset: ?>>
!out = memref<?x?x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>
!narrow = memref<?x?x?x16xf16, strided<[?, ?, ?, 1], offset: ?>>
module attributes {gpu.container_module} {
  func.func @launch(%counts: memref<?xi32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@rings blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @m::@roles blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%counts : memref<?xi32>, %c1 : index)
    gpu.launch_func @m::@nothing blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @m::@rows blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @m::@reductions blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
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
    gpu.func @roles(%c: memref<?xi32>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %large = tile.ring : !tile.ring<2, !tile.smem<24x64xf16, swizzle = 128>>
      %small = tile.ring : !tile.ring<1, !tile.smem<8x8xf16, swizzle = 32>>
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        scf.for %i = %c0 to %n step %c1 {
          %t = tile.claim %i of %c[%c0] : memref<?xi32>
        }
      } @producer(warps = 1, registers = 40) {
        scf.for %i = %c0 to %n step %c1 {
          %t = tile.claim %i of %c[%c0] : memref<?xi32>
        }
      }
      gpu.return
    }
    gpu.func @nothing() kernel {
      gpu.return
    }
    gpu.func @rows() kernel {
      %x = arith.constant dense<1.0> : tensor<2x128xf32, #tile.warp_rows<8, 1, 128>>
      %y = arith.constant dense<1.0> : tensor<8x32xf32, #tile.warp_rows<8, 1>>
      %0 = tile.reduce max %x : tensor<2x128xf32, #tile.warp_rows<8, 1, 128>> to tensor<2xf32, #tile.warp_rows<8, 1, 128>>
      %1 = tile.reduce add %x : tensor<2x128xf32, #tile.warp_rows<8, 1, 128>> to tensor<2xf32, #tile.warp_rows<8, 1, 128>>
      %2 = tile.reduce add %y : tensor<8x32xf32, #tile.warp_rows<8, 1>> to tensor<8xf32, #tile.warp_rows<8, 1>>
      gpu.return
    }
    gpu.func @stores(%wide: !wide, %out: !out, %narrow: !narrow,
                     %x: tensor<128x128xf16, #tile.fragment<8>>, %y: tensor<128x64xf16, #tile.fragment<8>>,
                     %z: tensor<128x16xf16, #tile.fragment<8>>, %i: index) kernel {
      tile.warp_specialize @consumer(warps = 8, registers = 160) {
        tile.store_bulk %x, %wide[%i, %i, %i] through !tile.smem<128x128xf16, swizzle = 128> : tensor<128x128xf16, #tile.fragment<8>> to !wide
        tile.store_bulk %y, %out[%i, %i, %i] through !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to !out
        tile.store_bulk %z, %narrow[%i, %i, %i] through !tile.smem<128x16xf16, swizzle = 32> : tensor<128x16xf16, #tile.fragment<8>> to !narrow
      } @other(warps = 8, registers = 24) {
        tile.store_bulk %y, %out[%i, %i, %i] through !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to !out
      }
      gpu.return
    }
    gpu.func @reductions() kernel {
      %small = tile.ring : !tile.ring<1, !tile.smem<8x8xf16, swizzle = 32>>
      %x = arith.constant dense<0.0> : tensor<128x32xf32, #tile.fragment<4>>
      %y = arith.constant dense<0.0> : tensor<128x8xf32, #tile.fragment<4>>
      %z = arith.constant dense<0.0> : tensor<16x8xf32, #tile.fragment<1>>
      %a = tile.reduce_rows add %x : tensor<128x32xf32, #tile.fragment<4>> to tensor<32xf32, #tile.columns<4>>
      %b = tile.reduce_rows max %y : tensor<128x8xf32, #tile.fragment<4>> to tensor<8xf32, #tile.columns<4>>
      %c = tile.reduce_rows add %z : tensor<16x8xf32, #tile.fragment<1>> to tensor<8xf32, #tile.columns<1>>
      gpu.return
    }
  }
}
