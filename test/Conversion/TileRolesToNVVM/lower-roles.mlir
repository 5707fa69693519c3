// Roles become branches, their rings mbarriers and bulk copies.
// RUN: flash-opt %s --split-input-file --tile-lower-roles --verify-diagnostics | FileCheck %s

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x128xf16, swizzle = 128>>

// The tensor map is an argument, made before the launch.
// CHECK-LABEL: func.func @launch(
// CHECK:         %[[MAP:.*]] = nvgpu.tma.create.descriptor
// CHECK:         gpu.launch_func @m::@kernel {{.*}} %[[MAP]] : !nvgpu.tensormap.descriptor<{{.*}}memref<64x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, {{.*}}oob = zero

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    !nvgpu.tensormap.descriptor
// CHECK-SAME:    nvvm.minctasm = 1 : i32
// One thread starts the barriers: of each stage, full and empty. One arrival fills
// a stage, one of each of the eight consumer warps frees it.
// CHECK:         scf.if
// CHECK:           nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:           nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-COUNT-2:   nvvm.mbarrier.init
// CHECK-NEXT:      nvvm.fence.mbarrier.init
// CHECK-NOT:       nvvm.mbarrier.init
// CHECK:         gpu.barrier
// The first two warpgroups of the three consume.
// CHECK:         %[[NUMBER:.*]] = nvx.warpgroup
// CHECK:         %[[CONSUMES:.*]] = arith.cmpi slt, %[[NUMBER]], %c2_i32
// CHECK-NEXT:    scf.if %[[CONSUMES]] {
// CHECK-NEXT:      nvvm.setmaxregister increase 240
// The last warpgroup lets the first one go on at first.
// CHECK:           scf.if
// CHECK:             nvvm.barrier.arrive
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           tile.smem_view
// Ping-pong: 256 threads, of which 128 wait.
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// CHECK:           nvvm.barrier.arrive
// The first thread of a warp arrives for it.
// CHECK:           nvvm.bar.warp.sync
// CHECK:           %[[LANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0
// CHECK-NEXT:      nvvm.inline_ptx "mbarrier.arrive.shared::cta.b64 _, [$0];" {{.*}} predicate = %[[FIRST]]
// The first warpgroup takes the last arrival of the last one.
// CHECK:           scf.if
// CHECK:             nvvm.barrier id
// CHECK:         } else {
// CHECK-NEXT:      nvvm.setmaxregister decrease 24
// One thread of the warp behind them copies.
// CHECK:           %[[ONE:.*]] = nvvm.elect.sync
// CHECK-NEXT:      scf.if %[[ONE]]
// An acquire waits for the parity of the phase before.
// CHECK:             arith.xori
// CHECK:             nvvm.mbarrier.try_wait.parity
// Two panels of 64 columns: 64 rows of 128 bytes each.
// CHECK:             nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c16384_i32
// CHECK-COUNT-2:     nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT:         nvvm.cp.async.bulk
// CHECK-NOT:     tile.{{ring|ping_pong|copy_async}}
// CHECK:         gpu.return
module attributes {gpu.container_module} {
  func.func @launch(%m: !memory, %n: index) {
    gpu.launch_func @m::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !memory, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: !memory, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %r = tile.ring {offset = 0, barriers = 32768} : !ring
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        %kt = tile.ring.wait %r[%n] : !ring
        tile.ping_pong.wait
        tile.ping_pong.arrive
        tile.ring.release %r[%n] : !ring
      } @producer(warps = 1, registers = 24) {
        tile.ring.acquire %r[%n] : !ring
        tile.copy_async %m[%c0, %n] to %r[%n] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

gpu.module @m {
  gpu.func @unknown_place(%t: !tile.smem<64x32xf32, swizzle = 128>, %s: memref<?x32xf32>, %c: memref<?xi32>, %i: index) kernel {
    tile.warp_specialize @consumer(warps = 4, registers = 128) {
    } @adder(warps = 1, registers = 40) {
      // expected-error @below {{'tile.add_in_order' op must add a tile that tile.ring.wait or tile.smem_view gives to a role}}
      tile.add_in_order %t, %s[%i] rank(%i) of %c[%i] : !tile.smem<64x32xf32, swizzle = 128> to memref<?x32xf32>, memref<?xi32>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @kernel() kernel {
    // expected-error @below {{'tile.ring' op has no offset; run tile-allocate-smem first}}
    %r = tile.ring {offset = 0} : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x128xf16, swizzle = 128>>

// A warp whose threads have loaded from a tile gives it back for itself.
// CHECK-LABEL: gpu.func @loads(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK:         tile.load_row
// CHECK-NOT:     nvvm.barrier id
// CHECK:         nvvm.bar.warp.sync
// CHECK:         "mbarrier.arrive
// CHECK-NOT:     nvvm.barrier id
// CHECK:         gpu.return
module {
  gpu.module @m {
    gpu.func @loads(%m: !memory) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %r = tile.ring {offset = 0 : i64, barriers = 32768 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %r[%c0] : !ring
        %x = tile.load_row %t[%c0] : !tile to tensor<64x128xf32, #tile.fragment<4>>
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%c0, %c0] to %r[%c0] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x64xf16, strided<[?, ?, 1]>>
!statistics = memref<?x?x8xf32, strided<[?, ?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!rows = !tile.ring<2, !tile.smem<8x8xf32, swizzle = 32>>
!one = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!oneofrows = !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>

// Statistics are full with the tile that is copied before them and waited for before: both
// copies arrive at its barriers, and nobody waits at others. Those that are waited for
// first, as with %b, have barriers of their own, and so have rings of one stage, %c, whose
// copies have just been started.
// CHECK-LABEL: gpu.func @joined(
// CHECK:         %[[BOTH:.*]] = arith.constant 2 : i32
// CHECK-NEXT:    nvvm.mbarrier.init %{{.*}}, %[[BOTH]]
// CHECK-COUNT-17: nvvm.mbarrier.init
// CHECK-NOT:     nvvm.mbarrier.init
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK-NOT:     nvvm.mbarrier.try_wait.parity
// CHECK:         tile.load
// CHECK-COUNT-4: nvvm.mbarrier.try_wait.parity
// CHECK-NOT:     nvvm.mbarrier.try_wait.parity
// CHECK:         nvvm.elect.sync
module {
  gpu.module @m {
    gpu.func @joined(%m: !memory, %s: !statistics) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = tile.ring {offset = 0 : i64, barriers = 60000 : i64} : !ring
      %ofa = tile.ring {offset = 16384 : i64, barriers = 60032 : i64} : !rows
      %b = tile.ring {offset = 20480 : i64, barriers = 60064 : i64} : !ring
      %ofb = tile.ring {offset = 36864 : i64, barriers = 60096 : i64} : !rows
      %c = tile.ring {offset = 40960 : i64, barriers = 60128 : i64} : !one
      %ofc = tile.ring {offset = 49152 : i64, barriers = 60144 : i64} : !oneofrows
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %a[%c0] : !ring
        %u = tile.ring.wait %ofa[%c0] : !rows
        %x = tile.load %u : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %ofa[%c0] : !rows
        tile.ring.release %a[%c0] : !ring
        %w = tile.ring.wait %ofb[%c0] : !rows
        %y = tile.load %w : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %ofb[%c0] : !rows
        %v = tile.ring.wait %b[%c0] : !ring
        tile.ring.release %b[%c0] : !ring
        %o = tile.ring.wait %c[%c0] : !one
        %p = tile.ring.wait %ofc[%c0] : !oneofrows
        %z = tile.load %p : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.columns<4>>
        tile.ring.release %ofc[%c0] : !oneofrows
        tile.ring.release %c[%c0] : !one
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %a[%c0] : !ring
        tile.copy_async %m[%c0, %c0] to %a[%c0] : !memory to !ring
        tile.ring.acquire %ofa[%c0] : !rows
        tile.copy_async %s[%c0, %c0] to %ofa[%c0] : !statistics to !rows
        tile.ring.acquire %b[%c0] : !ring
        tile.copy_async %m[%c0, %c0] to %b[%c0] : !memory to !ring
        tile.ring.acquire %ofb[%c0] : !rows
        tile.copy_async %s[%c0, %c0] to %ofb[%c0] : !statistics to !rows
        tile.ring.acquire %c[%c0] : !one
        tile.copy_async %m[%c0, %c0] to %c[%c0] : !memory to !one
        tile.ring.acquire %ofc[%c0] : !oneofrows
        tile.copy_async %s[%c0, %c0] to %ofc[%c0] : !statistics to !oneofrows
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x128xf16, swizzle = 128>>

// To clear a tile, all consumers meet before and after it, and what they wrote is
// ordered before the products that read it.
// CHECK-LABEL: gpu.func @clears(
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
// CHECK-NEXT:    tile.clear
// CHECK-NEXT:    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
module {
  gpu.module @m {
    gpu.func @clears(%m: !memory) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      %c0 = arith.constant 0 : index
      %r = tile.ring {offset = 0 : i64, barriers = 32768 : i64} : !ring
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        %t = tile.ring.peek %r[%c0] : !ring
        tile.clear %t warps(8) : !tile
      } @producer(warps = 1, registers = 24) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%c0, %c0] to %r[%c0] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!result = tensor<128x128xf16, #tile.fragment<8>>

// A result is stored in two halves: each when the one before has left its stage.
// A warpgroup has a tensor map for its 64 rows, and its own part of the stage.
// CHECK-LABEL: gpu.func @stores(
// CHECK-SAME:    memref<64x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK-NOT:     nvvm.cp.async.bulk.tensor
// Shared memory outlives the threads that write to it.
// CHECK:         nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:       } else
module {
  gpu.module @m {
    gpu.func @stores(%m: !memory, %x: !result, %i: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        tile.store_bulk %x, %m[%i, %i] through !tile.smem<128x64xf16, swizzle = 128> {offset = 1024 : i64} : !result to !memory
      } @producer(warps = 1, registers = 24) {
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>

// Of a tile that is made finite the consumers wait at the third barrier, at which two
// warps arrive. These look at it first, and change what they must.
// CHECK-LABEL: gpu.func @finite(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c6_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c2_i32
// CHECK:         nvvm.setmaxregister increase
// CHECK:         %[[CHECKED:.*]] = arith.addi %{{.*}}, %c32784
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         nvvm.setmaxregister decrease
// CHECK:         arith.cmpi sge, %{{.*}}, %c-2_i32
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[FINITE:.*]] = tile.is_finite %[[T:.*]] warps(2)
// CHECK-NEXT:    scf.if %[[FINITE]] {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      tile.make_finite %[[T]] warps(2)
// CHECK-NEXT:      nvvm.fence.proxy {{.*}}
// CHECK-NEXT:    }
// CHECK-COUNT-2: mbarrier.arrive
gpu.module @m {
  gpu.func @finite(%m: !memory) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring finite {offset = 0, barriers = 32768} : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %m[%c0] to %r[%c0] : !memory to !ring
    } @nonfinite_check(warps = 2 from 6, registers = 40) {
      tile.ring.make_finite %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x128xf16, swizzle = 128>>

// The warps that do not copy check what was copied. A stage has a third barrier,
// at which they arrive, and is empty when they, too, have released it.
// CHECK-LABEL: gpu.func @checked(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c7_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c3_i32
// The consumers read what each has found.
// CHECK:         nvvm.setmaxregister increase
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-3: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK:         %[[ALL:.*]] = nvvm.shfl.sync idx
// CHECK:         arith.cmpi ne, %[[ALL]]
// CHECK:         nvvm.setmaxregister decrease
// CHECK:         arith.cmpi sge, %{{.*}}, %c-3_i32
// CHECK-NEXT:    scf.if
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           %[[FINITE:.*]] = tile.is_finite %{{.*}} warps(3)
// CHECK:           scf.if
// CHECK:             %[[ANSWER:.*]] = arith.extui %[[FINITE]]
// CHECK:             llvm.store %[[ANSWER]]
// CHECK-COUNT-2:     nvvm.mbarrier.arrive
// What nobody reads is given back only.
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK-NOT:       tile.is_finite
// CHECK:           scf.if
// CHECK-NOT:         llvm.store
// CHECK-COUNT-2:     nvvm.mbarrier.arrive
// CHECK-NOT:     tile.ring.{{check_finite|is_finite}}
// CHECK:         gpu.return
module {
  gpu.module @m {
    gpu.func @checked(%m: !memory, %o: !llvm.ptr) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = tile.ring checked {offset = 0, barriers = 32768} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %finite = tile.ring.is_finite %r[%c0] : !ring
        llvm.store %finite, %o : i1, !llvm.ptr
        %t = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%c0, %c0] to %r[%c0] : !memory to !ring
      } @nonfinite_check(warps = 3, registers = 40) {
        tile.ring.check_finite %r[%c0] : !ring
        tile.ring.check_finite %r[%c1] unchecked : !ring
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<128x128xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>
!keys = !tile.smem<16x128xf16, swizzle = 128>
!pending = !tile.pending<tensor<128x16xf32, #tile.fragment<8>>>
!result = tensor<128x128xf16, #tile.fragment<8>>

// Each warpgroup has its rows in a stage of its own: the copies of 64 rows wait for
// one stage each, and a warpgroup for its own.
// CHECK-LABEL: gpu.func @row_stages(
// CHECK-SAME:    memref<64x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b
// Three row stages, full and empty. The warps of one warpgroup release a stage.
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK-NOT:     nvvm.mbarrier.init
// CHECK:         nvvm.setmaxregister increase
// CHECK:         %[[WARPGROUP:.*]] = nvx.warpgroup
// CHECK:         %[[OWN:.*]] = arith.index_cast %[[WARPGROUP]]
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %c2
// CHECK:         %[[FILL:.*]] = arith.addi %[[FIRST]], %[[OWN]]
// CHECK:         arith.remui %[[FILL]], %c3
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[Q:.*]] = tile.smem_view %{{.*}} : <64x128xf16
// CHECK:         tile.mma_async %[[Q]],
// All have read their queries before the result is stored into their memory.
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK:         %[[STAGE:.*]] = tile.smem_view %{{.*}} : <64x128xf16
// CHECK-NEXT:    tile.put %{{.*}}, %[[STAGE]]
// CHECK-NEXT:    nvvm.fence.proxy
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// It is given back when the stores have read it.
// CHECK:         nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK:         "mbarrier.arrive
// CHECK:         nvvm.setmaxregister decrease
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c16384_i32
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         arith.addi %{{.*}}, %c64
// CHECK:         nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c16384_i32
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT:     nvvm.mbarrier.arrive.expect_tx
// CHECK:         gpu.return
module {
  gpu.module @m {
    gpu.func @row_stages(%q: !memory, %out: !memory, %k: !keys, %x: !result, %i: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      %r = tile.ring row_stages = 3 {offset = 0, barriers = 49152} : !ring
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        %qt = tile.ring.wait %r[%i] : !ring
        %p = tile.mma_async %qt, %k transpose_b warpgroup : !tile, !keys -> !pending
        %s = tile.mma_wait %p : !pending
        tile.store_bulk %x, %out[%i, %i] through !tile.smem<64x128xf16, swizzle = 128> in %qt : !tile : !result to !memory
        tile.ring.release %r[%i] : !ring
      } @producer(warps = 1, registers = 24) {
        tile.ring.acquire %r[%i] : !ring
        tile.copy_async %q[%i, %i] to %r[%i] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

// A result in the memory of a tile that nobody needs any more: each warpgroup has its rows there.

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<128x128xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>

// CHECK-LABEL: gpu.func @in_place(
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[PLACE:.*]] = tile.smem_view %c2048{{.*}} : <128x128xf16
// CHECK-NOT:     nvvm.cp.async.bulk.wait_group
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-NEXT:    tile.put %{{.*}}, %[[PLACE]]
// CHECK-NEXT:    nvvm.fence.proxy
// CHECK:         nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK:         gpu.return
module {
  gpu.module @m {
    gpu.func @in_place(%q: !memory, %out: !memory, %x: tensor<128x128xf16, #tile.fragment<8>>, %i: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      %r = tile.ring {offset = 2048, barriers = 49152} : !ring
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        %qt = tile.ring.wait %r[%i] : !ring
        tile.store_bulk %x, %out[%i, %i] through !tile in %qt : !tile : tensor<128x128xf16, #tile.fragment<8>> to !memory
        tile.ring.release %r[%i] : !ring
      } @producer(warps = 1, registers = 24) {
        tile.ring.acquire %r[%i] : !ring
        tile.copy_async %q[%i, %i] to %r[%i] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

// Two copies fill a stage of 128 rows: each arrives at its barrier and expects its
// own bytes, 64 rows of two panels, which lie apart as those of the stage do.

!memory = memref<?x128xf16, strided<[?, 1]>>
!tile = !tile.smem<128x128xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<128x128xf16, swizzle = 128>>

// CHECK-LABEL: func.func @parts(
// CHECK:         gpu.launch_func {{.*}}memref<64x64xf16, #gpu.address_space<workgroup>>
// CHECK-LABEL: gpu.func @parts(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c2_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK:         nvvm.elect.sync
// CHECK:         scf.for %[[PART:.*]] =
// CHECK:           nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c16384_i32
// CHECK:           %[[ROWS:.*]] = arith.muli %[[PART]], %c8192
// CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:           arith.addi %{{.*}}, %c16384
// CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {gpu.container_module} {
  func.func @parts(%m: !memory, %n: index) {
    gpu.launch_func @m::@parts blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !memory, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @parts(%m: !memory, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %r = tile.ring copies = 2 {offset = 0, barriers = 32768} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        scf.for %p = %c0 to %c2 step %c1 {
          tile.copy_async %m[%p] to %r[%c0] part(%p) : !memory to !ring
        }
      }
      gpu.return
    }
  }
}

// -----

// Where the parts are distinguished, the copy of the first one arrives for both, with the bytes of both.

!memory = memref<?x64xf16, strided<[?, 1], offset: ?>>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>

// CHECK-LABEL: gpu.func @known_parts(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.setmaxregister decrease
// CHECK:         %[[BYTES:.*]] = arith.constant 16384 : i32
// CHECK-NEXT:    nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT:     nvvm.mbarrier.arrive.expect_tx
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {gpu.container_module} {
  func.func @known_parts(%m: !memory, %n: index) {
    gpu.launch_func @m::@known_parts blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !memory, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @known_parts(%m: !memory, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = tile.ring copies = 2 {offset = 0, barriers = 32768} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%n] to %r[%c0] part(%c0) : !memory to !ring
        tile.copy_async %m[%c0] to %r[%c0] part(%c1) : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

// Consumers fill a stage: each of the eight warps arrives when its threads have
// written and what they wrote can be seen by products.

!ring = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
!x = tensor<128x64xf16, #tile.fragment<8>>

// CHECK-LABEL: gpu.func @put(
// CHECK-COUNT-2: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK:         nvvm.setmaxregister increase
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[SLOT:.*]] = tile.smem_view
// CHECK:         tile.put %{{.*}}, %[[SLOT]] {column = 0 : i64}
// CHECK-NEXT:    nvvm.fence.proxy
// CHECK-NOT:     nvvm.barrier id
// CHECK:         nvvm.bar.warp.sync
// CHECK:         "mbarrier.arrive
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         tile.smem_view
gpu.module @m {
  gpu.func @put(%x: !x) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring {offset = 0, barriers = 16384} : !ring
    tile.warp_specialize @consumer(warps = 8, registers = 240) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
      %t = tile.ring.wait %r[%c0] : !ring
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}

// -----

// A bulk store that adds, of f32: two panels of 32 columns.

!x = tensor<64x64xf32, #tile.fragment<4>>

// CHECK-LABEL: gpu.func @add(
// CHECK:         tile.put %{{.*}} {column = 0 : i64} : {{.*}} to <64x64xf32, swizzle = 128>
// CHECK:         nvvm.fence.proxy
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.reduce
// CHECK:         nvvm.cp.async.bulk.commit.group
gpu.module @m {
  gpu.func @add(%x: !x, %m: memref<?x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      tile.store_bulk add %x, %m[%c0] through !tile.smem<64x64xf32, swizzle = 128> {offset = 0} : !x to memref<?x64xf32>
    } @producer(warps = 1, registers = 40) {
    }
    gpu.return
  }
}

// -----

// Any number of roles: those of whole warpgroups one after the other, two that
// share the last warpgroup, of each of which one thread copies.

!memory = memref<?x128xf16, strided<[?, 1]>>
!ring = !tile.ring<2, !tile.smem<64x128xf16, swizzle = 128>>

// CHECK-LABEL: gpu.func @any_roles(
// Two roles read the ring: eight warps and four.
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c12_i32
// CHECK:         arith.cmpi slt, %{{.*}}, %c2_i32
// CHECK:         nvvm.setmaxregister increase 160
// CHECK:         arith.cmpi slt, %{{.*}}, %c3_i32
// CHECK:         nvvm.setmaxregister decrease 104
// CHECK:         nvvm.setmaxregister decrease 56
// CHECK:         arith.cmpi eq, %{{.*}}, %c12_i32
// CHECK:         nvvm.elect.sync
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK:         arith.cmpi eq, %{{.*}}, %c14_i32
// CHECK:         nvvm.elect.sync
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global
module attributes {gpu.container_module} {
  func.func @launch(%m: !memory, %n: index) {
    gpu.launch_func @m::@any_roles blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !memory, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @any_roles(%m: !memory, %n: index) kernel {
      %a = tile.ring {offset = 0, barriers = 65536} : !ring
      %b = tile.ring {offset = 32768, barriers = 65568} : !ring
      tile.warp_specialize @math(warps = 8, registers = 160) {
        %at = tile.ring.wait %a[%n] : !ring
        tile.ring.release %a[%n] : !ring
        %bt = tile.ring.wait %b[%n] : !ring
        tile.ring.release %b[%n] : !ring
      } @watch(warps = 4, registers = 104) {
        %at = tile.ring.wait %a[%n] : !ring
        tile.ring.release %a[%n] : !ring
      } @keys(warps = 1, registers = 56) {
        tile.ring.acquire %a[%n] : !ring
        tile.copy_async %m[%n] to %a[%n] : !memory to !ring
      } @values(warps = 1 from 14, registers = 56) {
        tile.ring.acquire %b[%n] : !ring
        tile.copy_async %m[%n] to %b[%n] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x?x128xf16, strided<[?, ?, ?, 1]>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x128xf16, swizzle = 128>>

// Rows along two dimensions: a box of 12 queries of 5 heads, for each of two panels.
// No copy has the last four of the 64 rows, which are zero from the start.

// CHECK-LABEL: func.func @launch_packed(
// CHECK:         nvgpu.tma.create.descriptor %{{.*}} box[%c1{{[^,]*}}, %c12{{[^,]*}}, %c5{{[^,]*}}, %c64{{[^,]*}}] : memref<*xf16> -> {{.*}}memref<12x5x64xf16
// CHECK-NOT:     nvgpu.tma.create.descriptor
// CHECK-LABEL: gpu.func @packed(
// CHECK-SAME:    %{{[^ ]*}}: memref<{{[^ ]*}}, strided<[?, ?, ?, 1]>>, %[[I:[^ ]*]]: index, %[[H:[^ ]*]]: index
// CHECK:         %[[STAGE:.*]] = tile.smem_view
// CHECK-NEXT:    tile.clear %[[STAGE]] warps(8) : <64x128xf16
// CHECK-NEXT:    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK:         gpu.barrier
// CHECK:         nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c15360_i32
// CHECK:         %[[H32:.*]] = arith.index_cast %[[H]]
// CHECK:         %[[I32:.*]] = arith.index_cast %[[I]]
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{.*}}, %[[H32]], %[[I32]], %{{.*}}]
// CHECK-NOT:     nvvm.cp.async.bulk
module attributes {gpu.container_module} {
  func.func @launch_packed(%m: !memory) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @m::@packed blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1) args(%m : !memory, %c1 : index, %c1 : index)
    return
  }
  gpu.module @m {
    gpu.func @packed(%m: !memory, %i: index, %h: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %r = tile.ring {offset = 0 : i64, barriers = 32768 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%c0, %i, %h] packed(5) rows(%i) to_end to %r[%c0] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

// A role of one warp adds tiles that others have put into a ring: one thread waits
// for its rank, then for the tile, stores or adds the panels, arrives alone when they have been read,
// and counts when they are there for all blocks. They put columns of f32
// so that no two lanes have the same bank.
!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x?x64xf32>
!counts = memref<?xi32>
// CHECK-LABEL: gpu.func @ordered(
// The warpgroup's four warps fill the stage, and one arrival frees it.
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         tile.put {{.*}} {alternate, column = 0 : i64}
// CHECK-NOT:     nvvm.fence.proxy
// CHECK:         nvvm.elect.sync
// CHECK-NOT:     nvvm.mbarrier
// CHECK:         tile.await_rank %[[RANK:.*]] of %[[COUNTS:.*]][%[[I:.*]]] : memref<?xi32>
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         nvvm.fence.proxy
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[RANK]], %c0
// CHECK-NEXT:    scf.if %[[FIRST]] {
// CHECK-COUNT-2:   nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK:         } else {
// CHECK-COUNT-2:   nvvm.cp.async.bulk.tensor.reduce
// CHECK:         nvvm.cp.async.bulk.commit.group
// CHECK-NEXT:    nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NOT:     inline_ptx
// CHECK:         nvvm.mbarrier.arrive
// CHECK-NEXT:    nvvm.cp.async.bulk.wait_group 0{{$}}
// CHECK-NEXT:    tile.finish_rank %[[RANK]] of %[[COUNTS]][%[[I]]] : memref<?xi32>
module attributes {gpu.container_module} {
  func.func @launch(%m: !sums, %c: !counts, %n: index) {
    gpu.launch_func @m::@ordered blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !sums, %c : !counts, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @ordered(%m: !sums, %c: !counts, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %x = arith.constant dense<1.0> : !x
      %r = tile.ring {barriers = 16384 : i64, offset = 0 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 104) {
        tile.ring.acquire %r[%c0] : !ring
        tile.ring.put %x to %r[%c0] : !x to !ring
      } @adder(warps = 1, registers = 104) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.add_in_order %t, %m[%n, %c0] rank(%n) of %c[%n] : !tile to !sums, !counts
        tile.ring.release %r[%c0] : !ring
      }
      gpu.return
    }
  }
}


// -----

// Of two warps each adds the tiles of every other step. They look at barriers of their own for the
// stage that is full, the second one's behind the one that says that it is free.
!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
!sums = memref<?x?x64xf32>
!counts = memref<?xi32>
// CHECK-LABEL: gpu.func @alternating(
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c4_i32
// CHECK:         tile.put
// CHECK:         nvvm.elect.sync
// CHECK:         %[[OWN:.*]] = arith.remui %[[STEP:.*]], %c2 : index
// CHECK:         %[[IS:.*]] = arith.cmpi eq, %[[OWN]], %{{.*}} : index
// CHECK-NEXT:    scf.if %[[IS]] {
// CHECK:           tile.await_rank
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           nvvm.mbarrier.arrive
// CHECK:           tile.finish_rank
// CHECK-NEXT:    }
module attributes {gpu.container_module} {
  func.func @launch(%m: !sums, %c: !counts, %n: index) {
    gpu.launch_func @m::@alternating blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%m : !sums, %c : !counts, %n : index)
    return
  }
  gpu.module @m {
    gpu.func @alternating(%m: !sums, %c: !counts, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %x = arith.constant dense<1.0> : !x
      %r = tile.ring {barriers = 16384 : i64, offset = 0 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 104) {
        tile.ring.acquire %r[%c0] : !ring
        tile.ring.put %x to %r[%c0] : !x to !ring
      } @adder(warps = 2, registers = 104) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.add_in_order %t, %m[%n, %c0] rank(%n) of %c[%n] : !tile to !sums, !counts
        tile.ring.release %r[%c0] : !ring
      }
      gpu.return
    }
  }
}

// -----

// A rank that is known behind the wait for the tile only is awaited there.
!tile = !tile.smem<64x64xf32, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>
// CHECK-LABEL: gpu.func @late_turn(
// CHECK:         nvvm.elect.sync
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         tile.smem_view
// CHECK-NEXT:    %[[RANK:.*]] = arith.addi
// CHECK-NEXT:    tile.await_rank %[[RANK]]
gpu.module @m {
  gpu.func @late_turn(%m: memref<?x?x64xf32>, %c: memref<?xi32>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %x = arith.constant dense<1.0> : !x
    %r = tile.ring {barriers = 16384 : i64, offset = 0 : i64} : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 104) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !x to !ring
    } @adder(warps = 1, registers = 104) {
      %t = tile.ring.wait %r[%c0] : !ring
      %rank = arith.addi %n, %n : index
      tile.add_in_order %t, %m[%n, %c0] rank(%rank) of %c[%n] : !tile to memref<?x?x64xf32>, memref<?xi32>
      tile.ring.release %r[%c0] : !ring
    }
    gpu.return
  }
}

// -----

// Tiles are claimed by the thread that copies: it waits until all have read the number
// before, counts, and says that the next is there. The others, eight warps and the thread
// that adds, read it in the condition of their loops.
!half = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!tile = !tile.smem<128x64xf32, swizzle = 128>
!sums = !tile.ring<1, !tile.smem<128x64xf32, swizzle = 128>>
!x = tensor<128x64xf32, #tile.fragment<8>>
// CHECK-LABEL: gpu.func @claims(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?xi32>, %[[TILES:[a-z0-9]+]]: index
// CHECK:         nvvm.mbarrier.init %{{.*}}, %c9_i32
// The consumers.
// CHECK:         scf.while (%[[STEP:.*]] = %c0{{.*}})
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           %[[READ:.*]] = llvm.load
// CHECK:           %[[SAME:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[READ]]
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %[[SAME]] : i32 to index
// CHECK:           mbarrier.arrive.shared
// CHECK:           %[[IS_LEFT:.*]] = arith.cmpi ult, %[[NUMBER]], %[[TILES]]
// CHECK:           scf.condition(%[[IS_LEFT]]) %[[STEP]], %[[NUMBER]]
// CHECK:         } do {
// CHECK:           scf.yield
// The producer.
// CHECK:         nvvm.elect.sync
// CHECK:         scf.while
// CHECK:           nvvm.mbarrier.try_wait.parity
// CHECK:           %[[COUNT:.*]] = tile.count_up %[[C]][%c0{{.*}}]
// CHECK:           llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK:           nvvm.mbarrier.arrive
// CHECK:           scf.condition
// CHECK:         } do {
// CHECK:           nvvm.cp.async.bulk.tensor.shared.cluster.global
// The thread that adds.
// CHECK:         nvvm.elect.sync
// CHECK:         scf.while
// CHECK:           %[[READ:.*]] = llvm.load
// CHECK-NEXT:      arith.index_cast %[[READ]]
// CHECK:           nvvm.mbarrier.arrive
module attributes {gpu.container_module} {
  func.func @launch(%c: memref<?xi32>, %n: index, %k: memref<?x?x64xf16>, %m: memref<?x?x64xf32>) {
    gpu.launch_func @m::@claims blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%c : memref<?xi32>, %n : index, %k : memref<?x?x64xf16>, %m : memref<?x?x64xf32>)
    return
  }
  gpu.module @m {
    gpu.func @claims(%c: memref<?xi32>, %tiles: index, %k: memref<?x?x64xf16>, %m: memref<?x?x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = arith.constant dense<1.0> : !x
      %r = tile.ring {barriers = 65536 : i64, offset = 0 : i64} : !ring
      %s = tile.ring {barriers = 65568 : i64, offset = 32768 : i64} : !sums
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n = tile.claim %t of %c[%c0] {offset = 65584 : i64} : memref<?xi32>
          %h = tile.ring.wait %r[%t] : !ring
          tile.ring.release %r[%t] : !ring
          tile.ring.acquire %s[%t] : !sums
          tile.ring.put %x to %s[%t] : !x to !sums
        }
      } @producer(warps = 1, registers = 24) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n = tile.claim %t of %c[%c0] {offset = 65584 : i64} : memref<?xi32>
          tile.ring.acquire %r[%t] : !ring
          tile.copy_async %k[%n, %c0] to %r[%t] : memref<?x?x64xf16> to !ring
        }
      } @adder(warps = 1, registers = 24) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n = tile.claim %t of %c[%c0] {offset = 65584 : i64} : memref<?xi32>
          %d = tile.ring.wait %s[%t] : !sums
          tile.add_in_order %d, %m[%n, %c0] rank(%n) of %c[%n] : !tile to memref<?x?x64xf32>, memref<?xi32>
          tile.ring.release %s[%t] : !sums
        }
      }
      gpu.return
    }
  }
}

// -----

!ring = !tile.ring<1, <64x64xf16, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>

// What a claim shares is stored behind the number, of a tile that there is. Others read it where they use it, in a loop that they
// come to or behind it, and say that they have read it at the end of the tile.
// CHECK-LABEL: gpu.func @shares(
// CHECK-SAME:    %{{[a-z0-9]+}}: memref<?xi32>, %[[TILES:[a-z0-9]+]]: index
// The consumers.
// CHECK:         scf.while
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %[[NUMBER]] : index, index
// CHECK:         } do {
// CHECK:           arith.constant 24596 : index
// CHECK:           %[[READ:.*]] = llvm.load
// CHECK:           %[[SAME:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[READ]]
// CHECK:           %[[END:.*]] = arith.index_cast %[[SAME]]
// CHECK:           scf.for %{{.*}} = %c0{{.*}} to %[[END]]
// CHECK:           arith.constant 24596 : index
// CHECK:           llvm.load
// CHECK:           tile.store
// CHECK:           mbarrier.arrive.shared
// CHECK:           scf.yield
// The producer.
// CHECK:         nvvm.elect.sync
// CHECK:         scf.while
// CHECK:           %[[COUNT:.*]] = tile.count_up
// CHECK:           %[[CLAIMED:.*]] = arith.index_cast %[[COUNT]]
// CHECK:           %[[IS_TILE:.*]] = arith.cmpi ult, %[[CLAIMED]], %[[TILES]]
// CHECK:           %[[ROW:.*]] = scf.if %[[IS_TILE]]
// CHECK:             memref.load %{{.*}}[%[[CLAIMED]]]
// CHECK:           llvm.store
// CHECK:           %[[STORED:.*]] = arith.index_cast %[[ROW]] : index to i32
// CHECK:           llvm.store %[[STORED]]
// CHECK:           nvvm.mbarrier.arrive
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %[[CLAIMED]], %[[ROW]]
module attributes {gpu.container_module} {
  func.func @launch(%c: memref<?xi32>, %n: index, %k: memref<?x?x64xf16>, %m: memref<?x64xf32>) {
    gpu.launch_func @m::@shares blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%c : memref<?xi32>, %n : index, %k : memref<?x?x64xf16>, %m : memref<?x64xf32>)
    return
  }
  gpu.module @m {
    gpu.func @shares(%c: memref<?xi32>, %tiles: index, %k: memref<?x?x64xf16>, %m: memref<?x64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = arith.constant dense<1.0> : !x
      %r = tile.ring {barriers = 8192 : i64, offset = 0 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 240) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n, %end = tile.claim %t of %c[%c0] {offset = 24576 : i64} shares {
          ^bb0(%number: index):
            %count = memref.load %c[%number] : memref<?xi32>
            %i = arith.index_cast %count : i32 to index
            tile.share_scalars %i : index
          } : memref<?xi32> -> index
          scf.for %i = %c0 to %end step %c1 {
            %h = tile.ring.wait %r[%i] : !ring
            tile.ring.release %r[%i] : !ring
          }
          tile.store %x, %m[%end] : !x to memref<?x64xf32>
        }
      } @producer(warps = 1, registers = 24) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n, %end = tile.claim %t of %c[%c0] {offset = 24576 : i64} shares {
          ^bb0(%number: index):
            %count = memref.load %c[%number] : memref<?xi32>
            %i = arith.index_cast %count : i32 to index
            tile.share_scalars %i : index
          } : memref<?xi32> -> index
          scf.for %i = %c0 to %end step %c1 {
            tile.ring.acquire %r[%i] : !ring
            tile.copy_async %k[%n, %c0] to %r[%i] : memref<?x?x64xf16> to !ring
          }
        }
      }
      gpu.return
    }
  }
}

// -----

!ring = !tile.ring<2, <64x64xf16, swizzle = 128>>
!x = tensor<64x64xf16, #tile.fragment<4>>

// Tiles without work are claimed one after the other, before the others get one.
// CHECK-LABEL: gpu.func @leaves_out(
// CHECK:         nvvm.elect.sync
// CHECK:         scf.while
// CHECK:           %[[CLAIMED:.*]]:2 = scf.while : () -> (index, index) {
// CHECK:             %[[COUNT:.*]] = tile.count_up
// CHECK:             %[[NUMBER:.*]] = arith.index_cast %[[COUNT]]
// CHECK:             %[[SHARED:.*]]:2 = scf.if %{{.*}} -> (index, i1)
// CHECK:               arith.cmpi eq
// CHECK:             } else {
// CHECK:               scf.yield %c0{{.*}}, %false
// CHECK:             scf.condition(%[[SHARED]]#1) %[[NUMBER]], %[[SHARED]]#0
// CHECK:           } do {
// CHECK:             scf.yield
// CHECK:           llvm.store
// CHECK:           %[[STORED:.*]] = arith.index_cast %[[CLAIMED]]#1 : index to i32
// CHECK:           llvm.store %[[STORED]]
// CHECK:           nvvm.mbarrier.arrive
module attributes {gpu.container_module} {
  func.func @launch(%c: memref<?xi32>, %n: index, %k: memref<?x?x64xf16>, %m: memref<?x64xf16>) {
    gpu.launch_func @m::@leaves_out blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%c : memref<?xi32>, %n : index, %k : memref<?x?x64xf16>, %m : memref<?x64xf16>)
    return
  }
  gpu.module @m {
    gpu.func @leaves_out(%c: memref<?xi32>, %tiles: index, %k: memref<?x?x64xf16>, %m: memref<?x64xf16>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = arith.constant dense<1.0> : !x
      %r = tile.ring {barriers = 8192 : i64, offset = 0 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 240) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n, %end = tile.claim %t of %c[%c0] {offset = 24576 : i64} shares {
          ^bb0(%number: index):
            %count = memref.load %c[%number] : memref<?xi32>
            %i = arith.index_cast %count : i32 to index
            %none = arith.cmpi eq, %i, %c0 : index
            tile.share_scalars %i unless %none : index
          } : memref<?xi32> -> index
          scf.for %i = %c0 to %end step %c1 {
            %h = tile.ring.wait %r[%i] : !ring
            tile.ring.release %r[%i] : !ring
          }
          tile.store %x, %m[%end] : !x to memref<?x64xf16>
        }
      } @producer(warps = 1, registers = 24) {
        scf.for %t = %c0 to %tiles step %c1 {
          %n, %end = tile.claim %t of %c[%c0] {offset = 24576 : i64} shares {
          ^bb0(%number: index):
            %count = memref.load %c[%number] : memref<?xi32>
            %i = arith.index_cast %count : i32 to index
            %none = arith.cmpi eq, %i, %c0 : index
            tile.share_scalars %i unless %none : index
          } : memref<?xi32> -> index
          scf.for %i = %c0 to %end step %c1 {
            tile.ring.acquire %r[%i] : !ring
            tile.copy_async %k[%n, %c0] to %r[%i] : memref<?x?x64xf16> to !ring
          }
        }
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x128xf16, strided<[?, ?, 1]>>
!result = tensor<128x128xf16, #tile.fragment<8>>

// The map of a store of some rows is of overlapping tiles of a warpgroup's 64 rows, of which tile n ends where row n begins. What is
// stored are the last rows of the tile that ends behind them.
// CHECK-LABEL: func.func @store_rows(
// CHECK:         %{{.*}}, %[[OFFSET:.*]], %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata
// CHECK:         %[[SOME:.*]] = arith.minui %[[SIZES]]#1, %c1
// CHECK:         %[[TILE:.*]] = arith.muli %[[STRIDES]]#1, %c64
// CHECK:         %[[FIRST:.*]] = arith.subi %{{.*}}, %[[TILE]]
// CHECK:         %[[ENDS:.*]] = arith.addi %[[SIZES]]#1, %[[SOME]]
// CHECK:         memref.reinterpret_cast %{{.*}} to offset: [%[[FIRST]]], sizes: [%[[SIZES]]#0, %[[ENDS]], 64, 128], strides: [%[[STRIDES]]#0, %[[STRIDES]]#1, %[[STRIDES]]#1, 1]
// CHECK-LABEL: gpu.func @rows(
// CHECK:         %[[BEFORE:.*]] = arith.addi %arg2, %[[OWN:.*]] : index
// CHECK:         %[[LEFT:.*]] = arith.subi %arg2, %[[OWN]]
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK:         %[[ROWS:.*]] = arith.minsi %[[SOME]], %c64
// CHECK:         %[[END:.*]] = arith.addi %[[BEFORE]], %[[ROWS]]
// CHECK:         %[[IN:.*]] = arith.subi %c64{{.*}}, %[[ROWS]]
// CHECK:         %[[R:.*]] = arith.index_cast %[[IN]]
// CHECK:         %[[N:.*]] = arith.index_cast %[[END]]
// CHECK:         nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%c0_i32{{.*}}, %[[R]], %[[N]], %{{.*}}]
module attributes {gpu.container_module} {
  func.func @store_rows(%m: !memory, %x: !result, %i: index) {
    gpu.launch_func @m::@rows blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%m : !memory, %x : !result, %i : index)
    return
  }
  gpu.module @m {
    gpu.func @rows(%m: !memory, %x: !result, %i: index) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        tile.store_bulk %x, %m[%i, %i] rows(%i) through !tile.smem<128x128xf16, swizzle = 128> {offset = 1024 : i64} : !result to !memory
      } @producer(warps = 1, registers = 24) {
      }
      gpu.return
    }
  }
}

