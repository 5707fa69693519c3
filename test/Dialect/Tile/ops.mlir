// Every form of every op parses, verifies, and prints to what parses again,
// also through the generic form.
// RUN: flash-opt %s -o %t.mlir
// RUN: flash-opt %t.mlir | diff %t.mlir -
// RUN: flash-opt %s --mlir-print-op-generic | flash-opt | diff %t.mlir -
// RUN: FileCheck %s < %t.mlir

!memory = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>

// The examples in the descriptions of the operations.
// CHECK-LABEL: func @position(
func.func @position(%n: index, %b: index, %h: index) {
  // CHECK: %{{.*}}:2 = tile.position %{{.*}} of(%{{.*}}, %{{.*}}) longest_first
  %p:2 = tile.position %n of (%b, %h) longest_first
  // CHECK: %{{.*}}:2 = tile.position %{{.*}} of(%{{.*}}) both_ways
  %i, %is_backwards = tile.position %n of (%b) both_ways
  // CHECK: tile.has_rows %{{.*}}
  %has = tile.has_rows %n
  // CHECK: tile.position %{{.*}} of(%{{.*}}) interleaved additions(%{{.*}})
  %j = tile.position %n of (%b) interleaved additions(%h)
  return
}

// CHECK-LABEL: func @ordered(
func.func @ordered(%n: index) {
  // CHECK: {tile.order = #tile.order<pairs>}
  scf.forall (%i) in (%n) {
  } {tile.order = #tile.order<pairs>}
  // CHECK: {tile.order = #tile.order<reverse>}
  scf.forall (%i) in (%n) {
  } {tile.order = #tile.order<reverse>}
  return
}

!smem = !tile.smem<128x64xf16, swizzle = 128>
!paged = !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
!acc = tensor<128x64xf32, #tile.fragment<8>>

// CHECK-LABEL: func @parts(
func.func @parts(%k: !memory, %b: index, %t: index, %x: tensor<128x64xf16, #tile.fragment<8>>) {
  // CHECK: %[[RING:.*]] = tile.ring copies = 2 : <2, <128x64xf16, swizzle = 128>>
  %ring = tile.ring copies = 2 : !paged
  // CHECK: tile.copy_async %{{.*}} to %[[RING]][%{{.*}}] part(%{{.*}}) : memref<
  tile.copy_async %k[%b, %b, %b] to %ring[%t] part(%b) : !memory to !paged
  // CHECK: tile.copy %{{.*}} to %{{.*}}[%{{.*}}] {tile_rows = 64 : i64} : memref<
  %view = tile.smem_view %b : !smem
  tile.copy %k[%b, %b, %b] to %view[%t] {tile_rows = 64} : !memory to !smem
  // CHECK: tile.ring.put %{{.*}} to %{{.*}}[%{{.*}}] : tensor<128x64xf16, #tile.fragment<8>> to <2
  %filled = tile.ring : !paged
  tile.ring.put %x to %filled[%t] : tensor<128x64xf16, #tile.fragment<8>> to !paged
  // CHECK: tile.put %{{.*}}, %{{.*}} {by_pairs, column = 0 : i64}
  tile.put %x, %view {by_pairs, column = 0} : tensor<128x64xf16, #tile.fragment<8>> to !smem
  return
}

// CHECK-LABEL: func @quantized(
func.func @quantized(%q: !tile.smem<16x32xf16, swizzle = 64>, %b: !tile.smem<16x32xi8, swizzle = 32>, %p: tensor<16x16xf16, #tile.fragment<1>>,
                     %o: tensor<16x32xf32, #tile.wide_fragment<1>>, %s: f32) {
  // CHECK: tile.mma_quantized %{{.*}}, %{{.*}} transpose_b : !tile.smem<16x32xf16, swizzle = 64>, <16x32xi8, swizzle = 32> -> tensor<16x16xf32, #tile.fragment<1>> {
  // CHECK-NEXT: ^bb0(%{{.*}}: index):
  // CHECK-NEXT:   tile.yield
  %scores = tile.mma_quantized %q, %b transpose_b : !tile.smem<16x32xf16, swizzle = 64>, !tile.smem<16x32xi8, swizzle = 32> -> tensor<16x16xf32, #tile.fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  // CHECK: tile.mma_quantized %{{.*}}, %{{.*}} add %{{.*}} : tensor<16x16xf16, #tile.fragment<1>>, <16x32xi8, swizzle = 32>, tensor<16x32xf32, #tile.wide_fragment<1>> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
  %sums = tile.mma_quantized %p, %b add %o : tensor<16x16xf16, #tile.fragment<1>>, !tile.smem<16x32xi8, swizzle = 32>, tensor<16x32xf32, #tile.wide_fragment<1>> -> tensor<16x32xf32, #tile.wide_fragment<1>> {
  ^bb0(%row: index):
    tile.yield %s : f32
  }
  return
}

// CHECK-LABEL: func @share(
func.func @share(%x: tensor<128x64xf16, #tile.fragment<8>>, %rows: tensor<64xf32, #tile.rows<4>>) {
  // CHECK: tile.share %{{.*}} : tensor<128x64xf16, #tile.fragment<8>> to <128x64xf16, swizzle = 128>
  %t = tile.share %x : tensor<128x64xf16, #tile.fragment<8>> to !smem
  // CHECK: tile.share %{{.*}} : tensor<64xf32, #tile.rows<4>> to <8x8xf32, swizzle = 32>
  %s = tile.share %rows : tensor<64xf32, #tile.rows<4>> to !tile.smem<8x8xf32, swizzle = 32>
  return
}

// CHECK-LABEL: func @add(
func.func @add(%x: !acc, %m: memref<?x64xf32>, %i: index) {
  // CHECK: tile.store add %{{.*}}, %{{.*}}[%{{.*}}] : tensor<128x64xf32, #tile.fragment<8>> to memref<?x64xf32>
  tile.store add %x, %m[%i] : !acc to memref<?x64xf32>
  // CHECK: tile.store_bulk add %{{.*}}, %{{.*}}[%{{.*}}] through !tile.smem<128x32xf32, swizzle = 128>
  tile.store_bulk add %x, %m[%i] through !tile.smem<128x32xf32, swizzle = 128> : !acc to memref<?x64xf32>
  return
}

// CHECK-LABEL: func @fetch(
func.func @fetch(%k: !memory, %b: index, %h: index, %j: index, %n: index) {
  // CHECK: tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<{{.*}}> to <128x64xf16, swizzle = 128>
  %all = tile.fetch %k[%b, %h, %j] : !memory to !tile.smem<128x64xf16, swizzle = 128>
  // CHECK: tile.fetch %{{.*}}[%{{.*}}] rows(%{{.*}}) : memref<{{.*}}> to <128x64xf16, swizzle = 128>
  %kt = tile.fetch %k[%b, %h, %j] rows(%n) : !memory to !tile.smem<128x64xf16, swizzle = 128>
  return
}

// CHECK-LABEL: func @ring(
func.func @ring(%k: !memory, %b: index, %h: index, %j: index, %n: index, %t: index, %eights: !tile.smem<16x8xf32, swizzle = 32>) {
  // CHECK: tile.ring : <2, <128x64xf16, swizzle = 128>>
  %ring = tile.ring : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.ring {offset = 1024 : i64} : <1, <8x8xbf16, swizzle = 32>>
  %placed = tile.ring {offset = 1024} : !tile.ring<1, !tile.smem<8x8xbf16, swizzle = 32>>
  // CHECK: tile.ring.acquire %[[RING:.*]][%[[T:.*]]] : <2
  tile.ring.acquire %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.copy_async %{{.*}}[%{{.*}}] rows(%{{.*}}) to %[[RING]][%[[T]]] : memref<{{.*}}> to <2, {{.*}}>
  tile.copy_async %k[%b, %h, %j] rows(%n) to %ring[%t]
      : !memory to !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.copy_async %{{.*}}[%{{.*}}] to %[[RING]][%[[T]]] :
  tile.copy_async %k[%b, %h, %j] to %ring[%t]
      : !memory to !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.ring.wait %[[RING]][%[[T]]] : <2
  %kt = tile.ring.wait %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  // CHECK: tile.load %{{.*}} : <128x64xf16, swizzle = 128> to tensor<128x64xf16, #tile.fragment<4>>
  %q = tile.load %kt : !tile.smem<128x64xf16, swizzle = 128> to tensor<128x64xf16, #tile.fragment<4>>
  // CHECK: tile.load %{{.*}} : <16x8xf32, swizzle = 32> to tensor<128xf32, #tile.columns<4>>
  %columns = tile.load %eights : !tile.smem<16x8xf32, swizzle = 32> to tensor<128xf32, #tile.columns<4>>
  // CHECK: tile.load %{{.*}} : <16x8xf32, swizzle = 32> to tensor<128xf32, #tile.rows<4 from 4>>
  %rows = tile.load %eights : !tile.smem<16x8xf32, swizzle = 32> to tensor<128xf32, #tile.rows<4 from 4>>
  // CHECK: tile.ring.release %[[RING]][%[[T]]] : <2
  tile.ring.release %ring[%t] : !tile.ring<2, !tile.smem<128x64xf16, swizzle = 128>>
  return
}

// CHECK-LABEL: func @products(
func.func @products(%q: tensor<128x64xf16, #tile.fragment<4>>, %kt: !tile.smem<128x64xf16, swizzle = 128>,
                    %vt: !tile.smem<64x128xf16, swizzle = 128>, %x: !tile.smem<16x8xf32, swizzle = 32>, %y: !tile.smem<8x64xf32, swizzle = 128>,
                    %c: tensor<16x64xf32, #tile.fragment<1>>, %wt: !tile.smem<64x192xf16, swizzle = 128>, %kn: !tile.smem<128x80xf16, swizzle = 16>, %first: index) {
  // CHECK: tile.mma_async %{{.*}}, %{{.*}} transpose_b : tensor<128x64xf16, #tile.fragment<4>>, <{{.*}}> -> <tensor<128x128xf32, #tile.fragment<4>>>
  %s = tile.mma_async %q, %kt transpose_b : tensor<128x64xf16, #tile.fragment<4>>,
      !tile.smem<128x64xf16, swizzle = 128> -> !tile.pending<tensor<128x128xf32, #tile.fragment<4>>>
  // CHECK: tile.mma_async %{{.*}}, %{{.*}} panel(%{{.*}}) : tensor<128x64xf16, #tile.fragment<4>>, <{{.*}}> -> <tensor<128x64xf32, #tile.fragment<4>>>
  %wide = tile.mma_async %q, %wt panel(%first) : tensor<128x64xf16, #tile.fragment<4>>,
      !tile.smem<64x192xf16, swizzle = 128> -> !tile.pending<tensor<128x64xf32, #tile.fragment<4>>>
  // CHECK: tile.load_row %{{.*}}[%{{.*}}] panel(%{{.*}}) : <64x192xf16, swizzle = 128> to tensor<128x64xf32, #tile.fragment<4>>
  %row = tile.load_row %wt[%first] panel(%first) : !tile.smem<64x192xf16, swizzle = 128> to tensor<128x64xf32, #tile.fragment<4>>
  // CHECK: tile.mma_async %{{.*}}, %{{.*}} transpose_a transpose_b : !tile.smem<128x64xf16, swizzle = 128>, <64x128xf16, swizzle = 128> -> <tensor<64x64xf32, #tile.fragment<4>>>
  %ta = tile.mma_async %kt, %vt transpose_a transpose_b : !tile.smem<128x64xf16, swizzle = 128>,
      !tile.smem<64x128xf16, swizzle = 128> -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
  // CHECK: tile.mma_async %{{.*}}, %{{.*}} transpose_a divide_columns : !tile.smem<128x64xf16, swizzle = 128>, <128x80xf16, swizzle = 16> -> <tensor<128x40xf32, #tile.fragment<8>>>
  %tp = tile.mma_async %kt, %kn transpose_a divide_columns : !tile.smem<128x64xf16, swizzle = 128>,
      !tile.smem<128x80xf16, swizzle = 16> -> !tile.pending<tensor<128x40xf32, #tile.fragment<8>>>
  // CHECK: tile.mma_wait %{{.*}} : <tensor<128x128xf32, #tile.fragment<4>>>
  %r = tile.mma_wait %s : !tile.pending<tensor<128x128xf32, #tile.fragment<4>>>
  // CHECK: tile.mma_async %{{.*}}, %{{.*}} add %{{.*}} tf32 : !tile.smem<{{.*}}>, <{{.*}}>, tensor<16x64xf32, #tile.fragment<1>> -> <tensor<16x64xf32, #tile.fragment<1>>>
  %p = tile.mma_async %x, %y add %c tf32 : !tile.smem<16x8xf32, swizzle = 32>, !tile.smem<8x64xf32, swizzle = 128>,
      tensor<16x64xf32, #tile.fragment<1>> -> !tile.pending<tensor<16x64xf32, #tile.fragment<1>>>
  return
}

// CHECK-LABEL: func @registers(
func.func @registers(%p: tensor<128x64xf32, #tile.fragment<4>>, %rows: tensor<128xf32, #tile.rows<4>>,
                     %l0: tensor<128x4xf32, #tile.lanes<4>>, %f: f32, %minus_infinity: f32) {
  // CHECK: tile.broadcast %{{.*}} : tensor<128xf32, #tile.rows<4>> to tensor<128x64xf32, #tile.fragment<4>>
  %x = tile.broadcast %rows : tensor<128xf32, #tile.rows<4>> to tensor<128x64xf32, #tile.fragment<4>>
  // CHECK: tile.broadcast %{{.*}} : f32 to tensor<128x4xf32, #tile.lanes<4>>
  %s = tile.broadcast %f : f32 to tensor<128x4xf32, #tile.lanes<4>>
  // CHECK: tile.fold add %{{.*}} into %{{.*}} : tensor<128x64xf32, #tile.fragment<4>> into tensor<128x4xf32, #tile.lanes<4>>
  %l1 = tile.fold add %p into %l0 : tensor<128x64xf32, #tile.fragment<4>> into tensor<128x4xf32, #tile.lanes<4>>
  // CHECK: tile.reduce max %{{.*}} : tensor<128x4xf32, #tile.lanes<4>> to tensor<128xf32, #tile.rows<4>>
  %l = tile.reduce max %l1 : tensor<128x4xf32, #tile.lanes<4>> to tensor<128xf32, #tile.rows<4>>
  // CHECK: tile.map %{{.*}} : (tensor<128x64xf32, #tile.fragment<4>>) -> tensor<128x64xf32, #tile.fragment<4>> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index):
  %y = tile.map %x : (tensor<128x64xf32, #tile.fragment<4>>) -> tensor<128x64xf32, #tile.fragment<4>> {
  ^bb0(%e: f32, %i: index, %j: index):
    %keep = arith.cmpi sle, %j, %i : index
    %r = arith.select %keep, %e, %minus_infinity : f32
    // CHECK: tile.yield %{{.*}} : f32
    tile.yield %r : f32
  }
  return
}

// CHECK-LABEL: func @columns_of_fragments(
func.func @columns_of_fragments(%x: tensor<128x64xf32, #tile.fragment<4>>, %y: tensor<128x64xf32, #tile.fragment<4>>,
                                %m: memref<?xf32>, %n: index) {
  // CHECK: %[[C:.*]] = tile.reduce_rows add %{{.*}} : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  %c = tile.reduce_rows add %x : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  // CHECK: tile.reduce_rows min
  // CHECK: tile.reduce_rows mul
  // CHECK: tile.reduce_rows maximum
  // CHECK: tile.reduce_rows minimum
  %min = tile.reduce_rows min %x : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  %mul = tile.reduce_rows mul %x : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  %maximum = tile.reduce_rows maximum %x : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  %minimum = tile.reduce_rows minimum %x : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  // CHECK: tile.reduce_rows {{.*}} {offset = 1024 : i64}
  %d = tile.reduce_rows max %x {offset = 1024} : tensor<128x64xf32, #tile.fragment<4>> to tensor<64xf32, #tile.columns<4>>
  // CHECK: tile.broadcast %[[C]] : tensor<64xf32, #tile.columns<4>> to tensor<128x64xf32, #tile.fragment<4>>
  %b = tile.broadcast %c : tensor<64xf32, #tile.columns<4>> to tensor<128x64xf32, #tile.fragment<4>>
  // CHECK: tile.map %{{.*}}, %{{.*}} : (tensor<128x64xf32, #tile.fragment<4>>, tensor<128x64xf32, #tile.fragment<4>>) -> tensor<128x64xf32, #tile.fragment<4>> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: index, %{{.*}}: index):
  %z = tile.map %x, %y : (tensor<128x64xf32, #tile.fragment<4>>, tensor<128x64xf32, #tile.fragment<4>>) -> tensor<128x64xf32, #tile.fragment<4>> {
  ^bb0(%e: f32, %f: f32, %i: index, %j: index):
    %s = arith.addf %e, %f : f32
    tile.yield %s : f32
  }
  // CHECK: tile.map %[[C]] : (tensor<64xf32, #tile.columns<4>>) -> tensor<64xf32, #tile.columns<4>> {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: index):
  %v = tile.map %c : (tensor<64xf32, #tile.columns<4>>) -> tensor<64xf32, #tile.columns<4>> {
  ^bb0(%e: f32, %j: index):
    tile.yield %e : f32
  }
  // CHECK: tile.map : () -> tensor<128xf32, #tile.rows<4>> {
  // CHECK-NEXT: ^bb0(%{{.*}}: index):
  %w = tile.map : () -> tensor<128xf32, #tile.rows<4>> {
  ^bb0(%i: index):
    %e = memref.load %m[%i] : memref<?xf32>
    tile.yield %e : f32
  }
  // CHECK: tile.store %[[C]], %{{.*}}[%{{.*}}] rows(%{{.*}}) : tensor<64xf32, #tile.columns<4>> to memref<?xf32>
  tile.store %c, %m[%n] rows(%n) : tensor<64xf32, #tile.columns<4>> to memref<?xf32>
  return
}

