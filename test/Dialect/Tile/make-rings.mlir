// RUN: flash-opt %s --split-input-file --verify-diagnostics \
// RUN:   --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings)))" | FileCheck %s

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// Two loops share a ring and count on; a tile that is fetched once has one stage,
// whatever the stages. A product holds its tile until it has been waited for; a
// fetch that nobody reads goes.

// CHECK-LABEL: gpu.func @loops(
// CHECK-DAG:   %[[KEYS:.*]] = tile.ring : <2,
// CHECK-DAG:   %[[QUERIES:.*]] = tile.ring : <1,
// CHECK:       tile.ring.acquire %[[QUERIES]][%[[ZERO:.*]]] :
// CHECK-NEXT:  tile.copy_async %{{.*}} to %[[QUERIES]][%[[ZERO]]]
// CHECK-NEXT:  %[[QT:.*]] = tile.ring.wait %[[QUERIES]][%[[ZERO]]]
// CHECK-NEXT:  tile.load %[[QT]]
// CHECK-NEXT:  tile.ring.release %[[QUERIES]][%[[ZERO]]]
// CHECK-NOT:   tile.copy_async
// CHECK:       %[[LOOP:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (index)
// CHECK-NEXT:    tile.ring.acquire %[[KEYS]][%[[T]]] :
// CHECK-NEXT:    tile.copy_async %{{.*}}[%[[J]]] to %[[KEYS]][%[[T]]]
// CHECK-NEXT:    %[[KT:.*]] = tile.ring.wait %[[KEYS]][%[[T]]]
// CHECK-NEXT:    tile.mma_async %{{.*}}, %[[KT]]
// CHECK-NEXT:    tile.mma_wait
// CHECK-NEXT:    tile.ring.release %[[KEYS]][%[[T]]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[T]], %
// CHECK-NEXT:    scf.yield %[[NEXT]]
// CHECK:       scf.for {{.*}} iter_args(%[[U:.*]] = %[[LOOP]]) -> (index)
// CHECK:         tile.copy_async {{.*}} rows(%{{.*}}) to %[[KEYS]][%[[U]]]
gpu.module @m {
  gpu.func @loops(%q: !memory, %k: !memory, %n: index) kernel attributes {flash.schedule = #flash.schedule<stages = 2>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %qs = tile.fetch %q[%c0] : !memory to !tile
    %unused = tile.fetch %q[%c16] : !memory to !tile
    %qr = tile.load %qs : !tile to !query
    scf.for %j = %c0 to %c32 step %c16 {
      %kt = tile.fetch %k[%j] : !memory to !tile
      %p = tile.mma_async %qr, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %p : !tile.pending<!scores>
    }
    scf.for %j = %c32 to %n step %c16 {
      %rows = arith.subi %n, %j : index
      %kt = tile.fetch %k[%j] rows(%rows) : !memory to !tile
      %p = tile.mma_async %qr, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
      %s = tile.mma_wait %p : !tile.pending<!scores>
    }
    gpu.return
  }
}

// -----

// A tile that is to be finite has a ring of its own, and is made so before it is read.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @finite(
// CHECK:       tile.copy_async %[[M:.*]][%[[AT:.*]]] to %[[R:.*]][%
// CHECK:       tile.copy_async %[[M]][%[[AT]]] to %[[F:.*]][%
// CHECK:       %[[T:.*]] = tile.ring.wait %[[F]]
// CHECK-NEXT:  tile.make_finite %[[T]] : <16x64xf16
// CHECK-NEXT:  tile.load %[[T]]
// CHECK-NEXT:  tile.ring.release %[[F]]
// CHECK:       tile.ring.wait %[[R]]
// CHECK-NEXT:  tile.load
gpu.module @m {
  gpu.func @finite(%k: !memory) kernel {
    %c0 = arith.constant 0 : index
    %t = tile.fetch %k[%c0] : !memory to !tile
    %f = tile.fetch %k[%c0] finite : !memory to !tile
    %a = tile.load %f : !tile to tensor<16x64xf16, #tile.fragment<1>>
    %b = tile.load %t : !tile to tensor<16x64xf16, #tile.fragment<1>>
    gpu.return
  }
}

