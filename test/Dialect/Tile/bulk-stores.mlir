// Results of 16 bits go through shared memory, as many panels of columns at a
// time as the rings leave room for.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores{limit=49200})))" | FileCheck %s --check-prefix=HALF
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores{limit=40000})))" | FileCheck %s --check-prefix=NONE

!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>
!memory = memref<?x?x?x128xf16, strided<[?, ?, ?, 1], offset: ?>>
!wide = memref<?x?x?x128xf32, strided<[?, ?, ?, 1], offset: ?>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @kernel(
  // CHECK:       tile.store_bulk %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}}) through !tile.smem<128x128xf16, swizzle = 128>
  // Results of 32 bits do not.
  // CHECK:       tile.store %
  // Nor do those of kernels without roles.
  // CHECK-LABEL: gpu.func @no_roles(
  // CHECK:       tile.store %
  // HALF-LABEL:  gpu.func @kernel(
  // HALF:        through !tile.smem<128x64xf16, swizzle = 128>
  // NONE-LABEL:  gpu.func @kernel(
  // NONE-NOT:    tile.store_bulk
  gpu.func @kernel(%out: !memory, %out32: !wide, %x: tensor<128x128xf16, #tile.fragment<8>>,
                   %y: tensor<128x128xf32, #tile.fragment<8>>, %i: index) kernel attributes {tile.bulk_store} {
    %ring = tile.ring : !ring
    tile.warp_specialize consumers(8, registers = 240) {
      tile.store %x, %out[%i, %i, %i] rows(%i) : tensor<128x128xf16, #tile.fragment<8>> to !memory
      tile.store %y, %out32[%i, %i, %i] : tensor<128x128xf32, #tile.fragment<8>> to !wide
    } producer(registers = 24) {
    }
    gpu.return
  }
  gpu.func @no_roles(%out: !memory, %x: tensor<128x128xf16, #tile.fragment<8>>, %i: index) kernel attributes {tile.bulk_store} {
    tile.store %x, %out[%i, %i, %i] : tensor<128x128xf16, #tile.fragment<8>> to !memory
    gpu.return
  }
}
