// Products of tiles that threads have put an iteration before, of loops one behind
// the other of which one may be empty: to the bits that they have in their own
// iteration.
// DEFINE: %{rings} = gpu.module(gpu.func(tile-make-rings)),tile-specialize-warps
// DEFINE: %{rest} = gpu.module(gpu.func(tile-delay-waits,tile-defer-products,tile-pipeline,tile-verify-async)),canonicalize,cse
// RUN: sed 's/|defer_products//' %s > %t-own.mlir
// RUN: flash-opt %t-own.mlir --pass-pipeline='builtin.module(%{rings},%{rest})' -o %t-a.mlir
// RUN: flash-opt %s --pass-pipeline='builtin.module(%{rings},%{rest})' -o %t-b.mlir
// RUN: FileCheck %s --input-file=%t-b.mlir
// RUN: flash-run %t-a.mlir --target=emulate --seed=5 --outputs=%t-a.npy
// RUN: flash-run %t-b.mlir --target=emulate --seed=5 --outputs=%t-b.npy
// RUN: cmp %t-a.npy %t-b.npy
// RUN: flash-run %t-b.mlir --target=sm_90a --dump=ptx | FileCheck %s --check-prefix=PTX

// Where another loop multiplies by another tile its first product would be of the
// wrong one.
// RUN: sed 's/%q = tile.mma_async %xt/%q = tile.mma_async %zt/' %s | flash-opt --pass-pipeline='builtin.module(%{rings},%{rest})' | FileCheck %s --check-prefix=OTHER
// OTHER:     tile.ring.put
// OTHER-NOT: tile.ring.put {{.*}}[%c0]

// CHECK-DAG:  %[[HALVES:.*]] = tile.ring : <2, <64x64xf16, swizzle = 128>>
// CHECK-DAG:  %[[SUMS:.*]] = tile.ring : <1, <64x64xf32, swizzle = 128>>
// CHECK:      tile.warp_specialize @consumer
// CHECK:        tile.ring.put %{{.*}} to %[[HALVES]][%c0]
// CHECK-COUNT-2: scf.for
// CHECK:        tile.ring.wait %[[HALVES]]
// CHECK:        tile.ring.put %{{.*}} to %[[SUMS]]
// CHECK:      } @producer
// CHECK:      } @adder
// CHECK-NEXT:   tile.ring.wait %[[SUMS]][%c0]
// CHECK-NEXT:   tile.ring.release %[[SUMS]][%c0]
// CHECK-NEXT:   scf.for

// Of the two loops, and behind them, a product of what was put before.
// PTX-COUNT-9: wgmma.mma_async{{.*}}, 1, 1, 1, 1
// PTX:         wgmma.mma_async{{.*}}, 1, 1, 1, 1

!x = tensor<320x64xf16>
!result = tensor<5x64x64xf32>
!mx = memref<320x64xf16, strided<[?, 1], offset: ?>>
!sums = memref<5x64x64xf32, strided<[?, ?, 1], offset: ?>>
!counts = memref<5xi32>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!wide = !tile.smem<64x64xf32, swizzle = 128>
!half = tensor<64x64xf16, #tile.fragment<4>>
!acc = tensor<64x64xf32, #tile.fragment<4>>
module attributes {gpu.container_module} {
  func.func @main(%x: !x) -> !result {
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %bx = bufferization.to_buffer %x read_only : !x to memref<320x64xf16, strided<[?, ?], offset: ?>>
    %mx = memref.cast %bx : memref<320x64xf16, strided<[?, ?], offset: ?>> to !mx
    %counts = memref.alloc() : !counts
    %a = memref.alloc() : memref<5x64x64xf32>
    %sums = memref.cast %a : memref<5x64x64xf32> to !sums
    gpu.launch_func @kernels::@clear blocks in (%c5, %c1, %c1) threads in (%c32, %c1, %c1) args(%counts : !counts)
    gpu.launch_func @kernels::@add blocks in (%c5, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%mx : !mx, %sums : !sums, %counts : !counts)
    %r = bufferization.to_tensor %a restrict writable : memref<5x64x64xf32> to !result
    return %r : !result
  }

  gpu.module @kernels {
    gpu.func @clear(%counts: !counts) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %zero = arith.constant 0 : i32
      %i = gpu.block_id x
      memref.store %zero, %counts[%i] : !counts
      gpu.return
    }
    // Block b goes through the tiles from b on, the first of them by a loop of its
    // own, which the last block does not enter.
    gpu.func @add(%x: !mx, %sums: !sums, %counts: !counts) kernel
        attributes {flash.schedule = #flash.schedule<features = specialize_warps|defer_products>, known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %c64 = arith.constant 64 : index
      %block = gpu.block_id x
      %second = arith.addi %block, %c1 : index
      %middle = arith.minsi %second, %c4 : index
      %row = arith.muli %block, %c64 : index
      %xt = tile.fetch %x[%row] : !mx to !smem
      %zt = tile.fetch %x[%c64] : !mx to !smem
      scf.for %i = %block to %middle step %c1 {
        %at = arith.muli %i, %c64 : index
        %yt = tile.fetch %x[%at] : !mx to !smem
        %sp = tile.mma_async %xt, %yt transpose_b : !smem, !smem -> !tile.pending<!acc>
        %s = tile.mma_wait %sp : !tile.pending<!acc>
        %h = arith.truncf %s : !acc to !half
        %ht = tile.share %h : !half to !smem
        %p = tile.mma_async %xt, %ht transpose_a : !smem, !smem -> !tile.pending<!acc>
        %d = tile.mma_wait %p : !tile.pending<!acc>
        %t = tile.share %d : !acc to !wide
        tile.add_in_order %t, %sums[%i, %c0] rank(%block) of %counts[%i] : !wide to !sums, !counts
      }
      scf.for %i = %middle to %c5 step %c1 {
        %at = arith.muli %i, %c64 : index
        %yt = tile.fetch %x[%at] : !mx to !smem
        %sp = tile.mma_async %xt, %yt transpose_b : !smem, !smem -> !tile.pending<!acc>
        %s = tile.mma_wait %sp : !tile.pending<!acc>
        %e = arith.negf %s : !acc
        %h = arith.truncf %e : !acc to !half
        %ht = tile.share %h : !half to !smem
        %q = tile.mma_async %xt, %ht transpose_a : !smem, !smem -> !tile.pending<!acc>
        %d = tile.mma_wait %q : !tile.pending<!acc>
        %t = tile.share %d : !acc to !wide
        tile.add_in_order %t, %sums[%i, %c0] rank(%block) of %counts[%i] : !wide to !sums, !counts
      }
      gpu.return
    }
  }
}
