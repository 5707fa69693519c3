// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-keys-first)))" | FileCheck %s

!smem = !tile.smem<64x64xf16, swizzle = 128>
!queries = !tile.smem<128x64xf16, swizzle = 128>
!memory = memref<?x64xf16, strided<[?, 1], offset: ?>>

gpu.module @kernels {
  // With one stage for queries the producer would wait for it with free stages for
  // keys: the first keys go first. Without keys the queries come all the same.

  // CHECK-LABEL: gpu.func @one_stage
  // CHECK:      producer
  // CHECK:      scf.for %[[TILE:[a-z0-9]+]] =
  // CHECK:        %[[ENTERED:.*]] = arith.cmpi slt, %[[LO:.*]], %[[HI:.*]] : index
  // CHECK-NEXT:   scf.if %[[ENTERED]] {
  // CHECK-NEXT:   } else {
  // CHECK-NEXT:     tile.ring.acquire %[[QUERIES:.*]][%[[TILE]]]
  // CHECK-NEXT:     tile.copy_async %{{.*}} to %[[QUERIES]][%[[TILE]]]
  // CHECK-NEXT:   }
  // CHECK-NEXT:   scf.for %[[KEY:[a-z0-9]+]] = %[[LO]] to %[[HI]]
  // CHECK-NEXT:     tile.ring.acquire %[[KEYS:.*]][
  // CHECK-NEXT:     tile.copy_async %{{.*}} to %[[KEYS]][
  // CHECK-NEXT:     %[[FIRST:.*]] = arith.cmpi eq, %[[KEY]], %[[LO]] : index
  // CHECK-NEXT:     scf.if %[[FIRST]] {
  // CHECK-NEXT:       tile.ring.acquire %[[QUERIES]][%[[TILE]]]
  // CHECK-NEXT:       tile.copy_async %{{.*}} to %[[QUERIES]][%[[TILE]]]
  // CHECK-NEXT:     }
  gpu.func @one_stage(%q: !memory, %k: !memory, %tiles: index, %lo: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %queries = tile.ring : <1, !queries>
    %keys = tile.ring : <2, !smem>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
    } @producer(warps = 1, registers = 24) {
      scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %c0) -> (index) {
        tile.ring.acquire %queries[%i] : <1, !queries>
        tile.copy_async %q[%i] to %queries[%i] : !memory to <1, !queries>
        %l = scf.for %j = %lo to %hi step %c64 iter_args(%t = %s) -> (index) {
          tile.ring.acquire %keys[%t] : <2, !smem>
          tile.copy_async %k[%j] to %keys[%t] : !memory to <2, !smem>
          %n = arith.addi %t, %c1 : index
          scf.yield %n : index
        }
        scf.yield %l : index
      }
    }
    gpu.return
  }

  // A choice that guards the loop is the one to ask.

  // CHECK-LABEL: gpu.func @guarded
  // CHECK:      producer
  // CHECK:      scf.for %[[TILE:[a-z0-9]+]] =
  // CHECK-NEXT:   %[[ENTERED:.*]] = arith.cmpi slt
  // CHECK-NEXT:   scf.if %[[ENTERED]] {
  // CHECK-NEXT:   } else {
  // CHECK-NEXT:     tile.ring.acquire %[[QUERIES:.*]][%[[TILE]]]
  // CHECK-NEXT:     tile.copy_async %{{.*}} to %[[QUERIES]][%[[TILE]]]
  // CHECK-NEXT:   }
  // CHECK-NEXT:   scf.if %[[ENTERED]] -> (index) {
  // CHECK-NEXT:     scf.for
  // CHECK-NEXT:       tile.ring.acquire %[[KEYS:.*]][
  // CHECK-NEXT:       tile.copy_async %{{.*}} to %[[KEYS]][
  // CHECK:            tile.copy_async %{{.*}} to %[[QUERIES]][%[[TILE]]]
  gpu.func @guarded(%q: !memory, %k: !memory, %tiles: index, %lo: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %queries = tile.ring : <1, !queries>
    %keys = tile.ring : <2, !smem>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
    } @producer(warps = 1, registers = 24) {
      scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %c0) -> (index) {
        %entered = arith.cmpi slt, %lo, %hi : index
        tile.ring.acquire %queries[%i] : <1, !queries>
        tile.copy_async %q[%i] to %queries[%i] : !memory to <1, !queries>
        %r = scf.if %entered -> (index) {
          %l = scf.for %j = %lo to %hi step %c64 iter_args(%t = %s) -> (index) {
            tile.ring.acquire %keys[%t] : <2, !smem>
            tile.copy_async %k[%j] to %keys[%t] : !memory to <2, !smem>
            %n = arith.addi %t, %c1 : index
            scf.yield %n : index
          }
          scf.yield %l : index
        } else {
          scf.yield %s : index
        }
        scf.yield %r : index
      }
    }
    gpu.return
  }

  // With two stages the next queries are on their way already, a block that has one
  // tile of queries only finds every stage free, and few queries come quickly.

  // CHECK-LABEL: gpu.func @nothing_to_wait_for
  // CHECK-NOT:   scf.if
  // CHECK:       gpu.return
  gpu.func @nothing_to_wait_for(%q: !memory, %k: !memory, %tiles: index, %lo: index, %hi: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %single = tile.ring : <1, !queries>
    %queries = tile.ring : <2, !queries>
    %small = tile.ring : <1, !smem>
    %keys = tile.ring : <2, !smem>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
    } @producer(warps = 1, registers = 24) {
      tile.ring.acquire %single[%c0] : <1, !queries>
      tile.copy_async %q[%c0] to %single[%c0] : !memory to <1, !queries>
      scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %c0) -> (index) {
        tile.ring.acquire %queries[%i] : <2, !queries>
        tile.copy_async %q[%i] to %queries[%i] : !memory to <2, !queries>
        tile.ring.acquire %small[%i] : <1, !smem>
        tile.copy_async %q[%i] to %small[%i] : !memory to <1, !smem>
        %l = scf.for %j = %lo to %hi step %c64 iter_args(%t = %s) -> (index) {
          tile.ring.acquire %keys[%t] : <2, !smem>
          tile.copy_async %k[%j] to %keys[%t] : !memory to <2, !smem>
          %n = arith.addi %t, %c1 : index
          scf.yield %n : index
        }
        scf.yield %l : index
      }
    }
    gpu.return
  }

  // Where a block claims tiles, the tile need not be larger than what the loop copies.
  // CHECK-LABEL: gpu.func @claimed
  // CHECK:       @producer
  // CHECK:       tile.claim
  // CHECK-NEXT:  scf.for
  // CHECK-NEXT:    tile.ring.acquire
  // CHECK-NEXT:    tile.copy_async
  // CHECK:         scf.if
  gpu.func @claimed(%q: !memory, %k: !memory, %c: memref<?xi32>, %tiles: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %small = tile.ring : <1, !smem>
    %keys = tile.ring : <2, !smem>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
    } @producer(warps = 1, registers = 24) {
      scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %c0) -> (index) {
        %n = tile.claim %i of %c[%c0] : memref<?xi32>
        tile.ring.acquire %small[%i] : <1, !smem>
        tile.copy_async %q[%n] to %small[%i] : !memory to <1, !smem>
        %l = scf.for %j = %c0 to %c256 step %c64 iter_args(%t = %s) -> (index) {
          tile.ring.acquire %keys[%t] : <2, !smem>
          tile.copy_async %k[%j] to %keys[%t] : !memory to <2, !smem>
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
        scf.yield %l : index
      }
    }
    gpu.return
  }

  // Of several the one that is used last comes last: its stage is free last.
  // CHECK-LABEL: gpu.func @several
  // CHECK:       %[[LATE:.*]] = tile.ring : <1,
  // CHECK-NEXT:  %[[EARLY:.*]] = tile.ring : <1,
  // CHECK:       @producer
  // CHECK:         scf.for
  // CHECK:           tile.copy_async
  // CHECK-NEXT:      arith.cmpi
  // CHECK-NEXT:      scf.if
  // CHECK:             tile.copy_async %{{.*}} to %[[EARLY]]
  // CHECK:           scf.if
  // CHECK:             tile.copy_async %{{.*}} to %[[LATE]]
  gpu.func @several(%q: !memory, %k: !memory, %c: memref<?xi32>, %tiles: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %late = tile.ring : <1, !smem>
    %early = tile.ring : <1, !smem>
    %keys = tile.ring : <2, !smem>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %l = tile.ring.wait %late[%c0] : <1, !smem>
      %e = tile.ring.wait %early[%c0] : <1, !smem>
      %p = tile.mma_async %l, %e transpose_b warpgroup : !smem, !smem -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
      %s = tile.mma_async %l, %l warpgroup : !smem, !smem -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    } @producer(warps = 1, registers = 24) {
      scf.for %i = %c0 to %tiles step %c1 iter_args(%s = %c0) -> (index) {
        %n = tile.claim %i of %c[%c0] : memref<?xi32>
        tile.ring.acquire %late[%i] : <1, !smem>
        tile.copy_async %q[%n] to %late[%i] : !memory to <1, !smem>
        tile.ring.acquire %early[%i] : <1, !smem>
        tile.copy_async %q[%n] to %early[%i] : !memory to <1, !smem>
        %l = scf.for %j = %c0 to %c256 step %c64 iter_args(%t = %s) -> (index) {
          tile.ring.acquire %keys[%t] : <2, !smem>
          tile.copy_async %k[%j] to %keys[%t] : !memory to <2, !smem>
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
        scf.yield %l : index
      }
    }
    gpu.return
  }
}
