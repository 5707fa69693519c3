// Block programs become loops over their blocks; register tiles, tensors; rings,
// calls. What values come out, test/Run/emulate/values.test checks.
// RUN: flash-opt %s --split-input-file --tile-emulate | FileCheck %s

// The blocks, x fastest, and what a kernel may read of its grid.
// CHECK-LABEL: func.func @grid(
// CHECK-SAME: %{{.*}}: i32, %{{.*}}: i32, %[[Z:.*]]: i32, %[[OUT:.*]]: memref
// CHECK: %[[ZI:.*]] = arith.index_cast %[[Z]] : i32 to index
// CHECK: scf.forall (%[[BZ:.*]], %[[BY:.*]], %[[BX:.*]]) in (%[[ZI]], %{{.*}}, %{{.*}}) {
// CHECK:   %[[PLANE:.*]] = arith.muli %[[BZ]], %{{.*}}
// CHECK:   %[[LINE:.*]] = arith.addi %[[PLANE]], %[[BY]]
// CHECK:   %[[FIRST:.*]] = arith.muli %[[LINE]], %{{.*}}
// CHECK:   %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[BX]]
// CHECK:   %[[CAST:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:   %[[BLOCK:.*]] = llvm.call @flash_emulation_begin(%[[CAST]])
// CHECK:   memref.store %{{.*}}, %[[OUT]][%[[BX]], %[[BY]], %[[ZI]]]
// CHECK:   llvm.call @flash_emulation_end(%[[BLOCK]])
// CHECK: mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]
// CHECK-NOT: gpu.
module attributes {gpu.container_module} {
  func.func @grid(%x: i32, %y: i32, %z: i32, %out: memref<?x?x?xf32>) {
    gpu.launch_func @kernels::@k blocks in (%x, %y, %z) threads in (%x, %x, %x) : i32 args(%out : memref<?x?x?xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%out: memref<?x?x?xf32>) kernel {
      %i = gpu.block_id x
      %j = gpu.block_id y
      %m = gpu.grid_dim z
      %f = arith.constant 0.0 : f32
      memref.store %f, %out[%i, %j, %m] : memref<?x?x?xf32>
      gpu.return
    }
  }
}

// -----

// Steps of a ring. Each call ends with the location of its operation.
// CHECK-DAG: constant @[[WAIT:.*]]("tile.ring.wait at {{.*}}emulate.mlir:[[@LINE+33]]:12\00")
// CHECK-DAG: constant @[[RINGAT:.*]]("ring at {{.*}}emulate.mlir:[[@LINE+29]]:15\00")
// CHECK-LABEL: func.func @ring(
// CHECK: %[[SLOTS:.*]] = memref.alloc() : memref<2x16x8xf16>
// CHECK: %[[PLACE:.*]] = llvm.mlir.addressof @[[RINGAT]]
// CHECK: %[[RING:.*]] = llvm.call @flash_emulation_ring(%[[BLOCK:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PLACE]])
// CHECK: llvm.call @flash_emulation_acquire(%[[BLOCK]], %[[RING]], %{{.*}}, %{{.*}})
// Every index of the source is checked, then the rows that exist.
// CHECK-COUNT-2: llvm.call @flash_emulation_check_range
// CHECK: memref.extract_strided_metadata
// CHECK: llvm.call @flash_emulation_copy_async(%[[BLOCK]], %[[RING]], %{{.*}})
// CHECK: %[[WAITAT:.*]] = llvm.mlir.addressof @[[WAIT]]
// CHECK: %[[LEASE:.*]] = llvm.call @flash_emulation_wait(%[[BLOCK]], %[[RING]], %{{.*}}, %[[WAITAT]])
// CHECK: %[[SLOT:.*]] = arith.remui
// CHECK: %[[TILE:.*]] = memref.subview %[[SLOTS]][%[[SLOT]], 0, 0] [1, 16, 8]
// CHECK: llvm.call @flash_emulation_check_lease(%[[BLOCK]], %[[LEASE]], %{{.*}})
// The tile is copied where it is read, before its stage may change.
// CHECK: linalg.generic {{.*}} ins(%[[TILE]] : {{.*}}) outs(%[[COPY:.*]] : memref<16x8xf16>)
// CHECK: bufferization.to_tensor %[[COPY]] restrict writable
// CHECK: llvm.call @flash_emulation_release(%[[BLOCK]], %[[RING]], %{{.*}})
// CHECK: tensor.extract_slice
// CHECK: bufferization.materialize_in_destination
module attributes {gpu.container_module} {
  func.func @ring(%m: memref<?x?x8xf16>, %n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?x?x8xf16>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?x?x8xf16>, %n: index) kernel {
      %ring = tile.ring : !tile.ring<2, !tile.smem<16x8xf16, swizzle = 32>>
      tile.ring.acquire %ring[%n] : !tile.ring<2, !tile.smem<16x8xf16, swizzle = 32>>
      tile.copy_async %m[%n, %n] rows(%n) to %ring[%n] : memref<?x?x8xf16> to !tile.ring<2, !tile.smem<16x8xf16, swizzle = 32>>
      %t = tile.ring.wait %ring[%n] : !tile.ring<2, !tile.smem<16x8xf16, swizzle = 32>>
      %x = tile.load %t : !tile.smem<16x8xf16, swizzle = 32> to tensor<16x8xf16, #tile.fragment<1>>
      tile.ring.release %ring[%n] : !tile.ring<2, !tile.smem<16x8xf16, swizzle = 32>>
      tile.store %x, %m[%n, %n] : tensor<16x8xf16, #tile.fragment<1>> to memref<?x?x8xf16>
      gpu.return
    }
  }
}

