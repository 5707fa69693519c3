// A dequantized tile has a ring of one stage, which all threads fill; the tile of 8 bits is released behind it, so that the next one
// can be copied while this one is multiplied.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings,tile-verify-async)))" | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @loop
  // CHECK-DAG:     %[[FACTORS:.*]] = tile.ring : <1, <16x32xf16, swizzle = 64>>
  // CHECK-DAG:     %[[BYTES:.*]] = tile.ring : <2, <16x32xi8, swizzle = 32>>
  // CHECK:         scf.for
  // CHECK:           tile.ring.acquire %[[BYTES]][%[[STEP:.*]]]
  // CHECK:           tile.copy_async {{.*}} to %[[BYTES]][%[[STEP]]]
  // CHECK:           %[[TILE:.*]] = tile.ring.wait %[[BYTES]][%[[STEP]]]
  // CHECK:           tile.ring.acquire %[[FACTORS]][%[[STEP]]]
  // CHECK-NEXT:      tile.ring.dequantize %[[TILE]] to %[[FACTORS]][%[[STEP]]]
  // CHECK-NEXT:      ^bb0(
  // CHECK-NEXT:        tile.yield
  // CHECK:           tile.ring.release %[[BYTES]][%[[STEP]]]
  // CHECK:           %[[FACTOR:.*]] = tile.ring.wait %[[FACTORS]][%[[STEP]]]
  // CHECK:           tile.load %[[FACTOR]]
  // CHECK:           tile.ring.release %[[FACTORS]][%[[STEP]]]
  gpu.func @loop(%k: memref<?x32xi8, strided<[?, 1]>>, %n: index, %s: f32) kernel attributes {flash.schedule = #flash.schedule<stages = 2>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %n step %c16 {
      %t = tile.fetch %k[%i] : memref<?x32xi8, strided<[?, 1]>> to !tile.smem<16x32xi8, swizzle = 32>
      %f = tile.dequantize %t : !tile.smem<16x32xi8, swizzle = 32> to !tile.smem<16x32xf16, swizzle = 64> {
      ^bb0(%row: index):
        tile.yield %s : f32
      }
      %x = tile.load %f : !tile.smem<16x32xf16, swizzle = 64> to tensor<16x32xf16, #tile.fragment<1>>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @roles(%s: f32, %t: !tile.smem<16x32xi8, swizzle = 32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %ring = tile.ring : !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      tile.ring.acquire %ring[%c0] : !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>>
      // expected-error @below {{is for warps without roles}}
      tile.ring.dequantize %t to %ring[%c0] : !tile.smem<16x32xi8, swizzle = 32> to !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>> {
      ^bb0(%row: index):
        tile.yield %s : f32
      }
      %f = tile.ring.wait %ring[%c0] : !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>>
      tile.ring.release %ring[%c0] : !tile.ring<1, !tile.smem<16x32xf16, swizzle = 64>>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}
