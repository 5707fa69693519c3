// Blocks that claim their tiles count them behind the counts of ordered additions: a count that is
// no tile's has to be there.
// RUN: flash-opt %s --flash-attach-target=keys=multiprocessors=1 --tile-persist -o %t.mlir
// RUN: flash-run %t.mlir --target=emulate --shape=1=3 --fill=1=0
// RUN: not flash-run %t.mlir --target=emulate --shape=1=2 --fill=1=0 2>&1 | FileCheck %s
// CHECK: the kernel 'add' claims its tiles, which takes a count more than there are tiles to add to
!x = tensor<128x64xf32>
!sums = memref<2x64x64xf32>
module attributes {gpu.container_module} {
  func.func @main(%x: !x, %c: tensor<?xi32>) -> tensor<2x64x64xf32> {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %mx = bufferization.to_buffer %x read_only : !x to memref<128x64xf32>
    %mc = bufferization.to_buffer %c : tensor<?xi32> to memref<?xi32>
    %sums = memref.alloc() : !sums
    gpu.launch_func @kernels::@add blocks in (%c2, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%mx : memref<128x64xf32>, %sums : !sums, %mc : memref<?xi32>)
    %r = bufferization.to_tensor %sums restrict writable : !sums to tensor<2x64x64xf32>
    return %r : tensor<2x64x64xf32>
  }
  gpu.module @kernels {
    gpu.func @add(%x: memref<128x64xf32>, %sums: !sums, %c: memref<?xi32>) kernel
        attributes {flash.schedule = #flash.schedule<features = persistent>} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %i = gpu.block_id x
      %row = arith.muli %i, %c64 : index
      %t = tile.fetch %x[%row] : memref<128x64xf32> to !tile.smem<64x64xf32, swizzle = 128>
      tile.add_in_order %t, %sums[%i, %c0] rank(%c0) of %c[%i] : !tile.smem<64x64xf32, swizzle = 128> to !sums, memref<?xi32>
      gpu.return
    }
  }
}
