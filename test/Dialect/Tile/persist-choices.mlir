// Kernels that the device may leave out get a schedule by which few blocks go over all tiles.
// RUN: flash-opt %s --tile-persist-choices | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=keys=shared_bytes_per_block=100000 --tile-persist-choices | FileCheck %s --check-prefix=SMALL

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<128x64xf16, swizzle = 128>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    // As many blocks as have 2048 threads, each with 32 registers.
    // CHECK: gpu.func @four_warps() kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 16, features = persistent>,
    gpu.func @four_warps() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
    // Tiles take room in shared memory: 16 KiB each.
    // CHECK: gpu.func @copies({{.*}}) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 12, features = persistent>,
    // SMALL: gpu.func @copies({{.*}}) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 5, features = persistent>,
    gpu.func @copies(%m: !memory) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %i = gpu.block_id x
      %c128 = arith.constant 128 : index
      %t = tile.fetch %m[%i] rows(%c128) : !memory to !tile
      gpu.return
    }
    // A schedule stays as it is,
    // CHECK: gpu.func @scheduled() kernel attributes {flash.schedule = #flash.schedule<warps = 4>,
    gpu.func @scheduled() kernel attributes {flash.schedule = #flash.schedule<warps = 4>, known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
    // and so does a kernel whose tiles the device counts,
    // CHECK:     gpu.func @counted(
    // CHECK-NOT: flash.schedule
    gpu.func @counted(%n: memref<1xindex>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : index
      %count = memref.load %n[%c0] : memref<1xindex>
      tile.end_grid %count
      gpu.return
    }
    // whose threads compute many elements by themselves,
    // CHECK:     gpu.func @rounds(
    // CHECK-NOT: flash.schedule
    gpu.func @rounds(%m: memref<?x128xf32>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      %x = tile.map : () -> tensor<32x128xf32, #tile.warp_rows<4, 4>> {
      ^bb0(%i: index, %j: index):
        %e = memref.load %m[%i, %j] : memref<?x128xf32>
        tile.yield %e : f32
      }
      gpu.return
    }
    // or about which the host decides.
    // CHECK:     gpu.func @of_host()
    // CHECK-NOT: flash.schedule
    gpu.func @of_host() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
    // CHECK:     gpu.func @always()
    // CHECK-NOT: flash.schedule
    gpu.func @always() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      gpu.return
    }
  }
  func.func @main(%flag: memref<1xi32>, %n: index, %m: !memory, %counts: memref<1xindex>, %x: memref<?x128xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c0_i32 = arith.constant 0 : i32
    %t = bufferization.to_tensor %flag restrict : memref<1xi32> to tensor<1xi32>
    %e = tensor.extract %t[%c0] : tensor<1xi32>
    %is = arith.cmpi ne, %e, %c0_i32 : i32
    scf.if %is {
      gpu.launch_func @kernels::@four_warps blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1)
      gpu.launch_func @kernels::@copies blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%m : !memory)
    } else {
      gpu.launch_func @kernels::@scheduled blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1)
      gpu.launch_func @kernels::@counted blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%counts : memref<1xindex>)
      gpu.launch_func @kernels::@rounds blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1) args(%x : memref<?x128xf32>)
    }
    %known = arith.cmpi ne, %n, %c0 : index
    scf.if %known {
      gpu.launch_func @kernels::@of_host blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1)
    }
    gpu.launch_func @kernels::@always blocks in (%n, %c1, %c1) threads in (%c128, %c1, %c1)
    return
  }
}