// CHECK-LABEL: func @finite(
func.func @finite(%k: !memory, %b: index, %n: index) {
  // CHECK: %[[T:.*]] = tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}}) finite : memref<{{.*}}> to <128x64xf16, swizzle = 128>
  %t = tile.fetch %k[%b, %b, %b] rows(%n) finite : !memory to !smem
  // CHECK: tile.make_finite %[[T]] : <128x64xf16, swizzle = 128>
  tile.make_finite %t : !smem
  return
}

// CHECK-LABEL: func @to_end(
func.func @to_end(%k: !memory, %b: index, %n: index) {
  // CHECK: tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}}) to_end : memref<{{.*}}> to <128x64xf16, swizzle = 128>
  %t = tile.fetch %k[%b, %b, %b] rows(%n) to_end : !memory to !smem
  // CHECK: tile.copy_async %{{.*}} rows(%{{.*}}) to_end to %{{.*}} : memref<
  %ring = tile.ring : !paged
  tile.copy_async %k[%b, %b, %b] rows(%n) to_end to %ring[%n] : !memory to !paged
  return
}

// CHECK-LABEL: func @store(
func.func @store(%o: tensor<128x64xf16, #tile.fragment<4>>, %rows: tensor<128xf32, #tile.rows<4>>,
                 %out: memref<?x?x?x64xf16>, %lse: memref<?x?x?xf32>, %b: index, %h: index, %i: index, %n: index) {
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] rows(%{{.*}}) : tensor<128x64xf16, #tile.fragment<4>> to memref<?x?x?x64xf16>
  tile.store %o, %out[%b, %h, %i] rows(%n) : tensor<128x64xf16, #tile.fragment<4>> to memref<?x?x?x64xf16>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] : tensor<128xf32, #tile.rows<4>> to memref<?x?x?xf32>
  tile.store %rows, %lse[%b, %h, %i] : tensor<128xf32, #tile.rows<4>> to memref<?x?x?xf32>
  return
}

