// Products of f8E4M3FN: steps of 32 elements, operands in registers in the order of the instruction, additions behind the sums of tensor cores;
// and columns of tiles as rows in memory.
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{target=sm_90a},gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s

!pending = !tile.pending<tensor<64x8xf32, #tile.fragment<4>>>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @scores
  // CHECK:         nvx.warpgroup_mma f8E4M3FN %{{.*}} at [0, 2, 4] : i64, %{{.*}} at [0, 2, 4] -> vector<4xf32>
  gpu.func @scores(%q: !tile.smem<64x80xf8E4M3FN, swizzle = 128>, %k: !tile.smem<8x80xf8E4M3FN, swizzle = 128>, %o: memref<4xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %p = tile.mma_async %q, %k transpose_b warpgroup : !tile.smem<64x80xf8E4M3FN, swizzle = 128>, !tile.smem<8x80xf8E4M3FN, swizzle = 128> -> !pending
    %s = tile.mma_wait %p : !pending
    gpu.return
  }

  // A register has the pairs of a row of both blocks of eight columns.
  // CHECK-LABEL: gpu.func @weights
  // CHECK-SAME:    %[[X:.*]]: tensor<64x32xf32
  // CHECK:         %[[P:.*]]:16 = vector.to_elements
  // CHECK:         %[[A0:.*]] = llvm.inline_asm "{\0A.reg .b16 left, right;\0Acvt.rn.satfinite.e4m3x2.f32 left, $2, $1;\0Acvt.rn.satfinite.e4m3x2.f32 right, $4, $3;\0Amov.b32 $0, {left, right};\0A}", "=r,f,f,f,f" %[[P]]#0, %[[P]]#1, %[[P]]#4, %[[P]]#5
  // CHECK:         %[[A1:.*]] = llvm.inline_asm {{.*}} %[[P]]#2, %[[P]]#3, %[[P]]#6, %[[P]]#7
  // CHECK:         %[[A2:.*]] = llvm.inline_asm {{.*}} %[[P]]#8, %[[P]]#9, %[[P]]#12, %[[P]]#13
  // CHECK:         %[[A3:.*]] = llvm.inline_asm {{.*}} %[[P]]#10, %[[P]]#11, %[[P]]#14, %[[P]]#15
  // CHECK:         %[[A:.*]] = vector.from_elements %[[A0]], %[[A1]], %[[A2]], %[[A3]]
  // The accumulator is no operand of the product.
  // CHECK:         %[[D:.*]] = nvx.warpgroup_mma f8E4M3FN %[[A]] : vector<4xi32>, %{{.*}} at [0] -> vector<4xf32>
  // CHECK:         %[[W:.*]] = nvx.warpgroup_wait 0 %[[D]]
  // CHECK-COUNT-4: arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
  gpu.func @weights(%x: tensor<64x32xf32, #tile.fragment<4>>, %v: !tile.smem<8x32xf8E4M3FN, swizzle = 32>, %acc: tensor<64x8xf32, #tile.fragment<4>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %w = arith.truncf %x : tensor<64x32xf32, #tile.fragment<4>> to tensor<64x32xf8E4M3FN, #tile.fragment<4>>
    %p = tile.mma_async %w, %v add %acc transpose_b warpgroup : tensor<64x32xf8E4M3FN, #tile.fragment<4>>, !tile.smem<8x32xf8E4M3FN, swizzle = 32>, tensor<64x8xf32, #tile.fragment<4>> -> !pending
    %s = tile.mma_wait %p : !pending
    gpu.return
  }

  // A thread reads 32 rows of a word of columns, and stores 32 bytes of each column. Of 128 threads 16 have some.
  // CHECK-LABEL: gpu.func @interleave
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult
  // CHECK:         scf.if %[[EXISTS]] {
  // CHECK-COUNT-32:  llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
  // CHECK:           %[[AB:.*]] = nvvm.prmt <default> %c20800_i32, %[[A:.*]], %[[B:.*]] : i32
  // CHECK:           %[[CD:.*]] = nvvm.prmt <default> %c20800_i32
  // CHECK:           nvvm.prmt <default> %c21520_i32, %[[AB]], %[[CD]] : i32
  // CHECK:           nvvm.prmt <default> %c30258_i32, %[[AB]], %[[CD]] : i32
  // CHECK-COUNT-8:   llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  gpu.func @interleave(%t: !tile.smem<32x64xf8E4M3FN, swizzle = 64>, %m: memref<?x32xf8E4M3FN>, %i: index) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    tile.store_interleaved %t, %m[%i] : !tile.smem<32x64xf8E4M3FN, swizzle = 64> to memref<?x32xf8E4M3FN>
    gpu.return
  }
}