// -----

// A product reads its operands when it is started, and must still be allowed to
// when it is waited for, here in the next iteration of a loop.
// CHECK-LABEL: func.func @product(
// CHECK: %[[LEASE:.*]] = llvm.call @flash_emulation_wait
// CHECK: llvm.call @flash_emulation_check_lease(%{{.*}}, %[[LEASE]], %{{.*}})
// CHECK: arith.extf
// CHECK: %[[D:.*]] = linalg.generic {{.*}}"reduction"]
// CHECK: scf.for {{.*}} iter_args(%[[PENDING:.*]] = %[[D]], %{{.*}} = %{{.*}}, %[[LEASEB:.*]] = %[[LEASE]]) -> (tensor<16x16xf32>, i64, i64)
// CHECK:   llvm.call @flash_emulation_check_lease(%{{.*}}, %[[LEASEB]], %{{.*}})
// CHECK:   linalg.generic {{.*}} outs(%[[PENDING]] : tensor<16x16xf32>)
// CHECK:   scf.yield {{.*}} : tensor<16x16xf32>, i64, i64
!smem = !tile.smem<16x16xbf16, swizzle = 32>
!sum = tensor<16x16xf32, #tile.fragment<1>>
module attributes {gpu.container_module} {
  func.func @product(%n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%n: index) kernel {
      %ring = tile.ring : !tile.ring<1, !smem>
      %t = tile.ring.wait %ring[%n] : !tile.ring<1, !smem>
      %a = arith.constant dense<1.0> : tensor<16x16xbf16, #tile.fragment<1>>
      %p = tile.mma_async %a, %t : tensor<16x16xbf16, #tile.fragment<1>>, !smem -> !tile.pending<!sum>
      %last = scf.for %i = %n to %n step %n iter_args(%q = %p) -> !tile.pending<!sum> {
        %d = tile.mma_wait %q : !tile.pending<!sum>
        %r = tile.mma_async %a, %t add %d : tensor<16x16xbf16, #tile.fragment<1>>, !smem, !sum -> !tile.pending<!sum>
        scf.yield %r : !tile.pending<!sum>
      }
      gpu.return
    }
  }
}

// -----