// CHECK-LABEL: func @allocated(
func.func @allocated(%k: !memory, %b: index, %h: index, %j: index, %n: index) {
  %c16384 = arith.constant 16384 : index
  // CHECK: tile.smem_view %{{.*}} : <128x64xf16, swizzle = 128>
  %kt = tile.smem_view %c16384 : !tile.smem<128x64xf16, swizzle = 128>
  // CHECK: tile.copy %{{.*}}[%{{.*}}] rows(%{{.*}}) to %{{.*}} : memref<{{.*}}> to <128x64xf16, swizzle = 128>
  tile.copy %k[%b, %h, %j] rows(%n) to %kt : !memory to !tile.smem<128x64xf16, swizzle = 128>
  // CHECK: tile.copy %{{.*}}[%{{.*}}] to %{{.*}} : memref
  tile.copy %k[%b, %h, %j] to %kt : !memory to !tile.smem<128x64xf16, swizzle = 128>
  return
}

// CHECK-LABEL: func @columns(
func.func @columns(%p: memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>, %b: index, %h: index, %i: index, %j: index, %n: index, %o: tensor<128x64xf16, #tile.fragment<4>>) {
  // CHECK: tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}}) : memref<?x?x?x?xf16
  %t = tile.fetch %p[%b, %h, %i, %j] rows(%n) : memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>> to !tile.smem<128x64xf16, swizzle = 128>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<128x64xf16
  tile.store %o, %p[%b, %h, %i, %j] : tensor<128x64xf16, #tile.fragment<4>> to memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] columns(%{{.*}}) : tensor<128x64xf16, #tile.fragment<4>>
  tile.store %o, %p[%b, %h, %i, %j] columns(%n) : tensor<128x64xf16, #tile.fragment<4>> to memref<?x?x?x?xf16, strided<[?, ?, ?, 1]>>
  return
}

