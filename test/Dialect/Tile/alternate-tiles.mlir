// Under ping_pong the two warpgroups that divide columns alternate between tiles: an iteration has two, of which the second warpgroup computes the scores of the second one.
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns)))' --verify-diagnostics | FileCheck %s
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns,tile-make-rings)),tile-specialize-warps,gpu.module(gpu.func(tile-verify-async)))' | FileCheck %s --check-prefix=ROLES
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns,tile-make-rings)),tile-specialize-warps,tile-allocate-smem)' | FileCheck %s --check-prefix=SMEM

!memory = memref<?x576xf16, strided<[?, 1]>>
!tile = !tile.smem<64x576xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!probabilities = tensor<64x64xf16, #tile.fragment<4>>
!rows = tensor<64xf32, #tile.rows<4>>
!lanes = tensor<64x4xf32, #tile.lanes<4>>
!acc = tensor<64x512xf32, #tile.fragment<4>>
// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    %[[N:[^ ]*]]: index)
// CHECK-DAG:     arith.ceildivui %{{.*}}, %c64
// The tiles are fetched in pieces of columns.
// CHECK-DAG:     tile.fetch {{.*}} to <64x64xf16, swizzle = 128>
// CHECK-DAG:     tile.fetch {{.*}} to <64x256xf16, swizzle = 128>
// CHECK:         %[[PAIRS:.*]]:4 = scf.for %{{.*}} to %[[END:.*]] step %c128
// CHECK-DAG:       tile.fetch {{.*}} to <64x64xf16, swizzle = 128>
// CHECK-DAG:       %[[FIRST:.*]] = tile.fetch {{.*}} to <64x256xf16, swizzle = 128>
// CHECK-DAG:       %[[SECOND:.*]] = tile.fetch {{.*}} to <64x256xf16, swizzle = 128>
// CHECK-COUNT-3:   tile.mma_async {{.*}} -> <tensor<64x64xf32, #tile.fragment<4>>>
// CHECK:           %[[MAX:.*]] = arith.maxnumf
// CHECK-NEXT:      %[[MAXT:.*]] = tile.share %[[MAX]]
// CHECK:           %[[PT:.*]] = tile.share {{.*}} to <64x64xf16, swizzle = 128>
// CHECK:           tile.mma_async %{{.*}}, %[[FIRST]] add {{.*}} -> <tensor<64x256xf32, #tile.fragment<4>>>
// CHECK-COUNT-3:   tile.mma_async {{.*}} -> <tensor<64x64xf32, #tile.fragment<4 from 4>>>
// The product of the first tile's probabilities runs behind the scores of the second.
// CHECK:           %[[EARLY:.*]] = tile.mma_async %[[PT]], %[[SECOND]] add {{.*}} -> <tensor<64x256xf32, #tile.fragment<4 from 4>>>
// CHECK-NEXT:      tile.mma_wait %{{.*}} younger(%[[EARLY]] :
// CHECK:           tile.load %[[MAXT]] : {{.*}} to tensor<64xf32, #tile.rows<4 from 4>>
// CHECK:           %[[NEXT:.*]] = arith.maxnumf {{.*}} : tensor<64xf32, #tile.rows<4 from 4>>
// CHECK:           tile.mma_wait %[[EARLY]]
// CHECK:           %[[PT1:.*]] = tile.share {{.*}} : tensor<64x64xf16, #tile.fragment<4 from 4>> to
// CHECK:           tile.mma_async %[[PT1]], {{.*}} -> <tensor<64x256xf32, #tile.fragment<4>>>
// CHECK:           tile.mma_async {{.*}} : tensor<64x64xf16, #tile.fragment<4 from 4>>, {{.*}} -> <tensor<64x256xf32, #tile.fragment<4 from 4>>>
// The maxima and the sums of rows go to the first warps for the next iteration.
// CHECK:           %[[NEXTT:.*]] = tile.share %[[NEXT]]
// CHECK:           %[[SUM:.*]] = tile.reduce add {{.*}} to tensor<64xf32, #tile.rows<4 from 4>>
// CHECK-NEXT:      tile.share %[[SUM]]
// CHECK:           %[[CARRIED:.*]] = tile.load %[[NEXTT]] : {{.*}} to tensor<64xf32, #tile.rows<4>>
// CHECK:           scf.yield %{{.*}}, %{{.*}}, %[[CARRIED]], %{{.*}}
// A last tile is one of the first warps again.
// CHECK:         scf.for %{{.*}} = %[[END]] to %[[N]] step %c64 iter_args(%{{.*}} = %[[PAIRS]]#0,
// CHECK-NOT:       tile.mma_async {{.*}} -> <tensor<64x64xf32, #tile.fragment<4 from 4>>>

