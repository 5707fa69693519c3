// A warp stores a tile of its registers: which thread stores what is the layout #tile.fragment.
gpu.module @kernels {
  gpu.func @lanes(%m: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %tile = arith.constant dense<1.0> : tensor<16x16xf32, #tile.fragment<1>>
    tile.store %tile, %m[%c0] : tensor<16x16xf32, #tile.fragment<1>> to memref<16x16xf32>
    gpu.return
  }
}
