// Products run until their results are needed. Also with what tile-verify-async
// demands of the result.
// DEFINE: %{passes} = --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-delay-waits,tile-verify-async)))"
// RUN: flash-opt %s %{passes} | FileCheck %s
// RUN: sed '/@statistics(%/,/gpu.return/{s|// ADD: ||;s/@other(warps = 4/@adder(warps = 1/}' %s | flash-opt %{passes} | FileCheck %s --check-prefix=ORDERED

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!sums = tensor<64x64xf32, #tile.fragment<4>>
!factors = tensor<64x64xf16, #tile.fragment<4>>
!memory = memref<?x64xf16, strided<[?, 1]>>

gpu.module @m {
  // A step of the gradients of keys and values: both products of rows come
  // first, the others when what they have in registers is there, and stages are
  // given back behind the last product that reads them.

  // CHECK-LABEL: gpu.func @step(
  // CHECK:         scf.for {{.*}} iter_args(%[[DK:[^ ]*]] = %{{[^,]*}}, %[[DV:[^ ]*]] = %{{[^,]*}}, %[[T:[^ ]*]] = %c0)
  // CHECK-NEXT:      %[[Q:.*]] = tile.ring.wait %[[QR:.*]][%[[T]]]
  // CHECK-NEXT:      %[[SP:.*]] = tile.mma_async %{{.*}}, %[[Q]] transpose_b
  // CHECK-NEXT:      %[[DO:.*]] = tile.ring.wait %[[DOR:.*]][%[[T]]]
  // CHECK-NEXT:      %[[DPP:.*]] = tile.mma_async %{{.*}}, %[[DO]] transpose_b
  // CHECK-NEXT:      %[[S:.*]] = tile.mma_wait %[[SP]] younger(%[[DPP]]
  // CHECK-NEXT:      %[[P:.*]] = math.exp2 %[[S]]
  // CHECK-NEXT:      %[[PF:.*]] = arith.truncf %[[P]]
  // CHECK-NEXT:      %[[DP:.*]] = tile.mma_wait %[[DPP]] :
  // CHECK-NEXT:      %[[DS:.*]] = arith.mulf %[[P]], %[[DP]]
  // CHECK-NEXT:      %[[DSF:.*]] = arith.truncf %[[DS]]
  // CHECK-NEXT:      %[[DVP:.*]] = tile.mma_async %[[PF]], %[[DO]] add %[[DV]]
  // CHECK-NEXT:      %[[DKP:.*]] = tile.mma_async %[[DSF]], %[[Q]] add %[[DK]]
  // CHECK-NEXT:      %[[DV1:.*]] = tile.mma_wait %[[DVP]] younger(%[[DKP]]
  // CHECK-NEXT:      tile.ring.release %[[DOR]][%[[T]]]
  // CHECK-NEXT:      %[[DK1:.*]] = tile.mma_wait %[[DKP]] :
  // CHECK-NEXT:      tile.ring.release %[[QR]][%[[T]]]
  // CHECK-NEXT:      arith.addi
  // CHECK-NEXT:      scf.yield %[[DK1]], %[[DV1]]
  gpu.func @step(%k: !tile, %v: !tile, %init: !sums, %n: index, %m: !memory) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %dor = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %dv = %init, %t = %c0) -> (!sums, !sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %p = math.exp2 %s : !sums
        %do = tile.ring.wait %dor[%t] : !ring
        %dpp = tile.mma_async %v, %do transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %pf = arith.truncf %p : !sums to !factors
        %dvp = tile.mma_async %pf, %do add %dv warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dv1 = tile.mma_wait %dvp : !tile.pending<!sums>
        tile.ring.release %dor[%t] : !ring
        %ds = arith.mulf %p, %dp : !sums
        %dsf = arith.truncf %ds : !sums to !factors
        %dkp = tile.mma_async %dsf, %q add %dk warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %dv1, %next : !sums, !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        tile.ring.acquire %dor[%t] : !ring
        tile.copy_async %m[%t] to %dor[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  // A product that reads a tile ends before a choice clears that, others need
  // not: %v does not change.

  // CHECK-LABEL: gpu.func @clear(
  // CHECK:         scf.for
  // CHECK-NEXT:      %[[Q:.*]] = tile.ring.wait %[[QR:.*]][%
  // CHECK-NEXT:      %[[SP:.*]] = tile.mma_async %{{.*}}, %[[Q]] transpose_b
  // CHECK-NEXT:      %[[DPP:.*]] = tile.mma_async
  // CHECK-NEXT:      tile.ring.is_finite %[[QR]]
  // CHECK-NEXT:      %[[S:.*]] = tile.mma_wait %[[SP]] younger(%[[DPP]]
  // CHECK-NEXT:      arith.truncf %[[S]]
  // CHECK-NEXT:      scf.if
  // CHECK:             tile.clear %[[Q]]
  // CHECK:           tile.mma_async %{{.*}}, %[[Q]] add
  // CHECK:           tile.mma_wait %[[DPP]]
  // CHECK:           tile.ring.release %[[QR]]
  gpu.func @clear(%k: !tile, %v: !tile, %init: !sums, %other: !sums, %n: index, %m: !memory) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring checked : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %dv = %init, %t = %c0) -> (!sums, !sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %dpp = tile.mma_async %k, %v transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %pf = arith.truncf %s : !sums to !factors
        %finite = tile.ring.is_finite %qr[%t] : !ring
        %start = scf.if %finite -> (!sums) {
          scf.yield %dk : !sums
        } else {
          tile.clear %q warps(4) : !tile
          scf.yield %other : !sums
        }
        %dkp = tile.mma_async %pf, %q add %start warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %dp, %next : !sums, !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @nonfinite_check(warps = 1 from 7, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.check_finite %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  // What threads put into a ring, and others wait for, is put before the products
  // that only they wait for start, of which one has the same registers. What a product
  // gave is put while the younger one runs.

  // CHECK-LABEL: gpu.func @puts(
  // CHECK:         %[[SP:.*]] = tile.mma_async %{{.*}}, %[[Q:.*]] transpose_b
  // CHECK-NEXT:    %[[DO:.*]] = tile.ring.wait
  // CHECK-NEXT:    %[[DPP:.*]] = tile.mma_async %{{.*}}, %[[DO]] transpose_b
  // CHECK-NEXT:    tile.mma_wait %[[SP]] younger(%[[DPP]]
  // CHECK-NEXT:    arith.truncf
  // CHECK-NEXT:    tile.mma_wait %[[DPP]] :
  // CHECK-NEXT:    %[[DS:.*]] = arith.truncf
  // CHECK-NEXT:    tile.ring.acquire %[[R:.*]][%[[T:.*]]] :
  // CHECK-NEXT:    tile.ring.put %[[DS]] to %[[R]][%[[T]]]
  // CHECK-NEXT:    %[[DVP:.*]] = tile.mma_async
  // CHECK-NEXT:    %[[DST:.*]] = tile.ring.wait %[[R]][%[[T]]]
  // CHECK-NEXT:    %[[DQP:.*]] = tile.mma_async %{{.*}}, %[[DST]] transpose_a
  // CHECK-NEXT:    %[[DKP:.*]] = tile.mma_async %[[DS]], %[[Q]] add
  // CHECK-NEXT:    tile.mma_wait %[[DVP]] younger(%[[DQP]], %[[DKP]]
  // CHECK-NEXT:    tile.ring.release
  // CHECK-NEXT:    %[[DQ:.*]] = tile.mma_wait %[[DQP]] younger(%[[DKP]]
  // CHECK-NEXT:    tile.ring.release %[[R]]
  // CHECK-NEXT:    tile.ring.acquire %[[SUMS:.*]][%[[T]]]
  // CHECK-NEXT:    tile.ring.put %[[DQ]] to %[[SUMS]]
  // CHECK-NEXT:    tile.mma_wait %[[DKP]]
  gpu.func @puts(%k: !tile, %v: !tile, %init: !sums, %n: index, %m: !memory, %s: memref<?x64xf32>, %c: memref<?xi32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %dor = tile.ring : !ring
    %dsr = tile.ring : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
    %dqr = tile.ring : !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %sums:3 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %dv = %init, %t = %c0) -> (!sums, !sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %p = tile.mma_wait %sp : !tile.pending<!sums>
        %pf = arith.truncf %p : !sums to !factors
        %do = tile.ring.wait %dor[%t] : !ring
        %dpp = tile.mma_async %v, %do transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %dvp = tile.mma_async %pf, %do add %dv warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dv1 = tile.mma_wait %dvp : !tile.pending<!sums>
        tile.ring.release %dor[%t] : !ring
        %ds = arith.truncf %dp : !sums to !factors
        tile.ring.acquire %dsr[%t] : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
        tile.ring.put %ds to %dsr[%t] : !factors to !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
        %dst = tile.ring.wait %dsr[%t] : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
        %dqp = tile.mma_async %k, %dst transpose_a warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dq = tile.mma_wait %dqp : !tile.pending<!sums>
        tile.ring.release %dsr[%t] : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
        %dkp = tile.mma_async %ds, %q add %dk warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        tile.ring.acquire %dqr[%t] : !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
        tile.ring.put %dq to %dqr[%t] : !sums to !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %dv1, %next : !sums, !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        tile.ring.acquire %dor[%t] : !ring
        tile.copy_async %m[%t] to %dor[%t] : !memory to !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @adder(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %dqs = tile.ring.wait %dqr[%t] : !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
        tile.add_in_order %dqs, %s[%i] rank(%c0) of %c[%i] : !tile.smem<64x64xf32, swizzle = 128> to memref<?x64xf32>, memref<?xi32>
        tile.ring.release %dqr[%t] : !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  // Statistics of the first product's result are loaded before it starts, those of the
  // second's before it ends, behind what is computed from the first. What threads have loaded
  // is given back behind the next put.

  // CHECK-LABEL: gpu.func @statistics(
  // CHECK:         %[[TILE:.*]] = tile.ring.wait %[[LR:.*]][%[[T:.*]]] : <2, <8x8xf32
  // CHECK-NEXT:    tile.load %[[TILE]]
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NEXT:    %[[DPP:.*]] = tile.mma_async
  // CHECK-NEXT:    %[[DELTA:.*]] = tile.ring.wait %[[DR:.*]][%[[T]]]
  // CHECK-NEXT:    tile.mma_wait %{{.*}} younger(%[[DPP]]
  // CHECK:         tile.load %[[DELTA]]
  // CHECK-NEXT:    tile.mma_wait %[[DPP]]
  // CHECK:         tile.ring.put
  // CHECK-DAG:     tile.ring.release %[[LR]][%[[T]]]
  // CHECK-DAG:     tile.ring.release %[[DR]][%[[T]]]

  // Beside ordered additions, which take as long as a step, they are loaded where they are
  // needed.

  // ORDERED-LABEL: gpu.func @statistics(
  // ORDERED:         tile.mma_async
  // ORDERED-NEXT:    %[[DPP:.*]] = tile.mma_async
  // ORDERED:         tile.mma_wait %{{.*}} younger(%[[DPP]]
  // ORDERED:         tile.load
  // ORDERED:         tile.mma_wait %[[DPP]]
  // ORDERED-NEXT:    tile.load
  // ORDERED:       @adder

  // A thread that has no registers left for them loads them where they are needed. They
  // are waited for while products run.

  // CHECK-LABEL: gpu.func @few_registers(
  // CHECK:         tile.mma_async
  // CHECK-NEXT:    %[[DPP:.*]] = tile.mma_async
  // CHECK-NEXT:    %[[TILE:.*]] = tile.ring.wait
  // CHECK-NEXT:    %[[DELTA:.*]] = tile.ring.wait
  // CHECK-NEXT:    tile.mma_wait %{{.*}} younger(%[[DPP]]
  // CHECK:         tile.load %[[TILE]]
  // CHECK:         tile.mma_wait %[[DPP]]
  // CHECK-NEXT:    tile.load %[[DELTA]]

  // Of a ring with one stage the copy has just been started.

  // CHECK-LABEL: gpu.func @one_stage(
  // CHECK:         tile.mma_async
  // CHECK-NEXT:    %[[DPP:.*]] = tile.mma_async
  // CHECK:         tile.mma_wait %{{.*}} younger(%[[DPP]]
  // CHECK-NEXT:    tile.load
  gpu.func @statistics(%k: !tile, %v: !tile, %init: !sums, %n: index, %m: !memory, %l: memref<?x8xf32, strided<[?, 1]>>, %a: memref<?x64xf32>, %c: memref<?xi32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %lr = tile.ring : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
    %dr = tile.ring : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
    %pr = tile.ring : !tile.ring<2, !tile.smem<64x64xf32, swizzle = 128>>
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %t = %c0) -> (!sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %dpp = tile.mma_async %v, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %lt = tile.ring.wait %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %lse = tile.load %lt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %shift = tile.broadcast %lse : tensor<64xf32, #tile.columns<4>> to !sums
        %p = arith.subf %s, %shift : !sums
        %dt = tile.ring.wait %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %delta = tile.load %dt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %deltas = tile.broadcast %delta : tensor<64xf32, #tile.columns<4>> to !sums
        %difference = arith.subf %dp, %deltas : !sums
        %ds = arith.mulf %p, %difference : !sums
        %dsf = arith.truncf %ds : !sums to !factors
        tile.ring.acquire %pr[%t] : !tile.ring<2, !tile.smem<64x64xf32, swizzle = 128>>
        tile.ring.put %ds to %pr[%t] : !sums to !tile.ring<2, !tile.smem<64x64xf32, swizzle = 128>>
        %dkp = tile.mma_async %dsf, %q add %dk warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %next : !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        tile.ring.acquire %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %lr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.ring.acquire %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %dr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @other(warps = 4, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %dst = tile.ring.wait %pr[%t] : !tile.ring<2, !tile.smem<64x64xf32, swizzle = 128>>
        // ADD: tile.add_in_order %dst, %a[%i] rank(%c0) of %c[%i] : !tile.smem<64x64xf32, swizzle = 128> to memref<?x64xf32>, memref<?xi32>
        tile.ring.release %pr[%t] : !tile.ring<2, !tile.smem<64x64xf32, swizzle = 128>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  gpu.func @few_registers(%k: !tile, %v: !tile, %init: !sums, %n: index, %m: !memory, %l: memref<?x8xf32, strided<[?, 1]>>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %lr = tile.ring : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
    %dr = tile.ring : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
    %pr = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 136) {
      %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %t = %c0) -> (!sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %dpp = tile.mma_async %v, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %lt = tile.ring.wait %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %lse = tile.load %lt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %shift = tile.broadcast %lse : tensor<64xf32, #tile.columns<4>> to !sums
        %p = arith.subf %s, %shift : !sums
        %dt = tile.ring.wait %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %delta = tile.load %dt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %deltas = tile.broadcast %delta : tensor<64xf32, #tile.columns<4>> to !sums
        %difference = arith.subf %dp, %deltas : !sums
        %ds = arith.mulf %p, %difference : !sums
        %dsf = arith.truncf %ds : !sums to !factors
        tile.ring.acquire %pr[%t] : !ring
        tile.ring.put %dsf to %pr[%t] : !factors to !ring
        %dkp = tile.mma_async %dsf, %q add %dk warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %next : !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        tile.ring.acquire %lr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %lr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.ring.acquire %dr[%t] : !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %dr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @other(warps = 4, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %dst = tile.ring.wait %pr[%t] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        tile.ring.release %pr[%t] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  gpu.func @one_stage(%k: !tile, %v: !tile, %init: !sums, %n: index, %m: !memory, %l: memref<?x8xf32, strided<[?, 1]>>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %lr = tile.ring : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
    %dr = tile.ring : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
    %pr = tile.ring : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      %sums:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dk = %init, %t = %c0) -> (!sums, index) {
        %q = tile.ring.wait %qr[%t] : !ring
        %sp = tile.mma_async %k, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %dpp = tile.mma_async %v, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %dp = tile.mma_wait %dpp : !tile.pending<!sums>
        %lt = tile.ring.wait %lr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        %lse = tile.load %lt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %lr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        %shift = tile.broadcast %lse : tensor<64xf32, #tile.columns<4>> to !sums
        %p = arith.subf %s, %shift : !sums
        %dt = tile.ring.wait %dr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        %delta = tile.load %dt : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %dr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        %deltas = tile.broadcast %delta : tensor<64xf32, #tile.columns<4>> to !sums
        %difference = arith.subf %dp, %deltas : !sums
        %ds = arith.mulf %p, %difference : !sums
        %dsf = arith.truncf %ds : !sums to !factors
        tile.ring.acquire %pr[%t] : !ring
        tile.ring.put %dsf to %pr[%t] : !factors to !ring
        %dkp = tile.mma_async %dsf, %q add %dk warpgroup : !factors, !tile, !sums -> !tile.pending<!sums>
        %dk1 = tile.mma_wait %dkp : !tile.pending<!sums>
        tile.ring.release %qr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %dk1, %next : !sums, index
      }
    } @producer(warps = 1, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        tile.ring.acquire %qr[%t] : !ring
        tile.copy_async %m[%t] to %qr[%t] : !memory to !ring
        tile.ring.acquire %lr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %lr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        tile.ring.acquire %dr[%t] : !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        tile.copy_async %l[%t] to %dr[%t] : memref<?x8xf32, strided<[?, 1]>> to !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    } @other(warps = 4, registers = 24) {
      %steps = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
        %dst = tile.ring.wait %pr[%t] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        tile.ring.release %pr[%t] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        %next = arith.addi %t, %c1 : index
        scf.yield %next : index
      }
    }
    gpu.return
  }

  // Where memory is written nothing moves.

  // CHECK-LABEL: gpu.func @store(
  // CHECK:         tile.mma_async
  // CHECK-NEXT:    tile.mma_wait
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NEXT:    tile.mma_wait
  // CHECK-NEXT:    tile.store
  gpu.func @store(%k: !tile, %v: !tile, %n: index, %m: memref<?x64xf32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tile.warp_specialize @consumer(warps = 4, registers = 240) {
      scf.for %i = %c0 to %n step %c1 {
        %sp = tile.mma_async %k, %v transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %s = tile.mma_wait %sp : !tile.pending<!sums>
        %dp = tile.mma_async %v, %k transpose_b warpgroup : !tile, !tile -> !tile.pending<!sums>
        %d = tile.mma_wait %dp : !tile.pending<!sums>
        tile.store %s, %m[%i] : !sums to memref<?x64xf32>
      }
    }
    gpu.return
  }
}
