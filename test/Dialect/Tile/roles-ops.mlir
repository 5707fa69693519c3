// The operations of warps with roles and of warpgroups parse, verify, and print
// to what parses again, also through the generic form.
// RUN: flash-opt %s -o %t.mlir
// RUN: flash-opt %t.mlir | diff %t.mlir -
// RUN: flash-opt %s --mlir-print-op-generic | flash-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

!tile = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!memory = memref<?x64xf16, strided<[?, 1]>>
!scores = tensor<128x128xf32, #tile.fragment<8>>

// CHECK-LABEL: func @roles(
func.func @roles(%k: !memory, %q: !tile, %t: index, %j: index) {
  // CHECK: tile.ring {barriers = 65536 : i64, offset = 32768 : i64} : <2
  %ring = tile.ring {offset = 32768, barriers = 65536} : !ring
  // CHECK: tile.warp_specialize @consumer(warps = 8, registers = 240) {
  tile.warp_specialize @consumer(warps = 8, registers = 240) {
    %kt = tile.ring.wait %ring[%t] : !ring
    // CHECK: tile.ping_pong.wait
    tile.ping_pong.wait
    // CHECK: %[[A:.*]] = tile.mma_async %{{.*}}, %{{.*}} transpose_b warpgroup : !tile.smem<128x64xf16
    %a = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    // CHECK: %[[B:.*]] = tile.mma_async
    %b = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
    // CHECK: tile.ping_pong.arrive
    tile.ping_pong.arrive
    // CHECK: tile.mma_wait %[[A]] younger(%[[B]] : !tile.pending<tensor<128x128xf32, #tile.fragment<8>>>) : <tensor
    %s = tile.mma_wait %a younger(%b : !tile.pending<!scores>) : !tile.pending<!scores>
    // CHECK: tile.mma_wait %[[B]] : <tensor
    %r = tile.mma_wait %b : !tile.pending<!scores>
    // CHECK: tile.is_finite %{{.*}} warps(3) : <128x64xf16
    %f = tile.is_finite %kt warps(3) : !tile
    // CHECK: tile.make_finite %{{.*}} warps(3) : <128x64xf16
    tile.make_finite %kt warps(3) : !tile
    // CHECK: tile.make_finite %{{.*}} copy(%{{.*}} : !tile.smem<128x64xf16, swizzle = 128>) warps(8) : <128x64xf16
    tile.make_finite %kt copy(%kt : !tile) warps(8) : !tile
    // CHECK: tile.ring.is_finite %{{.*}}[%{{.*}}] : <2, <128x64xf16, swizzle = 128>>
    %g = tile.ring.is_finite %ring[%t] : !ring
    // CHECK: tile.ring.peek %{{.*}}[%{{.*}}] : <2, <128x64xf16, swizzle = 128>>
    %peek = tile.ring.peek %ring[%t] : !ring
    // CHECK: tile.clear %{{.*}} warps(8) : <128x64xf16, swizzle = 128>
    tile.clear %kt warps(8) : !tile
    tile.ring.release %ring[%t] : !ring
    // CHECK: } @producer(warps = 1, registers = 24) {
  } @producer(warps = 1, registers = 24) {
    // CHECK-NEXT: tile.ring.acquire
    tile.ring.acquire %ring[%t] : !ring
    // CHECK-NEXT: tile.copy_async
    tile.copy_async %k[%j] to %ring[%t] : !memory to !ring
    // CHECK-NEXT: }
  }
  // CHECK: %[[SEEN:.*]] = tile.ring checked : <2
  %seen = tile.ring checked : !ring
  // CHECK: %[[FINITE:.*]] = tile.ring finite : <2
  %finite = tile.ring finite : !ring
  // CHECK: tile.warp_specialize @consumer(warps = 4, registers = 232) {
  // CHECK-NEXT: } @producer(warps = 1, registers = 40) {
  // CHECK-NEXT: } @nonfinite_check(warps = 3, registers = 40) {
  // CHECK-NEXT: tile.ring.check_finite %[[SEEN]][%{{.*}}] : <2
  // CHECK-NEXT: tile.ring.check_finite %[[SEEN]][%{{.*}}] unchecked : <2
  // CHECK-NEXT: tile.ring.make_finite %[[FINITE]][%{{.*}}] : <2
  // CHECK-NEXT: }
  tile.warp_specialize @consumer(warps = 4, registers = 232) {
  } @producer(warps = 1, registers = 40) {
  } @nonfinite_check(warps = 3, registers = 40) {
    tile.ring.check_finite %seen[%t] : !ring
    tile.ring.check_finite %seen[%j] unchecked : !ring
    tile.ring.make_finite %finite[%t] : !ring
  }
  return
}

// CHECK-LABEL: func @any_roles(
func.func @any_roles() {
  // CHECK: tile.warp_specialize @math(warps = 8, registers = 160) {
  // CHECK-NEXT: } @correction(warps = 4, registers = 128) {
  // CHECK-NEXT: } @load(warps = 1, registers = 56) {
  // CHECK-NEXT: } @store(warps = 1 from 14, registers = 56) {
  // CHECK-NEXT: }
  tile.warp_specialize @math(warps = 8, registers = 160) {
  } @correction(warps = 4, registers = 128) {
  } @load(warps = 1 from 12, registers = 56) {
  } @store(warps = 1 from 14, registers = 56) {
  }
  return
}

// CHECK-LABEL: func @results(
func.func @results(%x: tensor<128x64xf16, #tile.fragment<8>>, %out: memref<?x64xf16>, %at: !tile, %i: index) -> tensor<128xf32, #tile.rows<8>> {
  // CHECK: tile.store_bulk %{{.*}}, %{{.*}}[%{{.*}}] through !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to memref<?x64xf16>
  tile.store_bulk %x, %out[%i] through !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to memref<?x64xf16>
  // CHECK: tile.ring row_stages = 3 : <1, <128x64xf16, swizzle = 128>>
  %row_stages = tile.ring row_stages = 3 : !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.store_bulk %{{.*}}, %{{.*}}[%{{.*}}] through !tile.smem<64x64xf16, swizzle = 128> in %{{.*}} : !tile.smem<128x64xf16, swizzle = 128> : tensor<128x64xf16, #tile.fragment<8>> to memref<?x64xf16>
  tile.store_bulk %x, %out[%i] through !tile.smem<64x64xf16, swizzle = 128> in %at : !tile : tensor<128x64xf16, #tile.fragment<8>> to memref<?x64xf16>
  // CHECK: tile.put %{{.*}}, %{{.*}} {column = 0 : i64} : tensor<128x64xf16, #tile.fragment<8>> to <128x64xf16, swizzle = 128>
  tile.put %x, %at {column = 0} : tensor<128x64xf16, #tile.fragment<8>> to !tile
  // CHECK: tile.column %{{.*}}[%{{.*}}] : tensor<128x64xf16, #tile.fragment<8>> to tensor<128xf32, #tile.rows<8>>
  %c = tile.column %x[%i] : tensor<128x64xf16, #tile.fragment<8>> to tensor<128xf32, #tile.rows<8>>
  return %c : tensor<128xf32, #tile.rows<8>>
}

// CHECK-LABEL: func @any(
func.func @any(%x: tensor<128x4xi1, #tile.lanes<8>>) -> i1 {
  // CHECK: tile.any %{{.*}} : tensor<128x4xi1, #tile.lanes<8>>
  %a = tile.any %x : tensor<128x4xi1, #tile.lanes<8>>
  return %a : i1
}
