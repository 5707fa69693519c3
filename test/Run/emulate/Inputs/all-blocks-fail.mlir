!smem = !tile.smem<16x16xf32, swizzle = 64>
module attributes {gpu.container_module} {
  func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c1000 = arith.constant 1000 : index
    %in = bufferization.to_buffer %x read_only : tensor<16x16xf32> to memref<16x16xf32>
    %out = memref.alloc() : memref<16x16xf32>
    gpu.launch_func @kernels::@main blocks in (%c1000, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%in : memref<16x16xf32>, %out : memref<16x16xf32>)
    %r = bufferization.to_tensor %out restrict writable : memref<16x16xf32> to tensor<16x16xf32>
    return %r : tensor<16x16xf32>
  }
  gpu.module @kernels {
    gpu.func @main(%in: memref<16x16xf32>, %out: memref<16x16xf32>) kernel {
      %c0 = arith.constant 0 : index
      %ring = tile.ring : !tile.ring<1, !smem>
      %other = tile.ring : !tile.ring<4, !smem>
      tile.ring.acquire %ring[%c0] : !tile.ring<1, !smem>
      tile.ring.acquire %other[%c0] : !tile.ring<4, !smem>
      %t = tile.ring.wait %ring[%c0] : !tile.ring<1, !smem>
      %v = tile.load %t : !smem to tensor<16x16xf32, #tile.fragment<1>>
      tile.store %v, %out[%c0] : tensor<16x16xf32, #tile.fragment<1>> to memref<16x16xf32>
      gpu.return
    }
  }
}
