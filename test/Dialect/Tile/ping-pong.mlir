// Products that give scores, and those started with them, wait for ping-pong.
// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-ping-pong)))" | FileCheck %s

!tile = !tile.smem<128x64xf16, swizzle = 128>
!values = !tile.smem<64x64xf16, swizzle = 128>
!scores = tensor<128x64xf32, #tile.fragment<8>>
!probabilities = tensor<128x64xf16, #tile.fragment<8>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @kernel(
  // CHECK:       tile.ping_pong.wait
  // CHECK-NEXT:  tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:  tile.mma_async %{{.*}} add
  // CHECK-NEXT:  tile.ping_pong.arrive
  // CHECK-NEXT:  tile.mma_wait
  // CHECK-NEXT:  tile.mma_wait
  // The second product alone takes none.
  // CHECK-NEXT:  tile.mma_async
  // CHECK-NEXT:  tile.mma_wait
  // CHECK-NOT:   tile.ping_pong
  gpu.func @kernel(%q: !tile, %k: !values, %p: !probabilities, %acc: !scores) kernel attributes {flash.schedule = #flash.schedule<features = ping_pong>} {
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %sp = tile.mma_async %q, %k transpose_b warpgroup : !tile, !values -> !tile.pending<!scores>
      %op = tile.mma_async %p, %k add %acc warpgroup : !probabilities, !values, !scores -> !tile.pending<!scores>
      %s = tile.mma_wait %sp younger(%op : !tile.pending<!scores>) : !tile.pending<!scores>
      %o = tile.mma_wait %op : !tile.pending<!scores>
      %lp = tile.mma_async %p, %k add %o warpgroup : !probabilities, !values, !scores -> !tile.pending<!scores>
      %l = tile.mma_wait %lp : !tile.pending<!scores>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // The scores of two steps are one phase.
  // CHECK-LABEL: gpu.func @two_steps(
  // CHECK:       tile.ping_pong.wait
  // CHECK-NEXT:  tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:  tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:  tile.ping_pong.arrive
  // CHECK-NOT:   tile.ping_pong
  gpu.func @two_steps(%q: !tile, %k: !values, %l: !values) kernel attributes {flash.schedule = #flash.schedule<features = ping_pong>} {
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %sp = tile.mma_async %q, %k transpose_b warpgroup : !tile, !values -> !tile.pending<!scores>
      %tp = tile.mma_async %q, %l transpose_b warpgroup : !tile, !values -> !tile.pending<!scores>
      %s = tile.mma_wait %sp younger(%tp : !tile.pending<!scores>) : !tile.pending<!scores>
      %t = tile.mma_wait %tp : !tile.pending<!scores>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // A phase ends before a choice in which all warpgroups meet.
  // CHECK-LABEL: gpu.func @meeting(
  // CHECK:       tile.ping_pong.wait
  // CHECK-NEXT:  tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:  tile.ping_pong.arrive
  // CHECK-NEXT:  scf.if
  // CHECK-NOT:   tile.ping_pong
  gpu.func @meeting(%q: !tile, %k: !values, %p: !probabilities, %acc: !scores, %c: i1) kernel attributes {flash.schedule = #flash.schedule<features = ping_pong>} {
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %sp = tile.mma_async %q, %k transpose_b warpgroup : !tile, !values -> !tile.pending<!scores>
      scf.if %c {
        tile.clear %k warps(8) : !values
      }
      %op = tile.mma_async %p, %k add %acc warpgroup : !probabilities, !values, !scores -> !tile.pending<!scores>
      %s = tile.mma_wait %sp younger(%op : !tile.pending<!scores>) : !tile.pending<!scores>
      %o = tile.mma_wait %op : !tile.pending<!scores>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @without(
  // CHECK-NOT:   tile.ping_pong
  gpu.func @without(%q: !tile, %k: !values) kernel {
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %sp = tile.mma_async %q, %k transpose_b warpgroup : !tile, !values -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel attributes {flash.schedule = #flash.schedule<features = ping_pong>} {
    // expected-error @below {{'tile.warp_specialize' op has one warpgroup of consumers, and ping-pong takes two or three}}
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}
