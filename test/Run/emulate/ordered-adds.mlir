// Blocks add products, whose first operands are transposed, to the same tiles in
// order: with tiles that are fetched and shared as they stand, through rings, and by
// warps with roles, to the same bits, and to what numpy has.
// DEFINE: %{rings} = gpu.module(gpu.func(tile-make-rings)),
// DEFINE: %{verify} = gpu.module(gpu.func(tile-verify-async)),canonicalize,cse
// RUN: %python %S/Inputs/ordered_adds.py inputs %t
// RUN: flash-opt %s --pass-pipeline='builtin.module(%{rings}%{verify})' -o %t-rings.mlir
// RUN: flash-opt %s --pass-pipeline='builtin.module(%{rings}tile-specialize-warps,%{verify})' -o %t-roles.mlir
// RUN: FileCheck %s --input-file=%t-roles.mlir
// RUN: flash-run %s --target=emulate --inputs=%t-x.npy,%t-y.npy --outputs=%t-a.npy
// RUN: flash-run %t-rings.mlir --target=emulate --inputs=%t-x.npy,%t-y.npy --outputs=%t-b.npy
// RUN: flash-run %t-roles.mlir --target=emulate --inputs=%t-x.npy,%t-y.npy --outputs=%t-c.npy
// RUN: %python %S/Inputs/ordered_adds.py check %t
// RUN: cmp %t-a.npy %t-b.npy
// RUN: cmp %t-a.npy %t-c.npy

// Ranks against the order of blocks, where a GPU might wait for ever.
// RUN: sed 's/rank(%block)/rank(%against)/' %s > %t-against.mlir
// RUN: not flash-run %t-against.mlir --target=emulate 2>&1 | FileCheck %s --check-prefix=AGAINST
// AGAINST: error: tile.add_in_order at {{.*}}: has rank 4, and the count is 0 when all blocks of smaller numbers have ended (block 0)

// RUN: not flash-run %t-rings.mlir --target=sm_80 --dump=ptx 2>&1 | FileCheck %s --check-prefix=SM80
// SM80: 'tile.add_in_order' op is for a role of one warp, and the warps of this kernel have no roles
// RUN: flash-run %t-roles.mlir --target=sm_90a --dump=ptx | FileCheck %s --check-prefix=SM90

// CHECK:      tile.warp_specialize @consumer(warps = 4,
// CHECK:        tile.mma_async %{{.*}}, %{{.*}} transpose_a warpgroup
// CHECK:        tile.ring.acquire %[[R:.*]][%{{.*}}] : <1, <64x64xf32, swizzle = 128>>
// CHECK-NEXT:   tile.ring.put %{{.*}} to %[[R]]
// CHECK-NOT:    %[[R]]
// CHECK:      } @producer(warps = 1,
// CHECK-NOT:    %[[R]]
// CHECK:      } @adder(warps = 2,
// CHECK:        %[[T:.*]] = tile.ring.wait %[[R]][%[[I:.*]]] :
// CHECK-NEXT:   tile.add_in_order %[[T]], %{{.*}}[%[[I]], %c0] rank(%block_id_x) of %{{.*}}[%[[I]]]
// CHECK-NEXT:   tile.ring.release %[[R]][%[[I]]]

// The first operand is transposed, which the first of the last two numbers says.
// SM90-DAG: wgmma.mma_async{{.*}}, 1, 1, 1, 1;
// SM90-DAG: ld.acquire.gpu.global.b32
// SM90-DAG: cp.async.bulk.tensor.3d.global.shared::cta
// SM90-DAG: cp.reduce.async.bulk.tensor.3d.global.shared::cta.add
// SM90-DAG: st.release.gpu.global.b32

!x = tensor<300x64xf16>
!y = tensor<2x300x64xf16>
!result = tensor<2x60x64xf32>
!mx = memref<300x64xf16, strided<[?, 1], offset: ?>>
!my = memref<2x300x64xf16, strided<[?, ?, 1], offset: ?>>
!sums = memref<2x60x64xf32, strided<[?, ?, 1], offset: ?>>
!counts = memref<2xi32>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!wide = !tile.smem<64x64xf32, swizzle = 128>
!acc = tensor<64x64xf32, #tile.fragment<4>>
module attributes {gpu.container_module} {
  func.func @main(%x: !x, %y: !y) -> !result {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %bx = bufferization.to_buffer %x read_only : !x to memref<300x64xf16, strided<[?, ?], offset: ?>>
    %mx = memref.cast %bx : memref<300x64xf16, strided<[?, ?], offset: ?>> to !mx
    %by = bufferization.to_buffer %y read_only : !y to memref<2x300x64xf16, strided<[?, ?, ?], offset: ?>>
    %my = memref.cast %by : memref<2x300x64xf16, strided<[?, ?, ?], offset: ?>> to !my
    %counts = memref.alloc() : !counts
    %a = memref.alloc() : memref<2x60x64xf32>
    %sums = memref.cast %a : memref<2x60x64xf32> to !sums
    gpu.launch_func @kernels::@clear blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1) args(%counts : !counts)
    gpu.launch_func @kernels::@add blocks in (%c5, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%mx : !mx, %my : !my, %sums : !sums, %counts : !counts)
    %r = bufferization.to_tensor %a restrict writable : memref<2x60x64xf32> to !result
    return %r : !result
  }

  gpu.module @kernels {
    gpu.func @clear(%counts: !counts) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %zero = arith.constant 0 : i32
      %i = gpu.block_id x
      memref.store %zero, %counts[%i] : !counts
      gpu.return
    }
    gpu.func @add(%x: !mx, %y: !my, %sums: !sums, %counts: !counts) kernel
        attributes {flash.schedule = #flash.schedule<features = specialize_warps>, known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %c300 = arith.constant 300 : index
      %block = gpu.block_id x
      %against = arith.subi %c4, %block : index
      %row = arith.muli %block, %c64 : index
      %rows = arith.subi %c300, %row : index
      %xt = tile.fetch %x[%row] rows(%rows) : !mx to !smem
      scf.for %i = %c0 to %c2 step %c1 {
        %yt = tile.fetch %y[%i, %row] rows(%rows) : !my to !smem
        %p = tile.mma_async %xt, %yt transpose_a : !smem, !smem -> !tile.pending<!acc>
        %d = tile.mma_wait %p : !tile.pending<!acc>
        %t = tile.share %d : !acc to !wide
        tile.add_in_order %t, %sums[%i, %c0] rank(%block) of %counts[%i] : !wide to !sums, !counts
      }
      gpu.return
    }
  }
}