// CHECK-LABEL: func @warp_rows(
func.func @warp_rows(%s: memref<?x?xf16, strided<[?, 1]>>, %l: memref<?xf32, strided<[?]>>, %i: index, %j: index, %m: index, %n: index, %p: f16, %q: f32, %lanes: tensor<8x32xf32, #tile.warp_rows<8, 1>>, %wide: tensor<2x128xf32, #tile.warp_rows<8, 1, 128>>) {
  // CHECK: tile.read %{{.*}}[%{{.*}}, %{{.*}}] rows(%{{.*}}) columns(%{{.*}}) padding(%{{.*}} : f16) : memref<?x?xf16, {{.*}}> to tensor<8x500xf16, #tile.warp_rows<8, 8>>
  %x = tile.read %s[%i, %j] rows(%m) columns(%n) padding(%p : f16) : memref<?x?xf16, strided<[?, 1]>> to tensor<8x500xf16, #tile.warp_rows<8, 8>>
  // CHECK: tile.read %{{.*}}[%{{.*}}, %{{.*}}] columns(%{{.*}}) aligned nonempty in_order : memref<?x?xf16
  %a = tile.read %s[%i, %j] columns(%n) aligned nonempty in_order : memref<?x?xf16, strided<[?, 1]>> to tensor<8x512xf16, #tile.warp_rows<8, 8>>
  // CHECK: tile.read %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xf16
  %b = tile.read %s[%i, %j] : memref<?x?xf16, strided<[?, 1]>> to tensor<8x3xf16, #tile.warp_rows<8, 2>>
  // CHECK: tile.read %{{.*}}[%{{.*}}] rows(%{{.*}}) padding(%{{.*}} : f32) nonempty : memref<?xf32, strided<[?]>> to tensor<8xf32, #tile.warp_rows<8, 1>>
  %v = tile.read %l[%i] rows(%m) padding(%q : f32) nonempty : memref<?xf32, strided<[?]>> to tensor<8xf32, #tile.warp_rows<8, 1>>
  %w = arith.extf %x : tensor<8x500xf16, #tile.warp_rows<8, 8>> to tensor<8x500xf32, #tile.warp_rows<8, 8>>
  // CHECK: tile.fold {{ *}}max
  %f = tile.fold max %w into %lanes : tensor<8x500xf32, #tile.warp_rows<8, 8>> into tensor<8x32xf32, #tile.warp_rows<8, 1>>
  // CHECK: tile.reduce {{ *}}add
  %r = tile.reduce add %f : tensor<8x32xf32, #tile.warp_rows<8, 1>> to tensor<8xf32, #tile.warp_rows<8, 1>>
  // CHECK: tile.reduce {{ *}}max %{{.*}} {offset = 0 : i64} : tensor<2x128xf32, #tile.warp_rows<8, 1, 128>> to tensor<2xf32, #tile.warp_rows<8, 1, 128>>
  %t = tile.reduce max %wide {offset = 0} : tensor<2x128xf32, #tile.warp_rows<8, 1, 128>> to tensor<2xf32, #tile.warp_rows<8, 1, 128>>
  // CHECK: tile.broadcast %{{.*}} : tensor<8xf32, #tile.warp_rows<8, 1>> to tensor<8x512xf32, #tile.warp_rows<8, 8>>
  %y = tile.broadcast %r : tensor<8xf32, #tile.warp_rows<8, 1>> to tensor<8x512xf32, #tile.warp_rows<8, 8>>
  // CHECK: tile.map %{{.*}} : (tensor<8x512xf32, #tile.warp_rows<8, 8>>) -> tensor<8x512xf32, #tile.warp_rows<8, 8>>
  %z = tile.map %y : (tensor<8x512xf32, #tile.warp_rows<8, 8>>) -> tensor<8x512xf32, #tile.warp_rows<8, 8>> {
  ^bb0(%e: f32, %row: index, %column: index):
    tile.yield %e : f32
  }
  %h = arith.truncf %z : tensor<8x512xf32, #tile.warp_rows<8, 8>> to tensor<8x512xf16, #tile.warp_rows<8, 8>>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] rows(%{{.*}}) columns(%{{.*}}) : tensor<8x512xf16, #tile.warp_rows<8, 8>>
  tile.store %h, %s[%i, %j] rows(%m) columns(%n) : tensor<8x512xf16, #tile.warp_rows<8, 8>> to memref<?x?xf16, strided<[?, 1]>>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] rows(%{{.*}}) : tensor<8xf32, #tile.warp_rows<8, 1>>
  tile.store %r, %l[%i] rows(%m) : tensor<8xf32, #tile.warp_rows<8, 1>> to memref<?xf32, strided<[?]>>
  return
}