// -----

!memory = memref<?x?x64xf16, strided<[?, ?, 1]>>
!packed = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile>

// A copy of some rows reads through such a map, too, and what is beyond the tile that ends behind them becomes zeros. The map begins
// before the memory, and the hardware reads where a map begins for a box without rows: the box is read through a map of tiles that
// begin at rows, unless it has rows and its tile begins before the memory. Of packed rows, 16 queries of 4 heads, tiles overlap along
// the queries. Up to the end of memory, no map of tiles is needed.
// CHECK-LABEL: func.func @copy_rows(
// CHECK:         memref.reinterpret_cast {{.*}} offset: [%{{.*}}], sizes: [%{{.*}}#0, %{{.*}}, 64, 64], strides: [%[[S:.*]]#0, %[[S]]#1, %[[S]]#1, 1]
// CHECK:         %[[ENDING:.*]] = nvgpu.tma.create.descriptor %{{.*}} box[%c1{{[^,]*}}, %c1{{[^,]*}}, %c64{{[^,]*}}, %c64{{[^,]*}}] : {{.*}}memref<64x64xf16
// CHECK:         %[[SOME:.*]] = arith.minui %[[SIZES:.*]]#1, %c1
// CHECK:         %[[WHOLE:.*]] = arith.subi %[[SIZES]]#1, %c63
// CHECK:         %[[TILES:.*]] = arith.maxsi %[[WHOLE]], %[[SOME]]
// CHECK:         memref.reinterpret_cast {{.*}} offset: [0], sizes: [%[[SIZES]]#0, %[[TILES]], 64, 64]
// CHECK:         %[[BEGINNING:.*]] = nvgpu.tma.create.descriptor
// CHECK:         memref.reinterpret_cast {{.*}} sizes: [%{{.*}}#0, %{{.*}}, 16, %{{.*}}#2, 64], strides: [%[[P:.*]]#0, %[[P]]#1, %[[P]]#1, %[[P]]#2, 1]
// CHECK:         nvgpu.tma.create.descriptor %{{.*}} box[%c1{{[^,]*}}, %c1{{[^,]*}}, %c16{{[^,]*}}, %c4{{[^,]*}}, %c64{{[^,]*}}] : {{.*}}memref<16x4x64xf16
// CHECK:         nvgpu.tma.create.descriptor {{.*}}memref<16x4x64xf16
// CHECK:         nvgpu.tma.create.descriptor %{{.*}} box[%c1{{[^,]*}}, %c64{{[^,]*}}, %c64{{[^,]*}}] : {{.*}}memref<64x64xf16
// CHECK:         gpu.launch_func {{.*}} %[[ENDING]] : {{.*}}, %[[BEGINNING]] :
// CHECK-LABEL: gpu.func @copies(
// CHECK-SAME:      %[[ENDING:arg4]]: {{.*}}, %[[BEGINNING:arg5]]: !nvgpu
// CHECK:         %[[SOME:.*]] = arith.maxsi %arg3, %c0
// CHECK:         %[[ROWS:.*]] = arith.minsi %[[SOME]], %c64
// CHECK:         %[[END:.*]] = arith.addi %arg2, %[[ROWS]]
// CHECK:         %[[IN:.*]] = arith.subi %c64{{.*}}, %[[ROWS]]
// CHECK:         %[[CUT:.*]] = arith.cmpi slt, %[[END]], %c64
// CHECK:         %[[HAS:.*]] = arith.cmpi sgt, %[[ROWS]], %c0
// CHECK:         %[[BEFORE:.*]] = arith.andi %[[CUT]], %[[HAS]]
// CHECK:         %[[BEGIN:.*]] = arith.subi %[[END]], %c64
// CHECK:         %[[TILE:.*]] = arith.select %[[BEFORE]], %[[END]], %[[BEGIN]]
// CHECK:         %[[MAP:.*]] = arith.select %[[BEFORE]], %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK:         %[[R:.*]] = arith.index_cast %[[IN]]
// CHECK:         %[[N:.*]] = arith.index_cast %[[TILE]]
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], {{.*}}, box[%{{.*}}, %[[R]], %[[N]], %{{.*}}]
// CHECK:         %[[QUERIES:.*]] = arith.divsi %arg3, %c4
// CHECK:         %[[SOME4:.*]] = arith.maxsi %[[QUERIES]], %c0
// CHECK:         arith.minsi %[[SOME4]], %c16
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}]
// CHECK-NOT:     arith.minsi
// CHECK:         nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}]
module attributes {gpu.container_module} {
  func.func @copy_rows(%m: !memory, %p: !packed, %i: index) {
    gpu.launch_func @m::@copies blocks in (%i, %i, %i) threads in (%i, %i, %i) args(%m : !memory, %p : !packed, %i : index, %i : index)
    return
  }
  gpu.module @m {
    gpu.func @copies(%m: !memory, %p: !packed, %i: index, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %r = tile.ring {offset = 0 : i64, barriers = 32768 : i64} : !ring
      tile.warp_specialize @consumer(warps = 4, registers = 232) {
        %t = tile.ring.wait %r[%c0] : !ring
        tile.ring.release %r[%c0] : !ring
      } @producer(warps = 1, registers = 40) {
        tile.ring.acquire %r[%c0] : !ring
        tile.copy_async %m[%i, %i] rows(%n) to %r[%c0] : !memory to !ring
        tile.copy_async %p[%i, %i, %i] packed(4) rows(%n) to %r[%c0] : !packed to !ring
        tile.copy_async %m[%i, %i] rows(%n) to_end to %r[%c0] : !memory to !ring
      }
      gpu.return
    }
  }
}

