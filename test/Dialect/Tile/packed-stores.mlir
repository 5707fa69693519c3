// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s

!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>
!wide = memref<2x64x512x128xf16, strided<[?, ?, ?, 1]>>

gpu.module @m {
  // Such rows are no box of the memory, of which there could be less: each thread
  // stores its own. Nor do other results take the stage of such a tile.
  // CHECK-LABEL: gpu.func @roles(
  // CHECK:         tile.ring : 
  // CHECK:         tile.store %{{.*}} packed(4)
  // CHECK:         tile.store_bulk %{{.*}} through !tile.smem<128x128xf16, swizzle = 128> :
  gpu.func @roles(%q: !wide, %x: tensor<128x128xf16, #tile.fragment<8>>, %n: index) kernel attributes
      {known_block_size = array<i32: 384, 1, 1>, flash.schedule = #flash.schedule<features = specialize_warps|bulk_store>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %t = %c0 to %n step %c1 {
        %qt = tile.ring.wait %r[%t] : !ring
        tile.store %x, %q[%c0, %t, %c0] packed(4) : tensor<128x128xf16, #tile.fragment<8>> to !wide
        tile.store %x, %q[%c0, %c0, %t] : tensor<128x128xf16, #tile.fragment<8>> to !wide
        tile.ring.release %r[%t] : !ring
      }
    } @producer(warps = 1, registers = 24) {
      scf.for %t = %c0 to %n step %c1 {
        tile.ring.acquire %r[%t] : !ring
        tile.copy_async %q[%c0, %t, %c0] packed(4) to %r[%t] : !wide to !ring
      }
    }
    gpu.return
  }
}
