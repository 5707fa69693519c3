// Products of warpgroups: matrix descriptors of operands in shared memory. In a
// descriptor bits 62 and 63 are the swizzle (1 is 128 bytes, 2 is 64, 3 is 32),
// bits 32 on the distance of the patterns of eight rows, bits 16 on that of the
// panels, all in units of 16 bytes.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s

!scores = tensor<64x64xf32, #tile.fragment<4>>
!pending = !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
!out = memref<?x64xf32, strided<[?, 1]>>

gpu.module @m {
  // Swizzle 128: 1 << 62 | 64 << 32 | 1 << 16. Steps are 32 bytes apart.
  // CHECK-LABEL: gpu.func @swizzle_128(
  // CHECK:       llvm.mlir.constant(16383 : i64)
  // CHECK:       %[[A:.*]] = llvm.mlir.constant(4611686293305360384 : i64)
  // CHECK:       llvm.or %{{.*}}, %[[A]]
  // CHECK:       nvvm.wgmma.fence.aligned
  // CHECK-NEXT:  %[[S:.*]] = nvx.warpgroup_mma f16 %{{.*}} at [0, 2, 4, 6] : i64, %{{.*}} at [0, 2, 4, 6] -> vector<32xf32>
  // CHECK-NEXT:  nvvm.wgmma.commit.group.sync.aligned
  // CHECK-NEXT:  nvx.warpgroup_wait 0 %[[S]]
  gpu.func @swizzle_128(%o: !out) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf16, swizzle = 128>
    %p = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !pending
    %s = tile.mma_wait %p : !pending
    tile.store %s, %o[%c0] : !scores to !out
    gpu.return
  }

  // Swizzle 64: 2 << 62 | 32 << 32 | 1 << 16.
  // CHECK-LABEL: gpu.func @swizzle_64(
  // CHECK:       llvm.mlir.constant(-9223371899415756800 : i64)
  // CHECK:       nvx.warpgroup_mma bf16 %{{.*}} at [0, 2] : i64, %{{.*}} at [0, 2] -> vector<32xf32>
  gpu.func @swizzle_64(%o: !out) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x32xbf16, swizzle = 64>
    %p = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x32xbf16, swizzle = 64>, !tile.smem<64x32xbf16, swizzle = 64> -> !pending
    %s = tile.mma_wait %p : !pending
    tile.store %s, %o[%c0] : !scores to !out
    gpu.return
  }

  // Swizzle 32: 3 << 62 | 16 << 32 | 1 << 16. Eight columns are half a step; the
  // other half is zero in shared memory.
  // CHECK-LABEL: gpu.func @swizzle_32(
  // CHECK:       llvm.mlir.constant(-4611685949707845632 : i64)
  // CHECK:       nvx.warpgroup_mma f16 %{{.*}} at [0] : i64, %{{.*}} at [0] -> vector<32xf32>
  gpu.func @swizzle_32(%o: !out) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x8xf16, swizzle = 32>
    %p = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x8xf16, swizzle = 32>, !tile.smem<64x8xf16, swizzle = 32> -> !pending
    %s = tile.mma_wait %p : !pending
    tile.store %s, %o[%c0] : !scores to !out
    gpu.return
  }

  // The columns of the second operand are neighbours: its steps are 16 rows of 128
  // bytes apart, its panels 64 rows: 1 << 62 | 64 << 32 | 512 << 16.
  // CHECK-LABEL: gpu.func @columns_inside(
  // CHECK:       llvm.mlir.constant(4611686293338849280 : i64)
  // CHECK:       nvx.warpgroup_mma f16 %{{.*}} : vector<16xi32>, %{{.*}} at [0, 128, 256, 384] add %{{.*}} : vector<64xf32> transpose_b -> vector<64xf32>
  gpu.func @columns_inside(%x: tensor<64x64xf16, #tile.fragment<4>>, %acc: tensor<64x128xf32, #tile.fragment<4>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x128xf16, swizzle = 128>
    %p = tile.mma_async %x, %t add %acc warpgroup : tensor<64x64xf16, #tile.fragment<4>>, !tile.smem<64x128xf16, swizzle = 128>, tensor<64x128xf32, #tile.fragment<4>> -> !tile.pending<tensor<64x128xf32, #tile.fragment<4>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<64x128xf32, #tile.fragment<4>>>
    gpu.return
  }

  // With more than eight steps the number of the warpgroup is that of each thread.
  // CHECK-LABEL: gpu.func @nine_steps(
  // CHECK-NOT:   nvx.warpgroup :
  // CHECK:       %[[WARPGROUP:.*]] = arith.divui %{{.*}}, %c128
  // CHECK:       arith.muli %[[WARPGROUP]], %c8192
  // CHECK:       nvx.warpgroup_mma
  gpu.func @nine_steps() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.smem_view %c0 : !tile.smem<128x144xf16, swizzle = 128>
    %b = tile.smem_view %c0 : !tile.smem<64x144xf16, swizzle = 128>
    %p = tile.mma_async %a, %b transpose_b warpgroup : !tile.smem<128x144xf16, swizzle = 128>, !tile.smem<64x144xf16, swizzle = 128> -> !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    gpu.return
  }

  // So may those of the first operand: its inner dimension are the rows of a panel,
  // and each warpgroup has a panel of its own, 128 x 128 bytes behind the one before.
  // CHECK-LABEL: gpu.func @transposed(
  // CHECK:       %[[NUMBER:.*]] = nvx.warpgroup
  // CHECK:       %[[WARPGROUP:.*]] = arith.index_castui %[[NUMBER]]
  // CHECK:       arith.muli %[[WARPGROUP]], %c16384
  // CHECK:       llvm.mlir.constant(4611686293372403712 : i64)
  // CHECK:       nvx.warpgroup_mma f16 %{{.*}} at [0, 128, 256, 384, 512, 640, 768, 896] : i64, %{{.*}} at [0, 128, 256, 384, 512, 640, 768, 896] transpose_a transpose_b -> vector<32xf32>
  gpu.func @transposed() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.smem_view %c0 : !tile.smem<128x128xf16, swizzle = 128>
    %b = tile.smem_view %c0 : !tile.smem<128x64xf16, swizzle = 128>
    %p = tile.mma_async %a, %b transpose_a warpgroup : !tile.smem<128x128xf16, swizzle = 128>, !tile.smem<128x64xf16, swizzle = 128> -> !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    %s = tile.mma_wait %p : !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    gpu.return
  }

  // A tile without a swizzle, along its columns and along its rows, where the distances of panels
  // and of eight rows are exchanged. Warpgroups that divide its columns begin five panels behind
  // each other, and read the same first operand.
  // CHECK-LABEL: gpu.func @parts(
  // CHECK:       llvm.mlir.constant(34368126976 : i64)
  // CHECK:       nvx.warpgroup_mma f16 %{{.*}} at [0, 256, 512, 768, 1024] : i64, %{{.*}} at [0, 2, 4, 6, 512] -> vector<32xf32>
  // CHECK:       %[[NUMBER:.*]] = nvx.warpgroup
  // CHECK-NOT:   arith.muli
  // CHECK:       %[[WARPGROUP:.*]] = arith.index_castui %[[NUMBER]]
  // CHECK:       %[[PANEL:.*]] = arith.muli %[[WARPGROUP]], %c5
  // CHECK:       arith.muli %[[PANEL]], %c2048
  // CHECK:       llvm.mlir.constant(549756338176 : i64)
  // CHECK:       nvx.warpgroup_mma f16 %{{.*}} at [0, 128, 256, 384, 512, 640, 768, 896] : i64, %{{.*}} at [0, 16, 32, 48, 64, 80, 96, 112] transpose_a transpose_b -> vector<20xf32>
  gpu.func @parts() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %a = tile.smem_view %c0 : !tile.smem<128x64xf16, swizzle = 128>
    %b = tile.smem_view %c0 : !tile.smem<128x80xf16, swizzle = 16>
    %c = tile.smem_view %c0 : !tile.smem<64x80xf16, swizzle = 128>
    %s = tile.mma_async %b, %c transpose_b warpgroup : !tile.smem<128x80xf16, swizzle = 16>, !tile.smem<64x80xf16, swizzle = 128> -> !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    %p = tile.mma_async %a, %b transpose_a divide_columns warpgroup : !tile.smem<128x64xf16, swizzle = 128>, !tile.smem<128x80xf16, swizzle = 16> -> !tile.pending<tensor<128x40xf32, #tile.fragment<8>>>
    %x = tile.mma_wait %s younger(%p : !tile.pending<tensor<128x40xf32, #tile.fragment<8>>>) : !tile.pending<tensor<128x64xf32, #tile.fragment<8>>>
    %y = tile.mma_wait %p : !tile.pending<tensor<128x40xf32, #tile.fragment<8>>>
    gpu.return
  }

  // As many groups go on as there are younger products.
  // CHECK-LABEL: gpu.func @younger(
  // CHECK:       %[[A:.*]] = nvx.warpgroup_mma
  // CHECK:       %[[B:.*]] = nvx.warpgroup_mma
  // CHECK:       nvx.warpgroup_wait 1 %[[A]]
  // CHECK:       nvx.warpgroup_wait 0 %[[B]]
  gpu.func @younger() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf16, swizzle = 128>
    %a = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !pending
    %b = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !pending
    %x = tile.mma_wait %a younger(%b : !pending) : !pending
    %y = tile.mma_wait %b : !pending
    gpu.return
  }

  // A product that only another one adds to is not waited for, unless something depends on its end.
  // CHECK-LABEL: gpu.func @added(
  // CHECK:       %[[A:.*]] = nvx.warpgroup_mma
  // CHECK-NOT:   nvx.warpgroup_wait
  // CHECK:       %[[B:.*]] = nvx.warpgroup_mma {{.*}} add %[[A]]
  // CHECK:       nvx.warpgroup_wait 0 %[[B]]
  // CHECK:       nvvm.barrier
  // CHECK:       nvx.warpgroup_mma
  // CHECK:       nvx.warpgroup_wait 0
  gpu.func @added() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf16, swizzle = 128>
    %a = tile.mma_async %t, %t transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !pending
    %x = tile.mma_wait %a : !pending
    %b = tile.mma_async %t, %t add %x transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128>, !scores -> !pending
    %y = tile.mma_wait %b : !pending
    nvvm.barrier
    %c = tile.mma_async %t, %t add %y transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128>, !scores -> !pending
    %z = tile.mma_wait %c : !pending
    gpu.return
  }

  // The lanes of a warp vote; of a tile, each of the last warps looks at a share.
  // CHECK-LABEL: gpu.func @votes(
  // CHECK:       nvvm.vote.sync
  // CHECK:       arith.addi %{{.*}}, %c-160
  // CHECK:       nvvm.vote.sync any
  // CHECK-NOT:   nvvm.barrier
  gpu.func @votes(%x: tensor<64x4xi1, #tile.lanes<4>>, %o: memref<?xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %t = tile.smem_view %c0 : !tile.smem<64x64xf16, swizzle = 128>
    %any = tile.any %x : tensor<64x4xi1, #tile.lanes<4>>
    %finite = tile.is_finite %t warps(3) : !tile.smem<64x64xf16, swizzle = 128>
    gpu.return
  }
}
