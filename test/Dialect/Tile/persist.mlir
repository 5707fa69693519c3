// A block does the work of one block after the other.
// RUN: flash-opt %s --split-input-file --flash-attach-target=keys=multiprocessors=4 --tile-persist | FileCheck %s

// The launch has no more blocks than multiprocessors; the kernel gets the number of
// whole waves, how many blocks are left over, and which of the launch's is the first
// to do one of these: in a wave that goes backwards they are the last.
// CHECK-LABEL: func.func @launch(
// CHECK-SAME:    %[[BLOCKS:[a-z0-9]+]]: index
// CHECK:         %[[MOST:.*]] = arith.constant 4 : index
// CHECK:         %[[GRID:.*]] = arith.minui %[[BLOCKS]], %[[MOST]] : index
// CHECK:         %[[WHOLE:.*]] = arith.divui %[[BLOCKS]]
// CHECK:         %[[REST:.*]] = arith.remui %[[BLOCKS]]
// CHECK:         %[[FROM_END:.*]] = arith.subi %[[GRID]], %[[REST]]
// CHECK:         %[[FIRST:.*]] = arith.select %{{.*}}, %{{.*}}, %[[FROM_END]]
// CHECK:         gpu.launch_func @m::@kernel blocks in (%[[GRID]], %c1, %c1) {{.*}} %[[WHOLE]] : index, %[[REST]] : index, %[[FIRST]] : index)

// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    %[[M:[a-z0-9]+]]: memref<?xf32>, %[[WHOLE:[a-z0-9]+]]: index, %[[REST:[a-z0-9]+]]: index, %[[FIRST:[a-z0-9]+]]: index
// What is the same for all blocks stays outside.
// CHECK:         %[[F:.*]] = arith.constant 1.0
// CHECK:         %[[ID:.*]] = gpu.block_id x
// CHECK:         %[[SIZE:.*]] = gpu.grid_dim x
// CHECK:         %[[LEFT:.*]] = arith.subi %[[ID]], %[[FIRST]]
// CHECK:         %[[IS_LEFT:.*]] = arith.cmpi ult, %[[LEFT]], %[[REST]]
// CHECK:         %[[MORE:.*]] = arith.addi %[[WHOLE]], %
// CHECK:         %[[ROUNDS:.*]] = arith.select %[[IS_LEFT]], %[[MORE]], %[[WHOLE]]
// CHECK:         scf.for %[[ROUND:.*]] = %{{.*}} to %[[ROUNDS]]
// Every other wave goes backwards.
// CHECK:           %[[PLACE:.*]] = arith.select
// CHECK:           %[[BEFORE:.*]] = arith.muli %[[ROUND]], %[[SIZE]]
// CHECK:           %[[NUMBER:.*]] = arith.addi %[[BEFORE]], %[[PLACE]]
// CHECK:           memref.store %[[F]], %[[M]][%[[NUMBER]]]
// CHECK:         gpu.return
module attributes {gpu.container_module} {
  func.func @launch(%n: index, %m: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
      %f = arith.constant 1.0 : f32
      %i = gpu.block_id x
      memref.store %f, %m[%i] : memref<?xf32>
      gpu.return
    }
  }
}

// -----

// Where blocks share a multiprocessor, there are as many more.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[MOST:.*]] = arith.constant 12 : index
// CHECK:         arith.minui %{{.*}}, %[[MOST]] : index
module attributes {gpu.container_module} {
  func.func @shared(%n: index, %m: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 3, features = persistent>} {
      %f = arith.constant 1.0 : f32
      %i = gpu.block_id x
      memref.store %f, %m[%i] : memref<?xf32>
      gpu.return
    }
  }
}

// -----

