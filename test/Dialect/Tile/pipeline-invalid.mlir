// What no pipeline can run, and attributes that say nothing.
// RUN: flash-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-pipeline)))'

gpu.module @m {
  gpu.func @later_stage(%x: f32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> f32 {
      // expected-note @below {{which is of stage 1}}
      %b = arith.addf %a, %x {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : f32
      // expected-error @below {{is of stage 0 and needs what stage 1 of its iteration computes}}
      %c = arith.mulf %b, %x {tile.pipeline = #tile.pipeline<stage = 0, cluster = 1>} : f32
      scf.yield %c : f32
    }
    gpu.return
  }
}

// -----

// A tile is given back in the iteration of what reads it.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @released(%q: !tile, %x: !scores, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %r[%t] {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : !ring
      %p = tile.mma_async %q, %kt add %a warpgroup {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !tile, !tile, !scores -> !tile.pending<!scores>
      // expected-note @below {{which is of stage 1}}
      %s = tile.mma_wait %p : !tile.pending<!scores>
      // expected-error @below {{is of stage 0 and needs what stage 1 of its iteration computes}}
      tile.ring.release %r[%t] {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %s, %next : !scores, index
    }
    gpu.return
  }
}

// -----

// Of a tile that threads put into a ring the result goes to another role.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!half = tensor<64x64xf16, #tile.fragment<4>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @kept(%q: !tile, %h: !half, %x: !scores, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %t = %c0) -> (!scores, index) {
      tile.ring.acquire %r[%t] : !ring
      tile.ring.put %h to %r[%t] : !half to !ring
      // expected-error @below {{takes what stage 0 does not put into the ring, or its result does not go into a ring for another role}}
      %kt = tile.ring.wait %r[%t] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !ring
      %p = tile.mma_async %q, %kt add %a warpgroup {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !tile, !tile, !scores -> !tile.pending<!scores>
      %s = tile.mma_wait %p {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !tile.pending<!scores>
      tile.ring.release %r[%t] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %s, %next : !scores, index
    }
    gpu.return
  }
}

// -----

// The step of nothing with which stage 1 begins moves all others: their numbers are counted from 0 on.
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!sums = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!half = tensor<64x64xf16, #tile.fragment<4>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @uncounted(%q: !tile, %h: !half, %n: index, %sums: memref<?x64x64xf32>, %counts: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !ring
    %s = tile.ring : !sums
    tile.warp_specialize @math(warps = 4, registers = 232) {
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %r[%c0] {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : !ring
        tile.ring.put %h to %r[%c0] {tile.pipeline = #tile.pipeline<stage = 0, cluster = 0>} : !half to !ring
        // expected-error @below {{is of stage 1, and its steps are not counted from 0 on by all roles}}
        %kt = tile.ring.wait %r[%c0] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !ring
        %p = tile.mma_async %kt, %q warpgroup {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !tile, !tile -> !tile.pending<!scores>
        %d = tile.mma_wait %p {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !tile.pending<!scores>
        tile.ring.release %r[%c0] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !ring
        tile.ring.acquire %s[%c0] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !sums
        tile.ring.put %d to %s[%c0] {tile.pipeline = #tile.pipeline<stage = 1, cluster = 0>} : !scores to !sums
      }
    } @adds(warps = 1, registers = 40) {
      scf.for %i = %c0 to %n step %c1 {
        %t = tile.ring.wait %s[%c0] : !sums
        tile.ring.release %s[%c0] : !sums
      }
    }
    gpu.return
  }
}

// -----

// expected-error @below {{'builtin.module' op needs a #tile.pipeline as attribute 'tile.pipeline', got 1 : i64}}
module attributes {tile.pipeline = 1} {
}

// -----

// expected-error @below {{a pipeline has the stages 0 and 1, got 2}}
module attributes {tile.pipeline = #tile.pipeline<stage = 2, cluster = 0>} {
}

// -----

// expected-error @below {{clusters are numbered from 0 on, got -1}}
module attributes {tile.pipeline = #tile.pipeline<stage = 1, cluster = -1>} {
}
