// Results of 16 bits, and those that are added, go through shared memory, as many panels of columns at a
// time as the rings leave room for.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{keys=shared_bytes_per_block=49200},gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s --check-prefix=HALF
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s --check-prefix=ROOM
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{keys=shared_bytes_per_block=40000},gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s --check-prefix=NONE
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{keys=shared_bytes_per_block=49200},gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s --check-prefix=ROWS
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{keys=shared_bytes_per_block=49199},gpu.module(gpu.func(tile-bulk-stores)))" | FileCheck %s --check-prefix=NOROOM

!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>
!memory = memref<?x?x?x128xf16, strided<[?, ?, ?, 1], offset: ?>>
!static = memref<2x4x512x128xf16, strided<[?, ?, ?, 1], offset: ?>>
!wide = memref<?x?x?x128xf32, strided<[?, ?, ?, 1], offset: ?>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @kernel(
  // CHECK:       tile.store_bulk %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] through !tile.smem<128x128xf16, swizzle = 128>
  // Results of 32 bits do not.
  // CHECK:       tile.store %
  // Those that are added do, as many of their columns at a time as there is room
  // for.
  // CHECK:       tile.store_bulk add %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] through !tile.smem<128x128xf32, swizzle = 128>
  // Of rows behind which memory goes on, the copy says how many there are; memory of five dimensions has no such copy.
  // CHECK:       tile.store_bulk %{{.*}}, %{{.*}}[%{{.*}}] rows(%{{.*}}) through !tile.smem<128x128xf16, swizzle = 128>
  // CHECK:       tile.store %{{.*}} rows(%
  // Nor do those of kernels without roles.
  // CHECK-LABEL: gpu.func @no_roles(
  // CHECK:       tile.store %
  // HALF-LABEL:  gpu.func @kernel(
  // HALF:        through !tile.smem<128x64xf16, swizzle = 128>
  // NONE-LABEL:  gpu.func @kernel(
  // NONE-NOT:    tile.store_bulk
  // NONE-LABEL:  gpu.func @no_roles(
  gpu.func @kernel(%out: !memory, %out32: !wide, %x: tensor<128x128xf16, #tile.fragment<8>>,
                   %y: tensor<128x128xf32, #tile.fragment<8>>, %i: index, %deep: memref<?x?x?x?x128xf16>) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %ring = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      tile.store %x, %out[%i, %i, %i] rows(%i) to_end : tensor<128x128xf16, #tile.fragment<8>> to !memory
      tile.store %y, %out32[%i, %i, %i] : tensor<128x128xf32, #tile.fragment<8>> to !wide
      tile.store add %y, %out32[%i, %i, %i] : tensor<128x128xf32, #tile.fragment<8>> to !wide
      tile.store %x, %out[%i, %i, %i] rows(%i) : tensor<128x128xf16, #tile.fragment<8>> to !memory
      tile.store %x, %deep[%i, %i, %i, %i] rows(%i) : tensor<128x128xf16, #tile.fragment<8>> to memref<?x?x?x?x128xf16>
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
  gpu.func @no_roles(%out: !memory, %x: tensor<128x128xf16, #tile.fragment<8>>, %i: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    tile.store %x, %out[%i, %i, %i] : tensor<128x128xf16, #tile.fragment<8>> to !memory
    gpu.return
  }
}

// In a loop, results go where the queries of the loop were, if there is room for
// one more stage of 64 rows: then the next queries of a warpgroup can come early.
// The queries are given back behind the store. Of 49152 bytes for row stages, all but
// 16384 are those of the ring.

!pending = !tile.pending<tensor<128x16xf32, #tile.fragment<8>>>
!keys = !tile.smem<16x128xf16, swizzle = 128>
!steps = !tile.smem<16x64xf16, swizzle = 128>
!like = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
!half = memref<?x?x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>

gpu.module @loops {
  // ROWS-LABEL: gpu.func @loop(
  // ROWS:       tile.ring row_stages = 3 : <1, <128x128xf16
  // ROWS:       tile.warp_specialize @consumer(warps = 8, registers = 232)
  // ROWS:       %[[Q:.*]] = tile.ring.wait
  // ROWS:       tile.mma_wait
  // ROWS-NOT:   tile.ring.release
  // ROWS:       tile.store_bulk %{{.*}} through !tile.smem<64x128xf16, swizzle = 128> in %[[Q]] :
  // ROWS-NEXT:  tile.ring.release
  // Who copies to row stages has more to count.
  // ROWS:       @producer(warps = 1, registers = 40)
  // NOROOM-LABEL: gpu.func @loop(
  // NOROOM:       tile.ring : <1, <128x128xf16
  // NOROOM:       tile.ring.release
  // NOROOM:       tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> :
  gpu.func @loop(%in: !static, %out: !static, %x: tensor<128x128xf16, #tile.fragment<8>>, %k: !keys, %i: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %t = %c0 to %i step %c1 {
        %q = tile.ring.wait %ring[%t] : !ring
        %p = tile.mma_async %q, %k transpose_b warpgroup : !tile.smem<128x128xf16, swizzle = 128>, !keys -> !pending
        %s = tile.mma_wait %p : !pending
        tile.ring.release %ring[%t] : !ring
        tile.store %x, %out[%t, %t, %t] : tensor<128x128xf16, #tile.fragment<8>> to !static
      }
    } @producer(warps = 1, registers = 24) {
      scf.for %t = %c0 to %i step %c1 {
        tile.ring.acquire %ring[%t] : !ring
        tile.copy_async %in[%t, %t, %t] to %ring[%t] : !static to !ring
      }
    }
    gpu.return
  }

  // Sizes known at run time only take the registers that row stages take.
  // ROWS-LABEL: gpu.func @dynamic_sizes(
  // ROWS:       tile.ring : <1, <128x128xf16
  gpu.func @dynamic_sizes(%out: !memory, %x: tensor<128x128xf16, #tile.fragment<8>>, %k: !keys, %i: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %t = %c0 to %i step %c1 {
        %q = tile.ring.wait %ring[%t] : !ring
        %p = tile.mma_async %q, %k transpose_b warpgroup : !tile.smem<128x128xf16, swizzle = 128>, !keys -> !pending
        %s = tile.mma_wait %p : !pending
        tile.ring.release %ring[%t] : !ring
        tile.store %x, %out[%t, %t, %t] : tensor<128x128xf16, #tile.fragment<8>> to !memory
      }
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // Where no tile follows and there is no room, a result has the memory of a tile like it.
  // HALF-LABEL: gpu.func @last(
  // HALF:       %[[K:.*]] = tile.ring.wait
  // HALF:       %[[V:.*]] = tile.ring.wait
  // HALF:       tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> in %[[K]] :
  // HALF-NEXT:  tile.ring.release
  // HALF-NEXT:  tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> in %[[V]] :
  // HALF-NEXT:  tile.ring.release
  // Where there is, it has its own.
  // ROOM-LABEL: gpu.func @last(
  // ROOM-COUNT-2: tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> :
  gpu.func @last(%out: !half, %x: tensor<128x64xf16, #tile.fragment<8>>, %q: !steps, %i: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %keys = tile.ring : !like
    %values = tile.ring : !like
    %others = tile.ring : !tile.ring<1, !tile.smem<128x32xf16, swizzle = 64>>
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      %k = tile.ring.wait %keys[%i] : !like
      %own = tile.load %k : !tile.smem<128x64xf16, swizzle = 128> to tensor<128x64xf16, #tile.fragment<8>>
      %v = tile.ring.wait %values[%i] : !like
      %p = tile.mma_async %v, %q transpose_b warpgroup : !tile.smem<128x64xf16, swizzle = 128>, !steps -> !pending
      %s = tile.mma_wait %p : !pending
      tile.ring.release %keys[%i] : !like
      tile.ring.release %values[%i] : !like
      tile.store %own, %out[%i, %i, %i] : tensor<128x64xf16, #tile.fragment<8>> to !half
      tile.store %x, %out[%i, %i, %i] : tensor<128x64xf16, #tile.fragment<8>> to !half
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // The same of a tile that a block claims, of which the next one waits for the release.
  // HALF-LABEL: gpu.func @claimed(
  // HALF:       %[[V:.*]] = tile.ring.wait
  // HALF:       tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> in %[[V]] :
  // HALF-NEXT:  tile.ring.release
  // ROOM-LABEL: gpu.func @claimed(
  // ROOM:       tile.ring : <1, <128x64xf16
  // ROOM:       tile.ring.release
  // ROOM:       tile.store_bulk %{{.*}} through !tile.smem<128x64xf16, swizzle = 128> :
  gpu.func @claimed(%out: !half, %x: tensor<128x64xf16, #tile.fragment<8>>, %q: !steps, %c: memref<?xi32>, %tiles: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %values = tile.ring : !like
    %rest = tile.ring : !tile.ring<1, !tile.smem<128x96xf16, swizzle = 64>>
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %i = %c0 to %tiles step %c1 {
        %n = tile.claim %i of %c[%c0] : memref<?xi32>
        %v = tile.ring.wait %values[%i] : !like
        %p = tile.mma_async %v, %q transpose_b warpgroup : !tile.smem<128x64xf16, swizzle = 128>, !steps -> !pending
        %s = tile.mma_wait %p : !pending
        tile.ring.release %values[%i] : !like
        tile.store %x, %out[%n, %n, %n] : tensor<128x64xf16, #tile.fragment<8>> to !half
      }
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }

  // Others than products read the rows of all warpgroups.
  // ROWS-LABEL: gpu.func @loads(
  // ROWS:       tile.ring : <1, <128x128xf16
  gpu.func @loads(%out: !static, %x: tensor<128x128xf16, #tile.fragment<8>>, %i: index) kernel attributes {flash.schedule = #flash.schedule<features = bulk_store>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %ring = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      scf.for %t = %c0 to %i step %c1 {
        %q = tile.ring.wait %ring[%t] : !ring
        %row = tile.load_row %q[%c0] : !tile.smem<128x128xf16, swizzle = 128> to tensor<128x128xf32, #tile.fragment<8>>
        tile.ring.release %ring[%t] : !ring
        tile.store %x, %out[%t, %t, %t] : tensor<128x128xf16, #tile.fragment<8>> to !static
      }
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}