// What tiles need of sizes is computed at the launch: constant memory keeps it for
// them. Sizes are there already, and conditions stay.
// CHECK-LABEL: func.func @scalars(
// CHECK-SAME:    %[[BLOCKS:[a-z0-9]+]]: index, %[[M:[a-z0-9]+]]: memref<?xf32>, %[[K:[a-z0-9]+]]: index
// CHECK:         %[[DIM:.*]] = memref.dim %[[M]], %
// CHECK:         %[[PART:.*]] = arith.divui %[[DIM]], %[[K]] : index
// CHECK:         %[[IS_ODD:.*]] = arith.cmpi
// CHECK:         %[[CHOSEN:.*]] = arith.select %[[IS_ODD]], %[[PART]], %[[K]] : index
// CHECK:         gpu.launch_func {{.*}} %[[CHOSEN]] : index)
// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    %[[M:[a-z0-9]+]]: memref<?xf32>, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[CHOSEN:[a-z0-9]+]]: index)
// CHECK:         %[[DIM:.*]] = memref.dim %[[M]]
// CHECK:         %[[IS_ODD:.*]] = arith.cmpi
// CHECK:         scf.for
// CHECK:           %[[I:.*]] = arith.addi %{{.*}}, %[[CHOSEN]] : index
// CHECK:           %[[J:.*]] = arith.addi %[[I]], %[[DIM]] : index
// CHECK:           %[[K:.*]] = arith.select %[[IS_ODD]], %[[I]], %[[J]] : index
// CHECK:           memref.store %{{.*}}, %[[M]][%[[K]]]
module attributes {gpu.container_module} {
  func.func @scalars(%n: index, %m: memref<?xf32>, %k: index) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>, %k : index)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: memref<?xf32>, %k: index) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
      %f = arith.constant 1.0 : f32
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %dim = memref.dim %m, %c0 : memref<?xf32>
      %part = arith.divui %dim, %k : index
      %isOdd = arith.cmpi eq, %part, %c3 : index
      %chosen = arith.select %isOdd, %part, %k : index
      %id = gpu.block_id x
      %i = arith.addi %id, %chosen : index
      %j = arith.addi %i, %dim : index
      %l = arith.select %isOdd, %i, %j : index
      memref.store %f, %m[%l] : memref<?xf32>
      gpu.return
    }
  }
}

// -----

// What only tiles need goes to them, and compares what the launch has computed: the
// guard of a loop has the loop's bounds.
// CHECK-LABEL: func.func @guard(
// CHECK-LABEL: gpu.func @kernel(
// CHECK-SAME:    %[[END:[a-z0-9]+]]: index)
// CHECK:         scf.for
// CHECK:           %[[ENTERED:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : index
// CHECK:           scf.if %[[ENTERED]]
// CHECK:             scf.for %{{.*}} = %{{.*}} to %[[END]]
module attributes {gpu.container_module} {
  func.func @guard(%n: index, %m: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@kernel blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%m : memref<?xf32>)
    return
  }
  gpu.module @m {
    gpu.func @kernel(%m: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
      %f = arith.constant 1.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %dim = memref.dim %m, %c0 : memref<?xf32>
      %end = arith.divui %dim, %c3 : index
      %entered = arith.cmpi slt, %c0, %end : index
      %id = gpu.block_id x
      scf.if %entered {
        scf.for %i = %c0 to %end step %c1 {
          memref.store %f, %m[%id] : memref<?xf32>
        }
      }
      gpu.return
    }
  }
}

// -----

// Without the attribute nothing changes.
// CHECK-LABEL: func.func @other
// CHECK-NOT:   arith.minui
// CHECK-LABEL: gpu.func @kernel
// CHECK-NOT:   scf.for
module attributes {gpu.container_module} {
  func.func @other(%n: index) {
    gpu.launch_func @m::@kernel blocks in (%n, %n, %n) threads in (%n, %n, %n)
    return
  }
  gpu.module @m {
    gpu.func @kernel() kernel {
      gpu.return
    }
  }
}

// -----