// Each piece of both tiles has a ring of one stage, which the last tile has, too.
// ROLES-LABEL: gpu.func @kernel(
// ROLES:         tile.warp_specialize @consumer(warps = 4, registers = 224) {
// ROLES:           scf.for
// ROLES:             tile.ring.wait %[[KEYS:.*]][%{{.*}}] : <1, <64x256xf16, swizzle = 128>>
// ROLES:             tile.ring.put %{{.*}} to %[[P0:.*]][%{{.*}}] : tensor<64x64xf16, #tile.fragment<4>>
// ROLES:             tile.ring.wait %[[P1:.*]][%{{.*}}] : <1, <64x64xf16, swizzle = 128>>
// ROLES:           scf.for
// ROLES:             tile.ring.wait %[[KEYS]][
// ROLES:             tile.ring.put %{{.*}} to %[[P0]][
// ROLES:         } @second_consumer(warps = 4, registers = 224) {
// ROLES:             tile.ring.wait %[[P0]][
// ROLES:             tile.ring.release %[[P0]][
// ROLES:             tile.ring.put %{{.*}} to %[[P1]][
// ROLES:         } @producer(

// The probabilities of both tiles have the same memory alternately.
// SMEM-LABEL: gpu.func @kernel(
// SMEM:         tile.ring {{.*}}x64xf16
// SMEM:         tile.ring {barriers = {{[0-9]+}} : i64, offset = [[OFFSET:[0-9]+]] : i64} : <1, <64x64xf16
// SMEM:         tile.ring {{.*}}x64xf16
// SMEM:         tile.ring {barriers = {{[0-9]+}} : i64, offset = [[OFFSET]] : i64} : <1, <64x64xf16
gpu.module @m {
  gpu.func @kernel(%m: !memory, %o: memref<?x512xf16>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<stages = 2, features = specialize_warps|divide_columns|ping_pong>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : !acc
    %none = arith.constant dense<0.0> : !rows
    %nothing = arith.constant dense<0.0> : !lanes
    %q = tile.fetch %m[%c0] : !memory to !tile
    %r:3 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero, %max = %none, %sums = %nothing) -> (!acc, !rows, !lanes) {
      %k = tile.fetch %m[%j] : !memory to !tile
      %sp = tile.mma_async %q, %k transpose_b : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %lanes = arith.constant dense<0.0> : !lanes
      %folded = tile.fold max %s into %lanes : !scores into !lanes
      %reduced = tile.reduce max %folded : !lanes to !rows
      %next = arith.maxnumf %max, %reduced : !rows
      %factor = arith.subf %max, %next : !rows
      %ofLanes = tile.broadcast %factor : !rows to !lanes
      %scaledSums = arith.mulf %sums, %ofLanes : !lanes
      %added = tile.fold add %s into %scaledSums : !scores into !lanes
      %ofColumns = tile.broadcast %factor : !rows to !acc
      %scaled = arith.mulf %acc, %ofColumns : !acc
      %p = arith.truncf %s : !scores to !probabilities
      %op = tile.mma_async %p, %k add %scaled : !probabilities, !tile, !acc -> !tile.pending<!acc>
      %sum = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %sum, %next, %added : !acc, !rows, !lanes
    }
    %rounded = arith.truncf %r#0 : !acc to tensor<64x512xf16, #tile.fragment<4>>
    tile.store %rounded, %o[%c0] : tensor<64x512xf16, #tile.fragment<4>> to memref<?x512xf16>
    gpu.return
  }
}

// -----

!memory = memref<?x576xf16, strided<[?, 1]>>
!tile = !tile.smem<64x576xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!probabilities = tensor<64x64xf16, #tile.fragment<4>>
!acc = tensor<64x512xf32, #tile.fragment<4>>
// Where a tile is checked, columns are divided alone, and the kernel's schedule says so.
// CHECK-LABEL: gpu.func @checked(
// CHECK-NOT:     ping_pong
// CHECK:         scf.for {{.*}} step %c64
// CHECK:           tile.fetch {{.*}} to <64x576xf16, swizzle = 128>
// CHECK-NOT:     scf.for
gpu.module @m {
  // expected-warning @below {{warpgroups do not alternate between tiles (ping_pong): there is no pair of tiles, loops have choices, or other operations than products read the tiles; one warpgroup computes all scores}}
  gpu.func @checked(%m: !memory, %o: memref<?x512xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<stages = 2, features = specialize_warps|divide_columns|ping_pong>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : !acc
    %q = tile.fetch %m[%c0] : !memory to !tile
    %r = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!acc) {
      %k = tile.fetch %m[%j] : !memory to !tile
      %sp = tile.mma_async %q, %k transpose_b : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %p = arith.truncf %s : !scores to !probabilities
      %finite = tile.is_finite %k : !tile
      %sum = scf.if %finite -> (!acc) {
        %op = tile.mma_async %p, %k add %acc : !probabilities, !tile, !acc -> !tile.pending<!acc>
        %ended = tile.mma_wait %op : !tile.pending<!acc>
        scf.yield %ended : !acc
      } else {
        scf.yield %acc : !acc
      }
      scf.yield %sum : !acc
    }
    tile.store %r, %o[%c0] : !acc to memref<?x512xf32>
    gpu.return
  }
}