// CHECK-DAG: #[[LANES:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @registers(
// CHECK: %[[TILE:.*]] = memref.alloc() : memref<16x8xf32>
// CHECK: llvm.call @flash_emulation_fetch(
// No ring, nothing to check.
// CHECK-NOT: check_lease
// CHECK: %[[X:.*]] = bufferization.to_tensor
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<16x4xf32>
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2, 3]] output_shape [16, 1, 4, 2]
// CHECK: %[[FOLDED:.*]] = linalg.generic {{.*}}#[[LANES]]{{.*}} ins(%[[PARTS]] {{.*}}) outs(%[[ZERO]]
// CHECK:   arith.addf
// CHECK-COUNT-4: tensor.extract_slice %[[FOLDED]][0, {{[0-3]}}] [16, 1] [1, 1]
// CHECK: %[[REDUCED:.*]] = linalg.generic
// CHECK-COUNT-3: arith.maxnumf
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}}#[[ROWS]]{{.*}} ins(%[[REDUCED]]
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[WIDE]] : tensor<16x8xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Y]]
// CHECK:   linalg.index 0
// CHECK:   linalg.index 1
// CHECK:   arith.select
!x = tensor<16x8xf32, #tile.fragment<1>>
module attributes {gpu.container_module} {
  func.func @registers(%m: memref<?x8xf32>, %n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?x8xf32>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?x8xf32>, %n: index) kernel {
      %t = tile.fetch %m[%n] : memref<?x8xf32> to !tile.smem<16x8xf32, swizzle = 32>
      %x = tile.load %t : !tile.smem<16x8xf32, swizzle = 32> to !x
      %zero = arith.constant dense<0.0> : tensor<16x4xf32, #tile.lanes<1>>
      %l = tile.fold add %x into %zero : !x into tensor<16x4xf32, #tile.lanes<1>>
      %r = tile.reduce max %l : tensor<16x4xf32, #tile.lanes<1>> to tensor<16xf32, #tile.rows<1>>
      %w = tile.broadcast %r : tensor<16xf32, #tile.rows<1>> to !x
      %y = arith.mulf %x, %w : !x
      %f = arith.constant 0.0 : f32
      %z = tile.map %y : (!x) -> !x {
      ^bb0(%e: f32, %i: index, %j: index):
        %keep = arith.cmpi sle, %j, %i : index
        %s = arith.select %keep, %e, %f : f32
        tile.yield %s : f32
      }
      tile.store %z, %m[%n] : !x to memref<?x8xf32>
      gpu.return
    }
  }
}

// -----

// Roles are iterations that run at the same time. Ping-pong has nothing to order.
// CHECK-LABEL: func.func @roles(
// CHECK:      %[[BLOCK:.*]] = llvm.call @flash_emulation_begin
// CHECK:      llvm.call @flash_emulation_ring
// CHECK:      %[[TWO:.*]] = arith.index_cast %c2{{.*}} : index to i64
// CHECK-NEXT: llvm.call @flash_emulation_start_roles(%[[BLOCK]], %[[TWO]])
// CHECK:      scf.forall (%[[ROLE:.*]]) in (2) {
// CHECK:        %[[CONSUMES:.*]] = arith.cmpi eq, %[[ROLE]], %c0
// CHECK-NEXT:   scf.if %[[CONSUMES]] {
// CHECK:          llvm.call @flash_emulation_wait(%[[BLOCK]]
// CHECK-NOT:      tile.ping_pong
// CHECK:          llvm.call @flash_emulation_release(%[[BLOCK]]
// CHECK:        } else {
// CHECK:          llvm.call @flash_emulation_acquire(%[[BLOCK]]
// CHECK:          llvm.call @flash_emulation_copy_async(%[[BLOCK]]
// CHECK:        }
// CHECK-NEXT:   llvm.call @flash_emulation_finish_role(%[[BLOCK]])
// CHECK-NEXT: } {mapping = [#gpu.warpgroup<linear_dim_0>]}
// CHECK:      %[[ONE:.*]] = arith.index_cast %c1{{.*}} : index to i64
// CHECK-NEXT: llvm.call @flash_emulation_start_roles(%[[BLOCK]], %[[ONE]])
// CHECK:      llvm.call @flash_emulation_end(%[[BLOCK]])
module attributes {gpu.container_module} {
  func.func @roles(%m: memref<?x64xf16>, %n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?x64xf16>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?x64xf16>, %n: index) kernel {
      %ring = tile.ring : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
      tile.warp_specialize @consumer(warps = 8, registers = 240) {
        %t = tile.ring.wait %ring[%n] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        tile.ping_pong.wait
        tile.ping_pong.arrive
        tile.ring.release %ring[%n] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
      } @producer(warps = 1, registers = 24) {
        tile.ring.acquire %ring[%n] : !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
        tile.copy_async %m[%n] to %ring[%n] : memref<?x64xf16> to !tile.ring<2, !tile.smem<64x64xf16, swizzle = 128>>
      }
      gpu.return
    }
  }
}

// -----

