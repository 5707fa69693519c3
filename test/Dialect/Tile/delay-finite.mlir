// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-delay-finite)))" | FileCheck %s

!keys = !tile.smem<64x64xf16, swizzle = 128>
!one = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!two = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!sum = tensor<64x64xf32, #tile.fragment<4>>
!factors = tensor<64x64xf16, #tile.fragment<4>>
!memory = memref<?x64xf16, strided<[?, 1], offset: ?>>

gpu.module @kernels {
  // A product that is deferred reads the tile late, with what an iteration before put:
  // the first loop looks at the tile there, and behind it all wait. The tile is copied
  // and made finite behind what else the first iteration needs, or, where there is
  // none, in front.

  // CHECK-LABEL: gpu.func @kernel(
  // CHECK:       %[[FINITE:.*]] = tile.ring finite
  // CHECK:       @consumer
  // CHECK-NEXT:    scf.for
  // CHECK-NEXT:      %[[Q:.*]] = tile.ring.wait
  // CHECK-NEXT:      tile.mma_async %[[Q]], %[[Q]]
  // CHECK:           %[[DS:.*]] = tile.ring.wait
  // CHECK-NEXT:      %[[SEEN:.*]] = tile.ring.peek %[[FINITE]][%c0]
  // CHECK-NEXT:      tile.mma_async %[[DS]], %[[SEEN]]
  // CHECK:         }
  // CHECK-NEXT:    %[[K:.*]] = tile.ring.wait %[[FINITE]][%c0]
  // CHECK-NEXT:    scf.for
  // CHECK:           tile.mma_async %{{.*}}, %[[K]]
  // CHECK:         tile.ring.release %[[FINITE]]
  // CHECK:       @producer
  // CHECK-NEXT:    %[[ENTERED:.*]] = arith.cmpi slt, %[[LO:.*]], %[[MID:.*]] : index
  // CHECK-NEXT:    scf.if %[[ENTERED]] {
  // CHECK-NEXT:    } else {
  // CHECK-NEXT:      tile.ring.acquire %[[FINITE]]
  // CHECK-NEXT:      tile.copy_async %{{.*}} to %[[FINITE]]
  // CHECK-NEXT:    }
  // CHECK-NEXT:    scf.for %[[I:[^ ]*]] = %[[LO]] to %[[MID]]
  // CHECK-NEXT:      tile.ring.acquire
  // CHECK-NEXT:      tile.copy_async
  // CHECK-NEXT:      %[[FIRST:.*]] = arith.cmpi eq, %[[I]], %[[LO]] : index
  // CHECK-NEXT:      scf.if %[[FIRST]] {
  // CHECK-NEXT:        tile.ring.acquire %[[FINITE]]
  // CHECK-NEXT:        tile.copy_async %{{.*}} to %[[FINITE]]
  // CHECK:       @nonfinite_check
  // CHECK:         } else {
  // CHECK-NEXT:      tile.ring.make_finite %[[FINITE]]
  // CHECK:         scf.for
  // CHECK-NEXT:      tile.ring.check_finite
  // CHECK:           scf.if
  // CHECK-NEXT:        tile.ring.make_finite %[[FINITE]]
  gpu.func @kernel(%m: !memory, %lo: index, %mid: index, %hi: index, %ds: !factors) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %finite = tile.ring finite : !one
    %queries = tile.ring checked : !two
    %put = tile.ring : !two
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %k = tile.ring.wait %finite[%c0] : !one
      scf.for %i = %lo to %mid step %c1 {
        %q = tile.ring.wait %queries[%i] : !two
        %p = tile.mma_async %q, %q transpose_b warpgroup : !keys, !keys -> !tile.pending<!sum>
        %next = arith.addi %i, %c1 : index
        tile.ring.acquire %put[%next] : !two
        tile.ring.put %ds to %put[%next] : !factors to !two
        %last = tile.ring.wait %put[%i] : !two
        %d = tile.mma_async %last, %k warpgroup : !keys, !keys -> !tile.pending<!sum>
        %s = tile.mma_wait %d : !tile.pending<!sum>
        tile.ring.release %put[%i] : !two
        tile.ring.release %queries[%i] : !two
      }
      scf.for %i = %mid to %hi step %c1 {
        %q = tile.ring.wait %queries[%i] : !two
        %d = tile.mma_async %q, %k warpgroup : !keys, !keys -> !tile.pending<!sum>
        %s = tile.mma_wait %d : !tile.pending<!sum>
        tile.ring.release %queries[%i] : !two
      }
      tile.ring.release %finite[%c0] : !one
    } @producer(warps = 1, registers = 24) {
      tile.ring.acquire %finite[%c0] : !one
      tile.copy_async %m[%c0] to %finite[%c0] : !memory to !one
      scf.for %i = %lo to %mid step %c1 {
        tile.ring.acquire %queries[%i] : !two
        tile.copy_async %m[%i] to %queries[%i] : !memory to !two
      }
      scf.for %i = %mid to %hi step %c1 {
        tile.ring.acquire %queries[%i] : !two
        tile.copy_async %m[%i] to %queries[%i] : !memory to !two
      }
    } @nonfinite_check(warps = 2 from 6, registers = 24) {
      tile.ring.make_finite %finite[%c0] : !one
      scf.for %i = %lo to %mid step %c1 {
        tile.ring.check_finite %queries[%i] : !two
      }
      scf.for %i = %mid to %hi step %c1 {
        tile.ring.check_finite %queries[%i] unchecked : !two
      }
    }
    gpu.return
  }

  // Of products that are not deferred the first would wait for what comes late.

  // CHECK-LABEL: gpu.func @at_once(
  // CHECK:       @consumer
  // CHECK-NEXT:    tile.ring.wait
  // CHECK-NEXT:    scf.for
  // CHECK:         }
  // CHECK:       @producer
  // CHECK-NEXT:    tile.ring.acquire
  // CHECK-NEXT:    tile.copy_async
  // CHECK-NEXT:    scf.for
  gpu.func @at_once(%m: !memory, %n: index, %ds: !factors) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %finite = tile.ring finite : !one
    %put = tile.ring : !two
    %queries = tile.ring : !two
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %k = tile.ring.wait %finite[%c0] : !one
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %put[%i] : !two
        tile.ring.put %ds to %put[%i] : !factors to !two
        %p = tile.ring.wait %put[%i] : !two
        %d = tile.mma_async %p, %k warpgroup : !keys, !keys -> !tile.pending<!sum>
        %s = tile.mma_wait %d : !tile.pending<!sum>
        tile.ring.release %put[%i] : !two
      }
      tile.ring.release %finite[%c0] : !one
    } @producer(warps = 1, registers = 24) {
      tile.ring.acquire %finite[%c0] : !one
      tile.copy_async %m[%c0] to %finite[%c0] : !memory to !one
      scf.for %i = %c0 to %n step %c1 {
        tile.ring.acquire %queries[%i] : !two
        tile.copy_async %m[%i] to %queries[%i] : !memory to !two
      }
    }
    gpu.return
  }

  // Others are waited for in front, and a tile that no loop reads stays where it is.

  // CHECK-LABEL: gpu.func @others(
  // CHECK:       @consumer
  // CHECK-NEXT:    tile.ring.wait
  // CHECK-NEXT:    tile.ring.wait
  // CHECK-NEXT:    tile.mma_async
  // CHECK:         scf.for
  // CHECK-NOT:   tile.ring.peek
  // CHECK:       gpu.return
  gpu.func @others(%n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %finite = tile.ring finite : !one
    %plain = tile.ring : !one
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %f = tile.ring.wait %finite[%c0] : !one
      %k = tile.ring.wait %plain[%c0] : !one
      %p = tile.mma_async %f, %f transpose_b warpgroup : !keys, !keys -> !tile.pending<!sum>
      %r = tile.mma_wait %p : !tile.pending<!sum>
      tile.ring.release %finite[%c0] : !one
      scf.for %i = %c0 to %n step %c1 {
        %d = tile.mma_async %k, %k warpgroup : !keys, !keys -> !tile.pending<!sum>
        %s = tile.mma_wait %d : !tile.pending<!sum>
      }
      tile.ring.release %plain[%c0] : !one
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}
