// CTAs of one multiprocessor have a share of its registers and of its shared memory,
// and one warp of the non-finite check each.
// RUN: flash-opt %s --tile-specialize-warps --tile-allocate-smem | FileCheck %s --check-prefix=ROLES
// RUN: flash-opt %s --tile-specialize-warps --tile-allocate-smem --tile-lower-roles | FileCheck %s --check-prefix=LOWERED
// RUN: not flash-opt %s --flash-attach-target=keys=shared_bytes_per_block=33000 --tile-specialize-warps --tile-allocate-smem 2>&1 | FileCheck %s --check-prefix=LIMIT

// ROLES: tile.warp_specialize @consumer(warps = 8, registers = 104) {
// ROLES: } @producer(warps = 1, registers = 32) {
// ROLES: } @nonfinite_check(warps = 1 from 11, registers = 32) {

// LOWERED-LABEL: gpu.func @kernel(
// LOWERED-SAME:  nvvm.minctasm = 2 : i32
// Full, empty after eight warps that read and one that checks, checked.
// LOWERED:       nvvm.mbarrier.init %{{.*}}, %c1_i32
// LOWERED:       nvvm.mbarrier.init %{{.*}}, %c9_i32
// LOWERED:       nvvm.mbarrier.init %{{.*}}, %c1_i32
// LOWERED:       arith.cmpi sge, %{{.*}}, %c-1_i32
// LOWERED:       tile.is_finite %{{.*}} warps(1)

// (33000 + 1024) / 2 - 1024
// LIMIT: error: the kernel 'kernel' needs 16464 bytes of shared memory, and a block may have 15988; choose smaller tiles or fewer stages

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<128x64xf32, #tile.fragment<8>>
module {
  gpu.module @m {
    gpu.func @kernel(%m: !memory) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 2, features = specialize_warps>} {
      %c0 = arith.constant 0 : index
      %r = tile.ring : !ring
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %m[%c0] to %r[%c0] : !memory to !ring
      %kt = tile.ring.wait %r[%c0] : !ring
      %q = arith.constant dense<1.0> : tensor<128x64xf16, #tile.fragment<8>>
      %p = tile.mma_async %q, %kt transpose_b : tensor<128x64xf16, #tile.fragment<8>>, !tile -> !tile.pending<!scores>
      %d = tile.mma_wait %p : !tile.pending<!scores>
      %f = tile.is_finite %kt : !tile
      %e = arith.select %f, %d, %d : !scores
      tile.ring.release %r[%c0] : !ring
      gpu.return
    }
  }
}