// Whether one of all rows says so.
// CHECK-LABEL: func.func @any(
// CHECK: %[[NONE:.*]] = linalg.fill {{.*}} -> tensor<i1>
// CHECK: %[[ANY:.*]] = linalg.generic {{.*}}iterator_types = ["reduction", "reduction"]{{.*}} ins(%{{.*}} : tensor<64x4xi1>) outs(%[[NONE]] : tensor<i1>)
// CHECK:   arith.ori
// CHECK: tensor.extract %[[ANY]][] : tensor<i1>
module attributes {gpu.container_module} {
  func.func @any(%m: memref<?xi1>, %n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?xi1>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?xi1>, %n: index) kernel {
      %c0 = arith.constant 0 : index
      %zero = arith.constant dense<0.0> : tensor<64x4xf32, #tile.lanes<4>>
      %x = arith.cmpf ogt, %zero, %zero : tensor<64x4xf32, #tile.lanes<4>>
      %any = tile.any %x : tensor<64x4xi1, #tile.lanes<4>>
      memref.store %any, %m[%c0] : memref<?xi1>
      gpu.return
    }
  }
}

// -----

// The sum of a column's rows becomes a matrix again; a map goes through several
// tiles.
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @columns(
// CHECK: %[[X:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<8xf32>)
// CHECK:   memref.load
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}}#[[COLUMN]]{{.*}} ins(%[[X]] : tensor<8xf32>) outs(%{{.*}} : tensor<16x8xf32>)
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<8xf32>
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}#[[COLUMN]]{{.*}}["reduction", "parallel"]} ins(%[[WIDE]] : tensor<16x8xf32>) outs(%[[ZERO]] : tensor<8xf32>)
// CHECK:   arith.addf
// CHECK: %[[WIDESUM:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[WIDE]], %[[WIDESUM]] : tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK: ^bb0(%[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32, %{{.*}}: f32):
// CHECK:   arith.subf %[[A]], %[[B]]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<16xf32>)
// CHECK:   linalg.index 0
// CHECK:   memref.load
!x = tensor<16x8xf32, #tile.fragment<1>>
!columns = tensor<8xf32, #tile.columns<1>>
!rows = tensor<16xf32, #tile.rows<1>>
module attributes {gpu.container_module} {
  func.func @columns(%m: memref<?x8xf32>, %v: memref<?xf32>, %n: index) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?x8xf32>, %v : memref<?xf32>, %n : index)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?x8xf32>, %v: memref<?xf32>, %n: index) kernel {
      %c = tile.map : () -> !columns {
      ^bb0(%j: index):
        %e = memref.load %v[%j] : memref<?xf32>
        tile.yield %e : f32
      }
      %x = tile.broadcast %c : !columns to !x
      %s = tile.reduce_rows add %x : !x to !columns
      %w = tile.broadcast %s : !columns to !x
      %z = tile.map %x, %w : (!x, !x) -> !x {
      ^bb0(%a: f32, %b: f32, %i: index, %j: index):
        %d = arith.subf %a, %b : f32
        tile.yield %d : f32
      }
      tile.store %z, %m[%n] : !x to memref<?x8xf32>
      %r = tile.map : () -> !rows {
      ^bb0(%i: index):
        %e = memref.load %v[%i] : memref<?xf32>
        tile.yield %e : f32
      }
      tile.store %r, %v[%n] : !rows to memref<?xf32>
      gpu.return
    }
  }
}

// -----

// Rows are read where they exist, else they are the padding; a reduction is of
// whole blocks of lanes, filled up with what changes nothing.
// CHECK-LABEL: func.func @warp_rows(
// CHECK: %[[X:.*]] = tensor.generate
// CHECK:   %[[ROW:.*]] = arith.cmpi slt
// CHECK:   %[[COLUMN:.*]] = arith.cmpi slt
// CHECK:   %[[EXISTS:.*]] = arith.andi %[[ROW]], %[[COLUMN]]
// CHECK:   scf.if %[[EXISTS]] -> (f32) {
// CHECK:     memref.load
// CHECK:   } else {
// CHECK:     scf.yield %[[P:.*]] : f32
// CHECK: } : tensor<2x70xf32>
// CHECK: %[[WHOLE:.*]] = tensor.pad %[[X]] low[0, 0] high[0, 26]
// CHECK: } : tensor<2x70xf32> to tensor<2x96xf32>
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[WHOLE]] {{.*}} into tensor<2x3x32x1xf32>
// CHECK: %[[LANES:.*]] = linalg.generic {{.*}} ins(%[[PARTS]] : {{.*}}) outs(%{{.*}} : tensor<2x32xf32>)
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]} ins(%[[LANES]] : tensor<2x32xf32>) outs(%{{.*}} : tensor<2xf32>)
module attributes {gpu.container_module} {
  func.func @warp_rows(%m: memref<?x?xf32>, %v: memref<?xf32>, %n: index, %p: f32) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%m : memref<?x?xf32>, %v : memref<?xf32>, %n : index, %p : f32)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%m: memref<?x?xf32>, %v: memref<?xf32>, %n: index, %p: f32) kernel {
      %x = tile.read %m[%n, %n] rows(%n) columns(%n) padding(%p : f32) : memref<?x?xf32> to tensor<2x70xf32, #tile.warp_rows<2, 1>>
      %none = arith.constant dense<0xFF800000> : tensor<2x32xf32, #tile.warp_rows<2, 1>>
      %f = tile.fold max %x into %none : tensor<2x70xf32, #tile.warp_rows<2, 1>> into tensor<2x32xf32, #tile.warp_rows<2, 1>>
      %r = tile.reduce max %f : tensor<2x32xf32, #tile.warp_rows<2, 1>> to tensor<2xf32, #tile.warp_rows<2, 1>>
      tile.store %r, %v[%n] : tensor<2xf32, #tile.warp_rows<2, 1>> to memref<?xf32>
      gpu.return
    }
  }
}