// -----

// Loops in a choice inside of a loop: the count of their steps comes out of the
// choice, which leaves it as it was where it goes the other way.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!query = tensor<16x64xf16, #tile.fragment<1>>
!scores = tensor<16x16xf32, #tile.fragment<1>>

// CHECK-LABEL: gpu.func @choice(
// CHECK:       scf.for {{.*}} iter_args(%[[START:.*]] = %c0
// CHECK:         %[[X:.*]] = arith.constant
// CHECK:         %[[CHOICE:.*]]:2 = scf.if %{{.*}} -> (index, index) {
// CHECK:           %[[ONE:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[START]]) -> (index)
// CHECK:           %[[TWO:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[ONE]]) -> (index)
// CHECK:           scf.yield %{{.*}}, %[[TWO]] : index, index
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %{{.*}}, %[[START]] : index, index
// CHECK-NEXT:    }
// CHECK:         scf.yield %[[CHOICE]]#1 : index
gpu.module @m {
  gpu.func @choice(%qr: !query, %k: !memory, %c: i1, %m: index, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %n step %c1 {
      %x = arith.constant 7 : index
      %other = scf.if %c -> index {
        scf.for %j = %c0 to %m step %c16 {
          %kt = tile.fetch %k[%j] : !memory to !tile
          %p = tile.mma_async %qr, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
          %s = tile.mma_wait %p : !tile.pending<!scores>
        }
        scf.for %j = %m to %n step %c16 {
          %kt = tile.fetch %k[%j] : !memory to !tile
          %p = tile.mma_async %qr, %kt transpose_b : !query, !tile -> !tile.pending<!scores>
          %s = tile.mma_wait %p : !tile.pending<!scores>
        }
        scf.yield %x : index
      } else {
        scf.yield %i : index
      }
    }
    gpu.return
  }
}

// -----

