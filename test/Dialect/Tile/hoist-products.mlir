// Products out of choices: behind them they can overlap with others.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-hoist-products)))" | FileCheck %s

!acc = tensor<64x64xf32, #tile.fragment<4>>
!p = tensor<64x64xf16, #tile.fragment<4>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!memory = memref<?x64xf16, strided<[?, 1]>>

gpu.module @kernels {
  // Where it was left out, it adds nothing.

  // CHECK-LABEL: gpu.func @guarded(
  // CHECK-SAME:  %{{[^,: ]*}}: tensor<64x64xf32, #tile.fragment<4>>, %[[ACC:[^,: ]*]]: tensor<64x64xf32, #tile.fragment<4>>, %[[OTHER:[^,: ]*]]: tensor<64x64xf32
  // CHECK:       %[[P:.*]] = arith.truncf
  // CHECK:       %[[V:.*]] = tile.fetch
  // CHECK:       %[[FINITE:.*]] = tile.is_finite %[[V]]
  // CHECK:       %[[C:.*]] = scf.if %[[FINITE]] -> (tensor<64x64xf32, #tile.fragment<4>>) {
  // CHECK-NEXT:    scf.yield %[[ACC]]
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    tile.load_row %[[V]]
  // CHECK-NEXT:    tile.clear %[[V]] warps(4)
  // CHECK-NEXT:    scf.yield %[[OTHER]]
  // CHECK-NEXT:  }
  // CHECK-NEXT:  %[[OP:.*]] = tile.mma_async %[[P]], %[[V]] add %[[C]]
  // CHECK-NEXT:  %[[O:.*]] = tile.mma_wait %[[OP]]
  // CHECK-NEXT:  tile.store %[[O]]
  gpu.func @guarded(%x: tensor<64x64xf32, #tile.fragment<4>>, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %finite = tile.is_finite %vt : !tile
    %o = scf.if %finite -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      %row = tile.load_row %vt[%n] : !tile to !acc
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // In kernels without roles nothing is gained.

  // CHECK-LABEL: gpu.func @unspecialized(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @unspecialized(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %o = scf.if %c -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // A choice that does more than the product stays,

  // CHECK-LABEL: gpu.func @more(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @more(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %o = scf.if %c -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      tile.store %r, %m[%n] : !acc to memref<?x64xf32>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // and so does one without a sum to go on with,

  // CHECK-LABEL: gpu.func @no_sum(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @no_sum(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %o = scf.if %c -> !acc {
      %op = tile.mma_async %p, %vt : !p, !tile -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // one whose tile is read behind it,

  // CHECK-LABEL: gpu.func @read_behind(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @read_behind(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %o = scf.if %c -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    %row = tile.load_row %vt[%n] : !tile to !acc
    tile.store %row, %m[%n] : !acc to memref<?x64xf32>
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // or in the next iteration, and one whose tile is not fetched here.

  // CHECK-LABEL: gpu.func @read_again(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @read_again(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %l = scf.for %i = %n to %n step %n iter_args(%a = %acc) -> !acc {
      %o = scf.if %c -> !acc {
        %op = tile.mma_async %p, %vt add %a : !p, !tile, !acc -> !tile.pending<!acc>
        %r = tile.mma_wait %op : !tile.pending<!acc>
        scf.yield %r : !acc
      } else {
        scf.yield %other : !acc
      }
      scf.yield %o : !acc
    }
    tile.store %l, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @no_fetch(
  // CHECK:       scf.if
  // CHECK-NEXT:    tile.mma_async
  // CHECK-NOT:   tile.clear
  // CHECK:       tile.store
  gpu.func @no_fetch(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index, %c: i1) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %exps = math.exp2 %x : !acc
    %p = arith.truncf %exps : !acc to !p
    %vt = tile.smem_view %n : !tile
    %o = scf.if %c -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // Of anything but exponentials nobody knows that it is finite, and an infinite
  // number times zero is no zero: the choice gives zeros instead.

  // CHECK-LABEL: gpu.func @not_finite(
  // CHECK-SAME:  %{{[^:]*}}: {{[^%]*}}%[[ACC:[^:]*]]: {{[^%]*}}%[[OTHER:[^:]*]]:
  // CHECK:       %[[P:.*]] = arith.truncf
  // CHECK:       %[[VT:.*]] = tile.fetch
  // CHECK:       %[[FINITE:.*]] = tile.is_finite %[[VT]]
  // CHECK:       %[[C:.*]]:2 = scf.if %[[FINITE]]
  // CHECK-NEXT:    scf.yield %[[ACC]], %[[P]]
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    %[[ZEROS:.*]] = tile.map : ()
  // CHECK:           tile.yield %{{.*}} : f32
  // CHECK:         %[[A:.*]] = arith.truncf %[[ZEROS]]
  // CHECK-NEXT:    tile.clear %[[VT]] warps(4)
  // CHECK-NEXT:    scf.yield %[[OTHER]], %[[A]]
  // CHECK:       tile.mma_async %[[C]]#1, %[[VT]] add %[[C]]#0
  gpu.func @not_finite(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %p = arith.truncf %x : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %finite = tile.is_finite %vt : !tile
    %o = scf.if %finite -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @not_finite_f32(
  // CHECK:       %[[C:.*]]:2 = scf.if
  // CHECK:         %[[ZEROS:.*]] = tile.map : ()
  // CHECK-NOT:     arith.truncf
  // CHECK:         scf.yield %{{.*}}, %[[ZEROS]]
  // CHECK:       tile.mma_async %[[C]]#1, %{{.*}} add %[[C]]#0
  gpu.func @not_finite_f32(%x: !acc, %acc: !acc, %other: !acc, %v: memref<?x64xf32, strided<[?, 1]>>, %m: memref<?x64xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %vt = tile.fetch %v[%n] : memref<?x64xf32, strided<[?, 1]>> to !tile.smem<64x64xf32, swizzle = 128>
    %finite = tile.is_finite %vt : !tile.smem<64x64xf32, swizzle = 128>
    %o = scf.if %finite -> !acc {
      %op = tile.mma_async %x, %vt add %acc tf32 : !acc, !tile.smem<64x64xf32, swizzle = 128>, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }

  // Exponentials that are rounded, wide again and rounded, or 0 under a mask.

  // CHECK-LABEL: gpu.func @masked_exponentials(
  // CHECK:       %[[P:.*]] = tile.map
  // CHECK:       %[[ROUNDED:.*]] = arith.truncf %[[P]]
  // CHECK:       %[[WIDE:.*]] = arith.extf %[[ROUNDED]]
  // CHECK:       %[[A:.*]] = arith.truncf %[[WIDE]]
  // CHECK-NOT:   arith.select {{.*}}tensor
  // CHECK:       tile.mma_async %[[A]],
  gpu.func @masked_exponentials(%x: !acc, %acc: !acc, %other: !acc, %v: !memory, %m: memref<?x64xf32>, %n: index) kernel
      attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %zero = arith.constant 0.0 : f32
    %exps = tile.map %x : (!acc) -> !acc {
    ^bb0(%e: f32, %i: index, %j: index):
      %exp = math.exp2 %e : f32
      %keep = arith.cmpi sle, %j, %i : index
      %r = arith.select %keep, %exp, %zero : f32
      tile.yield %r : f32
    }
    %rounded = arith.truncf %exps : !acc to !p
    %wide = arith.extf %rounded : !p to !acc
    %p = arith.truncf %wide : !acc to !p
    %vt = tile.fetch %v[%n] : !memory to !tile
    %finite = tile.is_finite %vt : !tile
    %o = scf.if %finite -> !acc {
      %op = tile.mma_async %p, %vt add %acc : !p, !tile, !acc -> !tile.pending<!acc>
      %r = tile.mma_wait %op : !tile.pending<!acc>
      scf.yield %r : !acc
    } else {
      scf.yield %other : !acc
    }
    tile.store %o, %m[%n] : !acc to memref<?x64xf32>
    gpu.return
  }
}
