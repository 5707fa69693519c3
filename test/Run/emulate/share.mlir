// A register tile in shared memory, read transposed by the next product: fetched
// and shared as it stands, through rings, and by warps with roles, to the same bits.
// DEFINE: %{rings} = gpu.module(gpu.func(tile-make-rings)),
// DEFINE: %{verify} = gpu.module(gpu.func(tile-overlap,tile-pipeline,tile-verify-async)),canonicalize,cse
// RUN: flash-opt %s --pass-pipeline='builtin.module(%{rings}%{verify})' -o %t-rings.mlir
// RUN: FileCheck %s --input-file=%t-rings.mlir
// RUN: flash-opt %s --pass-pipeline='builtin.module(%{rings}tile-specialize-warps,%{verify})' -o %t-roles.mlir
// RUN: FileCheck %s --input-file=%t-roles.mlir
// RUN: flash-run %s --target=emulate --seed=5 --outputs=%t-a.npy
// RUN: flash-run %t-rings.mlir --target=emulate --seed=5 --outputs=%t-b.npy
// RUN: flash-run %t-roles.mlir --target=emulate --seed=5 --outputs=%t-c.npy
// RUN: cmp %t-a.npy %t-b.npy
// RUN: cmp %t-a.npy %t-c.npy
// RUN: flash-run %t-rings.mlir --target=sm_80 --dump=ptx | FileCheck %s --check-prefix=SM80
// RUN: flash-run %t-roles.mlir --target=sm_90a --dump=ptx | FileCheck %s --check-prefix=SM90

// The tile in shared memory stays in its iteration, also where products overlap.
// CHECK:      scf.for
// CHECK:        tile.ring.put %{{.*}} to %[[R:.*]][%[[T:.*]]] : tensor<64x64xf16, #tile.fragment<4>> to <1,
// CHECK-NEXT:   %[[D:.*]] = tile.ring.wait %[[R]][%[[T]]] :
// CHECK:        tile.mma_async %{{.*}}, %[[D]] add
// CHECK:        tile.ring.release %[[R]][%[[T]]] :

// SM80:     st.shared.b32
// SM80:     bar.sync
// SM80:     ldmatrix
// SM90:     stmatrix
// SM90:     fence.proxy.async
// SM90:     mbarrier.arrive
// SM90:     mbarrier.try_wait
// SM90:     wgmma.mma_async

!x = tensor<256x64xf16>
!result = tensor<64x64xf32>
!memory = memref<256x64xf16, strided<[?, 1], offset: ?>>
!out = memref<64x64xf32, strided<[?, 1], offset: ?>>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!half = tensor<64x64xf16, #tile.fragment<4>>
!acc = tensor<64x64xf32, #tile.fragment<4>>
module attributes {gpu.container_module} {
  func.func @main(%k: !x) -> !result {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %b = bufferization.to_buffer %k read_only : !x to memref<256x64xf16, strided<[?, ?], offset: ?>>
    %m = memref.cast %b : memref<256x64xf16, strided<[?, ?], offset: ?>> to !memory
    %a = memref.alloc() : memref<64x64xf32>
    %o = memref.cast %a : memref<64x64xf32> to !out
    gpu.launch_func @kernels::@shared blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%m : !memory, %o : !out)
    %r = bufferization.to_tensor %a restrict writable : memref<64x64xf32> to !result
    return %r : !result
  }

  gpu.module @kernels {
    gpu.func @shared(%k: !memory, %o: !out) kernel
        attributes {flash.schedule = #flash.schedule<features = overlap|specialize_warps>, known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !acc
      %q = tile.fetch %k[%c0] : !memory to !smem
      %r = scf.for %j = %c0 to %c256 step %c64 iter_args(%sum = %zero) -> !acc {
        %kt = tile.fetch %k[%j] : !memory to !smem
        %sp = tile.mma_async %q, %kt transpose_b : !smem, !smem -> !tile.pending<!acc>
        %s = tile.mma_wait %sp : !tile.pending<!acc>
        %p = arith.truncf %s : !acc to !half
        %pt = tile.share %p : !half to !smem
        %d = tile.mma_async %kt, %pt add %sum transpose_b : !smem, !smem, !acc -> !tile.pending<!acc>
        %next = tile.mma_wait %d : !tile.pending<!acc>
        scf.yield %next : !acc
      }
      tile.store %r, %o[%c0] : !acc to !out
      gpu.return
    }
  }
}
