// A tile whose rows lie in parts: page 2, and behind it three rows of page 0. What is touched beyond a part's rows is seen.
// RUN: %python -c "import numpy as np; np.save('%t.x.npy', np.random.default_rng().random((3, 8, 8), np.float32))"
// RUN: flash-run %s --target=emulate --inputs=%t.x.npy --outputs=%t.npy
// RUN: %python -c "import numpy as np; x, y = np.load('%t.x.npy'), np.load('%t.npy'); assert (y == np.concatenate([x[2], x[0, :3], np.zeros((5, 8))])).all(), y"
// RUN: sed 's/c0. parts(2) rows(.c8, .c3)/c3] parts(2) rows(%%c8, %%c8)/' %s > %t.mlir && not flash-run %t.mlir --target=emulate 2>&1 | FileCheck %s
// CHECK: error: tile.fetch at {{.*}} touches indices 3 to 10 of dimension 1, which has 8
!tile = !tile.smem<16x8xf32, swizzle = 32>
!fragment = tensor<16x8xf32, #tile.fragment<1>>
module attributes {gpu.container_module} {
  func.func @main(%x: tensor<3x8x8xf32>) -> tensor<16x8xf32> {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %xm = bufferization.to_buffer %x read_only : tensor<3x8x8xf32> to memref<3x8x8xf32>
    %o = memref.alloc() : memref<16x8xf32>
    gpu.launch_func @kernels::@main blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%xm : memref<3x8x8xf32>, %o : memref<16x8xf32>)
    %r = bufferization.to_tensor %o restrict writable : memref<16x8xf32> to tensor<16x8xf32>
    return %r : tensor<16x8xf32>
  }
  gpu.module @kernels {
    gpu.func @main(%x: memref<3x8x8xf32>, %o: memref<16x8xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %t = tile.fetch %x[%c2, %c0, %c0, %c0] parts(2) rows(%c8, %c3) : memref<3x8x8xf32> to !tile
      %y = tile.load %t : !tile to !fragment
      tile.store %y, %o[%c0] : !fragment to memref<16x8xf32>
      gpu.return
    }
  }
}