// Where blocks add in order, they claim their tiles, which the last of the counts counts.
// CHECK-LABEL: func.func @in_order(
// CHECK-SAME:    %[[BLOCKS:[a-z0-9]+]]: index
// CHECK:         %[[GRID:.*]] = arith.minui %[[BLOCKS]],
// There is a count besides those of tiles.
// CHECK:         %[[COUNTS:.*]] = memref.dim %{{.*}}, %c1{{.*}} : memref<?x?xi32>
// CHECK:         %[[SUMS:.*]] = memref.dim %{{.*}}, %c1{{.*}} : memref<?x?x?x64xf32>
// CHECK:         %[[IS_MORE:.*]] = arith.cmpi sgt, %[[COUNTS]], %[[SUMS]]
// CHECK:         cf.assert %[[IS_MORE]], "the kernel 'ordered' claims its tiles, which takes a count more than there are tiles to add to"
// CHECK:         gpu.launch_func @m::@ordered blocks in (%[[GRID]], %c1, %c1) {{.*}} %[[BLOCKS]] : index)
// CHECK-LABEL: gpu.func @ordered(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: memref<?x?xi32>, %[[TILES:[a-z0-9]+]]: index
// CHECK:         %[[ROWS:.*]] = memref.dim %[[C]], %c0
// CHECK:         %[[ROW:.*]] = arith.subi %[[ROWS]], %c1
// CHECK:         %[[COLUMNS:.*]] = memref.dim %[[C]], %c1
// CHECK:         %[[COLUMN:.*]] = arith.subi %[[COLUMNS]], %c1
// CHECK:         scf.for %[[STEP:.*]] = %c0{{.*}} to %[[TILES]]
// CHECK-NEXT:      %[[NUMBER:.*]] = tile.claim %[[STEP]] of %[[C]][%[[ROW]], %[[COLUMN]]]
// CHECK-NEXT:      tile.add_in_order %{{.*}} rank(%[[NUMBER]])
module attributes {gpu.container_module} {
  func.func @in_order(%n: index, %t: !tile.smem<64x64xf32, swizzle = 128>, %s: memref<?x?x?x64xf32>, %c: memref<?x?xi32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@ordered blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%t : !tile.smem<64x64xf32, swizzle = 128>, %s : memref<?x?x?x64xf32>, %c : memref<?x?xi32>)
    return
  }
  gpu.module @m {
    gpu.func @ordered(%t: !tile.smem<64x64xf32, swizzle = 128>, %s: memref<?x?x?x64xf32>, %c: memref<?x?xi32>) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
      %c0 = arith.constant 0 : index
      %i = gpu.block_id x
      tile.add_in_order %t, %s[%c0, %c0, %c0] rank(%i) of %c[%c0, %c0] : !tile.smem<64x64xf32, swizzle = 128> to memref<?x?x?x64xf32>, memref<?x?xi32>
      gpu.return
    }
  }
}

// -----

