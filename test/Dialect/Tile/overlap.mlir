// The second product of an iteration runs while the next one computes from its
// first. Also with what tile-verify-async demands of the result.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-overlap,tile-pipeline,tile-verify-async)))" | FileCheck %s

!tile = !tile.smem<64x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
!scores = tensor<64x64xf32, #tile.fragment<4>>
!probabilities = tensor<64x64xf16, #tile.fragment<4>>

!memory = memref<?x64xf16, strided<[?, 1]>>

gpu.module @m {
  // CHECK-LABEL: gpu.func @two_products(
  // A loop of no iteration has no first one.
  // CHECK:       %[[ENTERED:.*]] = arith.cmpi slt, %c0, %[[N:.*]] : index
  // CHECK-NEXT:  scf.if %[[ENTERED]]
  // The first iteration, up to its weights.
  // CHECK-NEXT:    %[[K0:[^ ]*]] = tile.ring.wait %[[KR:[0-9]+]][%c0]
  // CHECK-NEXT:    tile.mma_async %{{.*}}, %[[K0]] transpose_b
  // CHECK:         tile.ring.release %[[KR]][%c0]
  // CHECK:         math.exp2
  // CHECK-NOT:     tile.mma_async
  // CHECK:         %[[P0:.*]] = arith.truncf
  // CHECK:         scf.for %{{.*}} = %{{.*}} to %[[N]] step %c1 iter_args(%[[T:[^ ]*]] = %{{.*}}) ->
  // The other ones: scores, then the values of the iteration before.
  // CHECK-NEXT:      %[[K:.*]] = tile.ring.wait %[[KR]][%[[T]]]
  // CHECK-NEXT:      %[[SP:.*]] = tile.mma_async %{{.*}}, %[[K]] transpose_b
  // CHECK-NEXT:      %[[V:.*]] = tile.ring.wait %[[VR:[0-9]+]][%[[BEFORE:arg[0-9]+]]]
  // CHECK-NEXT:      %[[OP:.*]] = tile.mma_async %[[P:.*]], %[[V]] add
  // CHECK-NEXT:      %[[S:.*]] = tile.mma_wait %[[SP]] younger(%[[OP]]
  // CHECK-NOT:       math.exp2
  // CHECK:           %[[O:.*]] = tile.mma_wait %[[OP]] :
  // CHECK-NEXT:      tile.ring.release %[[VR]][%[[BEFORE]]]
  // What changes the registers of the product in flight comes behind it, and the
  // exponentials stand beside that.
  // CHECK:           math.exp2
  // CHECK:           arith.mulf %[[O]]
  // CHECK:           arith.truncf
  // CHECK:           scf.yield
  // The last product.
  // CHECK:         }
  // CHECK-NEXT:    %[[LAST:.*]] = tile.ring.wait %[[VR]]
  // CHECK-NEXT:    %[[LP:.*]] = tile.mma_async %{{.*}}, %[[LAST]] add
  // CHECK-NEXT:    %[[LO:.*]] = tile.mma_wait %[[LP]] :
  // CHECK-NEXT:    tile.ring.release %[[VR]]
  // CHECK-NEXT:    scf.yield
  // CHECK:       } else {
  // CHECK-NEXT:    scf.yield
  gpu.func @two_products(%q: !tile, %init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %half = arith.constant dense<0.5> : !scores
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %e = math.exp2 %s : !scores
      %scaled = arith.mulf %acc, %half : !scores
      %p = arith.truncf %e : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %scaled warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %r = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %r, %next : !scores, index
    }
    gpu.return
  }

  // Keys that are the values, too, in a ring of one stage: the next keys would wait for the release of these.
  // CHECK-LABEL: gpu.func @one_stage(
  // CHECK-NOT:     tile.ring.peek
  // CHECK:         scf.for
  // CHECK-NEXT:      tile.ring.wait
  // CHECK-NEXT:      tile.mma_async %{{.*}} transpose_b
  // CHECK:           tile.mma_async %{{.*}} add
  // CHECK:           tile.ring.release
  // CHECK:           scf.yield
  gpu.func @one_stage(%q: !tile, %init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = tile.ring : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %r[%t] : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %e = math.exp2 %s : !scores
      %p = arith.truncf %e : !scores to !probabilities
      %op = tile.mma_async %p, %kt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %sum = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %r[%t] : !tile.ring<1, !tile.smem<64x64xf16, swizzle = 128>>
      %next = arith.addi %t, %c1 : index
      scf.yield %sum, %next : !scores, index
    }
    gpu.return
  }

  // A loop whose second product is inside of a branch is left as it is.
  // Two steps an iteration: the last product of the first step changes what that of
  // the second one adds to, so it follows the product of the iteration before, and
  // its tile is given back behind it.

  // CHECK-LABEL: gpu.func @two_steps(
  // CHECK:         scf.for %{{.*}} iter_args(%[[T:[^ ]*]] = %{{.*}}) ->
  // CHECK:           tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:      %[[VB:.*]] = tile.ring.wait %[[SECOND:[0-9]+]][
  // CHECK-NEXT:      %[[BEFORE:.*]] = tile.mma_async %{{.*}}, %[[VB]] add
  // CHECK:           %[[V:.*]] = tile.ring.wait %[[FIRST:[0-9]+]][%[[T]]]
  // CHECK-NOT:       tile.ring.release
  // CHECK:           tile.mma_wait %[[BEFORE]] :
  // CHECK-NEXT:      tile.ring.release %[[SECOND]][
  // CHECK:           tile.mma_async %{{.*}}, %[[V]] add
  // CHECK-NEXT:      tile.mma_wait
  // CHECK-NEXT:      tile.ring.release %[[FIRST]][%[[T]]]
  // CHECK:           scf.yield
  gpu.func @two_steps(%q: !tile, %init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kr = tile.ring : !ring
    %first = tile.ring : !ring
    %second = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %first[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %half = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %first[%t] : !ring
      %wt = tile.ring.wait %second[%t] : !ring
      %wp = tile.mma_async %p, %wt add %half warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %r = tile.mma_wait %wp : !tile.pending<!scores>
      tile.ring.release %second[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %r, %next : !scores, index
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @one_product(
  // CHECK-NOT:   arith.cmpi
  // CHECK:       scf.for
  // CHECK:       scf.if
  gpu.func @one_product(%q: !tile, %init: !scores, %n: index, %c: i1) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %o = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (!scores) {
      %sp = tile.mma_async %q, %q transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      %r = scf.if %c -> !scores {
        %op = tile.mma_async %q, %q add %s transpose_b warpgroup : !tile, !tile, !scores -> !tile.pending<!scores>
        %x = tile.mma_wait %op : !tile.pending<!scores>
        scf.yield %x : !scores
      } else {
        scf.yield %s : !scores
      }
      scf.yield %r : !scores
    }
    gpu.return
  }

  // Loops behind one that is always entered go on with its pipeline: there is one
  // beginning and one end. Who loads from the tile of the second product does so
  // before it, and waits for it in the branch that loads.
  // CHECK-LABEL: gpu.func @chain(
  // CHECK:       %[[ENTERED:.*]] = arith.cmpi slt
  // CHECK-NOT:   arith.cmpi
  // CHECK:       scf.if %[[ENTERED]]
  // CHECK-NOT:   arith.cmpi
  // CHECK:         tile.mma_async %{{.*}} transpose_b
  // CHECK:         arith.truncf
  // CHECK:         tile.ring.is_finite %[[VR:[0-9]+]][%c0]
  // CHECK:         } else {
  // CHECK-NEXT:      %[[V0:.*]] = tile.ring.peek %[[VR]][%c0]
  // CHECK-NEXT:      tile.clear %[[V0]]
  // CHECK:         %[[LED:.*]]:4 = scf.for
  // CHECK:           tile.mma_async %{{.*}} transpose_b
  // CHECK:           tile.ring.wait %[[VR]]
  // CHECK:           tile.ring.peek %[[VR]]
  // CHECK:           scf.yield
  // CHECK:         scf.for {{.*}}iter_args(%{{[^ ]*}} = %[[LED]]#0,
  // CHECK-NEXT:      tile.ring.wait
  // CHECK-NEXT:      tile.mma_async %{{.*}} transpose_b
  // CHECK-NEXT:      tile.ring.wait %[[VR]]
  // CHECK-NEXT:      tile.mma_async
  // CHECK-NOT:       tile.ring.peek
  // CHECK:           scf.yield
  // CHECK:         tile.ring.wait %[[VR]]
  // CHECK-NEXT:    tile.mma_async
  // CHECK:       } else {
  gpu.func @chain(%q: !tile, %k: !memory, %init: !scores, %n: index, %m: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kr = tile.ring : !ring
    %vr = tile.ring checked : !ring
    %entered = arith.cmpi slt, %m, %n : index
    tile.warp_specialize @consumer(warps = 4, registers = 232) {
      %o3:2 = scf.if %entered -> (!scores, index) {
        %o:2 = scf.for %i = %m to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
          %kt = tile.ring.wait %kr[%t] : !ring
          %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
          %s = tile.mma_wait %sp : !tile.pending<!scores>
          tile.ring.release %kr[%t] : !ring
          %p = arith.truncf %s : !scores to !probabilities
          %vt = tile.ring.wait %vr[%t] : !ring
          %finite = tile.ring.is_finite %vr[%t] : !ring
          %care = scf.if %finite -> !scores {
            scf.yield %acc : !scores
          } else {
            tile.clear %vt warps(4) : !tile
            scf.yield %acc : !scores
          }
          %op = tile.mma_async %p, %vt add %care warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
          %r = tile.mma_wait %op : !tile.pending<!scores>
          tile.ring.release %vr[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %r, %next : !scores, index
        }
        %o2:2 = scf.for %i = %c0 to %m step %c1 iter_args(%acc = %o#0, %t = %o#1) -> (!scores, index) {
          %kt = tile.ring.wait %kr[%t] : !ring
          %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
          %s = tile.mma_wait %sp : !tile.pending<!scores>
          tile.ring.release %kr[%t] : !ring
          %p = arith.truncf %s : !scores to !probabilities
          %vt = tile.ring.wait %vr[%t] : !ring
          %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
          %r = tile.mma_wait %op : !tile.pending<!scores>
          tile.ring.release %vr[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %r, %next : !scores, index
        }
        scf.yield %o2#0, %o2#1 : !scores, index
      } else {
        scf.yield %init, %c0 : !scores, index
      }
    } @producer(warps = 1, registers = 40) {
      scf.if %entered {
        %a = scf.for %i = %m to %n step %c1 iter_args(%t = %c0) -> index {
          tile.ring.acquire %kr[%t] : !ring
          tile.copy_async %k[%i] to %kr[%t] : !memory to !ring
          tile.ring.acquire %vr[%t] : !ring
          tile.copy_async %k[%i] to %vr[%t] : !memory to !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
        %b = scf.for %i = %c0 to %m step %c1 iter_args(%t = %a) -> index {
          tile.ring.acquire %kr[%t] : !ring
          tile.copy_async %k[%i] to %kr[%t] : !memory to !ring
          tile.ring.acquire %vr[%t] : !ring
          tile.copy_async %k[%i] to %vr[%t] : !memory to !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
      }
    } @nonfinite_check(warps = 3, registers = 40) {
      scf.if %entered {
        %a = scf.for %i = %m to %n step %c1 iter_args(%t = %c0) -> index {
          tile.ring.check_finite %vr[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
        %b = scf.for %i = %c0 to %m step %c1 iter_args(%t = %a) -> index {
          tile.ring.check_finite %vr[%t] : !ring
          %next = arith.addi %t, %c1 : index
          scf.yield %next : index
        }
      }
    }
    gpu.return
  }

  // What all first products read is given back before the last second one, and also
  // where there is no product.
  // CHECK-LABEL: gpu.func @first_operand(
  // CHECK:       tile.ring.wait %[[QR:[0-9]+]]
  // CHECK:       scf.if
  // CHECK:         scf.for
  // CHECK:         }
  // CHECK-NEXT:    tile.ring.release %[[QR]]
  // CHECK-NEXT:    tile.ring.wait
  // CHECK-NEXT:    tile.mma_async
  // CHECK:       } else {
  // CHECK-NEXT:    tile.ring.release %[[QR]]
  // CHECK-NEXT:    scf.yield
  // CHECK-NEXT:  }
  // CHECK-NEXT:  gpu.return
  gpu.func @first_operand(%init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %qr = tile.ring : !ring
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %q = tile.ring.wait %qr[%c0] : !ring
    %o:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %r = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %r, %next : !scores, index
    }
    tile.ring.release %qr[%c0] : !ring
    gpu.return
  }

  // Nothing says that the second loop is empty where the first is: each has a
  // pipeline of its own. A choice by other bounds is no guard.
  // CHECK-LABEL: gpu.func @unguarded(
  // CHECK:       scf.if %{{.*}} ->
  // CHECK:         %[[ENTERED:.*]] = arith.cmpi slt, %[[LO:.*]], %[[MID:.*]] : index
  // CHECK-NEXT:    %[[ONE:.*]]:2 = scf.if %[[ENTERED]]
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield
  // CHECK:         %[[ALSO:.*]] = arith.cmpi slt, %[[MID]], %[[HI:.*]] : index
  // CHECK-NEXT:    scf.if %[[ALSO]]
  // CHECK:         } else {
  // CHECK-NEXT:      scf.yield %[[ONE]]#0, %[[ONE]]#1
  gpu.func @unguarded(%q: !tile, %init: !scores, %lo: index, %mid: index, %hi: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %any = arith.cmpi slt, %lo, %hi : index
    %r:2 = scf.if %any -> (!scores, index) {
      %o:2 = scf.for %i = %lo to %mid step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
        %kt = tile.ring.wait %kr[%t] : !ring
        %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
        %s = tile.mma_wait %sp : !tile.pending<!scores>
        tile.ring.release %kr[%t] : !ring
        %p = arith.truncf %s : !scores to !probabilities
        %vt = tile.ring.wait %vr[%t] : !ring
        %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
        %x = tile.mma_wait %op : !tile.pending<!scores>
        tile.ring.release %vr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %x, %next : !scores, index
      }
      %o2:2 = scf.for %i = %mid to %hi step %c1 iter_args(%acc = %o#0, %t = %o#1) -> (!scores, index) {
        %kt = tile.ring.wait %kr[%t] : !ring
        %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
        %s = tile.mma_wait %sp : !tile.pending<!scores>
        tile.ring.release %kr[%t] : !ring
        %p = arith.truncf %s : !scores to !probabilities
        %vt = tile.ring.wait %vr[%t] : !ring
        %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
        %x = tile.mma_wait %op : !tile.pending<!scores>
        tile.ring.release %vr[%t] : !ring
        %next = arith.addi %t, %c1 : index
        scf.yield %x, %next : !scores, index
      }
      scf.yield %o2#0, %o2#1 : !scores, index
    } else {
      scf.yield %init, %c0 : !scores, index
    }
    gpu.return
  }

  // Nor does a loop need a guard whose constant bounds say that it is entered.
  // CHECK-LABEL: gpu.func @constant_bounds(
  // CHECK-NOT:   scf.if
  // CHECK:       gpu.return
  gpu.func @constant_bounds(%q: !tile, %init: !scores, %hi: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %o:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %x = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %x, %next : !scores, index
    }
    %o2:2 = scf.for %i = %c4 to %hi step %c1 iter_args(%acc = %o#0, %t = %o#1) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %x = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %x, %next : !scores, index
    }
    gpu.return
  }

  // The same of bounds at a constant distance.
  // CHECK-LABEL: gpu.func @constant_distance(
  // CHECK-NOT:   scf.if
  // CHECK:       gpu.return
  gpu.func @constant_distance(%q: !tile, %init: !scores, %lo: index, %hi: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %next_tile = arith.addi %lo, %c1 overflow<nsw> : index
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %o:2 = scf.for %i = %lo to %next_tile step %c1 iter_args(%acc = %init, %t = %c0) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %x = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %x, %next : !scores, index
    }
    %o2:2 = scf.for %i = %next_tile to %hi step %c1 iter_args(%acc = %o#0, %t = %o#1) -> (!scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %x = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %x, %next : !scores, index
    }
    gpu.return
  }

  // A product of what the same threads put into a ring does not lead: it stays
  // behind the put, here also behind the deferred product of the same rounding.
  // CHECK-LABEL: gpu.func @put_in_between(
  // CHECK:       tile.ring.wait %[[KR:[0-9]+]][
  // CHECK-NOT:   tile.ring.wait %[[PR:[0-9]+]][
  // CHECK:       tile.ring.put %{{.*}} to %[[PR:[0-9]+]][
  // CHECK:       tile.ring.wait %[[PR]][
  // CHECK:       scf.for
  // CHECK:         tile.mma_async %{{.*}} transpose_b
  // CHECK:         tile.mma_async %{{.*}} add
  // CHECK:         tile.ring.put %{{.*}} to %[[PR]][%[[T:[^ ]*]]]
  // CHECK:         tile.ring.wait %[[PR]][%[[T]]]
  // CHECK:         tile.mma_async %{{.*}} transpose_a
  gpu.func @put_in_between(%q: !tile, %init: !scores, %n: index) kernel attributes {flash.schedule = #flash.schedule<features = overlap>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %pr = tile.ring : !ring
    %o:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %other = %init, %t = %c0) -> (!scores, !scores, index) {
      %kt = tile.ring.wait %kr[%t] : !ring
      %sp = tile.mma_async %q, %kt transpose_b warpgroup : !tile, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %sp : !tile.pending<!scores>
      tile.ring.release %kr[%t] : !ring
      %p = arith.truncf %s : !scores to !probabilities
      tile.ring.acquire %pr[%t] : !ring
      tile.ring.put %p to %pr[%t] : !probabilities to !ring
      %pt = tile.ring.wait %pr[%t] : !ring
      %dp = tile.mma_async %pt, %q transpose_a warpgroup : !tile, !tile -> !tile.pending<!scores>
      %d = tile.mma_wait %dp : !tile.pending<!scores>
      tile.ring.release %pr[%t] : !ring
      %sum = arith.addf %other, %d : !scores
      %vt = tile.ring.wait %vr[%t] : !ring
      %op = tile.mma_async %p, %vt add %acc warpgroup : !probabilities, !tile, !scores -> !tile.pending<!scores>
      %x = tile.mma_wait %op : !tile.pending<!scores>
      tile.ring.release %vr[%t] : !ring
      %next = arith.addi %t, %c1 : index
      scf.yield %x, %sum, %next : !scores, !scores, index
    }
    gpu.return
  }
}
