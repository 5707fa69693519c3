// Tiles whose rows lie in parts, through the passes: one copy for each part, and all of them as early as the stage is free.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings)))" | FileCheck %s --check-prefix=RING
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings,tile-prefetch)))" | FileCheck %s --check-prefix=AHEAD
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings,tile-prefetch)),tile-allocate-smem,gpu.module(gpu.func(tile-lower-rings)))" | FileCheck %s --check-prefix=COPY

!memory = memref<?x?x8x64xf16, strided<[?, ?, ?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

gpu.module @m {
  // RING-LABEL: gpu.func @kernel(
  // RING-DAG:     %[[C0:.*]] = arith.constant 0 : index
  // RING-DAG:     %[[RING:.*]] = tile.ring copies = 2 : <2,
  // RING:         scf.for
  // RING:           %[[PAGE:.*]] = arith.index_cast
  // RING:           %[[NEXT:.*]] = arith.index_cast
  // RING:           tile.ring.acquire %[[RING]][%[[T:.*]]] :
  // RING:           tile.copy_async %[[K:.*]][%[[PAGE]], %[[H:.*]], %[[C0]]] rows(%[[N:.*]]) to %[[RING]][%[[T]]] part(%{{.*}})
  // RING:           tile.copy_async %[[K]][%[[NEXT]], %[[H]], %[[C0]]] rows(%[[M:.*]]) to %[[RING]][%[[T]]] part(%{{.*}})
  // RING:           tile.ring.wait %[[RING]][%[[T]]]

  // The table has an entry of tiles that exist alone.
  // AHEAD-LABEL: gpu.func @kernel(
  // AHEAD-SAME:      %{{[^,]*}}: index, %[[PAGES:[^,]*]]: index,
  // AHEAD:         %[[EXISTS:.*]] = arith.cmpi sgt, %[[PAGES]], %c0 :
  // AHEAD:         scf.if %[[EXISTS]] {
  // AHEAD:           memref.load
  // AHEAD-COUNT-2:   tile.copy_async
  // AHEAD:         scf.for %[[J:.*]] = %{{.*}} to %[[PAGES]]
  // AHEAD:           tile.ring.wait
  // AHEAD:           %[[AHEAD:.*]] = arith.addi %[[J]],
  // AHEAD:           %[[MORE:.*]] = arith.cmpi slt, %[[AHEAD]], %[[PAGES]]
  // AHEAD:           scf.if %[[MORE]] {
  // AHEAD:             memref.load %{{.*}}[%[[AHEAD]]]
  // AHEAD:             tile.copy_async %{{.*}} part(%{{.*}})
  // AHEAD:             tile.copy_async %{{.*}} part(%{{.*}})
  // AHEAD-NOT:       tile.copy_async
  // AHEAD:           gpu.return

  // A group for the parts of a stage.
  // COPY-LABEL:  gpu.func @kernel(
  // COPY:          scf.for
  // COPY:            nvvm.cp.async.wait.group 0
  // COPY:            tile.copy {{.*}} {tile_rows = 8 : i64}
  // COPY-NEXT:       arith
  // COPY-NOT:        nvvm.cp.async.commit.group
  // COPY:            tile.copy {{.*}} {tile_rows = 8 : i64}
  // COPY:            nvvm.cp.async.commit.group
  // COPY-NOT:        nvvm.cp.async.commit.group
  // COPY:            scf.yield
  gpu.func @kernel(%k: !memory, %table: memref<?xi32>, %out: memref<?x64xf16>, %h: index, %pages: index, %n: index, %m: index)
      kernel attributes {flash.schedule = #flash.schedule<stages = 2>, known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %j = %c0 to %pages step %c2 {
      %behind = arith.addi %j, %c1 : index
      %entry = memref.load %table[%j] : memref<?xi32>
      %page = arith.index_cast %entry : i32 to index
      %other = memref.load %table[%behind] : memref<?xi32>
      %next = arith.index_cast %other : i32 to index
      %t = tile.fetch %k[%page, %h, %c0, %next, %h, %c0] parts(2) rows(%n, %m) : !memory to !tile
      %x = tile.load %t : !tile to tensor<16x64xf16, #tile.fragment<1>>
      tile.store %x, %out[%j] : tensor<16x64xf16, #tile.fragment<1>> to memref<?x64xf16>
    }
    gpu.return
  }
}
