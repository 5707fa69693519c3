// What each operation on tiles computes, against numpy. Sums in another order
// than that of the lanes would differ in their last bits.
// RUN: %python %S/Inputs/values.py inputs %t
// RUN: flash-run %s --target=emulate --inputs=%t-x.npy,%t-y.npy,%t-v.npy --outputs=%t-0.npy,%t-1.npy,%t-2.npy,%t-3.npy,%t-4.npy,%t-5.npy
// RUN: %python %S/Inputs/values.py check %t

!half = tensor<64x24xf16, #tile.fragment<2>>
!wide = tensor<64x24xf32, #tile.fragment<2>>
!square = tensor<64x64xf32, #tile.fragment<2>>
!lanes = tensor<64x4xf32, #tile.lanes<2>>
!rows = tensor<64xf32, #tile.rows<2>>
!xs = !tile.smem<64x24xf16, swizzle = 64>
!ys = !tile.smem<24x24xf32, swizzle = 128>
module attributes {gpu.container_module} {
  func.func @main(%x: tensor<2x60x24xf16>, %y: tensor<24x24xf32>, %v: tensor<64xf32>)
      -> (tensor<2x60xf32>, tensor<2x60xf32>, tensor<2x60x64xf32>, tensor<2x60x24xf32>, tensor<2x60x24xf16>, tensor<2x60x24xf32>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %mx = bufferization.to_buffer %x read_only : tensor<2x60x24xf16> to memref<2x60x24xf16>
    %my = bufferization.to_buffer %y read_only : tensor<24x24xf32> to memref<24x24xf32>
    %mv = bufferization.to_buffer %v read_only : tensor<64xf32> to memref<64xf32>
    %o0 = memref.alloc() : memref<2x60xf32>
    %o1 = memref.alloc() : memref<2x60xf32>
    %o2 = memref.alloc() : memref<2x60x64xf32>
    %o3 = memref.alloc() : memref<2x60x24xf32>
    %o4 = memref.alloc() : memref<2x60x24xf16>
    %o5 = memref.alloc() : memref<2x60x24xf32>
    gpu.launch_func @kernels::@main blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%mx : memref<2x60x24xf16>, %my : memref<24x24xf32>, %mv : memref<64xf32>, %o0 : memref<2x60xf32>,
             %o1 : memref<2x60xf32>, %o2 : memref<2x60x64xf32>, %o3 : memref<2x60x24xf32>, %o4 : memref<2x60x24xf16>,
             %o5 : memref<2x60x24xf32>)
    %r0 = bufferization.to_tensor %o0 restrict writable : memref<2x60xf32> to tensor<2x60xf32>
    %r1 = bufferization.to_tensor %o1 restrict writable : memref<2x60xf32> to tensor<2x60xf32>
    %r2 = bufferization.to_tensor %o2 restrict writable : memref<2x60x64xf32> to tensor<2x60x64xf32>
    %r3 = bufferization.to_tensor %o3 restrict writable : memref<2x60x24xf32> to tensor<2x60x24xf32>
    %r4 = bufferization.to_tensor %o4 restrict writable : memref<2x60x24xf16> to tensor<2x60x24xf16>
    %r5 = bufferization.to_tensor %o5 restrict writable : memref<2x60x24xf32> to tensor<2x60x24xf32>
    return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<2x60xf32>, tensor<2x60xf32>, tensor<2x60x64xf32>, tensor<2x60x24xf32>,
        tensor<2x60x24xf16>, tensor<2x60x24xf32>
  }

  gpu.module @kernels {
    gpu.func @main(%x: memref<2x60x24xf16>, %y: memref<24x24xf32>, %v: memref<64xf32>, %o0: memref<2x60xf32>,
                   %o1: memref<2x60xf32>, %o2: memref<2x60x64xf32>, %o3: memref<2x60x24xf32>, %o4: memref<2x60x24xf16>,
                   %o5: memref<2x60x24xf32>) kernel {
      %b = gpu.block_id x
      %c0 = arith.constant 0 : index
      %n = arith.constant 60 : index
      %xt = tile.fetch %x[%b, %c0] rows(%n) : memref<2x60x24xf16> to !xs
      %yt = tile.fetch %y[%c0] : memref<24x24xf32> to !ys
      %xh = tile.load %xt : !xs to !half
      %xw = arith.extf %xh : !half to !wide

      // The sum and the maximum of each row.
      %zero = arith.constant dense<0.0> : !lanes
      %least = arith.constant dense<0xFF800000> : !lanes
      %l0 = tile.fold add %xw into %zero : !wide into !lanes
      %s = tile.reduce add %l0 : !lanes to !rows
      tile.store %s, %o0[%b, %c0] rows(%n) : !rows to memref<2x60xf32>
      %l1 = tile.fold max %xw into %least : !wide into !lanes
      %m = tile.reduce max %l1 : !lanes to !rows
      tile.store %m, %o1[%b, %c0] rows(%n) : !rows to memref<2x60xf32>

      // x x^T + 1, whose last four rows and columns are of rows that do not exist.
      %one = arith.constant 1.0 : f32
      %ones = tile.broadcast %one : f32 to !square
      %p0 = tile.mma_async %xh, %xt add %ones transpose_b : !half, !xs, !square -> !tile.pending<!square>
      %d0 = tile.mma_wait %p0 : !tile.pending<!square>
      tile.store %d0, %o2[%b, %c0] rows(%n) : !square to memref<2x60x64xf32>

      // (x + its row's maximum) y, with y rounded to tf32.
      %mw = tile.broadcast %m : !rows to !wide
      %a = arith.addf %xw, %mw : !wide
      %p1 = tile.mma_async %a, %yt tf32 : !wide, !ys -> !tile.pending<!wide>
      %d1 = tile.mma_wait %p1 : !tile.pending<!wide>
      tile.store %d1, %o3[%b, %c0] rows(%n) : !wide to memref<2x60x24xf32>

      // What was loaded, and a function of the position that reads memory.
      tile.store %xh, %o4[%b, %c0] rows(%n) : !half to memref<2x60x24xf16>
      %f = tile.map %xw : (!wide) -> !wide {
      ^bb0(%e: f32, %i: index, %j: index):
        %t = memref.load %v[%i] : memref<64xf32>
        %later = arith.cmpi ult, %i, %j : index
        %r = arith.select %later, %e, %t : f32
        tile.yield %r : f32
      }
      tile.store %f, %o5[%b, %c0] rows(%n) : !wide to memref<2x60x24xf32>
      gpu.return
    }
  }
}
