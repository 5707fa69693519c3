// Accumulators of more than 256 columns are two warpgroups', of which the first computes what both need and shares it.
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns)))' | FileCheck %s
// RUN: flash-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-divide-columns,tile-make-rings)),tile-specialize-warps,gpu.module(gpu.func(tile-verify-async)))' | FileCheck %s --check-prefix=ROLES

!memory = memref<?x576xf16, strided<[?, 1]>>
!tile = !tile.smem<64x576xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!probabilities = tensor<64x64xf16, #tile.fragment<4>>
!rows = tensor<64xf32, #tile.rows<4>>
!acc = tensor<64x512xf32, #tile.fragment<4>>
// CHECK-LABEL: gpu.func @kernel(
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x256xf32, #tile.fragment<4>>
// CHECK-DAG:     %[[OTHER:.*]] = arith.constant dense<0.000000e+00> : tensor<64x256xf32, #tile.fragment<4 from 4>>
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[ZERO]], %[[B:.*]] = %[[OTHER]], %{{.*}} = %{{.*}})
// CHECK:           %[[MAX:.*]] = arith.maxnumf
// CHECK-NEXT:      %[[SHARED:.*]] = tile.share %[[MAX]] : tensor<64xf32, #tile.rows<4>> to <8x8xf32, swizzle = 32>
// CHECK:           %[[P:.*]] = arith.truncf
// CHECK-NEXT:      %[[PT:.*]] = tile.share %[[P]] : {{.*}} to <64x64xf16, swizzle = 128>
// The first warps rescale when the others have the probabilities.
// CHECK:           %[[FACTOR:.*]] = tile.broadcast %[[MAX]]
// CHECK-NEXT:      %[[SCALED:.*]] = arith.mulf %[[A]], %[[FACTOR]] : tensor<64x256xf32, #tile.fragment<4>>
// CHECK:           tile.mma_async %[[P]], %{{.*}} add %[[SCALED]] :
// CHECK:           tile.mma_async %[[PT]], %{{.*}} panel(%c4{{.*}}) add %{{.*}} : {{.*}} -> <tensor<64x256xf32, #tile.fragment<4 from 4>>>
// CHECK:         tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<64x256xf16, #tile.fragment<4>>
// CHECK:         tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<64x256xf16, #tile.fragment<4 from 4>>

// ROLES-LABEL: gpu.func @kernel(
// ROLES:         tile.warp_specialize @consumer(warps = 4, registers = 240) {
// ROLES-NOT:       from 4
// ROLES:           tile.ring.put %{{.*}} to %[[M:.*]][%{{.*}}] : tensor<64xf32, #tile.rows<4>>
// ROLES:           tile.ring.put %{{.*}} to %[[R:.*]][%{{.*}}] : tensor<64x64xf16, #tile.fragment<4>>
// ROLES:         } @second_consumer(warps = 4, registers = 208) {
// ROLES-NOT:       #tile.fragment<4>>
// ROLES:           scf.for {{.*}} -> (tensor<64x256xf32, #tile.fragment<4 from 4>>, index)
// ROLES-DAG:         tile.ring.wait %[[M]]
// ROLES-DAG:         tile.ring.wait %[[R]]
// ROLES:         } @producer(warps = 1, registers = 56) {
// ROLES-COUNT-2:   tile.copy_async
// ROLES-NOT:     tile.
// ROLES:         gpu.return
gpu.module @m {
  gpu.func @kernel(%m: !memory, %o: memref<?x512xf16>, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : !acc
    %none = arith.constant dense<0.0> : !rows
    %q = tile.fetch %m[%c0] : !memory to !tile
    %r:2 = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zero, %max = %none) -> (!acc, !rows) {
      %k = tile.fetch %m[%j] : !memory to !tile
      %sp = tile.mma_async %q, %k transpose_b : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %lanes = arith.constant dense<0.0> : tensor<64x4xf32, #tile.lanes<4>>
      %folded = tile.fold max %s into %lanes : !scores into tensor<64x4xf32, #tile.lanes<4>>
      %reduced = tile.reduce max %folded : tensor<64x4xf32, #tile.lanes<4>> to !rows
      %next = arith.maxnumf %max, %reduced : !rows
      %factor = tile.broadcast %next : !rows to !acc
      %scaled = arith.mulf %acc, %factor : !acc
      %p = arith.truncf %s : !scores to !probabilities
      %op = tile.mma_async %p, %k add %scaled : !probabilities, !tile, !acc -> !tile.pending<!acc>
      %sum = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %sum, %next : !acc, !rows
    }
    %rounded = arith.truncf %r#0 : !acc to tensor<64x512xf16, #tile.fragment<4>>
    tile.store %rounded, %o[%c0] : tensor<64x512xf16, #tile.fragment<4>> to memref<?x512xf16>
    gpu.return
  }
}

// -----