// A use in a nested region holds the tile until the end of the region.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @nested(
// CHECK:      tile.ring.wait
// CHECK-NEXT: scf.if
// CHECK-NEXT:   tile.load
// CHECK-NEXT: }
// CHECK-NEXT: tile.ring.release
gpu.module @m {
  gpu.func @nested(%q: !memory, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %qs = tile.fetch %q[%c0] : !memory to !tile
    scf.if %c {
      %qr = tile.load %qs : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    gpu.return
  }
}

// -----

// A loop that counts its iterations has the number of the step.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @counter(
// CHECK:       scf.for %[[I:[^ ]*]] = %{{.*}} to %{{.*}} step %{{[^ ]*}} {
// CHECK-NEXT:    tile.ring.acquire %[[R:.*]][%[[I]]]
// CHECK-NEXT:    tile.copy_async %{{.*}} to %[[R]][%[[I]]]
// CHECK-NEXT:    tile.ring.wait %[[R]][%[[I]]]
// CHECK:         tile.ring.release %[[R]][%[[I]]]
gpu.module @m {
  gpu.func @counter(%q: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %qs = tile.fetch %q[%i] : !memory to !tile
      %qr = tile.load %qs : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// A fetch in a choice in a loop: steps go on where it is taken.

// CHECK-LABEL: gpu.func @guarded(
// CHECK:       scf.for {{.*}} iter_args(%[[T:.*]] = %c0{{.*}}) -> (index)
// CHECK:         %[[NEXT:.*]] = scf.if %{{.*}} -> (index) {
// CHECK:           %[[MORE:.*]] = arith.addi %[[T]], %c1
// CHECK:           tile.ring.acquire %[[R:.*]][%[[T]]]
// CHECK:           tile.copy_async %{{.*}} to %[[R]][%[[T]]]
// CHECK:           tile.ring.release %[[R]][%[[T]]]
// CHECK:           scf.yield %[[MORE]]
// CHECK:         } else {
// CHECK:           scf.yield %[[T]]
// CHECK:         scf.yield %[[NEXT]]
gpu.module @m {
  gpu.func @guarded(%k: !memory, %n: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    scf.for %j = %c0 to %n step %c16 {
      scf.if %c {
        %kt = tile.fetch %k[%j] : !memory to !tile
        %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
      }
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// The first step stands beside the loop over the others, as canonicalization leaves a loop
// of one iteration: one ring has all steps. In the other branch, other memory has its own.

// CHECK-LABEL: gpu.func @beside(
// CHECK:       %[[V:.*]] = tile.ring
// CHECK:       %[[K:.*]] = tile.ring
// CHECK:       scf.for {{.*}} iter_args(%[[T:.*]] = %c0{{.*}}, %[[S:.*]] = %c0{{.*}}) -> (index, index)
// CHECK:         %[[BOTH:.*]]:2 = scf.if
// CHECK:           %[[SECOND:.*]] = arith.addi %[[T]], %c1
// CHECK:           tile.ring.acquire %[[K]][%[[T]]]
// CHECK:           %[[END:.*]] = scf.for {{.*}} iter_args(%[[STEP:.*]] = %[[SECOND]])
// CHECK:             tile.ring.acquire %[[K]][%[[STEP]]]
// CHECK:           scf.yield %[[END]], %[[S]]
// CHECK:         } else {
// CHECK:           %[[MORE:.*]] = arith.addi %[[S]], %c1
// CHECK:           tile.ring.acquire %[[V]][%[[S]]]
// CHECK:           scf.yield %[[T]], %[[MORE]]
// CHECK:         scf.yield %[[BOTH]]#0, %[[BOTH]]#1
gpu.module @m {
  gpu.func @beside(%k: !memory, %v: !memory, %n: index, %c: i1) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %n step %c1 {
      scf.if %c {
        %k0 = tile.fetch %k[%c0] : !memory to !tile
        %r0 = tile.load %k0 : !tile to tensor<16x64xf16, #tile.fragment<1>>
        scf.for %j = %c16 to %n step %c16 {
          %kt = tile.fetch %k[%j] : !memory to !tile
          %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
        }
      } else {
        %vt = tile.fetch %v[%c0] : !memory to !tile
        %vr = tile.load %vt : !tile to tensor<16x64xf16, #tile.fragment<1>>
      }
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>
!f = tensor<16x64xf16, #tile.fragment<1>>

// Steps that follow one another share rings; what lives across them has its own.

// CHECK-LABEL: gpu.func @straight(
// CHECK:       %[[Q:.*]] = tile.ring : <1,
// CHECK:       %[[V:.*]] = tile.ring : <2,
// CHECK:       %[[K:.*]] = tile.ring : <2,
// CHECK:       tile.ring.acquire %[[Q]]
// CHECK:       %[[ONE:.*]] = arith.addi %c0
// CHECK:       tile.ring.acquire %[[K]][%c0
// CHECK:       tile.ring.release %[[K]][%c0
// CHECK:       tile.ring.acquire %[[V]][%c0
// CHECK:       tile.ring.acquire %[[V]][%[[ONE]]]
// CHECK:       tile.ring.acquire %[[K]][%[[ONE]]]
// CHECK:       tile.ring.release %[[Q]]
gpu.module @m {
  gpu.func @straight(%q: !memory, %k: !memory, %v: !memory) kernel attributes {flash.schedule = #flash.schedule<stages = 2>} {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %qt = tile.fetch %q[%c0] : !memory to !tile
    %k0 = tile.fetch %k[%c0] : !memory to !tile
    %kr0 = tile.load %k0 : !tile to !f
    %v0 = tile.fetch %v[%c0] : !memory to !tile
    %vr0 = tile.load %v0 : !tile to !f
    %v1 = tile.fetch %v[%c16] : !memory to !tile
    %k1 = tile.fetch %k[%c16] : !memory to !tile
    %kr1 = tile.load %k1 : !tile to !f
    %vr1 = tile.load %v1 : !tile to !f
    %qr = tile.load %qt : !tile to !f
    gpu.return
  }
}

// -----

// All loops around go on counting.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @deep(
// CHECK:       scf.for %{{.*}} iter_args(%[[A:.*]] = %c0{{.*}}) -> (index)
// CHECK:         %[[B:.*]] = scf.for %{{.*}} iter_args(%[[C:.*]] = %[[A]]) -> (index)
// CHECK:           %[[D:.*]] = scf.for %{{.*}} iter_args(%[[T:.*]] = %[[C]]) -> (index)
// CHECK:             tile.ring.acquire %{{.*}}[%[[T]]]
// CHECK:           scf.yield %[[D]]
// CHECK:         scf.yield %[[B]]
gpu.module @m {
  gpu.func @deep(%q: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %b = %c0 to %n step %c1 {
      scf.for %h = %c0 to %n step %c1 {
        scf.for %i = %c0 to %n step %c16 {
          %qs = tile.fetch %q[%i] : !memory to !tile
          %qr = tile.load %qs : !tile to tensor<16x64xf16, #tile.fragment<1>>
        }
      }
    }
    gpu.return
  }
}

// -----

// Loops with other sources have rings and a count of their own, which goes on
// where the next loop has the same sources again.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @others(
// CHECK-SAME:  %[[K:[^,: ]*]]: memref<{{[^>]*}}>>, %[[V:[^,: ]*]]: memref
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:       %[[ONE:.*]] = scf.for %{{.*}} iter_args(%[[T:.*]] = %{{.*}}) -> (index)
// CHECK:         tile.copy_async %[[K]]{{.*}} to %[[KEYS:.*]][%[[T]]]
// CHECK:       scf.for %{{.*}} iter_args(%[[U:.*]] = %c0{{.*}}) -> (index)
// CHECK:         tile.copy_async %[[V]]{{.*}} to %[[VALUES:.*]][%[[U]]]
// CHECK:       scf.for %{{.*}} iter_args(%[[S:.*]] = %[[ONE]]) -> (index)
// CHECK:         tile.copy_async %[[K]]{{.*}} to %[[KEYS]][%[[S]]]
gpu.module @m {
  gpu.func @others(%k: !memory, %v: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    scf.for %j = %c0 to %n step %c16 {
      %kt = tile.fetch %k[%j] : !memory to !tile
      %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    scf.for %j = %c0 to %n step %c16 {
      %vt = tile.fetch %v[%j] : !memory to !tile
      %vr = tile.load %vt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    scf.for %j = %c0 to %n step %c16 {
      %kt = tile.fetch %k[%j] : !memory to !tile
      %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    gpu.return
  }
}

// -----

// So has one that fetches the same and more.

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// CHECK-LABEL: gpu.func @more(
// CHECK-COUNT-3: tile.ring :
// CHECK-NOT:     tile.ring :
// CHECK:         scf.for
gpu.module @m {
  gpu.func @more(%k: !memory, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    scf.for %j = %c0 to %n step %c16 {
      %kt = tile.fetch %k[%j] : !memory to !tile
      %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    scf.for %j = %c0 to %n step %c16 {
      %kt = tile.fetch %k[%j] : !memory to !tile
      %kr = tile.load %kt : !tile to tensor<16x64xf16, #tile.fragment<1>>
      %lt = tile.fetch %k[%j] : !memory to !tile
      %lr = tile.load %lt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    }
    gpu.return
  }
}

// -----

// A register tile goes through a ring of one stage, whatever the kernel's number of
// stages is: the threads that hold it fill it, and two loops share it.

!memory = memref<?x64xf16, strided<[?, 1]>>
!smem = !tile.smem<64x64xf16, swizzle = 128>
!half = tensor<64x64xf16, #tile.fragment<4>>

// CHECK-LABEL: gpu.func @share(
// CHECK:       %[[P:.*]] = tile.ring : <1, <64x64xf16, swizzle = 128>>
// CHECK:       %[[K:.*]] = tile.ring : <2, <64x64xf16, swizzle = 128>>
// CHECK:       scf.for
// CHECK:         tile.ring.acquire %[[K]][%[[T:.*]]] :
// CHECK:         %[[X:.*]] = tile.load
// CHECK:         tile.ring.acquire %[[P]][%[[T]]] :
// CHECK-NEXT:    tile.ring.put %[[X]] to %[[P]][%[[T]]] :
// CHECK-NEXT:    %[[PT:.*]] = tile.ring.wait %[[P]][%[[T]]] :
// CHECK-NEXT:    tile.load %[[PT]]
// CHECK-NEXT:    tile.ring.release %[[P]][%[[T]]] :
// CHECK:       scf.for
// CHECK:         tile.ring.put %{{.*}} to %[[P]][
gpu.module @m {
  gpu.func @share(%k: !memory, %n: index) kernel attributes {flash.schedule = #flash.schedule<stages = 2>} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    scf.for %j = %c0 to %n step %c64 {
      %kt = tile.fetch %k[%j] : !memory to !smem
      %x = tile.load %kt : !smem to !half
      %pt = tile.share %x : !half to !smem
      %y = tile.load %pt : !smem to !half
    }
    scf.for %j = %c0 to %n step %c64 {
      %kt = tile.fetch %k[%j] : !memory to !smem
      %x = tile.load %kt : !smem to !half
      %pt = tile.share %x : !half to !smem
      %y = tile.load %pt : !smem to !half
    }
    gpu.return
  }
}

// -----

!memory = memref<?x64xf16, strided<[?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

// Branches of which one at most is reached share a ring, and its steps go on in each. What a branch fetches
// second shares one with what another fetches second.

// CHECK-LABEL: gpu.func @branches(
// CHECK-NEXT:    %[[B:.*]] = tile.ring
// CHECK-NEXT:    %[[A:.*]] = tile.ring
// CHECK-NOT:     tile.ring :
// CHECK:         scf.for {{.*}} iter_args(%[[S:.*]] = %c0{{.*}}, %[[T:.*]] = %c0{{.*}}) -> (index, index)
// CHECK:           %[[OUTER:.*]]:2 = scf.if
// CHECK:             %[[S1:.*]] = arith.addi %[[S]], %c1
// CHECK:             tile.ring.acquire %[[A]][%[[S]]]
// CHECK:             %[[T1:.*]] = arith.addi %[[T]], %c1
// CHECK:             tile.ring.acquire %[[B]][%[[T]]]
// CHECK:             scf.yield %[[S1]], %[[T1]]
// CHECK:           } else {
// CHECK:             %[[INNER:.*]]:2 = scf.if
// CHECK:               %[[S2:.*]] = arith.addi %[[S]], %c1
// CHECK:               tile.ring.acquire %[[A]][%[[S]]]
// CHECK:               scf.yield %[[S2]], %[[T]]
// CHECK:             } else {
// CHECK:               tile.ring.acquire %[[A]][%[[S]]]
// CHECK:               tile.ring.acquire %[[B]][%[[T]]]
// CHECK:             scf.yield %[[INNER]]#0, %[[INNER]]#1
// CHECK:           scf.yield %[[OUTER]]#0, %[[OUTER]]#1
gpu.module @m {
  gpu.func @branches(%k: !memory, %n: index, %c: i1, %d: i1) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    scf.for %j = %c0 to %n step %c16 {
      scf.if %c {
        %k0 = tile.fetch %k[%j] : !memory to !tile
        %k1 = tile.fetch %k[%c0] : !memory to !tile
        %r0 = tile.load %k0 : !tile to tensor<16x64xf16, #tile.fragment<1>>
        %r1 = tile.load %k1 : !tile to tensor<16x64xf16, #tile.fragment<1>>
      } else {
        scf.if %d {
          %k0 = tile.fetch %k[%j] : !memory to !tile
          %r0 = tile.load %k0 : !tile to tensor<16x64xf16, #tile.fragment<1>>
        } else {
          %k0 = tile.fetch %k[%j] : !memory to !tile
          %k1 = tile.fetch %k[%c0] : !memory to !tile
          %r0 = tile.load %k0 : !tile to tensor<16x64xf16, #tile.fragment<1>>
          %r1 = tile.load %k1 : !tile to tensor<16x64xf16, #tile.fragment<1>>
        }
      }
    }
    gpu.return
  }
}

// -----

// Beside wide gradients shared memory has no room for keys without NaN and infinities: they are copied to the stage of
// the product that reads them. The gradients of scores have one stage, and two beside others (specialize-warps.mlir).

!memory = memref<?x192xbf16, strided<[?, 1]>>
!keys = !tile.smem<128x192xbf16, swizzle = 64>
!scores = tensor<128x64xbf16, #tile.fragment<8>>
!part = tensor<128x96xf32, #tile.fragment<8>>
!dk = tensor<128x192xf32, #tile.fragment<8>>
!dv = tensor<128x128xf32, #tile.fragment<8>>

// CHECK-LABEL: gpu.func @wide_gradients(
// CHECK:         %[[SUMS:.*]] = tile.ring : <1, <128x96xf32
// CHECK:         %[[DS:.*]] = tile.ring : <1, <128x64xbf16
// CHECK:         tile.copy_async %[[M:.*]][%{{.*}}] to %[[KEYS:.*]][%
// CHECK-NOT:     tile.copy_async
// CHECK:         %[[K:.*]] = tile.ring.wait %[[KEYS]]
// CHECK-NOT:     tile.make_finite
// CHECK:         scf.for
// CHECK:           tile.ring.put %{{.*}} to %[[DS]]
// CHECK:           tile.ring.acquire %[[SUMS]]
// CHECK-NEXT:      %[[F:.*]] = tile.is_finite %[[K]]
// CHECK-NEXT:      %[[FINITE:.*]] = tile.ring.copy_finite %[[K]] unless %[[F]] in %[[SUMS]]
// CHECK-NEXT:      tile.mma_async %{{.*}}, %[[FINITE]] transpose_a divide_columns
// CHECK-NOT:       tile.ring.acquire
// CHECK:           tile.ring.put %{{.*}} to %[[SUMS]]
gpu.module @m {
  gpu.func @wide_gradients(%m: !memory, %sums: memref<?x96xf32>, %counts: memref<?xi32>, %ds: !scores, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : !dk
    %zero_v = arith.constant dense<0.0> : !dv
    %k = tile.fetch %m[%c0, %c0] : !memory to !keys
    %f = tile.fetch %m[%c0, %c0] finite : !memory to !keys
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero, %b = %zero_v) -> (!dk, !dv) {
      %s = tile.mma_async %k, %k transpose_b : !keys, !keys -> !tile.pending<tensor<128x128xf32, #tile.fragment<8>>>
      %e = tile.mma_wait %s : !tile.pending<tensor<128x128xf32, #tile.fragment<8>>>
      %t = tile.share %ds : !scores to !tile.smem<128x64xbf16, swizzle = 128>
      %p = tile.mma_async %t, %f transpose_a divide_columns : !tile.smem<128x64xbf16, swizzle = 128>, !keys -> !tile.pending<!part>
      %w = tile.mma_wait %p : !tile.pending<!part>
      %q = tile.share %w : !part to !tile.smem<128x96xf32, swizzle = 128>
      tile.add_in_order %q, %sums[%i] rank(%i) of %counts[%i] : !tile.smem<128x96xf32, swizzle = 128> to memref<?x96xf32>, memref<?xi32>
      scf.yield %a, %b : !dk, !dv
    }
    gpu.return
  }
}