// With claim_tiles blocks have a count of their own, which a kernel before sets to zero. What depends on memory is computed where
// the tile is claimed; conditions of it are not shared.
// CHECK-LABEL: func.func @claims(
// CHECK-SAME:    %[[BLOCKS:[a-z0-9]+]]: index
// CHECK:         %[[GRID:.*]] = arith.minui %[[BLOCKS]],
// CHECK:         %[[COUNT:.*]] = memref.alloc() : memref<1xi32>
// CHECK:         gpu.launch_func @m::@zero_claims blocks in (%[[ONE:.*]], %[[ONE]], %[[ONE]]) threads in (%[[ONE]], %[[ONE]], %[[ONE]]) args(%[[COUNT]] : memref<1xi32>)
// CHECK:         gpu.launch_func @m::@rows blocks in (%[[GRID]], %c1, %c1) {{.*}} %[[BLOCKS]] : index, %[[COUNT]] : memref<1xi32>)
// Each launch has a count of its own, and all have the kernel.
// CHECK:         %[[OTHER:.*]] = memref.alloc() : memref<1xi32>
// CHECK:         gpu.launch_func @m::@zero_claims {{.*}} args(%[[OTHER]] : memref<1xi32>)
// CHECK:         gpu.launch_func @m::@rows {{.*}} %[[OTHER]] : memref<1xi32>)
// CHECK-LABEL: gpu.func @rows(
// CHECK-SAME:    %[[OFFSETS:[a-z0-9]+]]: memref<?xi32>, %{{.*}}, %{{.*}}, %[[TILES:[a-z0-9]+]]: index, %[[C:[a-z0-9]+]]: memref<1xi32>
// CHECK:         scf.for %[[STEP:.*]] = %c0{{.*}} to %[[TILES]]
// CHECK-NEXT:      %{{.*}}, %[[ROW:.*]] = tile.claim %[[STEP]] of %[[C]][%c0{{.*}}] shares {
// CHECK-NEXT:      ^bb0(%[[NUMBER:.*]]: index):
// CHECK-NEXT:        %[[OFFSET:.*]] = memref.load %[[OFFSETS]][%[[NUMBER]]]
// CHECK-NEXT:        %[[FIRST:.*]] = arith.index_cast %[[OFFSET]]
// CHECK:             tile.share_scalars %[[FIRST]] : index
// CHECK-NEXT:      } : memref<1xi32> -> index
// CHECK-NEXT:      %[[IS_FIRST:.*]] = arith.cmpi eq, %[[ROW]], %c0
// CHECK-NEXT:      scf.if %[[IS_FIRST]]
// CHECK:             tile.store %{{.*}}, %{{.*}}[%[[ROW]]]
// CHECK:       gpu.func @zero_claims(%[[C:.*]]: memref<1xi32>) kernel
// CHECK:         memref.store %c0_i32, %[[C]][%c0]
// CHECK-NOT:   gpu.func
module attributes {gpu.container_module} {
  func.func @claims(%n: index, %o: memref<?xi32>, %m: memref<?x64xf32>, %s: !tile.smem<64x64xf16, swizzle = 128>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@rows blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%o : memref<?xi32>, %m : memref<?x64xf32>, %s : !tile.smem<64x64xf16, swizzle = 128>)
    gpu.launch_func @m::@rows blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%o : memref<?xi32>, %m : memref<?x64xf32>, %s : !tile.smem<64x64xf16, swizzle = 128>)
    return
  }
  gpu.module @m {
    gpu.func @rows(%o: memref<?xi32>, %m: memref<?x64xf32>, %s: !tile.smem<64x64xf16, swizzle = 128>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
      %c0 = arith.constant 0 : index
      %i = gpu.block_id x
      %offset = memref.load %o[%i] : memref<?xi32>
      %row = arith.index_cast %offset : i32 to index
      %isFirst = arith.cmpi eq, %row, %c0 : index
      scf.if %isFirst {
        %product = tile.mma_async %s, %s transpose_b warpgroup : !tile.smem<64x64xf16, swizzle = 128>, <64x64xf16, swizzle = 128> -> <tensor<64x64xf32, #tile.fragment<4>>>
        %x = tile.mma_wait %product : <tensor<64x64xf32, #tile.fragment<4>>>
        tile.store %x, %m[%row] : tensor<64x64xf32, #tile.fragment<4>> to memref<?x64xf32>
      }
      gpu.return
    }
  }
}

// -----

