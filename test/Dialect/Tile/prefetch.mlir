// RUN: flash-opt %s --split-input-file \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-prefetch)))" | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// One stage: the values of a step are copied once its keys are there, the keys of
// the next step once its values are. The loops are one chain: behind the end of the
// first come the tiles of the second, of which only that one knows how many rows
// exist. What the copies before the loops need is computed there.

// CHECK-LABEL: gpu.func @one_stage(
// CHECK-SAME:  %[[K:.*]]: memref<{{.*}}>, %[[V:.*]]: memref<{{.*}}>, %[[N:.*]]: index
// CHECK-DAG:   %[[KR:.*]] = tile.ring {test.keys} :
// CHECK-DAG:   %[[VR:.*]] = tile.ring {test.values} :
// CHECK:       scf.if %true
// CHECK-NEXT:    tile.ring.acquire %[[KR]][%[[ZERO:.*]]] :
// CHECK-NEXT:    tile.copy_async %[[K]][%c0] rows(%c16{{.*}}) to %[[KR]][%[[ZERO]]]
// CHECK-NEXT:  }
// CHECK-NOT:   tile.copy_async
// CHECK:       scf.for %[[J:.*]] = %c0 to %c32 {{.*}} iter_args(%[[T:.*]] =
// CHECK-NEXT:    tile.ring.wait %[[KR]][%[[T]]]
// CHECK-NEXT:    tile.ring.acquire %[[VR]][%[[T]]]
// CHECK-NEXT:    tile.copy_async %[[V]][%[[J]]] to %[[VR]][%[[T]]]
// CHECK:         tile.ring.release %[[KR]][%[[T]]]
// CHECK-NEXT:    tile.ring.wait %[[VR]][%[[T]]]
// CHECK-DAG:     %[[J1:.*]] = arith.addi %[[J]],
// CHECK-DAG:     %[[T1:.*]] = arith.addi %[[T]],
// CHECK:         %[[HERE:.*]] = arith.cmpi slt, %[[J1]], %c32
// CHECK:         %[[LEFT:.*]] = arith.subi %[[N]], %[[J1]]
// CHECK:         %[[NEXT:.*]] = arith.cmpi slt, %[[J1]], %[[N]]
// CHECK:         %[[ROWS:.*]] = arith.select %[[HERE]], %c16{{.*}}, %[[LEFT]]
// CHECK:         %[[MORE:.*]] = arith.ori %[[HERE]], %[[NEXT]]
// CHECK-NEXT:    scf.if %[[MORE]] {
// CHECK-NEXT:      tile.ring.acquire %[[KR]][%[[T1]]]
// CHECK-NEXT:      tile.copy_async %[[K]][%[[J1]]] rows(%[[ROWS]]) to %[[KR]][%[[T1]]]
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.load
// CHECK-NEXT:    tile.ring.release %[[VR]][%[[T]]]
// CHECK-NOT:     tile.copy_async
// CHECK:         scf.yield
// CHECK:       scf.for
// CHECK-NEXT:    arith.subi
// CHECK-NEXT:    tile.ring.wait %[[KR]]
// CHECK:         tile.ring.acquire %[[VR]]
// CHECK:         tile.ring.wait %[[VR]]
// CHECK:         tile.ring.acquire %[[KR]]
// CHECK-NOT:     tile.copy_async %[[V]]
// CHECK:         scf.yield
gpu.module @m {
  gpu.func @one_stage(%k: !memory, %v: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring {test.keys} : !ring1
    %vr = tile.ring {test.values} : !ring1
    %a = scf.for %j = %c0 to %c32 step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      tile.ring.acquire %vr[%t] : !ring1
      tile.copy_async %v[%j] to %vr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %vt = tile.ring.wait %vr[%t] : !ring1
      %vtr = tile.load %vt : !tile to !registers
      tile.ring.release %vr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %c32 to %n step %c16 iter_args(%t = %a) -> (index) {
      %rows = arith.subi %n, %j : index
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] rows(%rows) to %kr[%t] : !memory to !ring1
      tile.ring.acquire %vr[%t] : !ring1
      tile.copy_async %v[%j] rows(%rows) to %vr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %vt = tile.ring.wait %vr[%t] : !ring1
      %vtr = tile.load %vt : !tile to !registers
      tile.ring.release %vr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Two stages: two steps of keys and one of values go ahead.

// CHECK-LABEL: gpu.func @two_stages(
// CHECK-SAME:  %[[K:.*]]: memref<{{.*}}>, %[[V:.*]]: memref<{{.*}}>, %[[N:.*]]: index
// CHECK:       scf.if
// CHECK:         tile.copy_async %[[K]][%c0]
// CHECK:       scf.if
// CHECK:         tile.copy_async %[[V]][%c0]
// CHECK:       %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %[[J1:c16.*]] :
// CHECK-NEXT:  scf.if %[[ANY]] {
// CHECK:         tile.copy_async %[[K]][%[[J1]]]
// CHECK-NOT:   tile.copy_async
// CHECK:       scf.for %[[J:.*]] = {{.*}} iter_args(%[[T:.*]] =
// CHECK-NEXT:    %[[KT:.*]] = tile.ring.wait %[[KR:.*]][%[[T]]]
// CHECK:         %[[T1:.*]] = arith.addi %[[T]], %c1
// CHECK:         scf.if
// CHECK-NEXT:      tile.ring.acquire %[[VR:.*]][%[[T1]]]
// CHECK-NEXT:      tile.copy_async %[[V]]
// CHECK:         tile.load %[[KT]]
// CHECK:         tile.ring.release %[[KR]][%[[T]]]
// CHECK-NEXT:    %[[VT:.*]] = tile.ring.wait %[[VR]][%[[T]]]
// CHECK:         %[[T2:.*]] = arith.addi %[[T]], %c2
// CHECK:         scf.if
// CHECK-NEXT:      tile.ring.acquire %[[KR]][%[[T2]]]
// CHECK-NEXT:      tile.copy_async %[[K]]
// CHECK:         tile.load %[[VT]]
// CHECK-NOT:     tile.copy_async
// CHECK:         scf.yield
gpu.module @m {
  gpu.func @two_stages(%k: !memory, %v: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring : !ring2
    %vr = tile.ring : !ring2
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring2
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring2
      tile.ring.acquire %vr[%t] : !ring2
      tile.copy_async %v[%j] to %vr[%t] : !memory to !ring2
      %kt = tile.ring.wait %kr[%t] : !ring2
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring2
      %vt = tile.ring.wait %vr[%t] : !ring2
      %vtr = tile.load %vt : !tile to !registers
      tile.ring.release %vr[%t] : !ring2
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A ring alone is filled again behind its release.

// CHECK-LABEL: gpu.func @alone(
// CHECK:       scf.if
// CHECK:         tile.copy_async
// CHECK:       scf.for
// CHECK-NEXT:    tile.ring.wait
// CHECK-NEXT:    tile.load
// CHECK-NEXT:    tile.ring.release
// CHECK:         scf.if
// CHECK-NEXT:      tile.ring.acquire
// CHECK-NEXT:      tile.copy_async
gpu.module @m {
  gpu.func @alone(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring : !ring1
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A loop may go on anywhere: behind the end of the first, the row is that of the
// second. Where the bounds are not known, how far it is from the first row that
// loop one no longer visits is computed before.

// CHECK-LABEL: gpu.func @gap(
// CHECK-SAME:  %[[K:.*]]: memref<{{.*}}>, %[[M:.*]]: index, %[[LO:.*]]: index, %[[N:.*]]: index
// CHECK:       %[[TRIPS:.*]] = arith.ceildivsi %[[M]], %c16
// CHECK:       %[[NOT_NEGATIVE:.*]] = arith.maxsi %[[TRIPS]], %c0
// CHECK:       %[[END:.*]] = arith.muli %[[NOT_NEGATIVE]], %c16
// CHECK:       %[[JUMP:.*]] = arith.subi %[[LO]], %[[END]]
// CHECK:       %[[ANY:.*]] = arith.cmpi sgt, %[[M]], %c0
// CHECK:       %[[OTHER:.*]] = arith.cmpi slt, %[[JUMP]], %[[N]]
// CHECK:       %[[ROW:.*]] = arith.select %[[ANY]], %c0, %[[JUMP]]
// CHECK:       arith.ori %[[ANY]], %[[OTHER]]
// CHECK:         tile.copy_async %[[K]][%[[ROW]]]
// CHECK:       scf.for %[[J:.*]] = %c0 to %[[M]]
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[J]], %c16
// CHECK:         %[[HERE:.*]] = arith.cmpi slt, %[[AHEAD]], %[[M]]
// CHECK:         %[[BEHIND:.*]] = arith.addi %[[AHEAD]], %[[JUMP]]
// CHECK:         %[[THERE:.*]] = arith.cmpi slt, %[[BEHIND]], %[[N]]
// CHECK:         %[[ROW:.*]] = arith.select %[[HERE]], %[[AHEAD]], %[[BEHIND]]
// CHECK:         arith.ori %[[HERE]], %[[THERE]]
// CHECK:           tile.copy_async %[[K]][%[[ROW]]]
// CHECK:       scf.for %[[J:.*]] = %[[LO]] to %[[N]]
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[J]], %c16
// CHECK:         arith.cmpi slt, %[[AHEAD]], %[[N]]
// CHECK:           tile.copy_async %[[K]][%[[AHEAD]]]
gpu.module @m {
  gpu.func @gap(%k: !memory, %m: index, %lo: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring1
    %a = scf.for %j = %c0 to %m step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %lo to %n step %c16 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Of loops that share a ring and are no chain, here since their steps differ, none
// copies ahead: each would copy the first steps.

// CHECK-LABEL: gpu.func @two_chains(
// CHECK-NOT:   scf.if
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @two_chains(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring : !ring1
    %a = scf.for %j = %c0 to %c16 step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %c16 to %n step %c32 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Rows that do not follow from the induction variable: nothing moves.

// CHECK-LABEL: gpu.func @unknown_rows(
// CHECK-NOT:   scf.if
// CHECK:       scf.for
// CHECK:         tile.ring.acquire
// CHECK-NEXT:    tile.copy_async
// CHECK-NEXT:    tile.ring.wait
gpu.module @m {
  gpu.func @unknown_rows(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring : !ring1
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      %x = arith.muli %t, %c16 : index
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%x] to %kr[%t] : !memory to !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A bound that takes a division is computed before the first copy, too.

// CHECK-LABEL: gpu.func @division(
// CHECK:       arith.divui
// CHECK:       %[[END:.*]] = arith.muli
// CHECK:       arith.cmpi sgt, %[[END]], %
// CHECK:       scf.if
// CHECK:       scf.for
// CHECK:       scf.for %{{.*}} to %[[END]]
gpu.module @m {
  gpu.func @division(%k: !memory, %n: index, %d: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %c32 step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %tiles = arith.divui %n, %d : index
    %end = arith.muli %tiles, %c16 : index
    %b = scf.for %j = %c32 to %end step %c16 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// How many rows exist may be known in its iteration only, from what the loop
// carries; where a later loop goes on may be known behind the first only. Nothing
// moves.

// CHECK-LABEL: gpu.func @carried_rows(
// CHECK-NOT:   scf.if
// CHECK-LABEL: gpu.func @late_bound(
// CHECK-NOT:   scf.if
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @carried_rows(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %a:2 = scf.for %j = %c0 to %n step %c16 iter_args(%rows = %c1, %t = %c0) -> (index, index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] rows(%rows) to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %more = arith.addi %rows, %c1 : index
      %t1 = arith.addi %t, %c1 : index
      scf.yield %more, %t1 : index, index
    }
    gpu.return
  }

  gpu.func @late_bound(%k: !memory, %bounds: memref<2xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %end = memref.load %bounds[%c0] : memref<2xindex>
    %b = scf.for %j = %n to %end step %c16 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x?x64xf16, strided<[?, ?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Loops over tiles of different heads are no chain.

// CHECK-LABEL: gpu.func @other_head(
// CHECK-NOT:   scf.if
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @other_head(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%c0, %j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %n to %n step %c16 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%c1, %j] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Each loop has positions of its own for copies: keys that are held during the values' wait are
// copied behind their own release.

// CHECK-LABEL: gpu.func @held(
// CHECK:       scf.for
// CHECK:         tile.ring.release %[[KR:[0-9]+]]
// CHECK-NEXT:    tile.ring.wait %[[VR:[0-9]+]]
// CHECK:           tile.ring.acquire %[[KR]]
// CHECK:       scf.for
// CHECK-NEXT:    tile.ring.wait %[[KR]]
// CHECK-NEXT:    tile.ring.acquire %[[VR]]
// CHECK:         tile.ring.wait %[[VR]]
// CHECK-NOT:     tile.ring.acquire
// CHECK:         tile.ring.release %[[KR]]
// CHECK:           tile.ring.acquire %[[KR]]
gpu.module @m {
  gpu.func @held(%k: !memory, %v: !memory, %m: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %vr = tile.ring : !ring
    %a = scf.for %j = %c0 to %m step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      tile.ring.acquire %vr[%t] : !ring
      tile.copy_async %v[%j] to %vr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %vt = tile.ring.wait %vr[%t] : !ring
      %vtr = tile.load %vt : !tile to !registers
      tile.ring.release %vr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %m to %n step %c16 iter_args(%t = %a) -> (index) {
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring
      tile.ring.acquire %vr[%t] : !ring
      tile.copy_async %v[%j] to %vr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %vt = tile.ring.wait %vr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      %vtr = tile.load %vt : !tile to !registers
      tile.ring.release %vr[%t] : !ring
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Rows that are read from a list: only where there is such a tile. Of the tiles
// of the first loop some rows may not exist.

// CHECK-LABEL: gpu.func @list(
// CHECK-SAME:    %[[K:.*]]: memref<?x64{{.*}}, %[[LIST:.*]]: memref<?xi32>, %[[N0:.*]]: index, %[[N1:.*]]: index
// CHECK:       %[[IN0:.*]] = arith.cmpi sgt, %[[N0]], %[[C0:.*]] : index
// CHECK:       %[[IN1:.*]] = arith.cmpi slt, %[[NEXT:.*]], %[[N1]]
// CHECK:       %[[P:.*]] = arith.select %[[IN0]], %[[C0]], %[[NEXT]]
// CHECK:       %[[IN:.*]] = arith.ori %[[IN0]], %[[IN1]]
// CHECK:       scf.if %[[IN]] {
// CHECK:         tile.ring.acquire
// CHECK:         %[[ENTRY:.*]] = memref.load %[[LIST]][%[[P]]]
// CHECK:         %[[TILE:.*]] = arith.index_cast %[[ENTRY]]
// CHECK:         %[[ROW:.*]] = arith.muli %[[TILE]]
// CHECK:         arith.subi %{{.*}}, %{{.*}}
// CHECK:         %[[ROWS:.*]] = arith.minsi
// CHECK:         %[[OR_ALL:.*]] = arith.select %[[IN0]], %[[ROWS]], %c16
// CHECK:         tile.copy_async %[[K]][%[[ROW]]] rows(%[[OR_ALL]]) to
// CHECK:       scf.for %[[J:.*]] = %c0 to %[[N0]]
// CHECK-NOT:     tile.copy_async
// CHECK:         tile.ring.wait
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[J]], %c1
// CHECK:         scf.if
// CHECK:           memref.load %[[LIST]]
// CHECK:           tile.copy_async
// CHECK:       scf.for %[[J:.*]] = %[[N0]] to %[[N1]]
// CHECK:         %[[AHEAD:.*]] = arith.addi %[[J]], %c1
// CHECK:         %[[IN:.*]] = arith.cmpi slt, %[[AHEAD]], %[[N1]]
// CHECK:         scf.if %[[IN]] {
// CHECK:           memref.load %[[LIST]][%[[AHEAD]]]
// CHECK-NOT:       rows
// CHECK:         }
gpu.module @m {
  gpu.func @list(%k: !memory, %list: memref<?xi32>, %n0: index, %n1: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %n = memref.dim %k, %c0 : !memory
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %n0 step %c1 iter_args(%t = %c0) -> (index) {
      %x = memref.load %list[%j] : memref<?xi32>
      %y = arith.index_cast %x : i32 to index
      %row = arith.muli %y, %c16 : index
      %left = arith.subi %n, %row : index
      %rows = arith.minsi %left, %c16 : index
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%row] rows(%rows) to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    %b = scf.for %j = %n0 to %n1 step %c1 iter_args(%t = %a) -> (index) {
      %x = memref.load %list[%j] : memref<?xi32>
      %y = arith.index_cast %x : i32 to index
      %row = arith.muli %y, %c16 : index
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%row] to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// How many rows exist may be read, too; not from memory that the kernel writes.

// CHECK-LABEL: gpu.func @counts(
// CHECK:       scf.for
// CHECK:         scf.if
// CHECK:           %[[N:.*]] = memref.load
// CHECK:           tile.copy_async %{{.*}} rows(%[[N]])
// CHECK-LABEL: gpu.func @written_counts(
// CHECK-NOT:   scf.if
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @counts(%k: !memory, %counts: memref<?xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      %rows = memref.load %counts[%j] : memref<?xindex>
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] rows(%rows) to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
  gpu.func @written_counts(%k: !memory, %counts: memref<?xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %kr = tile.ring : !ring
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      %rows = memref.load %counts[%j] : memref<?xindex>
      memref.store %c16, %counts[%j] : memref<?xindex>
      tile.ring.acquire %kr[%t] : !ring
      tile.copy_async %k[%j] rows(%rows) to %kr[%t] : !memory to !ring
      %kt = tile.ring.wait %kr[%t] : !ring
      %ktr = tile.load %kt : !tile to !registers
      tile.ring.release %kr[%t] : !ring
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>

// Copies behind the same wait are in the order of those before the loop, so that it is known
// which of them are younger than another.

// CHECK-LABEL: gpu.func @same_place(
// CHECK-SAME:  %[[Q:.*]]: memref<{{.*}}>, %[[K:.*]]: memref<{{.*}}>, %[[V:.*]]: memref
// CHECK:       tile.copy_async %[[Q]]
// CHECK:       tile.copy_async %[[K]]
// CHECK-NOT:   tile.copy_async
// CHECK:       scf.for
// CHECK:         tile.copy_async %[[V]]
// CHECK:         tile.copy_async %[[Q]]
// CHECK:         tile.copy_async %[[K]]
// CHECK-NOT:     tile.copy_async
gpu.module @m {
  gpu.func @same_place(%q: !memory, %k: !memory, %v: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %qr = tile.ring : !ring1
    %kr = tile.ring : !ring1
    %vr = tile.ring : !ring1
    %a = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %qr[%t] : !ring1
      tile.copy_async %q[%j] to %qr[%t] : !memory to !ring1
      tile.ring.acquire %kr[%t] : !ring1
      tile.copy_async %k[%j] to %kr[%t] : !memory to !ring1
      tile.ring.acquire %vr[%t] : !ring1
      tile.copy_async %v[%j] to %vr[%t] : !memory to !ring1
      %qt = tile.ring.wait %qr[%t] : !ring1
      %kt = tile.ring.wait %kr[%t] : !ring1
      tile.ring.release %qr[%t] : !ring1
      tile.ring.release %kr[%t] : !ring1
      %vt = tile.ring.wait %vr[%t] : !ring1
      tile.ring.release %vr[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    gpu.return
  }
}
