// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>
!rows = tensor<16xf32, #tile.rows<1>>
!lanes = tensor<16x4xf32, #tile.lanes<1>>

gpu.module @m {
  // 2048 bytes are 4 chunks of 16 for each of 32 threads. A row that does not
  // exist is a copy of no bytes, which writes zeros.

  // CHECK-LABEL: gpu.func @copy(
  // CHECK-SAME:  , %[[N:[^ ]*]]: index
  // CHECK:       nvx.shared_memory
  // CHECK:       arith.cmpi slt, %{{.*}}, %[[N]]
  // CHECK:       %[[BYTES:.*]] = arith.select %{{.*}}, %c16_i32{{.*}}, %c0_i32
  // CHECK:       nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[BYTES]]
  // CHECK-COUNT-3: nvvm.cp.async.shared.global
  // CHECK-NOT:   nvvm.cp.async.shared.global
  // CHECK:       gpu.return
  gpu.func @copy(%k: !memory, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = tile.smem_view %c0 : !tile
    tile.copy %k[%c0] rows(%n) to %kt : !memory to !tile
    gpu.return
  }

  // One element, which each thread writes.

  // CHECK-LABEL: gpu.func @store_element(
  // CHECK:       %[[TO:.*]] = llvm.getelementptr
  // CHECK-NEXT:  llvm.store %{{.*}}, %[[TO]] : i32
  gpu.func @store_element(%m: memref<?xi32>, %i: index, %x: i32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    memref.store %x, %m[%i] : memref<?xi32>
    gpu.return
  }

  // Four steps of 16 columns, two blocks of 8 keys each. A transposed operand is
  // loaded as it lies, another one is transposed by the load.

  // CHECK-LABEL: gpu.func @product_transposed(
  // CHECK-COUNT-4: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
  // CHECK-COUNT-2: nvvm.mma.sync
  // CHECK-COUNT-3: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
  // CHECK-COUNT-2: nvvm.mma.sync
  // CHECK-NOT:   nvvm.{{mma.sync|ldmatrix}}
  // CHECK:       gpu.return
  gpu.func @product_transposed(%o: memref<?x16xf32, strided<[?, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = tile.smem_view %c0 : !tile
    %q = tile.load %kt : !tile to !query
    %p = tile.mma_async %q, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
    %s = tile.mma_wait %p : !tile.pending<!scores>
    tile.store %s, %o[%c0] : !scores to memref<?x16xf32, strided<[?, 1]>>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @product(
  // CHECK:       nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>
  // CHECK:       nvvm.mma.sync
  gpu.func @product(%h: tensor<16x16xf16, #tile.fragment<1>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %vt = tile.smem_view %c0 : !tile
    %p = tile.mma_async %h, %vt : tensor<16x16xf16, #tile.fragment<1>>, !tile -> !tile.pending<tensor<16x64xf32, #tile.fragment<1>>>
    %o = tile.mma_wait %p : !tile.pending<tensor<16x64xf32, #tile.fragment<1>>>
    gpu.return
  }

  // Arithmetic on the registers of a thread; a row's values are combined with
  // those of lanes whose numbers differ in the last two bits.

  // CHECK-LABEL: gpu.func @rows(
  // CHECK:       arith.mulf %{{.*}}, %{{.*}} : vector<8xf32>
  // CHECK:       nvvm.shfl.sync bfly {{.*}}, %c2_i32
  // CHECK:       nvvm.shfl.sync bfly {{.*}}, %c1_i32
  // CHECK:       vector<2xf32>
  gpu.func @rows(%x: !scores, %zero: !lanes) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %y = arith.mulf %x, %x : !scores
    %l = tile.fold add %y into %zero : !scores into !lanes
    %r = tile.reduce add %l : !lanes to !rows
    %b = tile.broadcast %r : !rows to !scores
    gpu.return
  }

  // The region, for each of 8 registers.

  // CHECK-LABEL: gpu.func @map(
  // CHECK-COUNT-8: arith.select
  // CHECK-NOT:   arith.select
  // CHECK:       gpu.return
  gpu.func @map(%x: !scores, %zero: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %m = tile.map %x : (!scores) -> !scores {
    ^bb0(%e: f32, %i: index, %j: index):
      %keep = arith.cmpi sle, %j, %i : index
      %f = arith.select %keep, %e, %zero : f32
      tile.yield %f : f32
    }
    gpu.return
  }

  // 8 columns of f32 are a step; each product is three of tf32, or one.

  // The upper part of an operand is the operand itself; the rest of the first is
  // larger by 3 * 2^-23 of it. Nothing is added to the first sum.

  // CHECK-LABEL: gpu.func @accurate(
  // CHECK:       %[[A:.*]] = llvm.bitcast %[[X:.*]] : f32 to i32
  // CHECK:       %[[AND:.*]] = arith.andi %[[A]], %c-8192_i32
  // CHECK-NEXT:  %[[UPPER:.*]] = llvm.bitcast %[[AND]]
  // CHECK-NEXT:  %[[FACTOR:.*]] = arith.constant -0.999999642 : f32
  // CHECK-NEXT:  %[[REST:.*]] = math.fma %[[UPPER]], %[[FACTOR]], %[[X]]
  // CHECK-NEXT:  %[[AL:.*]] = llvm.bitcast %[[REST]]
  // CHECK:       %[[RESTB:.*]] = arith.subf
  // CHECK-NEXT:  %[[BL:.*]] = llvm.bitcast %[[RESTB]]
  // CHECK:       nvvm.mma.sync A[%[[AL]], {{.*}} B[%[[B:[0-9]+]],
  // CHECK:       nvvm.mma.sync A[%[[A]], {{.*}} B[%[[BL]],
  // CHECK:       nvvm.mma.sync A[%[[A]], {{.*}} B[%[[B]],
  // CHECK-NOT:   {{nvvm.mma.sync|arith.addf}}
  // CHECK:       gpu.return
  gpu.func @accurate(%x: tensor<16x8xf32, #tile.fragment<1>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<8x8xf32, swizzle = 32>
    %p = tile.mma_async %x, %t transpose_b : tensor<16x8xf32, #tile.fragment<1>>, !tile.smem<8x8xf32, swizzle = 32> -> !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
    gpu.return
  }

  // Operands are rounded by a multiplication, of which NaN stays NaN.
  // CHECK-LABEL: gpu.func @tf32(
  // CHECK:       arith.constant 1.00035226 : f32
  // CHECK-NEXT:  %[[LARGER:.*]] = arith.mulf %{{.*}} : f32
  // CHECK-NEXT:  %[[A:.*]] = llvm.bitcast %[[LARGER]] : f32 to i32
  // CHECK:       nvvm.mma.sync A[%[[A]],
  // CHECK-NOT:   nvvm.mma.sync
  // CHECK:       gpu.return
  gpu.func @tf32(%x: tensor<16x8xf32, #tile.fragment<1>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<8x8xf32, swizzle = 32>
    %p = tile.mma_async %x, %t transpose_b tf32 : tensor<16x8xf32, #tile.fragment<1>>, !tile.smem<8x8xf32, swizzle = 32> -> !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<16x8xf32, #tile.fragment<1>>>
    gpu.return
  }

  // Four matrices at a time: 16 rows of a warp by 16 columns.
  // CHECK-LABEL: gpu.func @put(
  // CHECK-COUNT-4: nvvm.stmatrix {{.*}}layout = #nvvm.mma_layout<row>
  // CHECK-NOT:   nvvm.stmatrix
  // CHECK:       gpu.return
  gpu.func @put(%x: !query) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    tile.put %x, %at {column = 0} : !query to !tile
    gpu.return
  }

  // Two neighbours of each of a thread's two rows, eight columns after eight: of 16
  // bits in one register, of f32 in two.
  // CHECK-LABEL: gpu.func @put_pairs(
  // CHECK-COUNT-16: llvm.store {{.*}} : i32, !llvm.ptr<3>
  // CHECK-COUNT-4: llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
  // CHECK-NOT:   llvm.store
  // CHECK-NOT:   nvvm.stmatrix
  // CHECK:       gpu.return
  gpu.func @put_pairs(%x: !query, %y: !scores) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    tile.put %x, %at {by_pairs, column = 0} : !query to !tile
    %wide = tile.smem_view %c0 : !tile.smem<16x16xf32, swizzle = 64>
    tile.put %y, %wide {column = 0} : !scores to !tile.smem<16x16xf32, swizzle = 64>
    gpu.return
  }

  // Odd rows store what is two blocks further meanwhile.
  // CHECK-LABEL: gpu.func @put_interleaved(
  // CHECK:       %[[ODD:.*]] = arith.cmpi ne
  // CHECK-COUNT-8: arith.select %[[ODD]], %{{.*}}, %{{.*}} : vector<2xf32>
  // CHECK-NOT:   arith.select {{.*}} : vector<2xf32>
  // CHECK:       gpu.return
  gpu.func @put_interleaved(%x: tensor<16x32xf32, #tile.fragment<1>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile.smem<16x32xf32, swizzle = 128>
    tile.put %x, %at {alternate, column = 0} : tensor<16x32xf32, #tile.fragment<1>> to !tile.smem<16x32xf32, swizzle = 128>
    gpu.return
  }

  // Sums in memory: every element by itself.
  // CHECK-LABEL: gpu.func @add(
  // CHECK-COUNT-8: llvm.atomicrmw fadd {{.*}} syncscope("device") monotonic
  // CHECK-NOT:   llvm.store
  // CHECK:       gpu.return
  gpu.func @add(%y: !scores, %m: memref<?x16xf32, strided<[?, 1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    tile.store add %y, %m[%c0] : !scores to memref<?x16xf32, strided<[?, 1]>>
    gpu.return
  }

  // A copy of 8 rows fills those of the tile from a row on.
  // CHECK-LABEL: gpu.func @copy_part(
  // CHECK-SAME:  %[[ROW:[^ ]*]]: index)
  // CHECK:       arith.addi %{{.*}}, %[[ROW]] : index
  // CHECK-COUNT-2: nvvm.cp.async.shared.global
  // CHECK-NOT:   nvvm.cp.async.shared.global
  // CHECK:       gpu.return
  gpu.func @copy_part(%k: !memory, %row: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %kt = tile.smem_view %c0 : !tile
    tile.copy %k[%c0] to %kt[%row] {tile_rows = 8} : !memory to !tile
    gpu.return
  }

  // 2048 bytes are 4 chunks of 16 for each of 32 threads.
  // CHECK-LABEL: gpu.func @clear(
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
  // CHECK-NOT:   llvm.store
  // CHECK:       gpu.return
  gpu.func @clear() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    tile.clear %at warps(1) : !tile
    gpu.return
  }

  // Of the two blocks of columns a thread takes the one with the column, for each
  // of its two rows, and gets the value from the lane that has it.
  // CHECK-LABEL: gpu.func @column(
  // CHECK:       arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK-COUNT-2: nvvm.shfl.sync idx
  // CHECK-NOT:   nvvm.shfl.sync
  // CHECK:       gpu.return
  gpu.func @column(%x: !scores, %i: index, %o: memref<?xf32, strided<[1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c = tile.column %x[%i] : !scores to !rows
    tile.store %c, %o[%c0] : !rows to memref<?xf32, strided<[1]>>
    gpu.return
  }

  // One thread looks at a count until it is the rank, then writes the next one; what
  // bulk copies of others have added before is there for its own, and so for others.
  // CHECK-LABEL: gpu.func @ordered(
  // CHECK:       %[[RANK:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK:       nvvm.inline_ptx "{\0A{{.*}}ld.acquire.gpu.global.b32 count, [$0];{{.*}}setp.eq.b32 isNext, count, $1;{{.*}}fence.proxy.async.global;\0A}" ro(%[[COUNT:.*]], %[[RANK]]
  // CHECK:       arith.addi %{{.*}}, %c1
  // CHECK:       nvvm.inline_ptx "{\0Afence.proxy.async.global;\0Ast.release.gpu.global.b32 [$0], $1;\0A}"
  gpu.func @ordered(%c: memref<?xi32>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.await_rank %i of %c[%i] : memref<?xi32>
    tile.finish_rank %i of %c[%i] : memref<?xi32>
    gpu.return
  }

  // No two threads of the device get the same count.
  // CHECK-LABEL: gpu.func @count_up(
  // CHECK:       llvm.atomicrmw add %{{.*}}, %c1_i32{{.*}} syncscope("device") monotonic
  gpu.func @count_up(%c: memref<?xi32>, %i: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %n = tile.count_up %c[%i] : memref<?xi32>
    %next = arith.index_cast %n : i32 to index
    tile.finish_rank %next of %c[%i] : memref<?xi32>
    gpu.return
  }

  // A few chunks at a time; zero times what is no number is no number.
  // CHECK-LABEL: gpu.func @finite(
  // CHECK:       scf.for
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : {{.*}} -> vector<4xi32>
  // CHECK-COUNT-16: math.fma
  // CHECK:       %[[BITS:.*]] = arith.andi %{{.*}}, %c2147450879_i32
  // CHECK:       arith.cmpi ne, %[[BITS]], %c0_i32
  gpu.func @finite(%o: memref<?xf32, strided<[1]>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    %f = tile.is_finite %at : !tile
    scf.if %f {
      %x = arith.constant dense<0.0> : !rows
      tile.store %x, %o[%c0] : !rows to memref<?xf32, strided<[1]>>
    }
    gpu.return
  }

  // Two warps of the block, the last ones, go over 128 chunks: threads 64 to 127.
  // CHECK-LABEL: gpu.func @make_finite(
  // CHECK:       %[[THREAD:.*]] = arith.addi %{{.*}}, %c-64
  // CHECK:       scf.for %[[N:.*]] = %[[THREAD]] to %c128 step %c64
  // CHECK:         llvm.load %[[AT:.*]] {alignment = 16 : i64} : {{.*}} -> vector<4xi32>
  // CHECK:         %[[X:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xf16>
  // CHECK-NEXT:    %[[ZERO:.*]] = math.fma %[[X]], %
  // CHECK-NEXT:    %[[FINITE:.*]] = arith.cmpf ord, %[[ZERO]], %[[ZERO]]
  // CHECK-NEXT:    arith.select %[[FINITE]], %[[X]], %
  // CHECK:         llvm.store %{{.*}}, %[[AT]] {alignment = 16 : i64} : vector<4xi32>
  gpu.func @make_finite() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    tile.make_finite %at warps(2) : !tile
    gpu.return
  }

  // The first two warps copy: threads 0 to 63.
  // CHECK-LABEL: gpu.func @copy_finite(
  // CHECK:       scf.for %{{.*}} = %thread_id_x{{.*}} to %c128 step %c64
  // CHECK:         llvm.load %[[FROM:.*]] {alignment = 16 : i64} : {{.*}} -> vector<4xi32>
  // CHECK:         llvm.store %{{.*}}, %[[TO:.*]] {alignment = 16 : i64} : vector<4xi32>
  gpu.func @copy_finite() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c4096 = arith.constant 4096 : index
    %from = tile.smem_view %c0 : !tile
    %to = tile.smem_view %c4096 : !tile
    tile.make_finite %from copy(%to : !tile) warps(2) : !tile
    gpu.return
  }

  // Three warps of the block look at 128 chunks, of which the last 32 are for one:
  // the others have zeros.
  // CHECK-LABEL: gpu.func @finite_of_some_warps(
  // CHECK:       %[[IN:.*]] = arith.cmpi ult, %[[N:.*]], %c128
  // CHECK-NEXT:  scf.if %[[IN]] -> (vector<4xi32>) {
  // CHECK:         llvm.load
  // CHECK-NOT:   arith.minui
  // CHECK:       nvvm.vote.sync
  gpu.func @finite_of_some_warps(%o: memref<?xf32, strided<[1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %at = tile.smem_view %c0 : !tile
    %f = tile.is_finite %at warps(3) : !tile
    scf.if %f {
      %x = arith.constant dense<0.0> : !rows
      tile.store %x, %o[%c0] : !rows to memref<?xf32, strided<[1]>>
    }
    gpu.return
  }
}