// -----

func.func @outside() {
  // expected-error @below {{'tile.warp_specialize' op is outside of any kernel; it must be in a gpu.func}}
  tile.warp_specialize @consumer(warps = 4, registers = 232) {
  } @producer(warps = 1, registers = 40) {
  }
  return
}

// -----

// What threads load, and no product reads, needs no fence; it is left out where warpgroups alternate between tiles.

!ring = !tile.ring<1, !tile.smem<8x8xf32, swizzle = 32>>
!rows = tensor<64xf32, #tile.rows<4>>

// CHECK-LABEL: gpu.func @put_rows(
// CHECK:         tile.put
// CHECK-NOT:     nvvm.fence.proxy
// CHECK:         gpu.return
gpu.module @m {
  gpu.func @put_rows(%x: !rows) kernel attributes {flash.schedule = #flash.schedule<stages = 2, features = specialize_warps|divide_columns|ping_pong>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring {offset = 0, barriers = 256} : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 224) {
      tile.ring.acquire %r[%c0] : !ring
      tile.ring.put %x to %r[%c0] : !rows to !ring
    } @second_consumer(warps = 4, registers = 224) {
      %t = tile.ring.wait %r[%c0] : !ring
      %y = tile.load %t : !tile.smem<8x8xf32, swizzle = 32> to tensor<64xf32, #tile.rows<4 from 4>>
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 24) {
    }
    gpu.return
  }
}

