// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))"

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
gpu.module @m {
  gpu.func @copy(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %kt = tile.smem_view %c0 : !tile
    // expected-error @below {{'tile.copy' op needs a kernel of known block size}}
    // expected-error @below {{failed to legalize operation 'tile.copy'}}
    tile.copy %k[%c0] to %kt : !memory to !tile
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @is_finite() kernel {
    %c0 = arith.constant 0 : index
    %kt = tile.smem_view %c0 : !tile.smem<16x64xf16, swizzle = 128>
    // expected-error @below {{'tile.is_finite' op needs a kernel of known block size}}
    // expected-error @below {{failed to legalize operation 'tile.is_finite'}}
    %f = tile.is_finite %kt : !tile.smem<16x64xf16, swizzle = 128>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @reduce_rows(%x: tensor<64x8xf32, #tile.fragment<2>>) kernel {
    // expected-error @below {{'tile.reduce_rows' op has no shared memory; run tile-allocate-smem first}}
    // expected-error @below {{failed to legalize operation 'tile.reduce_rows'}}
    %c = tile.reduce_rows add %x : tensor<64x8xf32, #tile.fragment<2>> to tensor<8xf32, #tile.columns<2>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @reduce(%x: tensor<1x256xf32, #tile.warp_rows<8, 1, 256>>) kernel {
    // expected-error @below {{'tile.reduce' op has no shared memory; run tile-allocate-smem first}}
    // expected-error @below {{failed to legalize operation 'tile.reduce'}}
    %r = tile.reduce add %x : tensor<1x256xf32, #tile.warp_rows<8, 1, 256>> to tensor<1xf32, #tile.warp_rows<8, 1, 256>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @transposed() kernel {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf16, swizzle = 128>
    // expected-error @below {{'tile.mma_async' op has its first operand transposed, which only products of warpgroups can}}
    // expected-error @below {{failed to legalize operation 'tile.mma_async'}}
    %p = tile.mma_async %t, %t transpose_a : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @eight_bits() kernel {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf8E4M3FN, swizzle = 64>
    // expected-error @below {{'tile.mma_async' op multiplies elements of 'f8E4M3FN', which products of warpgroups alone do}}
    // expected-error @below {{failed to legalize operation 'tile.mma_async'}}
    %p = tile.mma_async %t, %t transpose_b : !tile.smem<64x64xf8E4M3FN, swizzle = 64>, !tile.smem<64x64xf8E4M3FN, swizzle = 64> -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    gpu.return
  }
}
