// The program is sliced into the consumers' and the producer's part.
// RUN: flash-opt %s --split-input-file --tile-specialize-warps | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!query = !tile.smem<128x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!queries = !tile.ring<1, !tile.smem<128x64xf16, swizzle = 128>>
!scores = tensor<128x64xf32, #tile.fragment<8>>

// The launch has four warps more than the products.
// CHECK-LABEL: func.func @launch
// CHECK:       %[[THREADS:.*]] = arith.constant 384 : index
// CHECK:       gpu.launch_func @m::@kernel {{.*}} threads in (%[[THREADS]], %c1, %c1)

// What every thread needs stays outside; a register tile is the consumers'.
// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:  known_block_size = array<i32: 384, 1, 1>
// CHECK:         %[[Q:.*]] = tile.ring : <1
// CHECK:         %[[R:.*]] = tile.ring checked : <2
// CHECK:         tile.warp_specialize @consumer(warps = 8, registers = 240) {
// CHECK-NOT:       {{acquire|copy_async}}
// CHECK:           arith.constant dense
// CHECK:           tile.ring.wait %[[Q]]
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %c0) -> (tensor<128x64xf32, #tile.fragment<8>>, index) {
// CHECK-NEXT:        tile.ring.wait %[[R]]
// CHECK-NEXT:        tile.mma_async %{{.*}}, %{{.*}} add %{{.*}} transpose_b warpgroup
// CHECK:             tile.ring.is_finite %[[R]]
// CHECK:             tile.ring.release %[[R]]
// CHECK:           tile.ring.release %[[Q]]
// CHECK:           tile.store
// CHECK:         } @producer(warps = 1, registers = 24) {
// CHECK-NOT:       {{wait|release|mma|store|tensor}}
// CHECK:           tile.ring.acquire %[[Q]][%c0]
// CHECK-NEXT:      tile.copy_async %{{.*}} to %[[Q]][%c0]
// The tile that the loop carries is left out.
// CHECK:           scf.for {{.*}} iter_args(%[[T:.*]] = %c0) -> (index) {
// CHECK-NEXT:        tile.ring.acquire %[[R]][%[[T]]]
// CHECK-NEXT:        tile.copy_async %{{.*}} to %[[R]][%[[T]]]
// CHECK-NEXT:        %[[NEXT:.*]] = arith.addi %[[T]], %c1
// CHECK-NEXT:        scf.yield %[[NEXT]] : index
// CHECK-NEXT:      }
// Of a branch the producer has the copies only.
// CHECK-NEXT:      scf.if %{{.*}} {
// CHECK-NEXT:        tile.ring.acquire
// CHECK-NEXT:        tile.copy_async
// CHECK-NEXT:      }
// The non-finite check has all steps of the ring, also the steps whose check nobody reads.
// CHECK-NEXT:    } @nonfinite_check(warps = 3, registers = 24) {
// CHECK-NOT:       {{acquire|copy_async|wait|release|mma|store|tensor}}
// CHECK:           scf.for {{.*}} iter_args(%[[U:.*]] = %c0) -> (index) {
// CHECK-NEXT:        tile.ring.check_finite %[[R]][%[[U]]] : <2
// CHECK:           scf.if %{{.*}} {
// CHECK-NEXT:        tile.ring.check_finite %[[R]][%{{.*}}] unchecked
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.return
module attributes {gpu.container_module} {
  func.func @launch(%m: !memory, %o: memref<?x64xf32>, %n: index, %c: i1) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @m::@kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%m : !memory, %o : memref<?x64xf32>, %n : index, %c : i1)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: !memory, %o: memref<?x64xf32>, %n: index, %c: i1) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant dense<0.0> : !scores
      %qr = tile.ring : !queries
      %r = tile.ring : !ring
      tile.ring.acquire %qr[%c0] : !queries
      tile.copy_async %m[%c0] to %qr[%c0] : !memory to !queries
      %q = tile.ring.wait %qr[%c0] : !queries
      %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %t = %c0) -> (!scores, index) {
        tile.ring.acquire %r[%t] : !ring
        tile.copy_async %m[%i] to %r[%t] : !memory to !ring
        %kt = tile.ring.wait %r[%t] : !ring
        %p = tile.mma_async %q, %kt add %acc transpose_b : !query, !tile, !scores -> !tile.pending<!scores>
        %d = tile.mma_wait %p : !tile.pending<!scores>
        %f = tile.is_finite %kt : !tile
        %e = arith.select %f, %d, %acc : !scores
        tile.ring.release %r[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %e, %next : !scores, index
      }
      scf.if %c {
        tile.ring.acquire %r[%s#1] : !ring
        tile.copy_async %m[%c0] to %r[%s#1] : !memory to !ring
        %kt = tile.ring.wait %r[%s#1] : !ring
        tile.ring.release %r[%s#1] : !ring
      }
      tile.ring.release %qr[%c0] : !queries
      tile.store %s#0, %o[%c0] : !scores to memref<?x64xf32>
      gpu.return
    }
  }
}

// -----

// What consumers need under a condition, the role checks under it: all of a tile, or
// that it is there.

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<128x64xf32, #tile.fragment<8>>
!memory = memref<?x64xf16, strided<[?, 1]>>

// CHECK-LABEL: gpu.func @asks(
// CHECK:         } @nonfinite_check(
// CHECK:           scf.for %[[I:.*]] = %c0 to
// CHECK-NEXT:        %[[ASKS:.*]] = arith.cmpi slt, %[[I]], %c1
// CHECK-NEXT:        scf.if %[[ASKS]] {
// CHECK-NEXT:          tile.ring.check_finite %[[R:.*]][%[[T:[^ ]*]]] : <2
// CHECK-NEXT:        } else {
// CHECK-NEXT:          tile.ring.check_finite %[[R]][%[[T]]] unchecked
gpu.module @m {
  gpu.func @asks(%m: !memory, %o: memref<?x64xf32>, %q: tensor<128x64xf16, #tile.fragment<8>>, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : !scores
    %r = tile.ring : !ring
    %s:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %t = %c0) -> (!scores, index) {
      %asks = arith.cmpi slt, %i, %c1 : index
      tile.ring.acquire %r[%t] : !ring
      tile.copy_async %m[%i] to %r[%t] : !memory to !ring
      %kt = tile.ring.wait %r[%t] : !ring
      %p = tile.mma_async %q, %kt add %acc : tensor<128x64xf16, #tile.fragment<8>>, !tile, !scores -> !tile.pending<!scores>
      %d = tile.mma_wait %p : !tile.pending<!scores>
      %f = scf.if %asks -> i1 {
        %finite = tile.is_finite %kt : !tile
        scf.yield %finite : i1
      } else {
        scf.yield %true : i1
      }
      %e = arith.select %f, %d, %acc : !scores
      tile.ring.release %r[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %e, %next : !scores, index
    }
    tile.store %s#0, %o[%c0] : !scores to memref<?x64xf32>
    gpu.return
  }
}

// -----

// The warps that copy do not count the steps of a ring that a branch of the others fills, in
// any of the loops around.
// CHECK-LABEL: gpu.func @branch(
// CHECK:         %[[R:.*]] = tile.ring : <1
// CHECK:         %{{.*}} = tile.ring : <1
// CHECK:         } @producer(
// CHECK:           scf.for {{.*}} iter_args(%[[T:.*]] = %c0, %[[U:.*]] = %c0{{.*}}) -> (index, index) {
// CHECK:             %[[ANY:.*]] = arith.constant 0 : index
// CHECK-NEXT:        %[[INNER:.*]]:2 = scf.for {{.*}} iter_args(%[[S:.*]] = %[[T]], %[[V:.*]] = %[[ANY]])
// CHECK-NEXT:          tile.ring.acquire %[[R]][%[[S]]]
// CHECK-NEXT:          tile.copy_async
// CHECK-NEXT:          %[[NEXT:.*]] = arith.addi %[[S]], %c1
// CHECK-NEXT:          scf.yield %[[NEXT]], %[[V]]
// CHECK:             scf.yield %[[INNER]]#0, %[[U]]
!memory = memref<?x64xf16, strided<[?, 1]>>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!half = tensor<64x64xf16, #tile.fragment<4>>
gpu.module @m {
  gpu.func @branch(%m: !memory, %o: memref<?x64xf32>, %n: index, %c: i1) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !scores
    %half = arith.constant dense<0.0> : !half
    %r = tile.ring : !ring
    %p = tile.ring : !ring
    %steps:2 = scf.for %block = %c0 to %n step %c1 iter_args(%t = %c0, %u = %c0) -> (index, index) {
      %s:3 = scf.for %i = %c0 to %block step %c1 iter_args(%acc = %zero, %count = %t, %put = %u) -> (!scores, index, index) {
        tile.ring.acquire %r[%count] : !ring
        tile.copy_async %m[%i] to %r[%count] : !memory to !ring
        %kt = tile.ring.wait %r[%count] : !ring
        %x:2 = scf.if %c -> (!scores, index) {
          tile.ring.acquire %p[%put] : !ring
          tile.ring.put %half to %p[%put] : !half to !ring
          %pt = tile.ring.wait %p[%put] : !ring
          %d = tile.mma_async %pt, %kt add %acc transpose_b : !smem, !smem, !scores -> !tile.pending<!scores>
          %e = tile.mma_wait %d : !tile.pending<!scores>
          tile.ring.release %p[%put] : !ring
          %more = arith.addi %put, %c1 : index
          scf.yield %e, %more : !scores, index
        } else {
          scf.yield %acc, %put : !scores, index
        }
        tile.ring.release %r[%count] : !ring
        %next = arith.addi %count, %c1 : index
        scf.yield %x#0, %next, %x#1 : !scores, index, index
      }
      tile.store %s#0, %o[%block] : !scores to memref<?x64xf32>
      scf.yield %s#1, %s#2 : index, index
    }
    gpu.return
  }
}

// -----

// The non-finite check does not count the steps of a ring whose tiles it does not
// check; the loop around carries the number for the others.
// CHECK-LABEL: gpu.func @counts(
// CHECK:         %[[R:.*]] = tile.ring : <2
// CHECK:         %[[V:.*]] = tile.ring checked : <2
// CHECK:         } @nonfinite_check(warps = 3, registers = {{[0-9]+}}) {
// CHECK:           scf.for {{.*}} iter_args(%[[T:.*]] = %c0{{.*}}, %[[U:.*]] = %c0) -> (index, index) {
// CHECK-NEXT:        tile.ring.check_finite %[[V]][%[[U]]]
// CHECK-NEXT:        %[[LAST:.*]] = arith.addi %[[U]], %c1
// CHECK-NEXT:        scf.yield %[[T]], %[[LAST]] : index, index
// CHECK-NEXT:      }
// CHECK-NEXT:    }
!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
gpu.module @m {
  gpu.func @counts(%m: !memory, %o: memref<?x64xf32>, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !scores
    %r = tile.ring : !ring
    %v = tile.ring : !ring
    %steps:2 = scf.for %block = %c0 to %n step %c1 iter_args(%t = %c0, %u = %c0) -> (index, index) {
      %s:2 = scf.for %i = %c0 to %block step %c1 iter_args(%acc = %zero, %count = %t) -> (!scores, index) {
        tile.ring.acquire %r[%count] : !ring
        tile.copy_async %m[%i] to %r[%count] : !memory to !ring
        %kt = tile.ring.wait %r[%count] : !ring
        %p = tile.mma_async %kt, %kt add %acc transpose_b : !tile, !tile, !scores -> !tile.pending<!scores>
        %d = tile.mma_wait %p : !tile.pending<!scores>
        tile.ring.release %r[%count] : !ring
        %next = arith.addi %count, %c1 : index
        scf.yield %d, %next : !scores, index
      }
      tile.ring.acquire %v[%u] : !ring
      tile.copy_async %m[%block] to %v[%u] : !memory to !ring
      %vt = tile.ring.wait %v[%u] : !ring
      %f = tile.is_finite %vt : !tile
      %e = arith.select %f, %s#0, %zero : !scores
      tile.ring.release %v[%u] : !ring
      tile.store %e, %o[%block] : !scores to memref<?x64xf32>
      %last = arith.addi %u, %c1 : index
      scf.yield %s#1, %last : index, index
    }
    gpu.return
  }
}

// -----

// A producer that goes through a list in memory has registers for it, which
// consumers leave to it.
// CHECK-LABEL: gpu.func @list
// CHECK:         tile.warp_specialize @consumer(warps = 8, registers = 224)
// CHECK:         } @producer(warps = 1, registers = 56)
// CHECK:           scf.for %[[PLACE:.*]] =
// CHECK-NEXT:        %[[NUMBER:.*]] = memref.load %{{.*}}[%[[PLACE]]]
!tile = !tile.smem<64x64xf16, swizzle = 128>
!memory = memref<?x64xf16>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<128x64xf32, #tile.fragment<8>>
gpu.module @m {
  gpu.func @list(%m: !memory, %numbers: memref<?xi32>, %q: tensor<128x64xf16, #tile.fragment<8>>, %o: memref<?x64xf32>, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !scores
    %r = tile.ring : !ring
    %s = scf.for %place = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!scores) {
      %number = memref.load %numbers[%place] : memref<?xi32>
      %i = arith.index_cast %number : i32 to index
      tile.ring.acquire %r[%place] : !ring
      tile.copy_async %m[%i] to %r[%place] : !memory to !ring
      %kt = tile.ring.wait %r[%place] : !ring
      %p = tile.mma_async %q, %kt add %acc transpose_b : tensor<128x64xf16, #tile.fragment<8>>, !tile, !scores -> !tile.pending<!scores>
      %d = tile.mma_wait %p : !tile.pending<!scores>
      tile.ring.release %r[%place] : !ring
      scf.yield %d : !scores
    }
    tile.store %s, %o[%c0] : !scores to memref<?x64xf32>
    gpu.return
  }
}