// CHECK-LABEL: func @packed(
func.func @packed(%k: !memory, %i: index, %x: tensor<64x64xf16, #tile.fragment<4>>, %l: tensor<64xf32, #tile.rows<4>>,
                  %lse: memref<?x?xf32, strided<[1, ?]>>, %view: !tile.smem<64x64xf16, swizzle = 128>) {
  %ring = tile.ring : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
  // CHECK: tile.fetch %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(3) rows(%{{.*}}) to_end : memref<
  %t = tile.fetch %k[%i, %i, %i] packed(3) rows(%i) to_end : !memory to !tile.smem<64x64xf16, swizzle = 128>
  // CHECK: tile.copy_async %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(4) to %{{.*}} : memref<
  tile.copy_async %k[%i, %i, %i] packed(4) to %ring[%i] : !memory to !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
  // CHECK: tile.copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(3) rows(%{{.*}}) to %{{.*}} : memref<
  tile.copy %k[%i, %i, %i] packed(3) rows(%i) to %view : !memory to !tile.smem<64x64xf16, swizzle = 128>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(3) rows(%{{.*}}) : tensor<64x64xf16
  tile.store %x, %k[%i, %i, %i] packed(3) rows(%i) : tensor<64x64xf16, #tile.fragment<4>> to !memory
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] packed(3) : tensor<64xf32, #tile.rows<4>> to memref<?x?xf32, strided<[1, ?]>>
  tile.store %l, %lse[%i, %i] packed(3) : tensor<64xf32, #tile.rows<4>> to memref<?x?xf32, strided<[1, ?]>>
  return
}

