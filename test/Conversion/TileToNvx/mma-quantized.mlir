// A thread loads bytes, products with ones give its fragments as f32, and what these are rounded to is multiplied.
// RUN: flash-opt %s --split-input-file --pass-pipeline="builtin.module(flash-attach-target{target=sm_90a},gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s
// RUN: flash-opt %s --split-input-file --pass-pipeline="builtin.module(flash-attach-target{target=sm_80},gpu.module(gpu.func(convert-tile-to-nvx)))" | FileCheck %s --check-prefix=SM80
// RUN: not flash-opt %s --split-input-file --pass-pipeline="builtin.module(flash-attach-target{target=sm_75},gpu.module(gpu.func(convert-tile-to-nvx)))" 2>&1 | FileCheck %s --check-prefix=SM75

gpu.module @kernels {
  // Four neighbours of each of two keys, for each of two steps of 16 columns. One product has eight columns of both keys, another one the next eight.
  // CHECK-LABEL: gpu.func @columns
  // CHECK-COUNT-2: llvm.load {{.*}} : !llvm.ptr<1> -> f32
  // CHECK:         arith.select %{{.*}}, %c15360_i32
  // CHECK:         %[[K:.*]] = nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>, num = 4
  // CHECK:         nvvm.ldmatrix {{.*}} num = 4
  // CHECK-COUNT-4: llvm.inline_asm "cvt.rn.f16x2.e4m3x2 $0, $1;"
  // CHECK:         %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK:         nvvm.mma.sync {{.*}} C[%[[ZERO]], {{.*}} k = 16>} : (vector<2xf16>
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.bf16x2
  // CHECK:         nvvm.mma.sync {{.*}} k = 16>} : (vector<2xf16>
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.bf16x2
  // CHECK-COUNT-2: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>
  // The words of the second step are there.
  // CHECK:         nvvm.ldmatrix {{.*}} num = 4
  // CHECK:         nvvm.mma.sync
  // CHECK-NOT:     llvm.store
  // SM80-LABEL: gpu.func @columns
  // SM80:         arith.mulf %{{.*}}, %{{.*}} : f32
  // SM80-NOT:     llvm.inline_asm
  // SM80:         nvvm.mma.sync
  // SM75: error: 'tile.mma_quantized' op {{.*}}bf16
  gpu.func @columns(%q: !tile.smem<16x32xbf16, swizzle = 64>, %k: !tile.smem<16x32xf8E4M3FN, swizzle = 32>, %scales: memref<16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %s = tile.mma_quantized %q, %k transpose_b : !tile.smem<16x32xbf16, swizzle = 64>, !tile.smem<16x32xf8E4M3FN, swizzle = 32> -> tensor<16x16xf32, #tile.fragment<1>> {
    ^bb0(%row: index):
      %scale = memref.load %scales[%row] : memref<16xf32>
      tile.yield %scale : f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // Four matrices are 16 keys and 32 columns. The first bytes of their pairs are one fragment of 16 columns, of two keys in each register, and the
  // second bytes the next one; a thread adds to four neighbours of a row. Integers are multiplied as they are, by tiles with registers for 16 blocks.
  // CHECK-LABEL: gpu.func @rows
  // CHECK-SAME:    nvvm.minctasm = 16
  // SM75-LABEL: gpu.func @rows
  // SM75-COUNT-4:  nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 8, n = 8, k = 16>} : (i32, i32, i32)
  // SM75:          nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 16, n = 8, k = 8>}
  // CHECK:         %[[ACC:.*]]:16 = vector.to_elements
  // CHECK:         %[[V:.*]] = nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>, num = 4
  // CHECK:         %[[WORD:.*]] = llvm.extractvalue %[[V]][0]
  // CHECK:         %[[NEXT:.*]] = llvm.extractvalue %[[V]][1]
  // CHECK:         nvvm.mma.sync A[%[[WORD]], %[[NEXT]]] {{.*}} k = 16>} : (i32, i32, i32)
  // CHECK:         arith.sitofp
  // CHECK-COUNT-2: nvvm.convert.f32x2.to.f16x2
  // CHECK:         nvvm.mma.sync A[%[[WORD]], %[[NEXT]]] {{.*}} k = 16>} : (i32, i32, i32)
  // CHECK:         %[[X:.*]] = nvvm.mma.sync A[%{{.*}}] B[%{{.*}}] C[%[[ACC]]#0, %[[ACC]]#4, %[[ACC]]#2, %[[ACC]]#6]
  // CHECK:         %[[Y:.*]] = nvvm.mma.sync A[%{{.*}}] B[%{{.*}}] C[%[[ACC]]#1, %[[ACC]]#5, %[[ACC]]#3, %[[ACC]]#7]
  // CHECK:         nvvm.mma.sync A[%{{.*}}] B[%{{.*}}] C[%[[ACC]]#8,
  gpu.func @rows(%p: tensor<16x16xf16, #tile.fragment<1>>, %v: !tile.smem<16x32xi8, swizzle = 32>, %o: tensor<16x32xf32, #tile.wide_fragment<1>>, %s: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %sum = tile.mma_quantized %p, %v add %o : tensor<16x16xf16, #tile.fragment<1>>, !tile.smem<16x32xi8, swizzle = 32>, tensor<16x32xf32, #tile.wide_fragment<1>> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // Values of f8E4M3FN may be NaN. Where tiles have two stages, threads have the registers of eight blocks.
  // CHECK-LABEL: gpu.func @stages
  // CHECK-SAME:    nvvm.minctasm = 8
  // CHECK-NOT:     nvvm.mma.sync {{.*}} : (vector<2xf16>
  // CHECK:         arith.extf
  gpu.func @stages(%p: tensor<16x16xbf16, #tile.fragment<1>>, %v: !tile.smem<16x32xf8E4M3FN, swizzle = 32>, %o: tensor<16x32xf32, #tile.wide_fragment<1>>, %s: f32) kernel attributes {flash.schedule = #flash.schedule<stages = 2>, known_block_size = array<i32: 32, 1, 1>} {
    %sum = tile.mma_quantized %p, %v add %o : tensor<16x16xbf16, #tile.fragment<1>>, !tile.smem<16x32xf8E4M3FN, swizzle = 32>, tensor<16x32xf32, #tile.wide_fragment<1>> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    gpu.return
  }

  // Columns 4 t to 4 t + 3 of 16 are in lane t of four.
  // CHECK-LABEL: gpu.func @store
  // CHECK:         %[[ELEMENTS:.*]]:8 = vector.to_elements
  // CHECK:         %[[FOUR:.*]] = arith.constant 4 : index
  // CHECK:         %[[LANE:.*]] = arith.remui %{{.*}}, %[[FOUR]]
  // CHECK:         arith.muli %[[LANE]], %{{c4.*}} : index
  // CHECK:         %[[PAIR:.*]] = vector.from_elements %[[ELEMENTS]]#0, %[[ELEMENTS]]#1
  // CHECK:         llvm.store %[[PAIR]], %[[TO:.*]] {alignment = 8 : i64}
  // CHECK:         %[[NEXT:.*]] = vector.from_elements %[[ELEMENTS]]#4, %[[ELEMENTS]]#5
  // CHECK:         %[[BEHIND:.*]] = llvm.getelementptr %[[TO]][8]
  // CHECK:         llvm.store %[[NEXT]], %[[BEHIND]]
  gpu.func @store(%x: tensor<16x16xf32, #tile.wide_fragment<1>>, %out: memref<16x16xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    tile.store %x, %out[%c0] : tensor<16x16xf32, #tile.wide_fragment<1>> to memref<16x16xf32>
    gpu.return
  }
}
