// An argument that is an index of a copy or of a store is no memory to look at.
// RUN: flash-opt %s --tile-assert-strides | FileCheck %s

// CHECK-LABEL: func.func @launch(
// CHECK-COUNT-1: memref.assume_alignment
// CHECK-NOT:   memref.assume_alignment
// CHECK:       gpu.launch_func {{.*}} {tile.store_vector_widths = array<i64: 0, 0, 2>}
module attributes {gpu.container_module} {
  func.func @launch(%k: memref<?x64xf16, strided<[?, 1], offset: ?>>, %n: index, %o: memref<?x64xf16, strided<[?, 1], offset: ?>>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%k : memref<?x64xf16, strided<[?, 1], offset: ?>>, %n : index, %o : memref<?x64xf16, strided<[?, 1], offset: ?>>)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%k: memref<?x64xf16, strided<[?, 1], offset: ?>>, %n: index, %o: memref<?x64xf16, strided<[?, 1], offset: ?>>) kernel {
      %c0 = arith.constant 0 : index
      %r = tile.ring : <1, <16x64xf16, swizzle = 128>>
      tile.ring.acquire %r[%c0] : <1, <16x64xf16, swizzle = 128>>
      tile.copy_async %k[%n] to %r[%c0] : memref<?x64xf16, strided<[?, 1], offset: ?>> to <1, <16x64xf16, swizzle = 128>>
      %t = tile.ring.wait %r[%c0] : <1, <16x64xf16, swizzle = 128>>
      %x = tile.load %t : !tile.smem<16x64xf16, swizzle = 128> to tensor<16x64xf16, #tile.fragment<1>>
      tile.store %x, %o[%n] : tensor<16x64xf16, #tile.fragment<1>> to memref<?x64xf16, strided<[?, 1], offset: ?>>
      tile.ring.release %r[%c0] : <1, <16x64xf16, swizzle = 128>>
      gpu.return
    }
  }
}