// CHECK-LABEL: func @diagonals(
func.func @diagonals(%t: !tile.smem<128x64xbf16, swizzle = 128>, %sums: memref<?x?x192xf32>, %i: index) {
  // CHECK: tile.store_diagonals %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : <128x64xbf16, swizzle = 128> to memref<?x?x192xf32>
  tile.store_diagonals %t, %sums[%i, %i] : !tile.smem<128x64xbf16, swizzle = 128> to memref<?x?x192xf32>
  return
}

// CHECK-LABEL: func @ranks(
func.func @ranks(%t: !tile.smem<64x32xf32, swizzle = 128>, %sums: memref<?x?x32xf32>, %counts: memref<?xi32>, %i: index) {
  // CHECK: tile.add_in_order %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] rank(%{{.*}}) of %{{.*}}[%{{.*}}] : <64x32xf32, swizzle = 128> to memref<?x?x32xf32>, memref<?xi32>
  tile.add_in_order %t, %sums[%i, %i] rank(%i) of %counts[%i]
      : !tile.smem<64x32xf32, swizzle = 128> to memref<?x?x32xf32>, memref<?xi32>
  // CHECK: tile.await_rank %{{.*}} of %{{.*}}[%{{.*}}] : memref<?xi32>
  tile.await_rank %i of %counts[%i] : memref<?xi32>
  // CHECK: tile.finish_rank %{{.*}} of %{{.*}}[%{{.*}}] : memref<?xi32>
  tile.finish_rank %i of %counts[%i] : memref<?xi32>
  return
}

