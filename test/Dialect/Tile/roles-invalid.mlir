// The rules of warps with roles and of products of warpgroups, with their
// messages.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op needs at least one role, and a name, warps and registers for each role}}
  tile.warp_specialize
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op has two roles with the name 'a'}}
  tile.warp_specialize @a(warps = 4, registers = 104) {} @a(warps = 4, registers = 104) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives the role 'b' 4 warps from 3 on; the warps of a role follow the warps of the role before it, with no warpgroup between them, and a block has 32}}
  tile.warp_specialize @a(warps = 4, registers = 104) {} @b(warps = 4 from 3, registers = 104) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives the role 'b' 4 warps from 8 on; the warps of a role follow the warps of the role before it, with no warpgroup between them, and a block has 32}}
  tile.warp_specialize @a(warps = 4, registers = 104) {} @b(warps = 4 from 8, registers = 104) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives the role 'a' 36 warps from 0 on; the warps of a role follow the warps of the role before it, with no warpgroup between them, and a block has 32}}
  tile.warp_specialize @a(warps = 36, registers = 32) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives the role 'a' 6 warps, more than a warpgroup, that are no whole ones}}
  tile.warp_specialize @a(warps = 6, registers = 104) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives the role 'b' other registers than the role before, of whose warpgroup it has warps}}
  tile.warp_specialize @a(warps = 1, registers = 104) {} @b(warps = 1, registers = 96) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives a thread 24 to 256 registers, a multiple of 8, not 250}}
  tile.warp_specialize @consumer(warps = 8, registers = 250) {} @producer(warps = 1, registers = 24) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op gives a thread 24 to 256 registers, a multiple of 8, not 16}}
  tile.warp_specialize @consumer(warps = 8, registers = 240) {} @producer(warps = 1, registers = 16) {}
  return
}

// -----

func.func @f() {
  // expected-error @below {{'tile.warp_specialize' op needs 512 registers of threads, one in each warpgroup, and 384 threads start with 168 each}}
  tile.warp_specialize @consumer(warps = 8, registers = 240) {} @producer(warps = 1, registers = 32) {}
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
  gpu.func @kernel() kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 2>} {
    // expected-error @below {{'tile.warp_specialize' op needs 504 registers of threads, one in each warpgroup, and 384 threads start with 80 each}}
    tile.warp_specialize @consumer(warps = 8, registers = 240) {} @producer(warps = 1, registers = 24) {}
    gpu.return
  }
}

// -----

func.func @f() {
  // expected-error @below {{integer value too large}}
  tile.warp_specialize @a(warps = 9223372036854775807, registers = 104) {} @b(warps = 63, registers = 96) {}
  return
}