// -----

// Without the attribute nothing changes.
// CHECK-LABEL: gpu.func @other
// CHECK-NOT:   warp_specialize
gpu.module @m {
  gpu.func @other(%q: !tile.smem<64x64xf16, swizzle = 128>) kernel {
    %p = tile.mma_async %q, %q transpose_b : !tile.smem<64x64xf16, swizzle = 128>, !tile.smem<64x64xf16, swizzle = 128> -> !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    %d = tile.mma_wait %p : !tile.pending<tensor<64x64xf32, #tile.fragment<4>>>
    gpu.return
  }
}

// -----

// Where a mask leaves no key there are no products, and no roles either.
// CHECK-LABEL: gpu.func @nothing
// CHECK-NOT:   warp_specialize
gpu.module @m {
  gpu.func @nothing(%o: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : tensor<64xf32, #tile.rows<4>>
    tile.store %zero, %o[%c0] : tensor<64xf32, #tile.rows<4>> to memref<?xf32>
    gpu.return
  }
}

// -----

// Tiles that are to be finite are copied by the producer, and made so by the warps of
// the check. Consumers wait for them as for others.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>

// CHECK-LABEL: gpu.func @finite(
// CHECK:         %[[R:.*]] = tile.ring finite : <1
// CHECK:         @consumer
// CHECK:           %[[T:.*]] = tile.ring.wait %[[R]][%c0]
// CHECK-NEXT:      tile.mma_async %[[T]], %[[T]]
// CHECK:           tile.ring.release %[[R]]
// CHECK:         } @producer
// CHECK:           tile.ring.acquire %[[R]]
// CHECK-NEXT:      tile.copy_async %{{.*}} to %[[R]]
// CHECK:         } @nonfinite_check(warps = 3, registers = {{[0-9]+}}) {
// CHECK-NEXT:      tile.ring.make_finite %[[R]][%c0]
// CHECK-NEXT:    }
gpu.module @m {
  gpu.func @finite(%m: !memory) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps>} {
    %c0 = arith.constant 0 : index
    %r = tile.ring : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %m[%c0] to %r[%c0] : !memory to !ring
    %t = tile.ring.wait %r[%c0] : !ring
    tile.make_finite %t : !tile
    %p = tile.mma_async %t, %t transpose_b : !tile, !tile -> !tile.pending<!scores>
    %d = tile.mma_wait %p : !tile.pending<!scores>
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}