// CHECK-LABEL: func @claims(
func.func @claims(%counts: memref<?x?xi32>, %tiles: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %n = %c0 to %tiles step %c1 {
    // CHECK: tile.claim %{{.*}} of %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xi32>
    %number = tile.claim %n of %counts[%c0, %c1] : memref<?x?xi32>
  }
  scf.for %n = %c0 to %tiles step %c1 {
    // CHECK:      tile.claim %{{.*}} of %{{.*}}[%{{.*}}, %{{.*}}] shares {
    // CHECK-NEXT: ^bb0(%[[N:.*]]: index):
    // CHECK-NEXT:   tile.share_scalars %[[N]], %{{.*}} : index, index
    // CHECK-NEXT: } : memref<?x?xi32> -> index, index
    %number, %shared:2 = tile.claim %n of %counts[%c0, %c1] shares {
    ^bb0(%i: index):
      tile.share_scalars %i, %c1 : index, index
    } : memref<?x?xi32> -> index, index
  }
  scf.for %n = %c0 to %tiles step %c1 {
    %number, %shared = tile.claim %n of %counts[%c0, %c1] shares {
    ^bb0(%i: index):
      %none = arith.cmpi eq, %i, %c1 : index
      // CHECK: tile.share_scalars %{{.*}} unless %{{.*}} : index
      tile.share_scalars %i unless %none : index
    } : memref<?x?xi32> -> index
  }
  // CHECK: tile.count_up %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x?xi32>
  %count = tile.count_up %counts[%c0, %c1] : memref<?x?xi32>
  return
}

// CHECK-LABEL: func @dependencies(
func.func @dependencies() {
  // CHECK-NEXT: tile.await_dependencies
  tile.await_dependencies
  // CHECK-NEXT: tile.launch_dependents
  tile.launch_dependents
  return
}
