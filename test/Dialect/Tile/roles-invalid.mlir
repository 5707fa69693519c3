// The rules of warps with roles and of products of warpgroups, with their
// messages.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op needs 4 to 28 consumers in warpgroups of four, got 6}}
  tile.warp_specialize consumers(6, registers = 240) {} producer(registers = 24) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op needs 4 to 28 consumers in warpgroups of four, got 32}}
  tile.warp_specialize consumers(32, registers = 32) {} producer(registers = 24) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives a thread 24 to 256 registers, a multiple of 8, not 250}}
  tile.warp_specialize consumers(8, registers = 250) {} producer(registers = 24) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives a thread 24 to 256 registers, a multiple of 8, not 16}}
  tile.warp_specialize consumers(8, registers = 240) {} producer(registers = 16) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op needs 512 registers of four threads, one in each warpgroup, and 384 threads start with 168 each}}
  tile.warp_specialize consumers(8, registers = 240) {} producer(registers = 32) {}
  return
}

// -----

!tile = !tile.smem<64x64xf32, swizzle = 128>
func.func @f(%x: !tile) {
  // expected-error @below {{'tile.mma_async' op has no form for warpgroups with elements of 'f32'}}
  %p = tile.mma_async %x, %x transpose_b warpgroup : !tile, !tile -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  return
}

// -----

!tile = !tile.smem<64x64xf16, swizzle = 128>
func.func @f(%x: !tile) {
  // expected-error @below {{'tile.mma_async' op needs 64 rows for each warpgroup of four warps}}
  %p = tile.mma_async %x, %x transpose_b warpgroup : !tile, !tile -> !tile.pending<tensor<64x64xf32, #tile.fragment<2>>>
  return
}

// -----

!a = !tile.smem<128x64xf16, swizzle = 128>
!b = !tile.smem<64x64xf16, swizzle = 128>
func.func @f(%x: !a, %y: !b) {
  // expected-error @below {{'tile.mma_async' op needs 64 rows for each warpgroup of four warps}}
  %p = tile.mma_async %x, %y transpose_b warpgroup : !a, !b -> !tile.pending<tensor<128x64xf32, #tile.fragment<4>>>
  return
}

// -----

!a = !tile.smem<64x64xf16, swizzle = 128>
!b = !tile.smem<264x64xf16, swizzle = 128>
func.func @f(%x: !a, %y: !b) {
  // expected-error @below {{'tile.mma_async' op has at most 256 columns in a warpgroup, got 264}}
  %p = tile.mma_async %x, %y transpose_b warpgroup : !a, !b -> !tile.pending<tensor<64x264xf32, #tile.fragment<4>>>
  return
}

// -----

func.func @f(%x: tensor<64x4xf32, #tile.lanes<4>>) {
  // expected-error @below {{'tile.any' op needs conditions of type i1, not 'tensor<64x4xf32, #tile.lanes<4>>'}}
  %a = tile.any %x : tensor<64x4xf32, #tile.lanes<4>>
  return
}

// -----

// Registers are those of all blocks that share a multiprocessor.
gpu.module @m {
  gpu.func @kernel() kernel attributes {flash.schedule = #flash.schedule<resident_blocks = 2>} {
    // expected-error @below {{'tile.warp_specialize' op needs 504 registers of four threads, one in each warpgroup, and 384 threads start with 80 each}}
    tile.warp_specialize consumers(8, registers = 240) {} producer(registers = 24) {}
    gpu.return
  }
}