// Rows of a tile that is not finite are added one by one: the columns of a map are those of the whole tile, and halves begin at panels.
// CHECK-LABEL: gpu.func @rows(
// CHECK:         %[[PT:.*]] = tile.share
// CHECK:         tile.load_row %{{.*}}[%{{.*}}] : <32x328xf16, swizzle = 128> to tensor<64x192xf32, #tile.fragment<4>>
// CHECK:         tile.load_row %{{.*}}[%{{.*}}] panel(%c3{{.*}}) : <32x328xf16, swizzle = 128> to tensor<64x136xf32, #tile.fragment<4 from 4>>
// CHECK:         tile.column
// CHECK:         %[[P:.*]] = tile.load %[[PT]] : {{.*}} to tensor<64x32xf16, #tile.fragment<4 from 4>>
// CHECK:         tile.column %[[P]][%{{.*}}] : {{.*}} to tensor<64xf32, #tile.rows<4 from 4>>
// CHECK:         tile.map {{.*}} -> tensor<64x136xf32, #tile.fragment<4 from 4>> {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: index, %[[J:.*]]: index):
// CHECK:           %[[COLUMN:.*]] = arith.addi %[[J]], %c192
// CHECK:           arith.cmpi slt, %[[COLUMN]], %c200
gpu.module @m {
  gpu.func @rows(%v: !tile.smem<32x328xf16, swizzle = 128>, %p: tensor<64x32xf16, #tile.fragment<4>>, %o: memref<?x328xf32>, %j: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    %c200 = arith.constant 200 : index
    %ignored = tile.mma_async %p, %v : tensor<64x32xf16, #tile.fragment<4>>, !tile.smem<32x328xf16, swizzle = 128> -> !tile.pending<tensor<64x328xf32, #tile.fragment<4>>>
    %sum = tile.mma_wait %ignored : !tile.pending<tensor<64x328xf32, #tile.fragment<4>>>
    %row = tile.load_row %v[%j] : !tile.smem<32x328xf16, swizzle = 128> to tensor<64x328xf32, #tile.fragment<4>>
    %c = tile.column %p[%j] : tensor<64x32xf16, #tile.fragment<4>> to tensor<64xf32, #tile.rows<4>>
    %b = tile.broadcast %c : tensor<64xf32, #tile.rows<4>> to tensor<64x328xf32, #tile.fragment<4>>
    %x = tile.map %b, %row : (tensor<64x328xf32, #tile.fragment<4>>, tensor<64x328xf32, #tile.fragment<4>>) -> tensor<64x328xf32, #tile.fragment<4>> {
    ^bb0(%e: f32, %f: f32, %r: index, %column: index):
      %is = arith.cmpi slt, %column, %c200 : index
      %y = arith.select %is, %e, %f : f32
      tile.yield %y : f32
    }
    %z = arith.addf %sum, %x : tensor<64x328xf32, #tile.fragment<4>>
    tile.store %z, %o[%c0] : tensor<64x328xf32, #tile.fragment<4>> to memref<?x328xf32>
    gpu.return
  }
}

// -----

// Columns that exist are counted from the first of a half, panels are those of the tile, of 32 columns in f32, and
// the other warps are those behind a tile's own, also where no product says which.
// CHECK-LABEL: gpu.func @columns(
// CHECK-SAME:    %[[N:[^ ]*]]: index)
// CHECK:         tile.load %{{.*}} to tensor<64xf32, #tile.rows<4 from 4>>
// CHECK:         tile.load_row %{{.*}} panel(%c8{{.*}}) : <32x512xf32, swizzle = 128> to tensor<64x256xf32, #tile.fragment<4 from 4>>
// CHECK:         tile.store {{.*}} columns(%[[N]]) : tensor<64x256xf32, #tile.fragment<4>>
// CHECK:         %[[REST:.*]] = arith.subi %[[N]], %c256
// CHECK:         tile.store {{.*}} columns(%[[REST]]) : tensor<64x256xf32, #tile.fragment<4 from 4>>
gpu.module @m {
  gpu.func @columns(%v: !tile.smem<32x512xf32, swizzle = 128>, %f: tensor<64xf32, #tile.rows<4>>, %o: memref<?x512xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps|divide_columns>} {
    %c0 = arith.constant 0 : index
    %b = tile.broadcast %f : tensor<64xf32, #tile.rows<4>> to tensor<64x512xf32, #tile.fragment<4>>
    %row = tile.load_row %v[%c0] : !tile.smem<32x512xf32, swizzle = 128> to tensor<64x512xf32, #tile.fragment<4>>
    %x = arith.mulf %b, %row : tensor<64x512xf32, #tile.fragment<4>>
    tile.store %x, %o[%c0] columns(%n) : tensor<64x512xf32, #tile.fragment<4>> to memref<?x512xf32>
    gpu.return
  }
}