// -----

// A piece of the columns of memory, in one stage, arrives panel by panel, and the product that sums over its columns begins
// with the first one. Others wait for all of it.

!memory = memref<?x576xf16, strided<[?, 1]>>
!ring = !tile.ring<1, !tile.smem<64x128xf16, swizzle = 128>>
!tile = !tile.smem<64x128xf16, swizzle = 128>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!p = tensor<64x64xf16, #tile.fragment<4>>
!sums = tensor<64x128xf32, #tile.fragment<4>>

// CHECK-LABEL: gpu.func @panels(
// CHECK-SAME:    %[[Q:[^ ]*]]: index
// CHECK:         nvvm.setmaxregister increase
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[FIRST:.*]] = tile.mma_async {{.*}} transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, <64x64xf16, swizzle = 128>
// CHECK:         nvvm.mbarrier.try_wait.parity
// CHECK:         %[[SUM:.*]] = tile.mma_wait %[[FIRST]]
// CHECK:         tile.mma_async {{.*}} add %[[SUM]] transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, <64x64xf16, swizzle = 128>
// CHECK-NOT:     nvvm.mbarrier.try_wait.parity
// CHECK:         tile.mma_async {{.*}} : tensor<64x64xf16, #tile.fragment<4>>, <64x128xf16, swizzle = 128>
// CHECK:         nvvm.setmaxregister decrease
// CHECK-COUNT-2: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c8192
gpu.module @m {
  gpu.func @panels(%first: index, %m: !memory, %p: !p) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring {offset = 0, barriers = 32768} : !ring
    tile.warp_specialize @consumer(warps = 4, registers = 224) {
      %q = tile.smem_view %first : !tile
      %k = tile.ring.wait %r[%c0] : !ring
      %sp = tile.mma_async %q, %k transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %op = tile.mma_async %p, %k warpgroup : !p, !tile -> !tile.pending<!sums>
      %o = tile.mma_wait %op : !tile.pending<!sums>
      tile.ring.release %r[%c0] : !ring
    } @producer(warps = 1, registers = 24) {
      tile.ring.acquire %r[%c0] : !ring
      tile.copy_async %m[%c0, %c0] to %r[%c0] : !memory to !ring
    }
    gpu.return
  }
}

