// Warpgroups without rows of a tile wait for stages and give them back, and leave out the rest.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-skip-rows,tile-verify-async)),canonicalize,cse)" | FileCheck %s

#skips = #flash.schedule<features = specialize_warps|skip_rows>
!memory = memref<?x64xf16, strided<[?, 1]>>
!output = memref<?x64xf32, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<128x64xf32, #tile.fragment<8>>
!factor = tensor<128x64xf16, #tile.fragment<8>>

gpu.module @m {
  // Whatever else waits for the warpgroup it does without rows, too: in phases of the ping-pong, and where all warpgroups
  // together clear a stage that is not finite. The next tile needs how many steps there were.
  // CHECK-LABEL: gpu.func @tiles(
  // CHECK-SAME:    %[[N:[^:]*]]: index,
  // CHECK:         %[[KEYS:.*]] = tile.ring
  // CHECK:         %[[VALUES:.*]] = tile.ring checked
  // CHECK:         tile.warp_specialize @consumer
  // CHECK-NEXT:      scf.for %[[I:.*]] = %c0 to %[[N]] step %c1 iter_args(%[[T:.*]] = %c0) -> (index) {
  // CHECK:             %[[ROWS:.*]] = memref.load
  // CHECK-NEXT:        %[[HAS:.*]] = tile.has_rows %[[ROWS]]
  // CHECK-NEXT:        %[[STEPS:.*]] = scf.if %[[HAS]] -> (index) {
  // CHECK:               tile.mma_async
  // CHECK:               tile.store
  // CHECK:             } else {
  // CHECK-NEXT:          %[[END:.*]] = scf.for %{{.*}} = %c0 to %[[N]] step %c1 iter_args(%[[S:.*]] = %[[T]]) -> (index) {
  // CHECK-NEXT:            tile.ring.wait %[[KEYS]][%[[S]]]
  // CHECK-NEXT:            tile.ring.release %[[KEYS]][%[[S]]]
  // CHECK-NEXT:            %[[STAGE:.*]] = tile.ring.peek %[[VALUES]][%[[S]]]
  // CHECK-NEXT:            %[[FINITE:.*]] = tile.ring.is_finite %[[VALUES]][%[[S]]]
  // CHECK-NEXT:            scf.if %[[FINITE]] {
  // CHECK-NEXT:            } else {
  // CHECK-NEXT:              tile.clear %[[STAGE]] warps(8)
  // CHECK-NEXT:            }
  // CHECK-NEXT:            tile.ring.wait %[[VALUES]][%[[S]]]
  // CHECK-NEXT:            tile.ping_pong.wait
  // CHECK-NEXT:            tile.ping_pong.arrive
  // CHECK-NEXT:            tile.ring.release %[[VALUES]][%[[S]]]
  // CHECK-NEXT:            %[[NEXT:.*]] = arith.addi %[[S]], %c1
  // CHECK-NEXT:            scf.yield %[[NEXT]]
  // CHECK-NEXT:          }
  // CHECK-NEXT:          scf.yield %[[END]]
  // CHECK-NEXT:        }
  // CHECK-NEXT:        scf.yield %[[STEPS]]
  gpu.func @tiles(%n: index, %rows: memref<?xindex>, %k: !memory, %o: !output, %p: !factor, %none: !scores) kernel attributes {flash.schedule = #skips} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s = tile.ring : !ring
    %r = tile.ring checked : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 232) {
      %tiles = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %row = memref.load %rows[%i] : memref<?xindex>
        %steps:2 = scf.for %j = %c0 to %n step %c1 iter_args(%u = %t, %acc = %none) -> (index, !scores) {
          %k0 = tile.ring.wait %s[%u] : !ring
          tile.ring.release %s[%u] : !ring
          %stage = tile.ring.peek %r[%u] : !ring
          %finite = tile.ring.is_finite %r[%u] : !ring
          scf.if %finite {
          } else {
            tile.clear %stage warps(8) : !tile
          }
          %v = tile.ring.wait %r[%u] : !ring
          tile.ping_pong.wait
          %op = tile.mma_async %p, %v add %acc warpgroup : !factor, !tile, !scores -> !tile.pending<!scores>
          tile.ping_pong.arrive
          %sum = tile.mma_wait %op : !tile.pending<!scores>
          tile.ring.release %r[%u] : !ring
          %next = arith.addi %u, %c1 : index
          scf.yield %next, %sum : index, !scores
        }
        tile.store %steps#1, %o[%c0] rows(%row) : !scores to !output
        scf.yield %steps#0 : index
      }
    } @producer(warps = 1, registers = 40) {
      %tiles = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %steps = scf.for %j = %c0 to %n step %c1 iter_args(%u = %t) -> index {
          tile.ring.acquire %s[%u] : !ring
          tile.copy_async %k[%j] to %s[%u] : !memory to !ring
          tile.ring.acquire %r[%u] : !ring
          tile.copy_async %k[%j] to %r[%u] : !memory to !ring
          %next = arith.addi %u, %c1 : index
          scf.yield %next : index
        }
        scf.yield %steps : index
      }
    } @nonfinite_check(warps = 3 from 9, registers = 40) {
      %tiles = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %steps = scf.for %j = %c0 to %n step %c1 iter_args(%u = %t) -> index {
          tile.ring.check_finite %r[%u] : !ring
          %next = arith.addi %u, %c1 : index
          scf.yield %next : index
        }
        scf.yield %steps : index
      }
    }
    gpu.return
  }

  // A store of all rows says that there are such; and a block with one tile ends with it.
  // CHECK-LABEL: gpu.func @all_rows(
  // CHECK-NOT:     tile.has_rows
  gpu.func @all_rows(%rows: index, %k: !memory, %o: !output, %x: !scores) kernel attributes {flash.schedule = #skips} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 232) {
      %v = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
      tile.store %x, %o[%c0] rows(%rows) : !scores to !output
      tile.store %x, %o[%c0] : !scores to !output
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    }
    gpu.return
  }

  // The schedule says what is done.
  // CHECK-LABEL: gpu.func @left_out(
  // CHECK-NOT:     tile.has_rows
  gpu.func @left_out(%rows: index, %k: !memory, %o: !output, %x: !scores) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 232) {
      %v = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
      tile.store %x, %o[%c0] rows(%rows) : !scores to !output
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    }
    gpu.return
  }
}
