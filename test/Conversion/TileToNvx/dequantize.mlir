// A thread reads chunks of 16 bytes, four of them before it writes the first one. Machines that have no instruction for elements of f8E4M3FN
// put their digits where f16 has them.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{target=sm_90a},gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s --check-prefix=SM90
// RUN: flash-opt %s --pass-pipeline="builtin.module(flash-attach-target{target=sm_80},gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s --check-prefix=SM80

gpu.module @kernels {
  // SM90-LABEL: gpu.func @e4m3
  // SM90-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // SM90-COUNT-8: llvm.inline_asm "cvt.rn.f16x2.e4m3x2 $0, $1;", "=r,h"
  // SM90-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
  // SM90:         llvm.inline_asm
  // SM90-COUNT-6: llvm.store
  // SM90:         gpu.return
  // SM80-LABEL: gpu.func @e4m3
  // SM80-NOT:     llvm.inline_asm
  // The exponents have other biases.
  // SM80:         %[[UNIT:.*]] = arith.constant 2.560000e+02 : f32
  // SM80:         arith.mulf %{{.*}}, %[[UNIT]] : f32
  // SM80-NOT:     arith.mulf {{.*}}f16
  // SM80:         nvvm.convert.f32x2.to.bf16x2
  gpu.func @e4m3(%from: !tile.smem<16x128xf8E4M3FN, swizzle = 128>, %to: !tile.smem<16x128xbf16, swizzle = 128>, %s: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.put_dequantized %from to %to : !tile.smem<16x128xf8E4M3FN, swizzle = 128> to !tile.smem<16x128xbf16, swizzle = 128> {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    gpu.return
  }

  // All scales are on their way before a chunk is read. Of the last chunks some threads have none.
  // CHECK-LABEL: gpu.func @rows
  // CHECK:         llvm.load {{.*}} -> f32
  // CHECK:         llvm.load {{.*}} -> f32
  // CHECK:         llvm.load {{.*}} -> vector<4xi32>
  // Integers become f32 of 2^23 and more.
  // CHECK:         %[[WORD:.*]] = arith.xori %{{.*}}, %c-2139062144_i32
  // CHECK:         %[[BYTE:.*]] = nvvm.prmt <default> %c29760_i32, %[[WORD]], %c1258291200_i32 : i32
  // CHECK:         %[[LARGE:.*]] = llvm.bitcast %[[BYTE]] : i32 to f32
  // CHECK:         arith.subf %[[LARGE]], %{{.*}} : f32
  // CHECK:         %[[EXISTS:.*]] = arith.cmpi ult
  // CHECK:         scf.if %[[EXISTS]]
  // CHECK:           llvm.load {{.*}} -> vector<4xi32>
  // CHECK:           llvm.load {{.*}} -> f32
  gpu.func @rows(%from: !tile.smem<24x48xi8, swizzle = 64>, %to: !tile.smem<24x48xf16, swizzle = 128>, %scales: memref<24xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    tile.put_dequantized %from to %to : !tile.smem<24x48xi8, swizzle = 64> to !tile.smem<24x48xf16, swizzle = 128> {
    ^bb0(%row: index):
      %s = memref.load %scales[%row] : memref<24xf32>
      tile.yield %s : f32
    }
    gpu.return
  }
}
