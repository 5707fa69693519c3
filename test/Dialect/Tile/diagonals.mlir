// A tile that a product reads, and whose diagonals a role of its own adds up: it is in
// two stages, as where the product alone reads it, the consumers give it back behind the
// product, and the role has all steps, one later where the product is deferred.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-specialize-warps,gpu.module(gpu.func(tile-verify-async)))' | FileCheck %s --check-prefixes=CHECK,NOW
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-specialize-warps,gpu.module(gpu.func(tile-defer-products,tile-pipeline,tile-verify-async)))' | FileCheck %s --check-prefixes=CHECK,LATER
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-specialize-warps,tile-allocate-smem,tile-lower-roles)' | FileCheck %s --check-prefix=ROLES
// RUN: not flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-make-rings,tile-lower-rings)))' 2>&1 | FileCheck %s --check-prefix=RINGS
// RINGS: 'tile.store_diagonals' op is for a role of one warp, and the warps of this kernel have no roles

// CHECK-LABEL: gpu.func @add(
// CHECK:         %[[HALVES:.*]] = tile.ring : <2, <128x64xf16
// CHECK:       tile.warp_specialize @consumer(warps = 8, registers = 224) {
// CHECK:         tile.ring.put %{{.*}} to %[[HALVES]]
// CHECK:         %[[TILE:.*]] = tile.ring.wait %[[HALVES]]
// CHECK-NEXT:    tile.mma_async %{{.*}}, %[[TILE]]
// CHECK-NEXT:    tile.mma_wait
// CHECK-NEXT:    tile.ring.release %[[HALVES]]
// CHECK-NOT:     store_diagonals
// CHECK:       } @producer(warps = 1, registers = 56) {
// Of the three warps that are left one adds.
// CHECK:       } @adder(warps = 1, registers = 56) {
// CHECK:       } @diagonals(warps = 2, registers = 56) {
// LATER:         %[[FIRST:.*]] = tile.ring.wait %[[HALVES]][%c0
// LATER-NEXT:    tile.ring.release %[[HALVES]][%c0
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[STEP:.*]] = %c0
// LATER:           %[[NEXT:.*]] = arith.addi %[[STEP]], %c1
// NOW:             %[[T:.*]] = tile.ring.wait %[[HALVES]][%[[STEP]]]
// LATER:           %[[T:.*]] = tile.ring.wait %[[HALVES]][%[[NEXT]]]
// CHECK-NEXT:      tile.store_diagonals %[[T]], %{{.*}}[%[[I]]]
// NOW-NEXT:        tile.ring.release %[[HALVES]][%[[STEP]]]
// LATER-NEXT:      tile.ring.release %[[HALVES]][%[[NEXT]]]

// Each of the two warps has the tiles of every other step; a stage is free when eight
// warps have read it and one of these.
// ROLES-LABEL: gpu.func @add(
// ROLES:         %[[READERS:.*]] = arith.constant 9 : i32
// ROLES:         nvvm.mbarrier.init %{{.*}}, %[[READERS]]
// ROLES:         scf.for
// ROLES:           %[[WARP:.*]] = arith.subi %{{.*}}, %c10
// ROLES:           %[[OWNER:.*]] = arith.remui %{{.*}}, %c2
// ROLES:           %[[OWN:.*]] = arith.cmpi eq, %[[OWNER]], %[[WARP]]
// ROLES:           scf.if %[[OWN]] {
// ROLES:             nvvm.mbarrier.try_wait.parity
// ROLES:             tile.store_diagonals

!mx = memref<640x128xf16, strided<[?, 1], offset: ?>>
!sums = memref<5x128x64xf32, strided<[?, ?, 1], offset: ?>>
!diagonals = memref<5x192xf32, strided<[?, 1], offset: ?>>
!counts = memref<5xi32>
!smem = !tile.smem<128x128xf16, swizzle = 128>
!scores = !tile.smem<128x64xf16, swizzle = 128>
!wide = !tile.smem<128x64xf32, swizzle = 128>
!keys = !tile.smem<64x128xf16, swizzle = 128>
!half = tensor<128x64xf16, #tile.fragment<8>>
!acc = tensor<128x64xf32, #tile.fragment<8>>
gpu.module @kernels {
  gpu.func @add(%x: !mx, %sums: !sums, %diagonals: !diagonals, %counts: !counts, %lo: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|defer_products>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c64 = arith.constant 64 : index
    %xt = tile.fetch %x[%c0] : !mx to !smem
    scf.for %i = %lo to %c5 step %c1 {
      %at = arith.muli %i, %c64 : index
      %yt = tile.fetch %x[%at] : !mx to !keys
      %sp = tile.mma_async %xt, %yt transpose_b : !smem, !keys -> !tile.pending<!acc>
      %s = tile.mma_wait %sp : !tile.pending<!acc>
      %h = arith.truncf %s : !acc to !half
      %ht = tile.share %h : !half to !scores
      %p = tile.mma_async %xt, %ht transpose_a : !smem, !scores -> !tile.pending<!acc>
      %d = tile.mma_wait %p : !tile.pending<!acc>
      %t = tile.share %d : !acc to !wide
      tile.store_diagonals %ht, %diagonals[%i] : !scores to !diagonals
      tile.add_in_order %t, %sums[%i, %c0] rank(%c0) of %counts[%i] : !wide to !sums, !counts
    }
    gpu.return
  }
}
