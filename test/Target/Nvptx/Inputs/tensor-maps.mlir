// Tensor maps of arguments, of a view of one, and of buffers, between operands
// of other sizes. One innermost stride is known only when the program is called.
!q = memref<?x?x?x64xf16, strided<[?, ?, ?, ?], offset: ?>>
!qmap = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
!kmap = !nvgpu.tensormap.descriptor<tensor = memref<2x64x32xbf16, 3>, swizzle = swizzle_64b, l2promo = l2promo_128b, oob = zero, interleave = none>
!bmap = !nvgpu.tensormap.descriptor<tensor = memref<16x8xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!omap = !nvgpu.tensormap.descriptor<tensor = memref<64xf32, 3>, swizzle = none, l2promo = l2promo_64b, oob = zero, interleave = none>
module attributes {gpu.container_module} {
  func.func @attention(
      %q: !q, %k: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>>, %bias: memref<?x?xf32, strided<[?, 1], offset: ?>>)
      -> (memref<?x?x?x64xf16>, memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %b = memref.dim %q, %c0 : !q
    %h = memref.dim %q, %c1 : !q
    %n = memref.dim %q, %c2 : !q
    %tiles = arith.ceildivui %n, %c128 : index
    %o = memref.alloc(%b, %h, %n) : memref<?x?x?x64xf16>
    %lse = memref.alloc(%n) : memref<?xf32>

    %qu = memref.cast %q : !q to memref<*xf16>
    %qmap = nvgpu.tma.create.descriptor %qu box[%c1, %c1, %c128, %c64] : memref<*xf16> -> !qmap
    // From the second batch on.
    %kb = memref.dim %k, %c0 : memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>>
    %kn = memref.dim %k, %c1 : memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>>
    %rest = arith.subi %kb, %c1 : index
    %kv = memref.subview %k[1, 0, 0] [%rest, %kn, 32] [1, 1, 1] : memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> to memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>>
    %ku = memref.cast %kv : memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> to memref<*xbf16>
    %kmap = nvgpu.tma.create.descriptor %ku box[%c2, %c64, %c32] : memref<*xbf16> -> !kmap
    %bu = memref.cast %bias : memref<?x?xf32, strided<[?, 1], offset: ?>> to memref<*xf32>
    %bmap = nvgpu.tma.create.descriptor %bu box[%c16, %c8] : memref<*xf32> -> !bmap
    %ou = memref.cast %lse : memref<?xf32> to memref<*xf32>
    %omap = nvgpu.tma.create.descriptor %ou box[%c64] : memref<*xf32> -> !omap

    gpu.launch_func @kernels::@attention blocks in (%tiles, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%n : index, %qmap : !qmap, %kmap : !kmap, %o : memref<?x?x?x64xf16>, %bmap : !bmap)
    gpu.launch_func @kernels::@merge blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)
        args(%qmap : !qmap, %omap : !omap, %n : index)
    return %o, %lse : memref<?x?x?x64xf16>, memref<?xf32>
  }
  gpu.module @kernels {
    gpu.func @attention(%n: index, %q: !qmap, %k: !kmap, %o: memref<?x?x?x64xf16>, %b: !bmap) kernel {
      gpu.return
    }
    gpu.func @merge(%q: !qmap, %o: !omap, %n: index) kernel {
      gpu.return
    }
  }
}
