// Overlap of four products: two that need nothing of others, and two that add to
// what the loop carries, of tiles which the first two read, too. The rotated loop
// gives the bits that the loop gives.
// RUN: flash-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(tile-overlap,tile-pipeline,tile-verify-async)))' -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: flash-run %s --target=emulate --seed=5 --outputs=%t-a.npy,%t-b.npy
// RUN: flash-run %t.mlir --target=emulate --seed=5 --outputs=%t-c.npy,%t-d.npy
// RUN: cmp %t-a.npy %t-c.npy
// RUN: cmp %t-b.npy %t-d.npy

// Both scores first, of tiles that the iteration itself does not wait for; then the
// products of the iteration before, which run while the rest is computed.
// CHECK:      scf.for
// CHECK:        %[[KT:.*]] = tile.ring.peek %{{.*}}[
// CHECK-NEXT:   %[[S:.*]] = tile.mma_async %{{.*}}, %[[KT]] transpose_b
// CHECK-NEXT:   %[[VT:.*]] = tile.ring.peek %{{.*}}[
// CHECK-NEXT:   %[[D:.*]] = tile.mma_async %{{.*}}, %[[VT]] transpose_b
// CHECK:        tile.ring.wait
// CHECK:        %[[A:.*]] = tile.mma_async %{{.*}} add
// CHECK:        tile.ring.wait
// CHECK:        %[[B:.*]] = tile.mma_async %{{.*}} add
// CHECK:        tile.mma_wait %[[S]] younger(%[[D]], %[[A]], %[[B]] :
// CHECK:        tile.mma_wait %[[D]] younger(%[[A]], %[[B]] :
// CHECK:        tile.mma_wait %[[A]] younger(%[[B]] :
// CHECK-NEXT:   tile.ring.release
// CHECK-NEXT:   tile.mma_wait %[[B]] :
// CHECK-NEXT:   tile.ring.release
// CHECK:        scf.yield
// CHECK:      tile.mma_async %{{.*}} add
// CHECK:      tile.mma_async %{{.*}} add

!x = tensor<256x64xf16>
!result = tensor<64x64xf32>
!memory = memref<256x64xf16>
!out = memref<64x64xf32>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!half = tensor<64x64xf16, #tile.fragment<4>>
!acc = tensor<64x64xf32, #tile.fragment<4>>
module attributes {gpu.container_module} {
  func.func @main(%k: !x, %v: !x) -> (!result, !result) {
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %mk = bufferization.to_buffer %k read_only : !x to !memory
    %mv = bufferization.to_buffer %v read_only : !x to !memory
    %a = memref.alloc() : !out
    %b = memref.alloc() : !out
    gpu.launch_func @kernels::@main blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%mk : !memory, %mv : !memory, %a : !out, %b : !out)
    %ra = bufferization.to_tensor %a restrict writable : !out to !result
    %rb = bufferization.to_tensor %b restrict writable : !out to !result
    return %ra, %rb : !result, !result
  }

  gpu.module @kernels {
    gpu.func @main(%k: !memory, %v: !memory, %a: !out, %b: !out) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %c256 = arith.constant 256 : index
      %zero = arith.constant dense<0.0> : !acc
      %keys = tile.ring : !ring
      %values = tile.ring : !ring
      %queries = tile.fetch %k[%c0] : !memory to !smem
      %q = tile.load %queries : !smem to !half
      %r:3 = scf.for %j = %c0 to %c256 step %c64 iter_args(%da = %zero, %db = %zero, %t = %c0) -> (!acc, !acc, index) {
        tile.ring.acquire %keys[%t] : !ring
        tile.copy_async %k[%j] to %keys[%t] : !memory to !ring
        tile.ring.acquire %values[%t] : !ring
        tile.copy_async %v[%j] to %values[%t] : !memory to !ring
        %kt = tile.ring.wait %keys[%t] : !ring
        %vt = tile.ring.wait %values[%t] : !ring
        %sp = tile.mma_async %q, %kt transpose_b : !half, !smem -> !tile.pending<!acc>
        %s = tile.mma_wait %sp : !tile.pending<!acc>
        %dp = tile.mma_async %q, %vt transpose_b : !half, !smem -> !tile.pending<!acc>
        %d = tile.mma_wait %dp : !tile.pending<!acc>
        %p = arith.truncf %s : !acc to !half
        %ds = arith.mulf %s, %d : !acc
        %dh = arith.truncf %ds : !acc to !half
        %pa = tile.mma_async %p, %vt add %da : !half, !smem, !acc -> !tile.pending<!acc>
        %na = tile.mma_wait %pa : !tile.pending<!acc>
        tile.ring.release %values[%t] : !ring
        %pb = tile.mma_async %dh, %kt add %db : !half, !smem, !acc -> !tile.pending<!acc>
        %nb = tile.mma_wait %pb : !tile.pending<!acc>
        tile.ring.release %keys[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %na, %nb, %next : !acc, !acc, index
      }
      tile.store %r#0, %a[%c0] : !acc to !out
      tile.store %r#1, %b[%c0] : !acc to !out
      gpu.return
    }
  }
}
