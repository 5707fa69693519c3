// RUN: flash-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))"
module attributes {flash.target = #flash.target<sm_75>} {
  gpu.module @m {
    gpu.func @product(%a: tensor<16x16xbf16, #tile.fragment<1>>, %first: index, %m: memref<?x8xf32>) kernel {
      %b = tile.smem_view %first : !tile.smem<16x16xbf16, swizzle = 32>
      // expected-error @below {{the tensor cores of sm_75 multiply f16, and not bf16; use f16, the target sm_80 or later, or cpu}}
      // expected-error @below {{failed to legalize operation 'tile.mma_async'}}
      %p = tile.mma_async %a, %b : tensor<16x16xbf16, #tile.fragment<1>>, !tile.smem<16x16xbf16, swizzle = 32> -> !tile.pending<tensor<16x16xf32, #tile.fragment<1>>>
      gpu.return
    }
  }
}
