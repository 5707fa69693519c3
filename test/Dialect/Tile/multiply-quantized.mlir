// A product of one warp converts the tile of 8 bits that it alone reads. What it adds to along the rows of such a tile is a wide fragment
// from where it is made to where it is stored.
// RUN: flash-opt %s --split-input-file --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-multiply-quantized)))" | FileCheck %s

!k8 = !tile.smem<16x32xi8, swizzle = 32>
!k = !tile.smem<16x32xf16, swizzle = 64>
!s = tensor<16x16xf32, #tile.fragment<1>>
!p = tensor<16x16xf16, #tile.fragment<1>>
!o = tensor<16x32xf32, #tile.fragment<1>>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @columns
  // CHECK-NOT:     tile.dequantize
  // CHECK:         %[[S:.*]] = tile.mma_quantized %{{.*}}, %{{.*}} transpose_b : {{.*}} -> tensor<16x16xf32, #tile.fragment<1>> {
  // CHECK-NEXT:    ^bb0(%[[ROW:.*]]: index):
  // CHECK-NEXT:      memref.load %{{.*}}[%[[ROW]]]
  // CHECK:         tile.fold max %[[S]]
  gpu.func @columns(%q: !k, %k: !k8, %scales: memref<16xf32>, %init: tensor<16x4xf32, #tile.lanes<1>>) kernel {
    %kd = tile.dequantize %k : !k8 to !k {
    ^bb0(%row: index):
      %scale = memref.load %scales[%row] : memref<16xf32>
      tile.yield %scale : f32
    }
    %sp = tile.mma_async %q, %kd transpose_b : !k, !k -> !tile.pending<!s>
    %s = tile.mma_wait %sp : !tile.pending<!s>
    %m = tile.fold max %s into %init : !s into tensor<16x4xf32, #tile.lanes<1>>
    gpu.return
  }

  // The constant and the broadcast are of fragments elsewhere, too.
  // CHECK-LABEL: gpu.func @rows
  // CHECK-DAG:     %[[WIDE:.*]] = arith.constant dense<0.000000e+00> : tensor<16x32xf32, #tile.wide_fragment<1>>
  // CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<16x32xf32, #tile.fragment<1>>
  // CHECK:         %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[WIDE]])
  // CHECK:           %[[FACTOR:.*]] = tile.broadcast %{{.*}} to tensor<16x32xf32, #tile.wide_fragment<1>>
  // CHECK:           %[[LESS:.*]] = arith.mulf %[[ACC]], %[[FACTOR]] : tensor<16x32xf32, #tile.wide_fragment<1>>
  // CHECK:           %[[NEXT:.*]] = scf.if
  // CHECK:             %[[MORE:.*]] = tile.mma_quantized %{{.*}}, %{{.*}} add %[[LESS]]
  // CHECK:             scf.yield %[[MORE]]
  // CHECK:           else
  // CHECK:             scf.yield %[[LESS]]
  // CHECK:           scf.yield %[[NEXT]]
  // CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : tensor<16x32xf32, #tile.wide_fragment<1>> to tensor<16x32xf16, #tile.wide_fragment<1>>
  // CHECK:         tile.store %[[ROUNDED]]
  // CHECK:         tile.store %[[ZERO]], {{.*}} #tile.fragment<1>>
  gpu.func @rows(%p: !p, %v: !k8, %s: f32, %n: index, %rows: tensor<16xf32, #tile.rows<1>>, %out: memref<?x32xf16>, %other: memref<?x32xf32>, %some: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !o
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !o {
      %factor = tile.broadcast %rows : tensor<16xf32, #tile.rows<1>> to !o
      %less = arith.mulf %acc, %factor : !o
      %next = scf.if %some -> !o {
        %vd = tile.dequantize %v : !k8 to !k {
        ^bb0(%row: index):
          tile.yield %s : f32
        }
        %op = tile.mma_async %p, %vd add %less : !p, !k, !o -> !tile.pending<!o>
        %more = tile.mma_wait %op : !tile.pending<!o>
        scf.yield %more : !o
      } else {
        scf.yield %less : !o
      }
      scf.yield %next : !o
    }
    %rounded = arith.truncf %sum : !o to tensor<16x32xf16, #tile.fragment<1>>
    tile.store %rounded, %out[%c0] : tensor<16x32xf16, #tile.fragment<1>> to memref<?x32xf16>
    tile.store %zero, %other[%c0] : !o to memref<?x32xf32>
    gpu.return
  }

  // A lane has a row of the first eight and one of the others, which are not stored: these have scores of 0 and factors of 1.
  // CHECK-LABEL: gpu.func @half
  // CHECK:         %[[S:.*]] = tile.mma_quantized
  // CHECK:         %[[SCORES:.*]] = tile.map %[[S]]
  // CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[ROW:.*]]: index, %{{.*}}: index):
  // CHECK:           %[[HALF:.*]] = arith.constant 8 : index
  // CHECK:           %[[IS_OF_HALF:.*]] = arith.cmpi ult, %[[ROW]], %[[HALF]]
  // CHECK:           %[[ZERO:.*]] = arith.constant 0.000000e+00
  // CHECK:           arith.select %[[IS_OF_HALF]], %[[X]], %[[ZERO]]
  // CHECK:         tile.fold max %[[SCORES]]
  // CHECK:         %[[FACTORS:.*]] = tile.map %{{.*}} : (tensor<16xf32, #tile.rows<1>>)
  // CHECK:           arith.constant 1.000000e+00
  // CHECK:         tile.broadcast %[[FACTORS]] : {{.*}} to tensor<16x32xf32, #tile.wide_fragment<1>>
  // CHECK:         tile.mma_quantized
  gpu.func @half(%m: memref<4x32xf16>, %k: !k8, %s: f32, %out: memref<?x32xf32>, %init: tensor<16x4xf32, #tile.lanes<1>>, %acc: memref<?x32xf32>, %some: i1, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %q = tile.fetch %m[%c0] rows(%c4) : memref<4x32xf16> to !k
    %kd = tile.dequantize %k : !k8 to !k {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    %sp = tile.mma_async %q, %kd transpose_b : !k, !k -> !tile.pending<!s>
    %s0 = tile.mma_wait %sp : !tile.pending<!s>
    %l = tile.fold max %s0 into %init : !s into tensor<16x4xf32, #tile.lanes<1>>
    %rows = tile.reduce max %l : tensor<16x4xf32, #tile.lanes<1>> to tensor<16xf32, #tile.rows<1>>
    %p = arith.truncf %s0 : !s to !p
    %zero = arith.constant dense<0.0> : !o
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc0 = %zero) -> !o {
      %factor = tile.broadcast %rows : tensor<16xf32, #tile.rows<1>> to !o
      %less = arith.mulf %acc0, %factor : !o
      %vd = tile.dequantize %k : !k8 to !k {
      ^bb0(%row: index):
        tile.yield %s : f32
      }
      %op = tile.mma_async %p, %vd add %less : !p, !k, !o -> !tile.pending<!o>
      %o = tile.mma_wait %op : !tile.pending<!o>
      scf.yield %o : !o
    }
    %queries = arith.select %some, %c0, %c1 : index
    %stored = affine.apply affine_map<(d0) -> (d0 * 4)>(%queries)
    tile.store %sum, %out[%c0] rows(%stored) : !o to memref<?x32xf32>
    gpu.return
  }

  // The sum is folded, which takes a fragment.
  // CHECK-LABEL: gpu.func @fold
  // CHECK:         tile.dequantize
  // CHECK:         tile.mma_async
  gpu.func @fold(%p: !p, %v: !k8, %s: f32, %init: tensor<16x4xf32, #tile.lanes<1>>) kernel {
    %vd = tile.dequantize %v : !k8 to !k {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    %op = tile.mma_async %p, %vd : !p, !k -> !tile.pending<!o>
    %o = tile.mma_wait %op : !tile.pending<!o>
    %m = tile.fold max %o into %init : !o into tensor<16x4xf32, #tile.lanes<1>>
    gpu.return
  }

  // A scale is another one behind the store.
  // CHECK-LABEL: gpu.func @written
  // CHECK:         tile.dequantize
  // CHECK:         memref.store
  // CHECK:         tile.mma_async
  gpu.func @written(%q: !k, %k: !k8, %scales: memref<16xf32>, %s: f32, %i: index) kernel {
    %kd = tile.dequantize %k : !k8 to !k {
    ^bb0(%row: index):
      %scale = memref.load %scales[%row] : memref<16xf32>
      tile.yield %scale : f32
    }
    memref.store %s, %scales[%i] : memref<16xf32>
    %sp = tile.mma_async %q, %kd transpose_b : !k, !k -> !tile.pending<!s>
    %s0 = tile.mma_wait %sp : !tile.pending<!s>
    gpu.return
  }

  // Two products read what the tile becomes.
  // CHECK-LABEL: gpu.func @twice
  // CHECK:         tile.dequantize
  // CHECK-COUNT-2: tile.mma_async
  gpu.func @twice(%q: !k, %k: !k8, %s: f32) kernel {
    %kd = tile.dequantize %k : !k8 to !k {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    %sp = tile.mma_async %q, %kd transpose_b : !k, !k -> !tile.pending<!s>
    %s0 = tile.mma_wait %sp : !tile.pending<!s>
    %p = arith.truncf %s0 : !s to !p
    %op = tile.mma_async %p, %kd : !p, !k -> !tile.pending<!o>
    %o = tile.mma_wait %op : !tile.pending<!o>
    gpu.return
  }
}

// -----

// Each of two warps would convert the whole tile.
!s = tensor<32x16xf32, #tile.fragment<2>>
gpu.module @kernels {
  // CHECK-LABEL: gpu.func @warps
  // CHECK:         tile.dequantize
  // CHECK:         tile.mma_async
  gpu.func @warps(%q: !tile.smem<32x32xf16, swizzle = 64>, %k: !tile.smem<16x32xi8, swizzle = 32>, %s: f32) kernel {
    %kd = tile.dequantize %k : !tile.smem<16x32xi8, swizzle = 32> to !tile.smem<16x32xf16, swizzle = 64> {
    ^bb0(%row: index):
      tile.yield %s : f32
    }
    %sp = tile.mma_async %q, %kd transpose_b : !tile.smem<32x32xf16, swizzle = 64>, !tile.smem<16x32xf16, swizzle = 64> -> !tile.pending<!s>
    %s0 = tile.mma_wait %sp : !tile.pending<!s>
    gpu.return
  }
}