// -----

!tile = !tile.smem<64x128xf16, swizzle = 128>
!keys = !tile.ring<1, !tile.smem<64x128xf16, swizzle = 128>>
!sums = !tile.ring<1, !tile.smem<64x64xf32, swizzle = 128>>
!x = tensor<64x64xf32, #tile.fragment<4>>

// A tile that is not finite is copied to the stage of a result, which is written over the copy when all warps have
// read it.
// CHECK-LABEL: gpu.func @copy_finite(
// CHECK:         %[[STAGE:.*]] = arith.addi %{{.*}}, %c16384
// CHECK-NEXT:    scf.if %[[F:.*]] {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[COPY:.*]] = tile.smem_view %[[STAGE]]
// CHECK-NEXT:      tile.make_finite %[[KEYS:.*]] copy(%[[COPY]] : {{.*}}) warps(4)
// CHECK-NEXT:      nvvm.fence.proxy
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[AT:.*]] = arith.select %[[F]], %{{.*}}, %[[STAGE]]
// CHECK-NEXT:    %[[K:.*]] = tile.smem_view %[[AT]]
// CHECK-NEXT:    tile.mma_async %[[K]], %[[K]]
// CHECK:         scf.if %[[F]] {
// CHECK-NEXT:    } else {
// CHECK:           nvvm.barrier id = %{{.*}} number_of_threads = %c128_i32
// CHECK-NEXT:    }
// CHECK:         tile.put
gpu.module @m {
  gpu.func @copy_finite(%m: memref<?x?x128xf16, strided<[?, ?, 1]>>, %f: i1) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %keys = tile.ring {offset = 0, barriers = 32768} : !keys
    %sums = tile.ring {offset = 16384, barriers = 32784} : !sums
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %k = tile.ring.wait %keys[%c0] : !keys
      tile.ring.acquire %sums[%c0] : !sums
      %t = tile.ring.copy_finite %k unless %f in %sums[%c0] : !tile in !sums
      %p = tile.mma_async %t, %t transpose_b warpgroup : !tile, !tile -> !tile.pending<!x>
      %x = tile.mma_wait %p : !tile.pending<!x>
      tile.ring.put %x to %sums[%c0] : !x to !sums
      tile.ring.release %keys[%c0] : !keys
    } @producer(warps = 1, registers = 40) {
      tile.ring.acquire %keys[%c0] : !keys
      tile.copy_async %m[%c0, %c0, %c0] to %keys[%c0] : memref<?x?x128xf16, strided<[?, ?, 1]>> to !keys
      tile.ring.wait %sums[%c0] : !sums
      tile.ring.release %sums[%c0] : !sums
    }
    gpu.return
  }
}
