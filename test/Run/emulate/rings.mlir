// Roles that read the same ring, stages that several copies fill, stages that register tiles fill, and stores that
// add; against numpy.
// RUN: %python %S/Inputs/rings.py inputs %t
// RUN: flash-run %s --target=emulate --inputs=%t-x.npy,%t-pages.npy --outputs=%t-sums.npy,%t-scores.npy,%t-loop.npy
// RUN: %python %S/Inputs/rings.py check %t
// RUN: flash-run %s --target=sm_90a --dump=ptx | FileCheck %s

// CHECK:     .entry roles
// CHECK:     stmatrix
// CHECK:     fence.proxy.async
// CHECK:     wgmma.mma_async
// CHECK:     st.shared.v2
// CHECK:     cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
// CHECK:     .entry threads
// CHECK-DAG: cp.async.cg.shared.global
// CHECK-DAG: st.shared.b32
// CHECK-DAG: atom.global.add.f32

!x = tensor<256x64xf16>
!memory = memref<256x64xf16, strided<[?, 1], offset: ?>>
!table = memref<4xi32, strided<[1], offset: ?>>
!sums = memref<128x64xf32>
!scores = memref<2x128x128xf32>
!smem = !tile.smem<128x64xf16, swizzle = 128>
!pages = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
!wide = !tile.ring<1, !tile.smem<128x64xf32, swizzle = 128>>
!half = tensor<128x64xf16, #tile.fragment<8>>
!single = tensor<128x64xf32, #tile.fragment<8>>
!square = tensor<128x128xf32, #tile.fragment<8>>
module attributes {gpu.container_module} {
  func.func @main(%x: !x, %pages: tensor<4xi32>) -> (tensor<128x64xf32>, tensor<2x128x128xf32>, tensor<128x64xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %bx = bufferization.to_buffer %x read_only : !x to memref<256x64xf16, strided<[?, ?], offset: ?>>
    %mx = memref.cast %bx : memref<256x64xf16, strided<[?, ?], offset: ?>> to !memory
    %bp = bufferization.to_buffer %pages read_only : tensor<4xi32> to memref<4xi32, strided<[?], offset: ?>>
    %mp = memref.cast %bp : memref<4xi32, strided<[?], offset: ?>> to !table
    %sums = memref.alloc() : !sums
    %loop = memref.alloc() : !sums
    %scores = memref.alloc() : !scores
    gpu.launch_func @kernels::@clear blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%sums : !sums, %loop : !sums)
    gpu.launch_func @kernels::@roles blocks in (%c2, %c1, %c1) threads in (%c512, %c1, %c1)
        args(%mx : !memory, %mp : !table, %sums : !sums, %scores : !scores)
    gpu.launch_func @kernels::@threads blocks in (%c2, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%mx : !memory, %mp : !table, %loop : !sums)
    %r0 = bufferization.to_tensor %sums restrict writable : !sums to tensor<128x64xf32>
    %r1 = bufferization.to_tensor %scores restrict writable : !scores to tensor<2x128x128xf32>
    %r2 = bufferization.to_tensor %loop restrict writable : !sums to tensor<128x64xf32>
    return %r0, %r1, %r2 : tensor<128x64xf32>, tensor<2x128x128xf32>, tensor<128x64xf32>
  }

  gpu.module @kernels {
    gpu.func @clear(%sums: !sums, %loop: !sums) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : !single
      tile.store %zero, %sums[%c0] : !single to !sums
      tile.store %zero, %loop[%c0] : !single to !sums
      gpu.return
    }

    // Each block copies two pages, doubles them in registers, multiplies them by
    // themselves through a second ring, and adds what came through a third.
    gpu.func @roles(%x: !memory, %pages: !table, %sums: !sums, %scores: !scores) kernel
        attributes {known_block_size = array<i32: 512, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %b = gpu.block_id x
      %in = tile.ring copies = 2 : !pages
      %doubled = tile.ring : !pages
      %singles = tile.ring : !wide
      tile.warp_specialize @math(warps = 8, registers = 160) {
        %xt = tile.ring.wait %in[%c0] : !pages
        %xh = tile.load %xt : !smem to !half
        %xw = arith.extf %xh : !half to !single
        %wide = arith.addf %xw, %xw : !single
        %two = arith.truncf %wide : !single to !half
        tile.ring.acquire %doubled[%c0] : !pages
        tile.ring.put %two to %doubled[%c0] : !half to !pages
        %dt = tile.ring.wait %doubled[%c0] : !pages
        %p = tile.mma_async %xt, %dt transpose_b warpgroup : !smem, !smem -> !tile.pending<!square>
        %s = tile.mma_wait %p : !tile.pending<!square>
        tile.ring.release %doubled[%c0] : !pages
        tile.ring.release %in[%c0] : !pages
        tile.store %s, %scores[%b, %c0] : !square to !scores
        tile.ring.acquire %singles[%c0] : !wide
        tile.ring.put %wide to %singles[%c0] : !single to !wide
        %wt = tile.ring.wait %singles[%c0] : !wide
        tile.ring.release %singles[%c0] : !wide
        tile.store_bulk add %wide, %sums[%c0] through !tile.smem<128x64xf32, swizzle = 128> : !single to !sums
      } @watch(warps = 4, registers = 104) {
        %xt = tile.ring.wait %in[%c0] : !pages
        tile.ring.release %in[%c0] : !pages
      } @producer(warps = 1, registers = 56) {
        tile.ring.acquire %in[%c0] : !pages
        scf.for %page = %c0 to %c2 step %c1 {
          %first = arith.muli %b, %c2 : index
          %at = arith.addi %first, %page : index
          %number = memref.load %pages[%at] : !table
          %index = arith.index_cast %number : i32 to index
          %row = arith.muli %index, %c64 : index
          tile.copy_async %x[%row] to %in[%c0] part(%page) : !memory to !pages
        }
      }
      gpu.return
    }

    // The same sums without roles, in two steps of each ring.
    gpu.func @threads(%x: !memory, %pages: !table, %loop: !sums) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      %half = arith.constant dense<0.5> : !single
      %b = gpu.block_id x
      %in = tile.ring copies = 2 : !pages
      %doubled = tile.ring : !pages
      scf.for %i = %c0 to %c2 step %c1 {
        tile.ring.acquire %in[%i] : !pages
        scf.for %page = %c0 to %c2 step %c1 {
          %first = arith.muli %b, %c2 : index
          %at = arith.addi %first, %page : index
          %number = memref.load %pages[%at] : !table
          %index = arith.index_cast %number : i32 to index
          %row = arith.muli %index, %c64 : index
          tile.copy_async %x[%row] to %in[%i] part(%page) : !memory to !pages
        }
        %xt = tile.ring.wait %in[%i] : !pages
        %xh = tile.load %xt : !smem to !half
        tile.ring.release %in[%i] : !pages
        %xw = arith.extf %xh : !half to !single
        %wide = arith.addf %xw, %xw : !single
        %two = arith.truncf %wide : !single to !half
        tile.ring.acquire %doubled[%i] : !pages
        tile.ring.put %two to %doubled[%i] : !half to !pages
        %dt = tile.ring.wait %doubled[%i] : !pages
        %dh = tile.load %dt : !smem to !half
        tile.ring.release %doubled[%i] : !pages
        %dw = arith.extf %dh : !half to !single
        %sum = arith.mulf %dw, %half : !single
        tile.store add %sum, %loop[%c0] : !single to !sums
      }
      gpu.return
    }
  }
}