// A tile whose stores have no rows is claimed by nobody; one that writes otherwise is, whatever its rows.
// CHECK-LABEL: gpu.func @some(
// CHECK:         tile.claim
// CHECK:           %[[ROWS:.*]] = arith.index_cast
// CHECK:           %[[NONE:.*]] = arith.cmpi eq, %[[ROWS]], %c0
// CHECK:           tile.share_scalars %[[ROWS]] unless %[[NONE]] : index
// CHECK-LABEL: gpu.func @all(
// CHECK:         tile.claim
// CHECK:           tile.share_scalars %{{.*}} : index
// CHECK-LABEL: gpu.func @others(
// CHECK:         tile.claim
// CHECK:           tile.share_scalars %{{.*}} : index
!m = memref<?x64xf32>
!s = !tile.smem<64x64xf16, swizzle = 128>
!x = tensor<64x64xf32, #tile.fragment<4>>
module attributes {gpu.container_module} {
  func.func @rows(%n: index, %o: memref<?xi32>, %m: !m, %s: !s) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@some blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<?xi32>, %m : !m, %s : !s)
    gpu.launch_func @m::@all blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<?xi32>, %m : !m, %s : !s)
    gpu.launch_func @m::@others blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<?xi32>, %m : !m, %s : !s)
    return
  }
  gpu.module @m {
    gpu.func @some(%o: memref<?xi32>, %m: !m, %s: !s) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
      %i = gpu.block_id x
      %offset = memref.load %o[%i] : memref<?xi32>
      %rows = arith.index_cast %offset : i32 to index
      %product = tile.mma_async %s, %s transpose_b warpgroup : !s, <64x64xf16, swizzle = 128> -> <!x>
      %x = tile.mma_wait %product : <!x>
      tile.store %x, %m[%i] rows(%rows) : !x to !m
      tile.store %x, %m[%i] rows(%rows) : !x to !m
      gpu.return
    }
    gpu.func @all(%o: memref<?xi32>, %m: !m, %s: !s) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
      %i = gpu.block_id x
      %offset = memref.load %o[%i] : memref<?xi32>
      %rows = arith.index_cast %offset : i32 to index
      %product = tile.mma_async %s, %s transpose_b warpgroup : !s, <64x64xf16, swizzle = 128> -> <!x>
      %x = tile.mma_wait %product : <!x>
      tile.store %x, %m[%i] rows(%rows) : !x to !m
      tile.store %x, %m[%i] : !x to !m
      gpu.return
    }
    gpu.func @others(%o: memref<?xi32>, %m: !m, %s: !s) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %i = gpu.block_id x
      %offset = memref.load %o[%i] : memref<?xi32>
      %rows = arith.index_cast %offset : i32 to index
      %product = tile.mma_async %s, %s transpose_b warpgroup : !s, <64x64xf16, swizzle = 128> -> <!x>
      %x = tile.mma_wait %product : <!x>
      tile.store %x, %m[%i] rows(%rows) : !x to !m
      memref.store %zero, %m[%i, %c0] : !m
      gpu.return
    }
  }
}

// -----

// Blocks that claim tiles end where the grid ends, which is computed before the loop; others end at once.
// CHECK-LABEL: gpu.func @ends(
// CHECK-SAME:    %[[O:[a-z0-9]+]]: memref<?xi32>, %{{.*}}, %{{.*}}, %[[ALL:[a-z0-9]+]]: index, %[[C:[a-z0-9]+]]: memref<1xi32>)
// CHECK:         %[[N:.*]] = memref.load %[[O]][%c0{{.*}}]
// CHECK:         %[[END:.*]] = arith.index_cast %[[N]]
// CHECK-NOT:     tile.end_grid
// CHECK:         %[[TILES:.*]] = arith.minui %[[ALL]], %[[END]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[TILES]]
// CHECK-NEXT:      tile.claim
// CHECK-LABEL: gpu.func @blocks(
// CHECK:         %[[END:.*]] = arith.index_cast
// CHECK:         %[[ID:.*]] = gpu.block_id x
// CHECK:         %[[IS:.*]] = arith.cmpi uge, %[[ID]], %[[END]]
// CHECK-NEXT:    tile.end_block_if %[[IS]]
!m = memref<?x64xf32>
!s = !tile.smem<64x64xf16, swizzle = 128>
module attributes {gpu.container_module} {
  func.func @launch(%n: index, %o: memref<?xi32>, %m: !m, %s: !s) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@ends blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : memref<?xi32>, %m : !m, %s : !s)
    return
  }
  gpu.module @m {
    gpu.func @ends(%o: memref<?xi32>, %m: !m, %s: !s) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
      %c0 = arith.constant 0 : index
      %n = memref.load %o[%c0] : memref<?xi32>
      %end = arith.index_cast %n : i32 to index
      tile.end_grid %end
      %i = gpu.block_id x
      %p = tile.mma_async %s, %s warpgroup : !s, <64x64xf16, swizzle = 128> -> <tensor<64x64xf32, #tile.fragment<4>>>
      %x = tile.mma_wait %p : <tensor<64x64xf32, #tile.fragment<4>>>
      tile.store %x, %m[%i, %c0] : tensor<64x64xf32, #tile.fragment<4>> to !m
      gpu.return
    }
    gpu.func @blocks(%o: memref<?xi32>, %m: !m) kernel {
      %c0 = arith.constant 0 : index
      %n = memref.load %o[%c0] : memref<?xi32>
      %end = arith.index_cast %n : i32 to index
      tile.end_grid %end
      gpu.return
    }
  }
}