// -----

// The first role of the block that calls claims the tile of the step; the loop ends behind the last.
// CHECK-LABEL: func.func @claims(
// CHECK-SAME:    %[[TILES:.*]]: index, %[[C:.*]]: memref<?xi32>
// CHECK:         scf.while (%[[STEP:.*]] = %c0{{.*}})
// CHECK:           memref.extract_aligned_pointer_as_index %[[C]]
// CHECK:           %[[ANY:.*]] = llvm.call @flash_emulation_claim(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : ({{.*}}) -> i64
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %[[ANY]] : i64 to index
// CHECK:           %[[IS_LEFT:.*]] = arith.cmpi ult, %[[NUMBER]], %[[TILES]]
// CHECK:           scf.condition(%[[IS_LEFT]]) %[[STEP]], %[[NUMBER]]
// CHECK:         ^bb0(%{{.*}}: index, %[[TAKEN:.*]]: index):
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[TAKEN]]]
module attributes {gpu.container_module} {
  func.func @claims(%n: index, %c: memref<?xi32>, %m: memref<?xf32>) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index, %c : memref<?xi32>, %m : memref<?xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%tiles: index, %c: memref<?xi32>, %m: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %f = arith.constant 0.0 : f32
      scf.for %i = %c0 to %tiles step %c1 {
        %t = tile.claim %i of %c[%c0] : memref<?xi32>
        memref.store %f, %m[%t] : memref<?xf32>
      }
      gpu.return
    }
  }
}

// -----

// What a claim shares is computed with the number, of a tile that there is.
// CHECK-LABEL: func.func @shares(
// CHECK-SAME:    %[[TILES:.*]]: index, %[[C:.*]]: memref<?xi32>, %[[OFFSETS:.*]]: memref<?xindex>
// CHECK:         scf.while
// CHECK:           %[[NUMBER:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:           %[[IS_TILE:.*]] = arith.cmpi ult, %[[NUMBER]], %[[TILES]]
// CHECK:           %[[SHARED:.*]] = scf.if %[[IS_TILE]]
// CHECK:             %[[ROW:.*]] = memref.load %[[OFFSETS]][%[[NUMBER]]]
// CHECK:             scf.yield %[[ROW]]
// CHECK:           } else {
// CHECK:             scf.yield %c0
// CHECK:           scf.condition(%{{.*}}) %{{.*}}, %[[NUMBER]], %[[SHARED]]
// CHECK:         ^bb0(%{{.*}}: index, %{{.*}}: index, %[[TAKEN:.*]]: index):
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[TAKEN]]]
module attributes {gpu.container_module} {
  func.func @shares(%n: index, %c: memref<?xi32>, %o: memref<?xindex>, %m: memref<?xf32>) {
    gpu.launch_func @kernels::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index, %c : memref<?xi32>, %o : memref<?xindex>, %m : memref<?xf32>)
    return
  }
  gpu.module @kernels {
    gpu.func @k(%tiles: index, %c: memref<?xi32>, %o: memref<?xindex>, %m: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %f = arith.constant 0.0 : f32
      scf.for %i = %c0 to %tiles step %c1 {
        %t, %row = tile.claim %i of %c[%c0] shares {
        ^bb0(%number: index):
          %first = memref.load %o[%number] : memref<?xindex>
          tile.share_scalars %first : index
        } : memref<?xi32> -> index
        memref.store %f, %m[%row] : memref<?xf32>
      }
      gpu.return
    }
  }
}
