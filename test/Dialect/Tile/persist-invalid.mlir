// RUN: flash-opt %s --verify-diagnostics --flash-attach-target=multiprocessors=4 --tile-persist

!tile = !tile.smem<64x64xf32, swizzle = 128>
gpu.module @m {
  gpu.func @kernel(%t: !tile, %s: memref<?x64xf32>, %c: memref<?xi32>) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
    %i = gpu.block_id x
    %c0 = arith.constant 0 : index
    // expected-error @below {{'tile.add_in_turn' op waits for other blocks, which persistent blocks may keep from running; leave out the feature persistent}}
    tile.add_in_turn %t, %s[%c0] turn(%i) of %c[%c0] : !tile to memref<?x64xf32>, memref<?xi32>
    gpu.return
  }
}
