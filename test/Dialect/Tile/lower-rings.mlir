// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-lower-rings)))" | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A wait leaves the groups pending that were started later. Acquiring a slot that
// has never been released needs no barrier.

// CHECK-LABEL: gpu.func @groups(
// CHECK-NOT:   gpu.barrier
// CHECK:       %[[A:.*]] = tile.smem_view %c1024
// CHECK-NEXT:  tile.copy %{{.*}} to %[[A]]
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK:       tile.copy
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 1
// CHECK-NEXT:  gpu.barrier
// CHECK:       %[[TILE:.*]] = tile.smem_view %c1024
// CHECK-NEXT:  tile.load %[[TILE]]
// CHECK-NEXT:  nvvm.cp.async.wait.group 0
// CHECK-NEXT:  gpu.barrier
gpu.module @m {
  gpu.func @groups(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %a = tile.ring {offset = 1024} : !ring1
    %b = tile.ring {offset = 3072} : !ring1
    tile.ring.acquire %a[%c0] : !ring1
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
    tile.ring.acquire %b[%c0] : !ring1
    tile.copy_async %k[%c0] to %b[%c0] : !memory to !ring1
    %at = tile.ring.wait %a[%c0] : !ring1
    %ar = tile.load %at : !tile to !registers
    tile.ring.release %a[%c0] : !ring1
    %bt = tile.ring.wait %b[%c0] : !ring1
    %br = tile.load %bt : !tile to !registers
    tile.ring.release %b[%c0] : !ring1
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A barrier lies between a release and the next copy into the slot: that of a
// wait in between, or else one for the acquire.

// CHECK-LABEL: gpu.func @barriers(
// CHECK:       scf.for
// CHECK-NEXT:    gpu.barrier
// CHECK:         tile.copy
// CHECK-NEXT:    nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 0
// CHECK-NEXT:    gpu.barrier
// CHECK:         tile.load
// CHECK:       scf.for
// CHECK-NOT:     gpu.barrier
// CHECK:         nvvm.cp.async.wait.group
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         nvvm.cp.async.wait.group
// CHECK-NEXT:    gpu.barrier
// CHECK-NOT:     gpu.barrier
// CHECK:       gpu.return
gpu.module @m {
  gpu.func @barriers(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 2048} : !ring1
    %t = scf.for %j = %c0 to %n step %c16 iter_args(%t = %c0) -> (index) {
      tile.ring.acquire %a[%t] : !ring1
      tile.copy_async %k[%j] to %a[%t] : !memory to !ring1
      %x = tile.ring.wait %a[%t] : !ring1
      %xr = tile.load %x : !tile to !registers
      tile.ring.release %a[%t] : !ring1
      %t1 = arith.addi %t, %c1 : index
      scf.yield %t1 : index
    }
    tile.ring.acquire %a[%t] : !ring1
    tile.copy_async %k[%c0] to %a[%t] : !memory to !ring1
    %u = scf.for %j = %c0 to %n step %c16 iter_args(%u = %t) -> (index) {
      %at = tile.ring.wait %a[%u] : !ring1
      tile.ring.acquire %b[%u] : !ring1
      tile.copy_async %k[%j] to %b[%u] : !memory to !ring1
      %ar = tile.load %at : !tile to !registers
      tile.ring.release %a[%u] : !ring1
      %bt = tile.ring.wait %b[%u] : !ring1
      %u1 = arith.addi %u, %c1 : index
      tile.ring.acquire %a[%u1] : !ring1
      tile.copy_async %k[%j] to %a[%u1] : !memory to !ring1
      %br = tile.load %bt : !tile to !registers
      tile.ring.release %b[%u] : !ring1
      scf.yield %u1 : index
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

// Slot t mod stages. A guarded copy becomes a copy of no rows where the guard
// does not hold; its group counts on both ways.

// CHECK-LABEL: gpu.func @guarded(
// CHECK-SAME:  %[[K:.*]]: memref<{{.*}}>, %[[T:.*]]: index, %[[C:.*]]: i1
// CHECK-NOT:   scf.if
// CHECK:       %[[ROWS:.*]] = arith.select %[[C]], %c16{{.*}}, %c0
// CHECK-DAG:   %[[SLOT:.*]] = arith.remui %[[T]], %c2
// CHECK-DAG:   %[[DISTANCE:.*]] = arith.muli %[[SLOT]], %c2048
// CHECK-DAG:   %[[BYTE:.*]] = arith.addi %c4096{{.*}}, %[[DISTANCE]]
// CHECK:       %[[TILE:.*]] = tile.smem_view %[[BYTE]]
// CHECK-NEXT:  tile.copy %[[K]]{{.*}} rows(%[[ROWS]]) to %[[TILE]]
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 1
gpu.module @m {
  gpu.func @guarded(%k: !memory, %t: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 4096} : !ring2
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
    scf.if %c {
      tile.ring.acquire %b[%t] : !ring2
      tile.copy_async %k[%c0] to %b[%t] : !memory to !ring2
    }
    %at = tile.ring.wait %a[%c0] : !ring1
    %ar = tile.load %at : !tile to !registers
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Ways with different groups: a wait behind them leaves none pending.

// CHECK-LABEL: gpu.func @unknown_groups(
// CHECK:       scf.if
// CHECK:       } else {
// CHECK:       }
// CHECK:       nvvm.cp.async.wait.group 0
gpu.module @m {
  gpu.func @unknown_groups(%k: !memory, %c: i1, %x: memref<f32>, %f: f32) kernel {
    %c0 = arith.constant 0 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 2048} : !ring1
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
    scf.if %c {
      tile.copy_async %k[%c0] to %b[%c0] : !memory to !ring1
    } else {
      memref.store %f, %x[] : memref<f32>
    }
    %at = tile.ring.wait %a[%c0] : !ring1
    %ar = tile.load %at : !tile to !registers
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

gpu.module @m {
  gpu.func @no_place() kernel {
    // expected-error @below {{'tile.ring' op has no place; run tile-allocate-smem first}}
    %a = tile.ring : !ring1
    gpu.return
  }
}
