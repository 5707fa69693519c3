// RUN: flash-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns)))'

gpu.module @m {
  gpu.func @kernel(%o: memref<?x576xf32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'arith.constant' op has a tile of 576 columns, and two warpgroups have 512 at most}}
    %x = arith.constant dense<0.0> : tensor<64x576xf32, #tile.fragment<4>>
    tile.store %x, %o[%c0] : tensor<64x576xf32, #tile.fragment<4>> to memref<?x576xf32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel(%t: !tile.smem<64x512xf16, swizzle = 128>, %o: memref<?x512xf16>) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{'tile.load' op has a tile of 512 columns, and the op cannot be divided between two warpgroups with half of the columns each; leave divide_columns out of the schedule's features}}
    %x = tile.load %t : !tile.smem<64x512xf16, swizzle = 128> to tensor<64x512xf16, #tile.fragment<4>>
    tile.store %x, %o[%c0] : tensor<64x512xf16, #tile.fragment<4>> to memref<?x512xf16>
    gpu.return
  }
}

// -----

gpu.module @m {
  // expected-error @below {{'gpu.func' op has a tile of 512 columns, and the op cannot be divided}}
  gpu.func @kernel(%x: tensor<64x512xf32, #tile.fragment<4>>, %o: memref<?x512xf32>) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    tile.store %x, %o[%c0] : tensor<64x512xf32, #tile.fragment<4>> to memref<?x512xf32>
    gpu.return
  }
}
