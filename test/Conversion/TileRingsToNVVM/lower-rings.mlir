// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-lower-rings)))" | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// A wait leaves the groups pending that were started later. Acquiring a stage that
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

// A barrier lies between a release and the next copy into the stage: that of a
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

// Where copies are waited for under a guard, their groups are made there, too, and
// not behind the wait. What is pending behind the guard depends on the way to it:
// the next wait leaves nothing pending.

// CHECK-LABEL: gpu.func @wait_under_guard(
// CHECK:       scf.if
// CHECK:         tile.copy
// CHECK-NEXT:    nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 0
// CHECK-NEXT:    gpu.barrier
// CHECK:         tile.copy
// CHECK-NEXT:    nvvm.cp.async.commit.group
// CHECK-NEXT:  }
// CHECK-NOT:   nvvm.cp.async.commit.group
// CHECK:       tile.copy
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 0
gpu.module @m {
  gpu.func @wait_under_guard(%k: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 2048} : !ring1
    scf.if %c {
      tile.ring.acquire %a[%c0] : !ring1
      tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
      %at = tile.ring.wait %a[%c0] : !ring1
      %ar = tile.load %at : !tile to !registers
      tile.ring.release %a[%c0] : !ring1
      tile.ring.acquire %a[%c1] : !ring1
      tile.copy_async %k[%c0] to %a[%c1] : !memory to !ring1
    }
    tile.ring.acquire %b[%c0] : !ring1
    tile.copy_async %k[%c0] to %b[%c0] : !memory to !ring1
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

// Stage t mod stages. A guard becomes a choice of the number of rows, whose group
// counts on both ways.

// CHECK-LABEL: gpu.func @guarded(
// CHECK-SAME:  %[[K:.*]]: memref<{{.*}}>, %[[T:.*]]: index, %[[N:.*]]: index, %[[C:.*]]: i1
// CHECK-NOT:   scf.if
// CHECK-DAG:   %[[SLOT:.*]] = arith.remui %[[T]], %c2
// CHECK-DAG:   %[[DISTANCE:.*]] = arith.muli %[[SLOT]], %c2048
// CHECK-DAG:   %[[BYTE:.*]] = arith.addi %c4096{{.*}}, %[[DISTANCE]]
// CHECK-DAG:   %[[ROWS:.*]] = arith.select %[[C]], %[[N]], %c0
// CHECK-DAG:   %[[TILE:.*]] = tile.smem_view %[[BYTE]]
// CHECK:       tile.copy %[[K]]{{.*}} rows(%[[ROWS]]) to %[[TILE]]
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 1
gpu.module @m {
  gpu.func @guarded(%k: !memory, %t: index, %n: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 4096} : !ring2
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
    scf.if %c {
      tile.ring.acquire %b[%t] : !ring2
      tile.copy_async %k[%c0] rows(%n) to %b[%t] : !memory to !ring2
    }
    %at = tile.ring.wait %a[%c0] : !ring1
    %ar = tile.load %at : !tile to !registers
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!ring2 = !tile.ring<2, !tile.smem<16x64xf16, swizzle = 128>>
!registers = tensor<16x64xf16, #tile.fragment<1>>

// Copies one step ahead, from loop to loop: the group of a wait is found by its step,
// and the one ahead stays pending. Behind the last loop nothing was copied ahead, but
// there is a group, of zeros: a wait does not take it for that of its step, and the
// stage is filled when it is complete.

// CHECK-LABEL: gpu.func @ahead(
// CHECK:       scf.for
// CHECK:         nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 1
// CHECK:       scf.for
// CHECK:         nvvm.cp.async.commit.group
// CHECK-NEXT:    nvvm.cp.async.wait.group 1
// CHECK:       nvvm.cp.async.wait.group 0
// CHECK:       tile.copy
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 0
gpu.module @m {
  gpu.func @ahead(%k: !memory, %n: index, %m: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring {offset = 0} : !ring2
    scf.if %c {
      tile.ring.acquire %a[%c0] : !ring2
      tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring2
    }
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%t = %c0) -> (index) {
      %t1 = arith.addi %t, %c1 : index
      %j1 = arith.addi %j, %c1 : index
      %more = arith.cmpi slt, %j1, %m : index
      scf.if %more {
        tile.ring.acquire %a[%t1] : !ring2
        tile.copy_async %k[%j1] to %a[%t1] : !memory to !ring2
      }
      %x = tile.ring.wait %a[%t] : !ring2
      tile.ring.release %a[%t] : !ring2
      scf.yield %t1 : index
    }
    %u = scf.for %j = %n to %m step %c1 iter_args(%u = %t) -> (index) {
      %u1 = arith.addi %u, %c1 : index
      %j1 = arith.addi %j, %c1 : index
      %more = arith.cmpi slt, %j1, %m : index
      scf.if %more {
        tile.ring.acquire %a[%u1] : !ring2
        tile.copy_async %k[%j1] to %a[%u1] : !memory to !ring2
      }
      %x = tile.ring.wait %a[%u] : !ring2
      tile.ring.release %a[%u] : !ring2
      scf.yield %u1 : index
    }
    tile.ring.acquire %a[%u] : !ring2
    tile.copy_async %k[%c0] to %a[%u] : !memory to !ring2
    %y = tile.ring.wait %a[%u] : !ring2
    tile.ring.release %a[%u] : !ring2
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>

// Copies have no order: a stage is filled again when its last copy is complete.

// CHECK-LABEL: gpu.func @filled_again(
// CHECK:       nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 0
// CHECK:       tile.copy
gpu.module @m {
  gpu.func @filled_again(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring {offset = 0} : !ring1
    tile.ring.acquire %a[%c0] : !ring1
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
    tile.ring.acquire %a[%c1] : !ring1
    tile.copy_async %k[%c1] to %a[%c1] : !memory to !ring1
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
    // expected-error @below {{'tile.ring' op has no offset; run tile-allocate-smem first}}
    %a = tile.ring : !ring1
    gpu.return
  }
}

// -----

// The copies of one stage are one group, in a loop too; each fills its rows.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<32x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<32x64xf16, swizzle = 128>>
!registers = tensor<32x64xf16, #tile.fragment<2>>

// CHECK-LABEL: gpu.func @parts(
// CHECK:       %[[ROW0:.*]] = arith.muli %c0, %c16
// CHECK:       tile.copy %{{.*}} to %{{.*}}[%[[ROW0]]] {tile_rows = 16 : i64}
// CHECK-NOT:   commit
// CHECK:       %[[ROW1:.*]] = arith.muli %c1, %c16
// CHECK:       tile.copy %{{.*}} to %{{.*}}[%[[ROW1]]] {tile_rows = 16 : i64}
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK:       scf.for
// CHECK-NOT:     commit
// CHECK:         tile.copy %{{.*}} {tile_rows = 16 : i64}
// CHECK-NEXT:  }
// CHECK-NEXT:  nvvm.cp.async.commit.group
// CHECK-NEXT:  nvvm.cp.async.wait.group 1
// CHECK:       nvvm.cp.async.wait.group 0
gpu.module @m {
  gpu.func @parts(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = tile.ring copies = 2 {offset = 0} : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] part(%c0) : !memory to !ring
    tile.copy_async %k[%c1] to %r[%c0] part(%c1) : !memory to !ring
    tile.ring.acquire %r[%c1] : !ring
    scf.for %p = %c0 to %c2 step %c1 {
      tile.copy_async %k[%p] to %r[%c1] part(%p) : !memory to !ring
    }
    %t0 = tile.ring.wait %r[%c0] : !ring
    %x0 = tile.load %t0 : !tile to !registers
    tile.ring.release %r[%c0] : !ring
    %t1 = tile.ring.wait %r[%c1] : !ring
    %x1 = tile.load %t1 : !tile to !registers
    tile.ring.release %r[%c1] : !ring
    gpu.return
  }
}

// -----

// What threads write waits for no group of copies, and leaves those pending.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<32x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
!registers = tensor<32x64xf16, #tile.fragment<2>>

// CHECK-LABEL: gpu.func @put(
// CHECK:       nvvm.cp.async.commit.group
// CHECK-NOT:   nvvm.cp.async.wait.group
// CHECK:       tile.put %{{.*}}, %{{.*}} {by_pairs, column = 0 : i64}
// CHECK-NOT:   nvvm.cp.async.wait.group
// CHECK-NEXT:  gpu.barrier
// CHECK:       tile.load
// A stage is written again when all have read it.
// CHECK:       gpu.barrier
// CHECK:       tile.put
// CHECK-NEXT:  gpu.barrier
// CHECK:       nvvm.cp.async.wait.group 0
gpu.module @m {
  gpu.func @put(%k: !memory, %x: !registers) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring {offset = 0} : !ring
    %r = tile.ring {offset = 4096} : !ring
    tile.ring.acquire %a[%c0] : !ring
    tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.ring.put %x to %r[%c0] : !registers to !ring
    %t0 = tile.ring.wait %r[%c0] : !ring
    %x0 = tile.load %t0 : !tile to !registers
    tile.ring.release %r[%c0] : !ring
    tile.ring.acquire %r[%c1] : !ring
    tile.ring.put %x0 to %r[%c1] : !registers to !ring
    %t1 = tile.ring.wait %r[%c1] : !ring
    tile.ring.release %r[%c1] : !ring
    %at = tile.ring.wait %a[%c0] : !ring
    tile.ring.release %a[%c0] : !ring
    gpu.return
  }
}

// -----

// A tile that is looked at before it is waited for is awaited at once.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<32x64xf16, swizzle = 128>
!ring = !tile.ring<2, !tile.smem<32x64xf16, swizzle = 128>>
!registers = tensor<32x64xf16, #tile.fragment<2>>

// CHECK-LABEL: gpu.func @peek(
// CHECK:       nvvm.cp.async.wait.group 0
// CHECK-NEXT:  gpu.barrier
// CHECK:       %[[TILE:.*]] = tile.smem_view
// CHECK-NEXT:  tile.load %[[TILE]]
gpu.module @m {
  gpu.func @peek(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring {offset = 0} : !ring
    tile.ring.acquire %r[%c0] : !ring
    tile.copy_async %k[%c0] to %r[%c0] : !memory to !ring
    %t0 = tile.ring.peek %r[%c0] : !ring
    %x0 = tile.load %t0 : !tile to !registers
    %t1 = tile.ring.wait %r[%c0] : !ring
    tile.ring.release %r[%c0] : !ring
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @check_finite() kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring checked {offset = 0} : !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
    // expected-error @below {{'tile.ring.check_finite' op is for warps with roles}}
    tile.ring.check_finite %r[%c0] : !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
    gpu.return
  }
}

// -----

!tile = !tile.smem<32x64xf16, swizzle = 128>
!ring = !tile.ring<1, !tile.smem<32x64xf16, swizzle = 128>>
gpu.module @m {
  gpu.func @copy_finite(%f: i1) kernel {
    %c0 = arith.constant 0 : index
    %r = tile.ring {offset = 0} : !ring
    %t = tile.ring.wait %r[%c0] : !ring
    // expected-error @below {{'tile.ring.copy_finite' op is for warps with roles}}
    %k = tile.ring.copy_finite %t unless %f in %r[%c0] : !tile in !ring
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @make_finite(%t: !tile.smem<32x64xf16, swizzle = 128>) kernel {
    // expected-error @below {{'tile.make_finite' op is for warps with roles}}
    tile.make_finite %t : !tile.smem<32x64xf16, swizzle = 128>
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!ring1 = !tile.ring<1, !tile.smem<16x64xf16, swizzle = 128>>

// What a loop around the loop has left pending does not matter: only the groups
// that are younger than the awaited one. A wait for what is complete leaves all.

// CHECK-LABEL: gpu.func @loop_in_loop(
// CHECK:       scf.for
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         nvvm.cp.async.commit.group
// CHECK:         scf.for
// CHECK-NEXT:      nvvm.cp.async.wait.group 1
// CHECK:           nvvm.cp.async.commit.group
// CHECK-NEXT:      nvvm.cp.async.wait.group 1
// CHECK:           nvvm.cp.async.wait.group 1
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           nvvm.cp.async.commit.group
// CHECK-NEXT:      nvvm.cp.async.wait.group 2
gpu.module @m {
  gpu.func @loop_in_loop(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %a = tile.ring {offset = 0} : !ring1
    %b = tile.ring {offset = 2048} : !ring1
    %c = tile.ring {offset = 4096} : !ring1
    scf.for %i = %c0 to %n step %c1 {
      tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
      tile.copy_async %k[%c0] to %b[%c0] : !memory to !ring1
      scf.for %j = %c0 to %n step %c1 {
        %at = tile.ring.wait %a[%c0] : !ring1
        tile.copy_async %k[%c0] to %c[%c0] : !memory to !ring1
        %bt = tile.ring.wait %b[%c0] : !ring1
        %again = tile.ring.wait %b[%c0] : !ring1
        tile.copy_async %k[%c0] to %a[%c0] : !memory to !ring1
        tile.copy_async %k[%c0] to %b[%c0] : !memory to !ring1
        %ct = tile.ring.wait %c[%c0] : !ring1
      }
    }
    gpu.return
  }
}
